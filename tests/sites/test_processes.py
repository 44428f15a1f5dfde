"""Processes by name, and Poisson layouts: the count is Poisson, the places uniform."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import shapely
from scipy import stats

from geoedge.errors import CityError
from geoedge.scenario import ProcessConfig, SitesConfig
from geoedge.scenario.sections import PROCESS_PARAMETERS
from geoedge.sites import PLACEMENTS, PROCESSES, draw_layout, poisson_layout
from geoedge.sites._models import MODELS

LAND = shapely.union_all([shapely.box(0, 0, 1000, 3000), shapely.box(2000, 0, 4000, 500)])
HOLED = LAND.difference(shapely.box(200, 200, 800, 2800))


def test_the_count_is_poisson_not_fixed():
    # Mean and variance 5 x 4 = 20; the variance of 3,000 counts has a relative sd of about sqrt(2/3000) = 2.6 %.
    count = np.array([len(poisson_layout(LAND, 5.0, seed)) for seed in range(3000)])
    assert count.mean() == pytest.approx(20.0, abs=4 * np.sqrt(20 / 3000))
    assert count.var() == pytest.approx(20.0, rel=0.12)


def test_places_are_uniform_over_the_land():
    xy = poisson_layout(HOLED, None, 5, count=20_000).xy
    assert shapely.contains_xy(HOLED, *xy.T).all()
    parts = [shapely.box(0, 0, 200, 3000), shapely.box(800, 0, 1000, 3000), shapely.box(2000, 0, 4000, 500)]
    parts.append(shapely.box(200, 0, 800, 200))
    share = np.array([part.intersection(HOLED).area for part in parts]) / HOLED.area
    seen = np.array([shapely.intersects_xy(part, *xy.T).sum() for part in parts])
    rest = np.array([1 - share.sum(), 20_000 - seen.sum()])
    p = stats.chisquare(np.append(seen, rest[1]), 20_000 * np.append(share, rest[0])).pvalue
    assert p > 1e-4


def test_a_torus_is_filled_evenly():
    sites = poisson_layout((2000.0, 1000.0), None, 1, count=5000, placement_probability=(0.6, 0.4))
    assert sites.period_m == (2000.0, 1000.0)
    for axis, size in enumerate((2000.0, 1000.0)):
        assert stats.kstest(sites.xy[:, axis] / size, "uniform").pvalue > 1e-4
    assert np.bincount(sites.profile).tolist() == [3000, 2000]  # a fixed count has fixed shares


def test_one_seed_is_one_layout():
    one, two = (poisson_layout(LAND, 3.0, np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one.xy, two.xy)
    np.testing.assert_array_equal(one.profile, two.profile)


@pytest.mark.parametrize(
    ("window", "density", "count", "words"),
    [
        (LAND, -1.0, None, "`density_per_km2` must be a positive"),
        (LAND, np.nan, None, "`density_per_km2` must be a positive"),
        (LAND, None, None, "`density_per_km2` must be a positive"),
        (LAND, 1e-9, None, "drew 0 sites"),
        (LAND, None, 0, "`count` = 0: must be at least 1"),
        (shapely.Polygon(), 1.0, None, "`window` must be a polygon"),
        ((0.0, 1.0), 1.0, None, "`window` must be a polygon, or positive width"),
    ],
)
def test_impossible_draws_are_refused(window, density, count, words):
    with pytest.raises(CityError, match=words) as caught:
        poisson_layout(window, density, 0, count=count)
    assert "\n" not in str(caught.value)


NOWHERE = [name for name, process in PROCESSES.items() if not process.needs]
ISLANDS = shapely.union_all([HOLED, shapely.Point(5000, 2000).buffer(400)])


@pytest.mark.parametrize("name", NOWHERE)
def test_every_process_fills_any_land_and_one_seed_is_one_layout(name):
    for window in (ISLANDS, (3000.0, 2000.0)):
        one, two, other = (draw_layout(name, window, 6.0, seed) for seed in (4, 4, 5))
        np.testing.assert_array_equal(one.xy, two.xy)
        assert one.xy.shape != other.xy.shape or not np.array_equal(one.xy, other.xy)
        assert one.report["process"] == name
        assert one.report["density_per_km2"] == pytest.approx(6.0)
        assert set(one.report["parameters"]) == set(PROCESSES[name].parameters)
        if window is ISLANDS:
            assert shapely.contains_xy(ISLANDS, *one.xy.T).all()
        else:
            assert one.period_m == window


@pytest.mark.parametrize("name", [name for name in NOWHERE if name not in ("ginibre", "gauss", "strauss")])
def test_every_process_is_the_same_everywhere_on_a_torus(name):
    # One site of each of 400 layouts, at random, is uniform over the torus, the seam no exception.
    pick, places = np.random.default_rng(0), []
    for seed in range(400):
        xy = draw_layout(name, (3000.0, 2000.0), 12.0, seed).xy
        places.append(xy[pick.integers(len(xy))] / (3000.0, 2000.0))
    for axis in np.transpose(places):
        assert stats.kstest(axis, "uniform").pvalue > 1e-3
        assert stats.kstest((axis + 0.5) % 1.0, "uniform").pvalue > 1e-3


def test_a_drawn_poisson_layout_is_the_poisson_layout():
    one = draw_layout("poisson", LAND, 6.0, 3, placement_probability=(0.5, 0.5))
    two = poisson_layout(LAND, 6.0, 3, placement_probability=(0.5, 0.5))
    np.testing.assert_array_equal(one.xy, two.xy)
    np.testing.assert_array_equal(one.profile, two.profile)
    assert one.label == "Poisson"


def test_a_fixed_count_has_the_mean_asked_for():
    count = [len(draw_layout("binomial", LAND, 6.1, seed)) for seed in range(400)]
    assert set(count) == {24, 25}
    assert np.mean(count) == pytest.approx(24.4, abs=4 * np.sqrt(0.24 / 400))


def test_the_scenario_knows_every_process_its_parameters_and_their_bounds():
    assert {name: tuple(process.parameters) for name, process in PROCESSES.items()} == PROCESS_PARAMETERS
    fields = ProcessConfig.model_fields
    for process in PROCESSES.values():
        for name, parameter in process.parameters.items():
            value = parameter.value(name, 2e-6)
            assert parameter.problem(value) is None
            assert getattr(ProcessConfig.model_validate({name: value}), name) == value
            said = fields[name].description
            assert str(parameter.default).lower() in said or parameter.default in (0.2, 1.0)
    placement = SitesConfig.model_fields["placement"].annotation
    assert set(get_args(get_args(placement)[0])) == set(PLACEMENTS)


def test_names_and_parameters_are_those_that_fits_have():
    for name, model in MODELS.items():
        assert set(model.parameters) <= set(PROCESSES[name].parameters)


def test_an_unknown_process_is_refused_in_one_line():
    with pytest.raises(
        CityError, match="`name` = 'regular': no such process; choose one of poisson, binomial"
    ):
        draw_layout("regular", LAND, 1.0, 0)
