"""What a page brings along instead of loading it: Leaflet, our script and style, and the policy that forbids more."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from geoedge.errors import OutputError

__all__ = ["policy", "shared_head"]

SCRIPTS = (
    "codec.js",
    "surfaces.js",
    "names.js",
    "marks.js",
    "streets.js",
    "time.js",
    "charts.js",
    "ground.js",
    "page.js",
)
"""The page's own scripts, each using those before it."""


def policy(page: str, sources: Sequence[str] = ()) -> str:
    """Return the content security policy that lets exactly the scripts of this page run, and load nothing.

    Parameters
    ----------
    page
        The page.
    sources
        Hosts from which it may load pictures all the same.
    """
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    pictures = " ".join(["data:", *sources])
    rules = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src {pictures}; "
        "base-uri 'none'"
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}; form-action \'none\'">'


@cache
def shared_head() -> str:
    """Return the part of the head that all pages share: Leaflet and the page's own script and style."""
    own = files("geoedge.maps") / "assets"
    read = {
        name: (own / name).read_text(encoding="utf-8")
        for name in ("page.css", "leaflet-license.txt", *SCRIPTS)
    }
    ours = "\n".join(['"use strict";', *(read[name] for name in SCRIPTS)])
    script, style = _leaflet()
    return (
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<!--\n{read['leaflet-license.txt']}-->\n"
        f"<style>{style}</style>\n<style>{read['page.css']}</style>\n"
        f"<script>{script}</script>\n<script>{ours}</script>"
    )


def _leaflet() -> tuple[str, str]:
    """Return Leaflet's script and style with its pictures inside.

    Raises
    ------
    OutputError
        If the package that brings Leaflet is not installed as it should be.
    """
    try:
        from xstatic.pkg import leaflet

        root = Path(leaflet.BASE_DIR)
        script = (root / "leaflet.js").read_text(encoding="utf-8")
        style = (root / "leaflet.css").read_text(encoding="utf-8")
        pictures = {
            path.name: base64.b64encode(path.read_bytes()).decode() for path in root.glob("images/*.png")
        }
    except (ImportError, OSError) as error:
        msg = f"map: Leaflet is not installed ({error}); install the package xstatic-leaflet 1.9.3"
        raise OutputError(msg) from None
    script = re.sub(r"//# sourceMappingURL=\S+\s*$", "", script)
    style = re.sub(r"^\s*behavior:.*$", "", style, flags=re.MULTILINE)
    inlined = re.sub(
        r"url\(images/([\w.-]+)\)", lambda m: f"url(data:image/png;base64,{pictures[m[1]]})", style
    )
    return script, inlined
