"""Bad rows are named with their likely cause, kept in a file, and never lost or repaired."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyproj import Transformer

from geoedge.errors import CityError, OutputError
from geoedge.sites import read_sites, survey_sites
from geoedge.sites._causes import CAUSES
from geoedge.sites.cleaning import clean
from geoedge.sites.formats import read_rows
from geoedge.sites.quarantine import write_quarantine
from tests.sites.site_files import CELL_HEADER, CENTRE, cell_row, city, lonlat, placed, write

LON, LAT = lonlat(250.0, -120.0)
LAMBERT = Transformer.from_crs("EPSG:4326", "EPSG:2154", always_xy=True).transform(LON, LAT)
WRONG = {
    "missing": [
        ("", "43.7"),
        ("nan", "43.7"),
        ("here", "there"),
        ("inf", "43"),
        ("7.4.1", "43.7"),
        ("0x10", "43.7"),
    ],
    "null_island": [("0", "0"), ("0.0", "-0.0"), ("1e-7", "0")],
    "out_of_range": [("500", "43.7"), ("7.4", "-91"), ("99999999999", "5")],
    "swapped": [(LAT, LON)],
    "sign_lost": [(-LON, LAT), (LON, -LAT), (-LON, -LAT)],
    "scaled_e6": [(round(LON * 1e6), round(LAT * 1e6))],
    "scaled_e7": [(round(LON * 1e7), round(LAT * 1e7))],
    "point_lost": [(LON, round(LAT * 1e4)), (round(LON * 1e5), round(LAT * 1e4)), (round(LON * 1e3), LAT)],
    "projected": [tuple(CENTRE), LAMBERT, tuple(CENTRE[::-1] * 0 + CENTRE)],
    "outside": [("2.35", "48.85"), (LON + 0.1, LAT), (-120, -40)],
}


def table(tmp_path, rows):
    return write(tmp_path / "s.csv", ["lon,lat", *(f"{a},{b}" for a, b in rows)])


@pytest.mark.parametrize("reason", list(WRONG))
def test_each_mistake_is_named_by_its_cause_and_nothing_is_repaired(tmp_path, reason):
    path = table(tmp_path, [(LON, LAT), *WRONG[reason]])
    report = read_sites(path, city()).report
    assert {key: count for key, count in report["dropped"].items() if count} == {reason: len(WRONG[reason])}
    assert report["dropped_rows"] == {reason: [k + 2 for k in range(len(WRONG[reason]))][:5]}
    (problem,) = report["problems"]
    assert problem["cause"].startswith(CAUSES[reason])
    assert problem["samples"][0] == "{},{}".format(*WRONG[reason][0])
    assert report["sites"] == 1


def test_details_say_which_axis_and_which_projection(tmp_path):
    causes = {
        problem["reason"]: problem["cause"]
        for problem in read_sites(
            table(tmp_path, [(LON, LAT), (-LON, LAT), LAMBERT, (LAMBERT[0] + 30, LAMBERT[1])]), city()
        ).report["problems"]
    }
    assert causes["sign_lost"].endswith("(longitude)")
    assert causes["projected"].endswith("(EPSG:2154)")


def test_sites_just_beyond_the_edge_are_told_from_those_far_away(tmp_path):
    path = table(
        tmp_path, [(LON, LAT), lonlat(2400, 0), lonlat(0, -2499), lonlat(0, 2502), ("2.35", "48.85")]
    )
    (problem,) = read_sites(path, city()).report["problems"]
    assert problem["cause"] == "a place outside of the city (2 of them within 500 m of its edge)"


def test_the_cure_that_a_cause_names_works(tmp_path):
    path = table(tmp_path, [LAMBERT, (LAMBERT[0] + 100, LAMBERT[1])])
    with pytest.raises(CityError, match="no site inside testville: of 2 rows 2 projected; check lon/lat"):
        read_sites(path, city())
    np.testing.assert_allclose(placed(read_sites(path, city(), crs="EPSG:2154"))[0], [250, -120], atol=0.5)


def test_without_a_city_most_rows_tell_where_the_others_should_be(tmp_path):
    rng = np.random.default_rng(3)
    good = [lonlat(*place) for place in rng.uniform(-1500, 1500, (40, 2))]
    wrong = [
        pair for reason, pairs in WRONG.items() if reason not in ("outside", "point_lost") for pair in pairs
    ]
    far = [("2.35", "48.85"), ("151.2", "-33.8")]
    report = survey_sites(table(tmp_path, [*good, *wrong, *far]), merge_distance_m=0.0).report
    expected = {
        reason: len(pairs) for reason, pairs in WRONG.items() if reason not in ("outside", "point_lost")
    }
    assert {key: count for key, count in report["dropped"].items() if count} == expected | {"far_away": 2}
    assert report["sites"] == 40


def test_without_a_city_a_file_with_exchanged_columns_is_known_by_its_latitudes(tmp_path):
    path = table(tmp_path, [(-37.8, 144.9), (-37.81, 144.91)])
    with pytest.raises(CityError, match=r"no usable site: of 2 rows 2 swapped; check lon/lat"):
        survey_sites(path)


def test_rows_that_look_odd_are_used_and_named(tmp_path):
    stacked = [(LON, LAT, f"m{k}") for k in range(30)]
    rows = [("7.42", "43.74", "coarse"), *stacked, *((*lonlat(k, 0), "x") for k in range(3))]
    path = write(tmp_path / "s.csv", ["lon,lat,name", *(",".join(map(str, row)) for row in rows)])
    report = read_sites(path, city()).report
    odd = {problem["reason"]: (problem["count"], problem["used"]) for problem in report["problems"]}
    assert odd == {"coarse": (1, True), "stacked": (30, True)}
    assert report["kept"] == report["rows"] == 34


def test_places_rounded_to_a_hundred_metres_are_told_from_chance(tmp_path):
    rng = np.random.default_rng(4)
    fine = [lonlat(*place) for place in rng.uniform(-1300, 1300, (60, 2))]
    rounded = [(f"{lon:.3f}", f"{lat:.3f}") for lon, lat in fine]
    assert read_sites(table(tmp_path, [*fine, *rounded[:2]]), city()).report["problems"] == []
    report = read_sites(table(tmp_path, rounded), city()).report
    problem = report["problems"][-1]  # after places that have become the same
    assert (problem["reason"], problem["count"], problem["used"]) == ("coarse", report["kept"], True)
    assert report["kept"] == len(set(rounded)) < 60
    assert problem["cause"].endswith("rounded to steps of 0.001 degrees, up to 111 m")


def test_many_rows_of_one_site_on_one_place_are_not_odd(tmp_path):
    rows = [f"{LON},{LAT},9,LTE {k}" for k in range(40)]
    report = read_sites(write(tmp_path / "s.csv", ["lon,lat,site_id,system", *rows]), city()).report
    assert report["problems"] == []
    assert report["sites"] == 1


# -- cells -----------------------------------------------------------------------------------------

BAD_CELLS = {
    "bad_radio": [cell_row(radio="LTX"), cell_row(radio="")],
    "bad_operator": [
        cell_row(mcc=0),
        cell_row(mcc=199),
        cell_row(mcc=800),
        cell_row(net=1000),
        cell_row(net=-1),
    ],
    "bad_area": [cell_row(area=0), cell_row(area=65534), cell_row(area=65535), cell_row(area=70000)]
    + [cell_row(radio="NR", area=area) for area in (0, 2**24 - 2, 2**24)],
    "bad_cell": [
        cell_row(cell=0),
        cell_row(cell=2**28),
        cell_row(radio="GSM", cell=65536),
        cell_row(radio="NR", cell=2**36),
    ],
}
FINE_CELLS = [
    cell_row(mcc=901, net=999, cell=2**28 - 1),
    *(cell_row(radio="NR", area=area) for area in (65534, 65535, 2**24 - 3)),
    cell_row(radio="GSM", cell=65535),
    cell_row(radio="UMTS", cell=2**28 - 2),
    cell_row(radio="NR", cell=2**36 - 1, area=2**24 - 1),
    cell_row(radio="CDMA", net=32767, cell=5),
]


@pytest.mark.parametrize("reason", list(BAD_CELLS))
def test_cells_that_cannot_be_are_named(tmp_path, reason):
    path = write(tmp_path / "c.csv", [CELL_HEADER, *FINE_CELLS, *BAD_CELLS[reason]])
    report = read_sites(path, city()).report
    assert {key: count for key, count in report["dropped"].items() if count} == {
        reason: len(BAD_CELLS[reason])
    }
    assert report["kept"] == len(FINE_CELLS)


def test_a_cell_twice_keeps_the_row_with_most_samples(tmp_path):
    rows = [
        cell_row(0, samples=1),
        cell_row(10, samples=9),
        cell_row(20, samples=9),
        cell_row(30, radio="UMTS", samples=3),
        cell_row(40, net=11, samples=1),
    ]
    sites = read_sites(write(tmp_path / "c.csv", rows), city())
    assert sites.report["dropped_rows"] == {"two_radios": [4], "duplicate": [1, 3]}
    np.testing.assert_allclose(np.sort(placed(sites)[:, 0]), [10, 40], atol=0.05)


def test_operators_are_kept_apart_chosen_and_listed(tmp_path):
    rows = [cell_row(0, net=1), cell_row(1, net=2), cell_row(2, net=2, cell=999 * 256)]
    path = write(tmp_path / "c.csv", rows)
    sites = read_sites(path, city(), merge_distance_m=50.0)
    assert len(sites) == 2  # those of one operator merge, those of two never do
    assert sites.kind == ("212-01", "212-02")
    assert "sites of 2 operators (212-02, 212-01) lie over each other" in sites.report["notes"][0]
    for name in ("212-02", "212-2", " 212-002 "):
        assert len(read_sites(path, city(), operator=name, merge_distance_m=50.0)) == 1
    with pytest.raises(
        CityError, match=r"`operator` = '208-01': no such rows; the file has 212-02 \(2\), 212-01 \(1\)"
    ):
        read_sites(path, city(), operator="208-01")


def test_technologies_are_chosen_and_listed(tmp_path):
    rows = [cell_row(cell=5 * 256), cell_row(radio="GSM", cell=7), cell_row(radio="NR", cell=1 << 12)]
    path = write(tmp_path / "c.csv", rows)
    assert read_sites(path, city(), radio="4G").report["radios"] == {"LTE": 1}
    chosen = read_sites(path, city(), radio="LTE, nr").report
    assert chosen["radios"] == {"LTE": 1, "NR": 1}
    assert chosen["filtered"] == {"operator": 0, "radio": 1}
    with pytest.raises(CityError, match="`radio` = '6G' is unknown; name GSM, CDMA, UMTS, LTE, NR"):
        read_sites(path, city(), radio="LTE,6G")
    with pytest.raises(CityError, match="`radio` = 'CDMA': no such rows; the file has GSM, LTE, NR"):
        read_sites(path, city(), radio="CDMA")


# -- the quarantine file ---------------------------------------------------------------------------

HOSTILE = [
    "=cmd|' /C calc'!A0",
    "+1+1",
    "@SUM(A1)",
    "<script>alert(1)</script>",
    '"quoted, ""twice"""',
    "\u202egnp.exe",
    "\x1b[31mred",
]


