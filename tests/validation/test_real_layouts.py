"""Real networks: what they are called depends on what they are compared with, and their worth on people and load.

Published ground: operators' networks are repulsive one by one (A. Guo and M. Haenggi, IEEE Trans. Wireless Commun. 12,
2013; J. S. Gomez et al., arXiv 1505.06073); a layout that keeps apart gains over a Poisson one (arXiv 1505.02310).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import geoedge as ge
from geoedge.scenario import Scenario
from geoedge.sites import (
    clark_evans,
    concave_window,
    envelope_test,
    following_demand,
    layout_statistics,
    merged_alike,
    place_profiles,
    smoothed_sites,
    study_window,
    survey_sites,
)
from geoedge.study import Study
from geoedge.study.window import window_parts
from geoedge.workload import build_workload

SHARED = Path(__file__).parents[3] / "shared" / "data"
CENTRE, REGION = SHARED / "sites" / "melbourne-cbd-optus.csv", SHARED / "sites" / "melbourne-metro-optus.csv"

pytestmark = [pytest.mark.shared_data, pytest.mark.slow]


@pytest.fixture(scope="module")
def luxembourg() -> Study:
    """Monaco's people on Luxembourg's streets and one carrier's sites, as many requests a site."""
    scenario: Scenario = ge.load_scenario("monaco").override(
        {
            "city.source": SHARED / "osm" / "luxembourg.osm.gz",
            "city.buildings": SHARED / "osm" / "luxembourg-buildings.gpkg",
            "sites.source": SHARED / "sites" / "luxembourg-lte.csv",
            "sites.merge_distance_m": 0.0,
            "demand.request_rate_per_user_s": 0.0033,
            "radio.delay_coefficient": 0.030,
        }
    )
    return ge.prepare(scenario)


def test_luxembourg_has_streets_buildings_and_sites(luxembourg: Study) -> None:
    city, layout = luxembourg.city, luxembourg.layout
    assert len(city.buildings) == 13_552
    assert city.report["buildings_file"]["rows"] == 13_552
    assert 60.0 < city.area_km2 < 70.0
    assert sum(mode["street_km"] for mode in city.report["streets"].values()) > 900
    assert city.contains(city.buildings.xy).all()
    # Five of 38 stand a kilometre and more from any building, along motorways.
    assert (len(layout), layout.report["dropped"]["outside"]) == (33, 5)


def test_luxembourgs_carrier_looks_clustered_and_keeps_sites_apart_where_people_are(
    luxembourg: Study,
) -> None:
    layout, land = luxembourg.layout, luxembourg.city.boundary
    assert envelope_test(layout, land, simulations=999, rng=1).above_m is not None
    people = following_demand(window_parts(luxembourg, 1)[0][0], land, len(layout))
    beside_people = clark_evans(layout, land, simulate=people, simulations=499, rng=1)
    assert beside_people.expected < 0.75
    assert beside_people.z > 1.5
    assert beside_people.p_value < 0.1


def test_luxembourgs_layout_is_worth_more_than_random_sites_and_most_so_at_light_load(
    luxembourg: Study,
) -> None:
    table = ge.deployment_gain(
        luxembourg, targets=[0.8], loads=(0.3,), layouts=8, parts=1, rng=1, workers=1
    ).table
    light, present = table[table["reference"] == "layouts"].to_dict("records")
    assert not light["present"]
    for row in (light, present):
        assert row["rank"] == 8  # more than any of the Poisson layouts
        assert row["gain"] > row["poisson_high"]
        assert row["shift_s"] > row["poisson_shift_high_s"]
    assert light["gain_low"] > present["gain_high"]  # of one layout, over the same reference layouts


