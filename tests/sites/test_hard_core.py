"""Matérn's thinnings, holes and Strauss layouts: closed forms, distances kept across the seam, limits."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from geoedge.errors import CityError
from geoedge.sites import draw_layout
from geoedge.sites._windows import DrawingWindow
from geoedge.sites.hard_core import matern_one_points, matern_two_points
from geoedge.sites.strauss import strauss_activity

TORUS = (5000.0, 4000.0)
LAND = shapely.union_all([shapely.box(0, 0, 1000, 3000), shapely.box(2000, 0, 4000, 500)])


@pytest.mark.parametrize(
    ("name", "density", "parameters"),
    [
        ("hard_core", 8.0, {"radius_m": 190.0}),  # λπR² = 0.907 of at most 1
        ("hard_core_one", 4.0, {"radius_m": 160.0}),  # 0.322 of at most 0.368
        ("strauss", 10.0, {"radius_m": 200.0, "gamma": 0.0}),
        ("strauss", 10.0, {"radius_m": 200.0, "gamma": 0.0, "fixed_count": True}),
    ],
)
def test_distances_are_kept_on_land_and_across_the_seam(name, density, parameters, least_distance):
    for seed in range(3):
        torus = draw_layout(name, TORUS, density, seed, **parameters)
        assert len(torus) > 40
        assert least_distance(torus) >= parameters["radius_m"]
        assert least_distance(draw_layout(name, LAND, density, seed, **parameters)) >= parameters["radius_m"]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("hard_core", {"radius_m": 200.0}),
        ("hard_core_one", {"radius_m": 120.0}),
        ("holes", {"radius_m": 400.0, "holes_per_km2": 2.0}),
        ("strauss", {"radius_m": 200.0, "gamma": 0.3}),
        ("strauss", {"radius_m": 200.0, "gamma": 0.3, "fixed_count": True}),
    ],
)
def test_the_density_asked_for_is_the_mean_density(name, parameters, assert_mean_count):
    # Land with long edges: without sites proposed outside, hard cores would be too dense along them.
    many = 50 if name == "strauss" else 300
    layouts = [draw_layout(name, LAND, 7.0, seed, **parameters) for seed in range(many)]
    assert_mean_count(layouts, 7.0 * LAND.area / 1e6)
    layouts = [draw_layout(name, TORUS, 7.0, seed, **parameters) for seed in range(many // 2)]
    assert_mean_count(layouts, 7.0 * 20.0)


def test_along_the_edge_of_land_sites_are_as_dense_as_inside():
    # Without sites proposed outside of the land its rim would be too dense.
    rim = LAND.difference(LAND.buffer(-60.0))
    for name, many in (("hard_core", 400), ("strauss", 25)):
        layouts = [draw_layout(name, LAND, 20.0, seed, radius_m=110.0) for seed in range(many)]
        seen = np.array([shapely.intersects_xy(rim, *one.xy.T).sum() for one in layouts])
        error = seen.std(ddof=1) / np.sqrt(many)
        assert abs(seen.mean() - 20.0 * rim.area / 1e6) < 4 * error < 0.2 * seen.mean()


def test_materns_intensities_are_the_closed_forms():
    # (1 − exp(−λ_p πR²))/(πR²) and λ_p exp(−λ_p πR²), read from the proposals that the draws make.
    window, disc = DrawingWindow(None, TORUS), np.pi * 150.0**2
    made = []

    class Counting(DrawingWindow):
        def poisson_around(self, density, reach_m, rng):
            made.append(density)
            return super().poisson_around(density, reach_m, rng)

    counting = Counting(window.polygon, window.period_m)
    rng = np.random.default_rng(0)
    two = [len(matern_two_points(counting, 9e-6, rng, radius_m=150.0)) for _ in range(300)]
    one = [len(matern_one_points(counting, 4e-6, rng, radius_m=150.0)) for _ in range(300)]
    for seen, proposed, expected in (
        (two, made[0], -np.expm1(-made[0] * disc) / disc),
        (one, made[-1], made[-1] * np.exp(-made[-1] * disc)),
    ):
        assert proposed > expected
        assert np.mean(seen) / window.area_m2 == pytest.approx(
            expected, abs=4 * np.std(seen) / np.sqrt(300) / window.area_m2
        )


def test_materns_second_process_has_its_pair_correlation(assert_k):
    # K by its integral of 2 Γ-terms: ρ₂(r) of two marks and the union of two discs (Stoyan, Kendall, Mecke, ch. 5).
    radius, density = 150.0, 8.0
    disc = np.pi * radius**2
    proposed = -np.log1p(-density * 1e-6 * disc) / disc
    at = np.linspace(radius, 600.0, 4001)
    z = np.minimum(at / (2 * radius), 1.0)
    union = 2 * disc - 2 * radius**2 * (np.arccos(z) - z * np.sqrt(1 - z**2))
    rho = 2 * union * -np.expm1(-proposed * disc) - 2 * disc * -np.expm1(-proposed * union)
    rho /= disc * union * (union - disc)
    k = np.cumsum(2 * np.pi * at * rho / (density * 1e-6) ** 2) * (at[1] - at[0])
    r = np.array([180.0, 220.0, 300.0, 450.0])
    layouts = [draw_layout("hard_core", TORUS, density, seed, radius_m=radius) for seed in range(200)]
    assert_k(layouts, density, r, np.interp(r, at, k))


def test_holes_have_no_sites_and_the_closed_form_of_k(assert_k):
    # g(r) = exp(λ_h |B ∩ B + r|): two places are both in the open if no hole covers either.
    holes, radius, density = 2.0, 300.0, 8.0
    at = np.linspace(0.0, 800.0, 8001)[1:]
    z = np.minimum(at / (2 * radius), 1.0)
    shared = 2 * radius**2 * (np.arccos(z) - z * np.sqrt(1 - z**2))
    k = np.cumsum(2 * np.pi * at * np.exp(holes * 1e-6 * shared)) * (at[1] - at[0])
    r = np.array([100.0, 200.0, 400.0, 700.0])
    layouts = [
        draw_layout("holes", TORUS, density, seed, radius_m=radius, holes_per_km2=holes)
        for seed in range(300)
    ]
    assert_k(layouts, density, r, np.interp(r, at, k))


def test_strauss_of_gamma_one_is_poisson(assert_k, assert_mean_count):
    layouts = [draw_layout("strauss", TORUS, 6.0, seed, radius_m=250.0, gamma=1.0) for seed in range(60)]
    count = np.array([len(one) for one in layouts])
    assert_mean_count(layouts, 120.0)
    # Variance over mean of 60 Poisson counts: 1 with sd sqrt(2/59) = 0.18
    assert count.var(ddof=1) / count.mean() == pytest.approx(1.0, abs=0.7)
    r = np.array([100.0, 250.0, 500.0])
    assert_k(layouts, 6.0, r, np.pi * r**2)


def test_strauss_layouts_do_not_depend_on_where_the_chain_starts():
    # Pairs within R in the middle of land, and activity against its first virial terms: log(β/λ) = λπR²(1 − γ) + O(λ²).
    assert np.log(strauss_activity(0.02, 0.4)) == pytest.approx(0.02 * 0.6, rel=0.1)
    counts = []
    for fixed in (True, False):
        pairs = []
        for seed in range(40):
            one = draw_layout("strauss", TORUS, 8.0, seed, radius_m=200.0, gamma=0.4, fixed_count=fixed)
            off = np.abs(one.xy[:, None] - one.xy[None])
            near = np.hypot(*np.minimum(off, np.array(TORUS) - off).transpose(2, 0, 1)) < 200.0
            pairs.append((near.sum() - len(one)) / len(one))
        counts.append((np.mean(pairs), np.var(pairs) / len(pairs)))
    (a, va), (b, vb) = counts
    assert abs(a - b) < 4 * np.sqrt(va + vb) + 0.01
    assert a < 0.6 * 8e-6 * np.pi * 200.0**2  # Poisson sites would have twice as many


@pytest.mark.parametrize(
    ("name", "density", "parameters", "words"),
    [
        (
            "hard_core",
            8.0,
            {"radius_m": 200.0},
            r"reaches 7\.958 per km² \(λπR² < 1\).*radius below 199\.5 m",
        ),
        ("hard_core_one", 3.0, {"radius_m": 200.0}, r"reaches 2\.927 per km² \(λπR² ≤ 1/e\)"),
        ("hard_core", 0.01, {"radius_m": 2500.0}, "at most half the shorter side of the torus, 2000 m"),
        (
            "hard_core",
            1.0,
            {"radius_m": -1.0},
            "`radius_m` = -1.0: must be a number above 0; it is the least",
        ),
        ("hard_core", 1.0, {"radius_m": "far"}, "`radius_m` = 'far': must be a number above 0"),
        (
            "hard_core",
            1.0,
            {"radius": 1.0},
            "`radius` = 1.0: not a parameter of hard_core, which has radius_m",
        ),
        ("holes", 1.0, {"radius_m": 1000.0, "holes_per_km2": 5.0}, r"cover a place 15\.7 times on average"),
        ("strauss", 10.0, {"radius_m": 300.0, "gamma": 0.1}, r"λπR²\(1 − γ\) = 2\.54 .* at most 2"),
        ("strauss", 1.0, {"gamma": 1.5}, "`gamma` = 1.5: must be a number of at least 0 and at most 1"),
        ("strauss", 1.0, {"fixed_count": 1}, "`fixed_count` = 1: must be true or false"),
    ],
)
def test_what_no_process_can_do_is_refused_in_one_line(name, density, parameters, words):
    with pytest.raises(CityError, match=words) as caught:
        draw_layout(name, TORUS, density, 0, **parameters)
    assert "\n" not in str(caught.value)
