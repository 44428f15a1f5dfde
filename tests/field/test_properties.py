"""What must hold for any map: exact owners, whole regions, invariance, and places that sites share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.field import FieldProblem, Geometry, evaluate, serving_regions, solve_field
from geoedge.field.cells import owners
from geoedge.sites import Layout

XI = 0.3


def problem_of(point, site, rate, *, types: int = 1, servers: int = 4, exponent: float = 2.5, cell_m=50.0):
    """Return a problem in which all sites and types are alike."""
    one = np.ones((1, types))
    rate = np.broadcast_to(np.asarray(rate, dtype=float).reshape(-1, 1), (len(point), types)) / types
    geometry = Geometry(point, site, XI, exponent, cell_m)
    profile = np.zeros(len(geometry.site_xy), dtype=int)
    return FieldProblem(
        geometry, rate, profile, 0.1 * one, one, [servers], 0 * one, [1e3] * types, [0.1] * types
    )


def all_costs(problem: FieldProblem, offset: np.ndarray) -> np.ndarray:
    """Return the cost of every place, site and type."""
    geometry = problem.geometry
    place, site = np.indices((len(problem.rate), problem.n_sites))
    way = geometry.way_km(place.ravel(), site.ravel()).reshape(place.shape)
    return geometry.radio_delay(way)[:, :, None] + offset


def layout_of(xy, period_m=None) -> Layout:
    n = len(xy)
    return Layout(xy, np.zeros(n, dtype=int), ("<b>",) * n, ("",) * n, "test", "EPSG:32632", period_m)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_sites=st.integers(1, 400),
    exponent=st.sampled_from([1.0, 2.0, 2.5, 3.7]),
    scale=st.sampled_from([0.0, 0.01, 1.0, 30.0]),
    period=st.booleans(),
    coincident=st.booleans(),
)
def test_owners_are_the_brute_force_argmin(seed, n_sites, exponent, scale, period, coincident):
    """Whatever waits are advertised, the lowest index at a tie; sites may stand on each other, and outside."""
    rng = np.random.default_rng(seed)
    site = rng.uniform(-0.5, 2.5, (n_sites, 2))
    if coincident:
        site = np.round(site)
    point = rng.random((700, 2)) * 2.0
    geometry = Geometry(point, site, XI, exponent, 100.0, (3.0, 3.0) if period else None)
    offset = rng.exponential(1.0, (n_sites, 3)) * scale
    problem = FieldProblem(
        geometry,
        np.ones((700, 3)),
        np.zeros(n_sites),
        np.ones((1, 3)),
        np.ones((1, 3)),
        [4],
        np.zeros((1, 3)),
        np.ones(3),
        np.ones(3),
    )
    cost = all_costs(problem, offset)
    owner = owners(geometry.blocks, offset)
    best = np.take_along_axis(cost, owner[:, None, :], axis=1)[:, 0]
    np.testing.assert_allclose(best, cost.min(axis=1), rtol=1e-12, atol=1e-15)
    clear = (np.partition(cost, 1, axis=1)[:, 1] - best > 1e-12) if n_sites > 1 else np.ones((700, 3), bool)
    assert (owner == cost.argmin(axis=1))[clear].all()


def test_many_sites_are_pruned_by_tiles_exactly():
    """A map large enough for tiles of several blocks."""
    rng = np.random.default_rng(1)
    point, site = rng.random((40_000, 2)) * 20.0, rng.random((1500, 2)) * 20.0
    geometry, offset = Geometry(point, site, XI, 2.5, 100.0), rng.exponential(0.4, (1500, 2))
    assert len(geometry.blocks.tile) < len(geometry.blocks.start) / 4
    owner = owners(geometry.blocks, offset)
    for few in np.array_split(np.arange(40_000), 40):
        radio = geometry.radio_delay(np.hypot(*(point[few, None] - site).transpose(2, 0, 1)))
        for q in range(2):
            np.testing.assert_array_equal(owner[few, q], (radio + offset[:, q]).argmin(axis=1))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1000),
    angle=st.floats(0, 6.3),
    shift=st.tuples(st.floats(-50, 50), st.floats(-50, 50)),
    scale=st.floats(0.2, 5.0),
)
def test_moving_turning_and_scaling_the_map_changes_no_choice(seed, angle, shift, scale):
    rng = np.random.default_rng(seed)
    point, site = rng.random((300, 2)), rng.random((25, 2))
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    base = problem_of(point, site, rng.random(300))
    waits = rng.exponential(0.05, 25)
    moved = replace(
        base,
        geometry=Geometry(point @ turn.T + shift, site @ turn.T + shift, XI / scale**2.5, 2.5, 50 * scale),
    )
    one, other = evaluate(base, waits), evaluate(moved, waits)
    np.testing.assert_array_equal(one.owner, other.owner)
    np.testing.assert_allclose(one.site_rate, other.site_rate, rtol=1e-6, atol=1e-9)
    assert other.mean_serving_distance == pytest.approx(scale * one.mean_serving_distance, rel=1e-6)


@pytest.mark.parametrize(
    ("site", "servers"),
    [
        ([[0.5, 0.5]], 12),
        ([[0.0, 0.5], [1.0, 0.5]], 6),
        ([[0.2, 0.5], [0.5, 0.5], [0.8, 0.5]], 4),  # in one line
        ([[0.5, 0.5]] * 3, 4),  # on one place
        ([[30.0, 0.5], [0.5, -40.0], [0.5, 0.5]], 9),  # two far outside
    ],
)
def test_few_sites_in_degenerate_positions_are_solved(site, servers):
    axis = (np.arange(20) + 0.5) / 20
    point = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    answer = solve_field(problem_of(point, site, np.full(400, 8.0 / 400), types=2, servers=servers))
    assert answer.converged
    assert answer.stable
    assert answer.site_rate.sum() == pytest.approx(8.0)
    if len(np.unique(site, axis=0)) == 1:
        np.testing.assert_allclose(answer.site_arrival_rate, 8.0 / len(site), rtol=1e-6)


def test_demand_exactly_between_two_sites_is_halved():
    answer = solve_field(problem_of([[0.5, 0.0]], [[0.0, 0.0], [1.0, 0.0]], [4.0]))
    np.testing.assert_allclose(answer.site_arrival_rate, 2.0)
    assert answer.owner.tolist() == [[0]]
    by_router = evaluate(answer.problem, answer.advertised_wait)
    assert by_router.entries.share.tolist() == [0.5, 0.5]


def test_a_lump_that_no_site_can_bear_is_split_within_its_tie_span():
    """All requests from one door, five times what a site can serve: the rule of the mixed equilibrium."""
    rng = np.random.default_rng(3)
    site = rng.random((30, 2))
    problem = problem_of([[0.5, 0.5]], site, [0.55 * 30 * 4], cell_m=None)
    answer = solve_field(problem, tolerance=1e-6)
    assert answer.converged
    assert answer.stable
    cost = all_costs(problem, answer.offset)[0, :, 0]
    used = answer.site_arrival_rate > 0
    assert used.sum() > 5
    assert np.ptp(cost[used]) <= problem.geometry.span[0]
    # shares fall in straight proportion to cost
    share = answer.site_arrival_rate[used] / answer.problem.request_rate
    slope = np.polyfit(cost[used], share, 1)[0]
    assert slope == pytest.approx(-1.0 / problem.geometry.span[0], rel=1e-6)


@pytest.mark.parametrize("load", [0.55, 0.9])
def test_a_thousand_sites_on_few_uneven_places_converge(load):
    """Two and a half places a site, some of which ask for several sites' work, in types that caches set apart."""
    rng = np.random.default_rng(8)
    n, places, types = 1000, 2500, 4
    prompt = np.array([1000.0, 2000.0, 4000.0, 8000.0])
    hit = np.minimum(np.array([[0.0], [1000.0], [3500.0]]), prompt)
    prefill = 9e-5 * (prompt - hit)
    occupancy, servers = prefill + 2.0, np.array([5, 5, 4])
    profile = rng.integers(0, 3, n)
    rate = rng.lognormal(0.0, 2.0, (places, 1)) * rng.dirichlet(np.ones(types), places)
    rate *= load * servers[profile].sum() / (rate.sum(axis=0) @ occupancy.mean(axis=0))
    assert (rate @ occupancy[0]).max() > 5 * servers.max()  # lumps
    geometry = Geometry(rng.random((places, 2)) * 3.5, rng.random((n, 2)) * 3.5, 0.32, 2.5, 50.0)
    problem = FieldProblem(geometry, rate, profile, prefill, occupancy, servers, hit, prompt, 9e-5 * prompt)
    answer = solve_field(problem)
    assert answer.residual <= 1e-4
    assert answer.stable
    assert answer.mean_utilization == pytest.approx(load, abs=0.05)
    # nobody is sent where it costs more than a tie span above the cheapest, at the waits that sites then have
    suffered = problem.prefill_time[profile] + answer.mean_wait[:, None]
    entries, some = answer.entries, slice(None, None, 7)
    cost = all_costs(problem, suffered)
    used = cost[entries.place[some], entries.site[some], entries.type[some]]
    regret = used - cost.min(axis=1)[entries.place[some], entries.type[some]]
    slack = np.abs(answer.mean_wait - answer.advertised_wait).max()
    assert (regret <= geometry.span[entries.place[some]] + 2.0 * slack).all()
    assert slack < 0.01


