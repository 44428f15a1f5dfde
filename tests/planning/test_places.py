"""Places to equip first: against brute force on small cases, and what a plan promises."""

from __future__ import annotations

import csv
import io
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from geoedge.city.demand import Demand
from geoedge.errors import GeoEdgeError
from geoedge.planning.inputs import placement_limits
from geoedge.planning.places import plan_places
from geoedge.planning.places.field import NONE, Evaluator, equipped, useful_load
from geoedge.planning.places.search import Limits, exchange, grow, useful_profiles
from geoedge.planning.places.yardsticks import _first
from geoedge.planning.window import coarser
from geoedge.study import Study, field_answers, field_inputs
from geoedge.study.window import merged_demand, window_parts
from geoedge.theory import ErlangC, PlacementLimits

AGENT, GUIDE = 2, 3
FREE = PlacementLimits([0.0, 0.0, 0.0, 0.0])


def part_of(study: Study, places: list[int], share: float) -> Study:
    """Return the study on some of its sites, at the demand that fills this share of as many of them."""
    held = np.full(len(study.layout), NONE)
    held[places] = study.layout.profile[places]
    small = study.with_layout(equipped(study.layout, held))
    asked = np.mean([field_inputs(small, each).least_work_share for each in study.demand])
    demand = tuple(Demand(each.xy, each.rate * share / asked, each.cell_m) for each in study.demand)
    return replace(small, demand=demand)


@pytest.fixture(scope="module")
def eight(small_study) -> Study:
    return part_of(small_study, list(range(0, 40, 5)), 0.3)


@pytest.fixture(scope="module")
def evaluator(eight) -> Evaluator:
    parts, weight = window_parts(eight, 1)
    return Evaluator(eight, [coarser(parts[0], 150)], weight, 0.8, 0.67, tolerance=1e-4)


def options_of(evaluator: Evaluator, *profiles: int) -> list[tuple[int, int]]:
    return [(place, profile) for place in range(evaluator.places) for profile in profiles]


def best_of_all(evaluator: Evaluator, size: int, profiles: tuple[int, ...]) -> float:
    best = 0.0
    for places in itertools.combinations(range(evaluator.places), size):
        for chosen in itertools.product(profiles, repeat=size):
            held = np.full(evaluator.places, NONE)
            held[list(places)] = chosen
            best = max(best, evaluator.value(held).score)
    return best


# ------------------------------------------------------------------ demand in few parts and on few cells


def test_parts_and_wider_cells_ask_for_as_much(small_study) -> None:
    for parts in (1, 2):
        demand, weight = window_parts(small_study, parts)
        assert len(demand) == len(weight) == parts
        seconds = small_study.measured_s
        requests = sum(d.request_rate * s for d, s in zip(small_study.demand, seconds, strict=True))
        mean = merged_demand(demand, np.full(parts, 1.0 / parts))
        assert mean.request_rate * seconds.sum() == pytest.approx(requests)
        wide = coarser(mean, 300)
        assert len(wide.xy) <= 300
        assert wide.total == pytest.approx(mean.total)
        centre = [
            rate.sum(axis=1) @ xy / rate.sum() for xy, rate in ((mean.xy, mean.rate), (wide.xy, wide.rate))
        ]
        assert centre[0] == pytest.approx(centre[1])
        assert wide.cell_m % mean.cell_m == 0
    assert coarser(mean, 10**6) is mean
    quiet = replace(mean, rate=np.where(mean.xy[:, :1] < np.median(mean.xy[:, 0]), 0.0, mean.rate))
    wide = coarser(quiet, 60)
    assert np.isfinite(wide.xy).all()
    assert (wide.rate.sum(axis=1) > 0).all()
    assert wide.total == pytest.approx(quiet.total)
    assert len(coarser(replace(mean, rate=0 * mean.rate), 60).xy) == 1
    with pytest.raises(GeoEdgeError, match="at least 1 part"):
        window_parts(small_study, 0)


