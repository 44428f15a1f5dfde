"""A scenario as planning sees it: networks, limits of a mix, and the coefficients behind the arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from geoedge.control.planners.limits import deep_profiles
from geoedge.errors import GeoEdgeError
from geoedge.study import poisson_network, prepare, stated_network
from geoedge.theory.placement import PlacementLimits
from geoedge.theory.sensitivity import Knob

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import City
    from geoedge.scenario import HardwareConfig, Scenario
    from geoedge.sites import Layout
    from geoedge.theory import TieredNetwork
    from geoedge.workload import Workload

    Floats = NDArray[np.float64]

__all__ = ["PlanInputs", "hardware_knobs", "placement_limits", "plan_inputs"]


@dataclass(frozen=True, eq=False)
class PlanInputs:
    """A scenario as planning sees it.

    Attributes
    ----------
    workload
        Request types and profiles.
    networks
        The Poisson network of each epoch that counts, or the one of a scenario without a city.
    weights
        Requests of each, shape (E,).
    limits
        What a mix must keep to: budget of [plan], floor and cap of [control].
    """

    workload: Workload
    networks: tuple[TieredNetwork, ...]
    weights: Floats
    limits: PlacementLimits


def plan_inputs(scenario: Scenario, city: City | None = None, layout: Layout | None = None) -> PlanInputs:
    """Return the networks of a scenario with their weights, and the limits of a mix.

    Parameters
    ----------
    scenario
        A scenario; without a city, one that states its densities.
    city, layout
        City and sites, if they exist already.

    Raises
    ------
    GeoEdgeError
        If no mix keeps the limits; the line says which cannot be kept.
    """
    from geoedge.workload import build_workload

    if scenario.city is None:
        workload = build_workload(scenario.workload, scenario.hardware)
        networks: tuple[TieredNetwork, ...] = (stated_network(scenario, workload),)
        weights: Floats = np.ones(1)
    else:
        study = prepare(scenario, city=city, layout=layout)
        workload, asked = study.workload, np.flatnonzero(study.expected_requests > 0)
        networks = tuple(poisson_network(study, study.demand[epoch]) for epoch in asked)
        weights = study.expected_requests[asked]
    present = networks[0].tier_density / networks[0].site_density
    return PlanInputs(workload, networks, weights, placement_limits(scenario, workload, present))


def placement_limits(
    scenario: Scenario, workload: Workload, present: Floats | None = None
) -> PlacementLimits:
    """Return what a mix must keep to: the budget of [plan], floor and cap of [control].

    Parameters
    ----------
    scenario
        A scenario.
    workload
        Its workload.
    present
        Mix whose memory is the budget if none is given, shape (S,); without it there is then no budget.

    Raises
    ------
    GeoEdgeError
        If several deep profiles together are to keep to a cap.
    """
    stored = workload.persistent_bytes.astype(np.float64)
    unstated = np.inf if present is None else float(present @ stored)
    budget = scenario.plan.memory_budget_bytes
    least = np.zeros(len(stored))
    least[0] = scenario.control.fallback_floor
    control, deep = scenario.control, deep_profiles(workload.hit_tokens)
    if control.deep_share_cap < 1.0 and deep.sum() > 1:
        names = ", ".join(name for name, is_deep in zip(workload.profile_names, deep, strict=True) if is_deep)
        msg = (
            f"control.deep_share_cap = {control.deep_share_cap:g}: a plan bounds the share of one profile at a time, not that "
            f"of {names} together; bound each by control.deep_cap, or leave the cap to the controller of a run"
        )
        raise GeoEdgeError(msg)
    most = np.where(deep, min(control.deep_cap, control.deep_share_cap), 1.0)
    return PlacementLimits(stored, unstated if budget is None else float(budget), least, most)


def hardware_knobs(hardware: HardwareConfig, workload: Workload) -> dict[str, Knob]:
    """Return the coefficients of prefill and decode as parameters of a network; those that are zero are left out.

    Parameters
    ----------
    hardware
        GPU and model.
    workload
        The workload made from it.
    """
    residual: Floats = workload.prompt_tokens.astype(np.float64) - workload.hit_tokens
    full = workload.prompt_tokens.astype(np.float64)
    output = workload.output_tokens.astype(np.float64)
    knobs = {
        "prefill_linear_s": _time_knob(hardware.prefill_linear_s, "s/token", residual, full, True),
        "prefill_quadratic_s": _time_knob(
            hardware.prefill_quadratic_s, "s/token²", residual * residual, full * full, True
        ),
        "prefill_constant_s": _time_knob(
            hardware.prefill_constant_s, "s", (residual > 0.0).astype(np.float64), np.ones_like(full), True
        ),
    }
    if hardware.decode_time_s is not None:
        knobs["decode_time_s"] = _time_knob(hardware.decode_time_s, "s", np.ones(residual.shape), full, False)
    else:
        each: Floats = np.asarray(np.broadcast_to(output, residual.shape), dtype=np.float64)
        knobs["decode_step_s"] = _time_knob(hardware.decode_step_s, "s/token", each, full, False)
    return {name: knob for name, knob in knobs.items() if knob.value > 0.0}


def _time_knob(value: float, unit: str, per_request: Floats, per_prompt: Floats, prefills: bool) -> Knob:
    """Return a coefficient that adds this much to the time of each request, shape (S, Q), before the first token."""

    def change(network: TieredNetwork, new: float) -> TieredNetwork:
        more = new - value
        occupancy = network.occupancy_time + more * per_request
        if not prefills:
            return replace(network, occupancy_time=occupancy)
        return replace(
            network,
            occupancy_time=occupancy,
            prefill_time=network.prefill_time + more * per_request,
            full_prefill_time=network.full_prefill_time + more * per_prompt,
        )

    return Knob(value, unit, change)
