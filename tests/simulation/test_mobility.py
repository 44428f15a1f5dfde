"""Users' days: exact positions, speeds, returns, hourly rates, thinning, and equal bytes for equal seeds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import shapely
from scipy import stats

from geoedge.city.demand import RequestRates
from geoedge.city.streets import StreetGraph, polyline_lengths
from geoedge.city.trips import DAY_START_S, HOME, LEISURE, STREET, WORK, MobilityModel, hour_of
from geoedge.errors import ScenarioError
from geoedge.simulation.mobility import Population, draw_requests
from geoedge.streams import stream

HOUR = 3600.0
SIDE = 7
WALK, DRIVE = 1.35, 6.0


def streets(mode, node_xy, edges, speed):
    """Directed edges with one bend each; a street's two directions bend to different sides."""
    start, end = node_xy[edges[:, 0]], node_xy[edges[:, 1]]
    bend = 0.5 * (start + end) + 0.15 * np.column_stack([-(end - start)[:, 1], (end - start)[:, 0]])
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


def model(**changes):
    """A grid whose outer streets drivers may use one way only; 30 homes, 3 workplaces and 2 leisure places."""
    rng = np.random.default_rng(11)
    number = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    rows = np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()])
    columns = np.column_stack([number[:-1].ravel(), number[1:].ravel()])
    pairs = np.concatenate([rows, columns])
    xy = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE)), axis=-1).reshape(-1, 2) * 120.0
    xy = xy + rng.uniform(-30.0, 30.0, xy.shape)
    around = np.concatenate([number[0], number[1:, -1], number[-1, -2::-1], number[-2:0:-1, 0]])
    loop = np.column_stack([around, np.roll(around, -1)])
    both = np.concatenate([pairs, pairs[:, ::-1]])
    against = {(int(b), int(a)) for a, b in loop}
    one_way = np.array([edge for edge in both.tolist() if tuple(edge) not in against])
    homes, places = rng.integers(0, SIDE * SIDE, 30), np.array([0, 10, 24, 30, 45])
    door = {"walk": homes.astype(np.int32), "drive": homes.astype(np.int32)}
    fields = {
        "home_building": np.arange(30),
        "home_xy": xy[homes] + 5.0,
        "home_probability": np.full(30, 1 / 30),
        "home_door": door,
        "destination_xy": xy[places] - 5.0,
        "destination_activity": np.array([WORK, WORK, WORK, LEISURE, LEISURE]),
        "destination_weight": np.array([0.5, 0.3, 0.2, 0.7, 0.3]),
        "destination_door": {mode: places.astype(np.int32) for mode in ("walk", "drive")},
        "walk_share": 0.5,
        "departures_per_hour": np.array([0.1] * 7 + [0.6, 0.9] + [0.3] * 15),
        "work_share": np.array([1.0] * 12 + [0.2] * 12),
        "leisure_share": np.array([0.25] * 12 + [0.8] * 12),
        "dwell_s": np.array([0.0, 2.0, 0.7, 0.0]) * HOUR,
        "streets": {"walk": streets("walk", xy, both, WALK), "drive": streets("drive", xy, one_way, DRIVE)},
    }
    return MobilityModel(**{**fields, **changes})


MODEL = model()


def advanced(users, until_h, *, since_h=None, seed=1, mobility=MODEL):
    population = Population.draw(mobility, users, stream(seed, "people"))
    if since_h is not None:
        population.advance(since_h * HOUR)
    population.advance(until_h * HOUR)
    return population


def legs_of(population, user):
    """The user's legs in the window, as (stage, place, start, end)."""
    first, last = population._legs.offset[user : user + 2]
    row = population._legs.row[first:last]
    return [(int(leg["stage"]), int(leg["place"]), float(leg["start"]), float(leg["end"])) for leg in row]


