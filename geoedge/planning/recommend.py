"""What should be built: the best mix of profiles, sites needed, and what matters most, by Poisson theory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.planning.inputs import PlanInputs, hardware_knobs, plan_inputs
from geoedge.streams import stream
from geoedge.study import service_queue
from geoedge.theory.density import DensityAndMix, minimum_density, minimum_density_and_mix
from geoedge.theory.heterogeneity import LOAD_LAWS
from geoedge.theory.placement import (
    Criterion,
    Method,
    Placement,
    RobustPlacement,
    optimal_placement,
    robust_placement,
)
from geoedge.theory.sensitivity import Sensitivity, sensitivities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import City
    from geoedge.scenario import HardwareConfig, Scenario
    from geoedge.sites import Layout
    from geoedge.study import PolicyName
    from geoedge.theory import QueueOfMix, WaitModel
    from geoedge.theory.heterogeneity import LoadLaw

    Floats = NDArray[np.float64]

__all__ = ["DensityPlan", "DeploymentPlan", "plan"]


@dataclass(frozen=True)
class DensityPlan:
    """Sites that a reliability needs.

    Attributes
    ----------
    reliability
        Share ζ of requests to be in time.
    present_density
        Site density as it is [1/km²].
    with_present_mix
        Least density with the present mix [1/km²]; infinite where none is enough.
    with_best_mix
        Least density over all mixes within the limits, and its mix.
    """

    reliability: float
    present_density: float
    with_present_mix: float
    with_best_mix: DensityAndMix


@dataclass(frozen=True, eq=False)
class DeploymentPlan:
    """What theory recommends; made by `plan`.

    Attributes
    ----------
    inputs
        What was planned for.
    ttft_target
        Target τ₀ of the time to first token [s].
    policy, law
        Routing policy, and the law of loads that coverage is counted by.
    placement
        The best mix, beside the present and the uniform one.
    density
        The sites that the reliability needs.
    load_factors
        Demands of the robust mix, over the present one.
    robust
        One mix for all of these demands.
    sensitivities
        What each parameter does to the present coverage, the largest elasticity first.
    """

    inputs: PlanInputs
    ttft_target: float
    policy: str
    law: str
    placement: Placement
    density: DensityPlan
    load_factors: tuple[float, ...]
    robust: RobustPlacement
    sensitivities: tuple[Sensitivity, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values; an infinite or undefined one as none."""
        found = self.placement
        best = {"stable": found.stable, "binding": self.binding_words()}
        best |= {"method": found.method, "evaluations": found.evaluations}
        return {
            "ttft_target_s": self.ttft_target,
            "policy": self.policy,
            "law": self.law,
            "best": self._mix_values(found.placement_probability, found.coverage) | best,
            "uniform": self._mix_values(found.uniform, found.uniform_coverage),
            "present": self._mix_values(found.present, found.present_coverage),
            "density": self._density_values(),
            "robust": self._robust_values(),
            "sensitivities": [
                {
                    name: _finite(value) if isinstance(value, float) else value
                    for name, value in row._asdict().items()
                }
                for row in self.sensitivities
            ],
        }

    def _named(self, shares: Floats) -> dict[str, float]:
        names = self.inputs.workload.profile_names
        return {name: float(share) for name, share in zip(names, shares, strict=True)}

    def _mix_values(self, mix: Floats, coverage: float) -> dict[str, Any]:
        limits = self.placement.limits
        return {
            "placement_probability": self._named(mix),
            "coverage": coverage,
            "memory_bytes": limits.memory(mix),
            "within_limits": limits.holds(mix),
        }

    def _density_values(self) -> dict[str, Any]:
        sites = self.density
        return {
            "reliability": sites.reliability,
            "present_per_km2": sites.present_density,
            "needed_with_present_mix_per_km2": _finite(sites.with_present_mix),
            "needed_with_best_mix_per_km2": _finite(sites.with_best_mix.site_density),
            "best_mix": self._named(sites.with_best_mix.placement_probability),
        }

    def _robust_values(self) -> dict[str, Any]:
        return {
            "placement_probability": self._named(self.robust.placement_probability),
            "criterion": self.robust.criterion,
            "load_factor": list(self.load_factors),
            "coverage": self.robust.coverage.tolist(),
            "regret": self.robust.regret.tolist(),
            "stable": self.robust.stable.tolist(),
        }

    def binding_words(self) -> list[str]:
        """Return the limits that the best mix reaches, in words."""
        names, limits, reached = (
            self.inputs.workload.profile_names,
            self.placement.limits,
            self.placement.binding,
        )
        floors = [
            f"floor of {names[s]} ({limits.least[s]:g})" for s in reached.lower if limits.least[s] > 0.0
        ]
        return (
            ["memory budget"] * reached.memory
            + floors
            + [f"cap of {names[s]} ({limits.most[s]:g})" for s in reached.upper if limits.most[s] < 1.0]
        )


