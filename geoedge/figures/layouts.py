"""How far layouts are from Poisson: their summary functions in the envelopes of drawn layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.figures.given import listed
from geoedge.sites import Envelope, LayoutStatistics
from geoedge.style import GAIN, INK, LEVEL, sheet, shown, width_in, wrapped
from geoedge.units import KM

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from geoedge.style import PaperFigure

    Floats = NDArray[np.float64]

__all__ = ["layout_functions"]

HEIGHT_IN = 1.9
"""Height of a row of panels [inch]."""
LETTER_IN = 0.1
"""Width of a letter of a title, and of the axis beside it [inch]."""


def layout_functions(
    *layouts: Envelope | LayoutStatistics, names: Sequence[str] | None = None, columns: int = 1
) -> PaperFigure:
    """Draw the summary function of layouts among those of layouts of the hypothesis, a panel each.

    L is drawn less the distance, so that Poisson is about zero; above the envelope pairs are more than chance gives,
    below it fewer.

    Parameters
    ----------
    *layouts
        Envelopes, or what `layout_statistics` returned.
    names
        Title of each panel; their numbers of sites by default, where known.
    columns
        Columns of a paper, 1 or 2.

    Raises
    ------
    GeoEdgeError
        If there is no layout, something else, or not as many names.
    """
    width = width_in(columns)
    envelopes = [_envelope(each) for each in layouts]
    if not envelopes:
        msg = (
            "layout_functions: no layout was given; give at least one `envelope_test` or `layout_statistics`"
        )
        raise GeoEdgeError(msg)
    titles = (
        [_title(each) for each in layouts]
        if names is None
        else [shown(name, 40) for name in listed("layout_functions", names, len(layouts), "layouts")]
    )
    across = min(len(envelopes), 2 * columns if len(envelopes) > 1 else 1)
    down = -(-len(envelopes) // across)
    with sheet(columns, HEIGHT_IN * down + 0.3) as figure:
        panels = figure.subplots(down, across, squeeze=False)
        for axes, envelope, title in zip(panels.flat, envelopes, titles, strict=False):
            _draw(axes, envelope)
            axes.set_title(wrapped(title, int(width / (across * LETTER_IN))))
        for axes in panels.flat[len(envelopes) :]:
            axes.set_visible(False)
        for row in panels:
            for axes in row[1:]:
                axes.set_ylabel("" if axes.get_ylabel() == row[0].get_ylabel() else axes.get_ylabel())
        handles, words = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, words, loc="outside lower center", ncols=1 + columns)
    return figure


def _envelope(layout: object) -> Envelope:
    if isinstance(layout, LayoutStatistics):
        return layout.envelope
    if isinstance(layout, Envelope):
        return layout
    msg = f"layout_functions: takes an Envelope or LayoutStatistics, not {type(layout).__name__}; use `envelope_test`"
    raise GeoEdgeError(msg)


def _title(layout: Envelope | LayoutStatistics) -> str:
    return f"{layout.sites} sites" if isinstance(layout, LayoutStatistics) else ""


def _draw(axes: Axes, envelope: Envelope) -> None:
    """Draw one function in its envelope, in kilometres where it is a length."""
    r = envelope.r_m / KM
    base, unit = (
        (envelope.r_m, KM)
        if envelope.statistic == "L"
        else (np.zeros(len(r)), KM**2 if envelope.statistic == "K" else 1.0)
    )
    lower, upper, mean, observed = (
        (curve - base) / unit for curve in (envelope.lower, envelope.upper, envelope.mean, envelope.observed)
    )
    if np.isfinite(lower).any():
        label = f"{100.0 * (1.0 - envelope.level):.4g} % envelope of {envelope.simulations} drawn"
        axes.fill_between(r, lower, upper, color=LEVEL, alpha=0.3, linewidth=0, label=label)
    axes.plot(r, mean, "--", color=LEVEL, linewidth=1.0, label="their mean")
    axes.plot(r, observed, color=GAIN, label="this layout")
    words = {"L": "L(r) − r [km]", "K": "K(r) [km²]"}
    axes.set_ylabel(words.get(envelope.statistic, f"{envelope.statistic}(r) [–]"))
    axes.set_xlabel("distance r [km]")
    axes.set_xlim(0.0, float(r[-1]))
    axes.text(
        0.97,
        0.04,
        f"global p = {envelope.p_value:.2g}",
        transform=axes.transAxes,
        ha="right",
        fontsize=6.5,
        color=INK,
    )
    axes.grid()