def test_melbournes_centre_huddles_keeps_apart_or_neither_as_its_rows_are_merged() -> None:
    rows = survey_sites(CENTRE, merge_distance_m=0.0, simulations=39)
    window = study_window(rows.window)
    assert len(rows.layout) == 125
    assert 1.5 < window.area_km2 < 2.2
    huddle = layout_statistics(rows.layout, window, bootstrap=0)
    assert huddle.kind == "clustered"
    assert huddle.clark_evans.z < -2.0
    merged = survey_sites(CENTRE, merge_distance_m=50.0, simulations=39).layout
    apart = layout_statistics(merged, window, bootstrap=0)
    assert len(merged) == 83
    assert apart.kind == "regular"
    alike = merged_alike(partial(window.uniform, 125), 50.0, window)
    neither = clark_evans(merged, window, simulate=alike, simulations=499)
    assert neither.expected == pytest.approx(apart.clark_evans.ratio, abs=0.06)
    assert abs(neither.z) < 1.5


def test_melbournes_region_is_uneven_before_it_is_anything_else() -> None:
    survey = survey_sites(REGION, merge_distance_m=50.0, simulations=39)
    assert survey.report["rows"] == 1464
    assert survey.statistics is not None
    assert survey.statistics.kind == "clustered"
    assert survey.statistics.clark_evans.ratio < 0.85
    assert survey.statistics.uneven is not None
    assert survey.statistics.uneven.z > -2.0  # no closer than sites of as uneven a density


def test_melbournes_centre_gains_a_little_by_its_distances() -> None:
    scenario = ge.load_scenario("monaco")
    work = build_workload(scenario.workload, scenario.hardware)
    survey = survey_sites(CENTRE, merge_distance_m=50.0, simulations=39)
    layout = survey.layout.with_profile(place_profiles(len(survey.layout), work.placement_probability, 1))
    radio = {"delay_coefficient": 8.0, "delay_exponent": 2.5}
    gain = ge.layout_gain(
        layout, survey.window, work, targets=[0.8], loads=(0.6,), layouts=20, rng=1, workers=1, **radio
    )
    row = gain.table.set_index("reference").loc["layouts"]
    assert (
        row["rank"] >= 19
    )  # of 20; about the best of them, no more: single layouts scatter by as much as it gains
    assert 1.0 < row["gain"] < 1.1
    assert row["poisson_low"] < 1.0 < row["poisson_high"]
    gap = ge.explain_layout(
        layout,
        survey.window,
        work,
        len(layout) * work.type_probability,  # one a second and site, about half of what they can serve
        ttft_target_s=0.8,
        layouts=12,
        rng=1,
        workers=1,
        **radio,
    )
    steps = gap.table.set_index("effect")["change"]
    assert steps["layout"] > 0.0
    assert gap.end.value - gap.start.value == pytest.approx(steps.sum(), abs=1e-9)
    assert np.isfinite(gap.table[["low", "high"]].to_numpy()[:2]).all()


def test_melbournes_region_gains_by_being_uneven_and_by_luck_in_its_density_not_by_its_distances() -> None:
    scenario = ge.load_scenario("monaco")
    work = build_workload(scenario.workload, scenario.hardware)
    layout = survey_sites(REGION, merge_distance_m=50.0, simulations=39).layout
    layout = layout.with_profile(place_profiles(len(layout), work.placement_probability, 1))
    window = concave_window(layout)
    assert len(layout) == 1318
    assert 4500.0 < window.area_km2 < 5500.0  # the hull has hills and a bay as well
    gap = ge.explain_layout(
        layout,
        window.polygon,
        work,
        1.065 * len(layout) * work.type_probability,  # 0.55 of what they can serve
        density=smoothed_sites(layout, window),
        delay_coefficient=0.0241,  # 12 ms over the mean distance to the nearest site
        delay_exponent=2.5,
        ttft_target_s=0.8,
        cell_m=(window.area_m2 / (12 * len(layout))) ** 0.5,
        layouts=2,
        rng=1,
        workers=1,
    )
    steps = gap.table.set_index("effect")["change"]
    assert gap.end.value - gap.start.value == pytest.approx(steps.sum(), abs=1e-9)
    assert gap.end.value == pytest.approx(0.844, abs=0.004)
    assert steps["load"] < -0.01
    assert -0.04 < steps["window"] < -0.01
    assert steps["unevenness"] > 0.0
    assert 0.005 < steps["fit"] < 0.03
    assert abs(steps["arrangement"]) < 0.012
    assert abs(steps["placement"]) < 0.01
