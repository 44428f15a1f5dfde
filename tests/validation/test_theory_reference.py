"""Theory against reference values that were each computed in two independent ways."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geoedge.theory import (
    TieredNetwork,
    association_per_density,
    association_probability,
    boundary_distance,
    erlang_c,
    mean_serving_distance,
    mean_wait,
    minimum_density,
    project_placement,
    solve,
    wait_cdf,
    wait_quantile,
)
from geoedge.workload import PrefillCurve, PrefixForest, best_prefixes, greedy_prefixes, incremental_values

CASES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "reference" / "theory.json").read_text(encoding="utf-8")
)
POLICY = {"LA": "load_aware", "LA_noqueue": "load_aware", "UA": "prefix_only", "NN": "nearest"}


def of_kind(kind: str) -> Any:
    """Parametrise a test over the cases of one kind."""
    names = [name for name, case in CASES.items() if case["kind"] == kind]
    assert names
    return pytest.mark.parametrize("case", [CASES[name] for name in names], ids=names)


def network(cfg: dict[str, Any], k: float = 1.0) -> TieredNetwork:
    """Return the network of a case, scaled by k as in the scale invariance."""
    length, hit = np.array(cfg["L"]), np.array(cfg["d"])

    def prefill(tokens: np.ndarray) -> np.ndarray:
        return cfg["a"] * tokens + cfg["b"] * tokens**2

    return TieredNetwork(
        tier_density=k * cfg["lam_b"] * np.array(cfg["pi"]),
        concurrency=cfg["c"],
        type_probability=cfg["p"],
        prefill_time=prefill(length - hit),
        occupancy_time=prefill(length - hit) + cfg["D"],
        request_intensity=k * cfg["lam_req"],
        delay_coefficient=k ** (cfg["alpha"] / 2.0) * cfg["xi"],
        delay_exponent=cfg["alpha"],
        hit_tokens=hit,
        prompt_tokens=length,
        full_prefill_time=prefill(length),
    )


def agree(ours: Any, theirs: Any, case: dict[str, Any]) -> None:
    """Assert agreement to the tolerance of the case."""
    np.testing.assert_allclose(ours, theirs, rtol=case["rel_tol"], atol=1e-12)


@of_kind("assoc")
def test_association(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["output"]
    arguments = (given["lam"], given["beta"], given["xi"], given["alpha"])
    agree(association_probability(*arguments), expected["A"], case)
    agree(association_per_density(*arguments), expected["A_per_density"], case)


def test_the_rare_tier_is_right_in_its_own_digits() -> None:
    case = CASES["assoc_rare_tier"]
    given = case["input"]
    ours = association_probability(given["lam"], given["beta"], given["xi"], given["alpha"])
    np.testing.assert_allclose(ours, case["output"]["A"], rtol=case["rel_tol"])


@of_kind("distance")
def test_distance(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["output"]
    arguments = (given["lam"], given["beta"], given["xi"], given["alpha"])
    mean = mean_serving_distance(*arguments)
    agree(mean, expected["Rbar"], case)
    agree(mean @ association_probability(*arguments), expected["Rbar_all"], case)


@of_kind("erlang")
def test_erlang(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["output"]
    load, servers, mu = float(Fraction(given["a"])), given["c"], given["mu"]
    np.testing.assert_allclose(erlang_c(load, servers), expected["C"], rtol=case["rel_tol"])
    np.testing.assert_allclose(mean_wait(load * mu, mu, servers), expected["W"], rtol=case["rel_tol"])
    agree(wait_cdf(given["w"], load * mu, mu, servers), expected["cdf"], case)
    agree(wait_quantile(given["probs"], load * mu, mu, servers), expected["quantile"], case)


@of_kind("fixed_point")
def test_fixed_point(case: dict[str, Any]) -> None:
    expected, point = case["output"], solve(network(case["input"]["cfg"])).equilibrium
    # waits of 1e-31 are compared in their own digits, not against 1e-12
    np.testing.assert_allclose(point.mean_wait, expected["W"], rtol=case["rel_tol"])
    agree(point.advertised_wait, expected["W"], case)
    agree(point.utilization, expected["rho"], case)
    agree(point.association, expected["A"], case)
    agree(point.site_arrival_rate, expected["lam_q"], case)
    agree(point.service_rate, expected["mu"], case)


@of_kind("coverage")
def test_coverage(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["output"]
    answer = solve(network(given["cfg"]), POLICY[given["policy"]])
    ask = answer.queue_free_coverage if given["policy"].endswith("noqueue") else answer.ttft_coverage
    agree(ask(given["taus"]), expected["cov"], case)
    agree(answer.equilibrium.advertised_wait, expected["W"], case)


@of_kind("mean_ttft")
def test_mean_ttft(case: dict[str, Any]) -> None:
    agree(solve(network(case["input"]["cfg"])).mean_ttft, case["output"]["mean"], case)


@of_kind("quantile")
def test_quantile(case: dict[str, Any]) -> None:
    answer = solve(network(case["input"]["cfg"]))
    agree([answer.ttft_quantile(zeta) for zeta in case["input"]["zetas"]], case["output"]["tau"], case)


@of_kind("offload")
def test_offloading(case: dict[str, Any]) -> None:
    answer, expected = solve(network(case["input"]["cfg"])), case["output"]
    saved = answer.association * answer.network.type_probability * answer.network.hit_tokens
    agree(saved.sum(), expected["dbar"], case)
    agree(answer.offloading_ratio("tokens"), expected["eta_token"], case)
    agree(answer.offloading_ratio("prefill_time"), expected["eta_prefill_time"], case)


@of_kind("min_density")
def test_minimum_density(case: dict[str, Any]) -> None:
    cfg = case["input"]["cfg"]
    agree(minimum_density(network(cfg), case["input"]["zeta"], cfg["tau0"]), case["output"]["lam_b"], case)


@of_kind("scale")
def test_scale_invariance(case: dict[str, Any]) -> None:
    cfg, k, expected = case["input"]["cfg"], case["input"]["k"], case["output"]
    agree(solve(network(cfg)).ttft_coverage(cfg["tau0"]), expected["cov"], case)
    agree(solve(network(cfg, k)).ttft_coverage(cfg["tau0"]), expected["cov_scaled"], case)


@of_kind("pair")
def test_pair(case: dict[str, Any]) -> None:
    given = case["input"]
    reached = boundary_distance(*(given[key] for key in ("r_s", "beta_s", "beta_t", "xi", "alpha")))
    agree(reached, case["output"]["r_t_max"], case)


@of_kind("project")
def test_projection(case: dict[str, Any]) -> None:
    given = case["input"]
    mix = project_placement(given["z"], given["B"], given["Bbar"], given["lo"], given["hi"])
    agree(mix, case["output"]["pi"], case)


@of_kind("knapsack")
def test_knapsack(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["output"]
    parents, depths = given["forest"]["parent"], given["forest"]["depth"]
    forest = PrefixForest.from_edges((name, parents[name], depths[name]) for name in depths)
    probability, length, ends = zip(*given["reqs"], strict=True)
    curve = PrefillCurve(given["ga"], given["gb"])
    values = incremental_values(forest, [forest.index(end) for end in ends], probability, length, curve)
    found = best_prefixes(forest, values, given["cap"])
    agree(found.value, expected["value"], case)
    assert {forest.names[vertex] for vertex in found.vertices} == set(expected["vertices"])
    assert found.tokens == expected["tokens"]
    agree(greedy_prefixes(forest, values, given["cap"]).value, expected["greedy_value"], case)
