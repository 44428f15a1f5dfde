from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from geoedge.city import City
from geoedge.maps import city_map
from geoedge.maps.levels import LevelScale
from geoedge.maps.page import RunData
from geoedge.maps.rundata import association, day_totals, event_rows, ground, moves, site_columns, site_names
from geoedge.maps.view import RunView
from geoedge.policies import POLICIES
from geoedge.results import Results
from geoedge.texts import plain_text
from tests.maps.conftest import HOSTILE, make_events
from tests.maps.test_levels import decoded


def test_every_number_of_a_site_comes_back(run: Results) -> None:
    columns = site_columns(run.epochs)
    for name, column in columns.items():
        scale = LevelScale(**column["scale"])
        for epoch, text in enumerate(column["epochs"]):
            given = run.epochs[run.epochs.epoch == epoch].sort_values("site")[name].to_numpy(dtype=float)
            np.testing.assert_allclose(decoded(text, scale), given, rtol=2e-3, atol=2e-4)


def test_sites_bring_their_street_as_text(run: Results, town: City) -> None:
    data = next(child.data for child in city_map(run, town)._children.values() if isinstance(child, RunData))
    assert data["sites"]["street"] == [plain_text(street) for street in (*HOSTILE[1:], HOSTILE[0])]
    old = replace(run, sites=run.sites.drop(columns="street"))
    data = next(child.data for child in city_map(old, town)._children.values() if isinstance(child, RunData))
    assert data["sites"]["street"] == [""] * len(HOSTILE)


def test_a_site_without_a_name_has_its_number(run: Results) -> None:
    assert site_names(run.sites)[5] == "Site 5"


@pytest.mark.parametrize("policy", ["load_aware", "prefix_only", "nearest"])
def test_the_page_counts_what_the_policy_counts(run: Results, town: City, policy: str) -> None:
    prefill = RunView.of(run, town).workload.prefill_time
    wait = np.linspace(0.0, 2.0, len(prefill))
    rule = association(POLICIES[policy], prefill, 0.3, 2.5)
    own = np.zeros_like(prefill) + rule["counts_prefill"] * prefill + rule["counts_wait"] * wait[:, None]
    np.testing.assert_array_equal(POLICIES[policy](prefill, wait), own)
    np.testing.assert_allclose(rule["prefill_s"], prefill, atol=1e-6)


def test_places_in_degrees_become_the_citys_metres(town: City) -> None:
    fit = ground(town)
    west, south, east, north = town.bounds_lonlat
    lonlat = np.random.default_rng(3).uniform((west, south), (east, north), (200, 2))
    u, v = (lonlat - fit["centre"]).T
    terms = np.column_stack([np.ones_like(u), u, v, u * u, u * v, v * v])
    found = terms @ np.column_stack([fit["x"], fit["y"]])
    np.testing.assert_allclose(found, town.from_lonlat(lonlat), atol=0.01)


def test_the_day_adds_up(run: Results) -> None:
    day = day_totals(run.epochs, run.actions)
    rows = run.epochs.groupby("epoch")[["requests", "missed"]].sum()
    assert day["requests"] == rows.requests.tolist()
    np.testing.assert_allclose(day["coverage"], 1 - rows.missed / rows.requests, atol=1e-4)
    assert day["moves"] == [0, 2]
    assert day_totals(run.epochs.assign(requests=0, missed=0), pd.DataFrame())["coverage"] == [None, None]


def test_moves_keep_the_numbers_behind_them(run: Results) -> None:
    first, second = moves(run.actions)
    assert (first["kind"], first["site"], first["partner"], first["from"], first["to"]) == (
        "replicate",
        1,
        -1,
        1,
        2,
    )
    assert (first["bytes"], first["predicted"], first["realised"]) == (2.1e9, 0.012, 0.009)
    assert second["realised"] is None
    assert "<b>agent</b>" in first["reason"]
    assert moves(pd.DataFrame()) == []


def test_a_move_chosen_by_more_than_its_epoch_names_its_horizon(run: Results) -> None:
    told = moves(run.actions.assign(horizon_gain=[0.012, 0.004], horizon_epochs=3))
    assert "horizon_gain" not in told[0]  # the same in both
    assert (told[1]["predicted"], told[1]["horizon_gain"], told[1]["horizon_epochs"]) == (0.001, 0.004, 3)


def test_events_end_with_the_run_and_name_their_sites(run: Results) -> None:
    names = site_names(run.sites)
    crowd, failure = event_rows(make_events(), names, 32_400.0)
    assert (crowd["title"], crowd["radius_m"], crowd["sites"]) == ("Crowd", 150.0, [])
    assert crowd["place"] == [742000, 4373500]
    assert dict(crowd["rows"])["Of those in time"] == "75.0 %"
    assert failure["place"] is None
    assert (failure["end_s"], dict(failure["rows"])["Until"]) == (32_400.0, "after the run")
    assert failure["sites"] == [0, 3]
    assert names[3] in dict(failure["rows"])["Sites"]
    assert event_rows(None, names, 0.0) == []


def test_an_overloaded_site_without_end_of_its_wait_is_kept(run: Results) -> None:
    epochs = replace(run, epochs=run.epochs.assign(advertised_wait_s=np.inf)).epochs
    column = site_columns(epochs)["advertised_wait_s"]
    assert np.isinf(decoded(column["epochs"][0], LevelScale(**column["scale"]))).all()
