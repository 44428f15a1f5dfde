"""Bounds on talk with map services: one time limit, a polite wait when they are busy, errors that say what to do."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import shutil
import socket
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from geoedge.errors import CityError, DownloadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Endpoints", "Visit", "answers_facts", "answers_folder"]

_BUSY = frozenset({429, 502, 503, 504})
_PAUSE_S = 5.0
_QUERY_S = 180
_BROKEN = re.compile("error|timed out|out of memory", re.IGNORECASE)
_STAMP = rb'"timestamp_osm_base"\s*:\s*"(\d{4}-\d{2}-\d{2})'
_CURE = (
    "wait some minutes, raise the time limit, name another server by GEOEDGE_OVERPASS_URL or GEOEDGE_NOMINATIM_URL, "
    "or download an extract and give its path"
)


@dataclass(frozen=True)
class Endpoints:
    """Addresses of the services; None means osmnx's own.

    Parameters
    ----------
    overpass, nominatim
        Base addresses, for example ``"https://overpass-api.de/api"``.
    """

    overpass: str | None = None
    nominatim: str | None = None

    @classmethod
    def choose(cls, overpass: str | None, nominatim: str | None) -> Endpoints:
        """Return the addresses given, else those of the environment.

        Parameters
        ----------
        overpass, nominatim
            Base addresses, or None.
        """
        return cls(
            overpass or os.environ.get("GEOEDGE_OVERPASS_URL") or None,
            nominatim or os.environ.get("GEOEDGE_NOMINATIM_URL") or None,
        )

    @property
    def settings(self) -> dict[str, str]:
        """The settings of osmnx that they change."""
        chosen = {"overpass_url": self.overpass, "nominatim_url": self.nominatim}
        return {name: url for name, url in chosen.items() if url}


class _BusyError(Exception):
    """A service asked to come back later."""

    def __init__(self, reason: str, pause_s: float) -> None:
        super().__init__(reason)
        self.pause_s = pause_s


class _LateError(Exception):
    """An answer did not end in time."""


class _NonsenseError(Exception):
    """An answer is not what the service is for."""


@dataclass
class Visit:
    """All talk with map services for one place, bounded in time.

    Parameters
    ----------
    place
        What is looked up, for errors.
    time_limit_s
        Longest time for everything [s].
    offline
        Names of cities that need no service, for errors.
    misled
        Whether an answer made no sense.
    notes
        What hindered keeping answers; no failure, but to be said.
    """

    place: str
    time_limit_s: float
    offline: tuple[str, ...] = ()
    misled: bool = field(default=False, init=False)
    notes: list[str] = field(default_factory=list, init=False)
    _deadline: float = field(init=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.time_limit_s < float("inf"):
            msg = f"`time_limit_s` is {self.time_limit_s:g}; it must be a positive number of seconds"
            raise DownloadError(msg)
        self._deadline = time.monotonic() + self.time_limit_s

    @property
    def remaining_s(self) -> float:
        """Time left [s]."""
        return self._deadline - time.monotonic()

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of osmnx that keep a request within the time left."""
        return {
            "requests_timeout": max(1, int(self.remaining_s)),
            "requests_kwargs": {"hooks": {"response": self._receive}},
            # The time in the query is part of the name of a kept answer, so that it must not vary.
            "overpass_settings": f"[out:json][timeout:{_QUERY_S}]{{maxsize}}",
            "overpass_rate_limit": False,
            "doh_url_template": None,
            "cache_only_mode": False,
        }

    def fetch(self, what: str, request: Callable[[], Any]) -> Any:
        """Return what a request yields; a busy service is asked again while there is time.

        Parameters
        ----------
        what
            What is asked for, for errors.
        request
            Function that asks once, through osmnx, and does nothing else: what osmnx cannot make sense of counts as
            the service's fault.

        Raises
        ------
        DownloadError
            If the service stays busy, is silent, cannot be reached, or answers with anything else.
        """
        from urllib3.exceptions import HTTPError

        while True:
            try:
                with _resolver_restored():
                    return request()
            except _BusyError as busy:
                if busy.pause_s >= self.remaining_s:
                    raise self._failure(what, f"{busy}, and {self.time_limit_s:g} s are over") from None
                time.sleep(busy.pause_s)
            # The last two are what osmnx raises, its own errors among them, over answers without the fields it needs.
            except (_LateError, _NonsenseError, HTTPError, OSError, KeyError, ValueError) as error:
                raise self._failure(what, self._reason(error)) from None

    def _failure(self, what: str, reason: str) -> DownloadError:
        shipped = f" (cities that need no service: {', '.join(self.offline)})" if self.offline else ""
        return DownloadError(f"place {self.place!r}, {what}: {reason}; {_CURE}{shipped}")

    def _reason(self, error: Exception) -> str:
        """Return in a few words what went wrong, without the pages that services send along."""
        import requests
        from urllib3.exceptions import HTTPError
        from urllib3.exceptions import TimeoutError as LateError

        if isinstance(error, _LateError | requests.exceptions.Timeout | LateError):
            return f"no whole answer within {self.time_limit_s:g} s"
        if isinstance(error, HTTPError | OSError):
            return f"the service cannot be reached ({type(error).__name__})"
        self.misled = True
        detail = str(error) if isinstance(error, _NonsenseError) else type(error).__name__
        return f"the answer is no map data ({detail})"

    def _receive(self, response: Any, **_: Any) -> Any:
        """Read an answer while there is time, and refuse busy and broken ones; requests calls this."""
        if response.is_redirect:
            return response
        host = urlsplit(response.url).netloc
        if response.status_code in _BUSY:
            raise _BusyError(f"{host} is busy ({response.status_code})", _retry_after(response))
        body = self._body(response)
        answer = _parsed(body, list if response.request.method == "GET" else dict)
        if not response.ok or answer is None:
            kind = response.headers.get("Content-Type", "unknown type").partition(";")[0]
            raise _NonsenseError(f"{host} sent {kind[:40]} with status {response.status_code}")
        if isinstance(answer, dict) and _BROKEN.search(str(answer.get("remark", ""))):
            raise _BusyError(f"{host} broke off the query", _PAUSE_S)
        response.raw = io.BytesIO(body)
        return response

    def _body(self, response: Any) -> bytes:
        parts = []
        while part := response.raw.read1(1 << 16, decode_content=True):
            parts.append(part)
            if self.remaining_s <= 0.0:
                response.close()
                raise _LateError
        return b"".join(parts)


