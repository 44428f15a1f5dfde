"""What lies beyond the edge: nothing, a ring whose requests do not count, or the opposite side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely

from geoedge.city.demand import Demand
from geoedge.errors import GeoEdgeError
from geoedge.field import FieldProblem, Geometry, edged, solve_field
from geoedge.field.edges import ring_demand
from geoedge.sites import Layout

LAND = shapely.box(1000, 2000, 3000, 4000)


def cells(rate: float = 0.01) -> Demand:
    axis = 25.0 + np.arange(40) * 50.0
    xy = np.stack(np.meshgrid(1000 + axis, 2000 + axis), axis=-1).reshape(-1, 2)
    return Demand(xy, np.full((1600, 1), rate), 50.0)


def layout(xy) -> Layout:
    return Layout(xy, np.zeros(len(xy), dtype=int), ("",) * len(xy), ("",) * len(xy), "test", "EPSG:32632")


def solved(part):
    one = np.ones((1, 1))
    geometry = Geometry(part.xy / 1000, part.layout.xy_km, 0.3, 2.5, part.cell_m, part.layout.period_km)
    profile = part.layout.profile
    known = {"counted": part.counted, "own_sites": part.own_sites}
    return solve_field(
        FieldProblem(geometry, part.rate, profile, 0.1 * one, one, [9], 0 * one, [1e3], [0.1], **known)
    )


def test_the_ring_of_even_demand_is_even():
    xy, rate = ring_demand(cells(), LAND, 200.0)
    assert (shapely.distance(LAND, shapely.points(xy)) > 0).all()
    assert (shapely.distance(LAND, shapely.points(xy)) <= 200.0).all()
    np.testing.assert_allclose(rate, 0.01)
    assert len(xy) == pytest.approx(LAND.buffer(200.0).difference(LAND).area / 2500, rel=0.03)


def test_quiet_land_counts_in_the_ring():
    demand = cells()
    west = demand.xy[:, 0] < 2000
    _, rate = ring_demand(Demand(demand.xy[west], demand.rate[west], 50.0), LAND, 200.0)
    assert rate.min() == 0.0
    assert rate.max() == pytest.approx(0.01)


def test_the_citys_requests_alone_count_and_the_ring_loads_its_sites():
    inner, ring = layout([[1500, 2500], [2500, 3500]]), layout([[3200, 2500], [800, 3500]])
    part = edged(cells(), inner, LAND, "buffer", buffer_m=300.0, ring=ring)
    answer = solved(part)
    assert answer.site_arrival_rate.sum() == pytest.approx(part.rate.sum())
    entries, city = answer.entries, part.counted[answer.entries.place]
    weight = np.where(city, entries.share * part.rate[entries.place, 0], 0.0)
    assert weight.sum() == pytest.approx(16.0)
    assert answer.mean_serving_distance == pytest.approx(weight @ answer.serving_distance / 16.0)
    assert answer.ttft_coverage(0.5) == pytest.approx(
        np.average(answer.local_coverage(0.5)[part.counted], weights=part.rate[part.counted, 0])
    )
    assert answer.profile_share.sum() == pytest.approx(1.0)
    assert sum(answer.parts().values()) == pytest.approx(answer.mean_ttft)
    cut = solved(edged(cells(), inner, LAND, "cut"))
    assert cut.problem.n_sites == 2
    assert answer.mean_serving_distance < cut.mean_serving_distance  # sites beyond the edge help


def test_summaries_of_sites_are_about_the_citys_own():
    inner, ring = layout([[1500, 2500], [2500, 3500]]), layout([[3010, 3000], [-9000, 3500]])
    part = edged(cells(0.004), inner, LAND, "buffer", buffer_m=300.0, ring=ring)
    answer = solved(part)
    assert part.own_sites == 2
    assert answer.utilization.shape == (4,)
    assert answer.mean_utilization == pytest.approx(answer.utilization[:2].mean())
    assert answer.mean_utilization > 1.1 * answer.utilization.mean()
    # a crowd in the ring, more than its site can serve, is no trouble of the city's
    crowd = np.argmin(np.hypot(*(part.xy - (3125.0, 3025.0)).T)) == np.arange(len(part.xy))
    assert not part.counted[crowd].any()
    busy = replace(answer, problem=answer.problem.with_rate(np.where(crowd[:, None], 500.0, part.rate)))
    assert busy.utilization[2] >= 1.0
    assert busy.stable
    assert busy.unstable_sites.size == 0


def test_the_torus_joins_opposite_sides():
    part = edged(cells(), layout([[1100, 3000]]), LAND, "torus")
    assert part.layout.period_m == (2000.0, 2000.0)
    answer = solved(part)
    assert answer.serving_distance.max() <= np.hypot(1.0, 1.0)
    middle = solved(edged(cells(), layout([[2000, 3000]]), LAND, "torus"))
    assert answer.mean_serving_distance == pytest.approx(middle.mean_serving_distance, rel=1e-3)


def test_what_makes_no_sense_is_one_line():
    sites = layout([[1500, 2500]])
    with pytest.raises(GeoEdgeError, match="only the sides of a rectangle can be joined"):
        edged(cells(), sites, LAND.union(shapely.box(0, 0, 1000, 1000)), "torus")
    with pytest.raises(GeoEdgeError, match="`edge` must be one of cut, buffer, torus"):
        edged(cells(), sites, LAND, "open")
    with pytest.raises(GeoEdgeError, match="`ring` must hold the sites"):
        edged(cells(), sites, LAND, "buffer", buffer_m=100.0)
    with pytest.raises(GeoEdgeError, match="holds no cell"):
        edged(cells(), sites, LAND, "buffer", buffer_m=1.0, ring=sites)
    with pytest.raises(GeoEdgeError, match="needs demand on cells"):
        ring_demand(replace(cells(), cell_m=None), LAND, 100.0)


def test_scenarios_say_what_they_cannot_have():
    from geoedge import EdgeCity, load_scenario, run

    monaco = load_scenario("monaco")
    with pytest.raises(GeoEdgeError, match=r"field.edge = .torus.: sides are joined for point processes"):
        monaco.override({"field.edge": "torus"})
    street = monaco.override({"radio.distance": "street"})
    for answer in (EdgeCity, run):
        with pytest.raises(GeoEdgeError, match="measures straight lines") as caught:
            answer(street)
        assert "\n" not in str(caught.value)
    drawn = {"sites.source": "poisson", "sites.density_per_km2": 3.0, "field.edge": "torus"}
    with pytest.raises(GeoEdgeError, match="streets end at the edge"):
        monaco.override(drawn | {"radio.distance": "street"})
