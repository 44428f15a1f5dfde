"""`geoedge sites`: one command says what a file holds, sets bad rows aside and draws the rest."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from geoedge.city import load_city
from geoedge.errors import OutputError
from geoedge.scenario import load_scenario
from geoedge.sites import read_sites, survey_sites
from tests.cli.calling import call, refused
from tests.sites.site_files import cell_row

HOSTILE = "=cmd|'/C calc'!A0 <img src=x onerror=alert(1)> [red]\x1b[31m"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return forty masts of two operators on land in Monaco, four bad rows, and a name nobody should trust."""
    rows = [f"{7.400 + 0.0016 * (k % 8)},{43.730 + 0.0011 * (k // 8)},m{k},{'AB'[k % 2]}" for k in range(40)]
    rows[3] = rows[3].replace("m3", HOSTILE)
    bad = [f"43.73,7.41,{HOSTILE},A", "0,0,null,A", "x,y,none,B", "2.35,48.85,Paris,B"]
    path = tmp_path / "masts.csv"
    path.write_text("\n".join(["lon,lat,name,operator", *rows, *bad]), encoding="utf-8")
    return path


def test_the_report_names_each_problem_with_cause_count_and_rows(capsys, monkeypatch, file) -> None:
    code, out, err = call(capsys, monkeypatch, "sites", str(file), "--city", "monaco", "--merge", "0")
    assert (code, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "masts.csv: table" in lines
    assert "columns: lon = lon, lat = lat, name = name, operator = operator" in lines
    assert any(line.startswith("read 44") for line in lines)
    assert any(line.startswith("swapped 1 41 longitude and latitude in each other's place") for line in lines)
    assert any(line.startswith("null island 1 42") for line in lines)
    assert any(line.startswith("missing 1 43") for line in lines)
    assert any(line.startswith("outside 1 44") for line in lines)
    used = int(next(line for line in lines if line.startswith("used")).split()[1])
    assert 25 <= used <= 40  # the rest stands in the sea
    assert any("per km² on 13.07 km² (monaco)" in line for line in lines)
    assert any(line.startswith("Clark-Evans index") for line in lines)
    assert any("sites of 2 operators (A, B)" in line for line in lines)
    assert "\x1b" not in out
    assert "[red]" in out  # text, not a colour


def test_json_map_and_quarantine_come_from_one_command(capsys, monkeypatch, file, tmp_path) -> None:
    page, aside = tmp_path / "sites.html", tmp_path / "bad.csv"
    words = ["sites", str(file), "--operator", "a", "--merge", "0", "--json"]
    code, out, _ = call(capsys, monkeypatch, *words, "-o", str(page), "--quarantine", str(aside))
    assert code == 0
    found = json.loads(out)
    assert found["sites"] == found["kept"] == 20
    assert found["filtered"] == {"operator": 20, "radio": 0}
    assert found["rows"] == found["kept"] + sum(found["dropped"].values()) + sum(found["filtered"].values())
    assert found["window"]["name"] == "the sites' own hull"
    assert found["statistics"]["sites"] == 20
    assert (found["map"], found["quarantine"]) == (str(page), str(aside))
    assert "<img src=x" not in page.read_text(encoding="utf-8")
    with aside.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == sum(found["dropped"].values())
    assert rows[0]["text"] == f"43.73,7.41,{HOSTILE},A"
    assert {key: value for key, value in found.items() if key in ("problems", "merged")} == {
        key: value
        for key, value in survey_sites(file, operator="a", merge_distance_m=0.0).report.items()
        if key in ("problems", "merged")
    }


def test_options_reach_the_reader(capsys, monkeypatch, tmp_path) -> None:
    path = tmp_path / "cells"
    rows = [cell_row(300.0 * (k % 4), 250.0 * (k // 4), cell=256 * (k + 1)) for k in range(12)]
    rows += [cell_row(10, 10, radio="GSM", cell=k + 1) for k in range(3)]
    path.write_text("\n".join(rows), encoding="utf-8")
    code, out, _ = call(capsys, monkeypatch, "sites", str(path), "--radio", "4g", "--json")
    assert code == 0
    assert json.loads(out)["radios"] == {"LTE": 12}
    assert json.loads(out)["filtered"]["radio"] == 3
    other = tmp_path / "metres.csv"
    other.write_text("a;b\n1055000;6301000\n1055300;6301000\n1055000,5;6301600\n", encoding="utf-8")
    code, out, _ = call(
        capsys, monkeypatch, "sites", str(other), "--columns", "lon=a,lat=b", "--crs", "EPSG:2154", "--json"
    )
    assert code == 0
    assert json.loads(out)["kept"] == 3


def test_what_is_wrong_is_one_line(capsys, monkeypatch, file, tmp_path) -> None:
    assert "no file" in refused(capsys, monkeypatch, "sites", str(tmp_path / "none.csv"))
    assert "name a file that ends in .html" in refused(capsys, monkeypatch, "sites", str(file), "-o", "a.png")
    line = refused(capsys, monkeypatch, "sites", str(file), "--buildings", "b.gpkg")
    assert "footprints belong to a city; name it with --city" in line
    line = refused(capsys, monkeypatch, "sites", str(file), "--operator", "C")
    assert "`operator` = 'C': no such rows; the file has A (" in line
    line = refused(capsys, monkeypatch, "sites", str(file), "--quarantine", str(file / "x.csv"))
    assert "quarantine file" in line
    code, _, err = call(capsys, monkeypatch, "sites", str(file), "--merge", "-1")
    assert code == 2
    assert "--merge" in err


@pytest.mark.parametrize("spelling", ["same", "other", "symlink", "hard link"])
def test_what_is_read_is_never_written_over(capsys, monkeypatch, file, tmp_path, spelling) -> None:
    before, there = file.read_bytes(), tmp_path / "there.html"
    (tmp_path / "folder").mkdir()
    if spelling == "same":
        there = file
    elif spelling == "other":
        there = tmp_path / "folder" / ".." / file.name
    elif spelling == "symlink":
        there.symlink_to(file)
    else:
        there.hardlink_to(file)
    line = refused(capsys, monkeypatch, "sites", str(file), "--quarantine", str(there))
    assert "is the same file as the file of sites" in line
    with pytest.raises(OutputError, match=r"quarantine .* is the same file as the file of sites"):
        read_sites(file, load_city("monaco"), quarantine=there)
    if there.suffix == ".html":
        line = refused(capsys, monkeypatch, "sites", str(file), "-o", str(there))
        assert "--output" in line
    assert file.read_bytes() == before
    assert there.samefile(file)


def test_two_outputs_are_two_files(capsys, monkeypatch, file, tmp_path) -> None:
    page = tmp_path / "x.html"
    words = ["sites", str(file), "-o", str(page), "--quarantine", str(tmp_path / "." / "x.html")]
    assert "is the same file as --quarantine" in refused(capsys, monkeypatch, *words)
    assert not page.exists()


def test_one_is_one(capsys, monkeypatch, tmp_path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("lon,lat\n7.4211,43.7333\n", encoding="utf-8")
    code, out, _ = call(capsys, monkeypatch, "sites", str(path), "-o", str(tmp_path / "one.html"))
    assert code == 0
    assert "1 site of 1 row:" in out
    assert "the only row can be used" in out
    assert "1 site of 1 row · 0 of 1 row not usable" in (tmp_path / "one.html").read_text(encoding="utf-8")


def test_a_scenario_takes_the_keys_of_a_file_and_no_others_do(capsys, monkeypatch, file, tmp_path) -> None:
    scenario = load_scenario("monaco")
    keys = {
        "sites.source": str(file),
        "sites.operator": "A",
        "sites.columns": "name=name",
        "sites.radio": "LTE",
    }
    assert scenario.override(keys).sites.operator == "A"
    for key, value in {"operator": "A", "radio": "LTE", "columns": "lon=x", "crs": "EPSG:2154"}.items():
        line = refused(capsys, monkeypatch, "check", "monaco", "--set", f"sites.{key}={value}")
        assert f'sites.{key} = "{value}": sites.source = "hosts" is no file; remove it' in line