def test_the_quarantine_holds_each_bad_row_as_it_was(tmp_path):
    lines = ["name,lon,lat", f"good,{LON},{LAT}", *(f"{name},{LAT},{LON}" for name in HOSTILE), "short,7"]
    path = write(tmp_path / "s.csv", lines)
    report = read_sites(path, city(), quarantine=tmp_path / "deep" / "bad.csv").report
    with (tmp_path / "deep" / "bad.csv").open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    assert header == ["row", "reason", "likely_cause", "text"]
    assert [row[3] for row in rows] == lines[2:]
    assert [int(row[0]) for row in rows] == list(range(2, len(lines)))
    assert [row[1] for row in rows] == ["swapped"] * len(HOSTILE) + ["missing"]
    assert report["rows"] == report["kept"] + len(rows)
    raw = (tmp_path / "deep" / "bad.csv").read_text(encoding="utf-8")
    assert all(line.startswith('"') for line in raw.splitlines() if line)


def test_a_quarantine_is_written_even_where_no_row_is_good_and_whole_or_not_at_all(tmp_path, monkeypatch):
    path = table(tmp_path, [(LAT, LON)])
    with pytest.raises(CityError, match="1 swapped"):
        read_sites(path, city(), quarantine=tmp_path / "bad.csv")
    assert (tmp_path / "bad.csv").read_text().count("swapped") == 1
    before = (tmp_path / "bad.csv").read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OutputError, match=r"quarantine file .*bad.csv' cannot be written \(No space left"):
        write_quarantine(clean(read_rows(path), city()), tmp_path / "bad.csv")
    assert (tmp_path / "bad.csv").read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bad.csv", "s.csv"]


