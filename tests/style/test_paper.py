"""Figures look alike and are written alike, whatever the caller's style, the process, or the names in them."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import zlib

import matplotlib as mpl
import pytest

from geoedge.errors import GeoEdgeError, OutputError
from geoedge.style import WIDTH_IN, PaperFigure, check_picture, colour_of, save_figure, sheet, shown, wrapped
from geoedge.style.paper import DPI

DRAW = """
import hashlib, io, sys
from geoedge.style import sheet, shown
with sheet(1, 1.5) as figure:
    axes = figure.subplots()
    axes.plot([0, 1], [1, 2], label=shown("Zoë $x$ شركة"))
    axes.legend()
for kind in ("svg", "pdf"):
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind)
    print(hashlib.sha256(buffer.getvalue()).hexdigest())
"""


def example(columns: int = 1) -> PaperFigure:
    with sheet(columns, 1.5) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [1, 2], label="$x_1$ --> ]]> <script>")
        axes.set_xlabel("time [s]")
        axes.legend()
    return figure


def written(figure: PaperFigure, kind: str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind)
    return buffer.getvalue()


def test_two_processes_write_equal_bytes() -> None:
    seen = set()
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", DRAW], env=environment, capture_output=True, text=True, check=True
        )
        seen.add(done.stdout)
    assert len(seen) == 1


def test_the_callers_style_neither_matters_nor_changes() -> None:
    plain = written(example(), "pdf")
    mine = {"font.size": 30.0, "pdf.fonttype": 3, "axes.grid": True}
    with mpl.rc_context(mine):
        assert written(example(), "pdf") == plain
        assert {key: mpl.rcParams[key] for key in mine} == mine


def test_pdf_has_its_fonts_inside_and_svg_needs_none() -> None:
    pdf = written(example(), "pdf")
    inside = b"".join(_unpacked(part) for part in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.S)) + pdf
    assert b"/FontFile2" in inside
    assert b"/Type3" not in inside
    assert b"CreationDate" not in inside
    svg = written(example(), "svg").decode()
    assert "<text" not in svg
    assert "<script" not in svg
    assert "dc:date" not in svg


def _unpacked(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


@pytest.mark.parametrize("columns", [1, 2])
def test_pictures_of_pixels_are_as_wide_as_the_paper(columns) -> None:
    png = written(example(columns), "png")
    assert int.from_bytes(png[16:20], "big") == round(WIDTH_IN[columns] * DPI)


def test_a_third_column_is_refused() -> None:
    with (
        pytest.raises(GeoEdgeError, match="`columns` must be 1 or 2 columns of a paper, not 3"),
        sheet(3, 1.0),
    ):
        pass


def test_dollar_signs_stay_dollar_signs() -> None:
    figure = example()
    words = figure.axes[0].get_legend().get_texts()[0]
    assert not words.get_parse_math()
    assert words.get_text() == "$x_1$ --> ]]> <script>"


def test_a_notebook_shows_it_without_pyplot() -> None:
    assert example()._repr_png_().startswith(b"\x89PNG")
    assert (
        "matplotlib.pyplot"
        not in subprocess.run(
            [sys.executable, "-c", DRAW + "print([name for name in sys.modules if 'pyplot' in name])"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )


def test_names_are_one_line_and_keep_their_direction_to_themselves() -> None:
    assert shown("a\nb\u202ec") == "a bc"
    assert shown(None) == ""
    arabic = shown("شركة 12")
    assert arabic.strip("\u2068\u2069") == "شركة 12"
    assert (arabic[0], arabic[-1]) == ("\u2068", "\u2069")
    long = shown("x" * 200, 20)
    assert len(long) == 20
    assert long.endswith("…")


def test_an_older_matplotlib_gets_no_marks_that_it_would_show(monkeypatch) -> None:
    monkeypatch.setattr(mpl, "__version_info__", (3, 10, 0))
    assert shown("شركة") == "شركة"


def test_every_line_of_a_broken_name_carries_its_own_marks() -> None:
    lines = wrapped(f"from {shown('شركة ' * 6)} on", 14).split("\n")
    assert len(lines) > 2
    assert all(line.count("\u2068") == line.count("\u2069") for line in lines)
    assert wrapped("one two three", 8) == "one two\nthree"


def test_files_are_written_whole_or_refused(tmp_path) -> None:
    for ending in ("svg", "pdf", "png"):
        path = save_figure(example(), tmp_path / "new" / f"a.{ending}")
        assert path.read_bytes() == written(example(), ending)
    with pytest.raises(OutputError, match=r"a picture ends in \.png, \.svg, \.pdf"):
        save_figure(example(), tmp_path / "a.gif")
    (tmp_path / "b.svg").mkdir()
    with pytest.raises(OutputError, match="cannot be written there"):
        check_picture(tmp_path / "b.svg")


def test_other_figures_are_written_with_equal_bytes_too(tmp_path) -> None:
    from matplotlib.figure import Figure

    for name in ("a.svg", "b.svg"):
        plain = Figure(figsize=(2, 1))
        plain.subplots().plot([1, 2])
        save_figure(plain, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert b"dc:date" not in (tmp_path / "a.svg").read_bytes()


def test_answers_have_the_same_colour_everywhere() -> None:
    assert colour_of("theory (PPP)") == colour_of("theory (PPP): load_aware", 3)
    assert colour_of("simulation: state") != colour_of("simulation: equilibrium")
    assert colour_of("greedy", 0) != colour_of("greedy", 1)
