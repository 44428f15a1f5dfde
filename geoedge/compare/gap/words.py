"""A gap in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from geoedge.compare.gap.effects import EFFECTS, chain_of
from geoedge.compare.gap.readings import Interval, Reading

if TYPE_CHECKING:
    from geoedge.compare.gap.field import Ground
    from geoedge.compare.gap.orders import World
    from geoedge.compare.gap.result import Gap
    from geoedge.study import Study

__all__ = ["difference", "level", "notes", "sentences", "span"]

NAMED = 3
"""Largest effects that get a sentence."""
SKEWED = (
    "Mean waits of simulations are skewed, and their intervals too narrow: on a test city, those that claim 95 % held in "
    "86 to 96 % of trials for single steps of the simulation, and in 73 to 86 % for its whole change. Intervals of coverage "
    "hold."
)
"""What to beware of where waits are simulated; `geoedge.compare.gap.readings` has how it was measured."""


def level(value: float, metric: str) -> str:
    """Return a value of a metric as text."""
    return f"{100 * value:.1f} %" if metric == "coverage" else f"{value:.3f} s"


def difference(value: float, metric: str) -> str:
    """Return a difference in a metric as text without its unit."""
    text = f"{100 * value:+.1f}" if metric == "coverage" else f"{value:+.3f}"
    return text.replace("-", "−") if float(text) else text[1:]


def _unit(metric: str) -> str:
    return "points" if metric == "coverage" else "s"


def span(interval: Interval, metric: str) -> str:
    """Return a difference with its interval as text."""
    value, half = difference(interval.value, metric), 0.5 * (interval.high - interval.low)
    if np.isnan(half):
        return f"{value} {_unit(metric)}, one sample"
    if half == 0.0:
        return f"{value} {_unit(metric)}, exact"
    return f"{value} ± {difference(half, metric).lstrip('+')} {_unit(metric)}"


def sentences(gap: Gap) -> list[str]:
    """Return what a gap says, a sentence each."""
    return [*_whole(gap), *_largest(gap), *_unclear(gap), *_absent(gap), *_orders(gap), *_together(gap)]


def _whole(gap: Gap) -> Iterator[str]:
    what = f"{gap.ttft_target_s:g} s: " if gap.metric == "coverage" else "Mean wait: "
    opening = f"In time within {what}" if gap.metric == "coverage" else what
    last = "the simulated city" if gap.simulated else "the real sites"
    told = ", not told apart from zero" if _holds_zero(gap.total) else ""
    yield (
        f"{opening}Poisson theory says {level(gap.start.value, gap.metric)}, {last} "
        f"{level(gap.end.value, gap.metric)}: {span(gap.total, gap.metric)}{told}."
    )


def _changes(gap: Gap) -> list[tuple[str, str, Interval]]:
    """Return key, name and change of each effect: its step in the chain, or its mean over all orders if asked for."""
    if gap.spreads is None:
        return [(step.effect, step.label, step.change) for step in gap.steps]
    return [(key, EFFECTS[key].label, spread.mean) for key, spread in gap.spreads.items()]


def _largest(gap: Gap) -> Iterator[str]:
    told = [each for each in _changes(gap) if each[2].low > 0.0 or each[2].high < 0.0]
    told.sort(key=lambda each: -abs(each[2].value))
    opening = (
        "Largest effect" if gap.spreads is None else f"Largest effect, on average over {gap.orders} orders"
    )
    for place, (key, label, change) in enumerate(told[:NAMED]):
        yield f"{'Next' if place else opening}: {label}, {span(change, gap.metric)}; {EFFECTS[key].words}."


def _unclear(gap: Gap) -> Iterator[str]:
    changes = _changes(gap)
    names = [label for _, label, change in changes if change.low < change.high and _holds_zero(change)]
    if names:
        yield f"Not told apart from zero: {', '.join(names)}."
    once = [label for _, label, change in changes if np.isnan(change.high)]
    if once:
        yield f"Known from a single run, which says nothing of its luck: {', '.join(once)}."


def _holds_zero(change: Interval) -> bool:
    return change.low <= 0.0 <= change.high


def _absent(gap: Gap) -> Iterator[str]:
    for step in gap.steps:
        if step.reason:
            yield f"Absent: {step.label}, since {step.reason}."


def _orders(gap: Gap) -> Iterator[str]:
    if gap.spreads is None:
        steps = {step.effect: step for step in gap.steps if not step.reason}
        if {"layout", "demand"} <= set(steps):
            places, people = (steps[key].change.value for key in ("layout", "demand"))
            values = (difference(value, gap.metric) for value in (places, people, places + people))
            yield (
                "Places of sites and of people belong together: {} under even demand, then {} as people gather where the "
                "sites are, {} {} in both; what either looks worth depends on which comes first.".format(
                    *values, _unit(gap.metric)
                )
            )
        yield (
            f"This is one of {gap.orders} orders that make sense; effects interact, and another order gives other steps."
        )
        return
    widest, spread = max(gap.spreads.items(), key=lambda item: item[1].most - item[1].least)
    (chain,) = (step.change for step in gap.steps if step.effect == widest)
    least, most = (difference(value, gap.metric) for value in (spread.least, spread.most))
    yield (
        f"The order matters most for {EFFECTS[widest].label}: {difference(chain.value, gap.metric)} in the chain, "
        f"{span(spread.mean, gap.metric)} on average over {gap.orders} orders, from {least} to {most} by what was there "
        "before."
    )


def _together(gap: Gap) -> Iterator[str]:
    """Say which two effects depend on each other most, and what each is worth alone and both are."""
    pairs = list(_pairs(gap)) if gap.spreads is not None else []
    if pairs:
        first, second, alone, other, both = max(pairs, key=lambda pair: abs(pair[4] - pair[2] - pair[3]))
        values = (difference(value, gap.metric) for value in (alone, other, both))
        words = f"What {first} and {second} are worth depends most on each other"
        yield "{}: {} and {} alone, {} {} together.".format(words, *values, _unit(gap.metric))


def _pairs(gap: Gap) -> Iterator[tuple[str, str, float, float, float]]:
    """Yield two effects, what each changes alone and what both do, where the chain switches the first one on."""
    present = [step.effect for step in gap.steps if not step.reason]
    for k, first in enumerate(present):
        base = frozenset(present[:k])
        for second in present[k + 1 :]:
            worlds = [base | {first}, base | {second}, base | {first, second}]
            if all(world in gap.readings for world in worlds):
                start = gap.readings[base].value
                alone, other, both = (gap.readings[world].value - start for world in worlds)
                yield EFFECTS[first].label, EFFECTS[second].label, alone, other, both


def notes(
    ground: Ground,
    readings: Mapping[World, Reading],
    layouts: int,
    study: Study | None = None,
    replications: int = 0,
) -> tuple[str, ...]:
    """Return how a gap was computed and what to beware of, a sentence each."""
    made = [
        f"Random sites: {layouts} layouts of {len(ground.layout)} sites with the real number of every profile, on "
        f"{ground.area_km2:.4g} km² of land, so that capacity never differs."
    ]
    if study is not None:
        made += [
            (
                "Simulations: one of each world, so nothing tells the luck of people and requests."
                if replications == 1
                else f"Simulations: {replications} of each world, on the same people and requests."
            ),
            f"Telemetry: {_advertised(study)}; without it prices follow the demand that is expected of each epoch.",
        ]
    if ground.density is not None:
        made.append(_of_density(fitted=any("fit" in world for world in readings)))
    made.append(
        "Intervals are 95 % (Student's t) and hold the luck of random layouts and runs, not that of the one real layout; "
        "worlds that share layouts or people are compared pair by pair."
    )
    if study is not None and ground.metric == "wait_s":
        made.append(SKEWED)
    return (*made, *_warnings(readings, layouts, replications))


def _of_density(*, fitted: bool) -> str:
    """Return what to beware of where a density is the sites' own."""
    beware = (
        f'"{EFFECTS["fit"].label}" is what this gives to sites of pure chance, and "{EFFECTS["arrangement"].label}" what '
        "the real ones have beyond it"
        if fitted
        else f'a part of "{EFFECTS["arrangement"].label}" may be no more than that'
    )
    return (
        "Uneven random sites follow the real sites' own density, smoothed, which fits the sites that it is made from "
        f"better than others: {beware}."
    )


