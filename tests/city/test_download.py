"""Places by name, against a loopback server that answers as Nominatim and Overpass do, and fails as they do."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import osmnx
import pytest

from geoedge.city import City, load_city
from geoedge.errors import CityError, DownloadError

FRAME = (8.9995, 49.9995, 9.0055, 50.0035)
Answer = tuple[int, dict[str, str], bytes]


def packed(value: object) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


@dataclass
class Services:
    """Both services on one loopback port."""

    elements: list[dict]
    asked: list[str] = field(default_factory=list)
    faults: list[Callable[[], Answer]] = field(default_factory=list)
    known: bool = True
    url: str = ""

    def nominatim(self, query: dict[str, list[str]]) -> Answer:
        """Answer a search as Nominatim does."""
        self.asked.append("nominatim")
        assert query["format"] == ["json"]
        west, south, east, north = FRAME
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        place = {
            "place_id": 1,
            "licence": "Data © OpenStreetMap contributors, ODbL 1.0. http://osm.org/copyright",
            "osm_type": "relation",
            "osm_id": 42,
            "lat": "50.0015",
            "lon": "9.0025",
            "class": "boundary",
            "type": "administrative",
            "place_rank": 16,
            "importance": 0.4,
            "addresstype": "village",
            "name": query["q"][0],
            "display_name": f"{query['q'][0]}, Nowhere",
            "boundingbox": [str(south), str(north), str(west), str(east)],
            "geojson": {"type": "Polygon", "coordinates": [ring]},
        }
        return packed([place] if self.known else [])

    def overpass(self, data: str) -> Answer:
        """Answer a query as Overpass does: the ways asked for and all their nodes."""
        streets = 'way["highway"' in data
        self.asked.append("streets" if streets else "things")
        assert re.match(r"\[out:json\]\[timeout:\d+\]", data)
        ways = [item for item in self.elements if item["type"] == "way"]
        chosen = [way for way in ways if ("highway" in way["tags"]) == streets]
        refs = {ref for way in chosen for ref in way["nodes"]}
        nodes = [item for item in self.elements if item["type"] == "node"]
        nodes = [node for node in nodes if node["id"] in refs or (not streets and "tags" in node)]
        base = {"timestamp_osm_base": "2024-02-03T04:05:06Z", "copyright": "ODbL"}
        return packed(
            {"version": 0.6, "generator": "Overpass API 0.7.62", "osm3s": base, "elements": [*nodes, *chosen]}
        )


def handler_of(services: Services) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.reply(lambda: services.nominatim(parse_qs(urlsplit(self.path).query)))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.reply(lambda: services.overpass(parse_qs(body)["data"][0]))

        def reply(self, regular: Callable[[], Answer]) -> None:
            answer = regular()
            if services.faults:
                answer = services.faults.pop(0)()
            status, headers, body = answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                self.close_connection = True

    return Handler


@pytest.fixture
def services(village) -> Iterator[Services]:
    made = Services(village.elements())
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(made))
    server.daemon_threads = True
    server.block_on_close = False
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def load(services: Services, fresh_cache: Path) -> Callable[..., City]:
    """Load a place from the loopback services; by a box, as a rule, which spares Nominatim's polite pause."""

    def loading(place: str = "Testdorf", **options: object) -> City:
        options = {"bbox": FRAME, "overpass_url": services.url, "nominatim_url": services.url, **options}
        return load_city(place, **options)

    return loading


def test_a_place_is_the_same_city_as_its_file(services, load, village, tmp_path: Path) -> None:
    city = load(bbox=None)
    assert services.asked == ["nominatim", "streets", "things"]
    file = load_city(village.write(tmp_path / "a.osm"), bbox=FRAME)
    assert (city.name, city.extract_date, city.crs) == ("Testdorf", "2024-02-03", "EPSG:32632")
    assert re.fullmatch("[0-9a-f]{64}", city.checksum)
    for mode in ("walk", "drive"):
        np.testing.assert_allclose(city.streets[mode].node_xy, file.streets[mode].node_xy, atol=0.02)
        np.testing.assert_allclose(city.streets[mode].edge_time, file.streets[mode].edge_time, rtol=1e-4)
    np.testing.assert_allclose(
        np.sort(city.buildings.footprint_m2), np.sort(file.buildings.footprint_m2), rtol=1e-6
    )
    assert sorted(city.places.name) == sorted(file.places.name) == ["Bäcker & <b>Söhne</b>", "Post"]
    assert sorted(city.street_names.name) == ["</script><b>Gasse</b>", "Dorfstraße"]
    for one, other in zip(city.street_names.lines, file.street_names.lines, strict=True):
        assert one.hausdorff_distance(other) < 0.1
    assert city.area_km2 == pytest.approx(file.area_km2, rel=1e-3)


