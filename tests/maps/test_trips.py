from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoedge.city import City
from geoedge.errors import OutputError
from geoedge.maps.levels import LevelScale
from geoedge.maps.trips import MODES, trips
from geoedge.maps.wire import UNIT
from geoedge.results import Results
from geoedge.workload import ACTIVITIES
from tests.maps.test_levels import decoded


def test_trips_come_with_their_way_and_its_instants(run: Results, town: City) -> None:
    found = trips(run, town, 100)
    assert found is not None
    table = run.tables["paths"]
    for k, (_, rows) in enumerate(table.groupby(["user", "trip"])):
        one = rows.iloc[0]
        assert (found["user"][k], found["length_m"][k]) == (one.user, 600)
        assert (found["depart_s"][k], found["arrive_s"][k]) == (one.depart_s, one.arrive_s)
        assert list(MODES)[found["mode"][k]] == one["mode"]
        assert ACTIVITIES[found["from"][k]] == one.from_activity
        assert ACTIVITIES[found["to"][k]] == one.to_activity
        spent = decoded(found["spent"][k], LevelScale(**found["scale"]))
        np.testing.assert_allclose(
            one.depart_s + spent * (one.arrive_s - one.depart_s), rows.time_s, atol=0.1
        )
        way = np.cumsum(np.array(found["way"][k]).reshape(-1, 2), axis=0) * UNIT
        np.testing.assert_allclose(way, town.to_lonlat(rows[["x_m", "y_m"]].to_numpy()), atol=UNIT)


def test_fewer_residents_bring_all_of_their_trips(run: Results, town: City) -> None:
    found = trips(run, town, 1)
    assert found is not None
    assert found["user"] == [3, 3]
    assert trips(run, town, 0) is None


def test_without_paths_there_are_none(run: Results, town: City) -> None:
    assert trips(run.with_tables(paths=run.tables["paths"].iloc[:0]), town, 100) is None
    assert trips(replace(run, tables={}), town, 100) is None


@pytest.mark.parametrize(("column", "known"), [("mode", "walk, drive"), ("to_activity", "home, work")])
def test_a_table_with_strange_words_is_an_error(run: Results, town: City, column: str, known: str) -> None:
    strange = run.tables["paths"].assign(**{column: "<b>fly</b>"})
    with pytest.raises(OutputError, match=f"names '<b>fly</b>'; it knows {known}"):
        trips(run.with_tables(paths=strange), town, 100)


def test_a_place_that_is_not_finite_is_an_error(run: Results, town: City) -> None:
    with pytest.raises(OutputError, match="not finite"):
        trips(run.with_tables(paths=run.tables["paths"].assign(x_m=np.nan)), town, 100)


def test_a_trip_that_ends_as_it_begins_is_an_error(run: Results, town: City) -> None:
    still = run.tables["paths"].assign(arrive_s=lambda table: table["depart_s"])
    with pytest.raises(OutputError, match="ends no later than it begins; run the scenario again"):
        trips(run.with_tables(paths=still), town, 100)
