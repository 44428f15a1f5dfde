"""Deployment gain: on layouts whose gain is known, and what it says where there is none."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from shapely import box

from geoedge.city.demand import uniform_demand, uniform_torus_demand
from geoedge.compare.gain import deployment_gain, layout_gain
from geoedge.compare.gain.crossings import band, band_share, crossings, first_crossing, single_crossings
from geoedge.compare.gain.curves import Ground, coverage_curves, drawn_ground, nested_layout
from geoedge.compare.gain.ensemble import Ensemble
from geoedge.errors import GeoEdgeError
from geoedge.planning.orders import steady_profiles
from geoedge.sites import StudyWindow, smoothed_sites
from geoedge.sites.processes import draw_layout, poisson_layout
from geoedge.theory import ErlangC, solve
from geoedge.theory.density import minimum_density
from geoedge.workload import Workload, build_workload

RADIO = {"delay_coefficient": 0.4, "delay_exponent": 2.5}
SIDE_M = 6000.0
LAND = box(0.0, 0.0, SIDE_M, SIDE_M)


@pytest.fixture(scope="module")
def workload(small_scenario) -> Workload:
    return build_workload(small_scenario.workload, small_scenario.hardware)


def ground_of(layout, workload, window=LAND, demand=None) -> Ground:
    demand = uniform_demand(LAND, 30.0 * workload.type_probability, 200.0) if demand is None else demand
    area = SIDE_M**2 / 1e6
    return Ground(
        layout, window, area, (demand,), np.ones(1), workload, 0.4, 2.5, "load_aware", "site", ErlangC()
    )


def lattice(workload, count_per_km2=1.0):
    mix = workload.placement_probability
    return draw_layout("lattice", LAND, count_per_km2, 3, placement_probability=mix, shift_m=60.0)


# ------------------------------------------------------------------ pieces


def test_every_prefix_holds_its_share_of_profiles_within_a_site() -> None:
    for mix in ([0.45, 0.35, 0.2], [0.15, 0.2, 0.4, 0.25], [1.0, 0.0], [6 / 44, 9 / 44, 18 / 44, 11 / 44]):
        share = np.array(mix)
        order = steady_profiles(share, 300)
        held = np.cumsum(order[:, None] == np.arange(len(share)), axis=0)
        late = np.abs(held - share * np.arange(1, 301)[:, None])
        assert late.max() < 1.0
    assert np.bincount(order[:44]).tolist() == [6, 9, 18, 11]  # whole shares are met exactly


@pytest.mark.parametrize("count", ["fixed", "Poisson"])
def test_fewer_sites_are_part_of_more(workload, count) -> None:
    ground = ground_of(lattice(workload), workload)
    few, many = (nested_layout(ground, count, 1, 0, mean) for mean in (20, 50))
    assert np.array_equal(few.xy, many.xy[: len(few)])
    assert np.array_equal(few.profile, many.profile[: len(few)])
    sizes = [len(nested_layout(ground, count, 1, k, 40)) for k in range(200)]
    if count == "fixed":
        assert set(sizes) == {40}
    else:
        assert np.mean(sizes) == pytest.approx(40, abs=4 * (40 / 200) ** 0.5)
        assert np.var(sizes) == pytest.approx(40, rel=0.5)
        held = np.concatenate([nested_layout(ground, count, 1, k, 40).profile for k in range(200)])
        assert np.bincount(held) / len(held) == pytest.approx(ground.mix, abs=0.03)


def test_first_crossings() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    curves = np.array([[0.0, 0.4, 0.8, 0.2], [0.6, 0.7, 0.7, 0.7], [0.1, 0.1, 0.2, 0.4]])
    assert first_crossing(x, curves, 0.5).tolist() == [2.25, -np.inf, np.inf]
    found = crossings(x, np.array([curves[0]] * 5), 0.5, ("low", "high"))
    assert found == (2.25, 2.25, 2.25, "")
    assert crossings(x, curves[[1, 1, 1]], 0.5, ("low", "high")).note == "low"
    assert crossings(x, curves[[2, 2, 2]], 0.5, ("low", "high")).note == "high"
    mixed = crossings(x, curves[[0, 1, 1, 2, 2]], 0.5, ("low", "high"))
    assert (np.isnan(mixed.low), mixed.high) == (True, np.inf)
    assert (
        mixed.note
        == "the interval is open below, as for some low; the interval is open above, as for some high"
    )


def test_each_layout_is_set_against_the_others() -> None:
    x = np.array([0.0, 1.0, 2.0])
    slopes = np.array([0.1, 0.2, 0.3])
    found = single_crossings(x, slopes[:, None] * x, slopes)  # each layout's own number of sites is at 1
    assert found == pytest.approx([0.1 / 0.25, 0.2 / 0.2, 0.3 / 0.15])


@pytest.mark.parametrize(("count", "share"), [(9, 0.8), (39, 0.95), (79, 0.95), (100, 0.95)])
def test_the_band_holds_one_more_of_the_same_kind(count, share) -> None:
    rng = np.random.default_rng(count)
    held = 0
    for _ in range(2000):
        *known, one = rng.normal(size=count + 1)
        low, high = band(np.array(known))
        held += low <= one <= high
    assert band_share(count) == pytest.approx(share, abs=0.012)
    assert held / 2000 == pytest.approx(band_share(count), abs=4 * (share * (1 - share) / 2000) ** 0.5)


def test_warm_starts_change_nothing(workload) -> None:
    ground = ground_of(lattice(workload), workload)
    taus = np.array([0.4, 0.8])
    together = coverage_curves(ground, ground.layout, [1.2, 0.5, 0.9], taus).coverage
    alone = [coverage_curves(ground, ground.layout, [factor], taus).coverage[0] for factor in (1.2, 0.5, 0.9)]
    assert together == pytest.approx(np.array(alone), abs=1e-3)


# ------------------------------------------------------------------ known gains


@pytest.fixture(scope="module")
def regular(workload):
    demand = uniform_demand(LAND, 25.0 * workload.type_probability, 200.0)
    return layout_gain(
        lattice(workload),
        LAND,
        workload,
        demand,
        targets=[0.6, 1.2],
        loads=[0.3],
        layouts=12,
        workers=1,
        **RADIO,
    )


def test_a_lattice_is_worth_more_than_its_sites(regular) -> None:
    rows = regular.table[regular.table["reference"] == "layouts"]
    assert (rows["gain"] > rows["poisson_high"]).all()
    assert (rows["rank"] == 12).all()
    assert (rows["shift_s"] > rows["poisson_shift_high_s"]).all()
    # single layouts scatter far more than what is not known of their mean
    assert (rows["poisson_high"] - rows["poisson_low"] > rows["gain_high"] - rows["gain_low"]).all()
    assert (rows["poisson_low"] < 1.0).all()
    assert (rows["poisson_high"] > 1.0).all()
    assert (rows["coverage"] > rows["reference_coverage"]).all()
    assert rows["equivalent_per_km2"].to_numpy() == pytest.approx(
        rows["gain"].to_numpy() * regular.site_density
    )
    assert rows["time_ratio"].to_numpy() == pytest.approx(
        1.0 + (rows["shift_s"] / rows["ttft_target_s"]).to_numpy()
    )
    said = regular.sentences()[0]
    assert "by the luck of the mean" in said
    assert "Single Poisson layouts" in said
    assert "covers more than 12 of 12: by that rank more than luck gives" in said
    theory = regular.table[regular.table["reference"] == "theory"]
    assert theory[["rank", "poisson_low", "poisson_high", "gain_low"]].isna().all(axis=None)
    shown = regular.figure()
    assert any("single Poisson layouts" in text.get_text() for text in shown.legends[0].get_texts())


def test_given_a_density_poisson_layouts_and_requests_follow_it(workload) -> None:
    crowd = np.clip(np.random.default_rng(3).normal(1500.0, 400.0, (24, 2)), 50.0, 2950.0)
    own = replace(nested_layout(ground_of(lattice(workload), workload), "fixed", 0, 0, 24), xy=crowd)
    density = smoothed_sites(own, LAND, neighbours=6)
    ground = replace(ground_of(own, workload), density=density)
    few, more = (nested_layout(ground, "fixed", 4, 0, mean) for mean in (10, 30))
    np.testing.assert_array_equal(few.xy, more.xy[:10])
    many = np.concatenate([nested_layout(ground, "fixed", 4, k, 24).xy for k in range(60)])
    asked = density.demand([1.0], places=100)
    for half in (300.0, 700.0, 1200.0):
        sites = (np.abs(many - 1500.0) < half).all(axis=1).mean()
        share = asked.rate[(np.abs(asked.xy - 1500.0) < half).all(axis=1)].sum()
        assert sites == pytest.approx(share, abs=4 * (share * (1 - share) / len(many)) ** 0.5 + 0.01)
    gain = layout_gain(
        own, LAND, workload, targets=[0.8], loads=[0.3], density=density, layouts=4, workers=1, **RADIO
    )
    # each is asked by its own smoothed density, as the layout is, and by the same one with fewer or more sites
    fitted = replace(ground, demand=(density.demand([3.0] * len(workload.type_probability)),), fitted=True)
    first = nested_layout(fitted, "fixed", 4, 0, len(own))
    (its_own,) = drawn_ground(fitted, "fixed", 4, 0).demand
    np.testing.assert_array_equal(its_own.xy, density.of(first).demand([1.0]).xy)
    assert its_own.total == pytest.approx(fitted.demand[0].total)
    assert drawn_ground(ground, "fixed", 4, 0) is ground
    assert list(gain.table["reference"]) == ["layouts"]  # theory knows one density and has no part in it
    assert gain.sentences()


def test_the_equivalent_density_covers_as_much(regular, workload) -> None:
    demand = uniform_demand(LAND, 25.0 * workload.type_probability, 200.0)
    ground = ground_of(lattice(workload), workload, demand=demand)
    row = regular.table.query("reference == 'layouts' and present and ttft_target_s == 1.2").iloc[0]
    mean = round(row["gain"] * len(ground.layout))
    covered = [
        coverage_curves(ground, nested_layout(ground, "fixed", 0, k, mean), [1.0], np.array([1.2])).coverage[
            0, 0
        ]
        for k in range(12)
    ]
    assert np.mean(covered) == pytest.approx(row["coverage"], abs=0.01)


def test_theory_is_asked_the_same(regular, workload) -> None:
    demand = uniform_demand(LAND, 25.0 * workload.type_probability, 200.0)
    ground = ground_of(lattice(workload), workload, demand=demand)
    row = regular.table.query("reference == 'theory' and present and ttft_target_s == 0.6").iloc[0]
    network = ground.networks(1.0)[0]
    assert row["reference_coverage"] == pytest.approx(float(solve(network).ttft_coverage(0.6)))
    assert row["equivalent_per_km2"] == pytest.approx(minimum_density(network, row["coverage"], 0.6))
    later = float(solve(network).ttft_coverage(0.6 + row["shift_s"]))
    assert later == pytest.approx(row["coverage"], abs=1e-9)


def test_the_band_covers_poisson_layouts_and_the_interval_of_the_mean_does_not(workload) -> None:
    period, tau, many = (4000.0, 4000.0), np.array([0.8]), 40
    demand = uniform_torus_demand((4.0, 4.0), 0.7, workload.type_probability, 0.25)
    mix = workload.placement_probability
    own = [poisson_layout(period, None, k, count=16, placement_probability=mix) for k in range(many)]
    own = [layout.with_profile(steady_profiles(mix, 16)) for layout in own]
    ground = Ground(
        own[0], period, 16.0, (demand,), np.ones(1), workload, 0.4, 2.5, "load_aware", "site", ErlangC()
    )
    ensemble = Ensemble(ground, 39, "fixed", 1, 1, None)
    inside, sure = 0, 0
    for layout in own:
        level = coverage_curves(ground, layout, [1.0], tau).coverage
        ensemble.solve(np.ones(1), tau, level)
        row = ensemble.row(0, 0)
        assert row["note"] == ""
        assert (row["poisson_low"] <= row["gain"] <= row["poisson_high"]) == (0 < row["rank"] < 39)
        inside += 0 < row["rank"] < 39
        sure += row["gain_low"] <= 1.0 <= row["gain_high"]
    assert inside >= 34  # of 40 at 0.95 each: fewer than 34 have a chance of 0.3 %
    assert sure < 30
    assert row["poisson_low"] < 1.0 < row["poisson_high"]


@pytest.mark.slow
def test_a_poisson_layout_is_worth_about_itself_and_a_cluster_less(workload) -> None:
    period = (SIDE_M, SIDE_M)
    demand = uniform_torus_demand((6.0, 6.0), 0.7, workload.type_probability, 0.2)
    mix, how = workload.placement_probability, {"targets": [0.8], "loads": [], "layouts": 12, "workers": 1}
    gains = []
    for seed in range(8):
        own = poisson_layout(period, None, seed, count=36, placement_probability=mix)
        gains.append(layout_gain(own, period, workload, demand, rng=seed, **how, **RADIO).table["gain"][0])
    error = np.std(gains, ddof=1) / len(gains) ** 0.5
    assert np.mean(gains) == pytest.approx(1.0, abs=3.0 * error)
    crowd = poisson_layout(box(0, 0, 2500, 2500), None, 1, count=36, placement_probability=mix)
    worse = layout_gain(draw_on_torus(crowd, period), period, workload, demand, **how, **RADIO).table.iloc[0]
    assert worse["gain"] < 0.8
    assert worse["shift_s"] < 0.0


def draw_on_torus(layout, period):
    from dataclasses import replace

    return replace(layout, period_m=period)


# ------------------------------------------------------------------ where there is none


def test_coverage_out_of_reach_is_said_not_made_up(workload) -> None:
    layout = lattice(workload)
    at_sites = uniform_demand(LAND, workload.type_probability, 200.0)
    from geoedge.city.demand import Demand

    demand = Demand(
        layout.xy + 1.0, np.tile(10.0 * workload.type_probability / len(layout), (len(layout), 1))
    )
    # requests come from beside the sites, and the target leaves nothing for the radio: no Poisson site is that near
    radio = {"delay_coefficient": 1e4, "delay_exponent": 2.0}
    found = layout_gain(
        layout, LAND, workload, demand, targets=[0.2], loads=[], layouts=3, workers=1, **radio
    ).table
    assert found["coverage"][0] > 0.3
    first = found.iloc[0]
    assert np.isnan(first["gain"])
    assert np.isnan(first["equivalent_per_km2"])
    assert "do not cover as much" in first["note"]
    # and a target shorter than any prefill covers nobody
    nobody = layout_gain(
        layout, LAND, workload, at_sites, targets=[0.01], loads=[], layouts=2, workers=1, **RADIO
    ).table
    assert nobody["gain"].isna().all()
    assert (nobody["note"] == "the layout covers nobody: any density would do").all()


def test_a_search_cut_short_and_an_open_interval_are_said(workload, monkeypatch) -> None:
    monkeypatch.setattr(importlib.import_module("geoedge.compare.gain.ensemble"), "ROUNDS", 2)
    found = layout_gain(
        lattice(workload), LAND, workload, targets=[0.6], loads=[0.3], layouts=8, workers=1, **RADIO
    )
    row = found.table.iloc[0]
    assert "the search for densities ended after 2 rounds" in row["note"]
    assert "times between those around the gain" in row["note"]
    assert np.isnan(row["poisson_low"])
    assert "the band of gains of single Poisson layouts is open below, as for some 1.00 times" in row["note"]
    assert "worth unknown to" in found.sentences()[0]


def test_even_demand_needs_loads_alone(workload) -> None:
    found = layout_gain(
        lattice(workload), LAND, workload, targets=[0.8], loads=[0.5], layouts=2, workers=1, **RADIO
    )
    assert found.table["load"].tolist() == [0.5, 0.5]
    assert not found.table["present"].any()
    assert found.figure().get_axes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layouts": 1}, "`layouts` = 1 must be at least 2"),
        ({"workers": 0}, "`workers` = 0 at least 1"),
        ({"count": "few"}, "`count` must be"),
        ({"targets": [-1.0]}, "`targets` must be positive"),
        ({"targets": []}, "at least one each"),
        ({"rng": -1}, "`rng` must be a seed"),
        ({"loads": [1.5]}, "`loads` must be above 0 and below 1"),
    ],
)
def test_bad_input_is_refused_in_a_line(workload, change, words) -> None:
    asked = {"targets": [0.8], "loads": [0.5], "layouts": 2, "workers": 1, **change}
    with pytest.raises(GeoEdgeError, match=words) as caught:
        layout_gain(lattice(workload), LAND, workload, **asked, **RADIO)
    assert str(caught.value).startswith("layout_gain: ")
    assert "\n" not in str(caught.value)


def test_profiles_must_be_known(workload) -> None:
    layout = lattice(workload)
    with pytest.raises(GeoEdgeError, match="holds profile 9"):
        layout_gain(
            layout.with_profile(np.full(len(layout), 9)), LAND, workload, targets=[0.8], layouts=2, **RADIO
        )


def test_the_window_must_be_the_layouts(workload) -> None:
    asked = {"targets": [0.8], "loads": [0.5], "layouts": 2, "workers": 1, **RADIO}
    with pytest.raises(GeoEdgeError, match="35 of 35 sites stand outside the window"):
        layout_gain(lattice(workload), box(7.0, 43.0, 8.0, 44.0), workload, **asked)
    with pytest.raises(GeoEdgeError, match="the layout's is None"):
        layout_gain(lattice(workload), (SIDE_M, SIDE_M), workload, **asked)
    with pytest.raises(
        GeoEdgeError, match=r"layout_gain: \d+ of 35 sites stand outside the window"
    ) as caught:
        layout_gain(lattice(workload), box(0.0, 0.0, SIDE_M, SIDE_M - 2000.0), workload, **asked)
    assert "\n" not in str(caught.value)
    with pytest.raises(GeoEdgeError, match="lies on a torus"):
        layout_gain(draw_on_torus(lattice(workload), (SIDE_M, SIDE_M)), LAND, workload, **asked)
    bare, window = (
        layout_gain(lattice(workload), each, workload, **asked) for each in (LAND, StudyWindow(LAND))
    )
    pd.testing.assert_frame_equal(bare.table, window.table)


# ------------------------------------------------------------------ a study


@pytest.mark.slow
def test_a_study_at_any_number_of_workers(small_study) -> None:
    asked = {"targets": [0.8], "loads": [0.4], "layouts": 4, "parts": 1}
    one, two = (deployment_gain(small_study, workers=workers, **asked) for workers in (1, 2))
    pd.testing.assert_frame_equal(one.table, two.table)
    assert one.table["present"].tolist() == [False, False, True, True]
    spread = one.spread()
    assert set(spread["over"]) == {"targets", "loads", "both"}
    assert (one.table["note"] == "").all()


@pytest.mark.parametrize(("key", "value"), [("radio.distance", "street"), ("field.edge", "buffer")])
def test_other_ground_is_refused(small_study, key, value) -> None:
    with pytest.raises(GeoEdgeError, match="a deployment gain") as caught:
        deployment_gain(small_study.scenario.override({key: value}))
    assert "\n" not in str(caught.value)
