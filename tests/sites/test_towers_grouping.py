"""Cells become sites by what they are called and by distance, never across operators."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage

from geoedge.errors import CityError
from geoedge.sites import grouping, merge_nearby, read_sites
from tests.sites.site_files import cell_row, city, placed, write

ENB, GNB = 256, 4096


def read(tmp_path, rows, **options):
    return read_sites(write(tmp_path / "c.csv", rows), city(), **options)


def test_cells_of_one_enodeb_are_one_site_at_the_mean_weighted_by_samples(tmp_path):
    sites = read(tmp_path, [cell_row(0, cell=7 * ENB, samples=3), cell_row(40, cell=7 * ENB + 9, samples=1)])
    np.testing.assert_allclose(placed(sites), [[10, 0]], atol=0.05)
    assert sites.name == ("eNodeB 7",)
    assert sites.report["merged"] == 1
    assert sites.report["grouped"] == "LTE by eNodeB (cell >> 8)"


def test_stations_of_each_technology_and_network_are_told_apart(tmp_path):
    rows = [
        cell_row(0, cell=7 * ENB),
        cell_row(10, cell=7 * ENB + 255, area=18),  # another area, the same eNodeB
        cell_row(100, cell=8 * ENB),
        cell_row(200, cell=7 * ENB, net=11),
        cell_row(300, radio="NR", cell=7 * GNB + 1),
        cell_row(310, radio="NR", cell=7 * GNB + 4095),
        cell_row(400, radio="UMTS", cell=7 * ENB + 1, area=2),
        cell_row(410, radio="UMTS", cell=7 * ENB + 2, area=2),
        cell_row(500, radio="GSM", cell=71),
    ]
    sites = read(tmp_path, rows)
    assert sites.name == (
        *("eNodeB 7", "eNodeB 8", "eNodeB 7", "gNB 7"),
        *("UMTS 2/1793", "UMTS 2/1794", "GSM 17/71"),
    )
    rule = sites.report["grouped"]
    assert rule.split("; ") == [
        "GSM cell by cell (area and cell)",
        "UMTS cell by cell (area and cell)",
        "LTE by eNodeB (cell >> 8)",
        "NR by gNB of 24 bits (cell >> 12)",
    ]
    assert len(read(tmp_path, rows, merge_distance_m=25.0)) == 6  # the two cells of UMTS


def test_a_station_all_over_town_is_reported(tmp_path):
    rows = [
        cell_row(-1900, cell=7 * ENB),
        cell_row(1900, 300, cell=7 * ENB + 1),
        cell_row(0, 500, cell=9 * ENB),
    ]
    assert "notes" not in read(tmp_path, rows[:1] + rows[2:]).report
    report = read(tmp_path, [*rows, cell_row(-1900, 10, cell=7 * ENB + 2)]).report
    assert report["notes"][0].startswith(
        "3 rows belong to sites whose rows are more than 2 km from their middle"
    )


def test_chains_are_reported(tmp_path):
    rows = [cell_row(30 * k, radio="GSM", cell=k + 1) for k in range(40)]
    report = read(tmp_path, rows, merge_distance_m=50.0).report
    assert report["sites"] == 1
    assert report["notes"] == [
        "merging in steps of 50 m made sites that reach 585 m from their middle; use a smaller merge distance"
    ]


def test_a_mean_outside_of_the_city_gives_way_to_the_nearest_row(tmp_path):
    from dataclasses import replace

    import shapely

    from tests.sites.site_files import CENTRE

    ring = shapely.Point(*CENTRE).buffer(2000.0) - shapely.Point(*CENTRE).buffer(500.0)
    path = write(
        tmp_path / "c.csv",
        [cell_row(-900, cell=7 * ENB, samples=9), cell_row(1000, cell=7 * ENB + 1, samples=9)],
    )
    sites = read_sites(path, replace(city(), boundary=ring))
    np.testing.assert_allclose(placed(sites), [[-900, 0]], atol=0.05)


@pytest.mark.parametrize("distance", [-1.0, np.nan, np.inf])
def test_a_merge_distance_that_is_none_is_one_clear_line(tmp_path, distance):
    with pytest.raises(CityError, match=r"`merge_distance_m` = .*: must be 0 m or more"):
        read(tmp_path, [cell_row()], merge_distance_m=distance)


def single_linkage(xy, distance):
    """Return groups by scipy's hierarchical clustering, an independent way to the same."""
    if len(xy) == 1:
        return np.zeros(1, dtype=int)
    return fcluster(linkage(xy, "single"), distance + 1e-9, "distance")


def same_groups(a, b):
    return (np.equal.outer(a, a) == np.equal.outer(b, b)).all()


@pytest.mark.parametrize("few", [20_000, 3])  # all pairs, and the edges of a triangulation
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_merging_is_single_linkage_within_each_operator(few, data):
    n = data.draw(st.integers(1, 40))
    coordinate = st.integers(0, 30).map(float)
    xy = np.array(data.draw(st.lists(st.tuples(coordinate, coordinate), min_size=n, max_size=n)))
    label = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    distance = data.draw(st.sampled_from([0.0, 1.0, 2.5, 6.0]))
    before, grouping.FEW = grouping.FEW, few
    try:
        found = merge_nearby(xy, distance, apart=label)
    finally:
        grouping.FEW = before
    for each in np.unique(label):
        assert same_groups(found[label == each], single_linkage(xy[label == each], distance))
        assert not np.isin(found[label == each], found[label != each]).any()
    first = np.unique(found, return_index=True)[1]
    assert (np.diff(first) > 0).all()  # numbered by first member
    assert found.max() == len(first) - 1


def test_places_that_a_triangulation_cannot_tell_apart_are_linked(monkeypatch):
    xy = np.random.default_rng(3).uniform(0, 1e5, (300, 2))
    xy = np.concatenate([xy, xy[:100] + 1e-10])
    assert len(np.unique(xy, axis=0)) > 350
    listed = merge_nearby(xy, 10.0)
    monkeypatch.setattr(grouping, "FEW", 3)
    np.testing.assert_array_equal(merge_nearby(xy, 10.0), listed)
    assert listed.max() + 1 <= 300


def test_many_places_are_merged_as_few_are(monkeypatch):
    rng = np.random.default_rng(2)
    xy = rng.uniform(0, 6000, (21_000, 2))
    triangulated = merge_nearby(xy, 25.0)
    monkeypatch.setattr(grouping, "FEW", 10**9)
    np.testing.assert_array_equal(triangulated, merge_nearby(xy, 25.0))


@pytest.mark.parametrize("distance", [40.0, 5000.0])
def test_both_ways_agree_from_where_pairs_are_no_longer_listed(monkeypatch, distance):
    rng = np.random.default_rng(4)
    xy = np.concatenate([rng.normal(middle, 900.0, (400, 2)) for middle in (0.0, 9000.0, 30_000.0)])
    label = rng.integers(0, 2, len(xy))
    assert len(xy) > grouping.FEW
    monkeypatch.setattr(grouping, "FEW", 300)
    triangulated = merge_nearby(xy, distance, apart=label)
    monkeypatch.setattr(grouping, "FEW", len(xy))
    np.testing.assert_array_equal(triangulated, merge_nearby(xy, distance, apart=label))
    assert 2 < triangulated.max() + 1 < len(xy)
