"""Sites that follow demand, streets and rooftops."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from scipy import stats

from geoedge.city.city import BuildingTable, City, PlaceTable
from geoedge.city.demand import Demand
from geoedge.city.streets import StreetGraph
from geoedge.errors import CityError
from geoedge.scenario import ProcessConfig, SitesConfig
from geoedge.sites import draw_layout, make_layout
from geoedge.sites.restricted import capped_shares, street_lengths

LAND = shapely.union_all([shapely.box(0, 0, 1000, 1000), shapely.box(2000, 0, 3000, 1000)])


def streets() -> StreetGraph:
    """Return a two-way street of 800 m, a one-way street of 400 m around a corner, and one of 500 m off the land."""
    return StreetGraph(
        mode="drive",
        node_xy=np.array([[100.0, 100.0], [900.0, 100.0], [700.0, 300.0], [1200.0, 100.0], [1700.0, 100.0]]),
        edge_from=np.array([0, 1, 1, 3], dtype=np.int32),
        edge_to=np.array([1, 0, 2, 4], dtype=np.int32),
        edge_length=np.array([800.0, 800.0, 400.0, 500.0]),
        edge_speed=np.full(4, 10.0),
        geometry_offset=np.array([0, 2, 4, 7, 9]),
        geometry_xy=np.array(
            [
                *([100.0, 100.0], [900.0, 100.0], [900.0, 100.0], [100.0, 100.0]),
                *([900.0, 100.0], [900.0, 300.0], [700.0, 300.0], [1200.0, 100.0], [1700.0, 100.0]),
            ]
        ),
    )


def city() -> City:
    rng = np.random.default_rng(0)
    xy = np.vstack((rng.random((60, 2)) * 1000, [[1500.0, 500.0]]))
    kind = np.zeros(61, dtype=np.int64)
    kind[:10] = 7  # garages
    table = BuildingTable(xy, np.linspace(50, 2000, 61), np.full(61, 2.0), kind, np.zeros(61, dtype=np.bool_))
    none = np.zeros(0, dtype=object)
    return City(
        "Test",
        "EPSG:32632",
        "0",
        "nobody",
        "unknown",
        LAND,
        {"drive": streets()},
        table,
        PlaceTable(np.zeros((0, 2)), none, none),
    )


def test_sites_follow_the_cells_of_demand_on_land_alone():
    # The second cell reaches half out of the land, the third is off it: shares 1/4, 3/4 and none.
    demand = Demand(
        np.array([[500.0, 500.0], [1000.0, 500.0], [1500.0, 500.0]]), np.array([[1.0], [3.0], [9.0]]), 200.0
    )
    layouts = [draw_layout("demand", LAND, 20.0, seed, demand=demand) for seed in range(200)]
    xy = np.vstack([one.xy for one in layouts])
    assert shapely.contains_xy(LAND, *xy.T).all()
    assert len(xy) / 200 == pytest.approx(40.0, abs=4 * np.sqrt(40 / 200))
    first, second = xy[np.abs(xy[:, 0] - 500) <= 100], xy[xy[:, 0] >= 900]
    assert len(first) + len(second) == len(xy)
    assert len(second) / len(xy) == pytest.approx(0.75, abs=4 * np.sqrt(0.75 * 0.25 / len(xy)))
    assert stats.kstest((second[:, 0] - 900) / 100, "uniform").pvalue > 1e-3
    assert stats.kstest((first[:, 1] - 400) / 200, "uniform").pvalue > 1e-3


def test_a_sliver_of_a_cell_gets_its_sites_too():
    demand = Demand(np.array([[1099.9, 500.0]]), np.array([[1.0]]), 200.0)
    xy = draw_layout("demand", LAND, 20.0, 0, demand=demand).xy
    assert ((xy[:, 0] >= 999.9) & (xy[:, 0] <= 1000.0)).all()


def test_sites_stand_at_points_of_demand_and_around_a_torus():
    points = Demand.from_points([[10.0, 10.0], [90.0, 90.0]], [1.0])
    xy = draw_layout("demand", shapely.box(0, 0, 1000, 1000), 30.0, 1, demand=points).xy
    assert set(map(tuple, xy)) == {(10.0, 10.0), (90.0, 90.0)}
    cells = Demand(np.array([[0.0, 0.0]]), np.array([[1.0]]), 100.0)
    xy = draw_layout("demand", (1000.0, 1000.0), 30.0, 1, demand=cells).xy
    assert (np.minimum(xy, 1000.0 - xy) <= 50.0).all()
    assert (xy > 500.0).any()


def test_a_two_way_street_counts_once_and_sites_are_uniform_along_it():
    assert sorted(street_lengths(streets()).tolist()) == [0.0, 400.0, 500.0, 800.0]
    layouts = [draw_layout("streets", city(), 20.0, seed) for seed in range(200)]
    xy = np.vstack([one.xy for one in layouts])
    assert len(xy) / 200 == pytest.approx(40.0, abs=4 * np.sqrt(40 / 200))
    straight = np.isclose(xy[:, 1], 100.0)
    # 800 of the 1,200 m on the land
    assert straight.mean() == pytest.approx(2 / 3, abs=4 * np.sqrt(2 / 9 / len(xy)))
    assert stats.kstest((xy[straight, 0] - 100) / 800, "uniform").pvalue > 1e-3
    corner = xy[~straight]
    assert (np.isclose(corner[:, 0], 900.0) | np.isclose(corner[:, 1], 300.0)).all()


@pytest.mark.parametrize("weight", ["floor_area", "uniform"])
def test_roofs_are_taken_in_proportion_and_never_twice(weight):
    town = city()
    layouts = [draw_layout("rooftops", town, 5.0, seed, weight=weight) for seed in range(600)]
    roofs = [set(map(tuple, one.xy)) for one in layouts]
    assert all(len(some) == len(one) for some, one in zip(roofs, layouts, strict=True))
    assert np.mean([len(one) for one in layouts]) == pytest.approx(10.0, abs=0.5)
    seen = np.array([[tuple(place) in some for place in town.buildings.xy] for some in roofs]).mean(axis=0)
    assert not seen[:10].any()  # garages
    assert seen[60] == 0.0  # off the land
    share = town.buildings.floor_m2[10:60] if weight == "floor_area" else np.ones(50)
    expected = 10.0 * share / share.sum()
    assert (np.abs(seen[10:60] - expected) < 4.5 * np.sqrt(expected * (1 - expected) / 600)).all()


def test_shares_are_capped_and_still_add_up():
    shares = capped_shares(np.array([100.0, 10.0, 1.0, 1.0, 0.0]), 2.5)
    np.testing.assert_allclose(shares, [1.0, 1.0, 0.25, 0.25, 0.0])


@pytest.mark.parametrize(
    ("name", "density", "given", "words"),
    [
        ("rooftops", 30.0, {}, r"60 sites on 50 roofs of Test; ask for fewer"),
        ("streets", 1.0, {"mode": "walk"}, "`mode` = 'walk': Test has streets for drive; choose one"),
        ("demand", 1.0, {}, "such sites follow the demand, and there is none; give `demand`"),
    ],
)
def test_a_city_that_lacks_something_is_told_in_one_line(name, density, given, words):
    with pytest.raises(CityError, match=words) as caught:
        draw_layout(name, city(), density, 0, **given)
    assert "\n" not in str(caught.value)


def test_streets_need_a_city_and_demand_must_lie_on_the_land():
    with pytest.raises(
        CityError, match="such sites follow the city, and there is none; give a city as `window`"
    ):
        draw_layout("streets", LAND, 1.0, 0)
    with pytest.raises(CityError, match="`demand`: none of it lies in `window`"):
        draw_layout("demand", LAND, 1.0, 0, demand=Demand(np.array([[1500.0, 500.0]]), np.ones((1, 1)), 50.0))


def test_a_scenario_may_name_any_process_and_placement():
    sites = SitesConfig(
        source="streets", density_per_km2=10.0, process=ProcessConfig(mode="drive"), placement="repelled"
    )
    layout = make_layout(city(), sites, (0.5, 0.5), rng=3)
    assert layout.label == "along streets, drive"
    assert layout.crs == "EPSG:32632"
    assert abs(np.diff(np.bincount(layout.profile))[0]) <= 1
    bare = make_layout(city(), sites, rng=3)
    np.testing.assert_array_equal(bare.xy, layout.xy)
    assert bare.report["profiles_placed"] is False
    core = SitesConfig(source="hard_core", density_per_km2=10.0, process=ProcessConfig(radius_m=150.0))
    assert make_layout(city(), core, (1.0,), rng=3).report["parameters"] == {"radius_m": 150.0}
    with pytest.raises(CityError, match="such sites follow the demand, and there is none"):
        make_layout(city(), SitesConfig(source="demand", density_per_km2=10.0), (1.0,), rng=3)
    with pytest.raises(
        CityError, match=r'`sites.density_per_km2` must be given when `sites.source` is "gauss"'
    ):
        make_layout(city(), SitesConfig(source="gauss"), (1.0,), rng=3)
