"""Clipping: whole ways, nothing about mappers, all or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import osmium
import pytest
import shapely

import geoedge.city.clipping as clipping
from geoedge.city import clip, load_city
from geoedge.city.read import header_facts, read_map
from geoedge.errors import CityError, OutputError

BOX = (8.999, 49.999, 9.00205, 50.00135)  # the south-west of the village, about 150 m


def things(path: Path) -> list:
    return [
        (
            thing.type_str(),
            thing.id,
            dict(thing.tags),
            thing.user,
            thing.uid,
            thing.changeset,
            thing.timestamp.year,
            thing.version,
        )
        for thing in osmium.FileProcessor(str(path))
    ]


def test_ways_are_whole_and_of_the_kinds_a_city_needs(village, tmp_path: Path) -> None:
    village.way([1, 2], railway="tram")
    village.node(30, 30, man_made="mast", note="ask Eve", contact__phone="+49 1")
    village.node(35, 30, natural="tree")
    source, output = village.write(tmp_path / "a.osm"), tmp_path / "b.osm.pbf"
    counts = clip(source, BOX, output)
    whole, part = read_map(source), read_map(output)
    assert counts["streets"] == len(part.ways) == 4  # two each way begin in the box and leave it
    kept = {tuple(way.refs) for way in part.ways}
    assert kept < {tuple(way.refs) for way in whole.ways}
    assert counts["buildings"] == len(part.buildings) == 4
    assert counts["places"] == len(part.places) == 1
    assert part.place_tags == [{"man_made": "mast"}]
    assert [way.name for way in part.named] == ["Dorfstraße", "</script><b>Gasse</b>"]
    assert not any("railway" in tags or "note" in tags for _, _, tags, *_ in things(output))


def test_nothing_about_mappers_is_left(village, tmp_path: Path) -> None:
    output = tmp_path / "b.osm.pbf"
    clip(village.write(tmp_path / "a.osm"), BOX, output)
    assert {item[3:] for item in things(tmp_path / "a.osm")} == {("Eve Mapper", 77, 4711, 2020, 3)}
    assert {item[3:] for item in things(output)} == {("", 0, 0, 1970, 0)}
    assert b"Eve" not in output.read_bytes()


def test_the_box_and_the_date_are_kept_in_the_header(village, tmp_path: Path) -> None:
    output = tmp_path / "b.osm.pbf"
    clip(village.write(tmp_path / "a.osm.bz2"), BOX, output)
    box, date = header_facts(output)
    np.testing.assert_allclose(box, BOX, atol=1e-7)
    assert date == "2020-05-01"


def test_equal_input_gives_equal_bytes_and_clipping_again_changes_nothing(village, tmp_path: Path) -> None:
    source = village.write(tmp_path / "a.osm")
    one, two, three = (tmp_path / f"{name}.osm.pbf" for name in "123")
    clip(source, BOX, one)
    clip(source, BOX, two)
    clip(one, BOX, three)
    assert one.read_bytes() == two.read_bytes() == three.read_bytes()


def test_a_building_relation_comes_with_all_its_outlines(town, tmp_path: Path) -> None:
    town.grid(2)
    outer, inner = town.square(120, 120, 400), town.square(300, 300, 50)
    town.relations[1] = (
        [("w", outer, "outer"), ("w", inner, "inner")],
        {"type": "multipolygon", "building": "yes"},
    )
    output = tmp_path / "b.osm.pbf"
    clip(town.write(tmp_path / "a.osm"), BOX, output)
    data = read_map(output)
    assert len(data.buildings) == 1
    assert len(shapely.get_parts(data.buildings[0])[0].interiors) == 1


def test_what_the_source_lacks_is_dropped_and_counted(town, tmp_path: Path) -> None:
    a, b = town.node(0, 0), town.node(100, 0)
    town.way([a, 999_999, b], highway="residential")
    output = tmp_path / "b.osm.pbf"
    assert clip(town.write(tmp_path / "a.osm"), BOX, output)["references_dropped"] == 1
    assert read_map(output).references_dropped == 0


def test_a_clipped_city_is_the_city_cut_to_the_box(village, tmp_path: Path, fresh_cache: Path) -> None:
    source, output = village.write(tmp_path / "a.osm"), tmp_path / "b.osm.pbf"
    clip(source, BOX, output)
    cut, clipped = load_city(source, bbox=BOX), load_city(output)
    assert clipped.boundary.equals_exact(cut.boundary, 0.1)
    for mode in ("walk", "drive"):
        np.testing.assert_allclose(clipped.streets[mode].node_xy, cut.streets[mode].node_xy)
    np.testing.assert_allclose(clipped.buildings.xy, cut.buildings.xy)


@pytest.mark.parametrize(
    "bbox", [(1, 2, 3), "abcd", (9, 50, 8, 51), (9, 50, 10, 99), (float("nan"), 1, 2, 3), None], ids=str
)
def test_boxes_that_are_none(village, tmp_path: Path, bbox) -> None:
    with pytest.raises(CityError, match="`bbox`"):
        clip(village.write(tmp_path / "a.osm"), bbox, tmp_path / "b.osm.pbf")
    assert not (tmp_path / "b.osm.pbf").exists()


def test_an_empty_box_writes_nothing(village, tmp_path: Path) -> None:
    with pytest.raises(CityError, match="no street, building or place there"):
        clip(village.write(tmp_path / "a.osm"), (1, 1, 2, 2), tmp_path / "b.osm.pbf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.osm"]


def test_a_failure_leaves_the_old_file(village, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, output = village.write(tmp_path / "a.osm"), tmp_path / "b.osm.pbf"
    output.write_bytes(b"old")

    def broken(*_: object) -> None:
        message = "disk full"
        raise OSError(message)

    monkeypatch.setattr(clipping, "_write", broken)
    with pytest.raises(OutputError, match="disk full"):
        clip(source, BOX, output)
    assert output.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.osm", "b.osm.pbf"]


def test_outputs_that_cannot_be_written(village, tmp_path: Path) -> None:
    source = village.write(tmp_path / "a.osm")
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="cannot be written"):
        clip(source, BOX, tmp_path / "file" / "b.osm.pbf")
    with pytest.raises(OutputError, match=r"must end in \.osm\.pbf"):
        clip(source, BOX, tmp_path / "b.txt")


def test_a_map_is_never_cut_over_itself(village, tmp_path: Path) -> None:
    source = village.write(tmp_path / "a.osm")
    before = source.read_bytes()
    (tmp_path / "link.osm").hardlink_to(source)
    for output in (source, tmp_path / "." / "a.osm", tmp_path / "link.osm"):
        with pytest.raises(OutputError, match=r"output .* is the same file as source .*; name another file"):
            clip(source, BOX, output)
    assert source.read_bytes() == before


def test_a_tag_too_long_for_any_map_is_refused(town, tmp_path: Path) -> None:
    town.grid(2, 100.0, name="A" * 5000)
    with pytest.raises(CityError, match="not a readable OpenStreetMap file"):
        clip(town.write(tmp_path / "a.osm"), BOX, tmp_path / "b.osm.pbf")
    assert not (tmp_path / "b.osm.pbf").exists()


def test_nonsense_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.osm.pbf").write_bytes(json.dumps({"not": "a map"}).encode() * 50)
    with pytest.raises(CityError, match="not a readable OpenStreetMap file"):
        clip(tmp_path / "a.osm.pbf", BOX, tmp_path / "b.osm.pbf")
    assert not (tmp_path / "b.osm.pbf").exists()
