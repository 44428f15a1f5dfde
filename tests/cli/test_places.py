"""`geoedge plan SCENARIO --places`: files, JSON, and options that do not go together."""

from __future__ import annotations

import csv
import json

import pytest

from tests.cli.calling import FAST, call

INLAND = [(7.4197, 43.7312), (7.4212, 43.7396), (7.4259, 43.7395), (7.4150, 43.7330), (7.4230, 43.7440)]


@pytest.fixture
def candidates(tmp_path):
    """Return a file of candidate places, one of them with a hostile name."""
    path = tmp_path / "candidates.csv"
    rows = ["lon,lat,name"]
    rows += [f"{lon},{lat},place {k}" for k, (lon, lat) in enumerate(INLAND)]
    rows += ['7.4275,43.7405,"<script>alert(1)</script>"']
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def test_places_of_a_file_in_order(capsys, monkeypatch, tmp_path, candidates) -> None:
    order, picture = tmp_path / "order.csv", tmp_path / "curve.png"
    asked = ("plan", "monaco", "--places", "--candidates", str(candidates), "--sites", "2", "--orders", "2")
    files = ("-o", str(order), "--figure", str(picture))
    light = ("--set", "demand.users=100", "--quiet")
    code, out, err = call(capsys, monkeypatch, *asked, *FAST, *light, *files)
    assert (code, err) == (0, "")
    assert "Order of building" in out
    rows = list(csv.DictReader(order.read_text(encoding="utf-8").splitlines()))
    assert [row["order"] for row in rows] == ["1", "2"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, out, err = call(capsys, monkeypatch, *asked, *FAST, *light, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [str(row["place"]) for row in found["order"]] == [row["place"] for row in rows]
    assert found["candidates"] == 6
    assert found["sites"] == 2


def test_candidates_are_never_written_over(capsys, monkeypatch, candidates) -> None:
    before = candidates.read_bytes()
    asked = ("plan", "monaco", "--places", "--candidates", str(candidates), "-o", str(candidates))
    code, out, err = call(capsys, monkeypatch, *asked)
    assert (code, out) == (1, "")
    assert "is the same file as sites.source" in err
    assert err.count("\n") == 1
    assert candidates.read_bytes() == before


def test_an_order_that_cannot_be_written_is_refused_before_the_work(capsys, monkeypatch, tmp_path) -> None:
    (tmp_path / "order.csv").mkdir()
    code, out, err = call(
        capsys, monkeypatch, "plan", "monaco", "--places", "-o", str(tmp_path / "order.csv")
    )
    assert (code, out) == (1, "")
    assert "cannot be written there" in err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--places", "--method", "grid"), "--method: does nothing with --places"),
        (("--sites", "3"), "--sites: needs --places; add it"),
        (("--city", "-o", "order.txt"), "name a file that ends in .csv"),
        (("--places", "--figure", "curve.gif"), "curve.gif"),
        (("--places", "--candidates", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_what_does_not_go_together_is_refused(capsys, monkeypatch, words, line) -> None:
    code, out, err = call(capsys, monkeypatch, "plan", "monaco", "--quiet", *words)
    assert code == 1
    assert out == ""
    assert line in err
    assert err.count("\n") == 1
