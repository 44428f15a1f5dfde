from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from geoedge.city import City
from geoedge.maps.levels import LevelScale
from geoedge.maps.samples import SMOOTH_M, Served, mix, people, waits, with_people
from geoedge.results import Results
from geoedge.theory import relaxation_time, transient_wait_tail, wait_cdf
from tests.maps.conftest import CELL, EAST, NORTH
from tests.maps.test_levels import decoded

ROOTS = np.linspace(0.0, 1.0, 25)


def test_the_distribution_of_waits_is_the_one_recorded_after_the_warm_up(run: Results) -> None:
    found = waits(run)
    assert found is not None
    scale = LevelScale(**found["scale"])
    table = run.records.to_pandas()
    after = table[table.created_s >= 28_800.0]
    for site in range(5):
        mine = after.wait_s[after.site == site].to_numpy()
        assert found["requests"][site] == len(mine)
        top = found["top_s"][site]
        assert (mine <= top).mean() >= 0.99
        share = (mine[:, None] <= top * ROOTS**2).mean(axis=0)
        np.testing.assert_allclose(decoded(found["measured"][site], scale), share, atol=1e-4)
    assert found["requests"][5] == 0


def test_erlangs_formula_stands_at_the_sites_own_load(run: Results) -> None:
    found = waits(run)
    assert found is not None
    scale = LevelScale(**found["scale"])
    rate = found["requests"][2] / 3600.0  # one epoch lies after the warm-up; a service takes two seconds
    expected = wait_cdf(found["top_s"][2] * ROOTS**2, rate, 0.5, 5)
    np.testing.assert_allclose(decoded(found["erlang"][2], scale), expected, atol=1e-4)
    assert found["overloaded"] == [0] * 6
    assert found["restless"] == [0] * 6


def test_a_site_that_failed_for_a_while_got_its_requests_in_the_rest_of_the_epoch(run: Results) -> None:
    failed = (run.epochs.site == 2) & (run.epochs.epoch == 1)
    epochs = run.epochs.assign(server_s=run.epochs.server_s.where(~failed, run.epochs.server_s / 3))
    whole, found = waits(run), waits(replace(run, epochs=epochs))
    assert whole is not None
    assert found is not None
    rate = found["requests"][2] / 1200.0  # of an hour it was open for 20 minutes
    expected = wait_cdf(found["top_s"][2] * ROOTS**2, rate, 0.5, 5)
    np.testing.assert_allclose(decoded(found["erlang"][2], LevelScale(**found["scale"])), expected, atol=1e-4)
    assert found["erlang"][2] != whole["erlang"][2]
    assert found["erlang"][:2] == whole["erlang"][:2]


def test_a_site_asked_for_more_than_it_has_is_counted_and_knows_no_end(run: Results) -> None:
    table = run.records.set_column(
        run.records.schema.get_field_index("finished_s"),
        "finished_s",
        pa.array(run.records.column("started_s").to_numpy() + 1e4),
    )
    found = waits(replace(run, records=table))
    assert found is not None
    assert found["overloaded"] == [1, 1, 1, 1, 1, 0]
    assert found["restless"] == [1, 1, 1, 1, 1, 0]
    assert decoded(found["erlang"][0], LevelScale(**found["scale"])).max() == 0.0


