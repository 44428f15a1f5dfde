from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
from pathlib import Path

import folium
import pytest
from folium.plugins import MiniMap

from geoedge.errors import OutputError
from geoedge.maps.credit import ODBL_CREDIT
from geoedge.maps.page import MapLayer, MapPage
from geoedge.maps.scales import utilisation_scale

BOUNDS = (7.38, 43.71, 7.46, 43.76)


def page(title: str = "A town", **options: object) -> MapPage:
    made = MapPage(title, bounds=BOUNDS, epochs=["morning"], types=["chat"], **options)  # type: ignore[arg-type]
    feature = ["point", [742000, 4373000], 0, ["<b>x</b>"], {}]
    made.add_child(
        MapLayer("sites", "Sites", [feature], pane="sites", legends=[utilisation_scale().legend()])
    )
    return made


def test_two_pages_of_the_same_content_are_equal_byte_for_byte() -> None:
    first = page()
    assert first.to_html() == page().to_html()
    assert first.to_html() == first.to_html()


def test_the_page_names_no_address_that_a_browser_would_fetch() -> None:
    html = page().to_html()
    assert "sourceMappingURL" not in html
    assert not re.search(r"<(script|img|iframe|link)[^>]+(src|href)=", html)
    fetched = re.findall(r"url\((?!data:image/png;base64,|#)[^)]*\)|@import[^;]+", html)
    assert fetched == []


def test_the_policy_lets_exactly_the_scripts_of_the_page_run() -> None:
    html = page().to_html()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    assert html.index("Content-Security-Policy") < html.index("<script>")
    assert policy[1].startswith("default-src 'none'; ")
    assert "unsafe-inline" not in policy[1].split("script-src")[1].split(";")[0]
    for script in re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]


@pytest.mark.parametrize(
    "text", ["</title><script>x()</script>", "</script><img src=x onerror=x()>", "{{ 7*7 }}", "a\u2028b"]
)
def test_untrusted_text_stays_text(text: str) -> None:
    made = page(text, lines=[text])
    made.note(text)
    made.add_child(
        MapLayer("more", text, [["point", [1, 2], 0, [text], {}]], explanation=text, more={"ranking": text})
    )
    html = made.to_html()
    plain = page("x").to_html()
    assert html.count("<script") == plain.count("<script")
    assert html.count("<img") == plain.count("<img")
    assert html.count("</title>") == 1
    assert "\u2028" not in html
    assert "49" not in html[html.index("<h1>") : html.index("</h1>")]
    assert '"49"' not in html  # a template that folium would carry out


def test_credit_legend_units_and_language_are_there() -> None:
    html = page().to_html()
    assert '<html lang="en">' in html
    for words, address in ODBL_CREDIT:
        assert json.dumps(words) in html
        assert address in html
    assert '"title":"Utilisation","unit":"%"' in html
    assert "Redistribution and use in source and binary forms" in html  # Leaflet's licence travels with it


def test_a_page_over_its_limit_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    made = page(limit_bytes=10_000)
    assert made.size_bytes > 10_000
    with pytest.raises(OutputError, match=r"0\.3 MB, more than its limit of 0\.0 MB"):
        made.save(tmp_path / "map.html")
    assert list(tmp_path.iterdir()) == []


def test_a_layer_that_loads_from_outside_is_refused() -> None:
    made = page()
    MiniMap().add_to(made)
    with pytest.raises(OutputError, match="from outside"):
        made.to_html()


def test_folium_layers_that_leaflet_alone_draws_are_welcome() -> None:
    made = page()
    folium.CircleMarker((43.73, 7.42), radius=3).add_to(made)
    assert "L.circleMarker" in made.to_html()
    assert folium.Map.default_js  # folium's own maps are left as they were


def test_saving_makes_the_folder_replaces_the_file_and_returns_the_path(tmp_path: Path) -> None:
    target = tmp_path / "maps" / "town.html"
    assert page().save(target) == target
    assert page().save(str(target)) == target
    assert [item.name for item in target.parent.iterdir()] == ["town.html"]
    assert target.read_text(encoding="utf-8") == page().to_html()
    assert target.stat().st_mode & 0o777 == 0o644


def test_saving_into_an_open_file_and_showing_in_a_notebook() -> None:
    made, buffer = page(), io.BytesIO()
    assert made.save(buffer, close_file=False) is None
    assert buffer.getvalue().decode() == made.to_html()
    assert made._repr_html_().startswith("<div")
    assert "srcdoc=" in made._repr_html_()


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(
        OutputError, match=r"cannot be written \(.+\); name a file in a folder you may write to"
    ):
        page().save(tmp_path / "file" / "map.html")
    os.mkdir(tmp_path / "folder")
    with pytest.raises(OutputError, match="cannot be written"):
        page().save(tmp_path / "folder")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file", "folder"]
