"""A layout's own density, smoothed: what is drawn from it and what demand follows are the same."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from geoedge.errors import CityError
from geoedge.sites import concave_window, convex_window, smoothed_sites, uneven_poisson

BAY = shapely.Polygon([(0, 0), (3000, 0), (3000, 2500), (2100, 2500), (1500, 600), (900, 2500), (0, 2500)])
RATE = np.array([3.0, 1.0])


def town(rng: np.random.Generator, count: int = 120) -> np.ndarray:
    """Return sites of which most stand in a corner of the land."""
    many = np.concatenate((rng.uniform(0, 700, (3 * count, 2)), rng.uniform(0, 3000, (count, 2))))
    inside = many[shapely.contains_xy(BAY, many)]
    return rng.permutation(inside)[:count]


@pytest.fixture
def known():
    return smoothed_sites(town(np.random.default_rng(2)), BAY)


def test_demand_and_drawn_sites_follow_one_density(known) -> None:
    demand, drawn = known.demand(RATE, places=200), known.draw(200_000, np.random.default_rng(3))
    assert demand.total == pytest.approx(RATE)
    assert (demand.rate[:, 0] == 3.0 * demand.rate[:, 1]).all()
    for place in (demand.xy, drawn):
        assert known.window.contains(place).all()
    share = demand.rate.sum(axis=1) / RATE.sum()
    for low, high in ((0, 400), (400, 1000), (1000, 1800)):
        asked = share[((demand.xy >= low) & (demand.xy < high)).all(axis=1)].sum()
        sites = ((drawn >= low) & (drawn < high)).all(axis=1).mean()
        assert asked == pytest.approx(sites, abs=0.004)
    corner = (demand.xy < 700).all(axis=1)
    assert share[corner].sum() > 0.5  # of less than a tenth of the land


def test_every_site_has_as_many_requests_however_much_of_its_kernel_is_outside() -> None:
    alone = np.array([[50.0, 2450.0]])
    xy = np.concatenate((town(np.random.default_rng(5)), alone))
    demand = smoothed_sites(xy, BAY).demand([121.0], places=7)
    rate, places = demand.rate[:, 0], []
    while sum(places) < len(rate):  # the places of a site follow each other, and share one request per second
        first = sum(places)
        places.append(round(1.0 / rate[first]))
        assert rate[first : first + places[-1]] == pytest.approx(np.full(places[-1], 1.0 / places[-1]))
    assert len(places) == 121
    assert min(places) == 7 < max(places)
    assert demand.total == pytest.approx(121.0)


def test_uneven_layouts_are_drawn_from_it(known) -> None:
    one = uneven_poisson(known.xy, BAY)(np.random.default_rng(7))
    np.testing.assert_array_equal(one, known.draw(len(known.xy), np.random.default_rng(7)))
    wide = smoothed_sites(known.xy, BAY, neighbours=60)
    assert (wide.width_m > known.width_m).all()


def test_on_a_torus_kernels_go_round() -> None:
    period = (1000.0, 800.0)
    xy = np.random.default_rng(1).random((40, 2)) * period
    known = smoothed_sites(xy, period)
    for place in (known.demand([1.0]).xy, known.draw(500, np.random.default_rng(2))):
        assert (place >= 0.0).all()
        assert (place < period).all()


def test_an_outline_follows_bays_and_has_land_around() -> None:
    rng = np.random.default_rng(4)
    xy = rng.uniform(0, 3000, (4000, 2))
    xy = xy[shapely.contains_xy(BAY, xy)]
    window, hull = concave_window(xy), convex_window(xy)
    assert window.contains(xy).all()
    assert window.area_m2 < 0.92 * hull.area_m2
    assert not window.contains(np.array([[1500.0, 2300.0]])).any()  # in the bay
    assert window.area_m2 == pytest.approx(BAY.area, rel=0.1)
    assert concave_window(xy, ratio=1.0, buffer_m=0.0).area_m2 < hull.area_m2
    assert concave_window(xy, buffer_m=0.0).area_m2 < window.area_m2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda xy: smoothed_sites(xy, BAY, neighbours=0), "`neighbours` must be at least 1"),
        (lambda xy: smoothed_sites(xy, BAY).demand(RATE, places=0), "`places` must be at least 1"),
        (lambda xy: concave_window(xy, ratio=1.5), "`ratio` must be 0 to 1"),
        (lambda xy: concave_window(xy, buffer_m=-1.0), "`buffer_m` 0 or more"),
        (lambda xy: concave_window(xy[:2]), "at least three places that are not on one line"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(call, words) -> None:
    with pytest.raises(CityError, match=words) as caught:
        call(town(np.random.default_rng(1)))
    assert "\n" not in str(caught.value)