def test_rows_of_maps_are_kept_as_json(tmp_path):
    import geopandas
    import shapely

    frame = geopandas.GeoDataFrame(
        {"name": ["a", "<b>"]}, geometry=[shapely.Point(LON, LAT), shapely.Point(LAT, LON)], crs="EPSG:4326"
    )
    frame.to_file(tmp_path / "a.geojson")
    read_sites(tmp_path / "a.geojson", city(), quarantine=tmp_path / "bad.csv")
    text = (tmp_path / "bad.csv").read_text()
    assert '""name"": ""<b>""' in text
    assert "POINT (43." in text


# -- whatever a row holds, it is accounted for -----------------------------------------------------

FIELD = st.one_of(
    st.sampled_from(
        ["", "nan", "inf", "-", "7,4", "1e309", "١٢", '"', '""', "0", "-1", "65535", "268435456"]
    ),
    st.text(max_size=8),
    st.floats().map(str),
    st.integers(-(2**70), 2**70).map(str),
)
MUTATION = st.tuples(
    st.integers(0, 13), st.sampled_from(["set", "drop", "double", "quote", "break", "bytes"]), FIELD
)


def mutated(row: str, at: int, how: str, text: str) -> bytes:
    fields = row.split(",")
    if how == "bytes":
        return row.encode() + b"\xff\xfe\x00"
    at %= len(fields)
    fields[at : at + 1] = {
        "set": [text],
        "drop": [],
        "double": [fields[at], text],
        "quote": [f'"{fields[at]}'],
        "break": [f"{fields[at]}\n{text}"],
    }[how]
    return ",".join(fields).encode("utf-8", errors="surrogatepass")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 11), MUTATION), min_size=1, max_size=6), st.booleans())