CROSS = shapely.union_all([shapely.box(0, 800, 2400, 1600), shapely.box(800, 0, 1600, 2400)])
HOLED = CROSS.difference(shapely.Point(1200, 1200).buffer(300))
ISLANDS = shapely.union_all([HOLED, shapely.box(2500, 2000, 2900, 2300), shapely.box(3000, 100, 3008, 104)])


@pytest.mark.parametrize("land", [CROSS, HOLED, ISLANDS], ids=["concave", "hole", "islands"])
@pytest.mark.parametrize("n_sites", [1, 2, 3, 40])
def test_regions_cover_any_land_once(land, n_sites):
    rng = np.random.default_rng(n_sites)
    sites = layout_of(rng.uniform(-500, 3000, (n_sites, 2)))
    offset = rng.exponential(0.05, (n_sites, 2))
    regions = serving_regions(land, sites, offset, XI, 2.5, cell_m=40.0, type_index=None)
    for _, of_type in regions.groupby("type_index"):
        assert of_type.geometry.is_valid.all()
        assert shapely.coverage_is_valid(of_type.geometry.to_numpy())
        assert of_type.geometry.area.sum() == pytest.approx(land.area, rel=1e-9)
        assert of_type.union_all().symmetric_difference(land).area < 1e-2
        parts = shapely.get_parts(of_type.geometry.to_numpy())
        alone = [part.area for part in shapely.get_parts(land)]
        assert all(part.area >= 40.0**2 or min(abs(part.area - a) for a in alone) < 1e-3 for part in parts)
    assert set(regions.columns) == {
        "type_index",
        "site",
        "area_km2",
        "geometry",
    }  # no names, which may be markup


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), n_sites=st.integers(1, 60), scale=st.floats(0.0, 0.3))
def test_region_areas_sum_and_agree_with_the_choice(seed, n_sites, scale):
    rng = np.random.default_rng(seed)
    sites, offset = layout_of(rng.random((n_sites, 2)) * 2400), rng.exponential(1.0, (n_sites, 1)) * scale
    regions = serving_regions(HOLED, sites, offset, XI, 2.5, cell_m=30.0)
    assert regions.area_km2.sum() * 1e6 == pytest.approx(HOLED.area, rel=1e-6)
    place = rng.random((3000, 2)) * 2400
    place = place[shapely.contains_xy(HOLED, *place.T)]
    owner = owners(Geometry(place / 1000, sites.xy_km, XI, 2.5).blocks, offset)[:, 0]
    found = np.full(len(place), -1)
    for site, area in zip(regions.site, regions.geometry, strict=True):
        found[shapely.contains_xy(area, *place.T)] = site
    # away from the edges of regions, which may be off by a cell and the tolerance
    edge = shapely.union_all(shapely.boundary(regions.geometry.to_numpy()))
    far = shapely.distance(shapely.points(place), edge) > 60.0
    assert (found[far] == owner[far]).mean() > 0.995
    assert (found >= 0).mean() > 0.999


def test_a_profile_that_never_serves_has_no_region():
    rng = np.random.default_rng(0)
    sites = layout_of(rng.random((9, 2)) * 2400)
    offset = np.where(np.arange(9)[:, None] % 3 == 0, np.inf, 0.0) + np.zeros((9, 2))
    regions = serving_regions(CROSS, sites, offset, XI, 2.5, type_index=None)
    assert not set(regions.site) & {0, 3, 6}
    assert regions.groupby("type_index").area_km2.sum().to_numpy() == pytest.approx(
        CROSS.area / 1e6, rel=1e-9
    )
