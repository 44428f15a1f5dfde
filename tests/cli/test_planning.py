"""`geoedge plan` by theory."""

from __future__ import annotations

import json

import pytest

from tests.cli.calling import call, refused

PLAN = ["plan", "paper", "-q", "--fallback-floor", "0.1", "--deep-cap", "0.25", "--loads", "0.5,1.5"]


def test_a_plan_in_json(capsys, monkeypatch) -> None:
    code, out, err = call(capsys, monkeypatch, *PLAN, "--reliability", "0.8", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    best = found["best"]
    assert best["placement_probability"]["deep"] == pytest.approx(0.25, abs=1e-6)
    assert best["coverage"] > found["present"]["coverage"] == pytest.approx(0.6899125, abs=1e-6)
    assert best["memory_bytes"] <= found["present"]["memory_bytes"] * (1 + 1e-9)
    assert "cap of deep (0.25)" in best["binding"]
    assert found["density"]["needed_with_present_mix_per_km2"] == pytest.approx(1.72634818, abs=1e-7)
    assert found["density"]["needed_with_best_mix_per_km2"] < 1.7263
    assert found["robust"]["load_factor"] == [0.5, 1.5]
    assert min(found["robust"]["regret"]) > -1e-6
    strength = [abs(row["elasticity"]) for row in found["sensitivities"]]
    assert strength == sorted(strength, reverse=True)
    assert {"site_density", "sites of deep", "prefill_linear_s", "decode_time_s"} <= {
        row["parameter"] for row in found["sensitivities"]
    }


def test_a_plan_in_words(capsys, monkeypatch) -> None:
    code, out, _ = call(capsys, monkeypatch, *PLAN, "--method", "grid", "--target", "1.0")
    assert code == 0
    for words in (
        "TTFT target 1 s",
        "beyond the limits",
        "floor of fallback (0.1)",
        "needed with the best mix",
        "× 1.5",
        "elasticity",
    ):
        assert words in out


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--method", "annealing"], "slsqp, grid, cobyqa, spsa"),
        (["--law", "exact"], "mean_field, per_tier, per_site"),
        (["--criterion", "median"], "mean, worst, regret"),
        (["--loads", "1,two"], "--loads"),
        (["--loads", "1,-2"], "plan.load_factors"),
        (["--target", "nan"], "target.ttft_target_s"),
        (["--reliability", "1.0"], "target.reliability"),
        (["--memory-budget", "-5"], "plan.memory_budget_bytes"),
        (["--deep-cap", "1.5"], "control.deep_cap"),
        (
            [
                "--memory-budget",
                "1000",
                "--set",
                "control.fallback_floor=0.0",
                "--set",
                "workload.profiles.shallow.prefixes=[]",
            ],
            "stores no prefixes",
        ),
    ],
)
def test_a_plan_that_cannot_be_made_is_one_line(capsys, monkeypatch, words, names) -> None:
    assert names in refused(capsys, monkeypatch, "plan", "paper", "-q", *words)
