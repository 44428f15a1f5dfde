"""The server: this machine alone, one line where it cannot start."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from geoedge.app import server
from geoedge.errors import GeoEdgeError
from geoedge.scenario import load_scenario


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(GeoEdgeError, match=f"app: port {port} cannot be used .* --port"):
            server.serve(load_scenario("monaco"), port=port, open_browser=False)


@pytest.mark.parametrize("port", [-1, 70_000])
def test_a_port_that_is_none_is_one_line(port: int) -> None:
    with pytest.raises(GeoEdgeError, match=f"app: port {port} cannot be used"):
        server.serve(load_scenario("monaco"), port=port, open_browser=False)


def test_a_scenario_without_a_city_is_one_line() -> None:
    with pytest.raises(GeoEdgeError, match="no \\[city\\] to watch"):
        server.serve(load_scenario("paper"), port=0, open_browser=False)


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str) -> object:
        return None if name in ("solara", "solara_assets") else find_spec(name)

    monkeypatch.setattr(server, "find_spec", found)
    with pytest.raises(GeoEdgeError, match=r"needs solara, solara-assets, .* pip install 'geoedge\[app\]'"):
        server.serve(load_scenario("monaco"), port=0, open_browser=False)


def test_the_extra_declares_what_the_app_needs() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    extra = {re.split(r"[<>=\s]", each)[0] for each in project["optional-dependencies"]["app"]}
    assert {name.replace("_", "-") for name in server.NEEDED} <= extra


def test_the_page_is_imported_without_a_word_about_mesas_own_page() -> None:
    code = "import solara, geoedge.app.page"  # even if Solara was there before
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_importing_the_app_brings_neither_solara_nor_mesa() -> None:
    code = "import sys, geoedge.app, geoedge.app.server; print([n for n in ('solara', 'mesa') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def ask(origin: str | None, kind: str = "http") -> list[dict[str, Any]]:
    """Return what is sent in answer to a request from a page of another or of our own origin."""
    import asyncio

    sent: list[dict[str, Any]] = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "inside"})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:8765")] + ([] if origin is None else [(b"origin", origin.encode())])
    asyncio.run(server.SameOrigin(inside)({"type": kind, "headers": headers}, None, send))
    return sent


@pytest.mark.parametrize("origin", [None, "http://127.0.0.1:8765"])
def test_its_own_pages_may_ask(origin: str | None) -> None:
    assert ask(origin) == [{"type": "inside"}]
    assert ask(origin, "websocket") == [{"type": "inside"}]


@pytest.mark.parametrize(
    "origin", ["https://example.org", "http://127.0.0.1:9999", "null", "http://[", "127.0.0.1:8765"]
)
def test_pages_of_other_sites_may_not(origin: str) -> None:
    assert ask(origin)[0]["status"] == 403
    assert ask(origin, "websocket") == [{"type": "websocket.close", "code": 1008}]


def test_every_file_that_the_page_asks_of_a_content_network_is_here() -> None:
    """Solara names exact versions; a new one of it needs a new one of its files."""
    solara = find_spec("solara")
    assert solara is not None
    template = Path(str(solara.origin)).parent / "server/templates/solara.html.j2"
    asked = re.findall(r"\{\{cdn\}\}/([^\"{]+)", template.read_text(encoding="utf-8"))
    folders = {path.split("/dist")[0].split("/require")[0] for path in asked if "vuetify3" not in path}
    assert len(folders) >= 2
    for folder in folders:
        assert (Path(sys.prefix) / "share/solara/cdn" / folder).is_dir(), folder
