"""On a simulated afternoon, what the crowd's own movement says beats persistence."""

from __future__ import annotations

import numpy as np
import pytest

import geoedge as ge
from geoedge.control.forecast import make_forecaster
from geoedge.control.measure import Sources
from geoedge.simulation.mobility import Population, draw_requests
from geoedge.simulation.steering import seen
from geoedge.streams import stream
from geoedge.study import prepare, request_rates

WINDOW = {"simulation.start_hour": 15.0, "simulation.duration_s": 16_200.0, "simulation.epoch_s": 1800.0}
ZONE_M = 300.0


def error(forecast, came):
    """Return the relative L1 error by zone and type."""
    xy = np.concatenate((forecast.xy, came.xy))
    rate = np.concatenate((forecast.rate, -came.rate))
    zones, zone = np.unique(np.floor(xy / ZONE_M), axis=0, return_inverse=True)
    total = np.zeros((len(zones), rate.shape[1]))
    np.add.at(total, zone.reshape(-1), rate)
    return np.abs(total).sum() / came.request_rate


@pytest.mark.slow
def test_movement_lies_between_persistence_and_what_the_model_expects():
    scenario = ge.load_scenario("monaco").override(WINDOW)
    study = prepare(scenario)
    rates, people = (
        request_rates(scenario, study.workload),
        Population.draw(study.mobility, 10_000, stream(4, "people")),
    )
    people.advance(study.epochs[0][0])
    day = []
    for epoch, (start, end) in enumerate(study.epochs):
        people.advance(end)
        day.append(seen(draw_requests(people, rates, start, end, stream(4, "requests", epoch)), start, end))
    sources = Sources(len(study.workload.type_names), scenario.demand.cell_m, study.demand, lambda k: day[k])
    mean = {}
    for name in ("last", "movement", "expected", "known"):
        forecaster, errors = make_forecaster(name, sources), []
        for epoch in range(len(day) - 1):
            forecaster.observe(day[epoch])
            (demand,) = forecaster.ahead(epoch + 1, 1)
            errors.append(error(demand, sources.measured(day[epoch + 1])))
        mean[name] = np.mean(errors[1:])
    assert mean["known"] < 1e-12
    # persistence loses to the moves of an epoch; what is left to the expectation is mostly counting noise
    assert mean["expected"] < mean["movement"] < 0.95 * mean["last"]
