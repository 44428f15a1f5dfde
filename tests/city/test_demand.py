"""The expected presence of users and the demand made of it, against closed forms and brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import shapely
import shapely.ops

from geoedge.city.attraction import destination_candidates, home_floor
from geoedge.city.city import BUILDING_KINDS, BuildingTable, City, PlaceTable
from geoedge.city.demand import Demand, RequestRates, demand_of, expected_demand, uniform_torus_demand
from geoedge.city.presence import expected_presence
from geoedge.city.raster import presence_raster, street_pieces
from geoedge.city.routes import shortest_routes
from geoedge.city.streets import StreetGraph, polyline_lengths
from geoedge.city.trips import (
    ACTIVITIES,
    DAY_START_S,
    HOME,
    LEISURE,
    STREET,
    WORK,
    MobilityModel,
    hour_of,
    make_mobility,
    sample_by_weight,
)
from geoedge.errors import CityError, GeoEdgeError, ScenarioError

HOUR = 3600.0


def streets(mode, node_xy, edges, speed):
    """Directed edges with one bend each, so that a street is longer than the way between its ends."""
    node_xy = np.asarray(node_xy, dtype=float)
    edges = np.asarray(edges)
    start, end = node_xy[edges[:, 0]], node_xy[edges[:, 1]]
    bend = 0.5 * (start + end) + 0.2 * np.column_stack([-(end - start)[:, 1], (end - start)[:, 0]])
    line = np.stack([start, bend, end], axis=1).reshape(-1, 2)
    offset = np.arange(len(edges) + 1) * 3
    return StreetGraph(
        mode,
        node_xy,
        edges[:, 0].astype(np.int32),
        edges[:, 1].astype(np.int32),
        polyline_lengths(offset, line),
        np.full(len(edges), speed),
        offset,
        line,
    )


def ring(nodes=6, radius=400.0, speed=2.0):
    """One-way ring: the way back is never the way there."""
    angle = 2 * np.pi * np.arange(nodes) / nodes
    xy = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    return streets("walk", xy, [(k, (k + 1) % nodes) for k in range(nodes)], speed)


def one_home(graph, destination, *, rate=0.5, dwell_h=2.0, home=0):
    """Everybody lives at one node and visits one other."""
    return MobilityModel(
        home_building=np.array([0]),
        home_xy=graph.node_xy[[home]] + 3.0,
        home_probability=np.ones(1),
        home_door={"walk": np.array([home], dtype=np.int32)},
        destination_xy=graph.node_xy[[destination]] - 3.0,
        destination_activity=np.array([WORK]),
        destination_weight=np.ones(1),
        destination_door={"walk": np.array([destination], dtype=np.int32)},
        walk_share=1.0,
        departures_per_hour=np.full(24, float(rate)),
        work_share=np.ones(24),
        leisure_share=np.zeros(24),
        dwell_s=np.array([0.0, dwell_h * HOUR, HOUR, 0.0]),
        streets={"walk": graph},
    )


def town(seed=0, side=8, buildings=60):
    """Grid town with two modes, all kinds of buildings and some places."""
    rng = np.random.default_rng(seed)
    number = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [
            np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()]),
            np.column_stack([number[:-1].ravel(), number[1:].ravel()]),
        ]
    )
    both = np.concatenate([pairs, pairs[:, ::-1]])
    xy = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2) * 150.0
    xy = xy + rng.uniform(-40.0, 40.0, xy.shape)
    kinds = np.array(["shop=bakery", "amenity=cafe", "office=lawyer", "amenity=police"], dtype=object)
    return City(
        name="town",
        crs="EPSG:32632",
        checksum="0",
        attribution="",
        extract_date="unknown",
        boundary=shapely.box(-100, -100, side * 150, side * 150),
        streets={"walk": streets("walk", xy, both, 1.35), "drive": streets("drive", xy[::-1], both, 7.0)},
        buildings=BuildingTable(
            rng.uniform(0, side * 150, (buildings, 2)),
            rng.uniform(50, 400, buildings),
            rng.integers(1, 9, buildings).astype(float),
            rng.integers(0, len(BUILDING_KINDS), buildings),
            np.zeros(buildings, dtype=bool),
        ),
        places=PlaceTable(
            rng.uniform(0, side * 150, (40, 2)), rng.choice(kinds, 40), np.full(40, "", dtype=object)
        ),
    )


HABITS = {
    "walk_share": 0.6,
    "departures_per_hour": [0.02] * 6 + [0.2, 0.5, 0.6, 0.4, 0.3, 0.3, 0.4, 0.4] + [0.3] * 10,
    "work_share": [0.2] * 6 + [1.0, 1.0, 1.0, 0.8, 0.5, 0.4] + [0.4] * 12,
    "leisure_share": [0.2] * 8 + [0.3, 0.5, 0.7, 0.8] + [0.8] * 12,
    "dwell_hours": {"work": 3.5, "leisure": 1.0},
    "destinations": 12,
}


def town_mobility(**changes):
    return make_mobility(town(), **{**HABITS, **changes}, rng=np.random.default_rng(7))


RATES = RequestRates(
    np.array([2e-3, 1e-3]),
    np.array([[1.0, 2.0, 0.5, 0.0], [1.0, 0.0, 3.0, 2.0]]),
    np.random.default_rng(5).uniform(0.5, 1.5, (2, 24)),
)


# Closed forms


def test_nobody_leaves_when_the_rate_is_zero():
    shares = expected_presence(one_home(ring(), 2, rate=0.0), [(8 * HOUR, 9 * HOUR)]).activity_shares
    np.testing.assert_allclose(shares, [[1.0, 0.0, 0.0, 0.0]], atol=1e-12)


def test_without_travel_home_and_work_are_a_two_state_chain():
    # At home H' = -λH + μ(1 - H), H(03:00) = 1.
    leave, end = 0.5 / HOUR, 1 / (2.0 * HOUR)
    epochs = [(4 * HOUR + 100.0 * k, 4 * HOUR + 100.0 * (k + 1)) for k in range(40)]
    found = expected_presence(one_home(ring(), 0), epochs, bin_s=60.0).activity_shares
    total = leave + end
    at = lambda t: end / total * t - leave / total**2 * np.exp(-total * t)  # noqa: E731
    since = np.array(epochs) - DAY_START_S
    np.testing.assert_allclose(found[:, HOME], (at(since[:, 1]) - at(since[:, 0])) / 100.0, atol=4e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)


def test_long_run_is_the_share_of_each_part_of_a_cycle():
    # A cycle is 1/λ at home, the way there, 1/μ at work and the way back.
    model = one_home(ring(), 2)
    presence = expected_presence(model, [(75 * HOUR, 99 * HOUR)])
    times = model.routes.streets.edge_time
    cycle = 2.0 * HOUR + 2.0 * HOUR + times.sum()
    np.testing.assert_allclose(
        presence.activity_shares[0], np.array([2 * HOUR, 2 * HOUR, 0.0, times.sum()]) / cycle, rtol=1e-4
    )
    by_edge = np.add.reduceat(presence.street_s.sum(axis=1), presence.part_offset[:-1]) / (24 * HOUR)
    np.testing.assert_allclose(by_edge, times / cycle, rtol=1e-4)


def test_first_trips_reach_each_street_with_their_lag():
    # Before anybody returns, those on an edge left between `t - end` and `t - begin`: flows 1 - exp(-λt).
    model = one_home(ring(radius=900.0), 4, dwell_h=1e6)
    times = model.routes.streets.edge_time
    passed = np.concatenate([[0.0], np.cumsum(times[:4])])
    epochs = [(DAY_START_S + 200.0 * k, DAY_START_S + 200.0 * (k + 1)) for k in range(12)]
    presence = expected_presence(model, epochs, bin_s=20.0)
    found = np.add.reduceat(presence.street_s, presence.part_offset[:-1])
    gone = lambda t: np.where(t > 0, t - (1 - np.exp(-0.5 / HOUR * t)) / (0.5 / HOUR), 0.0)  # noqa: E731
    since = np.array(epochs) - DAY_START_S
    for edge in range(4):
        expected = [
            gone(since[:, side] - passed[edge]) - gone(since[:, side] - passed[edge + 1]) for side in (0, 1)
        ]
        np.testing.assert_allclose(found[edge], expected[1] - expected[0], atol=2e-3)
    np.testing.assert_allclose(found[4:], 0.0, atol=1e-5)


def test_the_way_back_differs_on_a_one_way_street():
    model = one_home(ring(nodes=5), 1)
    presence = expected_presence(model, [(DAY_START_S, 12 * HOUR)])
    by_edge = np.add.reduceat(presence.street_s.sum(axis=1), presence.part_offset[:-1])
    out_only = by_edge[0] / model.routes.streets.edge_time[0]
    back = by_edge[1:] / model.routes.streets.edge_time[1:]
    assert (back > 0).all()
    assert (np.diff(back) < 0).all()  # those on the way back late in the window have not come far yet
    assert out_only > back[0]


def brute_force_shares(model, epochs, step):
    """March the lagged equations of each mode, home and destination on a fine grid, by plain Euler steps."""
    last = max(end for _, end in epochs)
    count = round((last - DAY_START_S) / step)
    clock = DAY_START_S + step * (np.arange(count) + 0.5)
    chance = model.destination_probability()[hour_of(clock)]
    leave = model.departures_per_hour[hour_of(clock)] / HOUR
    spent = np.zeros((count, 4))
    dwell = model.dwell_s[model.destination_activity]
    for code, mode in enumerate(("walk", "drive")):
        for home, probability in enumerate(model.home_probability):
            node = model.home_node[code, home]
            there = np.rint(model.routes.toward_time[:, node] / step).astype(int)
            back = np.rint(model.routes.away_time[:, node] / step).astype(int)
            at_home, visiting = 1.0, np.zeros(len(dwell))
            left, ended = np.zeros((count, len(dwell))), np.zeros((count, len(dwell)))
            row = np.arange(len(dwell))
            for k in range(count):
                arrive = np.where(k >= there, left[np.maximum(k - there, 0), row], 0.0)
                arrive = np.where(there == 0, 0.0, arrive)
                at_home += np.where((k >= back) & (back > 0), ended[np.maximum(k - back, 0), row], 0.0).sum()
                visiting += arrive
                left[k] = leave[k] * step * at_home * chance[k]
                at_home -= left[k].sum()
                visiting += np.where(there == 0, left[k], 0.0)
                ended[k] = visiting * step / dwell
                visiting -= ended[k]
                at_home += np.where(back == 0, ended[k], 0.0).sum()
                share = probability * model.mode_share(mode)
                spent[k, HOME] += share * at_home
                for activity in (WORK, LEISURE):
                    spent[k, activity] += share * visiting[model.destination_activity == activity].sum()
    spent[:, STREET] = 1.0 - spent.sum(axis=1)
    inside = [(clock > begin) & (clock < end) for begin, end in epochs]
    return np.array([spent[rows].mean(axis=0) for rows in inside])


def test_shares_match_a_brute_force_march_of_the_lagged_equations():
    model = town_mobility(destinations=6)
    few = np.argsort(model.home_probability)[-3:]
    model = replace(
        model,
        home_building=model.home_building[few],
        home_xy=model.home_xy[few],
        home_probability=np.array([0.5, 0.3, 0.2]),
        home_door={mode: door[few] for mode, door in model.home_door.items()},
    )
    epochs = [(6.5 * HOUR, 7 * HOUR), (7 * HOUR, 7.25 * HOUR), (8 * HOUR, 9 * HOUR)]
    found = expected_presence(model, epochs, bin_s=60.0).activity_shares
    np.testing.assert_allclose(found, brute_force_shares(model, epochs, 5.0), atol=6e-4)


# Conservation and convergence


def test_time_is_conserved_by_piece_and_by_part():
    epochs = [(6.9 * HOUR, 7.4 * HOUR), (7.4 * HOUR, 9.2 * HOUR), (23.5 * HOUR, 26 * HOUR)]
    presence = expected_presence(town_mobility(), epochs)
    np.testing.assert_allclose(
        presence.activity_s.sum(axis=0), presence.piece_end - presence.piece_start, rtol=1e-12
    )
    assert (np.diff(presence.piece_epoch) >= 0).all()
    np.testing.assert_allclose(presence.closure, 1.0, atol=1e-2)
    for part in (presence.home_s, presence.place_s, presence.street_s):
        assert part.min() > -1e-9


@pytest.mark.parametrize("cell_m", [20.0, 50.0, 333.0])
def test_raster_conserves_each_activity(cell_m):
    presence = expected_presence(town_mobility(), [(7 * HOUR, 8.5 * HOUR)])
    centres, spent = presence_raster(presence, cell_m)
    np.testing.assert_allclose(spent.sum(axis=0), presence.activity_s, rtol=1e-10)
    np.testing.assert_allclose(centres / cell_m - 0.5, np.round(centres / cell_m - 0.5), atol=1e-9)


def test_street_pieces_are_cut_at_cells_and_parts():
    # shapely is the oracle: the length of each part within each cell.
    graph = streets("walk", [(3.0, 7.0), (160.0, 81.0), (-40.0, 7.0)], [(0, 1), (1, 2), (2, 0), (0, 2)], 1.0)
    parts = np.array([0, 3, 4, 6, 7])
    part, cell, share = street_pieces(graph, parts, 25.0)
    for edge in range(4):
        line = shapely.LineString(graph.geometry_xy[3 * edge : 3 * edge + 3])
        count = parts[edge + 1] - parts[edge]
        for k in range(count):
            mine = part == parts[edge] + k
            assert share[mine].sum() == pytest.approx(1.0, abs=1e-12)
            own = shapely.ops.substring(line, k / count, (k + 1) / count, normalized=True)
            for place in np.unique(cell[mine], axis=0):
                inside = own.intersection(shapely.box(*(place * 25.0), *(place * 25.0 + 25.0))).length
                found = share[mine & (cell == place).all(axis=1)].sum() * line.length / count
                assert found == pytest.approx(inside, abs=1e-9)


def test_total_demand_is_users_times_rate_by_activity_and_hour():
    epochs = [(7.5 * HOUR, 9.25 * HOUR), (10 * HOUR, 11 * HOUR)]
    model = town_mobility()
    presence = expected_presence(model, epochs)
    found = expected_demand(model, RATES, users=321.0, epochs=epochs)
    for epoch, demand in enumerate(found):
        expected = np.zeros(2)
        for piece in np.flatnonzero(presence.piece_epoch == epoch):
            middle = 0.5 * (presence.piece_start[piece] + presence.piece_end[piece])
            expected += RATES.at(int(middle // HOUR) % 24) @ presence.activity_s[:, piece]
        span = epochs[epoch][1] - epochs[epoch][0]
        np.testing.assert_allclose(demand.total, 321.0 * expected / span, rtol=1e-10)


def test_weights_that_are_one_make_users_times_rate_exactly():
    rates = RequestRates(np.array([2e-3, 1e-3]), np.ones((2, 4)), np.ones((2, 24)))
    for demand in expected_demand(
        town_mobility(), rates, users=1e4, epochs=[(8 * HOUR, 9 * HOUR)], cell_m=30.0
    ):
        np.testing.assert_allclose(demand.total, [20.0, 10.0], rtol=1e-11)
        assert (demand.rate.sum(axis=1) > 0).all()


def test_a_day_cut_into_epochs_averages_to_the_day():
    model = town_mobility()
    cuts = np.sort(np.random.default_rng(3).uniform(6, 12, 9)) * HOUR
    parts = expected_presence(model, list(pairwise(cuts.tolist())))
    whole = expected_presence(model, [(cuts[0], cuts[-1])])
    # The street part of a piece is scaled to its balance, so that a cut shifts it within the time step's error.
    np.testing.assert_allclose(parts.home_s.sum(axis=1), whole.home_s.sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(parts.place_s.sum(axis=1), whole.place_s.sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(parts.street_s.sum(axis=1), whole.street_s.sum(axis=1), atol=1e-3)


def test_shares_converge_with_the_square_of_the_time_step():
    model, epochs = town_mobility(), [(7.5 * HOUR, 8 * HOUR), (8 * HOUR, 8.25 * HOUR)]
    fine = expected_presence(model, epochs, bin_s=15.0).activity_shares
    error = [
        np.abs(expected_presence(model, epochs, bin_s=b).activity_shares - fine).max()
        for b in (600.0, 300.0, 120.0)
    ]
    assert error[0] > 2.5 * error[1] > 2.5 * 3 * error[2]
    assert error[2] < 3e-5


# Mobility model


def test_homes_follow_dwelling_floor_and_leave_minor_buildings_out():
    city = town()
    homes, floor = home_floor(city.buildings)
    model = town_mobility()
    np.testing.assert_array_equal(model.home_building, homes)
    np.testing.assert_allclose(model.home_probability, floor / floor.sum())
    assert not city.buildings.is_kind("minor", "office", "industrial")[homes].any()


def test_destinations_are_distinct_doors_and_share_each_activity():
    model = town_mobility()
    for activity in (WORK, LEISURE):
        mine = model.destination_activity == activity
        assert len(np.unique(model.destination_door["walk"][mine])) == mine.sum() == 6
        assert model.destination_weight[mine].sum() == pytest.approx(1.0)
    np.testing.assert_allclose(model.destination_probability().sum(axis=1), 1.0)
    work = model.destination_probability()[:, model.destination_activity == WORK].sum(axis=1)
    shares = np.array(HABITS["work_share"]), np.array(HABITS["leisure_share"])
    np.testing.assert_allclose(work, shares[0] / (shares[0] + shares[1]))


def test_police_stations_draw_no_visitors():
    city = town()
    places, weights = destination_candidates(city, city.streets["walk"])
    police = city.places.xy[city.places.is_kind("amenity=police")]
    assert not (places[1][:, None] == police[None]).all(axis=2).any()
    visited = city.places.is_kind("shop=", "amenity=cafe").sum()
    assert weights[1].sum() == pytest.approx(visited)


def test_systematic_sample_stands_for_the_whole():
    # Mean weight over many samples = the share of the whole; heavy items are always drawn.
    weight = np.array([100.0, 30.0, 5.0, 4.0, 3.0, 2.0, 1.0, 1.0])
    total = np.zeros(len(weight))
    rng = np.random.default_rng(0)
    for _ in range(4000):
        chosen, share = sample_by_weight(weight, 4, rng)
        assert len(np.unique(chosen)) == 4
        assert set(chosen) >= {0, 1}
        total[chosen] += share
    np.testing.assert_allclose(total / 4000, weight / weight.sum(), atol=0.004)


def test_taking_all_candidates_keeps_their_weights():
    weight = np.array([3.0, 1.0, 2.0])
    chosen, share = sample_by_weight(weight, 3, np.random.default_rng(0))
    np.testing.assert_array_equal(chosen, [0, 1, 2])
    np.testing.assert_allclose(share, weight / 6.0)


def test_routes_are_shortest_both_ways():
    # networkx is the oracle; the edge named at a node must lie on a shortest route.
    import networkx as nx

    city = town()
    graphs = [city.streets["walk"], city.streets["drive"]]
    doors = [np.array([3, 40], dtype=np.int32), np.array([10, 10], dtype=np.int32)]
    routes = shortest_routes(graphs, doors)
    start_node, start_edge = 0, 0
    for graph, door in zip(graphs, doors, strict=True):
        net = nx.DiGraph()
        net.add_weighted_edges_from(
            zip(graph.edge_from.tolist(), graph.edge_to.tolist(), graph.edge_time.tolist(), strict=True)
        )
        columns = slice(start_node, start_node + graph.node_count)
        for k, root in enumerate(door.tolist()):
            away = nx.single_source_dijkstra_path_length(net, root)
            toward = nx.single_source_dijkstra_path_length(net.reverse(), root)
            np.testing.assert_allclose(
                routes.away_time[k, columns], [away[n] for n in range(graph.node_count)]
            )
            np.testing.assert_allclose(
                routes.toward_time[k, columns], [toward[n] for n in range(graph.node_count)]
            )
            edge = routes.toward_edge[k, columns]
            assert edge[root] == -1
            others = np.delete(np.arange(graph.node_count), root)
            local = edge[others] - start_edge
            np.testing.assert_array_equal(graph.edge_from[local], others)
            ahead = routes.toward_time[k, columns][graph.edge_to[local]]
            np.testing.assert_allclose(routes.toward_time[k, columns][others], ahead + graph.edge_time[local])
        start_node += graph.node_count
        start_edge += graph.edge_count


# Demand as data, and bad input


def test_demand_of_points():
    demand = Demand.from_points([[0.0, 1.0], [2.0, 3.0]], [0.5, 1.5])
    assert demand.request_rate == 4.0
    assert demand.intensity(2.0) == 2.0
    np.testing.assert_array_equal(demand.mix, [0.25, 0.75])
    np.testing.assert_array_equal(demand.total, [1.0, 3.0])
    assert demand.cell_m is None


@pytest.mark.parametrize(
    ("xy", "rate", "word"),
    [
        ([[0.0, 0.0]], [[1.0], [2.0]], "does not fit"),
        ([[0.0, 0.0]], [[-1.0]], "nonnegative"),
        ([[np.nan, 0.0]], [[1.0]], "finite"),
    ],
)
def test_bad_points_are_refused(xy, rate, word):
    with pytest.raises(ScenarioError, match=word):
        Demand.from_points(xy, rate)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"walk_share": 1.2}, "walk_share"),
        ({"departures_per_hour": [0.1] * 23}, "departures_per_hour"),
        ({"work_share": [-1.0] * 24}, "work_share"),
        ({"work_share": [0.0] * 24, "leisure_share": [0.0] * 24}, "hour 0"),
        ({"dwell_hours": {"work": 1.0}}, "dwell_hours.leisure"),
        ({"destinations": 1}, "destinations"),
    ],
)
def test_bad_habits_are_refused_in_one_line(changes, word):
    with pytest.raises(ScenarioError, match=word) as error:
        town_mobility(**changes)
    assert "\n" not in str(error.value)


def test_a_city_that_lacks_something_is_refused():
    city = town()
    with pytest.raises(CityError, match="no drive streets"):
        make_mobility(
            replace(city, streets={"walk": city.streets["walk"]}), **HABITS, rng=np.random.default_rng(0)
        )
    minor = np.full(len(city.buildings), BUILDING_KINDS.index("minor"))
    with pytest.raises(CityError, match="dwelling"):
        make_mobility(
            replace(city, buildings=replace(city.buildings, kind=minor)),
            **HABITS,
            rng=np.random.default_rng(0),
        )


def test_walkers_alone_need_no_drive_streets():
    city = town()
    model = make_mobility(
        replace(city, streets={"walk": city.streets["walk"]}),
        **{**HABITS, "walk_share": 1.0},
        rng=np.random.default_rng(0),
    )
    assert model.modes == ("walk",)
    assert expected_presence(model, [(8 * HOUR, 9 * HOUR)]).activity_shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("epochs", "bin_s", "word"),
    [
        ([(2 * HOUR, 5 * HOUR)], 120.0, "03:00"),
        ([(5 * HOUR, 5 * HOUR)], 120.0, "start < end"),
        ([(5 * HOUR, 6 * HOUR)], 700.0, "divide an hour"),
        ([], 120.0, "one or more"),
    ],
)
def test_bad_epochs_are_refused(epochs, bin_s, word):
    with pytest.raises(ScenarioError, match=word):
        expected_presence(one_home(ring(), 2), epochs, bin_s=bin_s)


def test_bad_cells_users_and_rates_are_refused():
    presence = expected_presence(one_home(ring(), 2), [(8 * HOUR, 9 * HOUR)])
    with pytest.raises(ScenarioError, match="cell_m"):
        demand_of(presence, RATES, users=10.0, cell_m=0.0)
    with pytest.raises(ScenarioError, match="users"):
        demand_of(presence, RATES, users=-1.0)
    with pytest.raises(ScenarioError, match="place_weight"):
        RequestRates(np.ones(2), np.ones((2, 3)), np.ones((2, 24)))


def test_a_graph_that_is_not_strongly_connected_is_refused():
    graph = streets("walk", [(0, 0), (100, 0), (200, 0)], [(0, 1), (1, 0), (1, 2)], 1.0)
    with pytest.raises(CityError, match="strongly connected"):
        shortest_routes([graph], [np.array([2], dtype=np.int32)])


def test_activities_are_those_of_the_workload():
    from geoedge.workload.requests import ACTIVITIES as OF_REQUESTS

    assert ACTIVITIES == OF_REQUESTS


def test_uniform_demand_on_a_torus_adds_up() -> None:
    demand = uniform_torus_demand((4.0, 2.0), 3.0, (0.4, 0.6), 0.1)
    assert demand.xy.shape == (800, 2)
    assert demand.rate.sum() == pytest.approx(3.0 * 8.0)
    np.testing.assert_allclose(demand.rate.sum(axis=0), [9.6, 14.4])
    with pytest.raises(GeoEdgeError, match="whole number of cells"):
        uniform_torus_demand((1.0, 1.0), 1.0, (1.0,), 0.3)
