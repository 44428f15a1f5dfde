"""The study: a window averages its epochs by requests, and its inputs conserve demand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely

import geoedge as ge
from geoedge.answers import WindowedAnswer
from geoedge.errors import GeoEdgeError, ScenarioError
from geoedge.scenario import load_scenario
from geoedge.study import (
    Study,
    field_answers,
    field_inputs,
    poisson_network,
    prepare,
    service_queue,
    theory_answers,
)
from geoedge.theory import ErlangC


class Exponential:
    """An answer whose TTFT is exponential, so that every question has a closed form."""

    stable = True
    mean_serving_distance = 0.5
    mean_utilization = 0.5

    def __init__(self, mean: float, saved: float) -> None:
        self.mean_ttft, self.saved = mean, saved
        self.profile_share = np.array([1.0 - saved, saved])

    def ttft_coverage(self, tau: float) -> float:
        return float(-np.expm1(-tau / self.mean_ttft))

    def ttft_quantile(self, probability: float) -> float:
        return float(-self.mean_ttft * np.log1p(-probability))

    def parts(self) -> dict[str, float]:
        return {"radio": 0.1 * self.mean_ttft, "wait": 0.7 * self.mean_ttft, "prefill": 0.2 * self.mean_ttft}

    def offloading_ratio(self, by: str = "tokens") -> float:
        return self.saved


def window() -> WindowedAnswer:
    # the first epoch is warm-up and must not count, whatever it says
    answers = [Exponential(99.0, 0.9), Exponential(1.0, 0.2), Exponential(3.0, 0.6)]
    return WindowedAnswer(answers, [0.0, 300.0, 100.0], [1.0, 1000.0, 3000.0], [1.0, 0.5, 0.5])


def test_a_window_weighs_epochs_by_requests() -> None:
    answer = window()
    assert answer.mean_ttft == pytest.approx(0.75 * 1.0 + 0.25 * 3.0)
    assert answer.ttft_coverage(2.0) == pytest.approx(1 - 0.75 * np.exp(-2.0) - 0.25 * np.exp(-2.0 / 3.0))
    assert answer.parts()["wait"] == pytest.approx(0.7 * 1.5)
    assert answer.profile_share == pytest.approx([0.7, 0.3])


def test_ratios_of_a_window_weigh_tokens_and_seconds() -> None:
    answer = window()
    assert answer.offloading_ratio("tokens") == pytest.approx((300e3 * 0.2 + 300e3 * 0.6) / 600e3)
    assert answer.offloading_ratio("prefill_time") == pytest.approx((150 * 0.2 + 50 * 0.6) / 200)


@pytest.mark.parametrize("probability", [0.05, 0.5, 0.95, 0.999])
def test_the_quantile_of_a_window_inverts_its_coverage(probability: float) -> None:
    answer = window()
    assert answer.ttft_coverage(answer.ttft_quantile(probability)) == pytest.approx(probability, abs=1e-8)


def test_a_quantile_that_no_epoch_reaches_is_infinite() -> None:
    class Saturated(Exponential):
        def ttft_coverage(self, tau: float) -> float:
            return 0.9 * super().ttft_coverage(tau)

        def ttft_quantile(self, probability: float) -> float:
            return float("inf") if probability >= 0.9 else super().ttft_quantile(probability / 0.9)

    answer = WindowedAnswer([Saturated(1.0, 0.1), Exponential(1.0, 0.1)], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0])
    assert answer.ttft_quantile(0.96) == np.inf
    assert np.isfinite(answer.ttft_quantile(0.94))


def test_demand_is_conserved_from_users_to_theory_and_field(small_study: Study) -> None:
    for demand in small_study.demand:
        network = poisson_network(small_study, demand)
        assert network.request_intensity * small_study.city.area_km2 == pytest.approx(demand.request_rate)
        assert field_inputs(small_study, demand).request_rate == pytest.approx(demand.request_rate)
        assert network.site_density * small_study.city.area_km2 == pytest.approx(len(small_study.layout))


def test_the_window_is_the_measured_epochs(small_study: Study) -> None:
    expected = [0.0] + [d.request_rate * 600.0 for d in small_study.demand[1:]]
    assert small_study.expected_requests == pytest.approx(expected)


def test_theory_and_field_answer_the_same_questions(small_study: Study) -> None:
    theory, field = theory_answers(small_study), field_answers(small_study)
    for answer in (theory, field):
        assert answer.stable
        assert sum(answer.parts().values()) == pytest.approx(answer.mean_ttft, rel=1e-6)
        assert answer.profile_share.sum() == pytest.approx(1.0)
        assert 0.0 < answer.ttft_coverage(0.8) < 1.0
        assert answer.ttft_coverage(answer.ttft_quantile(0.95)) == pytest.approx(0.95, abs=1e-6)


def test_routing_may_change_on_a_prepared_study_but_demand_may_not(small_study: Study) -> None:
    scenario = small_study.scenario
    assert (
        small_study.with_scenario(scenario.override({"routing.policy": "nearest"})).demand
        is small_study.demand
    )
    with pytest.raises(ScenarioError, match=r"\[demand\] differs"):
        small_study.with_scenario(scenario.override({"demand.users": 7}))


def test_where_people_are_is_computed_once_for_every_load(small_study: Study) -> None:
    scenario, city = small_study.scenario, small_study.city
    users = scenario.demand.users
    one = prepare(scenario, city=city, layout=small_study.layout)
    twice = prepare(scenario.override({"demand.users": 2 * users}), city=city, layout=small_study.layout)
    assert twice.mobility is one.mobility
    for more, less in zip(twice.demand, one.demand, strict=True):
        assert np.array_equal(more.rate, 2 * less.rate)
    for change in ({"seed": scenario.seed + 1}, {"mobility.walk_share": 0.125}):
        other = prepare(scenario.override(change), city=city, layout=small_study.layout)
        assert other.mobility is not one.mobility
        assert not np.array_equal(other.demand[0].rate, one.demand[0].rate)
    assert [d.rate.tolist() for d in prepare(scenario, city=city, layout=small_study.layout).demand] == [
        d.rate.tolist() for d in one.demand
    ]


def test_theory_alone_needs_no_city() -> None:
    answer = ge.solve(load_scenario("paper"))
    assert answer.ttft_coverage(0.8) == pytest.approx(0.6899125, abs=1e-6)  # the paper's baseline at load 3
    with pytest.raises(ScenarioError, match=r"no \[city\]"):
        prepare(load_scenario("paper"))


def test_theory_and_field_assume_the_queue_that_the_scenario_says(small_study: Study) -> None:
    own = small_study.with_scenario(
        small_study.scenario.override({"service.law": "deterministic", "service.queue": "service_law"})
    )
    assert isinstance(service_queue(small_study.scenario), ErlangC)
    for answers in (theory_answers, field_answers):
        erlang, law = answers(small_study), answers(own)
        assert law.stable
        assert law.parts()["wait"] < 0.8 * erlang.parts()["wait"]  # nothing varies but the type
    rough = own.scenario.override({"service.law": "phase_type", "service.scv": 4.0})
    assert field_answers(own.with_scenario(rough)).parts()["wait"] > erlang.parts()["wait"]


def test_the_queue_of_an_exponential_mixture_is_erlangs() -> None:
    paper = load_scenario("paper")
    assert isinstance(service_queue(paper.override({"service.queue": "service_law"})), ErlangC)


def test_sites_and_profiles_may_follow_the_demand_of_the_window(small_study: Study) -> None:
    changes = {"sites.source": "demand", "sites.density_per_km2": 12.0, "sites.placement": "demand"}
    scenario = small_study.scenario.override(changes)
    one, two = (prepare(scenario, city=small_study.city).layout for _ in range(2))
    assert one.label == "Poisson by demand"
    np.testing.assert_array_equal(one.xy, two.xy)
    np.testing.assert_array_equal(one.profile, two.profile)
    bare = replace(small_study.layout, report={"profiles_placed": False})
    repelled = small_study.scenario.override({"sites.placement": "repelled"})
    placed = prepare(repelled, city=small_study.city, layout=bare).layout
    assert placed.report["profiles_placed"] is True


CORE = {"sites.source": "hard_core", "sites.density_per_km2": 6.0, "sites.process.radius_m": 200.0}


def least_spacing(xy: np.ndarray, period: tuple[float, float] | None = None) -> float:
    off = np.abs(xy[:, None] - xy[None])
    if period is not None:
        off = np.minimum(off, np.array(period) - off)
    return float((np.hypot(off[..., 0], off[..., 1]) + np.where(np.eye(len(xy)), np.inf, 0.0)).min())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_hard_cores_reach_across_the_edge(small_study: Study, seed: int) -> None:
    city = replace(small_study.city, boundary=small_study.city.boundary.convex_hull)
    scenario = small_study.scenario.override(CORE | {"seed": seed, "sites.placement": "fixed"})
    study = prepare(scenario.override({"field.edge": "buffer", "field.edge_buffer_m": 600.0}), city=city)
    assert study.ring is not None
    assert shapely.contains_xy(city.boundary, study.layout.xy).all()
    assert not shapely.contains_xy(city.boundary, study.ring.xy).any()
    assert least_spacing(np.concatenate((study.layout.xy, study.ring.xy))) >= 200.0
    share = study.workload.placement_probability
    held = np.bincount(study.layout.profile, minlength=len(share)) / len(study.layout)
    assert np.abs(held - share).max() < 1.0 / len(study.layout)  # the city alone has the mix it was promised
    wide = replace(city, boundary=shapely.box(*city.boundary.bounds))
    joined = prepare(scenario.override({"field.edge": "torus"}), city=wide)
    west, south, east, north = wide.boundary.bounds
    assert joined.layout.period_m is None
    assert shapely.intersects_xy(wide.boundary, joined.layout.xy).all()
    assert least_spacing(joined.layout.xy, (east - west, north - south)) >= 200.0 - 1e-6
    with pytest.raises(GeoEdgeError, match="only the sides of a rectangle can be joined"):
        prepare(scenario.override({"field.edge": "torus"}), city=city)


def test_sites_that_know_nothing_of_each_other_are_the_same_inside_a_ring(small_study: Study) -> None:
    scenario = small_study.scenario.override({"sites.source": "binomial", "sites.density_per_km2": 6.0})
    cut = prepare(scenario, city=small_study.city)
    ringed = prepare(scenario.override({"field.edge": "buffer"}), city=small_study.city)
    np.testing.assert_array_equal(cut.layout.xy, ringed.layout.xy)
    np.testing.assert_array_equal(cut.layout.profile, ringed.layout.profile)
