"""Prefill curve and memory: exact integers, known models, the reference value."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.errors import ScenarioError
from geoedge.scenario import HardwareConfig, field_docs, load_scenario
from geoedge.study import solve
from geoedge.units import GIB
from geoedge.workload import (
    PrefillCurve,
    PrefillFunction,
    PrefillTable,
    build_forest,
    build_workload,
    concurrency,
    incremental_values,
    kv_bytes,
    prefill_curve,
    runtime_bytes,
    usable_kv_bytes,
    value_score,
)
from geoedge.workload.knapsack import generate_profiles

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "workload.json").read_text())["cases"]


def test_reference_kv_bytes():
    case = REFERENCE["kv_bytes"]
    given_ = case["input"]
    bytes_ = kv_bytes(given_["layers"], given_["heads"], given_["dim"], given_["bytes"], given_["L"])
    assert bytes_ == case["output"]["bytes"]


@pytest.mark.parametrize(
    ("layers", "heads", "dim", "per_token"),
    [(32, 8, 128, 131_072), (80, 8, 128, 327_680), (64, 8, 128, 262_144), (48, 4, 128, 98_304)],
    ids=["Llama-3.1-8B", "Llama-2-70B", "Qwen3-32B", "Qwen3-30B-A3B"],
)
def test_bytes_of_a_token_of_known_models(layers, heads, dim, per_token):
    assert kv_bytes(layers, heads, dim, 2, 1) == per_token


def test_the_default_gpu_keeps_about_46_000_tokens():
    gpu = HardwareConfig()
    usable = usable_kv_bytes(gpu.memory_bytes, gpu.memory_fraction, gpu.weights_bytes, gpu.reserve_bytes)
    assert usable == 24 * GIB * 9 // 10 - 16_060_000_000 - GIB
    assert usable // gpu.kv_bytes_per_token == 46_227
    assert gpu.kv_bytes_per_token == kv_bytes(32, 8, 128, 2, 1)


def test_the_fraction_is_decimal_and_loses_no_byte():
    # In floats 0.29 * 100 is 28.999999999999996.
    assert usable_kv_bytes(100, 0.29, 0, 0) == 29
    assert usable_kv_bytes(10**15, 0.9, 1, 2) == 9 * 10**14 - 3


@given(st.integers(1, 10**15), st.integers(0, 1000), st.integers(0, 10**14), st.integers(0, 10**14))
def test_usable_memory_is_exact(memory, mille, weights, reserve):
    expected = memory * mille // 1000 - weights - reserve
    assert usable_kv_bytes(memory, mille / 1000, weights, reserve) == expected


@given(st.integers(0, 10**18), st.integers(0, 10**18), st.integers(1, 10**12))
def test_concurrency_is_the_most_requests_that_fit(usable, stored, need):
    servers = concurrency(usable, stored, need)
    assert isinstance(servers, int)
    assert servers == 0 or stored + servers * need <= usable
    assert stored + (servers + 1) * need > usable


def test_concurrency_at_the_last_byte():
    need = 2**53 + 1  # not a float
    assert concurrency(7 * need, 0, need) == 7
    assert concurrency(7 * need - 1, 0, need) == 6
    assert concurrency(7 * need, 1, need) == 6
    assert concurrency(need, need, need) == 0


def test_memory_of_a_request():
    assert runtime_bytes(8192 + 128, 131_072) == 8320 * 131_072


CURVES = st.builds(PrefillCurve, st.floats(0, 1e-3), st.floats(0, 1e-6), st.floats(0, 0.1))


@given(CURVES, st.lists(st.integers(0, 100_000), min_size=2, max_size=20))
def test_prefill_time_never_decreases_and_nothing_costs_nothing(curve, tokens):
    times = curve(np.sort(tokens))
    assert np.all(np.diff(times) >= 0)
    assert curve(0) == 0.0
    assert np.all(times >= 0)


@given(CURVES, st.integers(0, 50_000), st.integers(0, 50_000))
def test_saving_and_rest_make_the_whole(curve, hit, rest):
    prompt = hit + rest
    whole = float(curve(prompt))
    assert float(curve.saving(prompt, hit)) + float(curve.residual(prompt, hit)) == pytest.approx(
        whole, rel=1e-12
    )
    assert curve.residual(prompt, 0) == curve(prompt)
    assert curve.residual(prompt, prompt) == 0.0


def test_prefill_curve_is_the_formula_in_exact_arithmetic():
    a, b, c0 = 1.6e-4, 1.8e-8, 0.005
    exact = Fraction(c0) + Fraction(a) * 4096 + Fraction(b) * 4096**2
    assert float(PrefillCurve(a, b, c0)(4096)) == pytest.approx(float(exact), rel=1e-15)


def test_the_constant_is_charged_once():
    curve = PrefillCurve(1e-4, 0.0, 0.01)
    assert curve([0, 1, 2]).tolist() == pytest.approx([0.0, 0.0101, 0.0102])


def test_the_default_curve_agrees_with_its_fit():
    # The fit gives 94.3 ms for 1,000 tokens without its constant, 865 ms for 8,000 (rounded there).
    curve = prefill_curve(HardwareConfig())
    assert float(curve(1000)) == pytest.approx(0.0943, abs=0.002)
    assert float(curve(8192)) == pytest.approx(0.865, abs=0.005)


@st.composite
def tables(draw):
    """Draw measured points whose times grow unevenly, now and then not at all."""
    tokens = np.cumsum(draw(st.lists(st.integers(1, 4000), min_size=2, max_size=9)))
    steps = draw(st.lists(st.floats(0, 0.5), min_size=len(tokens), max_size=len(tokens)))
    return PrefillTable(tuple(tokens.tolist()), tuple(np.cumsum(steps).tolist()))


@given(tables(), st.lists(st.floats(0, 60_000), min_size=2, max_size=30))
@settings(deadline=None)
def test_a_table_goes_through_its_points_and_never_falls(table, tokens):
    np.testing.assert_allclose(table(table.tokens), table.seconds, rtol=1e-13, atol=1e-15)
    times = table(np.sort(tokens))
    assert table(0) == 0.0
    assert (np.diff(times) >= -1e-14).all()
    between = table(np.linspace(table.tokens[0], table.tokens[1], 7))
    assert (between <= table.seconds[1] + 1e-14).all()


def test_a_table_goes_on_as_steep_as_it_ended():
    table = PrefillTable((1000, 2000, 4000), (0.1, 0.15, 0.35))
    np.testing.assert_allclose(table([4000, 5000, 14_000]), [0.35, 0.45, 1.35])


def test_a_table_of_the_default_curve_is_the_curve():
    """Measured at powers of two, as profiles are: within 0.3 % between points; beyond them it lags."""
    curve = prefill_curve(HardwareConfig())
    table = PrefillTable.of(curve, [1, *(2**k for k in range(6, 15))])
    tokens = np.arange(64, 16_385)
    np.testing.assert_allclose(table(tokens), curve(tokens), rtol=3e-3)
    assert table(32_768) < curve(32_768)


@given(st.integers(0, 50_000), st.integers(0, 50_000))
def test_any_curve_saves_what_is_not_left(hit, rest):
    table = PrefillTable((1, 512, 4096), (0.005, 0.05, 0.6))
    steps = PrefillFunction(lambda n: 0.01 * np.ceil(n / 512))
    for curve in (table, steps):
        whole = float(curve(hit + rest))
        saved, left = float(curve.saving(hit + rest, hit)), float(curve.residual(hit + rest, hit))
        assert saved + left == pytest.approx(whole, rel=1e-12)
        assert min(saved, left) >= 0.0


def test_a_function_is_asked_in_any_shape():
    steps = PrefillFunction(lambda n: 0.01 * np.ceil(n / 512))
    np.testing.assert_allclose(steps([[1024, 1], [0, 513]]), [[0.02, 0.01], [0.0, 0.02]])
    assert steps(512).shape == ()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PrefillTable((100,), (0.1,)), "must be as many, two or more"),
        (lambda: PrefillTable((100, 200), (0.1,)), "prefill_table_s has 1 values and prefill_table_tokens 2"),
        (
            lambda: PrefillTable((100, 100), (0.1, 0.2)),
            r"prefill_table_tokens\[1\] = 100: must increase after",
        ),
        (
            lambda: PrefillTable((100, 200), (0.2, 0.1)),
            r"prefill_table_s\[1\] = 0.1: must not decrease after 0.2",
        ),
        (lambda: PrefillTable((100, 200), (0.2, np.nan)), r"prefill_table_s\[1\] = nan"),
        (lambda: PrefillTable((0, 200), (0.0, 0.1)), "0 tokens take no time and need no point"),
        (lambda: PrefillTable((1, 200), (-0.1, 0.1)), "finite seconds from 0 on"),
        (lambda: PrefillFunction(lambda n: n + 1.0)(5), "gave 1 s for 0 tokens; must be 0"),
        (
            lambda: PrefillFunction(lambda n: n * (10.0 - n))([6, 8]),
            "gave 24 s for 6 tokens and 16 s for 8 tokens",
        ),
        (lambda: PrefillFunction(lambda n: 1.0)([6, 8]), "one finite time each"),
        (
            lambda: PrefillFunction(lambda n: n / 0.0 if n.size == 0 else np.where(n > 1, np.inf, 0))(5),
            "finite",
        ),
    ],
)
def test_what_is_no_curve_is_refused_in_one_line(make, words):
    with pytest.raises(ScenarioError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def table_scenario(**more):
    paper = load_scenario("paper")
    measured = PrefillTable.of(prefill_curve(paper.hardware), [256, 512, 1024, 2048, 4096])
    return paper, measured, paper.override(measured.overrides() | more)


def test_a_scenario_holds_a_table_and_reads_it_back(tmp_path):
    paper, measured, scenario = table_scenario()
    assert prefill_curve(scenario.hardware) == measured
    assert load_scenario(scenario.save(tmp_path / "measured.toml")) == scenario
    # a file that names the table alone means the same: the coefficients' defaults do not count beside it
    text = scenario.to_toml().splitlines()
    alone = [
        line for line in text if not line.startswith(("prefill_linear", "prefill_quad", "prefill_const"))
    ]
    path = tmp_path / "alone.toml"
    path.write_text("\n".join(alone), encoding="utf-8")
    assert load_scenario(path) == scenario
    back = {"hardware.prefill_table_tokens": None, "hardware.prefill_table_s": None}
    coefficients = ("prefill_linear_s", "prefill_quadratic_s", "prefill_constant_s")
    again = {f"hardware.{name}": getattr(paper.hardware, name) for name in coefficients}
    assert scenario.override(back | again) == paper


def test_the_study_takes_the_table():
    """Hits and prompts of the paper's baseline lie on measured points but one, so theory says the same."""
    paper, _, scenario = table_scenario()
    plain, measured = (float(solve(s).ttft_coverage(0.8)) for s in (paper, scenario))
    assert measured == pytest.approx(plain, abs=2e-3)
    slower = scenario.override({"hardware.prefill_table_s[4]": 1.5})
    assert float(solve(slower).ttft_coverage(0.8)) < plain - 0.01


