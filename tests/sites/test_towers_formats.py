"""Every kind of file is known by its content and read to the same places."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import zipfile

import geopandas
import numpy as np
import pytest
import shapely

from geoedge.errors import CityError
from geoedge.sites import read_sites
from geoedge.sites.formats import read_rows
from tests.sites.site_files import CELL_HEADER, CENTRE, cell_row, city, lonlat, placed, write

HERE = [(100.0, 100.0), (-300.0, 50.0)]


def decimals(places=HERE):
    return [lonlat(*place) for place in places]


def both(sites, tolerance_m=0.05):
    np.testing.assert_allclose(placed(sites), HERE, atol=tolerance_m)


# -- lists of cells --------------------------------------------------------------------------------


def cells():
    return [cell_row(x, y, cell=(300 + k) * 256 + 1) for k, (x, y) in enumerate(HERE)]


@pytest.mark.parametrize("header", [True, False])
def test_opencellid_with_and_without_header(tmp_path, header):
    path = write(tmp_path / "208.csv", [CELL_HEADER, *cells()] if header else cells())
    sites = read_sites(path, city())
    both(sites)
    assert sites.name == ("eNodeB 300", "eNodeB 301")
    assert ("without header" in sites.report["format"]) is not header
    assert sites.report["rows"] == 2
    assert sites.report["operators"] == {"212-10": 2}
    assert sites.report["radios"] == {"LTE": 2}


def test_one_row_without_header_is_a_row(tmp_path):
    assert len(read_sites(write(tmp_path / "a.csv", cells()[:1]), city())) == 1


def test_a_short_row_of_cells_is_malformed_because_its_columns_have_moved(tmp_path):
    row = cells()[1].split(",")
    path = write(tmp_path / "a.csv", [cells()[0], ",".join(row[:5] + row[6:])])
    assert read_sites(path, city()).report["dropped"]["malformed"] == 1


# -- tables ----------------------------------------------------------------------------------------


def test_acma(tmp_path):
    header = (
        "SITE_ID,LATITUDE,LONGITUDE,NAME,STATE,LICENSING_AREA_ID,POSTCODE,SITE_PRECISION,ELEVATION,HCIS_L2"
    )
    rows = [
        f'{7 + k},{lat},{lon},"Tower, {k}",VIC,2,,Within 10 meters,,KX3P'
        for k, (lon, lat) in enumerate(decimals())
    ]
    sites = read_sites(write(tmp_path / "site.csv", [header, *rows, rows[1]]), city())
    both(sites)
    assert sites.report["format"] == "ACMA list of sites"
    assert sites.report["grouped"] == "by SITE_ID"
    assert sites.name == ("Tower, 0", "Tower, 1")
    assert sites.report["dropped"]["duplicate"] == 1  # the same line again


def test_anfr_observatoire_with_semicolons_and_windows_letters(tmp_path):
    header = "id;adm_lb_nom;sup_id;emr_lb_systeme;emr_dt;generation;adr_lb_lieu;coordonnees;statut"
    (lon, lat), (lon2, lat2) = decimals()
    rows = [
        f"1;ORANGE;11;LTE 800;2020-01-01;4G;Château d'eau;{lat}, {lon};En service",
        f"2;ORANGE;11;NR 3500;2020-01-01;5G;Château d'eau;{lat}, {lon};En service",
        f"3;ORANGE;12;GSM 900;2020-01-01;2G;Église;{lat2}, {lon2};Projet approuvé",
        f"4;SFR;11;LTE 800;2020-01-01;4G;Château d'eau;{lat}, {lon};En service",
    ]
    path = write(tmp_path / "obs.csv", [header, *rows], encoding="cp1252")
    assert read_sites(path, city()).report["sites"] == 3  # operators apart
    sites = read_sites(path, city(), operator="Orange")
    both(sites)
    assert sites.report["facts"]["encoding"] == "Windows-1252"
    assert "ANFR" in sites.report["format"]
    assert sites.report["filtered"] == {"operator": 1, "radio": 0}
    assert sites.report["radios"] == {"GSM": 1, "LTE": 1, "NR": 1}
    assert "(En service 2, Projet approuvé 1); all of them count as sites" in sites.report["notes"][0]


def degrees(value: float) -> tuple[int, int, float]:
    minutes, seconds = divmod(round(abs(value) * 3600, 4), 60)
    return int(minutes // 60), int(minutes % 60), round(seconds, 4)


def test_anfr_supports_in_degrees_minutes_and_seconds(tmp_path):
    parts = [f"COR_{kind}_LAT" for kind in ("NB_DG", "NB_MN", "NB_SC", "CD_NS")]
    parts += [f"COR_{kind}_LON" for kind in ("NB_DG", "NB_MN", "NB_SC", "CD_EW")]
    header = ";".join(["SUP_ID", "STA_NM_ANFR", "NAT_ID", *parts, "SUP_NM_HAUT"])
    rows = []
    for k, (lon, lat) in enumerate(decimals()):
        d, m, s = degrees(lat)
        e, n, t = degrees(lon)
        rows.append(f"{k};0{k};23;{d};{m};{str(s).replace('.', ',')};N;{e};{n};{t};E;20,5")
    west = rows[1].replace(";E;", ";W;").replace("1;01", "9;09", 1)
    no_angle = rows[1].replace(";N;", ";N;").replace("1;01;23;43;", "8;08;23;43;99", 1)
    sites = read_sites(write(tmp_path / "SUP_SUPPORT.txt", [header, *rows, west, no_angle]), city())
    both(sites, 0.1)
    assert sites.report["format"] == "ANFR list of supports"
    assert sites.report["dropped"]["sign_lost"] == 1
    assert sites.report["dropped"]["missing"] == 1


def test_columns_may_be_named_or_numbered(tmp_path):
    rows = [f"{k};{lat};M{k};{lon}" for k, (lon, lat) in enumerate(decimals())]
    path = write(tmp_path / "a.csv", ["n;Breite;Mast;Länge", *rows])
    with pytest.raises(CityError, match=r"needs a header.*or name the columns, as lon=4,lat=5"):
        read_sites(path, city())
    for columns in ("lon=Länge,lat=Breite,name=Mast", {"lon": "laenge", "lat": "2", "name": "mast"}):
        if isinstance(columns, dict):
            columns["lon"] = "Lange"  # accents and capitals do not count
        sites = read_sites(path, city(), columns=columns)
        both(sites)
        assert sites.name == ("M0", "M1")
    bare = write(tmp_path / "b.csv", rows)
    both(read_sites(bare, city(), columns="lon=4,lat=2"))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("lon=East,lat=lat", r"`columns` names 'East', but there are lon, lat; name one of them"),
        ("east=lon", r"`columns` has 'east' = 'lon'; write ROLE=COLUMN with roles among lon, lat"),
        ("lon", r"`columns` has 'lon' = ''; write ROLE=COLUMN"),
        ("lon=9,lat=1", r"names '9'"),
        ("lon=lon,lon=lat", r"`columns` names 'lon' 2 times; name one column for each role"),
        ("lon=lat", r"`columns` takes 'lat' for lat and lon|`columns` takes 'lat' for lon and lat"),
        ("lon=lon,lat=1", r"`columns` takes 'lon' for"),
        ("name=lon,lon=lon", r"`columns` takes 'lon' for"),
    ],
)
def test_columns_that_are_not_there_are_one_clear_line(tmp_path, columns, words):
    path = write(tmp_path / "a.csv", ["lon,lat", "7.4,43.7"])
    with pytest.raises(CityError, match=words) as caught:
        read_sites(path, city(), columns=columns)
    assert "\n" not in str(caught.value)


def test_a_header_that_repeats_a_name_that_is_used_says_which_column_it_is(tmp_path):
    (a, b), (c, d) = decimals()
    path = write(tmp_path / "a.csv", ["lon,lat,LON,note,note", f"{a},{b},1,x,y", f"{c},{d},1,x,y"])
    sites = read_sites(path, city())
    both(sites)
    assert sites.report["notes"] == [
        "the header has 'lon' 2 times; column 1 is used, and another may be named by its number"
    ]


def test_degrees_under_a_crs_of_metres_are_refused(tmp_path):
    path = write(tmp_path / "a.csv", ["lon,lat", *(f"{a},{b}" for a, b in decimals())])
    with pytest.raises(CityError, match=r"`crs` = 'EPSG:2154' counts metres.*leave the CRS out"):
        read_sites(path, city(), crs="EPSG:2154")
    both(read_sites(path, city(), crs="EPSG:4258"))
    with pytest.warns(UserWarning, match="'crs' was not provided"):
        geopandas.GeoDataFrame(geometry=shapely.points(decimals())).to_file(tmp_path / "b.gpkg")
    with pytest.raises(CityError, match=r"`crs` = 'EPSG:2154' counts metres"):
        read_sites(tmp_path / "b.gpkg", city(), crs="EPSG:2154")


def test_eastings_and_northings_of_a_given_crs(tmp_path):
    frame = geopandas.GeoSeries(shapely.points([np.add(CENTRE, p) for p in HERE]), crs="EPSG:32632").to_crs(
        2154
    )
    rows = [f"{p.x:.3f};{p.y:.3f};1;1".replace(".", ",") for p in frame]
    path = write(tmp_path / "a.csv", ["X Lambert 93;Y Lambert 93;lon;lat", *rows])
    both(read_sites(path, city(), crs="EPSG:2154"))
    with pytest.raises(CityError, match="`crs` = 'EPSG:1' is no coordinate reference system of the Earth"):
        read_sites(path, city(), crs="EPSG:1")
    with pytest.raises(CityError, match="`crs` = 'ENGCRS"):
        read_sites(
            path,
            city(),
            crs='ENGCRS["a",EDATUM["y"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]',
        )


def test_one_damaged_line_does_not_spoil_the_names_of_the_others(tmp_path):
    (a, b), (c, d) = decimals()
    path = tmp_path / "a.csv"
    path.write_bytes(f"lon,lat,name\n{a},{b},Église\n".encode() + f"{c},{d},Ch\xe2teau\n".encode("latin-1"))
    assert read_sites(path, city()).name == ("Église", "Château")


def test_utf_16_and_the_first_line_of_spreadsheets(tmp_path):
    rows = [f"{lon};{lat}" for lon, lat in decimals()]
    path = tmp_path / "a.csv"
    path.write_bytes("\r\n".join(["lon;lat", *rows]).encode("utf-16"))
    both(read_sites(path, city()))
    both(read_sites(write(tmp_path / "b.csv", ["sep=;", "lon;lat", *rows]), city()))


def test_quoted_fields_may_hold_delimiters_quotes_and_lines(tmp_path):
    (a, b), (c, d) = decimals()
    lines = ["name,lon,lat", f'"Mast, ""big""\n\nand high",{a},{b}', f'12" mast,{c},{d}', ",,"]
    sites = read_sites(write(tmp_path / "a.csv", lines), city())
    both(sites)
    assert sites.name == ('Mast, "big"\n\nand high', '12" mast')
    assert sites.report["rows"] == 2


def test_an_open_quote_costs_its_own_row_alone(tmp_path):
    (a, b), (c, d) = decimals()
    lines = ["name,lon,lat", f'"open,{a},{b}', *[f"m{k},{c},{d}" for k in range(100)]]
    sites = read_sites(write(tmp_path / "a.csv", lines), city())
    assert sites.report["rows"] == 101
    assert sites.report["kept"] == 101
    assert sites.name[0] == '"open'


def test_two_stray_quotes_far_apart_do_not_swallow_what_is_between(tmp_path):
    (a, b), (c, d) = decimals()
    between = [f"m{k},{c},{d}" for k in range(80)]
    lines = ["name,lon,lat", f'"open,{a},{b}', *between, f'close",{a},{b}']
    assert read_sites(write(tmp_path / "a.csv", lines), city()).report["kept"] == 82
    near = read_sites(write(tmp_path / "b.csv", [*lines[:3], lines[-1]]), city())
    assert near.report["rows"] == 1  # which a name of three lines may well be


def test_surplus_fields_are_malformed_and_empty_ones_are_not(tmp_path):
    (a, b), _ = decimals()
    lines = ["name,lon,lat", f"a,b,{a},{b}", f"c,{a},{b},,", f"d,{a},{b}"]
    report = read_sites(write(tmp_path / "a.csv", lines), city()).report
    assert report["dropped"]["malformed"] == 1
    assert report["dropped_rows"]["malformed"] == [1]
    assert report["kept"] == 2


# -- maps ------------------------------------------------------------------------------------------


def frame(crs: int = 2154) -> geopandas.GeoDataFrame:
    points = shapely.points([np.add(CENTRE, place) for place in HERE])
    table = {"name": ["a", "b"], "operator": ["X", "Y"], "technology": ["4G", "5G"]}
    return geopandas.GeoDataFrame(table, geometry=points, crs="EPSG:32632").to_crs(crs)


def shapefile(folder, *, zipped: bool, projection: bool = True):
    folder.mkdir()
    frame().to_file(folder / "masts.shp")
    if not projection:
        (folder / "masts.prj").unlink()
    if not zipped:
        return folder / "masts.shp"
    with zipfile.ZipFile(folder / "any.zip", "w") as archive:
        for part in folder.glob("masts.*"):
            archive.write(part, f"deep/{part.name}")
        archive.writestr("readme.txt", "hello")
        archive.writestr("__MACOSX/masts.shp", "x")
    return folder / "any.zip"


@pytest.mark.parametrize("zipped", [True, False])
def test_shapefiles(tmp_path, zipped):
    sites = read_sites(shapefile(tmp_path / "s", zipped=zipped), city())
    both(sites)
    assert sites.report["format"] == "shapefile"
    assert sites.report["operators"] == {"X": 1, "Y": 1}
    assert sites.report["radios"] == {"LTE": 1, "NR": 1}


def test_a_shapefile_without_projection_takes_the_crs_given(tmp_path):
    path = shapefile(tmp_path / "s", zipped=True, projection=False)
    both(read_sites(path, city(), crs="EPSG:2154"))
    with pytest.raises(CityError, match=r"2 projected; check lon/lat; the file states no CRS"):
        read_sites(path, city())


def test_a_stated_crs_wins_and_the_report_says_so(tmp_path):
    frame(4326).to_file(tmp_path / "a.geojson")
    sites = read_sites(tmp_path / "a.geojson", city(), crs="EPSG:2154")
    both(sites)
    assert sites.report["notes"][0] == "the file states its CRS, EPSG:4326; the one given is not used"
    with pytest.raises(CityError, match="names lon, but a GeoJSON file has geometry"):
        read_sites(tmp_path / "a.geojson", city(), columns="lon=x,operator=operator")


def osm(places=HERE):
    nodes = [
        f'<node id="{k + 1}" lat="{lat}" lon="{lon}"><tag k="man_made" v="mast"/>'
        f'<tag k="operator" v="O&amp;{k}"/><tag k="name" v="M{k}"/></node>'
        for k, (lon, lat) in enumerate(decimals(places))
    ]
    shop = '<node id="99" lat="43.73" lon="7.42"><tag k="shop" v="bakery"/></node>'
    return "<?xml version='1.0'?>\n<osm version=\"0.6\">" + "".join([*nodes, shop]) + "</osm>"


@pytest.mark.parametrize("name", ["a.osm", "a.osm.gz", "wrong.csv"])
def test_masts_on_an_openstreetmap_file(tmp_path, name):
    path, data = tmp_path / name, osm().encode()
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    sites = read_sites(path, city())
    both(sites)
    assert sites.name == ("M0", "M1")
    assert sites.report["facts"]["taken"] == "2 man_made=mast"
    assert sites.report["facts"]["left"] == "1 places of other kinds"
    assert sites.report["operators"] == {"O&0": 1, "O&1": 1}


def test_masts_on_a_pbf_file(tmp_path):
    import osmium

    (tmp_path / "a.osm").write_text(osm())
    with osmium.SimpleWriter(str(tmp_path / "a.osm.pbf")) as writer:
        for thing in osmium.FileProcessor(str(tmp_path / "a.osm")):
            writer.add(thing)
    (tmp_path / "a.osm.pbf").rename(tmp_path / "masts")
    both(read_sites(tmp_path / "masts", city()))


# -- packed, and what a name says ------------------------------------------------------------------


def zipped(data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("../../etc/cells.csv", data)
    return stream.getvalue()


PACKERS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zip": zipped, "": bytes}


@pytest.mark.parametrize("packed", list(PACKERS))
def test_packed_files_are_known_by_content_whatever_they_are_called(tmp_path, packed):
    path = tmp_path / "sites.geojson"
    path.write_bytes(PACKERS[packed]("\n".join(cells()).encode()))
    sites = read_sites(path, city())
    both(sites)
    assert sites.report["facts"].get("packed", "") == packed
    assert sorted(each.name for each in tmp_path.iterdir()) == ["sites.geojson"]


@pytest.mark.parametrize("kind", ["gpkg", "geojson"])
def test_maps_are_known_by_content_whatever_they_are_called(tmp_path, kind):
    frame(4326).to_file(tmp_path / f"a.{kind}")
    data = (tmp_path / f"a.{kind}").read_bytes()
    for name, content in (("b.csv", data), ("c", gzip.compress(data)), ("d.zip", zipped(data))):
        (tmp_path / name).write_bytes(content)
        sites = read_sites(tmp_path / name, city())
        both(sites)
        assert sites.report["format"] == {"gpkg": "GeoPackage", "geojson": "GeoJSON"}[kind]


def test_damaged_and_foreign_files_are_one_clear_line(tmp_path):
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    with sqlite3.connect(tmp_path / "db") as base:
        base.execute("create table t (x)")
    bad = {
        "a.gz": (gzip.compress(b"lon,lat\n1,2")[:-6], "the gzip file is damaged"),
        "b.xz": (b"\xfd7zXZ\x00\x00", "the xz file is damaged"),
        "c.zip": (b"PK\x03\x04nonsense", "cannot be unpacked"),
        "d.shp": (
            b"\x00\x00\x27\x0a" + bytes(96),
            "cannot be read as shapefile|a shapefile is several files",
        ),
        "e": (b"\x00\x00\x27\x0a" + bytes(96), "a shapefile is several files"),
        "f.parquet": (b"PAR1aaaa", "is no file of sites that is known"),
        "g.osm": (b"<?xml version='1.0'?><osm><node", "not a readable OpenStreetMap file"),
        "i.gpkg": (b"nope", "is named .gpkg but holds no GeoPackage"),
        "j.osm.pbf": (b"nope", "is named .pbf but holds no OpenStreetMap file"),
        "k.osm.gz": (b"x", "is named .gz but holds no gzip file"),
        "l.shp": (b"\x01\x02", "is named .shp but holds no shapefile"),
        "m.zip": (empty.getvalue(), "is named .zip but holds no zip file"),
        "n.csv": (b"lon,lat\n1,2\n3,4\0\n", "holds 1 NUL byte, the first in line 3"),
        "o.csv": (b"lon,lat\n" + b"1,2\n" * 3000 + b"\0\0", "holds 2 NUL bytes, the first in line 3002"),
        "p.csv": (b"", "is empty"),
        "q.gpkg": (b"", "is empty"),
        "h.db": ((tmp_path / "db").read_bytes(), "cannot be read as geopackage|has no geometry"),
    }
    for name, (data, words) in bad.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(CityError, match=words) as caught:
            read_sites(tmp_path / name, city())
        assert "\n" not in str(caught.value)
        assert name in str(caught.value)


def test_an_archive_of_several_files_says_what_it_holds(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one.csv", "lon,lat")
        archive.writestr("two.csv", "lon,lat")
    with pytest.raises(CityError, match=r"the archive holds one.csv, two.csv; pack one"):
        read_sites(path, city())


def test_a_packed_file_may_not_fill_the_memory(tmp_path, monkeypatch):
    from geoedge.sites import _packing

    monkeypatch.setattr(_packing, "LIMIT_BYTES", 1000)
    for name, data in (("a.gz", gzip.compress(bytes(5000))), ("a.zip", zipped(b"x" * 5000))):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(CityError, match="holds more than 0 GB unpacked"):
            read_rows(tmp_path / name)
