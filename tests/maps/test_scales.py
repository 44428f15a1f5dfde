from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoedge.maps.scales import (
    COVERAGE_RAMP,
    DEMAND_RAMP,
    DIFFERENCE_RAMP,
    LOAD_RAMP,
    BinnedScale,
    coverage_scale,
    demand_scale,
    difference_scale,
    profile_scale,
    ramp,
    utilisation_scale,
)

SCALES = (
    utilisation_scale(),
    coverage_scale(0.9),
    difference_scale(),
    demand_scale(np.geomspace(0.1, 40, 500)),
)

# How dichromats see linear RGB: Machado, Oliveira and Fernandes (2009), severity 1.0.
PROTANOPIA = np.array(
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
)
DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def cielab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    t = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("anchors", [LOAD_RAMP, COVERAGE_RAMP, DEMAND_RAMP])
def test_a_sequential_ramp_changes_lightness_in_one_direction(anchors: tuple[str, ...]) -> None:
    lightness = np.array([cielab(linear(colour))[0] for colour in ramp(anchors, 15)])
    steps = np.diff(lightness)
    assert (steps > 0).all() or (steps < 0).all()
    assert np.ptp(lightness) > 60


def test_the_diverging_ramp_is_lightest_at_its_centre_and_equally_dark_at_its_ends() -> None:
    lightness = np.array([cielab(linear(colour))[0] for colour in ramp(DIFFERENCE_RAMP, 9)])
    assert (np.diff(lightness[:5]) > 0).all()
    assert (np.diff(lightness[4:]) < 0).all()
    assert abs(lightness[0] - lightness[-1]) < 5


@pytest.mark.parametrize("sight", [np.eye(3), PROTANOPIA, DEUTERANOPIA], ids=["usual", "protan", "deutan"])
@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: scale.title)
def test_neighbouring_classes_can_be_told_apart(scale: BinnedScale, sight: np.ndarray) -> None:
    seen = [cielab(sight @ linear(colour)) for colour in scale.colours]
    assert min(np.linalg.norm(a - b) for a, b in pairwise(seen)) > 7


def test_orange_and_blue_never_meet_for_anybody() -> None:
    colours = difference_scale().colours
    for sight in (np.eye(3), PROTANOPIA, DEUTERANOPIA):
        seen = [cielab(sight @ linear(colour)) for colour in colours]
        assert min(np.linalg.norm(seen[i] - seen[-1 - i]) for i in range(4)) > 15


def test_anchors_are_kept() -> None:
    assert ramp(LOAD_RAMP, 4) == LOAD_RAMP
    assert ramp(LOAD_RAMP, 1) == LOAD_RAMP[:1]


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: scale.title)
@given(value=st.floats(-2, 200))
def test_a_colour_is_the_one_that_the_legend_shows_for_the_value(scale: BinnedScale, value: float) -> None:
    legend = scale.legend()
    # the legend puts tick i at the right end of colour i
    at = sum(value >= edge for edge in scale.edges)
    assert scale.colour(value) == legend["colours"][at]
    assert legend["ticks"] == [scale.tick(edge) for edge in scale.edges]


def test_an_edge_belongs_to_the_class_above_and_nan_to_none() -> None:
    scale = utilisation_scale()
    assert scale.index(np.array([0.9999, 1.0, 1.5, np.inf])).tolist() == [5, 6, 6, 6]
    assert scale.index(np.array([np.nan])).tolist() == [-1]
    assert scale.colour(1.0) == "#000000"


def test_labels_name_the_range_and_the_unit() -> None:
    scale = difference_scale()
    assert scale.label(0) == "below -20 points"
    assert scale.label(4) == "-2 to +2 points"
    assert scale.label(8) == "+20 points or more"


def test_the_difference_scale_is_centred_on_zero() -> None:
    edges = difference_scale().edges
    assert edges == tuple(-edge for edge in reversed(edges))


@pytest.mark.parametrize("reliability", [0.9, 0.85, 0.99, 0.5])
def test_the_stated_reliability_is_an_edge(reliability: float) -> None:
    assert reliability in coverage_scale(reliability).edges


@given(st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=50))
def test_demand_edges_ascend_in_steps_of_1_2_5_and_reach_the_values(values: list[float]) -> None:
    edges = demand_scale(np.array(values)).edges
    assert list(edges) == sorted(set(edges))
    assert all(f"{edge:.0e}"[0] in "125" for edge in edges)
    assert edges[-1] <= max(values) * (1 + 1e-9)


def test_demand_of_nothing_still_has_a_scale() -> None:
    assert len(demand_scale(np.array([np.nan, 0.0])).edges) >= 1


def test_profiles_differ_in_colour_and_shape_and_beyond_eight_in_the_pair() -> None:
    scale = profile_scale([f"p{i}" for i in range(20)])
    assert len(set(scale.colours[:8])) == len(set(scale.shapes[:8])) == 8
    assert len(set(zip(scale.colours, scale.shapes, strict=True))) == 20


def test_a_scale_with_disordered_edges_is_refused() -> None:
    with pytest.raises(ValueError, match="ascend"):
        BinnedScale("x", "", (1.0, 0.0), ("#000000",) * 3)
