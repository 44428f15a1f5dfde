"""From sliders to a scenario."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoedge.app.choices import (
    AS_GIVEN,
    CONTROLLERS,
    LAYOUTS,
    Choices,
    epoch_minutes,
    kept_sites,
    most_sites,
)
from geoedge.errors import ScenarioError
from geoedge.policies import POLICIES
from geoedge.scenario import Scenario, load_scenario
from geoedge.scenario.operation import ControlConfig

DENSITY = 3.0


@pytest.fixture(scope="module")
def base() -> Scenario:
    return load_scenario("monaco")


def test_choices_that_nobody_touched_leave_the_scenario_alone(base: Scenario) -> None:
    assert Choices.of(base).applied(base, DENSITY) is base


def test_flat_values_read_back(base: Scenario) -> None:
    chosen = replace(Choices.of(base), load=0.5, mix=(0.1, 0.2, 0.3, 0.4))
    assert Choices.from_flat({"more": 1, **chosen.flat()}) == chosen


def test_each_choice_changes_its_own_value(base: Scenario) -> None:
    chosen = replace(Choices.of(base), load=0.5, controller="none", epoch_min=30, seed=" 12 ")
    scenario = chosen.applied(base, DENSITY)
    assert scenario.demand.request_rate_per_user_s == pytest.approx(0.0022)
    assert (scenario.control.controller, scenario.simulation.epoch_s, scenario.seed) == ("none", 1800.0, 12)
    back = {"control.controller": "greedy", "simulation.epoch_s": 900.0, "seed": 1}
    assert scenario.override({**back, "demand.request_rate_per_user_s": 0.0044}) == base


def test_weights_become_shares(base: Scenario) -> None:
    scenario = replace(Choices.of(base), mix=(0.0, 0.5, 0.25, 0.25)).applied(base, DENSITY)
    assert [p.placement_probability for p in scenario.workload.profiles] == [0.0, 0.5, 0.25, 0.25]
    thirds = replace(Choices.of(base), mix=(0.7, 0.7, 0.7, 0.0)).applied(base, DENSITY)
    assert sum(p.placement_probability for p in thirds.workload.profiles) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_can_be_chosen_whatever_the_last_one_needed(base: Scenario, policy: str) -> None:
    given = base.override({"routing.policy": "softmax", "routing.policy_parameters": {"temperature_s": 0.1}})
    scenario = replace(Choices.of(given), policy=policy).applied(given, DENSITY)
    assert scenario.routing.policy == policy
    if POLICIES[policy].reads == "count":
        assert scenario.routing.advertise == "state"
    assert scenario.routing.policy_parameters.given == ({"temperature_s": 0.1} if policy == "softmax" else {})


def test_the_controllers_are_those_of_the_scenario() -> None:
    known = ControlConfig.model_fields["controller"].annotation
    assert set(CONTROLLERS) == set(known.__args__)  # type: ignore[union-attr]


@pytest.mark.parametrize("layout", LAYOUTS[1:])
def test_a_point_process_has_the_density_of_the_sites_it_replaces(base: Scenario, layout: str) -> None:
    given = base.override({"sites.source": "towers.csv", "sites.operator": "208-01", "sites.radio": "LTE"})
    scenario = replace(Choices.of(given), layout=layout, sites=1.5).applied(given, DENSITY)
    assert scenario.sites.source == layout
    assert scenario.sites.density_per_km2 == pytest.approx(1.5 * DENSITY)
    assert (scenario.sites.operator, scenario.sites.radio) == (None, None)


def test_a_scenario_of_a_point_process_scales_its_own_density(base: Scenario) -> None:
    given = base.override({"sites.source": "ginibre", "sites.density_per_km2": 2.0})
    chosen = replace(Choices.of(given), sites=1.2)
    assert chosen.applied(given, DENSITY).sites.density_per_km2 == pytest.approx(2.4)
    assert not replace(chosen, sites=0.5).thins(given)


def test_only_sites_of_a_process_can_become_more(base: Scenario) -> None:
    drawn = base.override({"sites.source": "ginibre", "sites.density_per_km2": 2.0})
    assert most_sites(base, AS_GIVEN) == 1.0
    assert most_sites(drawn, AS_GIVEN) == 2.0
    for layout in LAYOUTS[1:]:
        most = replace(Choices.of(base), layout=layout, sites=most_sites(base, layout))
        assert most.applied(base, DENSITY).sites.density_per_km2 == pytest.approx(2 * DENSITY)


def test_real_sites_only_become_fewer(base: Scenario) -> None:
    fewer = replace(Choices.of(base), sites=0.5)
    assert fewer.applied(base, DENSITY) == base
    assert fewer.thins(base)
    assert fewer.layout == AS_GIVEN


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sites": 1.5}, "sites = 150 %: the scenario's sites are real ones"),
        ({"mix": (0.0, 0.0, 0.0, 0.0)}, "mix: all weights are 0"),
        ({"seed": "twelve"}, "seed = 'twelve': must be a whole number"),
        ({"seed": "<b>\n\u202e"}, "seed = '<b>': must be a whole number"),
        ({"seed": "9" * 40}, "at most 18 digits"),
        ({"seed": "-1"}, "must be a whole number from 0"),
        ({"epoch_min": 7}, "simulation.epoch_s = 420"),
        ({"policy": "magic"}, "routing.policy"),
        ({"load": -1.0}, "demand.request_rate_per_user_s"),
    ],
)
def test_what_does_not_fit_is_one_line(base: Scenario, changed: dict[str, object], words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        replace(Choices.of(base), **changed).applied(base, DENSITY)  # type: ignore[arg-type]
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_kept_sites_are_nested() -> None:
    few, many = kept_sites(44, 0.3, 5), kept_sites(44, 0.7, 5)
    assert (few.sum(), many.sum()) == (13, 31)
    assert not (few & ~many).any()
    assert kept_sites(44, 0.0, 5).sum() == 1
    assert kept_sites(44, 1.0, 5).all()
    assert not np.array_equal(few, kept_sites(44, 0.3, 6))


def test_epochs_divide_window_and_warm_up(base: Scenario) -> None:
    assert epoch_minutes(base) == [1, 2, 3, 5, 6, 10, 15, 30]
    odd = base.override({"simulation.epoch_s": 450.0})
    assert 7.5 in epoch_minutes(odd)
    for minutes in epoch_minutes(odd):
        replace(Choices.of(odd), epoch_min=minutes).applied(odd, DENSITY)
