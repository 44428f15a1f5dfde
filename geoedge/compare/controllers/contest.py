"""Running several controllers on common random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from geoedge.compare.controllers.compared import ORACLE, ControllerComparison
from geoedge.errors import GeoEdgeError
from geoedge.scenario.toml import did_you_mean

if TYPE_CHECKING:
    from geoedge.city.city import City
    from geoedge.scenario import Scenario
    from geoedge.sites import Layout
    from geoedge.study import Study

__all__ = ["BASELINE", "CONTROLLERS", "compare_controllers", "contestants"]

BASELINE = "static"
"""What the others are measured against: the best placement that never changes."""
CONTROLLERS = ("none", BASELINE, "random", "greedy", "look_ahead", ORACLE)
"""Controllers that are compared by default."""

_AS_GIVEN = ("none", BASELINE, ORACLE)
"""Controllers whose start their name says."""

Changes = Mapping[str, Any]


def contestants(controllers: Sequence[str] | Mapping[str, Changes]) -> dict[str, dict[str, Any]]:
    """Return the changes in the scenario that each contestant stands for.

    Those that are named alone start from the best placement for the whole window, as ``static`` and ``oracle`` do, so
    that what they earn over it is by moving; ``none`` holds what the layout says.

    Parameters
    ----------
    controllers
        Names of controllers, or changes by dotted key for each name of a contestant.

    Raises
    ------
    GeoEdgeError
        If there are fewer than two, or a name comes twice.
    """
    if isinstance(controllers, Mapping):
        found = {name: dict(changes) for name, changes in controllers.items()}
    else:
        found = {
            name: {"control.controller": name} | ({} if name in _AS_GIVEN else {"control.start": "best"})
            for name in controllers
        }
    if len(found) < 2 or len(found) < len(controllers):
        msg = f"controllers {', '.join(controllers)}: name at least two, each once, for example {', '.join(CONTROLLERS[:2])}"
        raise GeoEdgeError(msg)
    return found


def compare_controllers(
    scenario: Scenario,
    *,
    controllers: Sequence[str] | Mapping[str, Changes] = CONTROLLERS,
    baseline: str | None = None,
    replications: int | None = None,
    rng: int | None = None,
    city: City | None = None,
    layout: Layout | None = None,
    study: Study | None = None,
    keep: Sequence[str] = (),
    workers: int | None = None,
    progress: Callable[[str, float, int], None] | None = None,
) -> ControllerComparison:
    """Run a scenario under several controllers and say what each earns.

    Replication r of every contestant sees the same people, who make the same requests, so differences are taken
    pair by pair and their intervals hold the luck of the days, not of two independent samples.

    Parameters
    ----------
    scenario
        A scenario with a city. Its window is what is compared: a day has `simulation.start_hour` 6 and
        `simulation.duration_s` 64,800, for example.
    controllers
        Values of `control.controller`, all but ``none`` starting from the best placement, or a mapping from names of contestants to the values that they replace by
        dotted key, for example ``{"greedy, told": {"control.controller": "greedy", "control.forecast": "known"}}``.
    baseline
        Contestant that the others are measured against; ``"static"`` if it takes part, else the first.
    replications
        Paired runs of each; the scenario's by default. One has no interval.
    rng
        Base seed; the scenario's by default.
    city, layout
        City and sites, if they exist already.
    study
        The scenario's study, if it is prepared already; city and layout are then its own.
    keep
        Contestants whose first run keeps all its results, for maps and logs.
    workers
        Processes; one a core by default. The result does not depend on it.
    progress
        Told the stage, and how many of its steps are done; of simulations with parts of those that are underway.

    Raises
    ------
    GeoEdgeError
        If contestants are fewer than two, or `baseline` or `keep` names none of them.
    ScenarioError
        If the scenario knows no such controller or key.
    """
    from geoedge.study import prepare
    from geoedge.sweep import replicate

    found = contestants(controllers)
    base = _baseline(found) if baseline is None else baseline
    for name in (base, *keep):
        if name not in found:
            msg = f"controllers: {name!r} does not take part{did_you_mean(name, found)}; name one of {', '.join(found)}"
            raise GeoEdgeError(msg)
    for changes in found.values():
        scenario.override(changes)  # a wrong name is said before minutes of work are spent
    tell = progress or (lambda *_: None)
    tell("city, sites, demand", 0, 1)
    ready = prepare(scenario, city=city, layout=layout) if study is None else study.with_scenario(scenario)
    names = list(found)
    lines = replicate(
        ready,
        list(found.values()),
        scenario.simulation.replications if replications is None else replications,
        seed=rng,
        workers=workers,
        keep=[names.index(name) for name in keep],
        progress=partial(tell, "simulations"),
    )
    return ControllerComparison(
        title=scenario.title,
        ttft_target_s=scenario.target.ttft_target_s,
        window_s=(ready.epochs[0][0] + scenario.simulation.warm_up_s, ready.epochs[-1][1]),
        baseline=base,
        runs=dict(zip(names, lines, strict=True)),
    )


def _baseline(found: Mapping[str, Any]) -> str:
    return BASELINE if BASELINE in found else next(iter(found))