def test_rows_used_and_quarantined_are_the_rows_read(tmp_path, changes, header):
    rows = [cell_row(40 * k, 0, cell=(k + 1) * 256).encode() for k in range(12)]
    for place, (at, how, text) in changes:
        rows[place] = mutated(rows[place].decode(errors="replace"), at, how, text)
    path = tmp_path / "m.csv"
    path.write_bytes(
        b"\n".join([CELL_HEADER.encode(), *rows] if header else [cell_row(0, 99, cell=1).encode(), *rows])
    )
    try:
        rows_read = read_rows(path)
    except CityError:  # a first row that is no longer a cell
        assume(False)
    cleaned = clean(rows_read, city())
    dropped = sum(cleaned.dropped.values())
    assert len(cleaned.kept) + dropped == len(cleaned.rows)
    assert write_quarantine(cleaned, tmp_path / "q.csv") == dropped
    with (tmp_path / "q.csv").open(encoding="utf-8", newline="") as stream:
        kept_aside = list(csv.reader(io.StringIO(stream.read(), newline="")))[1:]
    assert len(kept_aside) == dropped
    # no text is lost: all rows one after the other are the file without its header and blank lines
    seen = "\n".join(cleaned.rows.text(k) for k in range(len(cleaned.rows)))
    assert squeezed(seen) == squeezed(path.read_bytes().decode(errors="replace"), 1 if header else 0)
    untouched = set(range(12)) - {place for place, _ in changes}
    assert len(cleaned.kept) >= len(untouched) - 2 * len(changes)


def squeezed(text: str, skip: int = 0) -> int:
    """Return how many letters and digits of plain ASCII there are; damaged bytes may be read in more than one way."""
    lines = [line for line in text.replace("\r", "\n").split("\n") if line.strip(' \t",;|')]
    return sum(c.isascii() and c.isalnum() for line in lines[skip:] for c in line)


def test_many_rows_take_no_step_of_python_each(tmp_path):
    """50,000 rows take 0.3 s where a million take 6; a Python step for every row would take several times as long."""
    import time

    rows = [cell_row(0, 0, cell=256 * (k + 1), samples=k % 9) for k in range(200)]
    path = write(tmp_path / "big.csv", [row.replace("300", "301") for row in rows] * 250)
    read_sites(path, city())
    start = time.process_time()
    report = read_sites(path, city()).report
    assert time.process_time() - start < 2.0
    assert report["rows"] == 50_000
    assert report["sites"] == 1
    assert report["dropped"]["duplicate"] == 49_800
