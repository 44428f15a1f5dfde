"""Files are written whole or not at all, where they can be, and leave nothing behind otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from geoedge import files
from geoedge.errors import OutputError
from geoedge.files import check_place, folder_for, has_room, write_whole


@pytest.mark.parametrize(
    "place", ["/proc/x", "/proc/none/x.png", "/dev/null/x", "/sys/x", "/", "a" * 300, f"{'a' * 300}/x.csv"]
)
def test_where_nothing_can_be_made_there_is_no_room(tmp_path: Path, place: str) -> None:
    path = tmp_path / place
    assert not has_room(path)
    with pytest.raises(OutputError, match=r"picture .*cannot be written there"):
        check_place(path, "picture")
    assert os.listdir(tmp_path) == []


def test_asking_for_room_leaves_nothing_and_makes_no_folder(tmp_path: Path) -> None:
    check_place(tmp_path / "new" / "deep" / "x.csv")
    assert os.listdir(tmp_path) == []
    with pytest.raises(OutputError, match="cannot be written there"):
        check_place(tmp_path)  # a folder


def fail_below(path: Path, another: Path | None = None) -> None:
    """Be interrupted when the folders are made, and something else perhaps."""
    with folder_for(path):
        assert path.parent.is_dir()
        if another is not None:
            another.write_text("another's")
        raise KeyboardInterrupt


def test_folders_go_again_if_the_work_fails(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with pytest.raises(KeyboardInterrupt):
        fail_below(tmp_path / "old" / "new" / "deep" / "x.csv")
    assert os.listdir(tmp_path) == ["old"]
    assert os.listdir(tmp_path / "old") == []


def test_folders_that_others_use_stay(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fail_below(tmp_path / "new" / "deep" / "x.csv", tmp_path / "new" / "other.txt")
    assert os.listdir(tmp_path / "new") == ["other.txt"]


def test_a_file_that_fails_leaves_no_folder(tmp_path: Path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", full)
    with pytest.raises(OutputError, match="No space left"):
        write_whole(tmp_path / "new" / "x.csv", b"x")
    assert os.listdir(tmp_path) == []


def test_a_file_is_written_into_a_new_folder(tmp_path: Path) -> None:
    path = write_whole(tmp_path / "new" / "deep" / "x.csv", b"x")
    assert path.read_bytes() == b"x"
    assert os.listdir(path.parent) == ["x.csv"]
