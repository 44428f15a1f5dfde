"""The expected demand of the shipped Monaco is the density of its simulated users, cell by cell.

Each user is looked at once, at an instant of its own, so that users are independent draws from the expected
presence and cell counts are multinomial: a chi-square test applies as it stands.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from geoedge.city import load_city
from geoedge.city.demand import RequestRates, expected_demand
from geoedge.city.presence import expected_presence
from geoedge.city.raster import presence_raster
from geoedge.city.trips import make_mobility
from geoedge.simulation.mobility import Population, draw_requests
from geoedge.streams import stream

HOUR = 3600.0
CELL_M = 50.0
USERS = 400_000
HABITS = {
    "walk_share": 0.6,
    "departures_per_hour": [0.02] * 6 + [0.2, 0.6, 0.7, 0.35, 0.25, 0.3, 0.4] + [0.3] * 7 + [0.1] * 4,
    "work_share": [0.5] * 6 + [1.0] * 3 + [0.8, 0.6, 0.5] + [0.3] * 12,
    "leisure_share": [0.2] * 9 + [0.4, 0.6, 0.7] + [0.8] * 12,
    "dwell_hours": {"work": 4.0, "leisure": 1.5},
    "destinations": 240,
}


@pytest.fixture(scope="module")
def mobility():
    return make_mobility(load_city("monaco"), **HABITS, rng=stream(1, "destinations"))


@pytest.fixture(scope="module")
def morning(mobility):
    """Many users, with their positions known from 06:45 to 09:15."""
    population = Population.draw(mobility, USERS, stream(1, "people"))
    population.advance(6.75 * HOUR)
    population.advance(9.25 * HOUR)
    return population


def counts_by_cell(centres, xy, activity):
    """Users by activity and cell of the raster; none may be off it."""
    key = np.round(centres / CELL_M - 0.5).astype(np.int64)
    cell = np.floor(xy / CELL_M).astype(np.int64)
    order = np.lexsort((key[:, 1], key[:, 0]))
    joined = key[order, 0] * 10**7 + key[order, 1]
    wanted = cell[:, 0] * 10**7 + cell[:, 1]
    place = np.searchsorted(joined, wanted)
    assert (joined[np.minimum(place, len(joined) - 1)] == wanted).all()
    counts = np.zeros((len(centres), 4))
    np.add.at(counts, (order[place], activity), 1)
    return counts


def chi_square(counts, probability):
    """p value and cells; whatever is expected fewer than five times is one class."""
    observed, expected = counts.ravel(), probability.ravel() * counts.sum()
    common = expected >= 5.0
    observed = np.append(observed[common], observed[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    keep = expected > 1e-9
    return stats.chisquare(observed[keep], expected[keep], sum_check=False).pvalue, int(keep.sum())


def presence_by_cell(mobility, begin, end):
    centres, spent = presence_raster(expected_presence(mobility, [(begin, end)]), CELL_M)
    return centres, spent.sum(axis=2) / (end - begin)


@pytest.mark.parametrize(
    ("begin", "end"),
    [(7.0, 9.0), (7.0, 7.05), (8.0, 8.1), (8.9, 8.95)],
    ids=["two hours", "three minutes after a jump", "six minutes after a jump", "three minutes"],
)
def test_density_of_users_cell_by_cell_and_activity_by_activity(mobility, morning, begin, end):
    begin, end = begin * HOUR, end * HOUR
    centres, probability = presence_by_cell(mobility, begin, end)
    times = begin + (end - begin) * stream(2, "instants", int(begin)).random(USERS)
    counts = counts_by_cell(centres, *morning.position(np.arange(USERS), times))
    for observed, expected in (
        (counts, probability),
        (counts[:, 3], probability[:, 3] / probability[:, 3].sum()),
        (counts.sum(axis=0), probability.sum(axis=0)),
    ):
        p_value, _ = chi_square(observed, expected)
        assert p_value > 1e-3


def test_the_test_would_notice_five_minutes(mobility, morning):
    # Without travel lag, or with one that is wrong, the surface of 07:05 would be taken for that of 07:00.
    centres, probability = presence_by_cell(mobility, 7.0 * HOUR, 7.05 * HOUR)
    times = (7.0 + 5 / 60 + 0.05 * stream(2, "late").random(USERS)) * HOUR
    counts = counts_by_cell(centres, *morning.position(np.arange(USERS), times))
    on_street = probability[:, 3] / probability[:, 3].sum()
    assert chi_square(counts[:, 3], on_street)[0] < 1e-6


def test_requests_by_type_and_cell_follow_the_expected_demand(mobility, morning):
    # A user asks so rarely that requests are nearly independent: counts are Poisson.
    rates = RequestRates(
        np.array([4e-6, 3e-6]),
        np.array([[1.0, 0.3, 2.0, 4.0], [0.5, 3.0, 1.0, 0.0]]),
        np.tile(np.linspace(0.5, 2.0, 24), (2, 1)),
    )
    epochs = [(7.5 * HOUR, 8.25 * HOUR)]
    (demand,) = expected_demand(mobility, rates, users=USERS, epochs=epochs, cell_m=CELL_M)
    asked = draw_requests(morning, rates, *epochs[0], stream(1, "requests"))
    key = np.floor(np.column_stack([asked.x_m, asked.y_m]) / CELL_M)
    cells = np.floor(demand.xy / CELL_M)
    expected = demand.rate * 0.75 * HOUR
    number = {tuple(cell): k for k, cell in enumerate(cells.tolist())}
    row = np.array([number.get(tuple(cell), -1) for cell in key.tolist()])
    counts = np.zeros_like(expected)
    np.add.at(counts, (row[row >= 0], asked.request_type[row >= 0]), 1)
    assert (row >= 0).all()
    np.testing.assert_allclose(counts.sum(axis=0), expected.sum(axis=0), atol=4.5 * np.sqrt(expected.sum()))
    assert chi_square(counts, expected / expected.sum())[0] > 1e-3


def test_shares_at_an_instant(mobility, morning):
    for hour in (7.2, 8.05, 9.0):
        (expected,) = expected_presence(mobility, [(hour * HOUR - 1.0, hour * HOUR + 1.0)]).activity_shares
        found = morning.activity_shares(hour * HOUR)
        z = (found - expected) / np.sqrt(expected * (1 - expected) / USERS)
        assert np.abs(z).max() < 4.0
