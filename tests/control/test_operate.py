"""Operating: prices for what is held now, moves for what was measured, and a look back at what came of them."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.city.demand import Demand
from geoedge.control.catalogue import CLOSED_WAIT_S, Catalogue
from geoedge.control.log import decision_frame
from geoedge.control.measure import measure_demand
from geoedge.control.operate import Operator, Routing
from geoedge.control.placement import Placement
from geoedge.control.planners import PLANNERS, Limits, Prediction
from geoedge.errors import GeoEdgeError

BYTES = np.array([[0.0, 10.0], [0.0, 0.0]])


class Told:
    """A predictor whose coverage is a tenth of the sites that hold profile 1, scaled by the demand."""

    def __init__(self, demand: Demand) -> None:
        self.scale = demand.request_rate

    def solve(self, profile, start=None):
        one = np.ones(len(profile))
        wait = 0.1 * profile + self.scale
        return Prediction(self._coverage(profile), profile, wait, one, one, one, one, one)

    def screen(self, profile, base):
        gain = 0.1 * self.scale * (1 - 2 * profile)
        return np.where(np.arange(2) == profile[:, None], -np.inf, gain[:, None])

    def judge(self, profile, wait):
        return self._coverage(profile)

    def _coverage(self, profile):
        return 0.1 * self.scale * float(profile.sum())


def demand(rate):
    return Demand(np.zeros((1, 2)), np.array([[float(rate)]]), 50.0)


def make_operator(profile=(0, 0, 0), *, budget=10.0, advertise="equilibrium", predictor=Told):
    limits = Limits(budget, np.zeros(2, dtype=np.int64), np.full(2, 3), 0.01)
    placement = Placement(np.array(profile), backhaul_bytes_per_s=1.0)
    return Operator(predictor, placement, Routing(advertise=advertise), transfer_bytes=BYTES, limits=limits)


def test_nothing_is_moved_before_anything_is_measured():
    operator = make_operator()
    operator.act(0.0, 0, demand(1))
    assert operator.log == []
    assert operator.catalogue.wait.tolist() == [1.0, 1.0, 1.0]
    operator.act(100.0, 1, demand(2))
    assert [entry.action.kind for entry in operator.log] == ["replicate"]
    assert (operator.log[0].epoch, operator.log[0].time_s, operator.log[0].transfer_s) == (1, 100.0, 10.0)


def test_prices_are_those_of_what_is_held_until_states_arrive():
    operator = make_operator()
    operator.act(0.0, 0, demand(1))
    operator.act(100.0, 1, demand(1))
    assert operator.placement.profile.tolist() == [0, 0, 0]
    assert operator.catalogue.wait.tolist() == [1.0, 1.0, 1.0]
    assert list(operator.arrive(105.0)) == []
    assert [change.site for change in operator.arrive(110.0)] == [0]
    assert operator.catalogue.wait.tolist() == [1.1, 1.0, 1.0]
    assert operator.catalogue.utilization is operator.prediction.utilization


def test_look_back_asks_the_demand_that_came():
    operator = make_operator()
    operator.act(0.0, 0, demand(1))
    operator.act(100.0, 1, demand(1))
    operator.arrive(110.0)
    operator.act(200.0, 2, demand(3))
    assert operator.reviews[1].without == pytest.approx(0.0)
    assert operator.reviews[1].with_actions == pytest.approx(0.3)
    operator.arrive(210.0)
    operator.look_back(demand(5))
    assert operator.reviews[2].gain == pytest.approx(0.5)


def test_an_action_gets_no_credit_for_what_an_earlier_one_brings():
    """States begun in epoch 1 arrive in epoch 2, whose own action is still on its way when it ends."""
    operator = make_operator()
    operator.act(0.0, 0, demand(1))
    operator.act(100.0, 1, demand(1))
    operator.act(105.0, 2, demand(1))
    assert operator.reviews[1].gain == 0.0
    operator.arrive(110.0)
    operator.look_back(demand(1))
    assert [entry.epoch for entry in operator.log] == [1, 2]
    assert operator.reviews[2].without == operator.reviews[2].with_actions == pytest.approx(0.1)


class Crowding(Told):
    """Sites are worth by their profile and by the wait that they advertise."""

    def judge(self, profile, wait):
        return self._coverage(profile) - 0.01 * float(wait.sum())


def test_states_that_arrive_while_the_controller_is_away_are_reviewed_at_the_waits_that_stayed():
    operator = make_operator(predictor=Crowding)
    operator.act(0.0, 0, demand(1))
    operator.act(100.0, 1, demand(1))
    operator.absent = True
    operator.arrive(110.0)
    operator.absent = False
    assert operator.catalogue.wait.tolist() == [1.0, 1.0, 1.0]
    operator.act(200.0, 2, demand(2))
    assert operator.reviews[1].with_actions == pytest.approx(0.2 - 0.03)
    assert operator.reviews[1].without == pytest.approx(0.0 - 0.03)


@pytest.mark.parametrize("failed", [0, 1])
def test_a_site_that_failed_is_no_part_of_what_an_action_did(failed):
    """Without the action it would have lost its cache all the same."""
    operator = make_operator((0, 0, 0), budget=20.0)
    operator.act(0.0, 0, demand(1))
    operator.act(100.0, 1, demand(1))
    assert [entry.action.sites for entry in operator.log] == [(0,), (1,)]
    operator.arrive(110.0)
    operator.placement.fail(failed, 120.0)
    operator.placement.recover(failed, 130.0)
    operator.look_back(demand(1))
    assert operator.reviews[1].gain == pytest.approx(0.1)


def test_the_field_does_not_judge_waits_that_sites_report_themselves():
    operator = make_operator(advertise="state")
    operator.act(0.0, 0, demand(1))
    operator.act(100.0, 1, demand(1))
    operator.look_back(demand(1))
    assert operator.log
    assert operator.reviews == {}


def test_silence_changes_nothing():
    operator = make_operator()
    operator.act(0.0, 0, demand(1))
    operator.act(100.0, 1, None)
    assert operator.log == []
    assert operator.catalogue.wait.tolist() == [1.0, 1.0, 1.0]


def test_catalogue_offers_a_finite_wait_everywhere():
    made = Catalogue("equilibrium", "site", np.array([0.5, np.inf]), np.ones(2))
    assert made.prices.tolist() == [0.5, CLOSED_WAIT_S]
    advert = made.advert()
    assert advert.kind == "static"
    assert advert.waits(2).tolist() == [0.5, CLOSED_WAIT_S]


def test_catalogue_hands_telemetry_on():
    made = Catalogue("state", "tier", np.zeros(1), np.zeros(1), 5.0, 2.0)
    advert = made.advert()
    assert (advert.kind, advert.scope, advert.telemetry_period_s, advert.telemetry_delay_s) == (
        "state",
        "tier",
        5.0,
        2.0,
    )


@pytest.mark.parametrize(("kind", "waits"), [("rumour", 1), ("state", 2)])
def test_catalogue_refuses_nonsense(kind, waits):
    with pytest.raises(GeoEdgeError):
        Catalogue(kind, "site", np.zeros(waits), np.zeros(1))


def test_measured_demand_counts_every_request_in_its_cell():
    rng = np.random.default_rng(3)
    xy, kind = rng.uniform(-500, 700, (5000, 2)), rng.integers(0, 3, 5000)
    found = measure_demand(xy, kind, 4, 250.0, 50.0)
    assert np.allclose(found.rate.sum(axis=0) * 250.0, np.bincount(kind, minlength=4))
    where = {tuple(cell): k for k, cell in enumerate(found.xy.tolist())}
    for point, q in zip(xy[::97], kind[::97], strict=True):
        centre = (np.floor(point / 50.0) + 0.5) * 50.0
        same = (np.floor(xy / 50.0) == np.floor(point / 50.0)).all(axis=1) & (kind == q)
        assert found.rate[where[tuple(centre)], q] == pytest.approx(same.sum() / 250.0)


def test_nothing_seen_is_no_demand():
    with pytest.raises(GeoEdgeError, match="0 requests"):
        measure_demand(np.zeros((0, 2)), np.zeros(0, int), 1, 10.0, 50.0)


def ahead_operator(**more):
    kept = Limits(10.0, np.zeros(2, dtype=np.int64), np.full(2, 3), 0.01)
    placement = Placement(np.array((0, 0, 0)), backhaul_bytes_per_s=1.0)
    planner = PLANNERS["look_ahead"]
    fields = {"transfer_bytes": BYTES, "limits": kept, "planner": planner, "name": "look_ahead"} | more
    return Operator(Told, placement, Routing(), **fields)


def test_the_gain_of_the_epoch_that_starts_stands_beside_that_of_the_horizon():
    """Of three sites one is given profile 1, which brings a tenth of the demand: 1, then 5 requests/s."""
    operator, forecast = ahead_operator(), (demand(1), demand(5))
    operator.act(0.0, 0, demand(1))
    operator.act(100.0, 1, demand(1), forecast)
    (entry,), (row,) = operator.log, operator.decisions
    mean = (1 * 0.1 + 5 * 0.5) / 6  # weighted by requests
    assert entry.action.predicted_gain == pytest.approx(0.1)
    assert entry.action.horizon_gain == pytest.approx(mean)
    assert entry.action.horizon_epochs == row.horizon_epochs == 2
    assert entry.action.reason.startswith("means over the 2 epochs ahead; ")
    assert (row.coverage_before, row.coverage_after) == pytest.approx((0.0, 0.1))
    assert (row.horizon_coverage_before, row.horizon_coverage_after) == pytest.approx((0.0, mean))
    assert (row.planner, row.left_out_bytes, row.why) == ("look_ahead", 10.0, "budget")
    operator.arrive(110.0)
    operator.look_back(demand(1))
    # held against what came of it: the same, as what was forecast of this epoch is what came
    assert operator.reviews[1].gain == pytest.approx(entry.action.predicted_gain)


def test_where_only_one_epoch_is_looked_at_both_gains_are_the_same():
    operator = make_operator()
    operator.act(0.0, 0, demand(1))
    operator.act(100.0, 1, demand(2))
    (entry,), (row,) = operator.log, operator.decisions
    assert entry.action.predicted_gain == entry.action.horizon_gain == pytest.approx(0.2)
    assert "means over" not in entry.action.reason
    assert (row.coverage_before, row.coverage_after) == (
        row.horizon_coverage_before,
        row.horizon_coverage_after,
    )


def test_a_decision_to_do_nothing_says_what_was_left_out_and_why():
    operator = make_operator(budget=9.0)
    operator.act(0.0, 0, demand(1))
    operator.act(100.0, 1, demand(2))
    (row,) = operator.decisions
    assert (row.actions, row.why, row.left_out) == (0, "budget", "replicate site 0 0 -> 1")
    assert row.left_out_gain == pytest.approx(0.2)


def test_epochs_without_a_plan_have_a_row_that_says_why():
    operator = make_operator()
    operator.act(0.0, 0, demand(1))
    operator.stay_away(100.0, 1)
    operator.act(200.0, 2, None)
    operator.act(300.0, 3, demand(1))
    frame = decision_frame(operator.decisions)
    assert frame["epoch"].tolist() == [1, 2, 3]
    assert frame["why"].tolist()[:2] == ["absent", "no demand"]
    assert frame["actions"].tolist() == [0, 0, 1]
    assert frame["coverage_before"].isna().tolist() == [True, True, False]
    assert frame["horizon_epochs"].tolist() == [0, 0, 1]
    still = make_operator()
    still.limits = None
    still.stay_away(100.0, 1)
    assert still.decisions == []
