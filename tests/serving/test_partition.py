"""Routers that are cut off from reports: each keeps what it has heard, and hears again afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.serving import Advert, Requests, ServingEngine
from geoedge.serving.doors import Admission
from geoedge.serving.inquiring import RoutingOptions

SITES = np.random.default_rng(4).random((8, 2))
NEVER_CLOSED = Admission(close_threshold=1e9)
"""Doors that never close: routers look at every site all the same."""


def engine(**given):
    return ServingEngine(
        SITES,
        np.arange(8) % 3,
        1 + np.arange(8) % 2,
        np.tile(0.1 + 0.05 * np.arange(8)[:, None], 2),
        [0.5, 1.0],
        delay_coefficient=0.3,
        delay_exponent=2.0,
        **given,
    )


def people(low, high, seed, routers=1, rate=9.0):
    rng = np.random.default_rng(seed)
    m = int(rate * (high - low))
    return Requests(
        np.sort(rng.uniform(low, high, m)),
        *rng.random((2, m)),
        rng.integers(0, 2, m),
        rng.standard_exponential(m),
        rng.integers(0, routers, m),
    )


def live(one, advert, routers=1):
    """Serve for a minute, cut off from the 20th to the 40th second; return the waits as known then and later."""
    one.run(people(0.0, 20.0, 1, routers), 20.0, advert)
    one.part()
    known = [one.advertised_wait_s]
    for k in range(4):
        one.run(people(20.0 + 5 * k, 25.0 + 5 * k, 2 + k, routers), 25.0 + 5 * k, advert)
        known.append(one.advertised_wait_s)
    one.rejoin()
    one.run(people(40.0, 60.0, 9, routers), 60.0, advert)
    return known, one.advertised_wait_s


HEARD = {
    "state": Advert("state", telemetry_period_s=1.5, telemetry_delay_s=4.0),
    "measured": Advert("measured", telemetry_period_s=3.0),
    "present": Advert("state", telemetry_period_s=0.0),
    "tier": Advert("state", scope="tier", telemetry_period_s=2.0),
}


@pytest.mark.parametrize("advert", HEARD.values(), ids=HEARD.keys())
def test_both_kinds_of_routing_keep_the_same_and_hear_the_same_again(advert):
    found = []
    for options in (RoutingOptions(), RoutingOptions(admission=NEVER_CLOSED)):
        one = engine(options=options)
        known, after = live(one, advert)
        for waits in known[1:]:
            np.testing.assert_array_equal(waits, known[0])
        assert not np.array_equal(after, known[0])
        one.finish()
        found.append((one.records(), known[0], after))
    (plain, before, later), (asking, same, then) = found
    np.testing.assert_array_equal(plain.site, asking.site)
    np.testing.assert_allclose(plain.ttft_s, asking.ttft_s, rtol=1e-12)
    np.testing.assert_allclose(before, same, rtol=1e-12)
    np.testing.assert_allclose(later, then, rtol=1e-12)


@pytest.mark.parametrize("period", [0.0, 4.0])
def test_each_of_several_routers_keeps_its_own_reports_and_counts_on(period):
    one = engine(options=RoutingOptions(routers=3, counts_own=True), policy="power_of_two")
    advert = Advert("state", telemetry_period_s=period)
    one.run(people(0.0, 20.0, 1, 3), 20.0, advert)
    one.part()
    reports = one.routing._routers.reports.copy()
    one.run(people(20.0, 40.0, 2, 3), 40.0, advert)
    np.testing.assert_array_equal(one.routing._routers.reports, reports)
    sent = one.routing._routers.sent
    assert (sent.sum(axis=0) > 0).all()
    if period:
        assert not np.array_equal(reports[0], reports[1])
    one.rejoin()
    one.run(people(40.0, 40.0 + 2 * max(period, 1.0), 3, 3), 40.0 + 2 * max(period, 1.0), advert)
    one.finish()
    assert one.records().counts()["served"] == one.n_requests
    if period:
        assert not np.array_equal(one.routing._routers.reports, reports)


def test_the_next_report_is_made_when_it_always_was_and_none_is_made_up():
    one = engine(options=RoutingOptions(admission=NEVER_CLOSED))
    advert = Advert("state", telemetry_period_s=4.0)
    one.run(people(0.0, 21.0, 1), 21.0, advert)
    one.part()
    before = one.advertised_wait_s
    one.run(people(21.0, 33.0, 2), 33.0, advert)
    one.rejoin()
    one.run(people(33.0, 35.9, 3), 35.9, advert)
    np.testing.assert_array_equal(one.advertised_wait_s, before)
    one.run(people(35.9, 36.1, 4), 36.1, advert)
    assert not np.array_equal(one.advertised_wait_s, before)
