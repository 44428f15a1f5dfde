"""The effects between Poisson theory and a simulated city: what each is, what it comes after, and where it is absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from geoedge.policies import POLICIES

if TYPE_CHECKING:
    from geoedge.scenario import Scenario

__all__ = [
    "EFFECTS",
    "FIELD_EFFECTS",
    "RUN_EFFECTS",
    "Effect",
    "absent_in_runs",
    "after",
    "chain_of",
    "run_changes",
]


@dataclass(frozen=True)
class Effect:
    """One difference between theory and city.

    Parameters
    ----------
    label
        Its name.
    words
        What changes when it is switched on.
    after
        Effects that must be on before it.
    in_chain
        Its name as a step, where that says under what the chain judges it.
    """

    label: str
    words: str
    after: tuple[str, ...] = ()
    in_chain: str = ""


EFFECTS: dict[str, Effect] = {
    "load": Effect(
        "load differs between sites", "every site has its own region, load and wait, not its profile's mean"
    ),
    "count": Effect(
        "finite number of sites",
        "as many random sites of each profile as in reality, no more and no fewer, on a torus as large as the land",
    ),
    "window": Effect(
        "edge of the window", "random sites on the land, with its shape and its edge", ("count",)
    ),
    "unevenness": Effect(
        "uneven density",
        "requests and random sites alike are as dense in every place as the real sites are, smoothed",
        ("window",),
    ),
    "fit": Effect(
        "luck in that density",
        "requests follow every random layout's own smoothed density, as they follow the real sites': what sites gain by "
        "chance from a density that is made of them",
        ("unevenness",),
    ),
    "arrangement": Effect(
        "where sites stand",
        "the real places instead of random ones of the same uneven density, profiles still shuffled",
        ("unevenness", "fit"),
        "where sites stand (density given)",
    ),
    "layout": Effect(
        "where sites stand",
        "the real places instead of random ones, profiles still shuffled",
        ("window",),
        "where sites stand (even demand)",
    ),
    "placement": Effect(
        "which site holds what",
        "each site holds its own profile instead of a shuffled one",
        ("layout", "arrangement"),
    ),
    "demand": Effect(
        "demand in places", "requests come from where people are instead of evenly from all land", ("window",)
    ),
    "movement": Effect(
        "streets and movement",
        "people walk and drive and come in crowds, queues fill and drain; prices are still the field's",
    ),
    "service": Effect(
        "service-time law", "service times follow the scenario's law instead of an exponential", ("movement",)
    ),
    "telemetry": Effect(
        "stale telemetry",
        "waits are advertised as the scenario has it, from what has been measured",
        ("movement",),
    ),
    "controller": Effect("controller", "caches move between epochs", ("movement",)),
}
"""Every effect, in the order in which they are switched on; see `chain_of`."""
GIVEN_DENSITY, GIVEN_DEMAND = frozenset({"unevenness", "fit", "arrangement"}), frozenset({"layout", "demand"})
"""Effects of either kind of land: where random sites follow a density, and where they are even."""
FIELD_EFFECTS = (
    "load",
    "count",
    "window",
    "unevenness",
    "fit",
    "arrangement",
    "layout",
    "placement",
    "demand",
)
"""Effects that field and random networks tell."""
RUN_EFFECTS = ("movement", "service", "telemetry", "controller")
"""Effects that take a simulation; it runs on real sites and real demand, so that they come after the others."""


def after(present: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """Return what must be on before each of these effects."""
    needs = {}
    for effect in present:
        first = FIELD_EFFECTS if effect in RUN_EFFECTS else ()
        needs[effect] = frozenset(set(EFFECTS[effect].after + first) & set(present))
    return needs


def chain_of(*, given_density: bool) -> list[str]:
    """Return the effects of a chain, in order.

    Parameters
    ----------
    given_density
        Whether random sites and requests follow a density together.
    """
    other = GIVEN_DEMAND if given_density else GIVEN_DENSITY
    return [effect for effect in EFFECTS if effect not in other]


def absent_in_runs(scenario: Scenario) -> dict[str, str]:
    """Return the effects of a simulation that a scenario does not have, and why."""
    routing, service, reasons = scenario.routing, scenario.service, {}
    if service.law == "exponential_mixture":
        reasons["service"] = "service is exponential, as theory and field assume"
    elif service.queue == "service_law":
        reasons["service"] = "theory and field already have the service law's own queue"
    if POLICIES[routing.policy].reads == "nothing":
        reasons["telemetry"] = f"{routing.policy} routing heeds no waits"
    elif POLICIES[routing.policy].reads == "count" or routing.local_count:
        reasons["telemetry"] = "routers go by reported queues, and prices tell no queue"
    elif routing.advertise == "equilibrium" and scenario.control.forecast == "expected":
        reasons["telemetry"] = "the scenario's prices already follow the demand expected of the epoch"
    if scenario.control.controller == "none":
        reasons["controller"] = "the scenario has none"
    return reasons


def run_changes(scenario: Scenario, world: frozenset[str], absent: Mapping[str, str]) -> dict[str, Any]:
    """Return what a simulation changes in a scenario so that only the effects of a world are on.

    Parameters
    ----------
    scenario
        The scenario.
    world
        Effects that are on.
    absent
        Effects that the scenario does not have; what they are about stays as it is.
    """
    off = [effect for effect in RUN_EFFECTS if effect not in world and effect not in absent]
    changes: dict[str, Any] = {}
    if "service" in off:
        changes |= {"service.law": "exponential_mixture", "service.scv": None}
    if "telemetry" in off:
        changes |= {"routing.advertise": "equilibrium", "control.forecast": "expected"}
    if "controller" in off:
        changes["control.controller"] = "none"
    return changes
