"""What notebooks show: names from maps, files and scenarios stay text there too."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest

from geoedge.city import City
from geoedge.compare.columns import Comparison, long_table
from geoedge.compare.gap.readings import Interval
from geoedge.compare.gap.result import Gap, Step
from geoedge.report.page import report_page
from geoedge.results import Results
from tests.report.conftest import HOSTILE

MOVES = ("epoch", "time_s", "action", "site", "partner_site", "from_profile", "to_profile", "bytes_moved")
TAGS = re.compile(r"<(?:script|img|b|/script)\b", re.IGNORECASE)


def shown(thing: Any) -> str:
    """Return what a notebook puts into its page for a value: its HTML, or its text, escaped by the notebook."""
    page = getattr(thing, "_repr_html_", lambda: None)()
    return "" if page is None else str(page)


def comparison(names: tuple[str, ...] = HOSTILE) -> Comparison:
    columns = {name: {"coverage": (0.5, 0.4, 0.6), f"share:{name}": (0.1, 0.1, 0.1)} for name in names}
    return Comparison(long_table(columns))


def gap() -> Gap:
    exact = Interval(0.8, 0.8, 0.8)
    steps = (Step("load", Interval(-0.1, -0.2, 0.0), 0.7, HOSTILE[0]),)
    return Gap("coverage", HOSTILE[1], 0.8, steps, exact, exact, exact, None, 1, (HOSTILE[0],), {})


def test_a_comparison_escapes_names_of_columns_and_profiles() -> None:
    page = shown(comparison())
    assert page
    assert not TAGS.search(page)
    assert "&lt;script&gt;window.broken=1&lt;/script&gt;" in page


def test_a_gap_escapes_reasons() -> None:
    page = shown(gap())
    assert page
    assert not TAGS.search(page)


def test_controllers_escape_their_names() -> None:
    from geoedge.compare.controllers.compared import ControllerComparison
    from geoedge.sweep import Replication

    epochs = pd.DataFrame(
        {
            "epoch": [0],
            "start_s": [0.0],
            "end_s": [900.0],
            "requests": [10],
            "missed": [1],
            "coverage": [0.9],
            "utilization": [0.5],
            "mean_wait_s": [0.1],
        }
    )
    actions = pd.DataFrame({name: [] for name in MOVES})
    metrics = {"coverage": 0.9, "p95_ttft_s": 1.0, "mean_ttft_s": 0.5}
    runs = {
        name: [Replication(0, k, k, metrics, epochs, actions.astype({"action": "str"}), []) for k in range(2)]
        for name in ("none", HOSTILE[0])
    }
    page = shown(ControllerComparison("<b>title</b>", 0.8, (0.0, 900.0), "none", runs))
    assert page
    assert not TAGS.search(page)


@pytest.mark.parametrize("name", ["results", "report"])
def test_what_has_no_html_is_text_that_the_notebook_escapes(one: Results, town: City, name: str) -> None:
    thing = one if name == "results" else report_page(one, city=town, maps=False)
    assert shown(thing) == ""
    assert isinstance(repr(thing), str)


def test_tables_of_sites_escape_their_names(one: Results) -> None:
    for table in (one.sites, one.site_table(), one.actions, one.tables["events"]):
        assert not TAGS.search(shown(table))
