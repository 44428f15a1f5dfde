"""Ginibre and Gaussian determinantal layouts: K and counts in closed form, invariance, limits."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from scipy import stats

from geoedge.errors import CityError
from geoedge.sites import draw_layout
from geoedge.sites.determinantal import _landau, projection_points

TORUS = (2500.0, 3000.0)
DENSITY = 4.0
R = np.array([200.0, 300.0, 500.0])


def ginibre_k(r, density, beta):
    return np.pi * r**2 + beta / density * np.expm1(-np.pi * density * r**2 / beta)


@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_ginibre_has_the_pair_correlation_of_the_plane(beta, assert_k):
    # g = 1 − exp(−πλr²/β), integrated
    layouts = [draw_layout("ginibre", TORUS, DENSITY, seed, beta=beta) for seed in range(100)]
    assert_k(layouts, DENSITY, R, ginibre_k(R, DENSITY * 1e-6, beta))


def test_gauss_has_its_pair_correlation(assert_k):
    # g = 1 − exp(−2r²/α²) is that of a β-Ginibre process with β = πλα²/2
    alpha = 270.0
    layouts = [draw_layout("gauss", TORUS, DENSITY, seed, alpha_m=alpha) for seed in range(150)]
    beta = np.pi * DENSITY * 1e-6 * alpha**2 / 2
    assert_k(layouts, DENSITY, R, ginibre_k(R, DENSITY * 1e-6, beta))


@pytest.mark.parametrize(("name", "given"), [("ginibre", {"beta": 0.7}), ("gauss", {"alpha_m": 250.0})])
def test_counts_have_the_mean_asked_for_and_scatter_less_than_poisson(name, given, assert_mean_count):
    land = shapely.box(0, 0, 1400, 1900).difference(shapely.box(500, 500, 1000, 1400))
    layouts = [draw_layout(name, land, 5.0, seed, **given) for seed in range(120)]
    assert_mean_count(layouts, 5.0 * land.area / 1e6)
    count = np.array([len(one) for one in layouts])
    # Sites in a window scatter less: variance over mean well below 1, of which 120 counts have an sd of 0.12
    assert count.var(ddof=1) < 0.75 * count.mean()
    assert all(shapely.contains_xy(land, *one.xy.T).all() for one in layouts)


def test_ginibre_counts_on_a_torus_are_whole_numbers_around_the_mean():
    counts = {len(draw_layout("ginibre", (2000.0, 2000.0), 6.1, seed)) for seed in range(12)}
    assert counts == {24, 25}


def test_places_are_uniform_on_the_torus():
    # Each layout gives one place, so that places are independent.
    for name, given in (("ginibre", {}), ("gauss", {"alpha_m": 250.0})):
        places = np.array([draw_layout(name, TORUS, 2.0, seed, **given).xy[0] for seed in range(200)]) / TORUS
        for axis in range(2):
            assert stats.kstest(places[:, axis], "uniform").pvalue > 1e-3


def test_landau_functions_are_orthonormal_and_evenly_dense():
    count, width, height = 30, 3000.0, 4000.0
    functions = _landau(count, width, height)
    x, y = np.meshgrid((np.arange(120) + 0.5) * width / 120, (np.arange(160) + 0.5) * height / 160)
    value = functions(np.stack((x.ravel(), y.ravel()), axis=1))
    np.testing.assert_allclose(value.conj().T @ value * width * height / len(value), np.eye(count), atol=1e-8)
    density = (np.abs(value) ** 2).sum(axis=1)
    np.testing.assert_allclose(density, count / (width * height), rtol=1e-5)
    # |K(x, y)| is that of the plane: λ exp(−πλr²/2)
    one = functions(np.array([[1500.0, 2000.0], [1700.0, 2300.0]]))
    kernel = abs(one[0] @ one[1].conj())
    lam = count / (width * height)
    assert kernel == pytest.approx(lam * np.exp(-np.pi * lam * (200.0**2 + 300.0**2) / 2), rel=1e-4)


def test_a_projection_of_one_and_of_two_functions_is_what_it_must_be():
    # Waves 0 and 1 on a unit torus: the second place has density 1 − cos(2π(x − x₁)) in x.
    def functions(xy):
        return np.exp(2j * np.pi * xy[:, :1] * np.arange(2))

    rng = np.random.default_rng(0)
    pairs = np.array([projection_points(functions, np.ones(2), 2, rng)[:, 0] for _ in range(3000)])
    off = np.mod(pairs[:, 1] - pairs[:, 0], 1.0)
    assert stats.kstest(off, lambda t: t - np.sin(2 * np.pi * t) / (2 * np.pi)).pvalue > 1e-3


@pytest.mark.parametrize(
    ("name", "density", "given", "words"),
    [
        ("gauss", 4.0, {"alpha_m": 300.0}, r"at most 1/√\(πλ\) = 282\.1 m at 4 sites per km²"),
        ("ginibre", 4.0, {"beta": 1.2}, "`beta` = 1.2: must be a number above 0 and at most 1"),
        ("ginibre", 4.0, {"beta": 0.0}, "`beta` = 0.0: must be a number above 0"),
        ("ginibre", 4.0, {"beta": 0.005}, "needs 6000 functions on the window, at most 4000"),
        ("ginibre", 0.8, {}, "holds 6 sites of a Ginibre process, at least 8 times"),
        ("gauss", 900.0, {"alpha_m": 10.0}, "functions on the window, at most 4000"),
    ],
)
def test_what_does_not_exist_or_costs_too_much_is_refused_in_one_line(name, density, given, words):
    with pytest.raises(CityError, match=words) as caught:
        draw_layout(name, TORUS, density, 0, **given)
    assert "\n" not in str(caught.value)
