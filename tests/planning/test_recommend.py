"""Plans of scenarios: limits from the scenario, numbers from theory, windows of a city."""

from __future__ import annotations

import json

import numpy as np
import pytest

import geoedge as ge
from geoedge.errors import GeoEdgeError
from geoedge.planning.inputs import hardware_knobs, placement_limits, plan_inputs
from geoedge.theory import minimum_density, sensitivities, solve
from geoedge.workload import build_workload

GIB = 2**30


@pytest.fixture(scope="module")
def paper() -> ge.Scenario:
    return ge.load_scenario("paper")


@pytest.fixture(scope="module")
def made(paper) -> ge.DeploymentPlan:
    return ge.plan(paper.override({"control.fallback_floor": 0.5, "control.deep_cap": 0.3}))


def test_limits_come_from_the_scenario(paper) -> None:
    limits = plan_inputs(paper).limits
    assert limits.memory_budget_bytes == pytest.approx(3.8 * GIB / 2)  # the memory of the present mix
    assert limits.least.tolist() == [0.0, 0.0, 0.0]
    changes = {"control.fallback_floor": 0.2, "control.deep_cap": 0.3, "plan.memory_budget_bytes": GIB}
    limits = plan_inputs(paper.override(changes)).limits
    assert limits.memory_budget_bytes == GIB
    assert limits.least.tolist() == [0.2, 0.0, 0.0]
    assert limits.most.tolist() == [1.0, 1.0, 0.3]  # the deep profile alone is deep


def test_a_cap_of_all_deep_profiles_is_that_of_the_only_one_or_refused(paper) -> None:
    limits = plan_inputs(paper.override({"control.deep_cap": 0.5, "control.deep_share_cap": 0.3})).limits
    assert limits.most.tolist() == [1.0, 1.0, 0.3]
    monaco = ge.load_scenario("monaco").override({"control.deep_share_cap": 0.3})
    workload = build_workload(monaco.workload, monaco.hardware)
    with pytest.raises(GeoEdgeError, match=r"deep_share_cap = 0.3: .* not that of agent, guide together"):
        placement_limits(monaco, workload)


def test_the_plan_keeps_them_and_gains(made) -> None:
    found = made.placement
    assert found.limits.holds(found.placement_probability)
    assert found.coverage > found.present_coverage
    assert made.binding_words() == ["memory budget", "cap of deep (0.3)"]
    again = solve(made.inputs.networks[0].with_placement(found.placement_probability))
    assert float(again.ttft_coverage(0.8)) == pytest.approx(found.coverage, abs=1e-9)
    assert made.density.with_present_mix == pytest.approx(minimum_density(made.inputs.networks[0], 0.9, 0.8))
    assert made.density.with_best_mix.site_density < made.density.with_present_mix


def test_the_plan_as_plain_values(made) -> None:
    found = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert sum(found["best"]["placement_probability"].values()) == pytest.approx(1.0)
    assert found["uniform"]["within_limits"] is False
    assert found["present"]["within_limits"] is False  # below the floor that was asked for
    assert found["robust"]["load_factor"] == [0.5, 1.0, 1.5]


def test_coefficients_behind_the_arrays(paper) -> None:
    # a knob must do what the scenario with that coefficient does
    work = build_workload(paper.workload, paper.hardware)
    network = plan_inputs(paper).networks[0]
    knobs = hardware_knobs(paper.hardware, work)
    assert set(knobs) == {"prefill_linear_s", "prefill_quadratic_s", "decode_time_s"}
    for name, knob in knobs.items():
        other = plan_inputs(paper.override({f"hardware.{name}": 1.3 * knob.value})).networks[0]
        turned = knob.change(network, 1.3 * knob.value)
        for array in ("prefill_time", "occupancy_time", "full_prefill_time"):
            np.testing.assert_allclose(getattr(turned, array), getattr(other, array), rtol=1e-12)


def test_coefficients_add_up_to_the_whole_prefill(paper) -> None:
    network = plan_inputs(paper).networks[0]
    knobs = hardware_knobs(paper.hardware, build_workload(paper.workload, paper.hardware))
    rows = {row.parameter: row for row in sensitivities(network, 0.8, further=knobs)}
    parts = rows["prefill_linear_s"].elasticity + rows["prefill_quadratic_s"].elasticity
    assert parts == pytest.approx(rows["prefill_scale"].elasticity, abs=1e-6)
    assert rows["decode_time_s"].elasticity == pytest.approx(rows["decode_scale"].elasticity, abs=1e-6)


def test_names_are_checked(paper) -> None:
    with pytest.raises(GeoEdgeError, match="slsqp, grid, cobyqa, spsa"):
        ge.plan(paper, method="annealing")
    with pytest.raises(GeoEdgeError, match="`criterion` is 'best', but must be one of mean, worst, regret"):
        ge.plan(paper, criterion="best")


def test_the_same_seed_makes_the_same_plan(paper) -> None:
    first, again = (ge.plan(paper, method="spsa").to_dict() for _ in range(2))
    assert first == again


@pytest.mark.slow
def test_a_city_is_planned_for_its_window(small_study) -> None:
    scenario = small_study.scenario.override({"plan.load_factors": [1.0]})
    found = ge.plan(scenario, small_study.city, small_study.layout)
    assert len(found.inputs.networks) == int((small_study.expected_requests > 0).sum())
    theory = float(ge.theory_answers(small_study).ttft_coverage(found.ttft_target))
    assert found.placement.present_coverage == pytest.approx(theory, abs=1e-9)
    assert found.placement.coverage >= found.placement.present_coverage
    assert found.placement.limits.least[0] == scenario.control.fallback_floor
    assert found.placement.limits.holds(found.placement.placement_probability)


def test_a_plan_asks_the_queue_of_the_scenario(paper):
    """Prefill plus decode varies less than exponential service, so that fewer sites do."""
    changed = {"service.law": "prefill_plus_decode", "service.queue": "service_law"}
    found, present = ge.plan(paper.override(changed)), ge.plan(paper)
    assert found.density.with_present_mix < present.density.with_present_mix
    assert found.placement.present_coverage > present.placement.present_coverage
