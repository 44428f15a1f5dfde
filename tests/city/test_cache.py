"""The compiled cache: fast, exact, keyed by all that matters, and never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from geoedge.city import City, load_city
from geoedge.city.cache import cache_folder, cache_key, city_from_bytes, city_to_bytes
from geoedge.errors import CityError


def assert_same(one: City, two: City) -> None:
    assert city_to_bytes(one) == city_to_bytes(two)


def test_a_city_survives_the_round_trip_bit_by_bit(village, tmp_path: Path, fresh_cache: Path) -> None:
    city = load_city(village.write(tmp_path / "a.osm"))
    again = city_from_bytes(city_to_bytes(city))
    assert_same(city, again)
    assert again.boundary.equals_exact(city.boundary, 0.0)
    assert again.report == city.report
    assert again.places.name.tolist() == city.places.name.tolist()
    for name in ("node_xy", "edge_from", "edge_time", "geometry_xy"):
        np.testing.assert_array_equal(
            getattr(again.streets["drive"], name), getattr(city.streets["drive"], name)
        )


def test_a_second_load_imports_neither_osmnx_nor_the_reader(shipped: City) -> None:
    code = (
        "import sys, geoedge.city as c\n"
        f"city = c.load_city({shipped.name!r})\n"
        "heavy = {'osmnx', 'osmium', 'geopandas', 'networkx', 'pandas', 'requests'} & set(sys.modules)\n"
        "print(city.buildings.xy.shape[0], sorted(heavy))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stdout.split(maxsplit=1) == [str(len(shipped.buildings)), "[]\n"]


def test_loading_twice_compiles_once(village, tmp_path: Path, fresh_cache: Path) -> None:
    path, stages = village.write(tmp_path / "a.osm"), []
    one = load_city(path, progress=stages.append)
    assert stages
    stages.clear()
    assert_same(one, load_city(path, progress=stages.append))
    assert not stages
    assert len(list(fresh_cache.glob("*.npz"))) == 1


def test_other_bytes_or_options_are_another_city(village, tmp_path: Path, fresh_cache: Path) -> None:
    path = village.write(tmp_path / "a.osm")
    first = load_city(path)
    load_city(path, boundary_buffer_m=50.0)
    load_city(path, bbox=(8.999, 49.999, 9.003, 50.01))
    village.node(10, 10, shop="books")
    second = load_city(village.write(tmp_path / "a.osm"))
    assert len(list(fresh_cache.glob("*.npz"))) == 4
    assert first.checksum != second.checksum
    assert len(second.places) == len(first.places) + 1


def test_keys_do_not_depend_on_order_but_on_every_value() -> None:
    base = {"source": "a", "bbox": None}
    assert cache_key(base) == cache_key(dict(reversed(base.items())))
    assert cache_key(base) != cache_key({**base, "bbox": (1, 2, 3, 4)})


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text"])
def test_a_damaged_cache_is_made_anew_with_a_note_and_no_warning(
    village, tmp_path: Path, fresh_cache: Path, damage: str
) -> None:
    path = village.write(tmp_path / "a.osm")
    city = load_city(path)
    (kept,) = fresh_cache.glob("*.npz")
    good = kept.read_bytes()
    middle = len(good) // 2
    flipped = good[:middle] + bytes([good[middle] ^ 0xFF]) + good[middle + 1 :]
    kept.write_bytes({"cut": good[:middle], "flip": flipped, "empty": b"", "text": b"hello" * 100}[damage])
    stages: list[str] = []
    again = load_city(path, progress=stages.append)
    assert stages[-1] == again.report.pop("cache")
    assert "was damaged; city made anew" in stages[-1]
    assert_same(city, again)
    assert kept.read_bytes() == good
    assert "cache" not in load_city(path).report


def test_a_stranger_in_the_cache_cannot_run_code(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple:
            return os.mkdir, (str(tmp_path / "owned"),)

    path = tmp_path / "x.npz"
    np.savez(path, facts=np.array([Evil()], dtype=object))
    with pytest.raises(CityError, match="damaged"):
        city_from_bytes(path.read_bytes())
    assert not (tmp_path / "owned").exists()


def test_no_draft_is_left_and_an_unwritable_cache_is_no_obstacle(
    village,
    tmp_path: Path,
    fresh_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = village.write(tmp_path / "a.osm")
    city = load_city(path)
    assert [item.suffix for item in fresh_cache.iterdir()] == [".npz"]
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("GEOEDGE_CACHE", str(tmp_path / "file" / "cache"))
    stages: list[str] = []
    again = load_city(path, progress=stages.append)
    assert "set GEOEDGE_CACHE to a folder that can be" in again.report["cache"]
    assert stages[-1] == again.report.pop("cache")
    assert_same(city, again)


def test_a_kept_city_that_cannot_be_read_is_said(village, tmp_path: Path, fresh_cache: Path) -> None:
    path = village.write(tmp_path / "a.osm")
    load_city(path)
    (kept,) = fresh_cache.glob("*.npz")
    kept.unlink()
    kept.mkdir()
    said = load_city(path).report["cache"]
    assert "cannot be read" in said
    assert "city not kept" in said
    assert "\n" not in said


def test_without_the_cache_nothing_is_kept(village, tmp_path: Path, fresh_cache: Path) -> None:
    load_city(village.write(tmp_path / "a.osm"), cache=False)
    assert not fresh_cache.exists()


def test_the_folder_is_the_users_unless_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEOEDGE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("GEOEDGE_CACHE")
    assert cache_folder().name == "geoedge"
