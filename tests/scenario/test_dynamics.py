"""Events of a scenario: read and written back, refused in one line with the cure."""

from __future__ import annotations

import pytest

from geoedge.errors import ScenarioError
from geoedge.scenario import Scenario, load_scenario
from geoedge.scenario.dynamics import EVENT_KEYS, EventConfig

GOOD = {
    "flash_crowd": {"start_hour": 18.0, "duration_s": 3600.0, "people": 2000, "place": "Casino"},
    "site_failure": {"per_day": 4.0, "duration_s": 600.0, "count": 2, "detection_s": 5.0},
    "backhaul_loss": {"start_hour": 18.0, "duration_s": 600.0, "rate_left": 0.1, "sites": [0, 3]},
    "catalogue_partition": {"start_hour": 18.0, "duration_s": 600.0},
    "controller_down": {"per_day": 1.0, "duration_s": 1800.0},
    "popularity_drift": {"start_hour": 17.0, "duration_s": 3600.0, "sd_per_hour": 0.3},
    "prefix_update": {"per_day": 6.0, "prefix": "tools"},
}


@pytest.fixture(scope="module")
def monaco() -> Scenario:
    return load_scenario("monaco")


def with_events(scenario, *events):
    return scenario.override({"dynamics.events": list(events)})


def refusal(scenario, *events):
    with pytest.raises(ScenarioError) as caught:
        with_events(scenario, *events)
    line = str(caught.value)
    assert line.isprintable(), line
    return line


def changed(kind, **given):
    entry = {"kind": kind} | GOOD[kind] | given
    return {key: value for key, value in entry.items() if value is not None}


def test_every_kind_is_read_and_written_back(monaco, tmp_path):
    assert set(GOOD) == set(EVENT_KEYS)
    full = with_events(monaco, *({"kind": kind} | given for kind, given in GOOD.items()))
    assert load_scenario(full.save(tmp_path / "full.toml")) == full
    assert full != monaco
    assert monaco.dynamics.events == ()


def test_a_scenario_without_events_is_what_it_was(monaco):
    assert monaco.override({"dynamics.events": []}) == monaco
    assert monaco.dynamics.expected == ()


def test_announced_crowds_and_stated_drifts_are_expected_and_nothing_else(monaco):
    stated = changed("popularity_drift", sd_per_hour=None, types=[{"name": "chat", "weight": 1.0}])
    full = with_events(
        monaco, *map(changed, GOOD), changed("flash_crowd", announced=True), stated | {"start_hour": 20.0}
    )
    assert [event.kind for event in full.dynamics.expected] == ["flash_crowd", "popularity_drift"]


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (changed("flash_crowd", people=None), "people is missing: a flash_crowd needs duration_s, people"),
        (changed("flash_crowd", start_hour=None), "needs either start_hour [h] or per_day [1/day]"),
        (changed("flash_crowd", per_day=1.0), "and both are given"),
        (changed("flash_crowd", lon=7.4), "lat is missing; a point has lon and lat"),
        (changed("flash_crowd", lon=7.4, lat=43.7), "lon and lat are given as well"),
        (changed("flash_crowd", rate_left=0.5), "a flash_crowd takes duration_s, people, place"),
        (changed("flash_crowd", gather_s=4000.0), "would still arrive when it is over; at most duration_s"),
        (changed("flash_crowd", place=None, announced=True), "a crowd at a place yet to be drawn"),
        (changed("flash_crowd", start_hour=None, per_day=1.0, announced=True), "nobody can announce"),
        (
            changed("flash_crowd", types=[{"name": "gide", "weight": 1.0}]),
            "\"gide\" is no request type, did you mean 'guide'?",
        ),
        (changed("flash_crowd", types=[{"name": "chat", "weight": 0.0}]), "all weights are 0"),
        (changed("flash_crowd", types=[{"name": "chat", "weight": 1.0}] * 2), '"chat" is named 2 times'),
        (changed("site_failure", sites=[1]), "needs one of sites, count, or a place"),
        (changed("site_failure", count=None, sites=[1, 1]), "site 1 is named 2 times"),
        (changed("site_failure", radius_m=50.0), "around which place?"),
        (changed("site_failure", detection_s=-1.0), "≥ 0 and ≤ 86400"),
        (changed("controller_down", detection_s=5.0), "a controller_down takes duration_s"),
        (changed("backhaul_loss", rate_left=1.0), "≥ 0 and < 1"),
        (changed("controller_down", people=3), "a controller_down takes duration_s"),
        (
            changed("popularity_drift", sd_per_hour=None),
            "needs either types, for where it leads, or sd_per_hour",
        ),
        (changed("popularity_drift", start_hour=None, per_day=2.0), "begins at a stated hour"),
        (changed("prefix_update", prefix="tool"), "no such prefix, did you mean 'tools'?"),
        (changed("flash_crowd", place="x" * 300), "1 to 200 characters"),
        ({"kind": "flash_mob"}, 'one of "flash_crowd", "site_failure"'),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else value[:30],
)
def test_what_makes_no_sense_is_refused_with_its_cure(monaco, event, words):
    line = refusal(monaco, event)
    assert "dynamics.events[0]" in line
    assert words in line


def test_drifts_do_not_overlap(monaco):
    line = refusal(monaco, changed("popularity_drift"), changed("popularity_drift", start_hour=17.5))
    assert "events[1].start_hour = 17.5" in line
    assert "lasts until 18 h" in line
    with_events(monaco, changed("popularity_drift"), changed("popularity_drift", start_hour=18.0))


def test_a_study_without_a_city_has_no_time_of_day():
    assert "without [city] has no time of day" in refusal(load_scenario("paper"), changed("controller_down"))


def test_begin_and_end_are_seconds_since_midnight():
    event = EventConfig(kind="controller_down", start_hour=17.1, duration_s=60.0)
    assert (event.start_s, event.end_s) == (61_560.0, 61_620.0)
