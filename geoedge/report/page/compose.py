"""From runs to the parts of the page: which, in which order, with which words around them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geoedge.errors import GeoEdgeError
from geoedge.report.page import answers, beside, given, ground, happened, limits, loads, moved, times
from geoedge.report.page.blocks import Block, Code, Frame, Grid, Items, More, Part, Picture, Tiles, Words
from geoedge.report.page.pictures import drawn, runs_drawn
from geoedge.report.page.told import Told

if TYPE_CHECKING:
    from geoedge.compare import Gap
    from geoedge.sites.verdicts import LayoutStatistics
    from geoedge.style import PaperFigure

__all__ = ["MAP_BYTES", "Asked", "parts_of"]

MAP_BYTES = 2_000_000
"""What all maps of a page may weigh together [B]."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What the page is made of.

    Parameters
    ----------
    runs
        The runs.
    gap
        The gap between theory and city, taken apart; None if nobody did.
    maps
        Whether the interactive maps are to be in the page.
    """

    runs: Sequence[Told]
    gap: Gap | None
    maps: bool

    @property
    def alone(self) -> bool:
        """Whether one run stands for itself."""
        return len(self.runs) == 1

    @property
    def names(self) -> str:
        """The runs in words, after what is said of them."""
        return "" if self.alone else f": {', '.join(each.name for each in self.runs)}"


def parts_of(asked: Asked) -> list[Part]:
    """Return the parts of the page, those without content left out.

    Parameters
    ----------
    asked
        What the page is made of.
    """
    makers: tuple[tuple[str, str, Callable[[Asked], Iterator[Block]]], ...] = (
        ("short", "In short", _short),
        ("answers", "The three answers", _answers),
        ("why", "Why they differ", _why),
        ("ttft", "Time to first token", _times),
        ("load", "Load of the sites", _loads),
        ("map", "The map", _maps),
        ("controller", "What the controller moved", _moved),
        ("happened", "Requests, events, conversations", _happened),
        ("layout", "How the sites stand", _layout),
        ("limits", "Limits of validity", _limits),
        ("scenario", "The scenario", _scenario),
        ("provenance", "Provenance", _provenance),
    )
    parts = [Part(key, title, list(make(asked))) for key, title, make in makers]
    return [part for part in parts if part.blocks]


def _each(asked: Asked, make: Callable[[Told, str], Iterator[Block]], label: str) -> Iterator[Block]:
    """Yield the blocks of the only run, or those of every run, to be opened."""
    for number, told in enumerate(asked.runs):
        blocks = list(make(told, f"r{number}"))
        if asked.alone:
            yield from blocks
        elif blocks:
            yield More(f"{label}: {told.name}", blocks)


# -- what comes first -----------------------------------------------------------------------------------


def _short(asked: Asked) -> Iterator[Block]:
    for told in asked.runs:
        said = answers.verdict(told)
        yield Words(said if asked.alone else f"{told.name}: {said}", "lead")
    if not asked.alone:
        yield Items(list(_changes(asked)))
    if asked.alone:
        yield Tiles(list(_key_numbers(asked.runs[0])))
    for told in asked.runs:
        if found := limits.alarms(told):
            what = f"{len(found)} warnings say" if len(found) > 1 else "A warning says"
            name = "" if asked.alone else f"{told.name}: "
            yield Items(
                [f"{name}{what} where these numbers end, under Limits of validity. {found[0]}"], warning=True
            )


def _changes(asked: Asked) -> Iterator[str]:
    first, *others = asked.runs
    for each in others:
        yield f"{each.name} against {first.name}: {_points(beside.difference(first, each, 'coverage'))}."
    yield from beside.pairing_words(asked.runs)


def _points(found: beside.Difference) -> str:
    """Return a difference of coverage in points, and between what it is where no column says that."""
    known = "" if math.isnan(found.half) else f" ± {100 * found.half:.1f}"
    words = f"{100 * found.mean:+.1f}{known}".replace("-", "−")
    if found.means is None:
        return f"{words} points of coverage"
    before, after = found.means
    return f"{words} points of coverage, from {100 * before:.1f} % to {100 * after:.1f} %"


def _key_numbers(told: Told) -> Iterator[tuple[str, str]]:
    column = told.as_it_is
    for metric, name, form in (
        ("coverage", f"in time, within {told.target_s:g} s", "{:.1%}"),
        ("mean_ttft_s", "mean TTFT", "{:.2f} s"),
        ("p95_ttft_s", "19 of 20 within", "{:.2f} s"),
        ("utilization", "of server time in use", "{:.0%}"),
    ):
        value = told.value(metric, column)[0] if column else told.results.metrics()[metric]
        yield _key_number(value, form), name
    yield f"{len(told.results.sites)}", "sites"
    yield f"{told.results.requests:,}", "requests counted in a run"


def _key_number(value: float, form: str) -> str:
    """Return a key number with its unit; in a word where it is none, or beyond all bounds."""
    if math.isnan(value):
        return "–"
    return form.format(value).replace("%", " %") if math.isfinite(value) else "unbounded"


# -- answers --------------------------------------------------------------------------------------------


def _answers(asked: Asked) -> Iterator[Block]:
    if not asked.alone:
        yield beside.differences_grid(asked.runs)
        if (grid := beside.answers_beside(asked.runs)) is not None:
            yield grid
    yield from _each(asked, _answers_of, "All answers")
    for told in asked.runs:
        if told.answers is None:
            yield Words(
                f"{told.name} is a simulation by itself: `geoedge run` asks theory and field, too.", "quiet"
            )


def _answers_of(told: Told, key: str) -> Iterator[Block]:
    if (grid := answers.answers_grid(told)) is not None:
        words = f"TTFT coverage in all answers, with 95 % intervals: {_values(told)}."
        yield runs_drawn(f"{key}-answers", words, "three_answers", [told.labelled])
    if (policies := answers.policies_grid(told)) is not None:
        yield policies
    if grid is not None:
        words = "Share of requests that each profile serves, in all answers."
        yield runs_drawn(f"{key}-shares", words, "profile_shares", [told.labelled])
        yield grid


def _values(told: Told) -> str:
    return ", ".join(f"{column} {told.value('coverage', column)[0]:.3f}" for column in told.columns)


def _why(asked: Asked) -> Iterator[Block]:
    if not asked.alone and (grid := answers.steps_beside(asked.runs)) is not None:
        yield grid
    yield from _each(asked, _why_of, "Steps and findings")
    if asked.gap is not None:
        yield from _gap(asked.gap)
    elif any(told.answers is not None for told in asked.runs):
        yield Words(
            "Which effect costs how much (edge of the land, places of sites, movement, telemetry and others, one at a "
            "time) is a computation of its own, which takes minutes: `geoedge report RUN --explain` puts it here, as does "
            "`report_page(…, gap=geoedge.explain_gap(…))`.",
            "quiet",
        )


def _why_of(told: Told, key: str) -> Iterator[Block]:
    steps = answers.steps_of(told)
    if len(steps) > 1:
        yield answers.steps_table(steps)
    kept = [line for line in told.meta.get("findings", ()) if line not in set(limits.alarms(told))]
    if kept:
        yield Items(kept)


def _gap(gap: Gap) -> Iterator[Block]:
    heads, rows = gap.worded()
    yield Words("The gap taken apart, an effect at a time.")
    words = f"From Poisson theory to the city, an effect a step: {' '.join(gap.sentences())}"
    yield drawn("gap", words, gap.figure)
    yield Grid(f"{gap.title}: from Poisson theory to the city", ["effect", *heads[1:]], rows)
    yield Items([*gap.sentences(), *gap.notes])


# -- distributions ----------------------------------------------------------------------------------------


def _times(asked: Asked) -> Iterator[Block]:
    results = [told.labelled for told in asked.runs]
    yield runs_drawn(
        "ttft", f"Share of requests over time to first token{asked.names}.", "ttft_distribution", results
    )
    yield times.quantiles_grid(asked.runs)
    for number, told in enumerate(asked.runs):
        words = f"How long requests wait at the site{'' if asked.alone else f': {told.name}'}."
        yield runs_drawn(f"r{number}-wait", words, "wait_distribution", [told.labelled])
    yield times.waits_grid(asked.runs)
    yield runs_drawn(
        "clock", f"Share of requests in time, epoch by epoch{asked.names}.", "coverage_over_time", results
    )
    if (grid := times.types_grid(asked.runs)) is not None:
        yield grid


def _loads(asked: Asked) -> Iterator[Block]:
    results = [told.labelled for told in asked.runs]
    yield runs_drawn("loads", f"Utilisation over the sites{asked.names}.", "load_distribution", results)
    yield loads.loads_grid(asked.runs)
    yield from _each(asked, lambda told, _: iter([loads.hottest_grid(told)]), "Hottest sites")


def _maps(asked: Asked) -> Iterator[Block]:
    if not asked.maps:
        return
    budget = MAP_BYTES // len(asked.runs)
    yield from _each(asked, lambda told, _: iter([_map_of(told, budget)]), "Map")
    if asked.alone:
        still = drawn("still", "Sites on their land.", lambda: _still(asked.runs[0]), print_only=True)
        if isinstance(still, Picture):
            yield still


def _map_of(told: Told, budget: int) -> Block:
    from geoedge.maps import city_map

    try:
        page = city_map(told.results, told.view.city, limit_bytes=budget).to_html()
    except GeoEdgeError as error:
        return Words(f"No map here: {error}", "quiet")
    return Frame(page, f"Map of {told.name}")


def _still(told: Told) -> PaperFigure:
    from geoedge.figures import site_map

    return site_map(told.labelled, told.view.city, columns=1)


# -- what was done, what happened -------------------------------------------------------------------------


def _moved(asked: Asked) -> Iterator[Block]:
    for told in asked.runs:
        yield Words(moved.moved_words(told) if asked.alone else f"{told.name}: {moved.moved_words(told)}")
    if not asked.alone:
        yield moved.totals_grid(asked.runs)
    yield from _each(asked, _moves_of, "Moves")


def _moves_of(told: Told, key: str) -> Iterator[Block]:
    ledger, still = moved.ledger_grid(told), moved.still_grid(told)
    if ledger is None:
        if still is not None:
            yield still
        return
    words = f"Bytes moved and share of requests in time, epoch by epoch, in {told.name}."
    yield runs_drawn(f"{key}-moves", words, "moves_over_time", [told.labelled])
    yield moved.totals_grid([told])
    if (epochs := moved.epochs_grid(told)) is not None:
        yield epochs
    yield More("Move by move", [ledger])
    if still is not None:
        yield More("Epochs without a move, and why", [still])
    if repairs := moved.repairs_of(told):
        yield Words(f"Besides, sites repaired themselves {repairs} times; see actions.parquet.", "quiet")


def _happened(asked: Asked) -> Iterator[Block]:
    yield happened.requests_grid(asked.runs)
    yield from _each(asked, _happened_of, "Events and conversations")


def _happened_of(told: Told, key: str) -> Iterator[Block]:
    for grid in (happened.events_grid(told), happened.handovers_grid(told)):
        if grid is not None:
            yield grid


def _layout(asked: Asked) -> Iterator[Block]:
    first, *others = asked.runs
    if all(ground.same_sites(first, each) for each in others):
        yield from _layout_of(first, "")
        return
    yield from _each(asked, _layout_of, "Sites")


def _layout_of(told: Told, key: str) -> Iterator[Block]:
    found, trouble = ground.layout_of(told)
    if found is None:
        yield Words(f"Not compared with Poisson: {trouble}.", "quiet")
        return
    yield Words(found.verdict)
    words = f"L function of the {found.sites} sites beside that of Poisson layouts on the same {found.area_km2:.3g} km²."
    yield drawn(f"{key}layout", words, lambda: _layout_figure(found))
    yield ground.layout_grid(found)


def _layout_figure(found: LayoutStatistics) -> PaperFigure:
    from geoedge.figures import layout_functions

    return layout_functions(found, columns=1)


# -- where it all comes from --------------------------------------------------------------------------------


def _limits(asked: Asked) -> Iterator[Block]:
    said = {told.name: limits.limits(told) for told in asked.runs}
    shared = [line for line in said[asked.runs[0].name] if all(line in lines for lines in said.values())]
    for told in asked.runs:
        if found := limits.alarms(told):
            yield Items(found if asked.alone else [f"{told.name}: {line}" for line in found], warning=True)
    yield Items(shared)
    own = [f"{name}: {line}" for name, lines in said.items() for line in lines if line not in shared]
    if own:
        yield Items(own)


def _scenario(asked: Asked) -> Iterator[Block]:
    if not asked.alone and (grid := given.difference_grid(asked.runs)) is not None:
        yield grid
    for told in asked.runs:
        if told.results.scenario_toml:
            yield More(
                f"scenario.toml of {told.name}",
                [Code(told.results.scenario_toml, f"scenario.toml of {told.name}")],
            )


def _provenance(asked: Asked) -> Iterator[Block]:
    yield given.provenance_grid(asked.runs)
