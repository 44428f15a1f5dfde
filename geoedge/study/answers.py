"""Theory and field asked about a study, or about a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from geoedge.answers import Answer, WindowedAnswer
from geoedge.study.inputs import edged_inputs, poisson_network, service_queue, stated_network
from geoedge.study.prepared import Study, prepare

if TYPE_CHECKING:
    from geoedge.city.city import City
    from geoedge.field import FieldAnswer
    from geoedge.scenario import Scenario
    from geoedge.sites import Layout
    from geoedge.theory import TheoryAnswer

__all__ = ["PolicyName", "field_answers", "solve", "solve_field", "theory_answers"]

A = TypeVar("A", bound=Answer)
PolicyName = Literal["load_aware", "prefix_only", "nearest"]
"""Name of a routing policy that theory and field solve."""


def theory_answers(
    study: Study, *, policy: PolicyName | None = None, area_km2: float | None = None
) -> WindowedAnswer[TheoryAnswer]:
    """Return what Poisson theory says of the study's window.

    Parameters
    ----------
    study
        The study.
    policy
        Routing policy; by default the scenario's, or what stands for it (`geoedge.policies.Policy.solved_as`).
    area_km2
        Land to spread sites and demand over [km²]; the city's by default.
    """
    from geoedge.theory import solve as solve_network

    chosen = policy or study.scenario.routing.solved_as
    networks = [poisson_network(study, demand, area_km2=area_km2) for demand in study.demand]
    queue = service_queue(study.scenario)
    answers = [solve_network(network, policy=chosen, queue=queue) for network in networks]
    return _windowed(study, answers, range(len(answers)))


def field_answers(
    study: Study, *, policy: PolicyName | None = None, warm_up: bool = True, tolerance: float = 1e-4
) -> WindowedAnswer[FieldAnswer]:
    """Return the field's answer for the study's window.

    Parameters
    ----------
    study
        The study.
    policy
        Routing policy; by default the scenario's, or what stands for it (`geoedge.policies.Policy.solved_as`).
    warm_up
        Whether to solve the epochs of the warm-up too, which count for nothing.
    tolerance
        Residual to reach, in utilisation.
    """
    from geoedge.field import solve_field as solve_problem

    routing = study.scenario.routing
    epochs = [k for k, weight in enumerate(study.expected_requests) if warm_up or weight > 0]
    answers: list[FieldAnswer] = []
    for epoch in epochs:
        last = answers[-1] if answers else None
        answers.append(
            solve_problem(
                edged_inputs(study, study.demand[epoch], last.problem if last else None),
                policy=policy or routing.solved_as,
                scope=routing.scope,
                waits=last.advertised_wait if last else None,
                queue=service_queue(study.scenario),
                tolerance=tolerance,
            )
        )
    return _windowed(study, answers, epochs)


def solve(
    scenario: Scenario,
    city: City | None = None,
    layout: Layout | None = None,
    *,
    policy: PolicyName | None = None,
) -> TheoryAnswer | WindowedAnswer[TheoryAnswer]:
    """Return what Poisson theory says.

    Parameters
    ----------
    scenario
        A scenario. One that states its densities needs no city.
    city, layout
        City and sites, if they exist already.
    policy
        Routing policy; by default the scenario's, or what stands for it (`geoedge.policies.Policy.solved_as`).

    Raises
    ------
    ScenarioError
        If the scenario has neither a city nor densities.
    """
    if scenario.city is not None:
        return theory_answers(prepare(scenario, city=city, layout=layout), policy=policy)
    from geoedge.theory import solve as solve_network
    from geoedge.workload import build_workload

    network = stated_network(scenario, build_workload(scenario.workload, scenario.hardware))
    return solve_network(network, policy=policy or scenario.routing.solved_as, queue=service_queue(scenario))


def solve_field(
    scenario: Scenario,
    city: City | None = None,
    layout: Layout | None = None,
    *,
    policy: PolicyName | None = None,
) -> WindowedAnswer[FieldAnswer]:
    """Return the field's answer: the same rule on this map.

    Parameters
    ----------
    scenario
        A scenario with a city.
    city, layout
        City and sites, if they exist already.
    policy
        Routing policy; by default the scenario's, or what stands for it (`geoedge.policies.Policy.solved_as`).
    """
    return field_answers(prepare(scenario, city=city, layout=layout), policy=policy)


def _windowed(study: Study, answers: Sequence[A], epochs: Sequence[int]) -> WindowedAnswer[A]:
    mixes = np.array([study.demand[epoch].mix for epoch in epochs])
    return WindowedAnswer(
        answers,
        study.expected_requests[list(epochs)],
        mixes @ study.workload.prompt_tokens,
        mixes @ study.workload.full_prefill_time,
        study.measured_s[list(epochs)],
    )
