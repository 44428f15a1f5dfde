"""Sentences about events: numbers that are in the table, no text from maps."""

from __future__ import annotations

import pandas as pd

from geoedge.compare.happenings import happenings
from geoedge.simulation.effects import EVENT_COLUMNS


def table(*rows):
    plain = {
        "event": 0,
        "number": 0,
        "kind": "flash_crowd",
        "start_s": 64_800.0,
        "end_s": 68_400.0,
        "lon": 7.4276,
        "lat": 43.739,
        "x_m": 0.0,
        "y_m": 0.0,
        "radius_m": 150.0,
        "sites": "",
        "people": 0,
        "requests": 0,
        "coverage": float("nan"),
        "coverage_of_others": 0.701,
        "rerouted": 0,
        "restored_bytes": 0.0,
        "not_restored": 0,
        "detail": "place = <script>",
    }
    return pd.DataFrame([plain | row for row in rows]).astype(EVENT_COLUMNS)


def test_a_crowd_a_failure_and_what_answers_do_not_know():
    lines = list(
        happenings(
            table(
                {"people": 2000, "requests": 12_345, "coverage": 0.612},
                {
                    "kind": "site_failure",
                    "sites": "2 4",
                    "rerouted": 53,
                    "restored_bytes": 4.7e8,
                    "not_restored": 1,
                },
                {"kind": "prefix_update", "end_s": 64_800.0, "detail": "prefix = tools"},
                {"kind": "controller_down"},
            )
        )
    )
    assert lines[0] == (
        "Flash crowd, 18:00 to 19:00: 2,000 people within 150 m of 43.7390, 7.4276 asked 12,345 requests, 61.2% of them in "
        "time; 70.1% of all other requests meanwhile were in time."
    )
    assert lines[1] == (
        "Site failure, 18:00 to 19:00, sites 2 4: 53 requests were sent again; sites fetched 0.47 GB again; 1 stayed empty, "
        "as plans had given what they held to others; 70.1% of the requests meanwhile were in time."
    )
    assert lines[2] == "New version of a prefix, 18:00 (prefix = tools): sites fetched 0.00 GB again."
    assert lines[3] == (
        "Absence of the controller, 18:00 to 19:00: 70.1% of the requests meanwhile were in time."
    )
    assert "theory and field know announced crowds and stated drifts alone" in lines[4]
    assert not any("<script>" in line for line in lines)


def test_what_lasts_beyond_midnight_ends_at_a_time_of_day():
    rows = table({"kind": "controller_down", "start_s": 84_600.0, "end_s": 90_000.0})
    assert next(happenings(rows)).startswith("Absence of the controller, 23:30 to 01:00: ")


def test_many_events_of_a_kind_are_summed_and_none_says_nothing():
    rows = [{"kind": "site_failure", "start_s": 64_800.0 + 60 * k, "rerouted": 10} for k in range(5)]
    first, last = happenings(table(*rows))
    assert first == (
        "5 site failures begun from 18:00 to 18:04: 50 requests were sent again; sites fetched 0.00 GB again."
    )
    assert "ordinary day" in last
    people = [{"people": 10, "requests": 7}] * 4
    assert next(happenings(table(*people))) == (
        "4 flash crowds begun from 18:00 to 18:00, 40 people, 28 requests."
    )
    assert list(happenings(table({}).iloc[:0])) == []