def route_line(mobility, mode, start, end):
    """The route between two nodes as one line, by networkx."""
    import networkx as nx

    graph = mobility.streets[mode]
    net = nx.DiGraph()
    for edge, (a, b) in enumerate(zip(graph.edge_from.tolist(), graph.edge_to.tolist(), strict=True)):
        net.add_edge(a, b, weight=graph.edge_time[edge], edge=edge)
    nodes = nx.dijkstra_path(net, start, end)
    points = [graph.node_xy[[start]]]
    for a, b in pairwise(nodes):
        edge = net.edges[a, b]["edge"]
        points.append(graph.geometry_xy[graph.geometry_offset[edge] : graph.geometry_offset[edge + 1]])
    return shapely.LineString(np.concatenate(points)) if len(nodes) > 1 else None


@pytest.mark.parametrize(("code", "mode", "speed"), [(0, "walk", WALK), (1, "drive", DRIVE)])
def test_travellers_are_on_the_shortest_route_at_the_speed_of_their_mode(code, mode, speed):
    # networkx and shapely are the oracle: after s seconds a traveller is speed × s along the route.
    population = advanced(60, 14)
    checked = 0
    for user in np.flatnonzero(population.mode == code)[:12]:
        home = int(MODEL.home_door[mode][population.home[user]])
        for stage, place, start, end in legs_of(population, user):
            door = int(MODEL.destination_door[mode][place])
            if stage not in (1, 3) or end > population.now_s or end == start:
                continue
            line = route_line(MODEL, mode, *((home, door) if stage == 1 else (door, home)))
            assert end - start == pytest.approx(line.length / speed, rel=1e-9)
            times = np.linspace(start + 1e-6, end - 1e-6, 23)
            xy, activity = population.position(np.full(23, user), times)
            expected = shapely.get_coordinates(line.interpolate(speed * (times - start)))
            np.testing.assert_allclose(xy, expected, atol=1e-5)
            assert (activity == STREET).all()
            checked += 1
    assert checked > 20


def test_one_way_streets_make_the_way_back_another_one():
    routes, offset = MODEL.routes, MODEL.streets["walk"].node_count
    walk = np.arange(offset)
    np.testing.assert_allclose(
        routes.toward_time[:, walk].sum(), routes.away_time[:, walk].sum(), rtol=1e-6
    )  # both ways are open to walkers, and bends are mirror images
    assert np.abs(routes.toward_time[:, offset:] - routes.away_time[:, offset:]).max() > 20.0
    population = advanced(400, 13)
    trips = {1: set(), 3: set()}
    for user in np.flatnonzero(population.mode == 1):
        for stage, place, start, end in legs_of(population, user):
            if stage in (1, 3) and place == 0 and end < population.now_s and end > start:
                _, _, edge, _ = population._locate(np.full(30, user), np.linspace(start, end, 30))
                streets_ = MODEL.routes.streets
                trips[stage] |= {
                    frozenset((streets_.edge_from[e], streets_.edge_to[e])) for e in edge if e >= 0
                }
    assert trips[1] ^ trips[3]


def test_a_day_is_home_out_visit_back_home_without_gaps():
    population = advanced(200, 20)
    for user in range(200):
        legs = legs_of(population, user)
        assert legs[0][2] == DAY_START_S
        assert [leg[0] for leg in legs] == [k % 4 for k in range(len(legs))]
        np.testing.assert_array_equal([leg[3] for leg in legs[:-1]], [leg[2] for leg in legs[1:]])
        assert legs[-1][3] > population.now_s
        for previous, leg in pairwise(legs):
            if leg[0] in (2, 3):
                assert leg[1] == previous[1]
            home = leg[0] == 0
            if home and leg[3] > leg[2]:
                instant = min(0.5 * (leg[2] + leg[3]), population.now_s)
                xy, activity = population.position([user], instant)
                np.testing.assert_array_equal(xy[0], population.home_xy[user])
                assert activity[0] == HOME


def test_visitors_are_at_their_destination():
    population = advanced(300, 12)
    stage, place, _, _ = population._locate(np.arange(300), np.full(300, population.now_s))
    xy, activity = population.positions()
    there = stage == 2
    assert there.sum() > 50
    np.testing.assert_array_equal(xy[there], MODEL.destination_xy[place[there]])
    np.testing.assert_array_equal(activity[there], MODEL.destination_activity[place[there]])