# ------------------------------------------------------------------ scores


def test_a_single_server_that_may_not_wait_is_best_half_busy(small_study) -> None:
    # M/M/1 with no time to wait: ρ (1 − ρ) requests find it free, most of them at ρ = 1/2
    work = replace(small_study.workload, concurrency=np.ones(4, dtype=np.int64))
    mix = small_study.demand[0].mix
    assert useful_load(work, mix, 1e-6, ErlangC()) == pytest.approx(0.5, abs=0.006)
    assert useful_load(small_study.workload, mix, 0.8, ErlangC()) > 0.55


def test_the_score_is_the_coverage_where_demand_is_light(evaluator, eight) -> None:
    held = np.full(8, AGENT)
    value = evaluator.value(held)
    assert value.admitted == 1.0
    assert value.score == value.coverage
    problem = field_inputs(eight.with_layout(eight.layout.with_profile(held)), evaluator.demand[0])
    from geoedge.field import solve_field

    assert value.coverage == pytest.approx(solve_field(problem).ttft_coverage(0.8), abs=1e-4)


def test_overloaded_sites_are_worth_what_they_serve(evaluator) -> None:
    held, scores = np.full(8, NONE), [0.0]
    assert evaluator.value(held).score == 0.0
    for place in range(3):
        held[place] = AGENT
        value = evaluator.value(held.copy())
        assert value.score > scores[-1]
        assert 0.0 < value.score <= value.admitted <= 1.0
        scores.append(value.score)
    one = evaluator.value(np.where(np.arange(8) == 0, AGENT, NONE))
    assert one.admitted == pytest.approx(0.67 / (8 * 0.3), rel=0.2)
    assert np.isnan(one.coverage)  # beyond capacity nobody asked for it
    telling = Evaluator(evaluator.study, evaluator.demand, evaluator.weight, 0.8, 0.67, tells_coverage=True)
    assert telling.value(np.where(np.arange(8) == 0, AGENT, NONE)).coverage == 0.0


def test_profiles_that_another_replaces_are_not_tried(evaluator) -> None:
    assert useful_profiles(evaluator, FREE) == [AGENT, GUIDE]
    stored = evaluator.study.workload.persistent_bytes
    assert useful_profiles(evaluator, PlacementLimits(stored, float(stored.max()))) == [0, 1, AGENT, GUIDE]
    assert useful_profiles(evaluator, PlacementLimits(stored, lower=[0.1, 0, 0, 0])) == [0, AGENT, GUIDE]
    assert useful_profiles(evaluator, PlacementLimits(stored, upper=[1, 1, 0.4, 0.4])) == [0, 1, AGENT, GUIDE]


# ------------------------------------------------------------------ searches


@pytest.mark.parametrize("size", [2, 4])
def test_greedy_and_exchange_come_close_to_the_best_of_all(evaluator, size) -> None:
    options = options_of(evaluator, AGENT, GUIDE)
    steps = list(itertools.islice(grow(evaluator, options), size))
    held, value = exchange(evaluator, steps[-1][1], options)
    assert (held != NONE).sum() == size
    assert value.score >= steps[-1][2].score
    assert value.score == evaluator.value(held).score
    assert value.score >= best_of_all(evaluator, size, (AGENT, GUIDE)) - 2e-3


def test_exchange_repairs_a_bad_choice(evaluator) -> None:
    options = options_of(evaluator, AGENT, GUIDE)
    bad = np.full(8, NONE)
    bad[:4] = GUIDE
    _, value = exchange(evaluator, bad, options)
    assert value.score > evaluator.value(bad).score
    assert value.score >= best_of_all(evaluator, 4, (AGENT, GUIDE)) - 2e-3


