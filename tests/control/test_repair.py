"""What sites do by themselves after a loss, and predictions for the sites that are left."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from geoedge.control.outage import OpenSites
from geoedge.control.planners.base import Limits, Prediction
from geoedge.control.repair import invalidation, may_restore, restoration, still_valid
from geoedge.scenario import load_scenario

MOVED = np.array([[0.0, 1.0, 5.0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("prefix", "left"),
    [
        ("system", [0, 0, 0, 0]),
        ("tools", [0, 1, 1, 3]),
        ("agent", [0, 1, 1, 3]),
        ("guide", [0, 1, 2, 1]),
    ],
)
def test_what_is_left_is_the_most_that_does_not_extend_what_has_changed(prefix, left):
    # Monaco's profiles: nothing, system, system + tools + agent, system + guide.
    assert still_valid(load_scenario("monaco").workload, prefix).tolist() == left


def test_a_restoration_fetches_what_is_missing_and_an_invalidation_nothing():
    action = restoration(7, 1, 2, MOVED, "site 7 has recovered")
    assert (action.kind, action.sites, action.bytes_moved) == ("restore", (7,), 4.0)
    assert action.apply(np.ones(8, dtype=np.int64))[7] == 2
    gone = invalidation(7, 2, 1, "tools")
    assert (gone.kind, gone.bytes_moved, gone.reason) == ("invalidate", 0.0, "tools has a new version")


def limits(least, most) -> Limits:
    return Limits(np.inf, np.array(least), np.array(most), 0.0)


@pytest.mark.parametrize(
    ("before", "goal", "rules", "may"),
    [
        ([0, 1, 2, 2], [0, 1, 2, 0], None, True),
        ([0, 1, 2, 2], [0, 1, 2, 0], limits([1, 0, 0], [4, 4, 2]), True),
        # A plan has given the profile to another site meanwhile: one more would be too many.
        ([0, 1, 2, 2], [0, 2, 2, 0], limits([0, 0, 0], [4, 4, 2]), False),
        # A plan has counted the empty site as a fallback and used up the other one.
        ([0, 1, 2, 2], [1, 1, 2, 0], limits([1, 0, 0], [4, 4, 4]), False),
        # There were too few fallbacks before, and there are no fewer now.
        ([1, 1, 2, 2], [1, 1, 2, 0], limits([1, 0, 0], [4, 4, 4]), True),
    ],
)
def test_a_site_goes_back_only_where_floor_and_cap_allow(before, goal, rules, may):
    assert may_restore(np.array(before), np.array(goal), 3, 2, rules) is may


class Shares:
    """A predictor whose numbers tell which sites it was asked about."""

    def __init__(self, sites):
        self.sites, self.asked = np.asarray(sites, dtype=float), []

    def solve(self, profile, start=None):
        self.asked.append((profile.copy(), start))
        columns = {field.name: self.sites + 10.0 * profile for field in fields(Prediction)[2:]}
        return Prediction(0.5, profile, **columns)

    def screen(self, profile, base):
        assert np.array_equal(base.wait, self.sites + 10.0 * profile)
        return np.tile(self.sites[:, None], (1, 3))

    def judge(self, profile, wait):
        return float((profile * wait).sum())

    def coarse(self):
        return self


def test_open_sites_are_predicted_as_if_there_were_no_others():
    is_open = np.array([True, False, True, True, False])
    inner = Shares([0, 2, 3])
    outer = OpenSites(inner, is_open, np.array([7.0, 8.0, 9.0]))
    profile = np.array([1, 1, 0, 2, 2])
    found = outer.solve(profile)
    assert np.array_equal(found.profile, profile)
    assert found.arrival_rate.tolist() == [10.0, 0.0, 2.0, 23.0, 0.0]
    assert found.wait.tolist() == [10.0, np.inf, 2.0, 23.0, np.inf]
    assert found.occupancy.tolist() == [10.0, 8.0, 2.0, 23.0, 9.0]
    again = outer.solve(profile, found)
    assert again.coverage == 0.5
    assert inner.asked[1][0].tolist() == [1, 0, 2]
    assert inner.asked[1][1].wait.tolist() == [10.0, 2.0, 23.0]
    gains = outer.screen(profile, found)
    assert gains[:, 0].tolist() == [0.0, -np.inf, 2.0, 3.0, -np.inf]
    assert outer.judge(profile, np.arange(5.0)) == 0 * 1 + 2 * 0 + 3 * 2
    assert outer.coarse().solve(profile).coverage == 0.5
