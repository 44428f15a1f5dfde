"""The page as a file: one document with all its parts, equal bytes, hostile names as text, nothing from outside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from geoedge.city import City
from geoedge.errors import GeoEdgeError, OutputError
from geoedge.maps.samples import Served
from geoedge.report.page import ReportPage, report_page
from geoedge.report.page.blocks import Grid, Tiles
from geoedge.report.page.compose import _key_numbers
from geoedge.report.page.limits import limits
from geoedge.report.page.times import waits_grid
from geoedge.report.page.told import Told
from geoedge.results import RECORD_COLUMNS, Results
from geoedge.texts import plain_text
from tests.report.conftest import HOSTILE, told_run

TITLES = [
    "In short",
    "The three answers",
    "Why they differ",
    "Time to first token",
    "Load of the sites",
    "The map",
    "What the controller moved",
    "Requests, events, conversations",
    "How the sites stand",
    "Limits of validity",
    "The scenario",
    "Provenance",
]


class Document(HTMLParser):
    """Elements in order, with their attributes, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def of(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attributes for name, attributes in self.elements if name == tag)

    @property
    def text(self) -> str:
        return " ".join(" ".join(data for tag, data in self.texts if tag not in ("style", "script")).split())


@pytest.fixture(scope="module")
def page(one: Results, town: City) -> ReportPage:
    return report_page(one, city=town)


@pytest.fixture(scope="module")
def document(page: ReportPage) -> Document:
    return Document(page.to_html())


def test_all_parts_are_there_and_reached_from_the_list(document: Document, page: ReportPage) -> None:
    assert [part.title for part in page.parts] == TITLES
    sections = [each["id"] for each in document.of("section")]
    links = [each["href"] for each in document.of("a") if str(each.get("href")).startswith("#")]
    assert links == ["#content", *(f"#{key}" for key in sections)]


def test_headings_and_landmarks_are_in_order(document: Document) -> None:
    heads = [tag for tag, _ in document.elements if re.fullmatch(r"h[1-6]", tag)]
    assert heads == ["h1", *["h2"] * len(TITLES)]
    marks = [tag for tag, _ in document.elements if tag in ("header", "nav", "main", "footer")]
    assert marks == ["header", "nav", "main", "footer"]
    ids = [each["id"] for _, each in document.elements if "id" in each]
    assert len(ids) == len(set(ids))


def test_every_table_has_a_caption_and_every_head_its_scope(document: Document) -> None:
    tables, captions = list(document.of("table")), list(document.of("caption"))
    assert len(tables) == len(captions) > 8
    assert all(each.get("scope") in ("row", "col") for each in document.of("th"))


def test_every_figure_has_words_in_its_place(document: Document) -> None:
    figures = [each for each in document.of("svg") if each.get("class") != "bar"]
    assert len(figures) >= 7
    assert all(each["role"] == "img" and len(str(each["aria-label"])) > 10 for each in figures)
    assert "Not drawn" not in document.text


def test_no_script_no_handler_nothing_from_outside(page: ReportPage, document: Document) -> None:
    assert list(document.of("script")) == []
    for _, attributes in document.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert "src" not in attributes
    addresses = {each["href"] for each in document.of("a") if not str(each["href"]).startswith("#")}
    assert addresses == {
        "https://www.openstreetmap.org/copyright",
        "https://opendatacommons.org/licenses/odbl/1-0/",
    }
    assert "Open Database License (ODbL) 1.0; extract of 2016-03-05" in " ".join(document.text.split())
    policy = next(each for each in document.of("meta") if each.get("http-equiv"))["content"]
    assert str(policy).startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in str(policy)
    assert "url(http" not in page.to_html()


def test_without_maps_no_script_may_run(one: Results, town: City) -> None:
    bare = report_page(one, city=town, maps=False).to_html()
    assert "<iframe" not in bare
    assert "script-src ;" in bare


