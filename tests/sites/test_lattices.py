"""Lattices: density, spacing and angle, closed around a torus."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from scipy import stats
from scipy.spatial import cKDTree

from geoedge.errors import CityError
from geoedge.sites import draw_layout

TORUS = (5000.0, 4000.0)
LAND = shapely.union_all([shapely.box(0, 0, 1000, 3000), shapely.box(2000, 0, 4000, 500)])


@pytest.mark.parametrize("shape", ["square", "hexagonal"])
@pytest.mark.parametrize(("noise", "shift"), [("gaussian", 0.0), ("gaussian", 150.0), ("uniform", 150.0)])
def test_the_density_asked_for_is_the_mean_density(shape, noise, shift, assert_mean_count):
    given = {"shape": shape, "noise": noise, "shift_m": shift}
    assert_mean_count([draw_layout("lattice", LAND, 6.0, seed, **given) for seed in range(400)], 24.0)
    assert_mean_count([draw_layout("lattice", TORUS, 6.3, seed, **given) for seed in range(400)], 126.0)


@pytest.mark.parametrize(("shape", "neighbours"), [("square", 4), ("hexagonal", 6)])
def test_a_still_lattice_on_land_has_its_spacing_and_any_angle(shape, neighbours):
    spacing = {"square": 500.0, "hexagonal": 500.0 * (4 / 3) ** 0.25}[shape]
    land, angles = shapely.box(0, 0, 5000, 5000), []
    for seed in range(60):
        xy = draw_layout("lattice", land, 4.0, seed, shape=shape, shift_m=0.0).xy
        inner = xy[(np.abs(xy - 2500) < 1500).all(axis=1)]
        tree = cKDTree(xy)
        distance, index = tree.query(inner, k=neighbours + 2)
        np.testing.assert_allclose(distance[:, 1 : neighbours + 1], spacing)
        assert (distance[:, -1] > 1.3 * spacing).all()
        step = xy[index[0, 1]] - inner[0]
        angles.append(np.arctan2(step[1], step[0]) * neighbours / (2 * np.pi) % 1.0)
    assert stats.kstest(angles, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("shape", ["square", "hexagonal"])
def test_a_lattice_closes_around_the_torus(shape):
    # Stretched by less than a row in about twenty: all neighbours are within 10 % of the spacing.
    spacing = {"square": 1.0, "hexagonal": (4 / 3) ** 0.25}[shape] * 1e3 / np.sqrt(20.0)
    for seed in range(20):
        layout = draw_layout("lattice", TORUS, 20.0, seed, shape=shape, shift_m=0.0)
        tree = cKDTree(layout.xy, boxsize=TORUS)
        nearest = tree.query(layout.xy, k={"square": 5, "hexagonal": 7}[shape])[0][:, 1:]
        assert abs(nearest / spacing - 1).max() < 0.1
        assert len(layout) / 20.0 == pytest.approx(20.0, abs=1.5)  # one site more or less in each row


def test_errors_have_the_spread_asked_for():
    for noise, expected in (("gaussian", 2 * 50.0**2), ("uniform", 50.0**2 / 2)):
        still, moved = (
            draw_layout("lattice", TORUS, 4.0, 3, shape="square", noise=noise, shift_m=shift)
            for shift in (0.0, 50.0)
        )
        off = np.abs(still.xy - moved.xy)
        squared = (np.minimum(off, np.array(TORUS) - off) ** 2).sum(axis=1)
        assert squared.mean() == pytest.approx(expected, abs=4 * squared.std() / np.sqrt(len(squared)))
        assert noise == "gaussian" or squared.max() <= 50.0**2 + 1e-6


@pytest.mark.parametrize("shape", ["square", "hexagonal"])
def test_a_lattice_is_anywhere_on_the_torus(shape):
    # Each of 300 layouts gives one of its sites, so that places are independent.
    chosen = np.random.default_rng(1).random(300)
    layouts = [draw_layout("lattice", TORUS, 0.5, seed, shape=shape, shift_m=0.0) for seed in range(300)]
    place = np.array([one.xy[int(at * len(one))] for one, at in zip(layouts, chosen, strict=True)])
    for axis in range(2):
        assert stats.kstest(place[:, axis] / TORUS[axis], "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("window", "given", "words"),
    [
        (TORUS, {"shape": "round"}, "`shape` = 'round': must be one of hexagonal, square"),
        (TORUS, {"noise": "loud"}, "`noise` = 'loud': must be one of gaussian, uniform"),
        (TORUS, {"shift_m": -1.0}, "`shift_m` = -1.0: must be a number of at least 0"),
        ((100.0, 100.0), {}, "too few for a hexagonal lattice that closes"),
    ],
)
def test_what_is_no_lattice_is_refused_in_one_line(window, given, words):
    with pytest.raises(CityError, match=words) as caught:
        draw_layout("lattice", window, 4.0, 0, **given)
    assert "\n" not in str(caught.value)
