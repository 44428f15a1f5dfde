"""What holds of every figure: units, words inside, equal bytes, names that stay text, one line where nothing can be drawn."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from geoedge import figures
from geoedge.errors import GeoEdgeError
from geoedge.results import Results
from geoedge.sites import envelope_test
from geoedge.style import WIDTH_IN, PaperFigure

LONG = "a very long name of a run that goes on and on " * 3
DRAWN: dict[str, Callable[..., PaperFigure]] = {
    "ttft": lambda run, other, town, **kind: figures.ttft_distribution(run, **kind),
    "ttft of two": lambda run, other, town, **kind: figures.ttft_distribution(
        run, other, names=["$\\frac{$ شركة", LONG], **kind
    ),
    "wait": lambda run, other, town, **kind: figures.wait_distribution(run, **kind),
    "load": lambda run, other, town, **kind: figures.load_distribution(run, **kind),
    "load of two": lambda run, other, town, **kind: figures.load_distribution(run, other, **kind),
    "coverage": lambda run, other, town, **kind: figures.coverage_over_time(run, **kind),
    "coverage of two": lambda run, other, town, **kind: figures.coverage_over_time(run, other, **kind),
    "moves": lambda run, other, town, **kind: figures.moves_over_time(run, **kind),
    "moves of one run": lambda run, other, town, **kind: figures.moves_over_time(other, **kind),
    "answers": lambda run, other, town, **kind: figures.three_answers(run, **kind),
    "shares": lambda run, other, town, **kind: figures.profile_shares(run, **kind),
    "shares of a run alone": lambda run, other, town, **kind: figures.profile_shares(other, **kind),
    "map": lambda run, other, town, **kind: figures.site_map(run, town, **kind),
    "layouts": lambda run, other, town, **kind: figures.layout_functions(
        *ENVELOPES, names=["one", "$x$", LONG], **kind
    ),
}


def _envelopes() -> list[object]:
    xy = np.random.default_rng(3).uniform(0, 3000, (40, 2))
    return [envelope_test(xy, (3000.0, 3000.0), name, simulations=39, rng=1) for name in ("L", "L", "g")]


ENVELOPES = _envelopes()


@pytest.fixture(params=[1, 2])
def columns(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def written(figure: PaperFigure, kind: str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind)
    return buffer.getvalue()


@pytest.mark.filterwarnings("ignore:Glyph")  # measured outside of the figure, which knows
@pytest.mark.parametrize("name", DRAWN)
def test_axes_have_units_and_words_stay_inside(name, columns, run, other, town) -> None:
    figure = DRAWN[name](run, other, town, columns=columns)
    assert figure.get_figwidth() == WIDTH_IN[columns]
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            label = axis.get_label_text()
            assert not label or re.search(r"\[[^]]+\]", label), label
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    drawn = figure.get_tightbbox(canvas.get_renderer())
    assert min(drawn.x0, drawn.y0) >= -0.01
    assert drawn.x1 <= figure.get_figwidth() + 0.01
    assert drawn.y1 <= figure.get_figheight() + 0.01


@pytest.mark.parametrize("name", DRAWN)
def test_equal_input_gives_equal_bytes_whatever_the_callers_style(name, run, other, town) -> None:
    first = written(DRAWN[name](run, other, town), "svg")
    with mpl.rc_context(
        {"font.size": 20.0, "text.parse_math": True, "svg.fonttype": "none", "lines.linewidth": 9}
    ):
        again = written(DRAWN[name](run, other, town), "svg")
    assert first == again


@pytest.mark.parametrize("name", DRAWN)
def test_no_name_is_read_as_a_formula(name, run, other, town) -> None:
    hostile = ["$\\frac{$", "$x_1$", "a$b", LONG]
    asked = run.with_meta(profile_names=hostile, title="$\\oops{$")
    table = run.tables["answers"].replace({"field (map)": "field $\\oops{$"})
    asked = asked.with_tables(answers=table)
    figure = DRAWN[name](asked, other.with_meta(profile_names=hostile), town)
    assert not any(words.get_parse_math() for words in figure.findobj(Text) if "\\" in words.get_text())
    FigureCanvasAgg(figure).draw()


@pytest.mark.parametrize("name", [name for name in DRAWN if name != "layouts"])
def test_a_run_without_requests_is_refused_in_one_line(name, run, other, town) -> None:
    later = {"warm_up_s": 1e6}
    nothing = [replace(each, tables={}).with_meta(**later) for each in (run, other)]
    with pytest.raises(GeoEdgeError) as told:
        DRAWN[name](*nothing, town)
    assert "\n" not in str(told.value)
    assert re.match(r"\w+: ", str(told.value))


@pytest.mark.parametrize("name", [name for name in DRAWN if name not in ("layouts", "answers", "map")])
def test_one_site_is_enough(name, run, other, town) -> None:
    alone = [only_site(each) for each in (run, other)]
    figure = DRAWN[name](*alone, town)
    FigureCanvasAgg(figure).draw()


def only_site(run: Results) -> Results:
    """Return a run of which one site is left."""
    kept = run.records.filter(run.records.column("site").to_numpy() == 0)
    return replace(run, records=kept, epochs=run.epochs[run.epochs["site"] == 0], sites=run.sites.head(1))


def all_rejected(run: Results) -> Results:
    """Return a run that turned everybody away."""
    records, n = run.records, run.records.num_rows
    for name, value in (
        ("site", np.full(n, -1, np.int32)),
        ("ttft_s", np.full(n, np.inf)),
        ("finished_s", np.full(n, np.nan)),
    ):
        records = records.set_column(records.column_names.index(name), name, [value])
    epochs = run.epochs.assign(missed=run.epochs["requests"], utilization=0.0)
    return replace(run, records=records, epochs=epochs, tables={})


@pytest.mark.parametrize("name", [name for name in DRAWN if name not in ("layouts", "answers")])
def test_a_run_that_turned_all_away_is_drawn_or_refused_in_one_line(name, run, other, town) -> None:
    turned = all_rejected(run), all_rejected(other)
    if name.startswith(("ttft", "wait", "shares")):
        with pytest.raises(GeoEdgeError, match=r"were rejected|waited at a site") as told:
            DRAWN[name](*turned, town)
        assert "\n" not in str(told.value)
    else:
        FigureCanvasAgg(DRAWN[name](*turned, town)).draw()


def test_what_is_no_run_or_no_width_is_refused(run) -> None:
    with pytest.raises(GeoEdgeError, match=r"ttft_distribution: no run was given"):
        figures.ttft_distribution()
    with pytest.raises(GeoEdgeError, match=r"takes runs \(Results\), not str"):
        figures.load_distribution("runs/monaco")  # type: ignore[arg-type]
    with pytest.raises(GeoEdgeError, match=r"`columns` must be 1 or 2"):
        figures.coverage_over_time(run, columns=3)
    with pytest.raises(GeoEdgeError, match=r"1 `names` for 2 runs"):
        figures.coverage_over_time(run, run, names=["one"])
    with pytest.raises(GeoEdgeError, match="no table of answers"):
        figures.three_answers(replace(run, tables={}))
    with pytest.raises(GeoEdgeError, match="takes a run of the main job"):
        figures.profile_shares(3)  # type: ignore[arg-type]
    with pytest.raises(GeoEdgeError, match="no layout was given"):
        figures.layout_functions()
    with pytest.raises(GeoEdgeError, match="takes an Envelope"):
        figures.layout_functions("L")  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [3, 0, -1, "1", None, [1]], ids=repr)
@pytest.mark.parametrize("name", DRAWN)
def test_no_figure_is_drawn_over_other_columns(name, width, run, other, town) -> None:
    with pytest.raises(GeoEdgeError, match="`columns` must be 1 or 2 columns of a paper, not") as told:
        DRAWN[name](run, other, town, columns=width)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["shares", "load"])
@pytest.mark.parametrize("words", [" very long name of a profile", "W" * 30, "short", ""])
def test_names_of_profiles_leave_room_for_the_axes(name, words, columns, run, other, town) -> None:
    names = [f"{letter}{words}" for letter in "ABCD"]
    table, own = run.tables["answers"], run.meta["profile_names"]
    renamed = {f"share:{old}": f"share:{new}" for old, new in zip(own, names, strict=True)}
    long = run.with_tables(answers=table.assign(metric=table["metric"].replace(renamed)))
    figure = DRAWN[name](long.with_meta(profile_names=names), other, town, columns=columns)
    FigureCanvasAgg(figure).draw()  # warns, which is an error here, where the legend leaves no room
    assert figure.axes[0].get_position().height > 0.3
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert -0.5 <= box.x0 < box.x1 <= figure.bbox.x1 + 0.5


@pytest.mark.parametrize("given", [3, [], None], ids=repr)
def test_what_is_no_gap_has_no_waterfall(given) -> None:
    with pytest.raises(GeoEdgeError, match=r"^gap_waterfall: takes a Gap, not \w+; .*explain_gap") as told:
        figures.gap_waterfall(given)
    assert "\n" not in str(told.value)


def test_a_run_has_no_waterfall_and_is_no_city(run, other) -> None:
    with pytest.raises(GeoEdgeError, match=r"^gap_waterfall: takes a Gap, not Results"):
        figures.gap_waterfall(run)
    with pytest.raises(GeoEdgeError, match=r"^site_map: `city` must be a City, not Results"):
        figures.site_map(run, other)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("ab", r"must be a list of names, not 'ab'; write \['ab'\]"),
        (3, "must be a list of names, not 3"),
        ([1, 2], r"must be words, not \[1, 2\]"),
        (["same", "same"], "two of the `names` are 'same'"),
        (["x" * 40 + "a", "x" * 40 + "b"], "different within 34 characters"),
        (["a", "b", "c"], "3 `names` for 2 runs"),
    ],
)
def test_names_that_tell_no_runs_apart_are_refused(run, other, names, words) -> None:
    for draw in (figures.ttft_distribution, figures.load_distribution, figures.coverage_over_time):
        with pytest.raises(GeoEdgeError, match=words) as told:
            draw(run, other, names=names)
        assert str(told.value).startswith(f"{draw.__name__}: ")
        assert "\n" not in str(told.value)


def test_panels_of_layouts_may_share_a_title_but_not_be_letters_of_a_word() -> None:
    pair = ENVELOPES[1:]
    assert len(figures.layout_functions(*pair, names=["city", "city"]).axes) == 2
    with pytest.raises(GeoEdgeError, match="layout_functions: `names` must be a list of names, not 'ab'"):
        figures.layout_functions(*pair, names="ab")
