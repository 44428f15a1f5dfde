"""Tables of a run: an epoch's gain in hindsight is shared out over the actions that the review is about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoedge.city.names import NamedWay, name_streets
from geoedge.control.actions import Action, Change
from geoedge.control.log import LogEntry, Review
from geoedge.control.placement import PlacementEvent
from geoedge.simulation.tables import action_table, site_table
from tests.simulation.conftest import EAST, NORTH, make_layout, make_town


def entry(site, predicted, *, kind="replicate", epoch=1):
    change = Change(site, 0, 1, 10.0)
    return LogEntry(epoch, 100.0, Action(kind, (change,), predicted_gain=predicted), 1.0)


def realised(log, review):
    begun = [PlacementEvent(100.0, "start", change.site) for each in log for change in each.action.changes]
    return action_table(log, {1: review}, {1: 0.7}, begun)["realised_gain"].to_numpy()


def test_the_gain_goes_to_the_actions_by_what_they_promised():
    log = [entry(0, 0.03), entry(1, 0.01), entry(2, 0.0, kind="restore"), entry(3, 0.02, epoch=2)]
    found = realised(log, Review(0.60, 0.68))
    assert found[:2] == pytest.approx([0.06, 0.02])
    assert np.isnan(found[2:]).all(), "a repair was not promised, and of epoch 2 there is no review"


def test_an_action_whose_site_has_failed_has_no_part_in_the_gain():
    log = [entry(0, 0.03), entry(1, 0.01), entry(2, 0.01)]
    found = realised(log, Review(0.60, 0.68, frozenset({0})))
    assert np.isnan(found[0])
    assert found[1:] == pytest.approx([0.04, 0.04])
    assert np.nansum(found) == pytest.approx(0.08)


def test_a_move_between_two_sites_counts_as_long_as_one_of_them_stands():
    both = LogEntry(
        1, 100.0, Action("migrate", (Change(0, 1, 0, 0.0), Change(1, 0, 1, 10.0)), predicted_gain=0.02), 1.0
    )
    found = realised([both, entry(2, 0.02)], Review(0.60, 0.64, frozenset({0})))
    assert found == pytest.approx([0.02, 0.02])


def test_a_site_has_the_name_of_the_nearest_street_within_sixty_metres():
    layout, corner = make_layout(), np.array([EAST, NORTH])
    near, far = layout.xy[0] - corner + (0.0, 59.0), layout.xy[1] - corner + (0.0, 61.0)
    ways = [
        NamedWay(name, 1, corner + place + np.array([(-50.0, 0.0), (50.0, 0.0)]))
        for name, place in (("Rue <b>Basse</b>", near), ("Too far", far))
    ]
    named = replace(make_town(), street_names=name_streets(ways, np.asarray))
    table = site_table(named, layout)
    assert table["street"].tolist() == ["Rue <b>Basse</b>", *[""] * 5]
    bare = site_table(make_town(), layout)
    assert bare["street"].tolist() == [""] * 6
    assert bare.drop(columns="street").equals(table.drop(columns="street"))
