"""Sentences about events: numbers that are in the table, no text from maps."""

from __future__ import annotations

import pandas as pd

from geoedge.compare.happenings import happenings
from geoedge.simulation.happened import EVENT_COLUMNS

NAN = float("nan")


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
                {
                    "kind": "prefix_update",
                    "end_s": 64_800.0,
                    "detail": "prefix = tools",
                    "coverage_of_others": NAN,
                },
                {"kind": "controller_down"},
            )
        )
    )
    assert lines[0] == (
        "Flash crowd, 18:00 to 19:00: 2,000 people within 150 m of 43.7390, 7.4276 asked 12,345 requests, 61.2% of them in "
        "time; 70.1% of all other requests meanwhile were in time."
    )
    assert lines[1] == (
        "Site failure, 18:00 to 19:00, sites 2, 4: 53 requests were sent again; sites fetched 0.47 GB again; 1 site stayed "
        "empty, as plans had given what it held to others; 70.1% of the requests meanwhile were in time."
    )
    assert lines[2] == "New version of a prefix, 18:00 (prefix = tools)."
    assert lines[3] == (
        "Absence of the controller, 18:00 to 19:00: 70.1% of the requests meanwhile were in time."
    )
    assert "theory and field know announced crowds and stated drifts alone" in lines[4]
    assert not any("<script>" in line for line in lines)


def test_one_of_a_kind_is_singular_and_nothing_is_left_out():
    failure = {
        "kind": "site_failure",
        "sites": "3",
        "rerouted": 1,
        "restored_bytes": 2.5e6,
        "not_restored": 2,
    }
    lone, quiet, _ = happenings(table(failure, {"people": 1, "requests": 1, "coverage": 1.0}))
    assert lone == (
        "Site failure, 18:00 to 19:00, site 3: 1 request was sent again; sites fetched 2.5 MB again; 2 sites stayed empty, "
        "as plans had given what they held to others; 70.1% of the requests meanwhile were in time."
    )
    assert "1 person within 150 m of 43.7390, 7.4276 asked 1 request, 100.0% of them in time" in quiet
    silent = next(happenings(table({"people": 3, "coverage_of_others": NAN})))
    assert silent.endswith("asked nothing."), silent


def test_sites_are_named_by_number_or_counted():
    loss = {"kind": "backhaul_loss", "detail": "rate_left = 0.1"}
    every = " ".join(str(site) for site in range(21))

    def opening(sites, known):
        return next(happenings(table(loss | {"sites": sites}), known)).partition(":00, ")[2].partition(":")[0]

    assert opening(every, 21) == "all 21 sites (rate_left = 0.1)"
    assert opening(every, 44) == opening(every, None) == "21 sites (rate_left = 0.1)"
    assert opening("0 7", 44) == "sites 0, 7 (rate_left = 0.1)"
    assert opening("0", 1) == "the only site (rate_left = 0.1)"


def test_what_lasts_beyond_midnight_ends_at_a_time_of_day():
    rows = table({"kind": "controller_down", "start_s": 84_600.0, "end_s": 90_000.0})
    assert next(happenings(rows)).startswith("Absence of the controller, 23:30 to 01:00: ")


def test_what_is_over_soon_is_told_to_the_second():
    def when(start, end):
        rows = table({"kind": "controller_down", "start_s": start, "end_s": end})
        return next(happenings(rows)).removeprefix("Absence of the controller, ").partition(": ")[0]

    assert when(64_800.0, 64_830.4) == "18:00:00 to 18:00:30"
    assert when(64_859.6, 64_920.2) == "18:01:00 to 18:02:00"
    assert when(64_800.0, 65_040.0) == "18:00 to 18:04"
    assert when(64_811.0, 68_422.0) == "18:00 to 19:00"
    assert when(86_390.0, 86_410.0) == "23:59:50 to 00:00:10"


def test_many_events_of_a_kind_are_summed_with_what_they_did():
    rows = [
        {
            "kind": "site_failure",
            "start_s": 64_800.0 + 60 * k,
            "rerouted": 10,
            "coverage_of_others": 0.5 + 0.1 * k,
        }
        for k in range(4)
    ]
    first, last = happenings(table(*rows))
    assert first == (
        "4 site failures begun from 18:00 to 18:03: 40 requests were sent again; 65.0% of the requests meanwhile were in "
        "time, the mean over the events, and 50.0% during the worst."
    )
    assert "ordinary day" in last
    people = [{"people": 10, "requests": 7 * k, "coverage": 0.5 if k else NAN} for k in (0, 1, 1, 1)]
    assert next(happenings(table(*people))) == (
        "4 flash crowds begun from 18:00 to 18:00: 40 people asked 21 requests, 50.0% of them in time; 70.1% of all other "
        "requests meanwhile were in time, the mean over the events, and 70.1% during the worst."
    )
    updates = [{"kind": "prefix_update", "end_s": 64_800.0, "coverage_of_others": NAN}] * 4
    assert next(happenings(table(*updates))) == "4 new versions of prefixes begun from 18:00 to 18:00."
    assert list(happenings(table({}).iloc[:0])) == []
