"""Turns of sessions: how long, how many, and what they are in the mean."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.errors import ScenarioError
from geoedge.scenario import load_scenario
from geoedge.scenario.sessions import HANDOVERS
from geoedge.workload import build_workload, prefill_curve
from geoedge.workload.requests import NEVER_S
from geoedge.workload.sessions import build_dialogue, later_turns


def dialogue_of(**changes):
    given = {"mean_turns": 4.0} | changes
    scenario = load_scenario("monaco").override({f"sessions.{key}": value for key, value in given.items()})
    return scenario, build_dialogue(scenario.sessions, scenario.workload, scenario.hardware)


def test_turns_fit_into_the_memory_of_a_running_request():
    scenario, dialogue = dialogue_of()
    limit = max(r.prompt_tokens + r.output_tokens for r in scenario.workload.requests)
    for q, most in enumerate(dialogue.most_turns):
        ends = [dialogue.prompt_tokens(k)[q] + dialogue.answer_tokens[q] for k in (most - 1, most)]
        assert ends[0] <= limit < ends[1]
    assert dialogue.longest_tokens <= limit
    # history is all that was asked and answered before
    steps = np.diff([dialogue.prompt_tokens(k) for k in range(3)], axis=0)
    assert (steps == dialogue.answer_tokens + dialogue.added_tokens).all()
    assert dialogue.added_tokens.tolist() == [1024 - 768, 2560 - 2048, 4096 - 3072, 8192 - 6144]


def test_the_mean_number_of_turns_is_that_of_a_geometric_number_cut_off():
    _, dialogue = dialogue_of(mean_turns=3.0)
    for q, mean in enumerate(dialogue.mean_turns):
        drawn = dialogue.draw_turns(np.full(200_000, q), np.random.default_rng(q))
        assert drawn.max() <= dialogue.most_turns[q]
        assert drawn.mean() == pytest.approx(mean, abs=4.0 * drawn.std() / np.sqrt(drawn.size) + 1e-12)
    _, single = dialogue_of(mean_turns=1.0)
    assert (single.mean_turns == 1.0).all()


def test_states_after_which_nothing_fits_are_too_long_to_keep():
    _, dialogue = dialogue_of()
    for q, most in enumerate(dialogue.most_turns):
        states = dialogue.prompt_tokens(np.arange(most), np.full(most, q)) + dialogue.answer_tokens[q]
        assert (states <= dialogue.longest_state[q]).tolist() == [True] * (most - 1) + [False]


def test_later_turns_in_the_mean_are_those_drawn():
    scenario, dialogue = dialogue_of(handover="re_prefill")
    workload = build_workload(scenario.workload, scenario.hardware)
    later = later_turns(scenario.sessions, scenario.workload, scenario.hardware, workload)
    curve, rng, sessions = prefill_curve(scenario.hardware), np.random.default_rng(1), 40_000
    for q in range(3):
        count = dialogue.draw_turns(np.full(sessions, q), rng)
        turn = np.concatenate([np.arange(1, c) for c in count])
        assert len(turn) / count.sum() == pytest.approx(later.share[q], abs=0.005)
        prompt = dialogue.prompt_tokens(turn, np.full(len(turn), q))
        history = prompt - dialogue.added_tokens[q]
        for s, hit in enumerate(workload.hit_tokens[:, q]):
            assert curve.residual(prompt, hit).mean() == pytest.approx(later.weighed_s[s, q], rel=0.02)
            reload = (history - hit) * scenario.hardware.kv_bytes_per_token / 2e10
            taken = reload + curve(dialogue.added_tokens[q])
            assert taken.mean() == pytest.approx(later.taken_s[s, q], rel=0.02)
    assert later.share[3] == 0.0


@pytest.mark.parametrize("handover", HANDOVERS)
def test_later_turns_weigh_no_site_of_another_model(handover):
    scenario, _ = dialogue_of(handover=handover)
    given = scenario.to_dict()
    apart = {"name": "apart", "prefixes": [], "placement_probability": 0.0, "made_with": {"model": "another"}}
    given["workload"]["profiles"].append(apart)
    other = type(scenario).from_dict(given)
    workload = build_workload(other.workload, other.hardware)
    later = later_turns(other.sessions, other.workload, other.hardware, workload)
    assert not workload.serves[-1].any()
    assert ((later.weighed_s == NEVER_S) == ~workload.serves).all()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"sessions.context_tokens": 5000}, "sessions.context_tokens = 5000: .* give at least 8320"),
        ({"sessions.turn_tokens": 9000}, "sessions.mean_turns = 4: a second turn needs 10280 tokens"),
        ({"sessions.handover": "fly"}, 'sessions.handover = "fly"'),
        ({"sessions.keep_s": 60.0, "service.law": "exponential_type"}, "does not hold the prefill itself"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(changes, says):
    with pytest.raises(ScenarioError, match=says) as caught:
        load_scenario("monaco").override(changes)
    assert "\n" not in str(caught.value)


def test_scenarios_have_no_sessions_unless_they_say_so():
    scenario = load_scenario("monaco")
    assert scenario.sessions is None
    assert "sessions" not in scenario.to_dict()
    again = type(scenario).from_dict(scenario.override({"sessions.mean_turns": 2.0}).to_dict())
    assert again.sessions.mean_turns == 2.0
