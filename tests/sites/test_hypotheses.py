"""Hypotheses other than uniform sites: following demand, and merged as the layout was."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from geoedge.city.demand import Demand
from geoedge.errors import CityError
from geoedge.sites import (
    clark_evans,
    envelope_test,
    following_demand,
    merge_nearby,
    merged_alike,
    study_window,
)

BAY = shapely.Polygon([(0, 0), (3000, 0), (3000, 2500), (2100, 2500), (1500, 600), (900, 2500), (0, 2500)])
FAR = shapely.box(9e5, 9e5, 9.1e5, 9.1e5)
SIDE = 100.0


@pytest.fixture
def demand() -> Demand:
    """Cells of 100 m; the lower left corner of 500 m asks nine times as much as any other place."""
    at = (np.stack(np.meshgrid(np.arange(30), np.arange(25)), axis=-1).reshape(-1, 2) + 0.5) * SIDE
    rate = np.where((at < 500).all(axis=1), 9.0, 1.0)
    twice = np.concatenate([at, at])  # as two epochs on one raster are, one of each type
    return Demand(
        twice,
        np.stack([np.repeat([1, 0], len(at)), np.repeat([0, 1], len(at))], axis=1)
        * np.tile(rate, 2)[:, None],
        SIDE,
    )


def test_sites_follow_demand_cell_by_cell(demand: Demand) -> None:
    draw, rng = following_demand(demand, BAY, 40), np.random.default_rng(1)
    drawn = [draw(rng) for _ in range(200)]
    assert {len(one) for one in drawn} == {40}
    xy = np.concatenate(drawn)
    assert shapely.intersects_xy(BAY, xy[:, 0], xy[:, 1]).all()
    # A cell that the edge cuts keeps its whole demand, so cells count and not land.
    cells = shapely.box(*(demand.xy[:750] - SIDE / 2).T, *(demand.xy[:750] + SIDE / 2).T)
    kept = shapely.area(shapely.intersection(cells, BAY)) > 0
    dense = 25 * 9 / (25 * 9 + kept.sum() - 25)
    share = (xy < 500).all(axis=1).mean()
    assert abs(share - dense) < 4 * np.sqrt(dense * (1 - dense) / len(xy))
    inner = xy[(xy < 500).all(axis=1)]
    assert np.abs(inner.mean(axis=0) - 250).max() < 4 * 500 / np.sqrt(12 * len(inner))


def test_a_layout_that_follows_demand_is_clustered_beside_uniform_ones_alone(demand: Demand) -> None:
    layout = following_demand(demand, BAY, 80)(np.random.default_rng(3))
    assert envelope_test(layout, BAY, rng=1).p_value == 0.005
    asked = following_demand(demand, BAY, 80)
    assert envelope_test(layout, BAY, simulate=asked, rng=1).p_value > 0.05
    assert clark_evans(layout, BAY, simulate=asked, rng=1).p_value > 0.05


def test_merging_reads_as_regular_beside_uniform_sites_and_not_beside_merged_ones() -> None:
    window = study_window(BAY)
    draw = merged_alike(lambda rng: window.uniform(150, rng), 150.0, BAY)
    by_uniform, by_merged = [], []
    for seed in range(20):
        layout = draw(np.random.default_rng(seed))
        by_uniform.append(clark_evans(layout, BAY, simulations=99, rng=seed).p_value)
        by_merged.append(clark_evans(layout, BAY, simulations=99, simulate=draw, rng=seed).p_value)
    assert np.median(by_uniform) <= 0.02
    assert np.median(by_merged) > 0.2
    # An exact test at level 0.1 rejects 5 of 20 or more with probability 0.04.
    assert (np.array(by_merged) <= 0.1).sum() < 5


def test_merged_sites_are_apart_and_on_land(demand: Demand) -> None:
    ring = shapely.Point(0, 0).buffer(500).difference(shapely.Point(0, 0).buffer(480))
    window = study_window(ring)
    draw = merged_alike(lambda rng: window.uniform(30, rng), 120.0, ring)
    for seed in range(5):
        xy = draw(np.random.default_rng(seed))
        assert window.contains(xy).all()
        assert len(xy) == len(np.unique(xy, axis=0)) < 30
    free = merged_alike(lambda rng: window.uniform(30, rng), 120.0)
    assert any(not window.contains(free(np.random.default_rng(seed))).all() for seed in range(5))


def test_merging_by_nothing_changes_nothing() -> None:
    window = study_window(BAY)
    draw = merged_alike(lambda rng: window.uniform(50, rng), 0.0)
    np.testing.assert_array_equal(
        draw(np.random.default_rng(2)), window.uniform(50, np.random.default_rng(2))
    )
    assert merge_nearby(draw(np.random.default_rng(2)), 0.0).max() == 49


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda demand: following_demand(demand, BAY, 0), "`count` must be at least 1 site, not 0"),
        (
            lambda demand: following_demand(demand, FAR, 3)(np.random.default_rng(1)),
            "none of it lies in `window`",
        ),
        (
            lambda _: merged_alike(lambda rng: rng.random((3, 2)), -1.0),
            "`distance_m` must be 0 or more metres, not -1.0",
        ),
        (lambda _: merged_alike(lambda rng: rng.random((3, 2)), np.nan), "`distance_m`"),
        (
            lambda _: clark_evans(
                np.eye(2) * 9 + 50, BAY, simulations=0, simulate=lambda rng: rng.random((3, 2))
            ),
            "`simulations` must be at least 1",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(demand: Demand, call, words: str) -> None:
    with pytest.raises(CityError, match=words) as caught:
        call(demand)
    assert "\n" not in str(caught.value)