def test_lazy_growth_is_nearly_as_good_as_looking_at_everything(small_study) -> None:
    study = part_of(small_study, list(range(0, 44, 3)), 0.4)
    parts, weight = window_parts(study, 1)
    scores, solved = {}, {}
    for lazy in (True, False):
        evaluator = Evaluator(study, [coarser(parts[0], 100)], weight, 0.8, 0.67, tolerance=1e-3)
        steps = grow(evaluator, options_of(evaluator, AGENT, GUIDE), lazy=lazy)
        scores[lazy] = [value.score for _, _, value in steps]
        solved[lazy] = evaluator.solved
    assert len(scores[True]) == 15
    assert np.abs(np.subtract(scores[True], scores[False])).max() < 5e-3
    assert solved[True] < 0.8 * solved[False]


def test_limits_hold_at_every_step(evaluator) -> None:
    stored = np.array([0.0, 1.0, 2.0, 4.0])
    limits = Limits(PlacementLimits(stored, 2.0, [0.25, 0, 0, 0], [1, 1, 0.5, 1]))
    options = options_of(evaluator, 0, 1, AGENT, GUIDE)
    for k, (_, held, _) in enumerate(grow(evaluator, options, limits), 1):
        count = np.bincount(held[held != NONE], minlength=4)
        assert count.sum() == k
        assert count @ stored <= 2.0 * k
        assert count[0] >= k // 4
        assert count[AGENT] <= -(-k // 2)
    after, _ = exchange(evaluator, held, options, limits)
    assert limits.hold(after)


# ------------------------------------------------------------------ plans


@pytest.fixture(scope="module")
def made(eight):
    study = replace(
        eight, scenario=eight.scenario.override({"control.fallback_floor": 0.0, "control.deep_cap": 1.0})
    )
    return plan_places(study, reliability=0.8, orders=6)


def test_a_plan_reaches_what_it_was_asked(made) -> None:
    assert made.reached
    assert made.needed == len(made.order) == (made.held != NONE).sum()
    whole = field_answers(made.study.with_layout(made.layout), warm_up=False, tolerance=1e-3)
    assert made.coverage == pytest.approx(whole.ttft_coverage(0.8), abs=1e-6)
    assert made.coverage >= 0.8
    assert made.needed <= np.flatnonzero(made.greedy >= 0.8)[0] + 1  # exchanges never need more than growth
    assert made.needed <= made.yardsticks.random_needed[1]
    assert [row.place for row in made.order] != sorted(row.place for row in made.order)
    assert made.order[-1].coverage == pytest.approx(made.coverage, abs=0.01)


def test_the_plan_as_plain_values_and_as_csv(made) -> None:
    found = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert found["needed"] == made.needed
    assert sum(found["profiles"].values()) == made.needed
    rows = list(csv.DictReader(io.StringIO(made.to_csv())))
    assert [int(row["place"]) for row in rows] == [row.place for row in made.order]
    assert [row["profile"] for row in rows] == [row.profile for row in made.order]
    streets = made.study.city.street_names.at(made.study.layout.xy)
    assert [row["street"] for row in rows] == [streets[row.place] for row in made.order]
    assert any(streets)
    west, south, east, north = 7.3, 43.7, 7.5, 43.8
    assert all(west < float(r["lon"]) < east and south < float(r["lat"]) < north for r in rows)
    assert made.figure().get_axes()


def test_names_are_quoted_whole(made) -> None:
    hostile = '=1+1"\n;<script>'
    row = replace(made.order[0], name=hostile, street=hostile[::-1])
    rows = list(csv.DictReader(io.StringIO(replace(made, order=(row,)).to_csv())))
    assert rows[0]["name"] == hostile
    assert rows[0]["street"] == hostile[::-1]


def test_what_cannot_be_reached_is_said(eight) -> None:
    found = plan_places(eight, reliability=0.999, orders=2)
    assert not found.reached
    assert found.needed is None
    assert len(found.order) == 8
    assert found.coverage >= found.present - 1e-9  # started from the present profiles too
    assert found.to_dict()["random_needed"]["median"] is None


def test_the_first_places_hold_what_the_plan_gives_them(made) -> None:
    count = len(made.order) - 1
    first = made.first(count)
    rows = sorted(made.order[:count], key=lambda row: row.place)
    assert [made.study.workload.profile_names[p] for p in first.profile] == [row.profile for row in rows]
    assert first.xy == pytest.approx(made.study.layout.xy[[row.place for row in rows]])
    assert first.xy == pytest.approx(
        made.layout.xy[[row.place != made.order[-1].place for row in _by_place(made)]]
    )
    whole = made.first(len(made.order))
    assert (whole.profile == made.layout.profile).all()
    assert whole.xy == pytest.approx(made.layout.xy)


def _by_place(plan):
    return sorted(plan.order, key=lambda row: row.place)


def test_places_at_random_have_the_mix_of_the_first_and_no_choice(made) -> None:
    count = len(made.order) - 1
    drawn = [made.at_random(count, seed) for seed in range(40)]
    for each in drawn:
        assert sorted(each.profile) == sorted(made.first(count).profile)
        assert len({tuple(xy) for xy in each.xy.tolist()}) == count  # no place twice
    candidates = made.study.layout.xy.tolist()
    held = np.array([[xy in each.xy.tolist() for xy in candidates] for each in drawn])
    assert held.any(axis=0).all()  # every candidate has its turn
    assert (made.at_random(count, 3).xy == drawn[3].xy).all()
    assert (made.at_random(count, 3).profile == drawn[3].profile).all()


@pytest.mark.parametrize("count", [0, -1, 99])
def test_a_plan_has_no_more_places_than_it_has(made, count) -> None:
    for ask in (made.first, lambda n: made.at_random(n, 1)):
        with pytest.raises(GeoEdgeError, match=rf"from 1 to the \d+ places of the plan, not {count}"):
            ask(count)


def test_so_many_places(eight) -> None:
    found = plan_places(eight, sites=3, orders=2)
    assert len(found.order) == 3
    assert found.needed is None
    again = plan_places(eight, sites=3, orders=2)
    assert again.to_csv() == found.to_csv()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reliability": 1.0}, "`reliability` must be in"),
        ({"ttft_target": 0.0}, "`ttft_target` must be positive"),
        ({"sites": 9}, "`sites` must be from 1 to the 8 candidates, not 9"),
        ({"orders": 1}, "`orders` must be at least 2"),
    ],
)
def test_bad_input_is_refused_in_a_line(eight, change, words) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        plan_places(eight, **change)
    assert "\n" not in str(caught.value)


