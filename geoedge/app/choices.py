"""What the sliders choose, and the scenario that follows from it; needs no browser and no Mesa."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from geoedge.errors import ScenarioError
from geoedge.policies import POLICIES
from geoedge.scenario.sections import PROCESS_PARAMETERS
from geoedge.streams import stream
from geoedge.texts import plain_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.scenario import Scenario

__all__ = [
    "AS_GIVEN",
    "CONTROLLERS",
    "LAYOUTS",
    "MIX",
    "Choices",
    "epoch_minutes",
    "kept_sites",
    "most_sites",
]

AS_GIVEN = "as given"
"""The sites of the scenario itself."""
LAYOUTS = (AS_GIVEN, "poisson", "demand", "streets", "hard_core", "lattice", "thomas")
"""Where sites may stand; the point processes need no parameter but the density."""
CONTROLLERS = ("none", "random", "greedy", "look_ahead", "multi_period", "theory_mix", "static", "oracle")
MIX = "mix_"
"""What the names of the weights of profiles begin with; their number follows."""
MOST_SITES = 2.0
"""Most sites of a point process that may be chosen, as a multiple of the scenario's."""
ONE_MINUTE_S = 60.0
LONGEST_EPOCH_MIN = 120


@dataclass(frozen=True)
class Choices:
    """What has been chosen.

    Parameters
    ----------
    load
        Requests of each user, as a multiple of the scenario's [–].
    sites
        Sites, as a multiple of the scenario's [–]; real ones can only become fewer.
    layout
        Where they stand, of `LAYOUTS`.
    policy, controller
        Names of the routing policy and of who moves caches.
    epoch_min
        Time between two plans [min].
    seed
        Seed of the run, a number or its digits.
    mix
        Weights of the profiles; only their ratios count [–], shape (S,).
    """

    load: float
    sites: float
    layout: str
    policy: str
    controller: str
    epoch_min: float
    seed: int | str
    mix: tuple[float, ...]

    @classmethod
    def of(cls, scenario: Scenario) -> Self:
        """Return what leaves a scenario as it is."""
        shares = tuple(profile.placement_probability for profile in scenario.workload.profiles)
        return cls(
            load=1.0,
            sites=1.0,
            layout=AS_GIVEN,
            policy=scenario.routing.policy,
            controller=scenario.control.controller,
            epoch_min=_minutes(scenario),
            seed=scenario.seed,
            mix=shares,
        )

    @classmethod
    def from_flat(cls, flat: Mapping[str, Any]) -> Self:
        """Return choices from one value a key, as Mesa's page hands them over.

        Parameters
        ----------
        flat
            Values by name; the weights of the mix are ``mix_0``, ``mix_1``, ...
        """
        mix = tuple(float(flat[f"{MIX}{k}"]) for k in range(sum(name.startswith(MIX) for name in flat)))
        return cls(**{each.name: flat[each.name] for each in fields(cls) if each.name != "mix"}, mix=mix)

    def flat(self) -> dict[str, Any]:
        """Return one value a key, which `from_flat` reads."""
        one = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "mix"}
        return one | {f"{MIX}{k}": weight for k, weight in enumerate(self.mix)}

    @property
    def number(self) -> int:
        """The seed as a number.

        Raises
        ------
        ScenarioError
            If it is none.
        """
        text = str(self.seed).strip()
        if not (text.isascii() and text.isdigit()) or len(text) > 18:
            msg = f"seed = {plain_text(text, 30)!r}: must be a whole number from 0 with at most 18 digits; write 1 for example"
            raise ScenarioError(msg)
        return int(text)

    def applied(self, base: Scenario, density_per_km2: float) -> Scenario:
        """Return the scenario that has been chosen; `kept_sites` says which real sites are left.

        Parameters
        ----------
        base
            The scenario that the choices are relative to.
        density_per_km2
            Density of its sites [1/km²].

        Raises
        ------
        ScenarioError
            If they do not fit together, in one line.
        """
        unchanged = Choices.of(base)
        changes: dict[str, Any] = {}
        if self.load != unchanged.load:
            rate = base.demand.request_rate_per_user_s or 0.0
            changes["demand.request_rate_per_user_s"] = rate * self.load
        if self.epoch_min != unchanged.epoch_min:
            changes["simulation.epoch_s"] = self.epoch_min * ONE_MINUTE_S
        if self.controller != unchanged.controller:
            changes["control.controller"] = self.controller
        if self.number != base.seed:
            changes["seed"] = self.number
        changes |= self._mix(unchanged.mix) | self._policy(base) | self._sites(base, density_per_km2)
        return base.override(changes) if changes else base

    def _mix(self, given: tuple[float, ...]) -> dict[str, float]:
        if self.mix == given:
            return {}
        weights = np.array(self.mix)
        if weights.sum() <= 0.0:
            msg = "mix: all weights are 0, so no site would hold anything; make one positive"
            raise ScenarioError(msg)
        shares = weights / weights.sum()
        return {f"workload.profiles[{k}].placement_probability": float(p) for k, p in enumerate(shares)}

    def _policy(self, base: Scenario) -> dict[str, Any]:
        """Return the policy without another one's numbers, and with the reports that it cannot do without."""
        if self.policy == base.routing.policy:
            return {}
        changes: dict[str, Any] = {"routing.policy": self.policy, "routing.policy_parameters": None}
        counts = self.policy in POLICIES and POLICIES[self.policy].reads == "count"
        if counts or self.policy == "risk_aware":
            changes |= {"routing.advertise": "state", "routing.scope": "site"}
        return changes

    def _sites(self, base: Scenario, density_per_km2: float) -> dict[str, Any]:
        if self.layout != AS_GIVEN:
            of_files = ("operator", "radio", "columns", "crs", "process")
            return {f"sites.{name}": None for name in of_files} | {
                "sites.source": self.layout,
                "sites.density_per_km2": density_per_km2 * self.sites,
            }
        if base.sites.source in PROCESS_PARAMETERS:
            density = base.sites.density_per_km2 or 0.0
            return {} if self.sites == 1.0 else {"sites.density_per_km2": density * self.sites}
        if self.sites > most_sites(base, self.layout):
            msg = (
                f"sites = {100 * self.sites:.0f} %: the scenario's sites are real ones and cannot become more; at most "
                f"100 %, or choose a point process ({', '.join(LAYOUTS[1:])})"
            )
            raise ScenarioError(msg)
        return {}

    def thins(self, base: Scenario) -> bool:
        """Return whether real sites are to be left out."""
        return self.layout == AS_GIVEN and base.sites.source not in PROCESS_PARAMETERS and self.sites < 1.0