def plan(
    scenario: Scenario,
    city: City | None = None,
    layout: Layout | None = None,
    *,
    method: Method = "slsqp",
    law: LoadLaw = "mean_field",
    criterion: Criterion = "regret",
    policy: PolicyName | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> DeploymentPlan:
    """Return the best mix of profiles, the sites that the scenario's reliability needs, and what matters most.

    Everything is asked of Poisson theory at the scenario's density and mix; in a city its window counts, epoch by
    epoch, on the city's land.

    Parameters
    ----------
    scenario
        A scenario; [plan] and [control] hold the limits, [target] the target and the reliability.
    city, layout
        City and sites, if they exist already.
    method, law
        As in `geoedge.theory.optimal_placement`.
    criterion
        What a robust mix is to be best in, as in `geoedge.theory.robust_placement`.
    policy
        Routing policy; the scenario's by default.
    progress
        Told the stage, and how many parts of it are done of how many.

    Raises
    ------
    GeoEdgeError
        If no mix keeps the limits, or a name is unknown.
    """
    tell = progress or (lambda *_: None)
    _check_names(
        method=(method, get_args(Method)), law=(law, LOAD_LAWS), criterion=(criterion, get_args(Criterion))
    )
    tell("networks", 0, 1)
    inputs = plan_inputs(scenario, city, layout)
    networks, target = inputs.networks, scenario.target.ttft_target_s
    chosen = policy or scenario.routing.solved_as
    rng = stream(scenario.seed, "placement search")
    asked = _Asked(inputs, target, chosen, method, law, service_queue(scenario), rng)
    factors = scenario.plan.load_factors
    tell("best mix", 0, 1)
    placement = optimal_placement(networks, target, inputs.limits, **asked.how())
    tell("sites needed", 0, 1)
    density = asked.density(scenario.target.reliability)
    tell("robust mix", 0, 1)
    robust = asked.robust(factors, criterion)
    tell("sensitivities", 0, 1)
    return DeploymentPlan(
        inputs=inputs,
        ttft_target=target,
        policy=chosen,
        law=law,
        placement=placement,
        density=density,
        load_factors=factors,
        robust=robust,
        sensitivities=asked.sensitivities(scenario.hardware),
    )


def _check_names(**asked: tuple[str, Sequence[str]]) -> None:
    """Refuse an unknown name before anything is loaded."""
    for name, (given, allowed) in asked.items():
        if given not in allowed:
            msg = f"plan: `{name}` is {given!r}, but must be one of {', '.join(allowed)}"
            raise GeoEdgeError(msg)


@dataclass(frozen=True, eq=False)
class _Asked:
    """The same networks, policy, law and queue for every question of a plan."""

    inputs: PlanInputs
    ttft_target: float
    policy: PolicyName
    method: Method
    law: LoadLaw
    queue: WaitModel | QueueOfMix
    rng: np.random.Generator

    def how(self) -> dict[str, Any]:
        """Return the keywords of a search."""
        return {
            "weights": self.inputs.weights,
            "method": self.method,
            "policy": self.policy,
            "law": self.law,
            "queue": self.queue,
            "rng": self.rng,
        }

    def density(self, reliability: float) -> DensityPlan:
        """Return the sites that a reliability needs."""
        networks, weights = self.inputs.networks, self.inputs.weights
        asked = (networks, reliability, self.ttft_target)
        least = minimum_density(*asked, self.policy, weights=weights, law=self.law, queue=self.queue)
        best = minimum_density_and_mix(*asked, self.inputs.limits, **self.how())
        return DensityPlan(reliability, networks[0].site_density, least, best)

    def robust(self, factors: Sequence[float], criterion: Criterion) -> RobustPlacement:
        """Return one mix for several demands."""
        cases = [
            [network.with_intensity(factor * network.request_intensity) for network in self.inputs.networks]
            for factor in factors
        ]
        how = self.how() | {"weights": [self.inputs.weights] * len(cases), "criterion": criterion}
        return robust_placement(cases, self.ttft_target, self.inputs.limits, **how)

    def sensitivities(self, hardware: HardwareConfig) -> tuple[Sensitivity, ...]:
        """Return what each parameter does, under the names of profiles and types, the strongest first."""
        work = self.inputs.workload
        rows = sensitivities(
            self.inputs.networks,
            self.ttft_target,
            self.policy,
            weights=self.inputs.weights,
            law=self.law,
            queue=self.queue,
            further=hardware_knobs(hardware, work),
        )
        names = {f"placement_probability[{s}]": f"sites of {n}" for s, n in enumerate(work.profile_names)}
        names |= {f"concurrency[{s}]": f"concurrency of {n}" for s, n in enumerate(work.profile_names)}
        names |= {f"type_probability[{q}]": f"requests of {n}" for q, n in enumerate(work.type_names)}
        named = [row._replace(parameter=names.get(row.parameter, row.parameter)) for row in rows]
        return tuple(sorted(named, key=lambda row: -abs(np.nan_to_num(row.elasticity))))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
