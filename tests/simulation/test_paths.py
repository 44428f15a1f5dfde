"""Ways that are kept: along the streets, near the truth at every instant, whole, and of no effect on anything else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.city.trips import ACTIVITIES, HOME, MODES, STREET
from geoedge.results import PATH_COLUMNS, Results, followed
from geoedge.simulation import EdgeCity, Population
from geoedge.simulation import paths as paths_module
from geoedge.simulation.paths import TOLERANCE_M, Paths, simplified
from geoedge.streams import stream
from tests.simulation.test_dynamics import CROWD
from tests.simulation.test_mobility import HOUR, MODEL

EPOCHS_H = np.arange(7.0, 13.1, 0.5)


@pytest.fixture(scope="module")
def lived() -> tuple[Population, Paths, list[tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """A morning on streets with bends, some of them one way, and where all were every 20 s of it."""
    population = Population.draw(MODEL, 150, stream(4, "people"))
    population.advance(EPOCHS_H[0] * HOUR)
    paths, seen = Paths(len(population)), []
    for hour in EPOCHS_H[1:]:
        population.advance(hour * HOUR)
        paths.note(population)
        for time in np.arange(population.since_s, population.now_s, 20.0):
            xy, activity = population.positions(time)
            seen.append((np.full(len(population), time), xy, activity))
    return population, paths, seen


@pytest.fixture(scope="module")
def table(lived: tuple[Population, Paths, object]) -> pd.DataFrame:
    return lived[1].table(lived[0])


def each_trip(table: pd.DataFrame) -> list[pd.DataFrame]:
    return [rows for _, rows in table.groupby(["user", "trip"])]


def test_the_table_has_its_columns_and_a_hundred_residents_at_most(table: pd.DataFrame) -> None:
    assert {name: str(kind) for name, kind in table.dtypes.items()} == dict(PATH_COLUMNS)
    assert set(table.user) <= set(followed(150).tolist())
    assert len(followed(150)) == 100
    assert followed(7).tolist() == list(range(7))
    assert (np.diff(followed(10_000)) >= 100).all()
    assert followed(1).tolist() == [0]
    assert set(table["mode"]) == set(MODES)


def test_every_vertex_lies_on_a_street_of_the_mode(table: pd.DataFrame) -> None:
    for mode, graph in MODEL.streets.items():
        lines = np.split(graph.geometry_xy, graph.geometry_offset[1:-1])
        streets = shapely.MultiLineString([shapely.LineString(line) for line in lines])
        mine = table[table["mode"] == mode]
        away = shapely.distance(shapely.points(mine[["x_m", "y_m"]].to_numpy()), streets)
        assert away.max() < 1e-6


def test_people_are_where_their_path_is_and_on_no_street_without_one(lived, table: pd.DataFrame) -> None:
    population, _, seen = lived
    time = np.concatenate([one[0] for one in seen])
    xy = np.concatenate([one[1] for one in seen])
    user = np.tile(np.arange(len(population)), len(seen))
    moving = np.concatenate([one[2] for one in seen]) == STREET
    told = np.zeros(len(time), dtype=bool)
    trips = each_trip(table)
    for rows in trips:
        depart, arrive = rows.depart_s.iloc[0], rows.arrive_s.iloc[0]
        during = (user == rows.user.iloc[0]) & (time >= depart) & (time < arrive)
        drawn = [np.interp(time[during], rows.time_s, rows[axis]) for axis in ("x_m", "y_m")]
        assert np.hypot(*(xy[during].T - drawn)).max(initial=0.0) <= TOLERANCE_M + 1e-6
        told |= during
    assert len(trips) > 100
    assert told.sum() > 1000
    np.testing.assert_array_equal(told, moving & np.isin(user, followed(len(population))))


def test_trips_begin_and_end_at_the_doors_of_what_they_join(lived, table: pd.DataFrame) -> None:
    population = lived[0]
    for rows in each_trip(table):
        one, times = rows.iloc[0], rows.time_s.to_numpy()
        assert (times[0], times[-1]) == (one.depart_s, pytest.approx(one.arrive_s, abs=1e-9))
        assert (np.diff(times) > 0.0).all()
        graph = MODEL.streets[one["mode"]]
        ends = rows[["x_m", "y_m"]].to_numpy()[[0, -1]]
        out = one.from_activity == ACTIVITIES[HOME]
        door = MODEL.home_door[one["mode"]][population.home[one.user]]
        np.testing.assert_allclose(ends[0 if out else 1], graph.node_xy[door], atol=1e-6)
        other = one.to_activity if out else one.from_activity
        places = MODEL.destination_door[one["mode"]][MODEL.destination_activity == ACTIVITIES.index(other)]
        assert np.abs(graph.node_xy[places] - ends[1 if out else 0]).sum(axis=1).min() < 1e-6
        speed = graph.edge_speed[0]
        assert one.length_m == pytest.approx(speed * (one.arrive_s - one.depart_s), rel=1e-9)
        assert one.length_m >= np.hypot(*np.diff(rows[["x_m", "y_m"]].to_numpy(), axis=0).T).sum() - 1e-6


def test_trips_over_the_turn_of_an_epoch_are_whole_and_there_once(table: pd.DataFrame) -> None:
    trips = table.groupby(["user", "trip"]).first()
    assert not trips.reset_index().duplicated(["user", "depart_s"]).any()
    over = np.floor(trips.depart_s / 1800.0) != np.floor(trips.arrive_s / 1800.0)
    assert over.sum() > 10
    for user, own in trips.groupby("user"):
        assert own.loc[user].index.tolist() == list(range(len(own)))
        assert (own.depart_s.to_numpy()[1:] >= own.arrive_s.to_numpy()[:-1]).all()
    first, last = trips.depart_s.min() / HOUR, trips.arrive_s.max() / HOUR
    assert first < EPOCHS_H[0] < EPOCHS_H[-1] < last  # under way as the run begins, and as it ends


def test_steps_of_another_length_give_the_same_table(table: pd.DataFrame) -> None:
    population = Population.draw(MODEL, 150, stream(4, "people"))
    population.advance(EPOCHS_H[0] * HOUR)
    paths = Paths(len(population))
    for hour in np.linspace(EPOCHS_H[0], EPOCHS_H[-1], 5)[1:]:
        population.advance(hour * HOUR)
        paths.note(population)
    pd.testing.assert_frame_equal(paths.table(population), table, check_exact=True)


def test_who_stays_has_no_path() -> None:
    still = Population.at_points(np.zeros((5, 2)))
    at_home = Population.draw(MODEL, 20, stream(1, "people"), still=True)
    for population in (still, at_home):
        paths = Paths(len(population))
        assert paths.table(population).empty
        population.advance(9 * HOUR)
        paths.note(population)
        table = paths.table(population)
        assert table.empty
        assert {name: str(kind) for name, kind in table.dtypes.items()} == dict(PATH_COLUMNS)


SECONDS = st.integers(0, 60_000).map(lambda steps: steps / 1000.0)
STEPS = st.lists(st.tuples(SECONDS, st.floats(-80.0, 80.0), st.floats(-80.0, 80.0)), min_size=2, max_size=40)


@given(st.lists(STEPS, min_size=1, max_size=4), st.floats(0.1, 50.0))
@settings(max_examples=150, deadline=None)
def test_a_simplified_path_is_near_at_every_instant(ways: list[list[tuple[float, ...]]], far: float) -> None:
    path = np.repeat(np.arange(len(ways)), [len(way) for way in ways])
    steps = [np.cumsum(np.array(way), axis=0) for way in ways]
    time, xy = np.concatenate(steps)[:, 0], np.concatenate(steps)[:, 1:]
    kept = simplified(path, time, xy, far)
    for k in range(len(ways)):
        mine = path == k
        assert kept[mine][0]
        assert kept[mine][-1]
        t, few = time[mine], time[mine & kept]
        if np.unique(t).size < len(t):
            continue  # at one instant it would be in two places
        when = np.union1d(t, np.linspace(t[0], t[-1], 60))
        for axis in range(2):
            whole, drawn = np.interp(when, t, xy[mine, axis]), np.interp(when, few, xy[mine & kept, axis])
            assert np.abs(whole - drawn).max() <= far * (1 + 1e-9) + 1e-9


def test_what_goes_straight_and_evenly_keeps_its_ends_and_a_change_of_pace_its_place() -> None:
    along = np.array([0.0, 50.0, 120.0, 300.0, 400.0])
    xy = np.column_stack([along, 2 * along])
    same = np.zeros(5, dtype=np.int64)
    assert simplified(same, along / 3.0, xy, 0.01).tolist() == [True, False, False, False, True]
    slower = np.array([0.0, 50.0, 120.0, 660.0, 960.0])
    assert simplified(same, slower, xy, 1.0).tolist() == [True, False, True, False, True]


# -- in a run ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(study) -> Results:
    return EdgeCity(study.scenario.override({"dynamics.events": [CROWD]}), study=study, rng=11).run()


def test_requests_on_the_street_were_made_on_the_path(results: Results, study) -> None:
    table, records = results.tables["paths"], results.records.to_pandas()
    streets = records[(records.activity == STREET) & records.user.isin(followed(results.meta["users"]))]
    found = 0
    for rows in each_trip(table):
        one = rows.iloc[0]
        mine = records[(records.user == one.user) & records.created_s.between(one.depart_s, one.arrive_s)]
        assert (mine.activity == STREET).all()
        drawn = [np.interp(mine.created_s, rows.time_s, rows[axis]) for axis in ("x_m", "y_m")]
        assert np.hypot(mine.x_m - drawn[0], mine.y_m - drawn[1]).max() <= TOLERANCE_M or not len(mine)
        found += len(mine)
        before = records[(records.user == one.user) & (records.created_s < one.depart_s)].tail(1)
        if rows.trip.iloc[0] == 0 and len(
            before
        ):  # where it asked before it left: at the building of this door
            assert ACTIVITIES[before.activity.iloc[0]] == one.from_activity
            graph = study.mobility.streets[one["mode"]]
            door = graph.node_xy[graph.nearest_node(before[["x_m", "y_m"]].to_numpy())]
            np.testing.assert_allclose(door[0], rows[["x_m", "y_m"]].iloc[0], atol=1e-6)
    assert found > 20
    assert len(streets) == found


def test_people_of_crowds_are_not_followed(results: Results) -> None:
    assert results.records.column("user").to_numpy().max() >= results.meta["users"]
    assert results.tables["paths"].user.max() < results.meta["users"]


def test_whom_a_run_follows_changes_nothing_else(
    results: Results, study, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.setattr(paths_module, "followed", lambda _: np.zeros(0, dtype=np.int64))
    scenario = study.scenario.override({"dynamics.events": [CROWD]})
    other = EdgeCity(scenario, study=study, rng=11).run()
    assert other.tables["paths"].empty
    one, two = results.save(tmp_path / "one"), other.save(tmp_path / "two")
    names = {path.name for path in one.iterdir()} - {"paths.parquet", "provenance.json"}
    assert "requests.parquet" in names
    assert [n for n in sorted(names) if (one / n).read_bytes() != (two / n).read_bytes()] == []


def test_the_same_seed_gives_the_same_bytes_and_they_come_back(results: Results, study, tmp_path) -> None:
    scenario = study.scenario.override({"dynamics.events": [CROWD]})
    again = EdgeCity(scenario, study=study, rng=11).run()
    one, two = results.save(tmp_path / "one"), again.save(tmp_path / "two")
    assert (one / "paths.parquet").read_bytes() == (two / "paths.parquet").read_bytes()
    pd.testing.assert_frame_equal(
        Results.load(one).tables["paths"], results.tables["paths"], check_exact=True
    )
    other = EdgeCity(scenario, study=study, rng=12).run().tables["paths"]
    assert not other.equals(results.tables["paths"])
