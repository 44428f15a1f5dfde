from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from geoedge.city import City
from geoedge.maps.layers import action_layers, hot_site_layers, land_layer, site_layers, street_layer
from geoedge.maps.page import MapLayer
from geoedge.maps.scales import difference_scale, profile_scale, utilisation_scale
from geoedge.maps.surfaces import (
    Canvas,
    coverage_layers,
    demand_layers,
    demand_on_larger_cells,
    difference_layers,
    hot_place_layers,
)
from geoedge.results import Results


def canvas(town: City, tolerance_m: float = 0.0) -> Canvas:
    return Canvas(50.0, tolerance_m, town.to_lonlat)


def tip_of(layer: MapLayer, feature: list) -> dict[str, str]:
    return dict(zip(("title", *layer.description["fields"]), feature[3], strict=True))


def test_a_site_is_coloured_by_its_utilisation_and_shaped_by_its_profile(run: Results) -> None:
    profiles = profile_scale(run.meta["profile_names"])
    layers = site_layers(run.sites, run.epochs, profiles)
    assert [layer.epoch for layer in layers] == [0, 1]
    scale = utilisation_scale()
    for layer in layers:
        rows = run.epochs[run.epochs.epoch == layer.epoch].set_index("site")
        for site, feature in enumerate(layer.features):
            style = layer.description["styles"][feature[2]]
            row = rows.loc[site]
            assert style["shape"] == profiles.shapes[int(row.profile)]
            assert style["fillColor"] == scale.colour(row.offered_load)


def test_the_tip_of_a_site_says_what_was_measured(run: Results) -> None:
    layer = site_layers(run.sites, run.epochs, profile_scale(run.meta["profile_names"]))[0]
    row = run.epochs[(run.epochs.epoch == 0) & (run.epochs.offered_load > 1)].iloc[0]
    tip = tip_of(layer, layer.features[int(row.site)])
    assert tip["Utilisation"] == "100.0 %"
    assert tip["Load offered"] == "110.0 %"
    assert tip["Mean wait"] == "1.1 s"
    assert tip["In time"] == f"{100 * (1 - row.missed / row.requests):.1f} %"
    assert tip["Requests"] == f"{row.requests / 3600:.3g} /s"
    assert tip["Prefill asked"] == "1.1 s/s, more than one GPU has"


def test_a_site_without_requests_and_without_name_is_still_drawn(run: Results) -> None:
    epochs = run.epochs.assign(requests=0, missed=0, utilization=np.nan)
    layer = site_layers(run.sites, epochs, profile_scale(run.meta["profile_names"]))[0]
    tip = tip_of(layer, layer.features[5])
    assert (tip["title"], tip["In time"], tip["Utilisation"]) == ("Site 5", "–", "–")


def test_hot_sites_are_ranked_by_their_share_of_all_misses(run: Results) -> None:
    for layer in hot_site_layers(run.sites, run.epochs):
        rows = run.epochs[run.epochs.epoch == layer.epoch]
        worst = rows[rows.missed > 0].sort_values("missed", ascending=False)
        shares = [tip_of(layer, feature)["Share of all misses"] for feature in layer.features]
        assert shares == [f"{100 * m / rows.missed.sum():.1f} %" for m in worst.missed]
        assert [feature[4]["rank"] for feature in layer.features] == list(range(1, len(worst) + 1))


def test_without_misses_no_site_is_hot(run: Results) -> None:
    assert all(not layer.features for layer in hot_site_layers(run.sites, run.epochs.assign(missed=0)))


def test_a_migration_marks_both_sites_with_what_each_gives_and_takes(run: Results) -> None:
    names = tuple(run.meta["profile_names"])
    (layer,) = action_layers(run.sites, run.actions, names)
    assert layer.epoch == 1
    replicated, taker, giver = (tip_of(layer, feature) for feature in layer.features)
    assert (replicated["From"], replicated["To"], replicated["With"]) == (names[1], names[2], "")
    assert (taker["From"], taker["To"]) == (giver["To"], giver["From"]) == (names[2], names[3])
    assert giver["With"] == taker["title"]
    assert (replicated["Moved"], replicated["Predicted gain"]) == ("2.1 GB", "+1.2 points")
    assert taker["Gain in hindsight (field)"] == "–"
    assert action_layers(run.sites, pd.DataFrame(), names) == []


