"""Summary functions are drawn as the tests have them, L less the distance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoedge import figures
from geoedge.errors import GeoEdgeError
from geoedge.sites import envelope_test


@pytest.fixture(scope="module")
def envelope():
    xy = np.random.default_rng(3).uniform(0, 3000, (40, 2))
    return envelope_test(xy, (3000.0, 3000.0), "L", simulations=39, rng=1)


def test_l_is_drawn_less_the_distance_in_its_envelope(envelope) -> None:
    axes = figures.layout_functions(envelope).axes[0]
    mean, observed = axes.lines
    assert np.allclose(observed.get_xdata(), envelope.r_m / 1000)
    assert np.allclose(observed.get_ydata(), (envelope.observed - envelope.r_m) / 1000)
    assert np.allclose(mean.get_ydata(), (envelope.mean - envelope.r_m) / 1000)
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx((envelope.upper - envelope.r_m).max() / 1000)
    assert band[:, 1].min() == pytest.approx((envelope.lower - envelope.r_m).min() / 1000)
    assert [text.get_text() for text in axes.texts] == [f"global p = {envelope.p_value:.2g}"]
    assert axes.get_ylabel() == "L(r) − r [km]"


@pytest.mark.parametrize(("statistic", "unit"), [("K", 1e6), ("g", 1.0)])
def test_other_functions_keep_their_unit(envelope, statistic, unit) -> None:
    axes = figures.layout_functions(replace(envelope, statistic=statistic)).axes[0]
    assert np.allclose(axes.lines[1].get_ydata(), envelope.observed / unit)


def test_a_test_without_envelope_draws_none(envelope) -> None:
    none = np.full(len(envelope.r_m), np.nan)
    axes = figures.layout_functions(replace(envelope, method="dclf", lower=none, upper=none)).axes[0]
    assert not axes.collections


def test_panels_are_as_many_as_layouts_and_empty_ones_are_hidden(envelope) -> None:
    made = figures.layout_functions(envelope, envelope, envelope, names=["a", "b", "c"])
    assert [axes.get_title(loc="left") for axes in made.axes if axes.get_visible()] == ["a", "b", "c"]
    with pytest.raises(GeoEdgeError, match="2 `names` for 1 layouts"):
        figures.layout_functions(envelope, names=["a", "b"])
