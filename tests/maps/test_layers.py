from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoedge.city import City, PlaceTable, StreetNames
from geoedge.maps import city_map
from geoedge.maps.layers import (
    LONGEST_NAME,
    land_layer,
    people_layer,
    place_layer,
    site_layer,
    street_layer,
)
from geoedge.maps.levels import LevelScale
from geoedge.maps.page import MapLayer
from geoedge.maps.rundata import site_load
from geoedge.maps.scales import profile_scale, ttft_scale, utilisation_scale
from geoedge.maps.surfaces import cell_layers, encode_cells, hot_place_layer, on_larger_cells, ttft_layer
from geoedge.maps.wire import UNIT
from geoedge.results import Results
from geoedge.texts import plain_text
from tests.maps.conftest import make_events
from tests.maps.test_levels import decoded


def test_a_site_may_be_coloured_by_load_wait_share_in_time_and_cache(run: Results) -> None:
    profiles = profile_scale(run.meta["profile_names"])
    ways = site_layer(run.sites, profiles, 0.93).description["colourings"]
    assert [way["key"] for way in ways] == ["load", "wait", "in_time", "profile"]
    for way in ways[:3]:
        assert len(way["colours"]) == len(way["edges"]) + 1
        assert way["colours"] == way["legend"]["colours"]
    assert ways[0]["edges"] == list(utilisation_scale().edges)
    assert 0.93 in ways[2]["edges"]
    assert ways[3]["colours"] == list(profiles.colours)


def test_a_site_over_capacity_is_coloured_by_what_is_asked_of_it(run: Results) -> None:
    rows = run.epochs[run.epochs.epoch == 0].sort_values("site")
    np.testing.assert_array_equal(site_load(rows), rows.offered_load)
    idle = rows.assign(utilization=np.nan, offered_load=np.nan)
    assert site_load(idle).tolist() == [0.0] * 6


def test_scales_colour_map_and_legend_alike_in_light_and_dark() -> None:
    for layer in (*cell_layers(_demand(), 0.9), ttft_layer(0.8, mixed=True)):
        (legend,) = layer.description["legends"]
        scale = layer.description["scale"]
        assert scale["colours"] == legend["colours"]
        assert scale.get("dark") == legend.get("dark")
        assert len(legend["ticks"]) == len(scale["edges"])


def _demand() -> object:
    import pandas as pd

    return pd.DataFrame({"demand_per_km2_s": [0.0, 0.3, 40.0]})


def test_the_target_is_one_of_the_contours() -> None:
    assert 0.8 in ttft_scale(0.8).edges
    assert ttft_layer(0.8, mixed=True).description["scale"]["target"] == 0.8