def test_limits_of_a_scenario_in_whole_sites(small_study) -> None:
    shares = placement_limits(small_study.scenario, small_study.workload)
    assert shares.memory_budget_bytes == np.inf
    assert Limits(shares).hold(np.array([0] + [AGENT] * 12 + [GUIDE] * 7))
    assert not Limits(shares).hold(np.array([AGENT] * 13 + [GUIDE] * 7))  # 5 % of 20 keep the fallback
    assert not Limits(shares).hold(np.array([0] + [AGENT] * 19))  # at most 70 % are deep alike


@pytest.mark.parametrize("least", [1, 2, 7, 20, 26])
def test_the_fewest_places_of_a_random_order_are_found_below_the_first_count_too(least) -> None:
    counts = np.array([20, 40])
    curve = np.where(counts >= least, 1.0, 0.0)
    found = _first(counts, curve, 0.5, lambda count: float(count >= least))
    assert found == (least if least <= 20 else 30)  # a straight line from 0 at 20 to 1 at 40
    assert _first(counts, 0 * curve, 0.5, lambda _: 0.0) == np.inf


@pytest.mark.parametrize(("key", "value"), [("radio.distance", "street"), ("field.edge", "buffer")])
def test_other_ground_is_refused(small_study, key, value) -> None:
    with pytest.raises(GeoEdgeError, match="a plan of places") as caught:
        plan_places(small_study.scenario.override({key: value}))
    assert "\n" not in str(caught.value)
