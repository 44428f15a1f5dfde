"""The gap taken apart: steps add up, effects that are not there are zero, and pairs pay."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import shapely

import geoedge as ge
from geoedge import cli
from geoedge.city.demand import Demand, uniform_demand
from geoedge.compare.gap.field import Ground, _shared, field_readings
from geoedge.compare.gap.readings import combined
from geoedge.compare.gap.words import _pairs, notes
from geoedge.errors import GeoEdgeError
from geoedge.field import solve_field, torus_problem
from geoedge.scenario import load_scenario
from geoedge.sites import Layout, poisson_layout, smoothed_sites
from geoedge.streams import stream
from geoedge.study import prepare
from geoedge.theory import ErlangC, solve
from geoedge.workload import build_workload

spec = importlib.util.spec_from_file_location(
    "town", Path(__file__).parents[1] / "simulation" / "conftest.py"
)
town = importlib.util.module_from_spec(spec)
spec.loader.exec_module(town)

LAND = shapely.box(0.0, 0.0, 4000.0, 3000.0)
LOAD, WINDOW = frozenset({"load"}), frozenset({"load", "count", "window"})
REAL = WINDOW | {"layout", "placement"}
MONACO = load_scenario("monaco")
RADIO = {"delay_coefficient": 0.32, "delay_exponent": 2.5, "ttft_target_s": 0.8}


@pytest.fixture(scope="module")
def workload():
    return build_workload(MONACO.workload, MONACO.hardware)


@pytest.fixture(scope="module")
def rate(workload):
    """Requests [1/s] that keep 24 sites about 0.6 busy."""
    return 28.0 * workload.type_probability


def sites(workload, index: int, count: int = 24) -> Layout:
    """Return uniform random sites."""
    rng = stream(5, "test layout", index)
    return poisson_layout(LAND, None, rng, count=count, placement_probability=workload.placement_probability)


def ground(layout: Layout, workload, demand: Demand, **more) -> Ground:
    known = {
        "layout": layout,
        "land": LAND,
        "demand": (demand,),
        "requests": np.ones(1),
        "workload": workload,
        **RADIO,
        "policy": "load_aware",
        "scope": "site",
        "queue": ErlangC(),
        "metric": "coverage",
        "cell_m": 100.0,
        "seed": 3,
    }
    return Ground(**(known | more))


def crowded(rate) -> Demand:
    """Return the same requests, three quarters of them from a quarter of the land."""
    even = uniform_demand(LAND, rate, 100.0)
    centre = (np.abs(even.xy - (2000.0, 1500.0)) < (1000.0, 750.0)).all(axis=1)
    weight = np.where(centre, 9.0, 1.0)
    return Demand(even.xy, even.rate * (weight / weight.mean())[:, None], even.cell_m)


@pytest.fixture(scope="module")
def gap(workload, rate):
    return ge.explain_layout(
        sites(workload, 0), LAND, workload, crowded(rate), **RADIO, orders="shapley", layouts=8, workers=1
    )


def test_steps_add_up_to_the_whole_and_every_level_is_the_last_one_plus_its_step(gap) -> None:
    assert gap.table["change"].sum() == pytest.approx(gap.total.value, abs=1e-14)
    assert gap.total.value == pytest.approx(gap.end.value - gap.start.value, abs=1e-14)
    levels = gap.start.value + np.cumsum(gap.table["change"])
    assert gap.table["after"].to_numpy() == pytest.approx(levels.to_numpy(), abs=1e-14)
    assert list(gap.table["effect"]) == ["load", "count", "window", "layout", "placement", "demand"]
    assert gap.shapley["change"].sum() == pytest.approx(gap.total.value, abs=1e-14)
    assert (gap.shapley["least"] <= gap.shapley["change"]).all()
    assert (gap.shapley["change"] <= gap.shapley["most"]).all()


def test_ends_are_what_theory_and_field_say_by_themselves(gap, workload, rate) -> None:
    own = ground(sites(workload, 0), workload, crowded(rate))
    assert gap.start.value == pytest.approx(float(solve(own.network(0)).ttft_coverage(0.8)), abs=1e-12)
    from geoedge.field import field_problem

    problem = field_problem(crowded(rate), own.layout, workload, delay_coefficient=0.32, delay_exponent=2.5)
    field = solve_field(problem, tolerance=1e-5).ttft_coverage(0.8)
    assert gap.end.value == pytest.approx(field, abs=2e-3)  # residual of 1e-3 in utilisation
    assert gap.end.low == gap.end.high  # nothing random is left


def test_directions_that_are_known(gap) -> None:
    change = gap.table.set_index("effect")["change"]
    assert change["load"] < 0  # coverage falls the faster the busier a site is
    assert change["window"] < 0  # near the edge there are fewer sites to choose from
    assert change["demand"] < -0.02  # random sites do not stand where the crowd is


def test_even_demand_changes_nothing(workload, rate) -> None:
    even = uniform_demand(LAND, rate, 100.0)
    own = ground(sites(workload, 0), workload, even)
    worlds = [WINDOW, WINDOW | {"demand"}, REAL, REAL | {"demand"}]
    found = field_readings(own, worlds, 3, 1, lambda _: None)
    for without, with_demand in (worlds[:2], worlds[2:]):
        # the total is summed and spread again, which rounds
        assert found[without].values == pytest.approx(found[with_demand].values, abs=1e-12)


def test_given_as_even_demand_is_absent(workload, rate) -> None:
    own = ge.explain_layout(sites(workload, 0, 8), LAND, workload, 0.3 * rate, **RADIO, layouts=2, workers=1)
    row = own.table.set_index("effect").loc["demand"]
    assert (row["change"], row["low"], row["high"]) == (0.0, 0.0, 0.0)
    assert "even" in row["reason"]
    assert any("Absent: demand in places" in sentence for sentence in own.sentences())
    assert "0, absent" in [text.get_text() for text in own.figure().axes[0].texts]


def test_random_sites_are_as_good_as_random_sites(workload, rate) -> None:
    even, changes = uniform_demand(LAND, rate, 100.0), []
    for index in range(16):
        own = ground(sites(workload, index), workload, even, seed=index)
        found = field_readings(own, [WINDOW, REAL], 6, 1, lambda _: None)
        changes.append(found[REAL].value - found[WINDOW].value)
    error = np.std(changes, ddof=1) / np.sqrt(len(changes))
    assert abs(np.mean(changes)) < 3.3 * error  # one layout has its luck, their mean has none
    assert error < 0.02


def test_sites_that_share_their_load_are_theory(workload, rate) -> None:
    # Eq. (39) on many sites without an edge: one load a profile, and no luck but that of the places
    network = ground(sites(workload, 0), workload, uniform_demand(LAND, rate, 100.0)).network(0)
    side = float(np.sqrt(300 / network.site_density))
    shared, own = [], []
    for seed in range(10):
        answer = solve_field(torus_problem(network, side, seed, places=30_000), scope="tier", tolerance=1e-3)
        shared.append(_shared(answer).ttft_coverage(0.8))
        own.append(answer.ttft_coverage(0.8))
    theory = float(solve(network).ttft_coverage(0.8))
    error = np.std(shared, ddof=1) / np.sqrt(len(shared))
    assert abs(np.mean(shared) - theory) < 3.3 * error + 0.005  # a torus of 300 sites varies in density
    assert theory - np.mean(own) > 0.05  # what the mean leaves out if profiles advertise one wait


def test_pairs_pay(workload, rate) -> None:
    own = ground(sites(workload, 0), workload, crowded(rate))
    found = field_readings(own, [WINDOW, WINDOW | {"demand"}], 24, 1, lambda _: None)
    even, places = (reading.values for reading in found.values())
    apart = even.var(ddof=1) + places.var(ddof=1)
    assert (places - even).var(ddof=1) < 0.5 * apart


def test_the_gap_of_a_layout_does_not_depend_on_workers(workload, rate) -> None:
    asked = (sites(workload, 1, 8), LAND, workload, 0.3 * rate)
    one, two = (ge.explain_layout(*asked, **RADIO, layouts=11, workers=workers, rng=9) for workers in (1, 2))
    pd.testing.assert_frame_equal(one.table, two.table, check_exact=True)
    drawn = [ground(asked[0], workload, crowded(rate), seed=seed).twin(0).xy for seed in (9, 10, 9)]
    assert (drawn[0] == drawn[2]).all()
    assert (drawn[0] != drawn[1]).all()


def test_given_their_density_random_sites_and_requests_become_uneven_in_one_step(workload, rate) -> None:
    around = stream(5, "test crowd", 0).normal((1400.0, 1200.0), 500.0, (24, 2))
    own = replace(sites(workload, 0), xy=np.clip(around, 50.0, (3950.0, 2950.0)))
    density = smoothed_sites(own, LAND, neighbours=6)
    asked = {**RADIO, "density": density, "layouts": 4, "cell_m": 250.0, "workers": 1}
    uneven = ge.explain_layout(own, LAND, workload, 0.6 * rate, **asked)
    steps = uneven.table.set_index("effect")
    assert list(steps.index) == ["load", "count", "window", "unevenness", "fit", "arrangement", "placement"]
    assert steps["change"].sum() == pytest.approx(uneven.total.value, abs=1e-14)
    assert steps.loc["unevenness", "change"] > 0  # all stand nearer to each other
    assert steps.loc["arrangement", "label"] == "where sites stand (density given)"
    assert any("own density, smoothed" in note for note in uneven.notes)
    # each random layout is asked by its own smoothed density, as the real one is
    own_fit = uneven.readings[WINDOW | {"unevenness", "fit"}].values[1]
    known = ground(own, workload, density.demand(0.6 * rate), density=density, seed=1)
    drawn = known.twin(1, uneven=True)
    asked_there = smoothed_sites(drawn, LAND, neighbours=6).demand(0.6 * rate)
    again = replace(known, layout=drawn, demand=(asked_there,), density=None)
    (alone,) = field_readings(again, [REAL | {"demand"}], 1, 1, lambda _: None).values()
    assert own_fit == pytest.approx(alone.value, abs=1e-12)
    # the real sites beside sites of their density are another question than beside even ones
    end = ground(own, workload, density.demand(0.6 * rate), cell_m=250.0)
    before, even = field_readings(end, [REAL, REAL | {"demand"}], 4, 1, lambda _: None).values()
    assert even.value == uneven.end.value
    assert abs(steps.loc["arrangement", "change"]) < 0.5 * abs(even.value - before.value)


@pytest.mark.slow
def test_sites_of_pure_chance_gain_by_a_density_made_of_them_and_by_nothing_beyond(workload) -> None:
    count, rng = 60, stream(6, "chance", 0)
    crowd, rest = rng.normal((1400.0, 1200.0), 500.0, (30, 2)), rng.uniform((0, 0), (4000, 3000), (30, 2))
    true = smoothed_sites(np.clip(np.vstack((crowd, rest)), 20.0, (3980.0, 2980.0)), LAND, neighbours=6)
    random = WINDOW | {"unevenness"}
    worlds = [random, random | {"fit"}, random | {"fit", "arrangement"}]
    covered = []
    for k in range(8):
        own = replace(sites(workload, k, count), xy=true.draw(count, stream(7, "chance", k)))
        density = true.of(own)
        asked = density.demand(50.0 * workload.type_probability)
        known = ground(own, workload, asked, density=density, seed=100 + k, cell_m=500.0)
        covered.append([each.value for each in field_readings(known, worlds, 6, 1, lambda _: None).values()])
    fit, stand = np.diff(covered, axis=1).T
    errors = np.std((fit, stand), axis=1, ddof=1) / len(covered) ** 0.5
    assert fit.mean() > 4.0 * errors[0]
    assert abs(stand.mean()) < 3.0 * errors[1]
    assert abs(stand.mean()) < 0.25 * fit.mean()


def test_waits_can_be_explained_too(workload, rate) -> None:
    asked = (sites(workload, 1, 8), LAND, workload, 0.2 * rate)
    own = ge.explain_layout(*asked, **RADIO, metric="wait_s", layouts=4, workers=1)
    assert own.table["change"].sum() == pytest.approx(own.end.value - own.start.value, abs=1e-14)
    theory = solve(ground(asked[0], workload, uniform_demand(LAND, asked[3], 100.0)).network(0))
    assert own.start.value == pytest.approx(theory.parts()["wait"], rel=1e-9)
    assert own.sentences()[0].startswith("Mean wait: Poisson theory says 0.")


def test_too_narrow_intervals_of_simulated_waits_are_said_and_of_nothing_else(study, workload, rate) -> None:
    waits = ground(sites(workload, 1, 8), workload, uniform_demand(LAND, rate, 400.0), metric="wait_s")
    asked = ((waits, study, 2), (waits, None, 0), (replace(waits, metric="coverage"), study, 2))
    said = [any("too narrow" in note for note in notes(own, {}, 4, *more)) for own, *more in asked]
    assert said == [True, False, False]


def test_overload_is_a_finding_for_coverage_and_refused_for_waits(workload, rate) -> None:
    own = ground(sites(workload, 1, 8), workload, uniform_demand(LAND, 0.8 * rate, 100.0))
    theory, found = field_readings(own, [frozenset(), WINDOW], 2, 1, lambda _: None).values()
    assert (theory.value, found.value) == (0.0, 0.0)
    assert found.flags == (("unstable", 2),)
    waits = field_readings(replace(own, metric="wait_s"), [frozenset(), WINDOW], 2, 1, lambda _: None)
    with pytest.raises(GeoEdgeError, match="the answer is infinite with"):
        combined(waits, {WINDOW: 1.0, frozenset(): -1.0})


def test_one_profile_needs_no_placement(workload, rate) -> None:
    alike = sites(workload, 2, 8)
    alike = alike.with_profile(np.zeros(len(alike), dtype=int))
    own = ge.explain_layout(alike, LAND, workload, 0.2 * rate, **RADIO, layouts=3, workers=1)
    assert own.table.set_index("effect").loc["placement", "reason"] == "all sites hold one profile"
    assert own.table.set_index("effect").loc["layout", "change"] != 0.0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"metric": "p95"}, "`metric` must be one of coverage, wait_s, not 'p95'"),
        ({"orders": "all"}, "`orders` must be one of chain, shapley"),
        ({"layouts": 1}, "`layouts` must be an integer of at least 2"),
        ({"workers": 0}, "`workers` must be an integer of at least 1"),
        ({"rng": -1}, "`rng` must be an integer of at least 0"),
        ({"rng": 1.5}, "`rng` must be an integer"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(workload, rate, wrong, words) -> None:
    with pytest.raises(GeoEdgeError, match=words) as error:
        ge.explain_layout(sites(workload, 0), LAND, workload, rate, **RADIO, **wrong)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("explain_layout: ")
    if set(wrong) != {"layouts"}:
        with pytest.raises(GeoEdgeError, match="^explain_gap: " + words):
            ge.explain_gap(MONACO, **wrong)


@pytest.mark.parametrize(("key", "value"), [("radio.distance", "street"), ("field.edge", "buffer")])
def test_other_ground_is_refused_before_anything_is_made(monkeypatch, key, value) -> None:
    monkeypatch.setattr("geoedge.study.prepare", lambda *_, **__: pytest.fail("a study was prepared"))
    with pytest.raises(GeoEdgeError, match=f"^{key}.*a gap") as error:
        ge.explain_gap(MONACO.override({key: value}))
    assert "\n" not in str(error.value)


def test_more_that_is_refused(workload, rate) -> None:
    with pytest.raises(GeoEdgeError, match="`replications` must be an integer of at least 1"):
        ge.explain_gap(MONACO, replications=0)
    with pytest.raises(GeoEdgeError, match="no \\[city\\]"):
        ge.explain_gap(load_scenario("paper"))
    ring = replace(sites(workload, 0), period_m=(4000.0, 3000.0))
    with pytest.raises(GeoEdgeError, match="lies on a torus"):
        ge.explain_layout(ring, LAND, workload, rate, **RADIO)
    with pytest.raises(GeoEdgeError, match="24 of 24 sites stand outside `land`"):
        ge.explain_layout(sites(workload, 0), shapely.box(9e3, 0, 9.5e3, 500), workload, rate, **RADIO)
    with pytest.raises(GeoEdgeError, match="asks for nothing"):
        ge.explain_layout(sites(workload, 0), LAND, workload, 0 * rate, **RADIO)


def test_the_picture_says_every_step_and_cuts_no_word(gap) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = gap.figure()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    axes, beside = figure.axes
    assert beside.get_xlabel() == "change in all 18 orders [points]"
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "Poisson theory",
        *gap.table["label"],
        "real sites (field)",
    ]
    words = [text.get_text() for text in axes.texts]
    assert len(words) == len(gap.table) + 2
    assert all("points" in word for word in words[2:])
    for text in axes.texts:
        box = text.get_window_extent(canvas.get_renderer())
        assert box.x0 >= 0
        assert box.x1 <= axes.get_window_extent().x1 + 1
    bars = [patch for patch in axes.patches if patch.get_width()]
    ends = [bars[0].get_width(), bars[1].get_width()]
    assert ends == pytest.approx([100 * gap.start.value, 100 * gap.end.value])
    assert sum(bar.get_width() for bar in bars[2:]) == pytest.approx(100 * gap.total.value)


def test_words_and_plain_values(gap) -> None:
    shown = repr(gap)
    assert "mean of 18 orders" in shown
    assert "<table" in gap._repr_html_()
    said = gap.sentences()
    assert said[0].startswith("In time within 0.8 s: Poisson theory says")
    told = gap.shapley[(gap.shapley["low"] > 0) | (gap.shapley["high"] < 0)]
    largest = told.loc[told["change"].abs().idxmax(), "label"]
    opening = f"Largest effect, on average over 18 orders: {largest}"
    assert any(sentence.startswith(opening) for sentence in said)
    plain = gap.to_dict()
    assert [row["effect"] for row in plain["table"]] == list(gap.table["effect"])
    assert plain["orders"] == 18


def test_the_two_effects_that_depend_on_each_other_most_are_named(gap) -> None:
    start = gap.readings[WINDOW].value
    both = [WINDOW | {"layout"}, WINDOW | {"demand"}, WINDOW | {"layout", "demand"}]
    tied = [reading.value - start for reading in (gap.readings[world] for world in both)]
    known = {(first, second): values for first, second, *values in _pairs(gap)}
    assert known["where sites stand", "demand in places"] == pytest.approx(tied)
    assert ("finite number of sites", "edge of the window") not in known  # one needs the other
    first, second = max(known, key=lambda pair: abs(known[pair][2] - known[pair][0] - known[pair][1]))
    assert f"What {first} and {second} are worth" in gap.sentences()[-1]


# ------------------------------------------------------------------ with a simulation


@pytest.fixture(scope="module")
def study():
    return prepare(town.make_scenario(), city=town.make_town(), layout=town.make_layout())


ASKED = {"layouts": 4, "replications": 2, "workers": 1, "rng": 4}


@pytest.fixture(scope="module")
def whole(study):
    return ge.explain_gap(study.scenario, study=study, orders="shapley", **ASKED)


@pytest.mark.slow
def test_a_city_ends_in_the_simulation_of_the_scenario_as_it_is(study, whole) -> None:
    from geoedge.sweep import replicate

    (runs,) = replicate(study, [{}], 2, seed=4, workers=1)
    assert whole.end.value == pytest.approx(np.mean([run.metrics["coverage"] for run in runs]), abs=1e-14)
    assert whole.table["change"].sum() == pytest.approx(whole.total.value, abs=1e-13)
    assert whole.shapley["change"].sum() == pytest.approx(whole.total.value, abs=1e-13)
    assert len(whole.readings) == 16 + 8
    assert whole.orders == 108


@pytest.mark.slow
def test_a_chain_is_the_same_with_and_without_other_orders_and_at_any_workers(study, whole) -> None:
    chain = ge.explain_gap(study.scenario, study=study, **(ASKED | {"workers": 2}))
    pd.testing.assert_frame_equal(chain.table, whole.table, check_exact=True)
    assert chain.shapley is None
    assert len(chain.readings) == 11


@pytest.mark.slow
def test_the_same_people_make_runs_comparable(study, whole) -> None:
    worlds = [world for world in whole.readings if "movement" in world]
    first = frozenset(EFFECTS_UP_TO_MOVEMENT)
    assert first in worlds
    apart, together = 0.0, 0.0
    for world in worlds:
        a, b = whole.readings[first].values, whole.readings[world].values
        apart += a.var(ddof=1) + b.var(ddof=1)
        together += (a - b).var(ddof=1)
    assert together < 0.5 * apart


EFFECTS_UP_TO_MOVEMENT = ("load", "count", "window", "layout", "placement", "demand", "movement")


@pytest.mark.slow
def test_effects_that_a_scenario_lacks_are_zero_and_say_why(study) -> None:
    changes = {
        "service.law": "exponential_mixture",
        "routing.policy": "nearest",
        "control.controller": "none",
    }
    scenario = study.scenario.override(changes)
    own = ge.explain_gap(scenario, study=study, **(ASKED | {"replications": 1}))
    rows = own.table.set_index("effect").loc[["service", "telemetry", "controller"]]
    assert (rows[["change", "low", "high"]] == 0.0).all(axis=None)
    assert list(rows["reason"]) == [
        "service is exponential, as theory and field assume",
        "nearest routing heeds no waits",
        "the scenario has none",
    ]
    assert own.table["change"].sum() == pytest.approx(own.total.value, abs=1e-13)


@pytest.mark.slow
def test_a_controller_that_may_move_nothing_changes_nothing(study) -> None:
    scenario = study.scenario.override({"control.migration_budget_bytes": 0})
    own = ge.explain_gap(scenario, study=study, **ASKED)
    row = own.table.set_index("effect").loc["controller"]
    assert (row["change"], row["low"], row["high"]) == (0.0, 0.0, 0.0)
    assert row["reason"] == ""


@pytest.mark.slow
def test_the_command_explains_a_scenario_and_draws(capsys, monkeypatch, tmp_path, small_scenario) -> None:
    path, picture = small_scenario.save(tmp_path / "small.toml"), tmp_path / "gap.png"
    words = ["compare", str(path), "--explain", "--layouts=2", "--replications=1", "-q"]
    monkeypatch.setattr(sys, "argv", ["geoedge", *words, f"--figure={picture}"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    out, err = capsys.readouterr()
    assert (stop.value.code, err) == (0, "")
    assert "where sites stand" in out
    assert "Largest effect: where sites stand" in out
    assert "Known from a single run" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["monaco", "--explain", "--figure=gap.txt"], "a picture ends in .png, .svg, .pdf"),
        (["runs/monaco", "--figure=gap.png"], "the picture is that of --explain"),
        (["monaco", "--explain", "--orders=all"], "`orders` must be one of"),
        (["nowhere", "--explain"], "nowhere: no such scenario"),
        (["paper", "--explain"], "no [city]"),
    ],
)
def test_the_command_refuses_in_one_line(capsys, monkeypatch, words, line) -> None:
    monkeypatch.setattr(sys, "argv", ["geoedge", "compare", "-q", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    out, err = capsys.readouterr()
    assert stop.value.code == 1
    assert out == ""
    assert line in err
    assert err.count("\n") == 1