def _advertised(study: Study) -> str:
    """Return which waits a scenario advertises."""
    routing, epoch_s = study.scenario.routing, study.scenario.simulation.epoch_s
    if routing.advertise == "equilibrium":
        source = _SOURCES[study.scenario.control.forecast]
        return f"each epoch of {epoch_s:g} s has prices for the demand {source}"
    what = "read from present queues" if routing.advertise == "state" else "measured and smoothed"
    return f"waits {what}, {routing.telemetry_period_s:g} s apart and {routing.telemetry_delay_s:g} s late"


_SOURCES = {
    "last": "measured in the one before",
    "expected": "expected of the epoch",
    "movement": "forecast from movement",
    "known": "that really comes",
}
"""Where the demand that prices are for comes from, by forecast."""


def _warnings(readings: Mapping[World, Reading], layouts: int, replications: int) -> Iterator[str]:
    """Say once for each kind of trouble and source how often it was met, and where most."""
    words = {"unstable": "UNSTABLE: a site was beyond capacity"}
    samples = {"layouts": layouts, "runs": replications}
    met: dict[tuple[str, str], list[tuple[int, World]]] = {}
    for world, reading in readings.items():
        for name, count in reading.flags:
            met.setdefault((name, reading.source), []).append((count, world))
    for (name, source), counts in met.items():
        most, world = max(counts, key=lambda each: each[0])
        what = words.get(name, "UNSOLVED: the equilibrium was missed")
        often = _often(most, samples[source], source) if source in samples else ""
        others = "another world" if len(counts) == 2 else f"{len(counts) - 1} other worlds"
        further = f", and in {others}" if len(counts) > 1 else ""
        yield f"{what} {often} {_world_words(world)}{further}.".replace("  ", " ")


def _often(count: int, of: int, noun: str) -> str:
    return f"in the one {noun.removesuffix('s')}" if of == 1 else f"in {count} of {of} {noun}"


def _world_words(world: World) -> str:
    """Return which effects a world has, short where it has all up to one of them."""
    keys = [key for key in EFFECTS if key in world]
    if not keys:
        return "in theory"
    if any(keys == chain_of(given_density=given)[: len(keys)] for given in (False, True)):
        return f"with all effects up to {EFFECTS[keys[-1]].label}"
    return f"with {', '.join(EFFECTS[key].label for key in keys)}"