def test_a_surface_puts_every_cell_in_the_class_of_its_value(run: Results, town: City) -> None:
    cells = run.tables["cells"]
    scale = difference_scale()
    for layer in difference_layers(cells, canvas(town)):
        rows = cells[(cells.epoch == layer.epoch) & cells.local_coverage.notna()]
        level = scale.index((rows.local_coverage - rows.ppp_coverage).to_numpy())
        for feature in layer.features:
            here = level == feature[2]
            tip = tip_of(layer, feature)
            assert tip["title"] == scale.label(feature[2])
            assert tip["Area"] == f"{here.sum() * 50.0**2 / 1e6:.3g} km²"
            share = rows.demand_per_km2_s[here].sum() / rows.demand_per_km2_s.sum()
            assert tip["Share of all requests"] == f"{100 * share:.1f} %"
        assert {feature[2] for feature in layer.features} == set(level.tolist())


@pytest.mark.parametrize("make", [demand_layers, difference_layers])
def test_all_epochs_share_one_scale(run: Results, town: City, make: object) -> None:
    layers = make(run.tables["cells"], canvas(town))  # type: ignore[operator]
    assert [layer.epoch for layer in layers] == [0, 1]
    assert layers[0].description["legends"] == layers[1].description["legends"]
    assert layers[0].description["styles"] == layers[1].description["styles"]
    colours = [style["fillColor"] for style in layers[0].description["styles"]]
    assert colours == layers[0].description["legends"][0]["colours"]


def test_larger_cells_of_demand_keep_every_request_in_its_place(run: Results) -> None:
    cells = run.tables["cells"]
    large = demand_on_larger_cells(cells, 50.0, 2)
    for epoch, rows in cells.groupby("epoch"):
        mine = large[large.epoch == epoch]
        assert (mine.demand_per_km2_s * 100**2).sum() == pytest.approx((rows.demand_per_km2_s * 50**2).sum())
        corner = np.array([rows.x_m.min(), rows.y_m.min()]) - 25.0
        number = (mine[["x_m", "y_m"]].to_numpy() - corner) / 100.0
        np.testing.assert_allclose(number % 1.0, 0.5)
        one = mine.iloc[len(mine) // 2]
        near = (abs(rows.x_m - one.x_m) < 50) & (abs(rows.y_m - one.y_m) < 50)
        assert one.demand_per_km2_s == pytest.approx(rows.demand_per_km2_s[near].sum() / 4)
    same = demand_on_larger_cells(cells, 50.0, 1)
    order = ["epoch", "x_m", "y_m"]
    whole = cells[[*order, "demand_per_km2_s"]].sort_values(order, ignore_index=True)
    pd.testing.assert_frame_equal(same, whole)


def test_hot_places_are_the_cells_below_the_reliability(run: Results, town: City) -> None:
    cells = run.tables["cells"]
    late = cells[(cells.epoch == 0) & (cells.local_coverage < 0.75)]
    layer = hot_place_layers(cells, canvas(town), 0.75)[0]
    (feature,) = layer.features
    assert feature[2] == 0
    whole = hot_place_layers(late, canvas(town), 0.75)[0].features[0][1]
    assert feature[1] == whole
    assert hot_place_layers(cells, canvas(town), 0.0)[0].features == []


def test_cells_without_requests_are_left_blank(run: Results, town: City) -> None:
    cells = run.tables["cells"].assign(local_coverage=np.nan, demand_per_km2_s=0.0)
    for layer in (*coverage_layers(cells, canvas(town), 0.9), *difference_layers(cells, canvas(town))):
        assert layer.features == []


def test_the_base_is_one_bundle_a_class(town: City) -> None:
    layer = street_layer(town, 1.0)
    assert [feature[2] for feature in layer.features] == [1, 2]
    assert layer.description["legends"][0]["form"] == "lines"
    (land,) = land_layer(town.boundary, town.to_lonlat).features
    assert len(land[1]) == 1
