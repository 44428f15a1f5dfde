"""Which places to equip first, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table
from rich.text import Text

from geoedge.report._narrow import show
from geoedge.report._text import number, table, terminal
from geoedge.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from geoedge.planning.places import PlacesPlan

__all__ = ["print_places"]


def print_places(plan: PlacesPlan, title: str) -> None:
    """Print the order of building, the number of sites beside random order and theory, and what was found.

    Parameters
    ----------
    plan
        As `geoedge.plan_places` gives it.
    title
        Title of the study.
    """
    console = terminal()
    words = (
        f"{plain_text(title)}: places to equip first, TTFT target {plan.ttft_target:g} s, "
        f"{len(plan.held)} candidates, routing {plan.study.scenario.routing.policy}"
    )
    console.print(Text(words, style="bold"))
    show(console, _order_table(plan))
    show(console, _number_table(plan))
    for line in _lines(plan):
        console.print(Text(line))


def _order_table(plan: PlacesPlan) -> Table:
    made = table(
        "Order of building",
        "",
        "place",
        "name",
        "street",
        "lon",
        "lat",
        "coverage",
        "served",
        "let in",
        "profile",
        "kind",
        left=4,
    )
    for column in made.columns[-2:]:
        column.justify = "left"
    made.caption = (
        "coverage: of all requests, in time; served: the same if the network turns away what it cannot carry"
    )
    made.caption_justify = "left"
    for k, row in enumerate(plan.order, 1):
        name, street, profile, kind = (
            Text(plain_text(text)) for text in (row.name, row.street, row.profile, row.kind)
        )
        where = (number(row.lon, 5), number(row.lat, 5))
        values = (number(row.coverage, 4), number(row.served_in_time, 4), number(row.admitted, 2))
        made.add_row(str(k), str(row.place), name, street, *where, *values, profile, kind)
    return made


def _number_table(plan: PlacesPlan) -> Table:
    made = table(f"Sites for a coverage of {plan.reliability:g}", "", "sites", "95 % of orders", left=1)
    places, beside = len(plan.held), plan.yardsticks
    low, middle, high = (_count(each, places) for each in beside.random_needed)
    grown = np.flatnonzero(plan.greedy >= plan.reliability)
    if plan.asked_sites is None:
        found = str(plan.needed) if plan.needed is not None else f"more than {places}"
        made.add_row("greedy and exchange", found, "")
    made.add_row("greedy alone", str(grown[0] + 1) if grown.size else f"more than {len(plan.greedy)}", "")
    made.add_row("random order of the same mix, median", middle, f"{low} to {high}")
    needed = beside.theory_needed
    made.add_row("Poisson theory's density on this land, same mix", number(needed, 1), "")
    return made


def _count(value: float, places: int) -> str:
    return f"{value:.0f}" if np.isfinite(value) else f"more than {places}"


def _lines(plan: PlacesPlan) -> Iterator[str]:
    held = plan.held[plan.held >= 0]
    names = plan.study.workload.profile_names
    count = np.bincount(held, minlength=len(names))
    mix = ", ".join(f"{n} {plain_text(name)}" for name, n in zip(names, count, strict=True) if n)
    yield (
        f"With these {len(held)} sites ({mix}) {plan.coverage:.4f} of requests are in time over the whole window, epoch "
        f"by epoch; the rows above and random orders are judged on the window in two parts, where it is "
        f"{plan.order[-1].coverage:.4f}. All {len(plan.held)} candidates with their present profiles: {plan.present:.4f}."
    )
    if plan.asked_sites is None and not plan.reached:
        yield (
            f"NOT REACHED: no choice of the {len(plan.held)} candidates that was found covers {plan.reliability:g}; add "
            "candidates, ask for less, or raise the target."
        )
    yield (
        f"Sites that cannot carry all requests are scored with those let in that keep servers {plan.useful_load:.0%} busy, "
        "at most; the others are missed."
    )
