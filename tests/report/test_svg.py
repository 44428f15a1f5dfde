"""Figures in the page: shapes and text alone, names of their own, colours that know the dark."""

from __future__ import annotations

import re

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.report.page.ink import in_the_dark
from geoedge.report.page.svg import colour_names, inline_svg
from geoedge.style import PaperFigure, sheet
from tests.report.conftest import HOSTILE


def drawn(title: str = "Sites") -> PaperFigure:
    with sheet(1, 2.0) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], "o-", color="#0072b2", label=title)
        axes.set_title(title, color="#222222")
        if title:
            axes.legend()
    return figure


def test_text_stays_text_that_can_be_selected() -> None:
    svg = inline_svg(drawn("Sites & people"), "a", "Two sites")
    assert ">Sites &amp; people</text>" in svg
    assert svg.startswith('<svg role="img" aria-label="Two sites" viewBox=')


def test_nothing_of_the_file_around_it_is_left() -> None:
    svg = str(inline_svg(drawn(), "a", "Two sites"))
    for unwanted in (
        "<?xml",
        "DOCTYPE",
        "<style",
        "<metadata",
        "xmlns",
        "xlink",
        "font-family",
        "<svg width",
    ):
        assert unwanted not in svg


@pytest.mark.parametrize("name", HOSTILE)
def test_names_cannot_become_markup(name: str) -> None:
    svg = str(inline_svg(drawn(name), "a", name))
    assert "<script" not in svg
    assert "<img" not in svg
    assert re.findall(r"\son\w+=", re.sub(r">[^<]*<|\"[^\"]*\"", "", svg)) == []


def test_names_inside_are_the_figures_own_and_lead_somewhere() -> None:
    one, other = (str(inline_svg(drawn(), key, "Sites")) for key in ("a", "b"))
    ids = [set(re.findall(r'id="([^"]+)"', svg)) for svg in (one, other)]
    assert ids[0]
    assert not ids[0] & ids[1]
    for svg, own in zip((one, other), ids, strict=True):
        assert set(re.findall(r'(?:href="#|url\(#)([\w-]+)', svg)) == own


def test_what_is_no_shape_is_refused() -> None:
    figure = drawn()
    figure.axes[0].lines[0].set_url("https://example.org/")
    with pytest.raises(GeoEdgeError, match="element <a>"):
        inline_svg(figure, "a", "Sites")


def test_every_colour_has_one_for_the_dark() -> None:
    svg = str(inline_svg(drawn(), "a", "Sites"))
    assert not re.search(r"#[0-9a-f]{6}", svg)
    names = colour_names(svg)
    assert names["--c0072b2"][0] == "#0072b2"
    assert {"--c222222", "--cffffff"} <= set(names)


def luminance(colour: str) -> float:
    values = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize(
    "colour", ["#222222", "#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#5d6977", "#b3123f"]
)
def test_ink_and_colours_are_seen_on_dark_ground(colour: str) -> None:
    ground = luminance("#171d24")  # of figures, in page.css
    assert (luminance(in_the_dark(colour)) + 0.05) / (ground + 0.05) > 4.5


def test_greys_change_places() -> None:
    shades = ["#000000", "#5d6977", "#8a949e", "#e3e7eb", "#ffffff"]
    dark = [luminance(in_the_dark(shade)) for shade in shades]
    assert dark == sorted(dark, reverse=True)
