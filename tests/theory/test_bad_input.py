"""What theory refuses, in one line that names argument, value and what is allowed; and what it must not refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.theory import (
    POLICIES,
    TwoMomentQueue,
    association_per_density,
    association_probability,
    boundary_distance,
    break_even_wait,
    damped_iteration,
    erlang_c,
    evaluate,
    mean_serving_distance,
    mean_wait,
    minimum_density,
    nearest_distances,
    normalised_wait,
    offered_load_for_wait,
    offered_load_slope,
    queue_for,
    sample_requests,
    serving_distance_pdf,
    solve,
    solve_equilibrium,
    wait_cdf,
    wait_quantile,
)

ARRAYS = (
    "tier_density",
    "concurrency",
    "type_probability",
    "prefill_time",
    "occupancy_time",
    "hit_tokens",
    "prompt_tokens",
    "full_prefill_time",
)
NUMBERS = ("request_intensity", "delay_coefficient", "delay_exponent")
ONES, RNG = [1.0, 1.0], np.random.default_rng(1)


def refused(call, *words: str) -> None:
    """Assert that a call is refused in one line that holds these words."""
    with pytest.raises(GeoEdgeError) as caught:
        call()
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 300
    for word in (*words, "must"):
        assert word in text, text


# ------------------------------------------------------------------ a network


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("value", [np.nan, -1.0, np.inf])
def test_a_bad_value_in_an_array(baseline, name: str, value: float) -> None:
    network = baseline()
    array = np.array(getattr(network, name), dtype=float)
    array.flat[0] = value
    refused(lambda: replace(network, **{name: array}), f"`{name}` is {value}", "finite and nonnegative")


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    "value",
    ["many", None, [[1.0], [1.0, 2.0]], [1.0 + 0.0j] * 3, {"a": 1}],
    ids=["text", "none", "ragged", "complex", "dict"],
)
def test_something_that_is_no_array_of_numbers(baseline, name: str, value: object) -> None:
    refused(
        lambda: replace(baseline(), **{name: value}), f"`{name}` is ", "real numbers in rows of one length"
    )


@pytest.mark.parametrize("name", ARRAYS)
def test_a_wrong_shape(baseline, name: str) -> None:
    network = baseline()
    wrong = getattr(network, name)[..., :1]
    refused(lambda: replace(network, **{name: wrong}), "shape (", "must be shape (")


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [np.nan, -1.0, np.inf, "many", None, [1.0, 2.0]])
def test_a_bad_number(baseline, name: str, value: object) -> None:
    refused(lambda: replace(baseline(), **{name: value}), f"`{name}` is ", "number")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"delay_coefficient": 0.0}, ["`delay_coefficient` is 0.0", "positive"]),
        ({"delay_exponent": 16.5}, ["`delay_exponent` is 16.5", "at most 16", "power of 2 to 6"]),
        ({"tier_density": []}, ["`tier_density` is no tier", "at least one tier; add a profile"]),
        ({"tier_density": [0.0] * 3}, ["no site in any tier", "above 0 for at least one"]),
        ({"type_probability": [0.4, 0.5]}, ["add up to 0.9", "divide them by their sum"]),
        ({"type_probability": [0.0, 0.0]}, ["add up to 0"]),
        (
            {"concurrency": [18, 0, 6]},
            ["`concurrency` is [18, 0, 6]", "1 or more; give such a profile less to store"],
        ),
        ({"concurrency": [18, 1.5, 6]}, ["`concurrency` is 1.5", "whole numbers"]),
        ({"occupancy_time": np.zeros((3, 2))}, ["`occupancy_time` is ", "above 0 s"]),
        (
            {"hit_tokens": [[0, 0], [512, 512], [1024, 4097]]},
            ["`hit_tokens[2, 1]` is 4097", "4096 tokens; cap hits"],
        ),
        ({"hit_tokens": [[0.5, 0], [0, 0], [0, 0]]}, ["`hit_tokens` is 0.5", "whole numbers"]),
    ],
)
def test_what_a_network_cannot_mean(baseline, change, words) -> None:
    refused(lambda: replace(baseline(), **change), "TieredNetwork: ", *words)


@pytest.mark.parametrize(
    ("vary", "words"),
    [
        (lambda n: n.scaled(np.nan), "`tier_density` is nan"),
        (lambda n: n.scaled(-2.0), "`tier_density` is -1.08"),
        (lambda n: n.scaled(0.0), "no site in any tier"),
        (lambda n: n.with_intensity(np.nan), "`request_intensity` is nan"),
        (lambda n: n.with_placement([0.5, 0.4, 0.2]), "`placement_probability` is [0.5, 0.4, 0.2]"),
        (lambda n: n.with_placement([np.nan, 0.5, 0.5]), "`placement_probability` is [nan, 0.5, 0.5]"),
        (lambda n: n.with_placement([1.2, -0.2, 0.0]), "is -0.24"),
        (lambda n: n.with_placement([1.0]), "3 values that add up to 1"),
    ],
)
def test_a_variant_is_checked_as_well(baseline, vary, words: str) -> None:
    refused(lambda: vary(baseline()), words)


# ------------------------------------------------------------------ questions


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda n: solve(n, "neerest"), ["`policy` is 'neerest'", "load_aware, prefix_only, nearest"]),
        (
            lambda n: solve_equilibrium(n, start=[np.nan, 0, 0]),
            ["`start`", "3 finite waits >= 0 s", "[nan, 0, 0]"],
        ),
        (lambda n: solve_equilibrium(n, start=[0.0]), ["`start`", "[0.0]"]),
        (lambda n: solve_equilibrium(n, start="zero"), ["`start`", "'zero'"]),
        (lambda n: solve_equilibrium(n, start=[0.0, None, 0.0]), ["`start`", "[0.0, None, 0.0]"]),
        (lambda n: solve_equilibrium(n, start=[[0.0], [0.0, 1.0]]), ["`start`", "3 finite waits"]),
        (lambda n: solve(n, queue=3), ["`queue` is 3", "`ErlangC()`", "`queue_for`"]),
        (lambda n: evaluate(n, [0.0] * 3, queue="erlang_c"), ["advertise: `queue` is 'erlang_c'"]),
        (lambda n: solve(n, queue=TwoMomentQueue), ["`queue` is <class", "`ErlangC()`"]),
        (
            lambda n: solve_equilibrium(n, queue=TwoMomentQueue([1.0, 2.0])),
            ["`queue`", "than 3", "one for each"],
        ),
        (lambda n: solve_equilibrium(n, queue=TwoMomentQueue([1.0])), ["`queue`", "than 3"]),
        (lambda n: solve_equilibrium(n, queue=TwoMomentQueue([1.0] * 4)), ["`queue`", "than 3"]),
        (lambda n: solve_equilibrium(n, queue=TwoMomentQueue([[1.0]] * 3)), ["`queue`", "than 3"]),
        (
            lambda n: damped_iteration(n, 0.5, 3, queue=TwoMomentQueue([1.0, 2.0])),
            ["damped_iteration: `queue`"],
        ),
        (lambda n: damped_iteration(n, 0.5, 3, queue=queue_for("deterministic")), ["rule of the mixture"]),
        (lambda n: solve(n).ttft_quantile(np.nan), ["`probability`", "[0, 1]", "nan"]),
        (lambda n: solve(n).ttft_quantile(1.5), ["`probability`", "[0, 1]", "1.5"]),
        (lambda n: solve(n).coverage_by_type(np.nan), ["`tau` holds NaN", "seconds"]),
        (lambda n: solve(n).offloading_ratio("bytes"), ["`by`", "'bytes'", "prefill_time"]),
        (lambda n: minimum_density(n, 1.0, 0.8), ["`reliability`", "1.0"]),
        (lambda n: minimum_density(n, np.nan, 0.8), ["`reliability`", "nan"]),
        (lambda n: minimum_density(n, 0.5, np.nan), ["nan"]),
        (lambda n: sample_requests(solve(n).equilibrium, 1, RNG), ["`samples` is 1", "at least 2"]),
        (lambda n: sample_requests(solve(n).equilibrium, np.nan, RNG), ["`samples` is nan"]),
    ],
)
def test_a_question_that_has_no_answer(baseline, ask, words) -> None:
    refused(lambda: ask(baseline()), *words)


@pytest.mark.parametrize(
    "ask",
    ["ttft_coverage", "queue_free_coverage", "no_wait_bound", "planned_wait_bound", "coverage_by_type"],
)
def test_a_target_that_is_no_time(baseline, ask: str) -> None:
    answer = solve(baseline())
    refused(lambda: getattr(answer, ask)([0.8, np.nan]), f"{ask}: `tau` holds NaN", "seconds")
    for given in ("soon", None, [0.8, None], [[0.8], [0.8, 0.9]], 1j):
        refused(lambda given=given: getattr(answer, ask)(given), f"{ask}: `tau` is ", "seconds")


@pytest.mark.parametrize(
    "function", [association_probability, association_per_density, mean_serving_distance]
)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ([1.0, np.nan], [0.0, 0.0], 0.28, 2.5),
            ["`tier_density`", "[1.0, nan]", "nonnegative with one above 0"],
        ),
        (([1.0, -1.0], [0.0, 0.0], 0.28, 2.5), ["`tier_density`", "[1.0, -1.0]"]),
        (([0.0, 0.0], [0.0, 0.0], 0.28, 2.5), ["`tier_density`", "[0.0, 0.0]"]),
        (([], [], 0.28, 2.5), ["`tier_density`", "[]"]),
        ((ONES, [0.0, np.nan], 0.28, 2.5), ["`cost_offset`", "not nan", "leave out tiers"]),
        ((ONES, [0.0, np.inf], 0.28, 2.5), ["`cost_offset`", "not inf", "leave out tiers"]),
        ((ONES, [0.0, 0.0, 0.0], 0.28, 2.5), ["`cost_offset` (3,)", "shapes (S,) and (S,) or (S, Q)"]),
        ((ONES, [0.0, 0.0], np.nan, 2.5), ["`delay_coefficient` nan"]),
        ((ONES, [0.0, 0.0], 0.28, np.nan), ["`delay_exponent` nan"]),
        ((ONES, [0.0, 0.0], 0.28, 17.0), ["`delay_exponent` 17.0", "at most 16"]),
    ],
)
def test_an_association_that_is_none(function, arguments, words) -> None:
    refused(lambda: function(*arguments), *words)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: serving_distance_pdf(0.3, 2, ONES, [0, 0], 0.28, 2.5), ["`tier` is 2", "from 0 to 1"]),
        (lambda: serving_distance_pdf(0.3, -1, ONES, [0, 0], 0.28, 2.5), ["`tier` is -1"]),
        (lambda: serving_distance_pdf(np.nan, 0, ONES, [0, 0], 0.28, 2.5), ["`distance` is nan"]),
        (lambda: nearest_distances(np.array([1.0, -1.0]), 5, RNG), ["`tier_density` is [1.0, -1.0]"]),
        (lambda: nearest_distances(np.array([np.nan]), 5, RNG), ["`tier_density` is [nan]"]),
        (lambda: boundary_distance(-1.0, 0.0, 0.0, 0.28, 2.5), ["`distance` is -1.0", "nonnegative km"]),
        (lambda: boundary_distance(1.0, np.nan, 0.0, 0.28, 2.5), ["`offset` is nan", "seconds"]),
        (
            lambda: boundary_distance(1.0, np.inf, np.inf, 0.28, 2.5),
            ["`rival_offset` is inf", "compare with a site"],
        ),
        (lambda: boundary_distance(1.0, 0.0, 0.0, -0.1, 2.5), ["`delay_coefficient` is -0.1"]),
        (lambda: boundary_distance(1.0, 0.0, 0.0, 0.28, 0.0), ["`delay_exponent` is 0.0"]),
        (lambda: break_even_wait(1.0, np.nan, 0.0, 0.0, 0.28, 2.5), ["`rival_distance` is nan"]),
        (lambda: break_even_wait(1.0, 1.0, 0.0, np.nan, 0.28, 2.5), ["`rival_prefill` is nan"]),
        (lambda: erlang_c(-1.0, 2), ["`offered_load`", "-1"]),
        (lambda: erlang_c([0.5, np.nan], 2), ["`offered_load`", "nan"]),
        (lambda: erlang_c(1.0, 0), ["`concurrency`", "positive integers", "0"]),
        (lambda: erlang_c(1.0, 1.5), ["`concurrency`", "1.5"]),
        (lambda: mean_wait(-1.0, 1.0, 2), ["`arrival_rate`", ">= 0", "-1"]),
        (lambda: mean_wait(np.inf, 1.0, 2), ["`arrival_rate`", "inf"]),
        (lambda: mean_wait(1.0, 0.0, 2), ["`service_rate`", "> 0", "0"]),
        (lambda: wait_quantile(1.5, 1.0, 1.0, 2), ["`probability`", "[0, 1]", "1.5"]),
        (lambda: normalised_wait(np.nan, 2), ["`offered_load`", "nan"]),
        (lambda: offered_load_for_wait(-0.1, 2), ["`wait`", "-0.1"]),
        (lambda: offered_load_slope(np.nan, 2), ["`wait`", "nan"]),
    ],
)
def test_a_function_says_what_it_takes(call, words) -> None:
    refused(call, *words)


def test_a_wait_that_is_no_time() -> None:
    with pytest.raises(GeoEdgeError, match="`time` holds NaN; give waits in seconds"):
        wait_cdf([0.1, np.nan], 1.0, 1.0, 2)


# ------------------------------------------------------------------ more than capacity is no error, but an answer


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("excess", [1.0, 1.0 + 1e-9, 3.0, 1e6])
def test_more_than_capacity_is_answered(random_network, policy: str, excess: float) -> None:
    for seed in range(6):
        plain = random_network(seed)
        answer = solve(plain.with_intensity(excess * plain.necessary_intensity), policy)
        assert not answer.stable
        full = answer.equilibrium.overloaded
        assert (answer.utilization[full] >= 1.0).all()
        assert np.isinf(answer.mean_wait[full]).all()
        assert answer.mean_ttft == np.inf
        assert answer.ttft_quantile(1.0) == np.inf
        served = float(answer.profile_share[~full].sum())
        assert float(answer.ttft_coverage(1e12)) == pytest.approx(served, abs=1e-9)
        np.testing.assert_allclose(answer.association.sum(axis=0), 1.0, atol=1e-8)
        assert np.isfinite([answer.offloading_ratio(), answer.mean_serving_distance]).all()
        if policy == "load_aware":
            assert answer.equilibrium.beyond_capacity
            assert full.all()


def test_next_to_no_load_and_next_to_no_radio_are_answered(baseline) -> None:
    for network in (
        baseline(0.0),
        baseline(1e-300),
        replace(baseline(), delay_coefficient=1e-12),
        replace(baseline(), delay_coefficient=1e6),
        baseline(3.0, density=1e-6).with_intensity(1e-7),
    ):
        for policy in POLICIES:
            answer = solve(network, policy)
            assert np.isfinite(answer.association).all()
            np.testing.assert_allclose(answer.association.sum(axis=0), 1.0, atol=1e-8)
            assert 0.0 <= float(answer.ttft_coverage(0.8)) <= 1.0


def test_what_is_never_waited_for(baseline) -> None:
    answer = solve(baseline())
    assert answer.ttft_coverage([-1.0, -np.inf, 0.0]).tolist() == [0.0, 0.0, 0.0]
    assert float(answer.ttft_coverage(np.inf)) == pytest.approx(1.0)
    assert answer.ttft_quantile(0.0) == 0.0
    assert float(serving_distance_pdf(-0.3, 0, ONES, [0.0, 0.0], 0.28, 2.5)) == 0.0


def test_what_is_no_network_or_no_tolerance(baseline) -> None:
    with pytest.raises(
        GeoEdgeError, match=r"`network` is a str, but must be a TieredNetwork; .*makes one of"
    ):
        solve("paper")
    for wrong in ({"tolerance": float("nan")}, {"tolerance": -1.0}, {"max_iterations": -1}):
        with pytest.raises(GeoEdgeError, match=r"`tolerance` is .* and `max_iterations` .*; leave them out"):
            solve_equilibrium(baseline(), **wrong)