def test_hostile_names_are_text(document: Document, page: ReportPage) -> None:
    frame = next(iter(document.of("iframe")))
    assert frame["sandbox"] == "allow-scripts allow-popups allow-popups-to-escape-sandbox"
    for tag in ("script", "img", "object", "form", "base", "b"):
        assert list(document.of(tag)) == []
    for name in HOSTILE[:3]:
        assert plain_text(name) in document.text
    assert "{{ 7*7 }} ${7*7}" in document.text  # no template was carried out
    assert "\u202e" not in page.to_html()
    assert "Town </title><script>window.broken=3</script>" in document.text


def test_the_map_inside_is_the_map_page(document: Document, one: Results, town: City) -> None:
    from geoedge.maps import city_map

    frame = next(iter(document.of("iframe")))
    assert frame["srcdoc"] == city_map(one, town, limit_bytes=2_000_000).to_html()


def test_equal_input_gives_equal_bytes(page: ReportPage, town: City) -> None:
    again = told_run(town, "one", title="Town </title><script>window.broken=3</script>")
    assert report_page(again, city=town).to_html() == page.to_html()


def test_it_stays_small(page: ReportPage) -> None:
    assert len(page.to_html().encode()) < 1_000_000


def test_all_that_happened_is_told(document: Document) -> None:
    for words in (
        "flash crowd",
        "site failure",
        "not within the run",
        "rejected after the warm-up",
        "What became of the states of conversations",
        "Move by move",
        "predicted gain",
        "in hindsight",
        "UNSTABLE: in the field 1 of 6 sites reach capacity: [5].",
        "within what the prefill curve was measured on (up to 16,384)",
        "3 replications",
        "mean-field law",
        "geoedge report RUN --explain",
        "version of python",
        "checksum of city",
        "[routing]",
    ):
        assert words in document.text, words


def test_prompts_beyond_the_curve_are_extrapolated(town: City) -> None:
    measured = {
        "hardware.prefill_linear_s": 0.0,
        "hardware.prefill_quadratic_s": 0.0,
        "hardware.prefill_constant_s": 0.0,
        "hardware.prefill_table_tokens": [1, 4096],
        "hardware.prefill_table_s": [0.01, 0.4],
    }
    run = told_run(town, "one", changes=measured)
    said = Document(report_page(run, city=town, maps=False).to_html()).text
    assert "EXTRAPOLATED: prompts have up to 8,192 tokens, the prefill curve was measured up to 4,096" in said


def test_a_simulation_by_itself_can_be_reported(one: Results, town: City) -> None:
    bare = replace(one, tables={}, actions=one.actions.iloc[:0], meta=one.meta | {"findings": []})
    said = Document(report_page(bare, city=town, maps=False).to_html()).text
    assert "is a simulation by itself" in said
    assert "The greedy controller moved nothing." in said


def test_a_run_whose_city_is_not_there_is_reported_without_it(one: Results) -> None:
    lost = one.with_meta(checksums={"city": "lost"})
    said = Document(report_page(lost).to_html()).text
    assert "No map here:" in said
    assert "Not compared with Poisson:" in said


def test_a_gap_is_told_where_there_is_one(one: Results, town: City) -> None:
    from geoedge.compare.gap.readings import Interval
    from geoedge.compare.gap.result import Gap, Step

    steps = (
        Step("load", Interval(-0.05, -0.06, -0.04), 0.78, ""),
        Step("service", Interval(0.0, 0.0, 0.0), 0.78, f"{HOSTILE[0]} has none"),
    )
    at = Interval(0.83, 0.83, 0.83), Interval(0.78, 0.77, 0.79), Interval(-0.05, -0.06, -0.04)
    gap = Gap("coverage", HOSTILE[1], 0.8, steps, *at, None, 12, ("Made by hand.",), {})
    document = Document(report_page(one, city=town, maps=False, gap=gap).to_html())
    assert "load differs between sites" in document.text
    assert "−5.0 ± 1.0 points" in document.text
    assert "Made by hand." in document.text
    assert "--explain" not in document.text
    assert list(document.of("script")) == []


def test_several_runs_stand_side_by_side(one: Results, other: Results, town: City) -> None:
    document = Document(report_page(one, other, city=town).to_html())
    for words in (
        "other against one: +5.0 ± 0.1 points of coverage.",
        "other and one share people and requests",
        "other − one",
        "+0.050 ± 0.001",
        "Keys in which the scenarios differ",
        "routing.policy",
    ):
        assert words in document.text, words
    assert len(list(document.of("iframe"))) == 2
    ids = [each["id"] for _, each in document.elements if "id" in each]
    assert len(ids) == len(set(ids))