def near_capacity(utilization: float) -> Served:
    """Return one site of two servers and services of 1 s, an hour of warm-up at half of it and an hour at that."""
    asked = np.array([3600, round(7200 * utilization)])
    epoch = np.repeat([0, 1], asked)
    service = np.tile([0.5, 1.5], len(epoch) // 2)
    served = Served(np.zeros_like(epoch), epoch, np.where(epoch > 0, 0.2, 9.0), service, epoch == 1, (2, 1))
    served.servers, served.open_s = np.full((2, 1), 2.0), np.full((2, 1), 3600.0)
    served.rate = asked[:, None] / 3600.0
    served.offered = served.rate.copy()
    return served


def test_the_warm_up_feeds_the_queue_but_does_not_count() -> None:
    served = near_capacity(0.95)
    assert served.count.ravel().tolist() == [0, 6840]
    assert served.asked.ravel().tolist() == [3600, 6840]
    assert set(served.wait_s.tolist()) == {0.2}
    times = np.array([0.0, 2.0, 10.0])
    both = transient_wait_tail(times, [1.0, 1.9], [1.0, 1.0], [2, 2], [3600.0, 3600.0])
    np.testing.assert_allclose(served.in_time(times), both[1])
    assert (both[1] > transient_wait_tail(times, [1.9], [1.0], [2], [3600.0])[0]).all()


def test_a_queue_rests_if_it_relaxes_while_its_site_is_open() -> None:
    served = near_capacity(0.95)
    longest = float(relaxation_time(1.9, 1.0, 2))
    assert served.rests().ravel().tolist() == [True, True]
    served.open_s[1] = 0.99 * longest
    assert served.rests().ravel().tolist() == [True, False]
    assert near_capacity(1.0).rests().ravel().tolist() == [True, False]


def test_the_error_of_a_load_is_that_of_arrivals_and_of_services() -> None:
    served = near_capacity(0.5)
    np.testing.assert_allclose(served.service_scv, 0.25)
    np.testing.assert_allclose(served.load_errors(), np.sqrt(1.25 / 3600.0))
    assert served.waiting_scv() == pytest.approx(0.25)
    idle = Served(*(np.zeros(0, dtype=kind) for kind in (np.int64, np.int64, float, float, bool)), (2, 1))
    assert np.isnan(idle.waiting_scv())


def test_requests_that_nobody_served_are_left_out(run: Results) -> None:
    site = np.where(run.records.column("site").to_numpy() == 1, -1, run.records.column("site").to_numpy())
    table = run.records.set_column(run.records.schema.get_field_index("site"), "site", pa.array(site))
    found = waits(replace(run, records=table))
    assert found is not None
    assert found["requests"][1] == 0
    nobody = run.records.set_column(
        run.records.schema.get_field_index("site"), "site", pa.array(np.full(len(site), -1))
    )
    found = waits(replace(run, records=nobody))
    assert found is not None
    assert found["requests"] == [0] * 6


def test_people_are_where_they_asked_last(run: Results, town: City) -> None:
    found = people(run, town, 7)
    assert found is not None
    table = run.records.to_pandas()
    for epoch in range(2):
        x, y = (decoded(found[axis][epoch], LevelScale(**found[f"scale_{axis}"])) for axis in "xy")
        last = table[table.epoch == epoch].groupby("user").last()
        expected = town.to_lonlat(last[["x_m", "y_m"]].to_numpy())
        for here in np.column_stack([x, y]):
            assert np.abs(expected - here).max(axis=1).min() < 1e-5
    assert len(found["activity"][0]) == 7


def test_without_records_there_is_neither(run: Results, town: City) -> None:
    empty = replace(run, records=pa.table({}))
    assert waits(empty) is None
    assert people(empty, town, 100) is None


def test_the_mix_is_what_was_asked_in_the_epoch(run: Results) -> None:
    table = run.records.to_pandas()
    expected = table.groupby("epoch").request_type.value_counts(normalize=True).unstack(fill_value=0.0)
    found = np.array(mix(run))
    assert found.shape == (2, len(run.meta["type_names"]))
    np.testing.assert_allclose(found[:, expected.columns], expected, atol=1e-5)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-4)


def test_an_epoch_in_which_nobody_asks_has_the_mix_of_the_whole_run(run: Results) -> None:
    first = run.records.filter(np.asarray(run.records.column("epoch")) == 0)
    found = mix(replace(run, records=first))
    assert found is not None
    assert found[0] == found[1]
    assert mix(replace(run, records=run.records.slice(0, 0))) is None


def test_everybody_who_asked_on_the_land_is_counted_once(run: Results) -> None:
    cells = with_people(run.tables["cells"], run)
    table = run.records.to_pandas().sort_values("created_s")
    for epoch in range(2):
        here = cells[cells.epoch == epoch]
        people_there = here.people_per_km2.sum() * CELL**2 / 1e6
        assert people_there == pytest.approx(table[table.epoch == epoch].user.nunique(), rel=1e-9)
    assert (cells.people_per_km2 >= 0).all()


def test_people_are_densest_where_they_asked_last(run: Results) -> None:
    n = run.records.num_rows
    at = {
        "x_m": np.full(n, EAST + 425.0),
        "y_m": np.full(n, NORTH + 375.0),
        "user": np.zeros(n, dtype=np.int32),
    }
    before = {
        "x_m": EAST + 25.0,
        "y_m": NORTH + 25.0,
    }  # all but the last request of each epoch were made elsewhere
    epoch = np.asarray(run.records.column("epoch"))
    last = np.append(epoch[1:] != epoch[:-1], True)
    for axis, place in before.items():
        at[axis][~last] = place
    table = {name: at.get(name, run.records.column(name)) for name in run.records.column_names}
    cells = with_people(run.tables["cells"], replace(run, records=pa.table(table)))
    one = cells[cells.epoch == 1]
    top = one.loc[one.people_per_km2.idxmax()]
    assert (top.x_m, top.y_m) == (EAST + 425.0, NORTH + 375.0)
    assert top.people_per_km2 == pytest.approx(1e6 / (2 * np.pi * SMOOTH_M**2), rel=0.05)


def test_without_records_cells_stay_as_they_are(run: Results) -> None:
    cells = run.tables["cells"]
    assert with_people(cells, replace(run, records=run.records.slice(0, 0))) is cells
