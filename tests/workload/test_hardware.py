"""Prefill curve and memory: exact integers, known models, the reference value."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoedge.scenario import HardwareConfig
from geoedge.units import GIB
from geoedge.workload import (
    PrefillCurve,
    concurrency,
    kv_bytes,
    prefill_curve,
    runtime_bytes,
    usable_kv_bytes,
)

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