def test_a_place_is_asked_for_once(services, load) -> None:
    city = load()
    again = load()
    assert services.asked == ["streets", "things"]
    assert again.checksum == city.checksum
    load(boundary_buffer_m=50.0)  # compiled anew, from the answers kept
    assert services.asked == ["streets", "things"]


def test_the_cache_can_be_left_out(services, load, fresh_cache: Path) -> None:
    load(cache=False)
    load(cache=False)
    assert services.asked == ["streets", "things"] * 2
    assert not fresh_cache.exists()


def test_a_half_written_answer_is_asked_for_again(services, load, fresh_cache: Path) -> None:
    load()
    for path in fresh_cache.glob("downloads/*/*.json"):
        path.write_text(path.read_text()[:100])
    for path in fresh_cache.glob("*.npz"):
        path.unlink()
    load()
    assert services.asked == ["streets", "things"] * 2


def test_addresses_come_from_the_environment(services, fresh_cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEOEDGE_OVERPASS_URL", services.url)
    monkeypatch.setenv("GEOEDGE_NOMINATIM_URL", services.url)
    assert len(load_city("Testdorf", bbox=FRAME).buildings) == 9


@pytest.mark.parametrize("status", [429, 504])
def test_a_service_that_is_busy_once_is_asked_again(services, load, status: int) -> None:
    services.faults.append(lambda: (status, {"Retry-After": "0"}, b"<html>busy</html>"))
    assert len(load().buildings) == 9
    assert services.asked == ["streets", "streets", "things"]


@pytest.mark.parametrize("status", [429, 504])
def test_a_service_that_stays_busy_is_left_within_the_limit(services, load, status: int) -> None:
    services.faults.extend([lambda: (status, {"Retry-After": "1"}, b"")] * 50)
    began = time.monotonic()
    with pytest.raises(DownloadError, match=rf"is busy \({status}\).*give its path"):
        load(time_limit_s=2.5)
    assert time.monotonic() - began < 20.0  # osmnx alone would wait 55 s, again and again
    assert len(services.asked) <= 4


def test_a_long_wait_is_not_begun(services, load) -> None:
    services.faults.append(lambda: (429, {"Retry-After": "3600"}, b""))
    with pytest.raises(DownloadError, match="is busy"):
        load(time_limit_s=5.0)
    assert services.asked == ["streets"]


HTML: Answer = (200, {"Content-Type": "text/html"}, b"<!doctype html><title>Welcome</title>")


@pytest.mark.parametrize(
    "fault",
    [
        HTML,
        (400, {"Content-Type": "text/html"}, b"<html>parse error</html>"),
        (500, {}, b""),
        (200, {}, b'{"elements": [{"type": "way", "id": 1'),
        (200, {}, b"[1, 2, 3]"),
        (200, {}, b'{"elements": [{"type": "way"}]}'),
        (200, {}, b'{"elements": [{"type": "node", "id": 1, "lat": NaN, "lon": 9.0}]}'),
        (200, {}, b'{"elements": [{"type": "node", "lat": 50.0, "lon": 9.0}]}'),
        (200, {}, b'{"elements": [7]}'),
        (200, {}, b"{}"),
    ],
    ids=[
        "page",
        "bad request",
        "error",
        "cut",
        "list",
        "no fields",
        "no number",
        "no id",
        "no element",
        "empty object",
    ],
)
def test_nonsense_is_said_to_be_nonsense(services, load, fault: Answer, fresh_cache: Path) -> None:
    services.faults.append(lambda: fault)
    with pytest.raises(DownloadError, match=r"streets: the answer is no map data .*give its path") as caught:
        load()
    assert "\n" not in str(caught.value)
    assert not list(fresh_cache.glob("*.npz"))
    assert len(load().buildings) == 9  # and nothing of it is kept


@pytest.mark.parametrize("fault", [HTML, packed([7]), packed([{"name": "no importance"}])])
def test_nonsense_from_the_search(services, load, fault: Answer) -> None:
    services.faults.append(lambda: fault)
    with pytest.raises(DownloadError, match="outline: the answer is no map data"):
        load(bbox=None)


def test_a_fault_of_ones_own_is_not_blamed_on_the_service(load, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise AttributeError("own bug")

    monkeypatch.setattr(osmnx, "graph_from_polygon", broken)
    with pytest.raises(AttributeError, match="own bug"):
        load()


def test_answers_that_cannot_be_kept_are_said(load, fresh_cache: Path) -> None:
    fresh_cache.mkdir(parents=True)
    (fresh_cache / "downloads").write_text("x")
    assert "answers of map services not kept" in load().report["cache"]


def test_a_query_that_overpass_breaks_off_is_not_taken_for_an_empty_town(services, load) -> None:
    remark = {
        "elements": [],
        "remark": 'runtime error: Query timed out in "query" at line 1 after 5 seconds.',
    }
    services.faults.append(lambda: packed(remark))
    with pytest.raises(DownloadError, match="broke off the query"):
        load(time_limit_s=4.0)


def silent() -> Answer:
    time.sleep(6.0)
    return HTML


def test_silence_ends_with_the_limit(services, load) -> None:
    services.faults.append(silent)
    began = time.monotonic()
    with pytest.raises(DownloadError, match="no whole answer within 1 s"):
        load(time_limit_s=1.0)
    assert time.monotonic() - began < 5.0


def test_a_trickle_ends_with_the_limit(load, services, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            try:
                for _ in range(60):
                    connection.sendall(b"{")
                    time.sleep(0.1)
            except OSError:
                return

    threading.Thread(target=drip, daemon=True).start()
    began = time.monotonic()
    with pytest.raises(DownloadError, match="no whole answer within 1 s"):
        load(time_limit_s=1.0, overpass_url=f"http://127.0.0.1:{listener.getsockname()[1]}")
    listener.close()
    assert time.monotonic() - began < 4.0


def test_nobody_there(load) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(DownloadError, match="cannot be reached"):
        load(overpass_url=f"http://127.0.0.1:{port}")


def test_an_unknown_place(services, load) -> None:
    services.known = False
    with pytest.raises(CityError, match="'Xyzzy': neither a shipped city"):
        load("Xyzzy", bbox=None)


def test_a_place_too_large_for_a_public_service(services, load) -> None:
    with pytest.raises(CityError, match="at most 1000"):
        load(bbox=(8.0, 49.0, 9.0, 50.0))
    assert services.asked == []


def test_good_answers_outlive_a_later_failure(services, load) -> None:
    def first_good() -> Answer:
        services.faults.append(lambda: (429, {"Retry-After": "99"}, b""))
        return services.overpass('[out:json][timeout:1];(way["highway"];)')

    services.faults.append(first_good)
    with pytest.raises(DownloadError, match=r"buildings and places.*is busy"):
        load(time_limit_s=5.0)
    services.asked.clear()
    assert len(load().buildings) == 9
    assert services.asked == ["things"]


def test_a_place_without_streets(services, load) -> None:
    services.elements = [item for item in services.elements if "highway" not in item.get("tags", {})]
    with pytest.raises(CityError, match="no streets"):
        load()


def test_a_place_without_buildings_is_a_place(services, load) -> None:
    services.elements = [
        item for item in services.elements if "highway" in item.get("tags", {}) or "tags" not in item
    ]
    city = load()
    assert (len(city.buildings), len(city.places)) == (0, 0)


def test_nothing_of_osmnx_or_the_resolver_stays_changed(services, load) -> None:
    names = [name for name in vars(osmnx.settings) if not name.startswith("_")]
    before = {name: getattr(osmnx.settings, name) for name in names}, socket.getaddrinfo
    load()
    services.faults.append(lambda: HTML)
    with pytest.raises(DownloadError):
        load("Andersdorf")
    assert ({name: getattr(osmnx.settings, name) for name in names}, socket.getaddrinfo) == before


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf")])
def test_limits_that_are_none(load, limit: float) -> None:
    with pytest.raises(DownloadError, match="`time_limit_s`"):
        load(time_limit_s=limit)


def test_shipped_cities_and_files_never_ask(services, load, village, tmp_path: Path) -> None:
    load(str(village.write(tmp_path / "a.osm")))
    assert services.asked == []
