"""Why Erlang's formula at measured loads has a longer tail than what is simulated: the loads, not the queues.

A frozen city: Monaco's real sites, people who stand still and ask for hours what they ask at 18:00, prices and caches
that stay, services exponential at the mean of each site. Its queues are M/M/c at rest, and the formula at the loads
of all hours is what is simulated. Nothing is changed then but the time in which loads are measured: at those of every
quarter of an hour, as a run with epochs has them, the tail of the formula is too long by as much as chance in a load
makes it. Were it the service, routing that answers to queues, or what is counted, the first comparison would fail;
were it too short a time to come to rest, the second would.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from geoedge.maps.samples import Served
from geoedge.results import Results
from geoedge.streams import stream
from geoedge.theory import wait_cdf
from tests.validation.test_field_is_simulation import SEED, Trial, assert_agree, half_width, trial

pytestmark = pytest.mark.slow

LOAD = 1.45
"""Requests, in those of the scenario: about 81 % mean utilisation, 87 % at the busiest site."""
QUARTER_S = 900.0
TIMES = np.array([1.0, 5.0, 10.0, 20.0])
DRAWS = 400


@lru_cache(maxsize=1)
def frozen() -> Trial:
    return trial(LOAD)


def cut(run: Results, length_s: float) -> Results:
    """Return the same requests and waits under epochs of another length."""
    start, end = run.meta["start_s"], run.meta["horizon_s"]
    created = run.records.column("created_s").to_numpy()
    epoch = pa.array(((created - start) // length_s).astype(np.int64))
    place = run.records.column_names.index("epoch")
    cuts = [
        run.epochs.assign(
            epoch=k,
            start_s=start + k * length_s,
            end_s=start + (k + 1) * length_s,
            server_s=run.epochs["concurrency"] * length_s,
        )
        for k in range(round((end - start) / length_s))
    ]
    return replace(run, records=run.records.set_column(place, "epoch", epoch), epochs=pd.concat(cuts))


@lru_cache(maxsize=2)
def measured_in(length_s: float) -> Served:
    return Served.of(cut(frozen().results, length_s))


def formula(served: Served) -> np.ndarray:
    """Return the share of all requests that wait longer than each of the times at rest, at the loads measured."""
    sites = served.count.sum(axis=0)
    return 1.0 - sites @ served.erlang(np.broadcast_to(TIMES, (len(sites), len(TIMES)))) / sites.sum()


def simulated() -> list[np.ndarray]:
    """Return the same as it is simulated, batch by batch."""
    run = frozen()
    return [run.batch_means(run.column("wait_s") > time) for time in TIMES]


def test_the_tail_of_a_frozen_city_is_erlangs_at_the_loads_of_all_its_hours():
    whole = formula(measured_in(frozen().results.meta["horizon_s"] - frozen().results.meta["start_s"]))
    assert_agree(
        {
            f"longer than {time:g} s": (batches, value, 0.4 * value if time < TIMES[-1] else value)
            for time, batches, value in zip(TIMES, simulated(), whole, strict=True)
        }
    )


def test_at_loads_of_a_quarter_of_an_hour_the_formula_has_too_long_a_tail_for_the_same_waits():
    served = measured_in(QUARTER_S)
    assert served.rests().all()
    tail = formula(served)
    for time, batches, value in list(zip(TIMES, simulated(), tail, strict=True))[1:]:
        print(
            f"longer than {time:g} s: {batches.mean():.5f} ± {half_width(batches):.5f}, formula {value:.5f}"
        )
        assert value > batches.mean() + half_width(batches), time
    # nor does time to come to rest explain it: the queues here were never empty, and M/M/c in its time has that tail too
    assert served.in_time(TIMES) == pytest.approx(tail, rel=0.1)


def test_chance_in_the_loads_alone_makes_it_so_long():
    """Counts and mean services drawn around the loads of all hours give the formula the very tail of the quarters."""
    run = frozen().results
    known, short = measured_in(run.meta["horizon_s"] - run.meta["start_s"]), measured_in(QUARTER_S)
    rng = stream(SEED, "chance")
    mean, sites = known.service_s[0], known.count[0] > 0
    drawn = rng.poisson(known.rate[0] * QUARTER_S, (DRAWS, len(mean)))[:, sites]
    service = rng.standard_gamma(np.maximum(drawn, 1)) / np.maximum(drawn, 1) * mean[sites]
    cdf = wait_cdf(
        TIMES[:, None, None], drawn / QUARTER_S, 1.0 / service, known.servers[0, sites].astype(int)
    )
    draws = DRAWS * (drawn * (1.0 - cdf)).sum(axis=2) / drawn.sum()
    expected, spread = draws.mean(axis=1), draws.std(axis=1) / np.sqrt(len(short.count))
    found = formula(short)
    for time, a, b, s in zip(TIMES, found, expected, spread, strict=True):
        print(f"longer than {time:g} s: measured {a:.5f}, by chance {b:.5f} ± {2.58 * s:.5f}")
    assert (np.abs(found - expected) < 3.0 * spread).all()
    assert (found > formula(known) + 3.0 * spread)[1:].all()