def test_a_workload_takes_any_curve():
    paper = load_scenario("paper")
    steps = PrefillFunction(lambda n: 0.01 * np.ceil(n / 512))
    work = build_workload(paper.workload, paper.hardware, curve=steps)
    np.testing.assert_allclose(work.full_prefill_time, [0.02, 0.08])
    np.testing.assert_allclose(work.prefill_time, [[0.02, 0.08], [0.01, 0.07], [0.0, 0.04]])
    forest = build_forest(paper.workload)
    values = incremental_values(forest, [1, 2], [0.4, 0.6], [1024, 4096], steps)
    assert values.sum() == pytest.approx(0.4 * 0.02 + 0.6 * 0.04)
    assert value_score(0.1, 1024, 512, 10, steps) == pytest.approx(0.1 * 0.01 / 10)
    sizes = {"memory_bytes": 10_000, "runtime_bytes_per_request": 4_200, "kv_bytes_per_token": 1}
    profiles = generate_profiles(forest, [1, 2], [0.4, 0.6], [1024, 4096], steps, **sizes)
    assert [profile.persistent_bytes for profile in profiles] == [0, 1024, 2048]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"hardware.prefill_linear_s": 1e-4},
            "hardware.prefill_linear_s = 0.0001: prefill_table_tokens is given",
        ),
        (
            {"hardware.prefill_table_s": None},
            "hardware.prefill_table_s has 0 values and prefill_table_tokens 5",
        ),
        ({"hardware.prefill_table_s": [0.1, 0.2]}, "hardware.prefill_table_s has 2 values"),
        (
            {"hardware.prefill_table_tokens[1]": 256},
            r"hardware.prefill_table_tokens\[1\] = 256: must increase",
        ),
        ({"hardware.prefill_table_s[1]": 0.001}, r"hardware.prefill_table_s\[1\] = 0.001: must not decrease"),
        ({"hardware.prefill_table_tokens": [5]}, "a list of at least 2 entries, each an integer ≥ 1"),
        ({"hardware.prefill_table_s[1]": -1.0}, r"hardware.prefill_table_s\[1\] = -1.0 .* a number ≥ 0"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(changes, words):
    with pytest.raises(ScenarioError, match=words) as caught:
        table_scenario(**changes)
    assert "\n" not in str(caught.value)


def test_the_table_is_documented():
    docs = {doc.key: doc for doc in field_docs(HardwareConfig)}
    assert docs["prefill_table_tokens"].unit == "token"
    assert "at least 2 entries" in docs["prefill_table_s"].allowed
    assert docs["prefill_table_s"].default == "omitted"
