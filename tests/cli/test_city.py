"""`geoedge city`."""

from __future__ import annotations

import os

import pytest

from geoedge.shipped import data_path
from tests.cli.calling import refused


@pytest.mark.parametrize("box", ["1,2,3", "a,b,c,d", "7.5,43.7,7.4,43.8"])
def test_a_bad_box_is_refused(capsys, monkeypatch, tmp_path, box) -> None:
    source = str(data_path("osm", "monaco.osm.pbf"))
    refused(capsys, monkeypatch, "city", "clip", source, "--bbox", box, "-o", str(tmp_path / "o.osm.pbf"))
    assert os.listdir(tmp_path) == []
