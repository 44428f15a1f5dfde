"""Serving regions: exact on the raster, whole as polygons."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from geoedge.errors import GeoEdgeError
from geoedge.field import region_raster, serving_regions
from geoedge.serving.routing import route
from geoedge.sites import Layout

CITY = shapely.Polygon(
    [(0, 0), (2000, 0), (2000, 1500), (1200, 1800), (0, 1500)],
    [[(800, 600), (1100, 600), (1100, 900), (800, 900)]],
)


def layout(n: int = 12, seed: int = 0, period_m: tuple[float, float] | None = None) -> Layout:
    xy = np.random.default_rng(seed).random((n, 2)) * (2000, 1500)
    return Layout(xy, np.zeros(n, dtype=np.int64), ("",) * n, ("",) * n, "test", "EPSG:32632", period_m)


def test_raster_is_the_routers_choice():
    sites, offset = layout(), np.random.default_rng(1).exponential(0.1, (12, 2))
    raster = region_raster((0, 0, 2000, 1500), sites, offset, 0.28, 2.5, 50.0, type_index=1)
    assert raster.site.shape == (30, 40)
    place = np.array([[(7 + 0.5) * 50.0, (21 + 0.5) * 50.0]]) / 1000
    assert raster.site[21, 7] == route(place, 1, sites.xy_km, offset, 0.28, 2.5)[0]


def test_regions_tile_the_land():
    sites, offset = layout(), np.random.default_rng(1).exponential(0.05, (12, 1))
    regions = serving_regions(CITY, sites, offset, 0.28, 2.5, cell_m=20.0)
    assert regions.crs == "EPSG:32632"
    assert regions.site.is_unique
    assert regions.geometry.is_valid.all()
    assert regions.geometry.area.sum() == pytest.approx(CITY.area, rel=1e-6)
    assert regions.geometry.union_all().symmetric_difference(CITY).area == pytest.approx(0.0, abs=1.0)
    assert regions.area_km2.sum() == pytest.approx(CITY.area / 1e6, rel=1e-6)
    inside = np.random.default_rng(2).random((4000, 2)) * (2000, 1800)
    inside = inside[shapely.contains_xy(CITY, *inside.T)]
    chosen = route(inside / 1000, 0, sites.xy_km, offset, 0.28, 2.5)
    area = dict(zip(regions.site, regions.geometry.area / CITY.area, strict=True))
    for site in range(12):
        assert np.mean(chosen == site) == pytest.approx(area.get(site, 0.0), abs=0.02)


def test_a_dear_site_serves_no_land():
    offset = np.zeros((12, 1))
    offset[3] = 50.0
    assert 3 not in set(serving_regions(CITY, layout(), offset, 0.28, 2.5, cell_m=40.0).site)


def test_the_torus_is_honoured():
    sites = layout(2).with_profile([0, 0])
    sites = Layout([[100, 750], [1000, 750]], [0, 0], ("", ""), ("", ""), "test", None, (2000.0, 1500.0))
    raster = region_raster((0, 0, 2000, 1500), sites, np.zeros((2, 1)), 0.28, 2.5, 100.0)
    assert raster.site[7].tolist() == [0] * 5 + [1] * 10 + [0] * 5 or raster.site[7, -1] == 0


@pytest.mark.parametrize(("cell", "words"), [(0.0, "positive number of metres"), (0.01, "cells; choose")])
def test_impossible_cells_are_refused(cell, words):
    with pytest.raises(GeoEdgeError, match=words):
        serving_regions(CITY, layout(), np.zeros((12, 1)), 0.28, 2.5, cell_m=cell)


def test_an_empty_land_is_refused():
    with pytest.raises(GeoEdgeError, match="`boundary` must be a polygon"):
        serving_regions(shapely.Polygon(), layout(), np.zeros((12, 1)), 0.28, 2.5)
