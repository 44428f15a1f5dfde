"""The workload of a scenario as arrays: the paper's numbers, the cities' numbers, its invariants."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.errors import ScenarioError
from geoedge.scenario import load_scenario
from geoedge.workload import ACTIVITIES, build_forest, build_workload

SHIPPED = ("paper", "monaco", "neubrandenburg")


def workload_of(name, changes=None):
    scenario = load_scenario(name).override(changes or {})
    return build_workload(scenario.workload, scenario.hardware)


def test_the_papers_baseline():
    work = workload_of("paper")
    assert work.hit_tokens.tolist() == [[0, 0], [512, 512], [1024, 2048]]
    assert work.concurrency.tolist() == [18, 14, 6]
    # beta at no wait, as listed for this baseline with the association integrals
    expected = [[0.182714368, 0.957349888], [0.086638592, 0.804651008], [0.0, 0.403177472]]
    assert work.prefill_time == pytest.approx(np.array(expected), rel=1e-9)
    assert work.decode_time.tolist() == [0.4, 0.4]
    assert work.type_probability.tolist() == [0.4, 0.6]
    assert work.placement_probability.tolist() == [0.45, 0.35, 0.2]
    unit = load_scenario("paper").hardware.runtime_bytes_per_request
    assert (work.persistent_bytes / unit).tolist() == [0.0, 4.0, 12.0]


@pytest.mark.parametrize("name", ["monaco", "neubrandenburg"])
def test_a_city_has_long_prompts_and_few_servers(name):
    work = workload_of(name)
    assert (work.prompt_tokens.min(), work.prompt_tokens.max()) == (1024, 8192)
    assert work.concurrency.tolist() == [5, 5, 5, 4]
    assert work.persistent_bytes.tolist() == [0, 768 * 131_072, 3072 * 131_072, 6144 * 131_072]
    # Without its documents the longest prompt is late at any site; with them it is in time.
    target = load_scenario(name).target.ttft_target_s
    assert work.full_prefill_time[3] > target > work.prefill_time[3, 3]


@pytest.mark.parametrize("name", SHIPPED)
def test_shapes_and_types(name):
    work = workload_of(name)
    s, q = len(work.profile_names), len(work.type_names)
    for field in ("hit_tokens", "prefill_time", "occupancy_time", "prefill_saving"):
        assert getattr(work, field).shape == (s, q)
    for field in ("prompt_tokens", "output_tokens", "type_probability", "full_prefill_time", "decode_time"):
        assert getattr(work, field).shape == (q,)
    for field in ("persistent_bytes", "concurrency", "placement_probability"):
        assert getattr(work, field).shape == (s,)
    assert work.place_weight.shape == (q, len(ACTIVITIES))
    assert work.hour_weight.shape == (q, 24)
    for field in ("prompt_tokens", "output_tokens", "hit_tokens", "persistent_bytes", "concurrency"):
        assert getattr(work, field).dtype == np.int64


@pytest.mark.parametrize("name", SHIPPED)
def test_invariants(name):
    work = workload_of(name)
    assert np.all(work.hit_tokens <= work.prompt_tokens)
    assert np.all(work.hit_tokens[0] == 0)
    assert np.array_equal(work.prefill_time[0], work.full_prefill_time)
    assert work.occupancy_time == pytest.approx(
        work.full_prefill_time - work.prefill_saving + work.decode_time
    )
    assert work.type_probability.sum() == pytest.approx(1, abs=1e-12)
    assert work.placement_probability.sum() == pytest.approx(1, abs=1e-12)
    assert np.all(work.concurrency >= 1)


def test_arrays_cannot_be_changed_by_accident():
    work = workload_of("paper")
    with pytest.raises(ValueError, match="read-only"):
        work.prefill_time[0, 0] = 1.0


def test_a_hit_stops_where_the_paths_part():
    work = workload_of("monaco")
    hits = dict(zip(work.profile_names, work.hit_tokens.tolist(), strict=True))
    # types: chat, navigation, agent, guide; all share the first 768 tokens
    assert hits["agent"] == [768, 2048, 3072, 768]
    assert hits["guide"] == [768, 768, 768, 6144]


def test_a_given_concurrency_and_memory_are_taken_as_they_are():
    work = workload_of(
        "monaco",
        {"workload.profiles.agent.concurrency": 9, "workload.profiles.guide.persistent_bytes": 2_000_000_000},
    )
    assert work.concurrency[2] == 9
    assert work.persistent_bytes[3] == 2_000_000_000
    assert work.concurrency[3] == (6_059_081_574 - 2_000_000_000) // (8320 * 131_072)


def test_decode_time_is_output_times_step_unless_given():
    assert workload_of("monaco").decode_time.tolist() == pytest.approx([2.56, 1.28, 2.56, 2.56])
    assert workload_of("monaco", {"hardware.decode_time_s": 1.5}).decode_time.tolist() == [1.5] * 4


def test_no_room_for_a_request_is_refused_even_past_the_scenario():
    scenario = load_scenario("monaco")
    small = scenario.hardware.model_copy(update={"memory_bytes": 20 * 10**9})
    with pytest.raises(ScenarioError, match="leaves no memory for requests"):
        build_workload(scenario.workload, small)


def test_the_forest_of_a_scenario_has_two_deep_branches():
    forest = build_forest(load_scenario("monaco").workload)
    agent, guide = forest.path(forest.index("agent")), forest.path(forest.index("guide"))
    assert [forest.names[v] for v in agent] == ["system", "tools", "agent"]
    assert set(agent) & set(guide) == {forest.index("system")}