def test_cells_come_back_where_and_what_they_were(run: Results) -> None:
    cells = run.tables["cells"]
    found = encode_cells(cells, 50.0)
    places = np.cumsum(found["steps"])
    x = found["corner"][0] + (places % found["width"] + 0.5) * 50.0
    y = found["corner"][1] + (places // found["width"] + 0.5) * 50.0
    for epoch, rows in cells.groupby("epoch"):
        known = rows.set_index(["x_m", "y_m"]).reindex(zip(x, y, strict=True))
        for name, values in found["values"].items():
            back = decoded(values["epochs"][int(epoch)], LevelScale(**values["scale"]))
            np.testing.assert_allclose(back, known[name], rtol=2e-3, atol=1e-4)


def test_a_cell_that_is_there_in_one_epoch_alone_is_unknown_in_the_others(run: Results) -> None:
    cells = run.tables["cells"]
    found = encode_cells(cells.drop(index=cells.index[3]), 50.0)
    first, second = (
        decoded(text, LevelScale(**found["values"]["ppp_coverage"]["scale"]))
        for text in found["values"]["ppp_coverage"]["epochs"]
    )
    assert np.isnan(first).sum() == 1
    assert not np.isnan(second).any()


@pytest.mark.parametrize("times", [1, 2, 3])
def test_larger_cells_keep_every_request_and_those_in_time(run: Results, times: int) -> None:
    cells = run.tables["cells"]
    large = on_larger_cells(cells, 50.0, times)
    for epoch, rows in cells.groupby("epoch"):
        mine = large[large.epoch == epoch]
        asked = (rows.demand_per_km2_s * 50**2).sum()
        assert (mine.demand_per_km2_s * (50 * times) ** 2).sum() == pytest.approx(asked)
        in_time = (mine.demand_per_km2_s * mine.local_coverage).sum() * (50 * times) ** 2
        assert in_time == pytest.approx((rows.demand_per_km2_s * rows.local_coverage).sum() * 50**2)
        corner = np.array([rows.x_m.min(), rows.y_m.min()]) - 25.0
        number = (mine[["x_m", "y_m"]].to_numpy() - corner) / (50.0 * times)
        np.testing.assert_allclose(number % 1.0, 0.5)


def test_hot_places_are_those_below_the_reliability() -> None:
    layer = hot_place_layer(0.75)
    assert layer.description["limit"] == 0.75
    assert layer.description["legends"][0]["names"] == ["Below 75 % of requests in time"]


def test_people_have_a_colour_for_each_thing_they_do() -> None:
    layer = people_layer(trips=True)
    doing, aims = layer.description["legends"]
    assert doing["names"] == ["Home", "Work", "Leisure", "Street"]
    assert layer.description["activities"] == ["home", "work", "leisure", "street"]
    for colours in ("colours", "dark"):
        assert layer.description["scale"][colours] == doing[colours]
    assert aims["form"] == "lines"  # nobody is on the way to the street
    for part in ("names", "colours", "dark"):
        assert aims[part] == doing[part][:3]
    assert len(people_layer(trips=False).description["legends"]) == 1


def test_the_base_is_one_bundle_a_class_in_light_and_dark(town: City) -> None:
    layer = street_layer(town, 1.0)
    assert [feature[2] for feature in layer.features] == [1, 2]
    assert layer.description["legends"][0]["form"] == "lines"
    assert len(layer.description["dark_styles"]) == len(layer.description["styles"])
    (land,) = land_layer(town.boundary, town.to_lonlat).features
    assert len(land[1]) == 1


def test_streets_bring_their_names_as_short_text_main_roads_first(town: City) -> None:
    named = street_layer(town, 1.0).description["named"]
    assert [name for name, _, _ in named] == [plain_text(n, LONGEST_NAME) for n in town.street_names.name]
    assert [rank for _, rank, _ in named] == [0] + [1] * 9
    assert max(len(name) for name, _, _ in named) == LONGEST_NAME
    ((start, *_),) = named[0][2]
    assert start == round(town.to_lonlat(town.street_names.xy[:1])[0, 0] / UNIT)
    assert street_layer(town, 1.0, names=3).description["named"] == named[:3]
    assert street_layer(replace(town, street_names=StreetNames.none()), 1.0).description["named"] == []
    script = street_layer(town, 1.0).payload
    assert "<" not in script
    assert "{{" not in script


def test_names_come_by_weight_and_those_of_landmarks_first(town: City) -> None:
    layer = place_layer(town).description
    names = [plain_text(name, 40) for name in town.places.name]
    assert layer["name"][0] in (names[0], names[3])  # the town halls
    assert layer["name"][2:] == [names[4], names[1], names[2]]  # a theatre, a cinema, a shop
    assert layer["landmarks"] == 4
    assert layer["sort"][2:] == ["theatre", "cinema", "<b>x</b>"]
    where = town.to_lonlat(town.places.xy[[4, 1, 2]])
    np.testing.assert_allclose(np.array(layer["at"][2:]) * UNIT, where, atol=UNIT)


def test_a_city_without_names_has_an_empty_layer_of_them(town: City) -> None:
    nobody = replace(
        town, places=PlaceTable(np.zeros((0, 2)), np.array([], dtype=object), np.array([], dtype=object))
    )
    assert place_layer(nobody).description["name"] == []


def test_every_layer_of_a_run_asks_one_question(run: Results, town: City) -> None:
    page = city_map(run.with_tables(events=make_events()), town)
    asked = [child for child in page._children.values() if isinstance(child, MapLayer)]
    titles = [
        title
        for layer in asked
        if not layer.description.get("base")
        for title in [way["question"] for way in layer.description.get("colourings", ())]
        or [layer.description["label"]]
    ]
    assert len(titles) == len(set(titles)) == 15
    assert all(title.count("?") == 1 and title.endswith("?") for title in titles)
