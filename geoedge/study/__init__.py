"""From a scenario to the inputs of theory, field and simulation, and to what the first two answer.

The one place that turns a scenario, with its city and sites, into arrays: `prepare` makes the `Study` that
all three answers share, `theory_answers` and `field_answers` answer for its window of the day; `solve` and
`solve_field` do both steps at once. `field_inputs`, `poisson_network` and `request_rates` give the inputs
themselves.

>>> from geoedge import load_scenario
>>> from geoedge.study import field_answers, prepare
>>> study = prepare(load_scenario("monaco"))
>>> print(study.layout)
Layout(44 sites, candidate hosts from OpenStreetMap, not an operator's network, plane)
>>> print(f"{field_answers(study).ttft_coverage(0.8):.2f}")
0.77

Answers of a window are averages over its epochs, weighted by requests; the warm-up is left out. Theory sees
only densities, mix and rates: the city's demand over its land. Where theory and field do not know a routing
policy they answer for the nearest that they know (`geoedge.policies.Policy.solved_as`). Nothing is simulated
here.
"""

from geoedge.study.answers import PolicyName, field_answers, solve, solve_field, theory_answers
from geoedge.study.events import events_exist, needs_map
from geoedge.study.inputs import (
    field_inputs,
    poisson_network,
    refuse_shocks,
    refuse_streets,
    service_queue,
    stated_network,
    workload_network,
)
from geoedge.study.prepared import PREPARED_FROM, Study, prepare, request_rates

__all__ = [
    "PREPARED_FROM",
    "PolicyName",
    "Study",
    "events_exist",
    "field_answers",
    "field_inputs",
    "needs_map",
    "poisson_network",
    "prepare",
    "refuse_shocks",
    "refuse_streets",
    "request_rates",
    "service_queue",
    "solve",
    "solve_field",
    "stated_network",
    "theory_answers",
    "workload_network",
]
