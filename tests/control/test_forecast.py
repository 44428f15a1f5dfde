"""Forecasts: persistence, expectation, knowledge, and what a crowd's own movement says."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from geoedge.city.demand import Demand
from geoedge.control.forecast import FORECASTS, make_forecaster
from geoedge.control.measure import Seen, Sources
from geoedge.errors import GeoEdgeError
from geoedge.scenario.operation import ControlConfig

EPOCH_S = 1800.0
EXPECTED = tuple(Demand(np.zeros((1, 2)), np.array([[float(k + 1)]])) for k in range(5))


def walkers(epoch, *, share, seed=0, users=4000, extra=0.0):
    """Users who ask about six times an epoch; of those in the west, a share leaves for the east every second."""
    rng = np.random.default_rng((seed, 1))
    leaves = rng.exponential(1.0 / share, users) if share else np.full(users, np.inf)
    rng = np.random.default_rng((seed, 2, epoch))
    base = 1.0 + extra * epoch
    whole = base + 0.5 * extra
    count = rng.poisson(6 * users * whole)
    level = 2.0 * whole * np.sort(rng.random(count))  # the rate rises evenly through the epoch
    share_of_epoch = level / (base + np.sqrt(base**2 + extra * level))
    user, time = rng.integers(users, size=count), (epoch + share_of_epoch) * EPOCH_S
    east = time > leaves[user]
    xy = np.column_stack((np.where(east, 2000.0, 100.0) + 10.0 * (user % 7), 50.0 + 40.0 * (user % 5)))
    return Seen(epoch * EPOCH_S, (epoch + 1) * EPOCH_S, time, user, (user % 3 == 0).astype(np.int64), xy)


def sources(**crowd):
    return Sources(2, 50.0, EXPECTED, lambda epoch: walkers(epoch, **crowd))


def error(forecast, came):
    """Return the relative L1 error by side of town and type."""

    def sums(demand):
        east = demand.xy[:, 0] > 1000.0
        return np.array([demand.rate[east].sum(axis=0), demand.rate[~east].sum(axis=0)])

    return np.abs(sums(forecast) - sums(came)).sum() / came.request_rate


def errors(name, made, epochs=9):
    """Return the error of each forecast of the next epoch."""
    forecaster, found = make_forecaster(name, made), []
    for epoch in range(epochs - 1):
        forecaster.observe(made.ask(epoch))
        (demand,) = forecaster.ahead(epoch + 1, 1)
        found.append(error(demand, made.measured(made.ask(epoch + 1))))
    return np.array(found)


def test_forecasts_are_those_that_a_scenario_may_name():
    assert set(get_args(ControlConfig.model_fields["forecast"].annotation)) == set(FORECASTS)
    with pytest.raises(GeoEdgeError, match=r"control\.forecast = 'rumour'"):
        make_forecaster("rumour", sources(share=0.0))


def test_the_last_epoch_goes_on():
    made = sources(share=1e-4)
    forecaster = make_forecaster("last", made)
    forecaster.observe(made.ask(0))
    one, other = forecaster.ahead(1, 2)
    assert one is other
    assert np.array_equal(one.rate, made.measured(made.ask(0)).rate)


def test_expectation_ends_with_the_window():
    assert make_forecaster("expected", sources(share=0.0)).ahead(3, 4) == EXPECTED[3:]


def test_what_is_known_comes():
    made = sources(share=1e-4)
    found = make_forecaster("known", made).ahead(3, 4)
    assert len(found) == 2
    assert np.array_equal(found[1].rate, made.measured(made.ask(4)).rate)


def test_a_walking_crowd_is_met_where_it_goes():
    made = sources(share=1.5e-4)
    last, moving = errors("last", made), errors("movement", made)
    assert moving[0] == pytest.approx(last[0])  # nothing has been learned yet
    assert moving[2:].mean() < 0.75 * last[2:].mean()


def test_growth_is_followed():
    made = sources(share=0.0, extra=0.2)
    assert errors("movement", made)[3:].mean() < 0.75 * errors("last", made)[3:].mean()


def test_a_resting_crowd_is_left_where_it_is():
    made = sources(share=0.0)
    assert errors("movement", made).mean() < errors("last", made).mean() + 0.005


def test_further_ahead_the_same_goes_on_and_fades():
    made = sources(share=1.5e-4)
    forecaster = make_forecaster("movement", made)
    for epoch in range(4):
        forecaster.observe(made.ask(epoch))
    west = [demand.rate[demand.xy[:, 0] < 1000.0].sum() for demand in forecaster.ahead(4, 3)]
    now = made.measured(made.ask(3))
    steps = -np.diff([now.rate[now.xy[:, 0] < 1000.0].sum(), *west])
    assert steps[0] > steps[1] > steps[2] > 0.0


def test_cells_that_lie_across_zones_are_no_matter():
    made = sources(share=1e-4)
    odd = Sources(2, 70.0, EXPECTED, made.ask)
    forecaster = make_forecaster("movement", odd)
    for epoch in range(3):
        forecaster.observe(odd.ask(epoch))
    (demand,) = forecaster.ahead(3, 1)
    assert demand.request_rate == pytest.approx(odd.measured(odd.ask(3)).request_rate, rel=0.1)


@pytest.mark.parametrize("name", ["last", "movement"])
def test_silence_tells_nothing(name):
    made = sources(share=0.0)
    forecaster = make_forecaster(name, made)
    assert forecaster.ahead(0, 2) == ()
    forecaster.observe(made.ask(0))
    none = np.zeros(0)
    quiet = Seen(EPOCH_S, 2 * EPOCH_S, none, none.astype(int), none.astype(int), np.zeros((0, 2)))
    forecaster.observe(quiet)
    assert forecaster.ahead(2, 2) == ()
    forecaster.observe(made.ask(2))
    assert len(forecaster.ahead(3, 2)) == 2


def test_one_request_is_enough():
    made = sources(share=0.0)
    forecaster = make_forecaster("movement", made)
    lone = Seen(0.0, EPOCH_S, np.array([10.0]), np.array([7]), np.array([1]), np.array([[-20.0, 3.0]]))
    forecaster.observe(lone)
    forecaster.observe(lone)
    (demand,) = forecaster.ahead(2, 1)
    assert demand.rate.tolist() == [[0.0, pytest.approx(1 / EPOCH_S, rel=0.5)]]
