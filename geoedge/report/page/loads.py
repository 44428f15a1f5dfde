"""Load of the sites: how it is spread, and which sites are hottest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from geoedge.report._text import number
from geoedge.report.page.blocks import Grid
from geoedge.report.page.told import Told, heads
from geoedge.texts import plain_text

__all__ = ["hottest_grid", "loads_grid"]

HOTTEST = 10
"""Sites listed as hottest."""
BUSY = 0.9


def loads_grid(runs: Sequence[Told]) -> Grid:
    """Return how utilisation is spread over the sites, one column a run.

    Parameters
    ----------
    runs
        The runs.
    """
    loads = [each.results.site_table()["utilization"].dropna().to_numpy() for each in runs]
    quarters = (
        ("least", 0.0),
        ("a quarter below", 0.25),
        ("half below", 0.5),
        ("three quarters below", 0.75),
        ("most", 1.0),
    )
    rows = [["mean, all servers", *(number(each.results.mean_utilization, 2) for each in runs)]]
    rows += [[name, *(number(float(np.quantile(load, q)), 2) for load in loads)] for name, q in quarters]
    rows.append(
        [f"sites at {BUSY:.0%} or more", *(f"{int((load >= BUSY).sum())} of {len(load)}" for load in loads)]
    )
    rows.append(["site-epochs at capacity", *(_at_capacity(each) for each in runs)])
    rows.append(["most prefill work, seconds per second", *(number(_prefill(each), 2) for each in runs)])
    note = (
        "Utilisation: busy servers over servers, mean over the counted epochs. At capacity: more service is asked for in "
        "an epoch than the site has."
    )
    return Grid("Utilisation of the sites", ["", *heads(runs)], rows, note)


def _at_capacity(told: Told) -> str:
    offered = told.measured["offered_load"]
    return f"{int((offered >= 1.0).sum())} of {len(offered)}"


def _prefill(told: Told) -> float:
    return float(told.measured["prefill_s_per_s"].max())


def hottest_grid(told: Told) -> Grid:
    """Return the sites with the most missed requests.

    Parameters
    ----------
    told
        A run.
    """
    sites = told.results.site_table().head(HOTTEST)
    held = told.results.sites.set_index("site")["profile"]
    rows = [
        [
            plain_text(row["name"]) or f"site {row['site']}",
            plain_text(row["street"]),
            plain_text(row["kind"]),
            told.profiles[int(held[row["site"]])],
            f"{row['requests']:,}",
            f"{row['missed_share']:.0%}",
            f"{row['share_of_all_misses']:.1%}",
            f"{row['utilization']:.2f}",
            f"{row['mean_wait_s']:.2f}",
            f"{row['prefill_s_per_s']:.2f}",
        ]
        for row in sites.to_dict("records")
    ]
    columns = [
        "site",
        "street",
        "kind",
        "profile at start",
        "requests",
        "missed",
        "of all misses",
        "utilisation",
        "mean wait [s]",
        "prefill [s/s]",
    ]
    return Grid("Hottest sites, by missed requests", columns, rows, left=4)
