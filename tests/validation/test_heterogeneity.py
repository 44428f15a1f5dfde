"""The laws of a site's load against end-to-end fields on tori, the published one and blind configurations.

The target is a coverage right to 0.01, up to 0.9 of capacity and whoever advertises a wait. Where every site does,
nearer to capacity than 0.85 most references are wider tori, solved as the law's patch is: the field's are too narrow.
One patch stands for all there: its luck is 0.003 to 0.008, so that two cases at 0.8 are just beyond the target.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geoedge.theory import SiteLoadAnswer, TieredNetwork, solve, solve_law

CONFIGURATIONS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "reference" / "heterogeneity.json").read_text(encoding="utf-8")
)["configurations"]
TARGET = 0.01
LAW = {"tier": "per_tier", "site": "per_site"}
BEYOND: dict[tuple[str, float], float] = {("blind 6", 24.02): 0.0104, ("fresh 1", 36.69): 0.0138}
"""Largest error of coverage with waits per site, by configuration and load, where it is beyond the target, if only
within the errors of the reference."""


def cases() -> dict[tuple[str, float, str, str], list[dict[str, Any]]]:
    """Rows that share a solution."""
    found = defaultdict(list)
    for each in CONFIGURATIONS:
        for row in each["rows"]:
            found[each["name"], row["request_intensity"], row["policy"], row["scope"]].append(row)
    return found


CASES = cases()


def network(name: str, intensity: float) -> TieredNetwork:
    given = next(each["network"] for each in CONFIGURATIONS if each["name"] == name)
    return TieredNetwork(**given, request_intensity=intensity)


@cache
def solved(case: tuple[str, float, str, str]) -> SiteLoadAnswer:
    name, intensity, policy, scope = case
    return solve_law(network(name, intensity), LAW[scope], policy)


def errors(case: tuple[str, float, str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the law's errors of coverage and what of them the reference cannot tell."""
    rows = CASES[case]
    found = solved(case).ttft_coverage([row["target_s"] for row in rows])
    noise = 3.0 * np.array([row["standard_error"] for row in rows])
    return np.abs(found - [row["coverage"] for row in rows]), noise


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[1]:g} {case[2]} {case[3]}")
def test_coverage(case):
    error, noise = errors(case)
    assert (error <= TARGET + noise).all()
    if case[3] == "site":
        assert error.max() <= BEYOND.get(case[:2], TARGET) + 5e-4


def test_the_readme_counts_the_cases():
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    site = [case for case in CASES if case[2:] == ("load_aware", "site")]
    assert f"in {len(site) - len(BEYOND)} of {len(site)} cases" in " ".join(text.split())
    wrong = [row["mean_field"] - row["coverage"] for case in site for row in CASES[case]]
    assert f"up to {max(wrong):.2f} near capacity" in " ".join(text.split())


@pytest.mark.slow
def test_unstable_share():
    """The share of requests that go to overloaded sites, without a wait model in between."""
    for case, rows in CASES.items():
        if case[3] == "tier":
            assert solved(case).unstable_share == pytest.approx(rows[0]["unstable_share"], abs=0.015)


@pytest.mark.slow
def test_better_than_the_tier_mean():
    """On average over the cases the laws leave a tenth of Eq. (39)'s error with waits per tier, a fifth per site."""
    for scope, left in (("tier", 0.1), ("site", 0.2)):
        ours, plain = [], []
        for case, rows in CASES.items():
            if case[3] == scope:
                ours += list(errors(case)[0])
                mean = solve(network(*case[:2]), case[2]).ttft_coverage([row["target_s"] for row in rows])
                plain += list(np.abs(mean - [row["coverage"] for row in rows]))
        assert np.mean(ours) <= left * np.mean(plain)


PUBLISHED = {
    "load_aware_per_tier_waits": ("per_tier", "load_aware"),
    "load_aware_per_site_waits": ("per_site", "load_aware"),
    "prefix_only": ("per_tier", "prefix_only"),
    "nearest": ("per_tier", "nearest"),
}
LOADS = dict.fromkeys(PUBLISHED, (1.0, 3.0, 5.0)) | {"nearest": (3.0, 5.0)}


def test_every_published_number_is_tried(end_to_end):
    published = {(kind, load) for load, row in end_to_end.items() for kind in PUBLISHED if kind in row}
    assert published == {(kind, load) for kind, loads in LOADS.items() for load in loads}


@pytest.mark.parametrize(("kind", "load"), [(kind, load) for kind, loads in LOADS.items() for load in loads])
def test_published_end_to_end_coverage(end_to_end, end_to_end_network, load, kind):
    expected = end_to_end[load][kind]
    law, policy = PUBLISHED[kind]
    answer = solve_law(end_to_end_network(load), law, policy)
    error = 3.0 * expected["standard_error"]
    assert answer.ttft_coverage(0.8) == pytest.approx(expected["coverage"], abs=0.005 + error)
    assert answer.unstable_share == pytest.approx(expected["share_of_requests_to_unstable_sites"], abs=0.015)
