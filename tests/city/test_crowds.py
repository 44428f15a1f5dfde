"""Crowds: found by the name of a place, standing on land, there for as long as stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely

from geoedge.city.city import ATTRIBUTION, BuildingTable, City, PlaceTable
from geoedge.city.crowds import find_place, make_crowd, place_of, with_crowds
from geoedge.city.demand import Demand, RequestRates
from geoedge.city.trips import HOUR_S, LEISURE
from geoedge.errors import CityError
from geoedge.scenario import EventConfig
from geoedge.streams import stream

CORNER = np.array([500_000.0, 5_500_000.0])
NAMES = ("chat", "guide")
RATES = RequestRates(
    np.array([1e-3, 1e-3]),
    np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 3.0, 1.0]]),
    np.array([[1.0] * 24, [1.0] * 12 + [2.0] * 12]),
)


def city(names=("Grand Café", "", "Kiosk", "kiosk ", "<script>alert(1)</script>", "Mall", "Mall")) -> City:
    xy = np.array([[200, 200], [10, 10], [300, 300], [310, 300], [50, 50], [0, 0], [900, 900]], dtype=float)
    none = np.zeros(0)
    return City(
        "square",
        "EPSG:32632",
        "0" * 64,
        ATTRIBUTION,
        "2020-01-01",
        shapely.box(*CORNER, *(CORNER + 1000.0)),
        {},
        BuildingTable(np.zeros((0, 2)), none, none, none.astype(np.int64), none.astype(bool)),
        PlaceTable(
            xy[: len(names)] + CORNER,
            np.full(len(names), "amenity=cafe", dtype=object),
            np.array(names, dtype=object),
        ),
    )


def event(**given) -> EventConfig:
    return EventConfig(
        **{"kind": "flash_crowd", "start_hour": 12.5, "duration_s": 3600.0, "people": 500, "radius_m": 100.0}
        | given
    )


def crowd(xy=(500.0, 500.0), **given):
    one = event(**given)
    return make_crowd(one, CORNER + np.array(xy), one.start_s, 0.002, NAMES)


def test_a_place_is_found_by_its_name_in_any_case_and_twins_next_door_are_one():
    assert find_place(city(), " grand CAFÉ") == pytest.approx(CORNER + 200.0)
    assert find_place(city(), "Kiosk") == pytest.approx(CORNER + np.array([305.0, 300.0]))
    assert place_of(city(), event(place="Kiosk")) == pytest.approx(CORNER + np.array([305.0, 300.0]))


def test_a_place_that_is_not_there_is_refused_in_one_line_with_the_nearest_name():
    with pytest.raises(CityError) as caught:
        find_place(city(), "Grand Cafe\n\x1b[31m")
    line = str(caught.value)
    assert line.isprintable()
    assert 'did you mean "Grand Café"?' in line
    assert "give lon and lat" in line
    with pytest.raises(CityError, match="2 places up to 1273 m apart are called so; give lon and lat"):
        find_place(city(), "mall")
    with pytest.raises(CityError, match=r"no place of this name\. Name one of its 0 named places"):
        find_place(city(names=("",)), "anything")


def test_a_point_in_degrees_is_where_it_says():
    lon, lat = city().to_lonlat(CORNER + 400.0)[0]
    assert place_of(city(), event(lon=float(lon), lat=float(lat))) == pytest.approx(CORNER + 400.0, abs=1e-3)


def test_people_stand_evenly_on_the_land_within_the_radius():
    at_the_corner = crowd(xy=(0.0, 0.0), people=20_000)
    xy = at_the_corner.standing(city(), stream(1, "people")) - CORNER
    assert len(xy) == 20_000
    assert (xy >= 0.0).all()
    away = np.hypot(*xy.T)
    assert away.max() <= 100.0
    # Evenly over a quarter of a disc: the square of the distance is uniform, and so is the angle.
    assert (away**2).mean() == pytest.approx(5000.0, abs=4 * 1e4 / np.sqrt(12 * 20_000))
    assert np.arctan2(xy[:, 1], xy[:, 0]).mean() == pytest.approx(np.pi / 4, abs=0.02)


def test_a_crowd_without_land_is_refused():
    with pytest.raises(CityError, match="no land of square within 100 m of longitude") as caught:
        crowd(xy=(-500.0, 0.0)).land(city())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("gather_s", [0.0, 360.0, 3600.0])
def test_people_present_are_those_who_have_come_and_not_left(gather_s):
    one = crowd(gather_s=gather_s)
    start, end = one.start_s, one.end_s
    when = np.linspace(start - 600.0, end + 600.0, 480_001)
    here = (np.clip((when - start) / gather_s, 0.0, 1.0) if gather_s else (when >= start).astype(float)) * (
        when < end
    )
    for low, high in ((start - 600, end + 600), (start - 300, start + 200), (start + 100, start + 1000)):
        inside = (when >= low) & (when <= high)
        assert one.present(low, high) == pytest.approx(500 * here[inside].mean(), rel=2e-4)
    assert one.present(end, end + 100.0) == 0.0


def test_what_is_expected_of_a_crowd_is_its_rate_its_people_and_what_leisure_asks_for():
    one = crowd(gather_s=0.0, duration_s=7200.0)
    asked = one.demand(RATES, one.start_s, one.end_s)
    assert asked.sum() == pytest.approx(0.002 * 500)
    before, after = RATES.at(11)[:, LEISURE], RATES.at(13)[:, LEISURE]
    assert asked / asked.sum() == pytest.approx(after / after.sum())
    early = crowd(gather_s=0.0, start_hour=11.0, duration_s=7200.0).demand(RATES, 11 * HOUR_S, 13 * HOUR_S)
    mean = 0.5 * (before / before.sum() + after / after.sum())
    assert early == pytest.approx(0.002 * 500 * mean)
    named = crowd(types=[{"name": "guide", "weight": 2.0}]).demand(RATES, one.start_s, one.end_s)
    assert named[0] == 0.0


def test_the_expected_demand_gains_the_crowd_where_it_stands_and_keeps_the_rest():
    plain = Demand(CORNER + np.array([[25.0, 25.0], [525.0, 525.0]]), np.full((2, 2), 0.01), 50.0)
    one = crowd(gather_s=0.0)
    epochs = [(one.start_s - 900.0, one.start_s), (one.start_s, one.start_s + 900.0)]
    before, during = with_crowds([plain, plain], epochs, [one], city(), RATES, 50.0)
    assert before is plain
    assert during.request_rate == pytest.approx(plain.request_rate + 0.002 * 500)
    assert len(np.unique(during.xy, axis=0)) == len(during.xy)
    row = np.flatnonzero((during.xy == plain.xy[0]).all(axis=1))
    assert during.rate[row] == pytest.approx(plain.rate[:1])
    centre = (during.rate.sum(axis=1)[:, None] * during.xy).sum(axis=0) - plain.rate.sum(axis=1) @ plain.xy
    assert centre / 1.0 == pytest.approx(CORNER + 500.0, abs=0.5)
    assert replace(one, people=1).cells(city(), 50.0)[1].sum() == pytest.approx(1.0)