def test_steps_do_not_change_a_day():
    once = advanced(500, 13)
    steps = Population.draw(MODEL, 500, stream(1, "people"))
    for until in (4.0, 4.0, 7.3, 7.31, 9.0, 12.5, 13.0):
        steps.advance(until * HOUR)
    times = np.random.default_rng(0).uniform(12.5, 13.0, 500) * HOUR
    for found, expected in zip(
        steps.position(np.arange(500), times), once.position(np.arange(500), times), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_the_first_users_of_a_larger_population_are_those_of_a_smaller():
    few, many = advanced(50, 11), advanced(500, 11)
    np.testing.assert_array_equal(few.positions()[0], many.positions()[0][:50])


def test_same_seed_same_bytes_and_another_seed_another_day():
    rates = RequestRates(np.array([1e-3]), np.ones((1, 4)), np.ones((1, 24)))

    def run(seed):
        population = advanced(2000, 9, since_h=8, seed=seed)
        asked = draw_requests(population, rates, 8.1 * HOUR, 9 * HOUR, stream(seed, "requests", 0))
        return b"".join(column.tobytes() for column in asked)

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_first_departures_follow_the_hourly_rates():
    # The first leave time has the survival function exp(-∫ rate): its hazard is a unit exponential.
    population = advanced(20_000, 3.01)
    first = population._legs.row["end"][population._legs.offset[:-1]]
    hours = np.concatenate([[0.0], np.cumsum(np.tile(MODEL.departures_per_hour, 30))])
    hazard = np.interp(first / HOUR, np.arange(len(hours)), hours) - hours[3]
    assert stats.kstest(hazard, "expon").pvalue > 1e-3


def test_choices_depend_on_the_hour_of_departure():
    population = advanced(30_000, 14)
    row = population._legs.row
    out = row[row["stage"] == 1]
    probability = MODEL.destination_probability()
    for early in (True, False):
        hour = 8 if early else 13
        chosen = np.bincount(out["place"][hour_of(out["start"]) == hour], minlength=5)
        assert stats.chisquare(chosen, probability[hour] * chosen.sum()).pvalue > 1e-3


def test_visits_are_exponential_with_the_mean_of_their_activity():
    row = advanced(5000, 12)._legs.row
    for activity, mean in ((WORK, 2.0 * HOUR), (LEISURE, 0.7 * HOUR)):
        # Visits that began before the end of the window are all kept whole, whenever they end.
        mine = (row["stage"] == 2) & (MODEL.destination_activity[row["place"]] == activity)
        length = row["end"][mine] - row["start"][mine]
        assert stats.kstest(length / mean, "expon").pvalue > 1e-3


def test_still_users_stay_at_home():
    population = Population.draw(MODEL, 100, stream(1, "people"), still=True)
    population.advance(15 * HOUR)
    xy, activity = population.position(np.arange(100), np.linspace(4, 15, 100) * HOUR)
    np.testing.assert_array_equal(xy, population.home_xy)
    assert (activity == HOME).all()
    moving = Population.draw(MODEL, 100, stream(1, "people"))
    np.testing.assert_array_equal(population.home_xy, moving.home_xy)


def test_users_at_points_are_weighted_points():
    points = np.random.default_rng(0).uniform(0, 20_000, (40, 2))
    population = Population.at_points(points)
    population.advance(10 * HOUR)
    rates = RequestRates(np.array([1e-3, 2e-3]), np.full((2, 4), 3.0), np.ones((2, 24)))
    demand = population.demand(rates)
    np.testing.assert_array_equal(demand.xy, points)
    np.testing.assert_allclose(demand.total, [0.12, 0.24])


def test_demand_of_moving_users_is_that_of_what_they_do():
    population = advanced(500, 9)
    rates = RequestRates(np.array([1e-3]), np.array([[1.0, 2.0, 3.0, 4.0]]), np.arange(24.0)[None])
    share = population.activity_shares()
    assert population.demand(rates).request_rate == pytest.approx(0.5 * 9 * share @ [1, 2, 3, 4])


def test_requests_are_thinned_by_type_activity_and_hour():
    # Expected counts: the time that users spent in each activity and hour, times the rate of the type.
    place_weight = np.array([[1.0, 0.2, 2.0, 5.0], [0.5, 3.0, 0.0, 1.0]])
    hour_weight = np.ones((2, 24))
    hour_weight[:, 9] = [0.25, 2.0]
    rates = RequestRates(np.array([6e-3, 3e-3]), place_weight, hour_weight)
    population = advanced(4000, 9.75, since_h=8.25)
    asked = draw_requests(population, rates, 8.25 * HOUR, 9.75 * HOUR, stream(3, "requests"))
    spent = np.zeros((2, 4))
    row = population._legs.row
    activity = np.array([HOME, STREET, -1, STREET])[row["stage"]]
    activity[activity < 0] = MODEL.destination_activity[row["place"][activity < 0]]
    for k, (begin, end) in enumerate(((8.25, 9.0), (9.0, 9.75))):
        overlap = np.minimum(row["end"], end * HOUR) - np.maximum(row["start"], begin * HOUR)
        spent[k] = np.bincount(activity, weights=np.maximum(overlap, 0.0), minlength=4)
    assert spent.sum() == pytest.approx(4000 * 1.5 * HOUR)
    for k, hour in enumerate((8, 9)):
        mine = hour_of(asked.created_s) == hour
        for kind in range(2):
            for a in range(4):
                expected = spent[k, a] * rates.at(hour)[kind, a]
                found = int((mine & (asked.request_type == kind) & (asked.activity == a)).sum())
                assert abs(found - expected) <= 4.5 * np.sqrt(expected) + 1e-9


def test_request_columns_are_sorted_and_say_where_users_were():
    rates = RequestRates(np.array([2e-3]), np.ones((1, 4)), np.ones((1, 24)))
    population = advanced(3000, 8.5, since_h=7.9)
    asked = draw_requests(population, rates, 7.9 * HOUR, 8.5 * HOUR, stream(3, "requests"))
    assert (np.diff(asked.created_s) >= 0).all()
    assert asked.created_s[0] >= 7.9 * HOUR
    assert asked.created_s[-1] < 8.5 * HOUR
    xy, activity = population.position(asked.user, asked.created_s)
    np.testing.assert_array_equal(np.column_stack([asked.x_m, asked.y_m]), xy)
    np.testing.assert_array_equal(asked.activity, activity)
    assert stats.kstest((asked.created_s / HOUR - 7.9) / 0.6, "uniform").pvalue > 1e-3
    per_user = np.bincount(asked.user, minlength=3000)
    expected = 2e-3 * 0.6 * HOUR
    assert per_user.mean() == pytest.approx(expected, rel=0.04)
    assert per_user.var() == pytest.approx(expected, rel=0.12)


def test_users_who_never_leave():
    population = advanced(20, 12, mobility=model(departures_per_hour=np.zeros(24)))
    np.testing.assert_array_equal(population.activity_shares(), [1.0, 0.0, 0.0, 0.0])


def test_past_midnight_the_clock_begins_anew():
    habits = np.zeros(24)
    habits[1] = 30.0
    population = advanced(200, 24.99, mobility=model(departures_per_hour=habits))
    assert population.activity_shares()[HOME] == 1.0
    population.advance(25.3 * HOUR)
    assert population.activity_shares()[HOME] < 0.2


def test_bad_questions_are_refused():
    population = advanced(20, 10, since_h=9)
    with pytest.raises(ScenarioError, match="advance the population first"):
        population.position([0], 10.1 * HOUR)
    with pytest.raises(ScenarioError, match="advance the population first"):
        population.position([0], 8.9 * HOUR)
    with pytest.raises(ScenarioError, match="0 to 19"):
        population.position([20], 9.5 * HOUR)
    with pytest.raises(ScenarioError, match="later instant"):
        population.advance(9 * HOUR)
    with pytest.raises(ScenarioError, match="at least 1"):
        Population.draw(MODEL, 0, stream(1, "people"))
    rates = RequestRates(np.array([1e-3]), np.ones((1, 4)), np.ones((1, 24)))
    with pytest.raises(ScenarioError, match="before"):
        draw_requests(population, rates, 9.5 * HOUR, 9.5 * HOUR, stream(1, "requests"))
