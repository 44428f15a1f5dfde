from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from geoedge.city import City
from geoedge.errors import OutputError
from geoedge.maps import picture
from geoedge.maps.scales import profile_scale, utilisation_scale
from geoedge.results import Results


def pixels(data: bytes) -> np.ndarray:
    return (matplotlib.image.imread(io.BytesIO(data))[..., :3] * 255).round().astype(int)


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])


def test_the_picture_is_a_png_of_the_size_asked_for_and_the_same_every_time(
    run: Results, town: City, tmp_path: Path
) -> None:
    data = picture(run, town, tmp_path / "town.png", width_px=900)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert pixels(data).shape[1] == 900
    assert (tmp_path / "town.png").read_bytes() == data == picture(run, town, width_px=900)


def test_the_picture_shows_regions_and_sites_in_the_colours_of_the_legend(run: Results, town: City) -> None:
    seen = pixels(picture(run, town, epoch=1)).reshape(-1, 3)

    def share(colour: np.ndarray) -> float:
        return float((np.abs(seen - colour).max(axis=1) <= 2).mean())

    held = set(run.epochs[run.epochs.epoch == 1].profile)
    colours = profile_scale(run.meta["profile_names"]).colours
    drawn = [share(np.rint(0.42 * rgb(colours[p]) + 0.58 * 255).astype(int)) for p in sorted(held)]
    assert sum(drawn) > 0.2
    assert all(share(rgb(colour)) > 0 for colour in utilisation_scale().colours)


def test_a_site_that_takes_over_changes_the_picture(run: Results, town: City) -> None:
    other = replace(run, epochs=run.epochs.assign(profile=0))
    assert picture(run, town, epoch=0) != picture(other, town, epoch=0)


@pytest.mark.parametrize("choice", [{"epoch": 2}, {"epoch": -1}, {"request_type": 99}])
def test_what_is_not_there_is_one_clear_line(run: Results, town: City, choice: dict[str, int]) -> None:
    with pytest.raises(OutputError, match=r"must lie in 0\.\."):
        picture(run, town, **choice)
