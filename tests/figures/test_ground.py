"""The map of sites: every site is drawn where it stands, the worst are named."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from geoedge import figures
from geoedge.errors import GeoEdgeError
from geoedge.maps.scales import utilisation_scale


def test_figures_load_no_library_of_web_maps() -> None:
    rooms = (
        "geoedge.figures.ground, geoedge.figures.distributions, geoedge.report.page.told, geoedge.app.parts"
    )
    code = f"import sys, {rooms}; print([name for name in ('folium', 'branca') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def drawn(run, town):
    return figures.site_map(run, town)


def test_sites_stand_where_they_are_in_the_colour_of_their_load(drawn, run) -> None:
    from matplotlib.collections import PathCollection
    from matplotlib.colors import to_hex

    table = run.site_table().set_index("site")
    sites = run.sites.set_index("site")
    found = {}
    for marks in drawn.axes[0].collections:
        if isinstance(marks, PathCollection):
            for place, colour in zip(marks.get_offsets(), marks.get_facecolors(), strict=True):
                found[tuple(np.round(place, 3))] = to_hex(colour)
    expected = {
        (round(sites["x_m"][site], 3), round(sites["y_m"][site], 3)): utilisation_scale().colour(load)
        for site, load in table["utilization"].items()
    }
    assert found == expected


def test_the_worst_sites_are_named_with_their_shares(drawn, run) -> None:
    table = run.site_table()
    words = [text.get_text() for text in drawn.axes[1].texts]
    first = table.iloc[0]
    assert any(
        word.endswith(f": {100 * first['missed'] / table['missed'].sum():.1f} % of all misses")
        for word in words
    )
    ranks = [text.get_text() for text in drawn.axes[0].texts]
    assert [word for word in ranks if word.isdigit()] == ["1", "2", "3", "4", "5"]
    assert any("OpenStreetMap" in word for word in words)


def test_the_map_is_not_stretched_and_shows_all_land(drawn, town) -> None:
    axes = drawn.axes[0]
    box = axes.get_position()
    (west, east), (south, north) = axes.get_xlim(), axes.get_ylim()
    inches = box.width * drawn.get_figwidth(), box.height * drawn.get_figheight()
    assert (east - west) / inches[0] == pytest.approx((north - south) / inches[1])
    land = town.boundary.bounds
    assert west <= land[0]
    assert south <= land[1]
    assert east >= land[2]
    assert north >= land[3]


def test_another_city_is_refused(run, town) -> None:
    with pytest.raises(GeoEdgeError, match="is not the one of the run"):
        figures.site_map(run.with_meta(checksums={"city": "another"}), town)
