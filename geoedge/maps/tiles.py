"""Ground from a tile server, for a page that is asked to load it: its address, checked, and whose it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from geoedge.errors import OutputError
from geoedge.maps.page import MapLayer
from geoedge.texts import plain_text

__all__ = ["EXAMPLE", "Tiles"]

EXAMPLE = "https://tile.openstreetmap.org/{z}/{x}/{y}.png"
_ADDRESS = re.compile(
    r"https://(?P<spread>\{s\}\.)?(?P<host>[a-z0-9-]+(\.[a-z0-9-]+)*(:[0-9]{1,5})?)"
    r"/(?P<path>([A-Za-z0-9._~/?=&@%+-]|\{[zxyr]\})+)"
)
"""What may stand in an address: nothing that could end an attribute or a rule of the page's policy."""
_CREDITS = {
    "tile.openstreetmap.org": (("© OpenStreetMap contributors", "https://www.openstreetmap.org/copyright"),),
}
"""Credit of tile servers that are widely known: words and where they link to."""


@dataclass(frozen=True)
class Tiles:
    """Tiles that a page loads while it is open.

    Parameters
    ----------
    address
        Address of a tile with ``{z}``, ``{x}`` and ``{y}`` in it, and perhaps ``{s}`` or ``{r}``.
    source
        Host as a content security policy names it.
    credit
        Words that the provider asks for, and where they link to.
    """

    address: str
    source: str
    credit: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, address: str, credit: str | None = None) -> Self:
        """Return the tiles at an address.

        Parameters
        ----------
        address
            Address of a tile, https alone, with ``{z}``, ``{x}`` and ``{y}`` where its numbers stand.
        credit
            Words that the provider asks for; may be left out for ``tile.openstreetmap.org``.

        Raises
        ------
        OutputError
            If that is no such address, or nobody is credited.
        """
        found = _ADDRESS.fullmatch(address)
        if found is None or not all(name in found["path"] for name in ("{z}", "{x}", "{y}")):
            msg = (
                f"map: `tiles` is {plain_text(address)!r}; give an https address with {{z}}, {{x}} and {{y}}, such as "
                f"{EXAMPLE}"
            )
            raise OutputError(msg)
        words = ((plain_text(credit, 200), ""),) if plain_text(credit) else _CREDITS.get(found["host"], ())
        if not words:
            msg = f"map: `tiles_credit` is missing for tiles from {found['host']}; give the words that their provider asks for"
            raise OutputError(msg)
        spread = "*." if found["spread"] else ""
        return cls(address, f"https://{spread}{found['host']}", words)

    @property
    def layer(self) -> MapLayer:
        """The layer that loads them, shown from the start."""
        return MapLayer(
            "tiles",
            "Online ground",
            kind="tiles",
            pane="tiles",
            explanation=f"Loaded from {self.source.removeprefix('https://')} while the page is open.",
            show=True,
            more={"address": self.address, "base": True},
        )
