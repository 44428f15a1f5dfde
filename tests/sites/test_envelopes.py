"""Global tests: spatstat's p-values, a sort by hand, uniform p-values, and an envelope left exactly when p is small."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import shapely
from scipy import stats

from geoedge.errors import CityError
from geoedge.sites import envelope_test, global_test, poisson_layout, study_window, uneven_poisson
from geoedge.sites.envelopes import METHODS, curve_envelope

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "spatstat.json").read_text())
BAY = shapely.Polygon([(0, 0), (3000, 0), (3000, 2500), (2100, 2500), (1500, 600), (900, 2500), (0, 2500)])
TORUS = (1000.0, 1000.0)


@pytest.mark.parametrize("method", ["dclf", "mad"])
@pytest.mark.parametrize("layout", ["square", "square_regular"])
def test_p_values_are_spatstats(method, layout):
    # The same 39 drawn layouts, L by translation, deviations from the mean of the others.
    window = study_window(shapely.box(0, 0, 1000, 1000))
    xy = np.array(REFERENCE["layouts"][layout]["xy"])
    drawn = [np.array(one) for one in REFERENCE["drawn"]]
    r = np.arange(0.0, 250.1, 2.5)
    envelope = curve_envelope(xy, drawn, window, "L", r, method=method)
    stored = REFERENCE["tests"][layout][method]
    assert envelope.p_value == pytest.approx(stored["p_value"])
    if method == "mad":
        away = np.abs(envelope.observed - envelope.mean).max()
        assert away == pytest.approx(stored["statistic"], rel=2e-3)


def test_rank_lengths_are_a_sort_by_hand():
    rng = np.random.default_rng(1)
    curves = rng.normal(size=(20, 7)).round(1)  # rounded, so that there are ties

    def ranks(curve):
        from_below = [
            1 + (curves[:, k] < curve[k]).sum() + ((curves[:, k] == curve[k]).sum() - 1) / 2 for k in range(7)
        ]
        return sorted(min(rank, 21 - rank) for rank in from_below)

    for i in range(20):
        others = np.delete(curves, i, axis=0)
        as_extreme = 1 + sum(ranks(other) <= ranks(curves[i]) for other in others)
        assert global_test(curves[i], others)[0] == pytest.approx(as_extreme / 20)


@pytest.mark.parametrize("method", METHODS)
def test_p_values_are_uniform_under_poisson(method):
    # 19 drawn layouts, so p is k/20. Each of 300 layouts is tested against its own: chi-square over twentieths.
    rng, window = np.random.default_rng(5), study_window(BAY)
    r = np.linspace(0, 600, 31)
    p = []
    for _ in range(300):
        drawn = [window.uniform(25, rng) for _ in range(20)]
        p.append(curve_envelope(drawn[0], drawn[1:], window, "L", r, method=method).p_value)
    counts = np.bincount(np.rint(np.array(p) * 20).astype(int), minlength=21)[1:]
    assert counts.sum() == 300
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("method", ["rank", "mad"])
def test_the_envelope_is_left_exactly_when_p_is_small(method):
    rng = np.random.default_rng(2)
    left = 0
    for i in range(300):
        curves = np.cumsum(rng.normal(size=(40, 12)), axis=1)
        curves[0] *= 1 + 2 * (i % 2)
        p, lower, upper = global_test(curves[0], curves[1:], method=method, level=0.1)
        outside = bool(((curves[0] < lower) | (curves[0] > upper)).any())
        assert outside == (p <= 0.1)
        left += outside
    assert 60 < left < 240


@pytest.mark.parametrize("statistic", ["K", "L", "g", "G", "F", "J"])
def test_every_function_knows_a_lattice_from_clusters(statistic):
    # A shaken square lattice is regular, pairs of sites are clustered; where a clustered layout is above: K, L, g, G.
    rng, window = np.random.default_rng(3), study_window(TORUS)
    x = (np.arange(8) + 0.5) * 125.0
    lattice = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2) + rng.normal(0, 6, (64, 2))
    pairs = np.repeat(window.uniform(32, rng), 2, axis=0) + rng.normal(0, 12, (64, 2))
    regular = envelope_test(lattice, TORUS, statistic, simulations=99, rng=1)
    clustered = envelope_test(pairs, TORUS, statistic, simulations=99, rng=1)
    assert (regular.p_value, clustered.p_value) == (0.01, 0.01)
    above = statistic in "KLgG"
    assert (clustered.above_m if above else clustered.below_m) is not None
    assert (regular.below_m if above else regular.above_m) is not None
    assert np.sign(clustered.largest_deviation) == (1 if above else -1)


def test_one_seed_is_one_envelope():
    layout = poisson_layout(BAY, None, 4, count=30)
    one, two, other = (envelope_test(layout, BAY, simulations=19, rng=seed) for seed in (3, 3, 4))
    for name in ("r_m", "observed", "mean", "lower", "upper"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.p_value == two.p_value
    assert not np.array_equal(one.mean, other.mean)
    assert one.simulations == 19
    assert (one.lower <= one.upper).all()


def test_a_hypothesis_of_ones_own():
    # Clustered sites are no surprise among layouts clustered likewise.
    window = study_window(BAY)

    def pairs(rng):
        xy = np.repeat(window.uniform(30, rng), 2, axis=0) + rng.normal(0, 12, (60, 2))
        return xy[window.contains(xy)]

    layout = pairs(np.random.default_rng(7))
    assert envelope_test(layout, BAY, simulations=99).p_value <= 0.02
    assert envelope_test(layout, BAY, simulations=99, simulate=pairs).p_value > 0.05
    made = envelope_test(
        layout, BAY, simulations=9, level=0.2, simulate=lambda rng: poisson_layout(BAY, 8.0, rng)
    )
    assert made.simulations == 9


def test_poisson_many_sites():
    # The count of sites varies too: drawn functions of n spread as they should, and the test still is one.
    layout = poisson_layout(BAY, 10.0, 4)
    fixed = envelope_test(layout, BAY, "G", simulations=99, rng=1)
    poisson = envelope_test(layout, BAY, "G", simulations=99, rng=1, count="poisson")
    assert poisson.p_value > 0.01
    assert np.mean(poisson.upper - poisson.lower) > np.mean(fixed.upper - fixed.lower)


def test_what_the_window_hides_from_one_curve_is_left_out_for_all():
    layout = poisson_layout(BAY, None, 6, count=12)
    envelope = envelope_test(layout, BAY, "G", np.linspace(0, 2000, 41), simulations=39)
    assert envelope.r_m[-1] < 2000
    assert np.isfinite(envelope.observed).all()
    with pytest.raises(CityError, match="known at no distance up to 2000 m"):
        envelope_test(layout, BAY, "K", [1900.0, 2000.0], simulations=39, correction="border")


def test_an_uneven_density_is_no_cluster():
    # Ten times as many sites in the west: clustered against uniform sites, as they should be against uneven ones.
    rng, square = np.random.default_rng(8), shapely.box(0, 0, 2000, 1000)
    p_even, p_uneven = [], []
    for _ in range(20):
        x = np.where(rng.random(110) < 10 / 11, rng.random(110), 1 + rng.random(110)) * 1000
        xy = np.stack((x, rng.random(110) * 1000), axis=1)
        p_even.append(envelope_test(xy, square, "G", simulations=39, rng=rng).p_value)
        hypothesis = uneven_poisson(xy, square)
        p_uneven.append(envelope_test(xy, square, "G", simulations=39, rng=rng, simulate=hypothesis).p_value)
    assert np.mean(np.array(p_even) <= 0.05) > 0.7
    assert np.mean(np.array(p_uneven) <= 0.05) < 0.3
    pairs = np.repeat(xy[:55], 2, axis=0) + rng.normal(0, 3, (110, 2))
    pairs = pairs[study_window(square).contains(pairs)]
    close = envelope_test(pairs, square, "G", simulations=39, simulate=uneven_poisson(pairs, square))
    assert close.p_value == 1 / 40


def test_uneven_draws_stay_in_the_window_and_on_the_torus():
    for window in (BAY, TORUS):
        xy = study_window(window).uniform(40, np.random.default_rng(1))
        drawn = uneven_poisson(xy, window)(np.random.default_rng(2))
        assert drawn.shape == xy.shape
        assert study_window(window).contains(drawn).all()
    assert (drawn >= 0).all()
    assert (drawn <= 1000).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"statistic": "H"}, "`statistic` must be one of 'K', 'L', 'g', 'G', 'F', 'J', not 'H'"),
        ({"method": "pointwise"}, "`method` must be one of 'rank', 'mad', 'dclf'"),
        ({"simulations": 0}, "`simulations` must be at least 1"),
        ({"simulations": 9}, "at least 0.1 with 9 simulations; draw more"),
        ({"level": 1.0}, "`level` = 1 must be below 1"),
        ({"count": "binomial"}, "`count` must be 'fixed' or 'poisson'"),
        ({"simulate": lambda rng: [[-9.0, 5.0]]}, "`window` must hold all sites"),
        ({"simulate": lambda rng: [1.0, 2.0]}, "not of shape"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(options, words):
    with pytest.raises(CityError, match=words) as caught:
        envelope_test(poisson_layout(BAY, 5.0, 1), BAY, **{"simulations": 19, **options})
    assert "\n" not in str(caught.value)


def test_an_envelope_needs_two_sites():
    with pytest.raises(CityError, match="An envelope needs at least 2 sites, not 1"):
        envelope_test([[500.0, 500.0]], BAY)
    with pytest.raises(CityError, match="`neighbours` must be at least 1"):
        uneven_poisson([[500.0, 500.0], [600.0, 400.0]], BAY, neighbours=0)
    two = envelope_test([[500.0, 500.0], [600.0, 400.0]], BAY, simulations=39)
    assert 0 < two.p_value <= 1
