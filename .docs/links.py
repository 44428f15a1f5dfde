"""Check the links of built pages: inner ones have their target, outer ones are well formed and lead to known hosts."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

HOSTS = {
    "arxiv.org",
    "doi.org",
    "github.com",
    "opendatacommons.org",
    "www.openstreetmap.org",
}
"""Where outer links may lead. They are not fetched: a build may be offline."""

LOADS = {("script", "src"), ("img", "src"), ("link", "href"), ("source", "src"), ("iframe", "src")}
"""What a page fetches when it opens."""


class _Page(HTMLParser):
    """Links, loads and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key == "id" or (tag, key) == ("a", "name"):
                self.anchors.add(value or "")
            elif (tag, key) in LOADS:
                self.loads.add(value or "")
            elif (tag, key) == ("a", "href"):
                self.links.add(value or "")


def faults(folder: Path) -> list[str]:
    """Return what is wrong with the links of all pages below a folder, a line each."""
    pages = {
        path.relative_to(folder).as_posix(): _Page(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.html"))
    }
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    found = []
    for name, page in pages.items():
        for link in sorted(page.links | page.loads):
            fault = _fault(link, name, pages, files, loaded=link in page.loads)
            if fault:
                found.append(f"{name}: {link!r} {fault}")
    return found if pages else [f"{folder}: holds no page"]


def _fault(link: str, name: str, pages: dict[str, _Page], files: set[str], *, loaded: bool) -> str:
    try:
        parts = urlsplit(link)
    except ValueError as error:
        return f"is malformed ({error})"
    if parts.scheme == "data" or (parts.scheme == "mailto" and not loaded):
        return ""
    if parts.scheme or parts.netloc:
        return _outer_fault(parts.scheme, parts.hostname, loaded=loaded)
    target = normpath(join(dirname(name), unquote(parts.path))) if parts.path else name
    if target not in files:
        return "leads to no file"
    anchor = unquote(parts.fragment)
    return (
        "" if target not in pages or anchor in pages[target].anchors else "leads to no such place on its page"
    )


def _outer_fault(scheme: str, host: str | None, *, loaded: bool) -> str:
    if loaded:
        return "is fetched from outside"
    if scheme != "https" or not host:
        return "is no https address"
    return "" if host in HOSTS else f"leads to a host that is not listed ({host})"
