"""Summary functions: spatstat's numbers, brute force, no bias under a Poisson layout, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import shapely
from shapely.affinity import rotate, scale, translate

from geoedge.errors import CityError
from geoedge.sites import (
    Layout,
    clark_evans,
    convex_window,
    f_function,
    g_function,
    j_function,
    k_function,
    l_function,
    pair_correlation,
    poisson_layout,
    study_window,
)

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "spatstat.json").read_text())
BAY = shapely.Polygon([(0, 0), (3000, 0), (3000, 2500), (2100, 2500), (1500, 600), (900, 2500), (0, 2500)])
ATOLL = shapely.union_all(
    [
        shapely.Point(0, 0).buffer(1500).difference(shapely.Point(300, 200).buffer(700)),
        shapely.box(1700, -500, 2300, 900),
    ]
)
FUNCTIONS = {
    "K": k_function,
    "L": l_function,
    "g": pair_correlation,
    "G": g_function,
    "F": f_function,
    "J": j_function,
}


def read(name):
    """Return a stored layout, its window and distances, and a reader of its numbers."""
    stored = REFERENCE["layouts"][name]
    polygon = shapely.Polygon()
    for ring in stored["window"]:  # holes turn the other way, and lie in what is there already
        polygon = polygon.symmetric_difference(shapely.Polygon(ring))
    return (
        np.array(stored["xy"]),
        study_window(polygon),
        np.array(stored["r_m"]),
        lambda key: np.array([np.nan if value is None else value for value in stored[key]]),
    )


LAYOUTS = pytest.mark.parametrize("name", list(REFERENCE["layouts"]))


@LAYOUTS
def test_k_by_translation_is_spatstats(name):
    # The reference has exact overlaps of polygons; ours are read from a raster, whence 1e-4.
    xy, window, r, numbers = read(name)
    k = k_function(xy, window, r).value
    np.testing.assert_allclose(k, numbers("K_translation"), rtol=1e-4)
    np.testing.assert_allclose(k, numbers("K_translation_pixels"), rtol=2e-3)
    np.testing.assert_allclose(l_function(xy, window, r).value, np.sqrt(k / np.pi))


@LAYOUTS
def test_border_corrections_are_spatstats(name):
    # spatstat bins distances to the edge in 1024 bins; where one is within a bin of r, it counts differently.
    xy, window, r, numbers = read(name)
    border = window.border_distance(xy)
    clear = np.abs(border[:, None] - r).min(axis=0) > r[-1] / 1024
    assert clear.sum() >= 6
    for key, curve in (("K", k_function), ("G", g_function)):
        ours, theirs = curve(xy, window, r, correction="border").value, numbers(f"{key}_border")
        np.testing.assert_allclose(ours[clear], theirs[clear], rtol=1e-6, atol=1e-9)


@LAYOUTS
def test_kaplan_meier_is_spatstats(name):
    # Bins again in G, at most a few 1e-4; F depends on the grid of places, which is spatstat's pixels there.
    xy, window, r, numbers = read(name)
    ours, theirs = g_function(xy, window, r).value, numbers("G_kaplan_meier")
    known = np.isfinite(ours)  # spatstat goes on beyond the last distance seen; ours is unknown there
    assert known.any()
    np.testing.assert_allclose(ours[known], theirs[known], atol=5e-4)
    np.testing.assert_allclose(f_function(xy, window, r).value, numbers("F_kaplan_meier"), atol=6e-3)


@LAYOUTS
def test_pair_correlation_is_spatstats(name):
    # spatstat smooths on a grid and reads overlaps from pixels: a few 1e-3 at most; below the bandwidth it is biased.
    xy, window, r, numbers = read(name)
    bandwidth = REFERENCE["layouts"][name]["bandwidth_m"]
    whole = r >= bandwidth
    ours = pair_correlation(xy, window, r).value
    np.testing.assert_allclose(ours[whole], numbers("g")[whole], rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(ours, pair_correlation(xy, window, r, bandwidth_m=bandwidth).value)


@LAYOUTS
def test_clark_evans_is_spatstats(name):
    xy, window, _, _ = read(name)
    stored = REFERENCE["layouts"][name]["clark_evans"]
    naive = clark_evans(xy, window, correction="none", simulations=0)
    assert naive.ratio == pytest.approx(stored["naive"], rel=1e-9)
    if "Donnelly" in stored:  # which spatstat knows in a rectangle only; its constant has fewer digits
        donnelly = clark_evans(xy, window, correction="donnelly", simulations=0)
        assert donnelly.ratio == pytest.approx(stored["Donnelly"], rel=1e-4)
    # spatstat takes the mean from G in bins, each by its lower end.
    cdf = clark_evans(xy, window, correction="cdf", simulations=0)
    assert cdf.ratio == pytest.approx(stored["cdf"], rel=0.01)
    assert np.isnan(cdf.z)


def brute_k(xy, polygon, r, correction):
    """K from its definition, a pair at a time, with exact overlaps of polygons."""
    n, area, total = len(xy), polygon.area, np.zeros(len(r))
    border = shapely.distance(shapely.points(xy), polygon.boundary)
    for i in range(n):
        for j in set(range(n)) - {i}:
            h = xy[j] - xy[i]
            counts = np.hypot(*h) <= r
            if correction == "border":
                total += counts & (border[i] >= r)
            else:
                total += counts * area / polygon.intersection(translate(polygon, *h)).area
    if correction == "border":
        return total / np.array([(border >= s).sum() for s in r]) * area / n
    return total * area / (n * (n - 1))


@pytest.mark.parametrize("correction", ["translation", "border"])
@pytest.mark.parametrize("polygon", [BAY, ATOLL])
def test_k_is_its_definition(polygon, correction):
    xy = poisson_layout(polygon, None, 3, count=25).xy
    r = np.array([100.0, 200.0, 300.0, 400.0])
    ours = k_function(xy, polygon, r, correction=correction).value
    np.testing.assert_allclose(ours, brute_k(xy, polygon, r, correction), rtol=2e-4)


def test_overlaps_are_those_of_polygons():
    rng = np.random.default_rng(1)
    for polygon in (BAY, ATOLL, rotate(BAY, 27)):
        shift = rng.uniform(-600, 600, (30, 2))
        exact = [polygon.intersection(translate(polygon, *h)).area for h in shift]
        np.testing.assert_allclose(study_window(polygon).overlap(shift), exact, rtol=2e-4)


@pytest.mark.parametrize("polygon", [BAY, ATOLL])
def test_a_poisson_layout_is_not_taken_for_anything_else(polygon):
    # Means over 300 layouts within 4 standard errors of the Poisson function at every distance, in a window where
    # not correcting is wrong by more than 10 standard errors: so the test could fail.
    window, rng = study_window(polygon), np.random.default_rng(11)
    r = np.array([60.0, 120.0, 200.0, 300.0])
    box = study_window(shapely.box(-20_000, -20_000, 20_000, 20_000))
    seen = {key: [] for key in ("translation", "border", "km", "km_f", "reduced", "g", "naive")}
    for _ in range(300):
        xy = window.uniform(rng.poisson(80), rng)
        k = k_function(xy, window, r).value
        seen["translation"].append(k)
        seen["border"].append(k_function(xy, window, r, correction="border").value)
        seen["km"].append(g_function(xy, window, r).value)
        seen["reduced"].append(g_function(xy, window, r, correction="border").value)
        seen["km_f"].append(f_function(xy, window, r).value)
        seen["g"].append(pair_correlation(xy, window, r).value)
        seen["naive"].append(k_function(xy, box, r).value * polygon.area / box.area_m2)
    reach = 1 - np.exp(-80 / polygon.area * np.pi * r**2)
    truth = {"km": reach, "km_f": reach, "reduced": reach, "g": np.ones(4)}
    off = {}
    for key, values in seen.items():
        known = np.isfinite(values).mean(axis=0) > 0.97
        mean, error = np.nanmean(values, axis=0), np.nanstd(values, axis=0) / np.sqrt(300)
        off[key] = ((mean - truth.get(key, np.pi * r**2)) / error)[known]
    assert np.abs(off.pop("naive")).max() > 10
    for key, z in off.items():
        assert np.abs(z).max() < 4, (key, z)


def test_a_torus_needs_no_correction():
    period = (1000.0, 700.0)
    xy = np.random.default_rng(2).random((60, 2)) * period
    r = np.array([20.0, 90.0, 170.0])
    apart = np.abs(xy[:, None] - xy[None])
    apart = np.hypot(*np.moveaxis(np.minimum(apart, period - apart), -1, 0))
    np.fill_diagonal(apart, np.inf)
    expected = [(apart <= s).sum() * 7e5 / (60 * 59) for s in r]
    np.testing.assert_allclose(k_function(xy, period, r).value, expected)
    np.testing.assert_allclose(k_function(xy, period, r, correction="border").value, expected)
    np.testing.assert_allclose(g_function(xy, period, r).value, [(apart.min(1) <= s).mean() for s in r])
    shifted = np.vstack((xy, [[-1e-20, 3e3]]))  # a rounding outside is on the torus too
    assert np.isfinite(k_function(shifted, period, r).value).all()
    layout = poisson_layout(period, None, 1, count=60)
    assert k_function(layout).correction == "periodic"  # a layout brings its torus along


def test_moving_turning_and_scaling_change_nothing_but_the_unit():
    xy = poisson_layout(BAY, None, 9, count=70).xy
    r = np.linspace(0, 500, 26)
    index = clark_evans(xy, BAY, correction="cdf", simulations=0).ratio

    def turned(geometry):
        return scale(translate(rotate(geometry, 33, origin=(0, 0)), 4e5, 5e6), 3, 3, origin=(0, 0))

    points = shapely.get_coordinates(turned(shapely.multipoints(xy)))
    there = turned(BAY)
    for key, power in (("K", 2), ("L", 1), ("g", 0), ("G", 0), ("J", 0)):
        here, moved = FUNCTIONS[key](xy, BAY, r).value, FUNCTIONS[key](points, there, 3 * r).value
        tolerance = 0.05 if key == "J" else 2e-4  # the places from which J looks for sites do not turn along
        np.testing.assert_allclose(moved, here * 3.0**power, rtol=tolerance, atol=1e-9)
    assert clark_evans(points, there, correction="cdf", simulations=0).ratio == pytest.approx(index, rel=1e-6)


def triangular(rows):
    """A triangular lattice of side 100 m on its torus."""
    x, y = np.meshgrid(np.arange(rows), np.arange(rows))
    xy = np.stack([(x + 0.5 * (y % 2)) * 100.0, y * 50.0 * np.sqrt(3.0)], axis=-1).reshape(-1, 2)
    return xy, (rows * 100.0, rows * 50.0 * np.sqrt(3.0))


def test_a_triangular_lattice_is_as_regular_as_can_be():
    # Nearest neighbours at the side a, density 2/(√3 a²): the index is 2 √(2/√3) = 2.149, and six sites share r = a.
    xy, period = triangular(12)
    index = clark_evans(xy, period, simulations=99)
    assert index.ratio == pytest.approx(2.0 * np.sqrt(2.0 / np.sqrt(3.0)), rel=1e-9)
    assert (index.p_value, index.z > 10) == (0.01, True)
    k = k_function(xy, period, [99.0, 101.0]).value * len(xy) / (period[0] * period[1])
    np.testing.assert_allclose(k, [0.0, 6.0 * 144 / 143], rtol=1e-9)
    assert g_function(xy, period, [99.0, 101.0]).value.tolist() == [0.0, 1.0]
    assert (j_function(xy, period, [40.0, 55.0]).value > 1.0).all()


def test_the_signs_of_regular_and_clustered():
    rng = np.random.default_rng(4)
    pairs = np.repeat(study_window(BAY).uniform(40, rng), 2, axis=0) + rng.normal(0, 1.0, (80, 2))
    pairs = pairs[study_window(BAY).contains(pairs)]
    r = np.array([30.0])
    assert l_function(pairs, BAY, r).value > r
    assert pair_correlation(pairs, BAY, r / 10).value > 5
    assert j_function(pairs, BAY, r).value < 0.9
    index = clark_evans(pairs, BAY, simulations=99)
    assert index.ratio < 0.5
    assert index.p_value == 0.01


def test_clark_evans_p_values_are_uniform_under_poisson():
    # 19 drawn layouts: p takes 1/20, ..., 1 equally often. 200 layouts: 10 of each expected, chi-square below its
    # 1e-4 quantile; the mean corrected index is 1 within 4 standard errors.
    from scipy import stats

    rng, window = np.random.default_rng(6), study_window(ATOLL)
    indices = [clark_evans(window.uniform(40, rng), window, simulations=19, rng=rng) for _ in range(200)]
    p = np.array([one.p_value for one in indices])
    assert stats.chisquare(np.bincount(np.rint(p * 20).astype(int), minlength=21)[1:]).pvalue > 1e-4
    donnelly = [
        clark_evans(window.uniform(40, rng), window, correction="donnelly", simulations=0).ratio
        for _ in range(400)
    ]
    # Donnelly's perimeter term was made for rectangles: this coast and its hole cost it no more than 3 %.
    assert np.mean(donnelly) == pytest.approx(1.0, abs=0.03)


def test_normal_law_of_clark_evans_on_a_torus():
    # Nearest distances are weakly dependent; the classical variance is right within a few per cent.
    rng = np.random.default_rng(8)
    z = [clark_evans(rng.random((80, 2)) * 1000, (1000.0, 1000.0), simulations=0).z for _ in range(800)]
    assert np.mean(z) == pytest.approx(0.0, abs=4 / np.sqrt(800) + 0.05)
    assert 0.95 < np.std(z) < 1.3


def test_a_window_guessed_from_the_sites_has_the_right_area():
    # The blown-up hull of uniform sites is unbiased in area for convex windows up to a few per cent.
    disc = shapely.Point(0, 0).buffer(1000)
    window, rng = study_window(disc), np.random.default_rng(3)
    areas = [convex_window(window.uniform(40, rng)).area_m2 / disc.area for _ in range(200)]
    assert np.mean(areas) == pytest.approx(1.0, abs=0.05)
    xy = window.uniform(40, rng)
    assert convex_window(xy).contains(xy).all()


def test_few_sites_and_shared_places():
    one, two = [[500.0, 500.0]], [[500.0, 500.0], [600.0, 500.0]]
    assert f_function(one, BAY, [10.0, 200.0]).value[1] > 0.0
    for curve in (k_function, l_function, pair_correlation, g_function, j_function):
        with pytest.raises(CityError, match="needs at least 2 sites, not 1"):
            curve(one, BAY)
    with pytest.raises(CityError, match="Clark-Evans needs at least 2"):
        clark_evans(one, BAY)
    overlap = BAY.intersection(translate(BAY, 100, 0)).area
    np.testing.assert_allclose(
        k_function(two, BAY, [99.0, 101.0]).value, [0.0, BAY.area**2 / overlap], rtol=1e-3
    )
    same = [*two, two[0]]
    assert k_function(same, BAY, [0.0, 1.0]).value[0] == pytest.approx(BAY.area / 3)
    assert g_function(same, BAY, [0.0]).value.tolist() == [2 / 3]
    with pytest.raises(CityError, match=r"some coincide; merge them"):
        pair_correlation(same, BAY)


def test_a_site_on_the_edge_is_inside():
    slanted = rotate(BAY, 27)
    on_edge = shapely.get_coordinates(
        shapely.line_interpolate_point(slanted.exterior, np.arange(0, 9000, 500.0))
    )
    assert k_function(on_edge, slanted, [400.0]).value > 0
    assert study_window(slanted).border_distance(on_edge).max() < 1e-6


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda xy: k_function(xy), "`window` must be given for sites on the plane"),
        (lambda xy: k_function(xy, shapely.Polygon()), "`window` must be a valid polygon"),
        (
            lambda xy: k_function(xy, shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])),
            "try shapely.make_valid",
        ),
        (lambda xy: k_function(xy, shapely.Point(0, 0)), "not this Point"),
        (lambda xy: k_function(xy, (0.0, 5.0)), "positive width and height"),
        (lambda xy: k_function(xy, BAY, [3.0, 2.0]), "`r_m` must be increasing distances from 0"),
        (lambda xy: k_function(xy, BAY, [-1.0, 2.0]), "`r_m` must be increasing distances from 0"),
        (lambda xy: k_function(xy, BAY, []), "`r_m` must be increasing distances from 0"),
        (lambda xy: k_function(xy, (1000.0, 500.0), [251.0]), "up to half the torus, 250"),
        (lambda xy: pair_correlation(xy, (1000.0, 500.0), [250.0]), "g is known up to half the torus"),
        (lambda xy: pair_correlation(xy, BAY, bandwidth_m=0.0), "`bandwidth_m` must be a positive"),
        (lambda xy: k_function(xy, BAY, correction="ripley"), "'translation', 'border', not 'ripley'"),
        (lambda xy: g_function(xy, BAY, correction="translation"), "'kaplan_meier', 'border'"),
        (lambda xy: k_function(xy[:, :1], BAY), r"shape \(n, 2\), not of shape"),
        (lambda xy: k_function(xy * np.nan, BAY), "finite positions"),
        (lambda xy: k_function(xy + 5000.0, BAY), "9 of 9 are outside; clip the sites or widen the window"),
        (lambda xy: k_function(xy, shapely.box(0, 0, 3000, 2500).boundary.buffer(0.01)), "are outside"),
        (lambda xy: clark_evans(xy, BAY, correction="edge"), "'donnelly', 'cdf', 'none', not 'edge'"),
        (lambda xy: clark_evans(xy, BAY, simulations=-1), "`simulations` must be 0 or more"),
        (lambda xy: convex_window(xy[:3]), "at least four places"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(call, words):
    xy = np.stack(np.meshgrid([200.0, 400.0, 600.0], [200.0, 350.0, 500.0]), axis=-1).reshape(-1, 2)
    with pytest.raises(CityError, match=words) as caught:
        call(xy)
    assert "\n" not in str(caught.value)


def test_a_window_that_a_raster_cannot_show_is_refused():
    thread = shapely.LineString([(0, 0), (9000, 500), (4000, 9000)]).buffer(0.4)
    xy = shapely.get_coordinates(
        shapely.line_interpolate_point(shapely.LineString([(0, 0), (9000, 500)]), [100, 200])
    )
    with pytest.raises(CityError, match="too thin"):
        k_function(xy, thread, [150.0])


def test_a_layout_is_as_good_as_its_positions():
    layout = poisson_layout(BAY, 12.0, 5)
    assert isinstance(layout, Layout)
    curve = k_function(layout, BAY)
    np.testing.assert_array_equal(curve.value, k_function(layout.xy, study_window(BAY)).value)
    assert curve.sites == len(layout)
    assert curve.r_m[0] == 0.0
    np.testing.assert_allclose(curve.poisson, np.pi * curve.r_m**2)
