"""What a run says, in tables and sentences for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from geoedge.compare.columns import ENSEMBLE, TWINS
from geoedge.compare.tables import horizon_of, planned
from geoedge.report._narrow import show
from geoedge.report._text import number, table, terminal, with_half, with_interval
from geoedge.report.decided import still_words
from geoedge.results import Results
from geoedge.sites._rows import counted
from geoedge.texts import plain_text
from geoedge.units import GB, clock

__all__ = ["print_run"]

HOTTEST = 8
"""Sites listed as hottest."""
MOVES = 12
"""Controller actions listed."""


def print_run(results: Results, folder: Path | None = None, console: Console | None = None) -> None:
    """Print the three answers side by side, the hottest sites, the controller's moves, and where it all is.

    Parameters
    ----------
    results
        A run with the tables of `geoedge.run`.
    folder
        Its folder, if it is to be named.
    console
        Where to print; the terminal by default.
    """
    console = console or terminal()
    meta = results.meta
    console.print()
    console.print(Text(plain_text(meta["title"]), style="bold"))
    console.print(Text(_window_line(meta)))
    if "answers" in results.tables:
        show(console, _answers_table(results))
    if "policies" in results.tables:
        show(console, _policies_table(results))
    show(console, _hottest_table(results))
    show(console, _moves_table(results))
    if "control_epochs" in results.tables:
        show(console, _gain_table(results))
    for line in meta.get("findings", ()):
        console.print(Text(f"• {plain_text(line, 1000)}"))
    if folder is not None:
        _print_place(folder, console)


def _print_place(folder: Path, console: Console) -> None:
    """Print where the run and its map are."""
    console.print()
    folder = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    console.print(Text(f"run  {folder}"))
    if (folder / "map.html").is_file():
        console.print(Text(f"map  {folder / 'map.html'}"))


def _window_line(meta: Mapping[str, Any]) -> str:
    start = meta["start_s"] + meta["warm_up_s"]
    return (
        f"{clock(start)}–{clock(meta['horizon_s'])} after {meta['warm_up_s'] / 60:.0f} min of warm-up; "
        f"TTFT target {meta['ttft_target_s']:g} s; seed {meta['seed']}"
    )


def _answers_table(results: Results) -> Table:
    answers = results.tables["answers"]
    columns = list(dict.fromkeys(answers["column"]))
    heads = (Text(column.replace(": ", ":\n")) for column in columns)
    made = table("The three answers", "", "", *heads, left=2)
    made.columns[0].no_wrap = True
    for metric in dict.fromkeys(answers["metric"]):
        rows = answers[answers["metric"] == metric].set_index("column")
        unit = str(rows["unit"].iloc[0])
        cells = [
            with_interval(*rows.loc[column, ["value", "low", "high"]]) if column in rows.index else "–"
            for column in columns
        ]
        made.add_row(Text(str(rows["label"].iloc[0])), unit, *cells)
    made.caption = " ".join(_answers_footer(results.meta, columns))
    made.caption_justify = "left"
    return made


def _answers_footer(meta: Mapping[str, Any], columns: Sequence[str]) -> Iterator[str]:
    """Yield what the numbers are, of those that there are."""
    yield f"coverage: share of requests with TTFT at most {meta['ttft_target_s']:g} s."
    count = meta.get("replications", 1)
    yield (
        "Simulated numbers: of one run, without interval."
        if count == 1
        else f"Simulated numbers: mean of {count} paired runs ± 95 % interval."
    )
    if any(column.startswith((ENSEMBLE, TWINS)) for column in columns):
        yield "PPP ensemble and same count (as many sites): median and 95 % range of Poisson layouts."


def _policies_table(results: Results) -> Table:
    policies = results.tables["policies"]
    made = table("TTFT coverage by routing policy", "policy", *map(str, policies.columns[1:]))
    for row in policies.itertuples(index=False):
        made.add_row(Text(str(row[0])), *(number(value) for value in row[1:]))
    return made


def _hottest_table(results: Results) -> Table:
    sites = results.site_table().head(HOTTEST)
    heads = ("requests", "missed", "of all misses", "utilisation", "mean wait s", "prefill s/s")
    about = ("profile at start", "kind")  # words at the end: few words stand in every part of a narrow table
    made = table("Hottest sites (by missed requests)", "site", "street", *heads, *about, left=2)
    for column in made.columns[-len(about) :]:
        column.justify = "left"
    _cut(made.columns[:2], 30)
    profile_of = results.sites.set_index("site")["profile"]
    for row in sites.to_dict("records"):
        name = plain_text(row["name"]) or f"site {row['site']}"
        profile = results.meta["profile_names"][int(profile_of[row["site"]])]
        made.add_row(
            Text(name),
            Text(plain_text(row["street"])),
            f"{row['requests']:,}",
            f"{row['missed_share']:.0%}",
            f"{row['share_of_all_misses']:.1%}",
            f"{row['utilization']:.2f}",
            f"{row['mean_wait_s']:.2f}",
            f"{row['prefill_s_per_s']:.2f}",
            Text(profile),
            Text(plain_text(row["kind"])),
        )
    return made


def _cut(columns: Sequence[Column], width: int) -> None:
    """Cut long words off instead of folding them."""
    for column in columns:
        column.max_width, column.overflow, column.no_wrap = width, "ellipsis", True


def _moves_table(results: Results) -> Table | Text:
    names = results.meta["profile_names"]
    actions = planned(results.actions)
    if actions.empty:
        still = still_words(results)
        why = f" {still[0].upper()}{still[1:]}." if still else ""
        return Text(f"Controller ({results.meta['controller']}): no moves.{why}")
    moved = actions["bytes_moved"].sum() / GB
    first = " (first replication)" if results.meta.get("replications", 1) > 1 else ""
    title = f"Controller: {counted(len(actions), 'move')}, {moved:.1f} GB{first}"
    horizon = horizon_of(actions)
    further = [f"mean of {horizon} epochs"] if horizon > 1 else []
    made = table(title, "time", "action", "site", "from → to", "GB", "predicted gain", *further, left=4)
    _cut(made.columns[:4], 34)
    site_name = results.sites.set_index("site")["name"]
    for row in actions.head(MOVES).to_dict("records"):
        made.add_row(
            clock(row["time_s"]),
            str(row["action"]),
            Text(plain_text(site_name[row["site"]]) or f"site {row['site']}"),
            Text(f"{names[row['from_profile']]} → {names[row['to_profile']]}"),
            f"{row['bytes_moved'] / GB:.2f}",
            f"{row['predicted_gain']:+.4f}",
            *([f"{row['horizon_gain']:+.4f}"] if further else []),
        )
    more = [f"{len(actions) - MOVES} more"] if len(actions) > MOVES else []
    repairs = len(results.actions) - len(actions)
    more += [f"{repairs} repairs of sites by themselves"] if repairs else []
    told = [f"{' and '.join(more)} in actions.parquet"] if more else []
    told += [still] if (still := still_words(results)) else []
    if told:
        made.caption = "; ".join(told)
    return made


def _gain_table(results: Results) -> Table:
    heads = ("epoch from", "moves", "GB", "still", "with controller", "predicted so far", "realised so far")
    title = "What the moves promised and brought (coverage against the same run without controller)"
    promised, horizon = results.tables["control_epochs"], horizon_of(results.actions)
    further = [f"mean of {horizon} epochs"] if horizon > 1 and "horizon_gain" in promised else []
    made = table(title, *heads, *further, left=0)
    for row in promised.to_dict("records"):
        made.add_row(
            clock(row["start_s"]),
            f"{row['moves']:.1f}",
            f"{row['bytes_moved'] / GB:.2f}",
            f"{row['still']:.3f}",
            f"{row['still'] + row['change']:.3f}",
            f"{row['predicted_gain']:+.4f}",
            with_half(row["change"], row["low"], row["high"], digits=4, signed=True),
            *([f"{row['horizon_gain']:+.4f}"] if further else []),
        )
    count = results.meta.get("replications", 1)
    runs, shown = ("one run", "it shows") if count == 1 else (f"mean of {count} runs", "paired runs show")
    made.caption = f"{runs}; gains of all moves so far, as predicted when they were made and as {shown}"
    made.caption_justify = "left"
    return made
