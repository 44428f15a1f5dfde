"""The server of the app: on this machine alone, and without a request to any other."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import warnings
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geoedge.app import DEFAULT_PORT
from geoedge.errors import GeoEdgeError
from geoedge.texts import plain_text

if TYPE_CHECKING:
    from geoedge.city.city import City
    from geoedge.scenario import Scenario
    from geoedge.sites import Layout

__all__ = ["serve"]

HOST = "127.0.0.1"
OURS = ("127.0.0.1", "localhost")
"""Names under which a browser may ask for the page."""
NEEDED = ("solara", "solara_assets", "altair", "starlette", "uvicorn")
"""What the extra ``app`` brings."""
GRACE_S = 1
"""How long open connections may keep the server from stopping [s]."""


def serve(
    scenario: Scenario,
    *,
    port: int = DEFAULT_PORT,
    open_browser: bool = True,
    city: City | None = None,
    layout: Layout | None = None,
    say: Callable[[str], object] | None = None,
) -> None:
    """Serve the page of a scenario on this machine until the process is interrupted.

    Parameters
    ----------
    scenario
        What the sliders start from.
    port
        Port on the loopback interface; 0 takes a free one.
    open_browser
        Whether to open the page in the browser.
    city, layout
        City and sites, if they exist already.
    say
        What is told where the page is; written to standard error if omitted.

    Raises
    ------
    GeoEdgeError
        If the extra ``app`` is not installed, the port is taken, or the scenario cannot be studied on a city.
    """
    _check_installed()
    from geoedge.app.bench import Bench

    say = say or _to_stderr
    bench = Bench(scenario, city=city, layout=layout)
    with _listening(port) as listener:
        say(f"preparing {plain_text(scenario.title)}")
        bench.base()
        server = _make_server(bench)
        address = f"http://{HOST}:{listener.getsockname()[1]}/"
        say(f"geoedge app at {address}, on this machine alone; Ctrl-C ends it")
        if open_browser:
            threading.Thread(target=_open, args=(server, address), daemon=True).start()
        with suppress(KeyboardInterrupt):  # how one ends it
            server.run(sockets=[listener])


def _to_stderr(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _check_installed() -> None:
    missing = [name.replace("_", "-") for name in NEEDED if find_spec(name) is None]
    if missing:
        msg = f"app: needs {', '.join(missing)}, not installed; get it with: pip install 'geoedge[app]'"
        raise GeoEdgeError(msg)


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()  # who comes early waits
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or "ports go from 0 to 65535"
        msg = f"app: port {port} cannot be used ({reason}); take another one with --port, or 0 for any"
        raise GeoEdgeError(msg) from None
    return listener


def _open(server: Any, address: str) -> None:
    while not server.started:
        time.sleep(0.05)
    webbrowser.open(address)


def _settle_settings() -> None:
    """Say what Solara reads from the environment when it is first imported."""
    from platformdirs import user_cache_dir

    os.environ["SOLARA_APP"] = "geoedge.app.page"
    os.environ["SOLARA_ASSETS_PROXY"] = "true"  # files of solara-assets instead of a content network
    os.environ["SOLARA_TELEMETRY_MIXPANEL_ENABLE"] = "false"
    os.environ["SOLARA_MODE"] = "production"
    os.environ["SOLARA_THEME_VARIANT"] = "light"  # what the page starts with; its switch knows "auto" too
    os.environ["SOLARA_THEME_SHOW_BANNER"] = "false"
    os.environ["SOLARA_THEME_TITLE"] = "geoedge"
    os.environ.setdefault("SOLARA_HOME", str(Path(user_cache_dir("geoedge")) / "solara"))


def _make_server(bench: Any) -> Any:
    """Return the server of the page, with Solara's routes behind our own files and checks."""
    _settle_settings()
    warnings.filterwarnings(
        "ignore", message="Cookies with samesite=none"
    )  # no frame of another site needs them
    import uvicorn
    from solara.server import settings, starlette
    from solara.server.cdn_helper import cdn_url_path
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles

    from geoedge.app import page

    page.show(bench)
    # a file that is missing here is missing: Solara's own route would fetch it from elsewhere
    files = Mount(f"/{cdn_url_path}", StaticFiles(directory=settings.assets.proxy_cache_dir))
    app = Starlette(
        routes=[files, *starlette.routes],
        lifespan=starlette.lifespan,
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(OURS)),
            Middleware(SameOrigin),
            *starlette.middleware,
        ],
    )
    return uvicorn.Server(
        uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE_S)
    )


class SameOrigin:
    """Turn away what pages of other sites ask for: a browser lets them open sockets to this machine.

    Parameters
    ----------
    app
        What answers the others.
    """

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or refuse it."""
        from starlette.responses import PlainTextResponse

        headers = dict(scope.get("headers", ()))
        origin = headers.get(b"origin", b"").decode("latin-1")
        if not origin or origin.partition("://")[2] == headers.get(b"host", b"").decode("latin-1"):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await PlainTextResponse("not from another site", status_code=403)(scope, receive, send)
