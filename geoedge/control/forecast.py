"""Forecasts: what demand the coming epochs will have, from what was seen, expected, or known."""

from __future__ import annotations

from typing import Protocol

from geoedge.city.demand import Demand
from geoedge.control.measure import Seen, Sources
from geoedge.control.movement import Movement
from geoedge.errors import GeoEdgeError

__all__ = ["FORECASTS", "Expected", "Forecaster", "Known", "Last", "make_forecaster"]


class Forecaster(Protocol):
    """Watches requests epoch by epoch, and tells what demand comes."""

    def __init__(self, sources: Sources) -> None: ...

    def observe(self, seen: Seen) -> None:
        """Take in the epoch that is over."""

    def ahead(self, epoch: int, horizon: int) -> tuple[Demand, ...]:
        """Return the demand of an epoch that starts and of those after it; nothing if none was ever asked."""


class Last:
    """Persistence: every coming epoch is as the last one was.

    Parameters
    ----------
    sources
        What it is made from.
    """

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._last: Demand | None = None

    def observe(self, seen: Seen) -> None:
        """Measure the epoch that is over; if nothing was asked, nothing is known any more."""
        self._last = self.sources.measured(seen)

    def ahead(self, epoch: int, horizon: int) -> tuple[Demand, ...]:
        """Return the last epoch's demand for each of the coming ones."""
        return () if self._last is None else (self._last,) * horizon


class _Foretold:
    """A forecast that is what it is, whatever was seen."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources

    def observe(self, seen: Seen) -> None:
        """Take no notice."""


class Expected(_Foretold):
    """What the mobility model expects of each epoch, whatever was seen.

    Parameters
    ----------
    sources
        What it is made from.
    """

    def ahead(self, epoch: int, horizon: int) -> tuple[Demand, ...]:
        """Return the expected demand of the coming epochs, as many as there are."""
        return tuple(self.sources.expected[epoch : epoch + horizon])


class Known(_Foretold):
    """What will really be asked: no controller can know it, a yardstick does.

    Parameters
    ----------
    sources
        What it is made from.
    """

    def ahead(self, epoch: int, horizon: int) -> tuple[Demand, ...]:
        """Return the demand that the coming epochs will have, as many as there are."""
        coming = range(epoch, min(epoch + horizon, len(self.sources.expected)))
        found = (self.sources.measured(self.sources.ask(k)) for k in coming)
        return tuple(demand for demand in found if demand is not None)


FORECASTS: dict[str, type[Forecaster]] = {
    "last": Last,
    "expected": Expected,
    "movement": Movement,
    "known": Known,
}
"""Forecasts by name."""


def make_forecaster(name: str, sources: Sources) -> Forecaster:
    """Return a forecaster by name.

    Parameters
    ----------
    name
        One of `FORECASTS`.
    sources
        What it is made from.

    Raises
    ------
    GeoEdgeError
        If there is none of that name.
    """
    if name not in FORECASTS:
        msg = f"control.forecast = {name!r}: must be one of {', '.join(FORECASTS)}"
        raise GeoEdgeError(msg)
    return FORECASTS[name](sources)