def _parsed(body: bytes, kind: type) -> Any:
    """Return the list of places or the object with elements that a body holds, or None where it is neither."""
    try:
        answer = json.loads(body)
    except ValueError:
        return None
    if kind is dict:
        parts, whole = answer.get("elements") if isinstance(answer, dict) else None, _is_element
    else:
        parts, whole = answer, _is_result
    return answer if isinstance(parts, list) and all(whole(part) for part in parts) else None


def _is_result(part: Any) -> bool:
    """Say whether this is a place as the search gives it."""
    return isinstance(part, dict) and isinstance(part.get("geojson", {}), dict)


def _is_element(part: Any) -> bool:
    """Say whether this is a node, way or relation with all that makes one."""
    if not isinstance(part, dict) or not isinstance(part.get("tags", {}), dict):
        return False
    if part.get("type") == "node":
        return all(
            isinstance(part.get(axis), int | float) and math.isfinite(part[axis]) for axis in ("lat", "lon")
        )
    lists = {"way": "nodes", "relation": "members"}
    return part.get("type") in lists and isinstance(part.get(lists[part["type"]]), list)


def _retry_after(response: Any) -> float:
    """Return how long a service asks to wait [s]."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else _PAUSE_S


@contextmanager
def _resolver_restored() -> Iterator[None]:
    """Put back the name resolver, which osmnx replaces."""
    before = socket.getaddrinfo
    try:
        yield
    finally:
        socket.getaddrinfo = before


@contextmanager
def answers_folder(root: Path, key: str, visit: Visit, *, keep: bool) -> Iterator[Path]:
    """Give a folder for the answers of services about one place.

    What a visit got before a service failed is kept for the next one; answers without sense or streets are not.

    Parameters
    ----------
    root
        The cache folder.
    key
        Name of the place's folder in it.
    visit
        The visit that fills it.
    keep
        Whether to keep answers, and to use those kept before; a folder that cannot be written is not used.
    """
    kept = root / "downloads" / key
    if not keep or not _writable(kept, visit):
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
        return
    _drop_damaged(kept, visit)
    try:
        yield kept
    except CityError as error:
        if visit.misled or not isinstance(error, DownloadError):
            shutil.rmtree(kept, ignore_errors=True)
        raise


def _writable(folder: Path, visit: Visit) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        visit.notes.append(f"answers of map services not kept ({error.strerror})")
        return False
    return True


def _drop_damaged(folder: Path, visit: Visit) -> None:
    """Remove answers whose writing was interrupted."""
    for path in folder.glob("*.json"):
        try:
            json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            visit.notes.append(f"kept answer {path.name} was damaged and asked for again")
            path.unlink()


def answers_facts(folder: Path) -> tuple[str, str]:
    """Return the checksum of the answers in a folder, and the date of the map they state.

    Parameters
    ----------
    folder
        Folder from `answers_folder`.
    """
    bodies = [path.read_bytes() for path in sorted(folder.glob("*.json"))]
    checksum = hashlib.sha256(b"".join(hashlib.sha256(body).digest() for body in bodies)).hexdigest()
    stamps = [found[1].decode() for body in bodies if (found := re.search(_STAMP, body[:2000]))]
    return checksum, max(stamps, default="unknown")
