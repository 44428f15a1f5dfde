"""Regions of the plane and their boundaries against the costs themselves and against classical geometry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.errors import GeoEdgeError
from geoedge.theory import boundary_curve, rival_area, selection_owner, selection_regions

S, T = np.array([0.2, -0.1]), np.array([1.1, 0.5])
D = float(np.hypot(*(T - S)))
exponents = st.sampled_from([1.0, 1.3, 2.0, 2.5, 4.0, 6.0])
gaps = st.floats(-2.5, 2.5)  # (β_s − β_t)/ξ in units of D^α
few = settings(max_examples=60, deadline=None)


def cost(point, site, offset, coefficient, exponent):
    """Return ξ r^α + β, written down once more."""
    return coefficient * np.sqrt(((point - site) ** 2).sum(axis=-1)) ** exponent + offset


@given(gaps, exponents, st.floats(0.01, 3.0))
@few
def test_both_cost_alike_on_the_curve_and_not_beside_it(gap, exponent, coefficient) -> None:
    offset = gap * coefficient * D**exponent
    curve = boundary_curve(S, T, offset, 0.0, coefficient, exponent, reach=6.0)
    at_s, at_t = (cost(curve, *pair, coefficient, exponent) for pair in ((S, offset), (T, 0.0)))
    np.testing.assert_allclose(at_s, at_t, rtol=1e-11, atol=1e-13 * coefficient)
    if len(curve):
        # a step along the axis from s to t is a step into the region of t
        step = 1e-6 * (T - S) / D
        sites, offsets = np.array([S, T]), [offset, 0.0]
        assert (selection_owner(curve + step, sites, offsets, coefficient, exponent) == 1).all()
        assert (selection_owner(curve - step, sites, offsets, coefficient, exponent) == 0).all()


@given(gaps, st.floats(1.01, 6.0))
@few
def test_above_exponent_one_both_sites_keep_a_region(gap, exponent) -> None:
    # behind the dearer site the way to the other one grows without bound, so that the curve comes near enough
    reach = D * (1.0 + abs(gap)) * max(2.0, (2.0 * abs(gap)) ** (1.0 / (exponent - 1.0)))
    if reach < 1e12:
        assert len(boundary_curve(S, T, gap * D**exponent, 0.0, 1.0, exponent, reach=reach)) == 401


@pytest.mark.parametrize("exponent", [1.0, 2.0, 2.5, 4.0])
def test_equal_offsets_give_the_perpendicular_bisector(exponent: float) -> None:
    curve = boundary_curve(S, T, 0.4, 0.4, 0.28, exponent, reach=5.0)
    np.testing.assert_allclose((curve - 0.5 * (S + T)) @ (T - S), 0.0, atol=1e-12)
    np.testing.assert_allclose(curve[0] + curve[-1], S + T, atol=1e-12)
    assert np.hypot(*(curve[0] - S)) == pytest.approx(5.0)


@pytest.mark.parametrize("gap", [-1.7, -0.4, 0.3, 2.0])
def test_exponent_two_gives_the_straight_line_of_a_power_diagram(gap: float) -> None:
    offset, coefficient = gap * 0.28 * D * D, 0.28
    curve = boundary_curve(S, T, offset, 0.0, coefficient, 2.0, reach=5.0)
    # |x − s|² + β_s/ξ = |x − t|² + β_t/ξ is linear in x
    level = 0.5 * (T @ T - S @ S - offset / coefficient)
    np.testing.assert_allclose(curve @ (T - S), level, atol=1e-12)


@pytest.mark.parametrize("gap", [-0.7, -0.2, 0.5])
def test_exponent_one_gives_a_branch_of_a_hyperbola(gap: float) -> None:
    curve = boundary_curve(S, T, gap * D, 0.0, 1.0, 1.0, reach=5.0)
    axis = (T - S) / D
    along = (curve - 0.5 * (S + T)) @ axis
    across = (curve - 0.5 * (S + T)) @ np.array([-axis[1], axis[0]])
    half = 0.5 * abs(gap) * D
    np.testing.assert_allclose((along / half) ** 2 - across**2 / (0.25 * D * D - half**2), 1.0, rtol=1e-9)
    assert (np.sign(along) == -np.sign(gap)).all()


def test_at_exponent_one_a_dear_site_has_no_region() -> None:
    assert boundary_curve(S, T, 1.01 * D, 0.0, 1.0, 1.0, reach=50.0).shape == (0, 2)
    assert rival_area(3.0, D, 1.01 * D, 0.0, 1.0, 1.0) == pytest.approx(9.0 * np.pi)
    assert rival_area(3.0, D, 0.0, 1.01 * D, 1.0, 1.0) == pytest.approx(0.0, abs=1e-9)


def segment(radius: float, height: float) -> float:
    """Return the area of the disc beyond a straight line at this height from its centre."""
    height = min(max(height, -radius), radius)
    return radius**2 * np.arccos(height / radius) - height * np.sqrt(radius**2 - height**2)


@given(st.floats(0.05, 4.0), st.floats(0.05, 2.0), st.floats(-3.0, 3.0))
@few
def test_areas_at_exponent_two_are_segments_of_a_disc(radius, separation, gap) -> None:
    # x D = (D² − gap)/2 is where the line stands that bounds the region of t
    expected = segment(radius, 0.5 * (separation - gap / separation))
    area = rival_area(radius, separation, 0.28 * gap, 0.0, 0.28, 2.0)
    assert area == pytest.approx(expected, abs=2e-9 * radius**2)


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.5, 4.0, 6.0])
def test_areas_are_what_falls_into_them(exponent: float) -> None:
    rng, count = np.random.default_rng(int(10 * exponent)), 40_000
    for gap in rng.uniform(-2.0, 2.0, 12):
        radius = rng.uniform(0.3, 3.0)
        r, angle = radius * np.sqrt(rng.random(count)), rng.uniform(0.0, 2.0 * np.pi, count)
        point = S + np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1)
        offset = gap * D**exponent
        hit = (cost(point, T, 0.0, 1.0, exponent) < cost(point, S, offset, 1.0, exponent)).mean()
        share = rival_area(radius, D, offset, 0.0, 1.0, exponent) / (np.pi * radius**2)
        assert abs(hit - share) < 4.5 * np.sqrt(max(share * (1.0 - share), 1e-6) / count)


@given(gaps, st.floats(0.0, 2.0), exponents)
@few
def test_a_wait_at_t_shrinks_its_region(gap, wait, exponent) -> None:
    offset = gap * D**exponent
    before, after = (rival_area(2.0, D, offset, w, 1.0, exponent) for w in (0.0, wait))
    assert after <= before + 1e-8


def test_regions_of_several_sites() -> None:
    sites, offsets = np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 1.0]]), np.array([0.9, 0.4, 0.6])
    x, y = np.linspace(-1.0, 2.0, 61), np.linspace(-1.5, 2.0, 71)
    regions = selection_regions(sites, offsets, 0.28, 2.5, x=x, y=y)
    assert regions.owner.shape == (71, 61)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    every = np.stack([cost(grid, *pair, 0.28, 2.5) for pair in zip(sites, offsets, strict=True)])
    np.testing.assert_array_equal(regions.owner, every.argmin(axis=0))
    assert sum(regions.share(s) for s in range(3)) == pytest.approx(1.0)
    assert {(b.first, b.second) for b in regions.boundaries} == {(0, 1), (0, 2), (1, 2)}
    for boundary in regions.boundaries:
        curve = boundary.curve[np.isfinite(boundary.curve[:, 0])]
        assert len(curve) > 50
        costs = np.stack([cost(curve, *pair, 0.28, 2.5) for pair in zip(sites, offsets, strict=True)])
        np.testing.assert_allclose(costs[boundary.first], costs.min(axis=0), rtol=1e-12)
        np.testing.assert_allclose(costs[boundary.second], costs.min(axis=0), rtol=1e-12)
        assert (np.abs(curve - [0.5, 0.25]) <= [1.5, 1.75]).all()


def test_a_site_that_nobody_chooses_has_no_boundary() -> None:
    sites, x = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.1]]), np.linspace(-1.0, 2.0, 31)
    regions = selection_regions(sites, [0.1, 0.1, 50.0], 0.28, 2.5, x=x, y=x)
    assert [(b.first, b.second) for b in regions.boundaries] == [(0, 1)]
    assert selection_owner([0.5, 0.1], sites, [0.1, 0.2, np.inf], 0.28, 2.5) == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: boundary_curve(S, S, 0.0, 0.0, 1.0, 2.0, reach=1.0), "`rival` is .*merge sites"),
        (lambda: boundary_curve(S, T, np.inf, 0.0, 1.0, 2.0, reach=1.0), "`offset` is inf"),
        (lambda: boundary_curve(S, T, 0.0, 0.0, 1.0, 0.9, reach=1.0), "`delay_exponent` is 0.9.*at least 1"),
        (lambda: boundary_curve(S, T, 0.0, 0.0, 1.0, 2.0, reach=0.0), "`reach` is 0.0"),
        (lambda: boundary_curve(S, T, 0.0, 0.0, 1.0, 2.0, reach=1.0, points=4), "`points` is 4.*odd"),
        (lambda: rival_area(1.0, 0.0, 0.0, 0.0, 1.0, 2.0), "`separation` is 0.0"),
        (lambda: rival_area(-1.0, 1.0, 0.0, 0.0, 1.0, 2.0), "`radius` is -1.0"),
        (lambda: selection_owner([0.0], [S, T], [0.0, 0.0], 1.0, 2.0), r"`point` is of shape \(1,\)"),
        (lambda: selection_owner([np.nan, 0.0], [S, T], [0.0, 0.0], 1.0, 2.0), "`point` is nan"),
        (lambda: selection_owner(S, [S, T], [0.0], 1.0, 2.0), r"`offset` is of shape \(1,\)"),
        (lambda: selection_owner(S, [S, T], [np.inf, np.inf], 1.0, 2.0), "at least one finite"),
        (lambda: selection_regions([S, T], [0, 0], 1.0, 2.0, x=[1, 0], y=[0, 1]), "`x` is .*increasing"),
    ],
)
def test_bad_input_is_one_line(call, words: str) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