def most_sites(base: Scenario, layout: str) -> float:
    """Return how many sites there can be, as a multiple of the scenario's: real ones cannot become more.

    Parameters
    ----------
    base
        The scenario that the choices are relative to.
    layout
        Where sites are to stand, of `LAYOUTS`.
    """
    real = layout == AS_GIVEN and base.sites.source not in PROCESS_PARAMETERS
    return 1.0 if real else MOST_SITES


def kept_sites(count: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Return which sites are left, shape (count,): at least one, and those of a lower share are among them.

    Parameters
    ----------
    count
        How many there are.
    share
        How many of them are left [–].
    seed
        Which order they leave in.
    """
    rank = stream(seed, "app", "kept").permutation(count)
    return np.asarray(rank < max(1, round(share * count)))


def epoch_minutes(scenario: Scenario) -> list[int | float]:
    """Return the lengths of epochs that divide a scenario's window and warm-up, its own among them [min]."""
    window, own = scenario.simulation, _minutes(scenario)
    whole = range(1, LONGEST_EPOCH_MIN + 1)
    fitting: set[int | float] = {
        minutes
        for minutes in whole
        if window.duration_s % (minutes * ONE_MINUTE_S) == 0
        and window.warm_up_s % (minutes * ONE_MINUTE_S) == 0
    }
    return sorted(fitting | {own})


def _minutes(scenario: Scenario) -> int | float:
    """Return the length of an epoch, whole minutes as a whole number."""
    minutes = scenario.simulation.epoch_s / ONE_MINUTE_S
    return int(minutes) if minutes.is_integer() else minutes
