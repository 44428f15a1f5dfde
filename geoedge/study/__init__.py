"""From a scenario to the inputs of theory, field and simulation, and to what the first two answer."""

from geoedge.study.answers import PolicyName, field_answers, solve, solve_field, theory_answers
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
    "field_answers",
    "field_inputs",
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
