"""What theory predicts in full: capacity against solved points, and windows."""

from __future__ import annotations

import pytest

import geoedge as ge
from geoedge.answers import WindowedAnswer
from geoedge.planning.predict import busiest, capacity, law_coverage, tier_rows
from geoedge.study import solve
from geoedge.theory import solve as solve_network

NAMES = ("fallback", "shallow", "deep")


@pytest.fixture(scope="module")
def network():
    return solve(ge.load_scenario("paper")).network


@pytest.mark.parametrize("policy", ["load_aware", "prefix_only", "nearest"])
@pytest.mark.parametrize("load", [3.0, 40.0])
def test_the_critical_intensity_parts_stable_from_unstable(network, policy, load) -> None:
    # told from any load, on either side of it
    critical = capacity(solve_network(network.with_intensity(load), policy), NAMES)["critical_intensity"]
    for factor, stable in ((1 - 1e-4, True), (1 + 1e-4, False)):
        assert solve_network(network.with_intensity(factor * critical), policy).stable is stable


def test_a_critical_intensity_that_was_not_found_is_called_a_bound(network, monkeypatch) -> None:
    from geoedge import theory
    from geoedge.report.theory import _capacity_lines

    found = capacity(solve_network(network), NAMES)
    assert found["critical_is_exact"]
    assert found["critical_intensity"] == theory.capacity(network).intensity
    assert "bound from above" not in " ".join(_capacity_lines(found))
    bound = theory.capacity(network)._replace(intensity=network.necessary_intensity, exact=False)
    monkeypatch.setattr(theory, "capacity", lambda network: bound, raising=False)
    found = capacity(solve_network(network), NAMES)
    assert not found["critical_is_exact"]
    assert "bound from above" in " ".join(_capacity_lines(found))


def test_tiers_add_up(network) -> None:
    answer = solve_network(network)
    rows = tier_rows(answer, NAMES)
    served = sum(row["site_density_per_km2"] * row["site_arrival_rate_per_s"] for row in rows)
    assert served == pytest.approx(network.request_intensity)
    for row in rows:
        load = row["site_arrival_rate_per_s"] * row["service_time_s"] / row["concurrency"]
        assert row["utilization"] == pytest.approx(load)


def test_a_window_is_averaged_and_shows_its_busiest_epoch(network) -> None:
    answers = [solve_network(network.with_intensity(load)) for load in (1.0, 6.0, 9.0)]
    window = WindowedAnswer(answers, [1.0, 3.0, 0.0], [1.0] * 3, [1.0] * 3)
    assert busiest(window) is answers[1]
    found = ge.prediction(window, 0.8, NAMES)
    assert (found["laws"], found["unsolved"]) == law_coverage(answers[1], 0.8)
    covered = [float(answer.ttft_coverage(0.8)) for answer in answers]
    assert found["coverage"] == pytest.approx(0.25 * covered[0] + 0.75 * covered[1])


def test_all_of_it_at_once(network) -> None:
    found = ge.prediction(solve_network(network), 0.8, NAMES)
    assert found["coverage"] == pytest.approx(0.6899125, abs=1e-6)
    assert {"tiers", "capacity", "laws"} <= set(found)


def test_a_law_without_an_equilibrium_says_why(network, capsys, monkeypatch) -> None:
    from geoedge.report.theory import print_prediction

    monkeypatch.setattr("geoedge.theory.heterogeneity._MISPLACED", -1.0)
    found = ge.prediction(solve_network(network), 0.8, NAMES)
    assert found["laws"]["per_site"] == [None] * 4
    assert list(found["unsolved"]) == ["per_site"]
    print_prediction(found, "busy", 0.8)
    assert "'per_site' found no equilibrium of the patch" in capsys.readouterr().out
