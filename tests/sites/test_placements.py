"""Placements: fixed counts kept, alike profiles apart or together, deep ones where they save."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from geoedge.city.demand import Demand
from geoedge.errors import CityError
from geoedge.sites import PLACEMENTS, draw_layout, place, place_profiles
from geoedge.sites.placements import placement_energy

SHARE = (0.5, 0.3, 0.2)
SAVING = np.array([[0.0, 0.0], [0.1, 0.2], [0.1, 0.9]])
TORUS = (3000.0, 2000.0)


def demand_at(layout, seed):
    rng = np.random.default_rng(seed)
    return Demand(layout.xy + rng.normal(0, 20, layout.xy.shape), rng.random((len(layout), 2)))


@pytest.mark.parametrize("name", sorted(set(PLACEMENTS) - {"independent"}))
@pytest.mark.parametrize("window", [TORUS, "land"])
def test_counts_are_fixed_and_one_seed_is_one_placement(name, window):
    import shapely

    land = shapely.box(0, 0, 3000, 2000) if window == "land" else window
    layout = draw_layout("binomial", land, 10.0, 1)
    one, two = (place(name, layout, SHARE, 4, demand=demand_at(layout, 0), saving_s=SAVING) for _ in range(2))
    assert np.bincount(one.profile).tolist() == [30, 18, 12]
    np.testing.assert_array_equal(one.profile, two.profile)
    assert one.report["profiles_placed"] is True
    np.testing.assert_array_equal(one.xy, layout.xy)


def test_fixed_and_independent_are_those_of_place_profiles():
    layout = draw_layout("binomial", TORUS, 10.0, 1)
    np.testing.assert_array_equal(place("fixed", layout, SHARE, 9).profile, place_profiles(60, SHARE, 9))
    np.testing.assert_array_equal(
        place("independent", layout, SHARE, 9).profile, place_profiles(60, SHARE, 9, independent=True)
    )


def test_alike_profiles_keep_apart_or_together():
    # By a standard deviation below the best, and above the worst, of 50 random placements.
    for window in (TORUS, (1500.0, 1500.0)):
        layout = draw_layout("binomial", window, 20.0, 2)
        random = [placement_energy(place("fixed", layout, SHARE, seed), 3) for seed in range(50)]
        repelled = placement_energy(place("repelled", layout, SHARE, 0), 3)
        clustered = placement_energy(place("clustered", layout, SHARE, 0), 3)
        assert repelled < min(random) - np.std(random)
        assert clustered > max(random) + np.std(random)


def test_repelled_is_the_best_of_all_placements_of_few_sites():
    layout = draw_layout("binomial", (1000.0, 1000.0), 8.0, 3)
    every = set(permutations((0, 0, 0, 0, 1, 1, 2, 2)))
    energy = [placement_energy(layout.with_profile(held), 3) for held in every]
    found = placement_energy(place("repelled", layout, (0.5, 0.25, 0.25), 0), 3)
    assert found == pytest.approx(min(energy), rel=1e-9)
    assert placement_energy(place("clustered", layout, (0.5, 0.25, 0.25), 0), 3) == pytest.approx(max(energy))


def test_deep_profiles_go_where_they_save_most():
    layout = draw_layout("binomial", (1000.0, 1000.0), 6.0, 3)
    demand = demand_at(layout, 1)
    near = np.array([demand.rate[i] for i in range(6)])  # each point is 20 m from its own site
    best = max(
        sum(float(near[i] @ SAVING[s]) for i, s in enumerate(held))
        for held in permutations((0, 0, 0, 1, 1, 2))
    )
    found = place("demand", layout, (0.5, 0.32, 0.18), 0, demand=demand, saving_s=SAVING)
    assert sum(float(near[i] @ SAVING[s]) for i, s in enumerate(found.profile)) == pytest.approx(best)


def test_few_sites_and_sites_on_a_line_can_be_placed():
    import shapely

    thin = shapely.box(0, 0, 1000, 1000)
    for count in (1, 2):
        layout = draw_layout("binomial", thin, float(count), 0)
        assert len(place("repelled", layout, (0.5, 0.5), 0)) == count
    from geoedge.sites import Layout

    row = Layout(
        np.column_stack((np.arange(6) * 100.0, np.zeros(6))), np.zeros(6), ("a",) * 6, ("b",) * 6, "a row"
    )
    held = place("repelled", row, (0.5, 0.5), 0).profile
    assert np.abs(np.diff(held)).sum() == 5  # they take turns


@pytest.mark.parametrize(
    ("name", "share", "given", "words"),
    [
        ("best", SHARE, {}, "`name` = 'best': no such placement; choose one of fixed, independent, repelled"),
        ("repelled", (0.5, 0.6), {}, "`placement_probability` must be nonnegative and sum to 1"),
        ("demand", SHARE, {}, '`demand` is missing: placement = "demand" follows it'),
        ("demand", SHARE, {"demand": True}, "`saving_s` is missing"),
        (
            "demand",
            SHARE,
            {"demand": True, "saving_s": np.zeros((2, 2))},
            r"has shape \(2, 2\): must be one row for",
        ),
    ],
)
def test_what_cannot_be_placed_is_told_in_one_line(name, share, given, words):
    layout = draw_layout("binomial", TORUS, 10.0, 1)
    if given.get("demand"):
        given = {**given, "demand": demand_at(layout, 0)}
    with pytest.raises(CityError, match=words) as caught:
        place(name, layout, share, 0, **given)
    assert "\n" not in str(caught.value)
