from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from geoedge.city import City
from geoedge.maps.levels import LevelScale
from geoedge.maps.samples import people, waits
from geoedge.results import Results
from geoedge.theory import wait_cdf
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


def test_a_site_asked_for_more_than_it_has_is_counted_and_knows_no_end(run: Results) -> None:
    table = run.records.set_column(
        run.records.schema.get_field_index("finished_s"),
        "finished_s",
        pa.array(run.records.column("started_s").to_numpy() + 1e4),
    )
    found = waits(replace(run, records=table))
    assert found is not None
    assert found["overloaded"] == [1, 1, 1, 1, 1, 0]
    assert decoded(found["erlang"][0], LevelScale(**found["scale"])).max() == 0.0


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