def test_it_is_written_whole_and_only_as_a_page(page: ReportPage, tmp_path: Path) -> None:
    path = page.save(tmp_path / "new" / "report.html")
    assert path.read_text(encoding="utf-8") == page.to_html()
    assert [each.name for each in path.parent.iterdir()] == ["report.html"]
    with pytest.raises(OutputError, match=r"ends in \.html"):
        page.save(tmp_path / "report.pdf")


def test_what_is_no_run_is_said_in_one_line(tmp_path: Path, one: Results) -> None:
    with pytest.raises(OutputError, match="is not a run folder"):
        report_page(tmp_path / "nothing")
    empty = replace(one, records=one.records.slice(0, 0))
    with pytest.raises(GeoEdgeError, match="no request after the warm-up"):
        report_page(empty)


def test_what_is_no_run_no_gap_and_no_city_is_refused(one: Results, town: City) -> None:
    for given in (3, None, [one], b"runs", town):
        with pytest.raises(
            GeoEdgeError, match=rf"^report: takes run folders .*, not {type(given).__name__};"
        ):
            report_page(one, given)  # type: ignore[arg-type]
    for given in (3, [], one):
        with pytest.raises(GeoEdgeError, match=rf"^report: `gap` must be a Gap, not {type(given).__name__};"):
            report_page(one, city=town, gap=given)  # type: ignore[arg-type]
    for given in (3, "monaco", one):
        with pytest.raises(
            GeoEdgeError, match=rf"^report: `city` must be a City, not {type(given).__name__};"
        ):
            report_page(one, city=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("table", ["actions", "epochs"])
def test_a_run_whose_tables_do_not_belong_together_is_told_in_one_line(
    one: Results, town: City, table: str
) -> None:
    wrong = getattr(one, table).copy()
    wrong.loc[wrong.index[-1], "site"] = 999
    with pytest.raises(GeoEdgeError, match="do not belong together") as caught:
        report_page(replace(one, **{table: wrong}), city=town, maps=False)
    assert "\n" not in str(caught.value)


def test_a_wait_in_the_last_digits_is_none(one: Results) -> None:
    place = one.records.column_names.index("wait_s")
    waits = np.full(one.records.num_rows, 1e-11)
    run = replace(one, records=one.records.set_column(place, "wait_s", pa.array(waits)))
    assert list(waits_grid([Told("one", run)]).rows[0]) == ["requests that wait at all", "0.0%"]


def test_the_tail_of_the_waits_stands_beside_the_queue_formula(one: Results) -> None:
    grid = waits_grid([Told("one", one)])
    said = dict(grid.rows[-6:])
    served, waits = Served.of(one), one.column("wait_s")[one.column("site") >= 0]
    mark = float(np.quantile(waits, 0.99))
    at_rest = served.erlang(np.full((served.count.shape[1], 1), mark))[:, 0]
    sites = served.count.sum(axis=0)
    assert said["wait longer than 99% do: simulated"] == f"{(waits > mark).mean():.2%}"
    assert said["the same by M/M/c in its time"] == f"{served.in_time(np.array([mark]))[0]:.2%}"
    assert said["the same by M/M/c at rest (Erlang C)"] == f"{1 - sites @ at_rest / sites.sum():.2%}"
    assert said["requests at sites and epochs without time to come to rest"] == "0.0%"
    errors = np.sqrt((1.0 + served.service_scv) / np.maximum(served.asked, 1))
    assert said["standard error of a site's load in an epoch"] == (
        f"{(errors * served.count).sum() / sites.sum():.1%}"
    )
    assert "too short to know its load" in grid.note


def test_a_head_line_that_is_cut_says_so(one: Results, town: City) -> None:
    runs = [one.with_meta(title=letter * 180) for letter in "abc"]
    title = report_page(*runs, city=town, maps=False).title
    assert len(title) == 400
    assert title.endswith("c…")


def all_rejected(run: Results) -> Results:
    """Return a run that turned everybody away, without what theory and field say of it."""
    records, n = run.records, run.records.num_rows
    lost = {"site": np.full(n, -1), "profile": np.full(n, -1), "status": np.full(n, 4)}
    lost |= dict.fromkeys(
        ("wait_s", "prefill_s", "started_s", "first_token_s", "finished_s"), np.full(n, np.nan)
    )
    lost |= {"ttft_s": np.full(n, np.inf)}
    for name, value in lost.items():
        place = records.column_names.index(name)
        records = records.set_column(place, name, pa.array(value.astype(RECORD_COLUMNS[name])))
    return replace(run, records=records, tables={})


def test_a_run_that_turned_everybody_away_is_reported(one: Results, town: City) -> None:
    page = report_page(all_rejected(one), city=town, maps=False)
    said = Document(page.to_html()).text
    assert "0.0 % of requests have their first token within 0.8 s" in said
    tiles = next(each for each in page.parts[0].blocks if isinstance(each, Tiles))
    assert {("–", "mean TTFT"), ("unbounded", "19 of 20 within")} <= set(tiles.pairs)
    assert not re.search(r"\bnan\b", said)
    for caption in ("Time to first token [s]", "Wait for a free place at the site"):
        (grid,) = (
            each for part in page.parts for each in part.blocks if getattr(each, "caption", "") == caption
        )
        assert isinstance(grid, Grid)
        assert {row[-1] for row in grid.rows} <= {"–", "∞", f"{one.requests:,}"}


def test_runs_of_which_one_turned_everybody_away_stand_side_by_side(one: Results, town: City) -> None:
    page = report_page(one, replace(all_rejected(one), label="turned"), city=town, maps=False)
    said = Document(page.to_html()).text
    assert "turned kept no table of replications" in said
    assert not re.search(r"\bnan\b", said)


def test_a_tile_without_bound_says_so(one: Results) -> None:
    answers = one.tables["answers"].copy()
    answers.loc[answers["metric"] == "p95_ttft_s", "value"] = float("inf")
    tiles = {name: value for value, name in _key_numbers(Told("one", one.with_tables(answers=answers)))}
    assert tiles["19 of 20 within"] == "unbounded"
    assert tiles["in time, within 0.8 s"] == "77.0 %"


def test_a_scenario_that_cannot_be_read_is_said_with_its_error(one: Results, town: City) -> None:
    fine = limits(Told("one", one))
    assert not [line for line in fine if "cannot be read" in line]
    for toml, why in (
        ("title = ", "Invalid value"),
        ('title = "x"\n', "scenario of the run: "),
        ("", "the run kept none"),
    ):
        lines = limits(Told("one", replace(one, scenario_toml=toml)))
        assert len(lines) < len(fine)
        (told,) = (line for line in lines if "cannot be read" in line)
        assert why in told
    said = Document(report_page(replace(one, scenario_toml="title = "), city=town, maps=False).to_html()).text
    assert "limits that follow from it are not told: Invalid value" in said


def test_what_theory_and_field_do_not_know_of_redirections_is_said(one: Results) -> None:
    scenario = Told("one", one).scenario
    assert scenario is not None
    doors = {"admission.close_threshold": 2.0}
    free, paid = (
        limits(Told("one", replace(one, scenario_toml=scenario.override(doors | more).to_toml())))
        for more in ({}, {"admission.redirect_s": 0.1})
    )
    for word, told in (
        ("sends requests on in no time", (1, 0)),
        ("neither closed doors nor redirections", (0, 1)),
    ):
        assert tuple(sum(word in line for line in lines) for lines in (free, paid)) == told


def test_infinite_waits_are_told_as_such(one: Results) -> None:
    answers = one.tables["answers"].copy()
    answers.loc[answers["metric"] == "mean_ttft_s", ["value", "low", "high"]] = float("inf")
    from geoedge.report.page.answers import answers_grid

    grid = answers_grid(Told("one", one.with_tables(answers=pd.DataFrame(answers))))
    assert grid is not None
    (row,) = (row for row in grid.rows if row[0] == "mean TTFT [s]")
    assert "∞" in " ".join(row)
    assert "nan" not in " ".join(row)
