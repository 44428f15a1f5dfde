"""What disturbs a day: crowds, failures, lost links, an absent controller, tastes that change.

An event happens at a stated hour, or at random instants so many times a day. Each kind has keys of its own;
the rest of an entry says when.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from geoedge.scenario import toml
from geoedge.scenario.base import Name, Section, Weight

if TYPE_CHECKING:
    from geoedge.scenario import Scenario

__all__ = ["EVENT_KEYS", "DynamicsConfig", "EventConfig", "TypeWeight", "dynamics_problems"]

HOUR_S = 3600.0
_MAX_PEOPLE = 1_000_000
_PLACE = ("place", "lon", "lat")

EVENT_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "flash_crowd": (
        ("duration_s", "people"),
        (*_PLACE, "radius_m", "gather_s", "request_rate_per_user_s", "types", "announced"),
    ),
    "site_failure": (("duration_s",), ("sites", "count", *_PLACE, "radius_m", "detection_s")),
    "backhaul_loss": (("duration_s", "rate_left"), ("sites",)),
    "catalogue_partition": (("duration_s",), ()),
    "controller_down": (("duration_s",), ()),
    "popularity_drift": (("duration_s",), ("types", "sd_per_hour")),
    "prefix_update": (("prefix",), ()),
}
"""Keys of each kind of event beyond the instant: those it needs, and those it may have."""


class TypeWeight(Section):
    """How much one request type is asked, against the others that are named."""

    name: Name = Field(description="request type [–]")
    weight: Weight = Field(description="its weight [–]")


class EventConfig(Section):
    """One thing that happens, or one that happens again and again at random."""

    kind: Literal[
        "flash_crowd",
        "site_failure",
        "backhaul_loss",
        "catalogue_partition",
        "controller_down",
        "popularity_drift",
        "prefix_update",
    ] = Field(description="what happens [–]")
    start_hour: float | None = Field(
        default=None, ge=0.0, le=24.0, description="when it begins, from midnight [h]"
    )
    per_day: float | None = Field(
        default=None,
        gt=0.0,
        le=10_000.0,
        description="instead of start_hour: how often a day on average, at random instants [1/day]",
    )
    duration_s: float | None = Field(default=None, gt=0.0, le=86_400.0, description="how long it lasts [s]")
    place: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="flash_crowd, site_failure: name of a place in the map; a crowd without a place gathers where a "
        "leisure destination is drawn [–]",
    )
    lon: float | None = Field(
        default=None, ge=-180.0, le=180.0, description="instead of place: where [degree]"
    )
    lat: float | None = Field(default=None, ge=-90.0, le=90.0, description="instead of place: where [degree]")
    radius_m: float | None = Field(
        default=None, gt=0.0, le=5_000.0, description="how far around the place, 100 if omitted [m]"
    )
    people: int | None = Field(
        default=None, ge=1, le=_MAX_PEOPLE, description="flash_crowd: who come [people]"
    )
    gather_s: float | None = Field(
        default=None,
        ge=0.0,
        le=86_400.0,
        description="flash_crowd: time over which they arrive, a tenth of the duration if omitted [s]",
    )
    request_rate_per_user_s: float | None = Field(
        default=None,
        gt=0.0,
        le=100.0,
        description="flash_crowd: requests of each of them, that of [demand] if omitted [1/s]",
    )
    types: tuple[TypeWeight, ...] | None = Field(
        default=None,
        min_length=1,
        description="flash_crowd: what they ask for, as everybody at leisure does if omitted; popularity_drift: type "
        "probabilities at its end, from then on; types not named have none [–]",
    )
    announced: bool | None = Field(
        default=None,
        description="flash_crowd: whether it is part of the expected demand that theory, field and forecasts know, false if "
        "omitted [–]",
    )
    sites: tuple[Annotated[int, Field(ge=0)], ...] | None = Field(
        default=None,
        min_length=1,
        description="site_failure, backhaul_loss: numbers of the sites; backhaul_loss: all if omitted [–]",
    )
    count: int | None = Field(
        default=None, ge=1, le=100_000, description="site_failure: so many sites, drawn at random [sites]"
    )
    detection_s: float | None = Field(
        default=None,
        ge=0.0,
        le=86_400.0,
        description="site_failure: time until routers and controller know of it; until then requests are sent there and "
        "held, and so is what had no first token: all of it is sent elsewhere then, or served there if the site is back "
        "before; what is held when the run ends waits there, its TTFT as if served from then on; 0 if omitted [s]",
    )
    rate_left: float | None = Field(
        default=None,
        ge=0.0,
        lt=1.0,
        description="backhaul_loss: share of the backhaul rate that is left [–]",
    )
    sd_per_hour: float | None = Field(
        default=None,
        gt=0.0,
        le=10.0,
        description="popularity_drift: standard deviation after an hour of the random walk that the logarithm of each "
        "type's weight makes, instead of types [–]",
    )
    prefix: str | None = Field(
        default=None, min_length=1, description="prefix_update: the prefix that gets a new version [–]"
    )

    @property
    def start_s(self) -> float:
        """When it begins [s since midnight]; of an event that is not random."""
        return round(HOUR_S * (self.start_hour or 0.0), 6)

    @property
    def end_s(self) -> float:
        """When it is over [s since midnight]; of an event that is not random."""
        return self.start_s + (self.duration_s or 0.0)

    def falls_within(self, start_s: float, end_s: float) -> bool:
        """Return whether it has a part in a window; one at random times may.

        Parameters
        ----------
        start_s, end_s
            From when to when [s since midnight].
        """
        return self.start_hour is None or (
            self.start_s < end_s and (self.end_s > start_s or self.start_s >= start_s)
        )

    def given(self) -> dict[str, Any]:
        """Return what is given beyond the kind and the instant."""
        return self.model_dump(exclude_none=True, exclude={"kind", "start_hour", "per_day"})


class DynamicsConfig(Section):
    """What happens to the city besides an ordinary day."""

    events: tuple[EventConfig, ...] = Field(
        default=(), max_length=1000, description="what happens, in any order [–]"
    )

    @property
    def expected(self) -> tuple[EventConfig, ...]:
        """Events that the expected demand knows of: announced crowds, and drifts that are stated."""
        return tuple(
            event
            for event in self.events
            if event.announced or (event.kind == "popularity_drift" and event.types is not None)
        )


def dynamics_problems(scenario: Scenario) -> Iterator[str]:
    """Yield what is wrong with the events, one line each."""
    events = scenario.dynamics.events
    if events and scenario.city is None:
        yield (
            "dynamics.events: a study without [city] has no time of day in which things could happen; remove the events, "
            "or add [city]"
        )
        return
    found = []
    for number, event in enumerate(events):
        found += [f"dynamics.events[{number}]{problem}" for problem in _event(event, scenario)]
    yield from found or _drifts(events)


def _event(event: EventConfig, scenario: Scenario) -> Iterator[str]:
    yield from _when(event)
    yield from _keys(event)
    yield from _where(event)
    yield from _what(event, scenario)


def _when(event: EventConfig) -> Iterator[str]:
    if (event.start_hour is None) == (event.per_day is None):
        given = "neither is given" if event.start_hour is None else "both are given"
        yield f": needs either start_hour [h] or per_day [1/day], and {given}"
    if event.kind == "popularity_drift" and event.per_day is not None:
        yield (
            f".per_day = {event.per_day:g}: a popularity_drift begins at a stated hour; give start_hour, and "
            "sd_per_hour for a random one"
        )
    if event.announced and event.per_day is not None:
        yield ".announced = true: nobody can announce what comes at random instants; give start_hour, or leave it out"


def _keys(event: EventConfig) -> Iterator[str]:
    needed, possible = EVENT_KEYS[event.kind]
    given = event.given()
    for key in needed:
        if key not in given:
            yield f".{key} is missing: a {event.kind} needs {', '.join(needed)}"
    for key, value in given.items():
        if key not in (*needed, *possible):
            takes = ", ".join((*needed, *possible)) or "nothing more"
            yield f".{key} = {toml.shown(value)}: a {event.kind} takes {takes}; remove it, or choose another kind"


def _where(event: EventConfig) -> Iterator[str]:
    point = event.lon is not None or event.lat is not None
    if (event.lon is None) != (event.lat is None):
        yield f": {'lat' if event.lat is None else 'lon'} is missing; a point has lon and lat [degree]"
    if point and event.place is not None:
        yield f".place = {toml.shown(event.place)}: lon and lat are given as well; keep one of the two"
    located = point or event.place is not None
    if event.kind == "site_failure":
        ways = [event.sites is not None, event.count is not None, located]
        if sum(ways) != 1:
            yield ": a site_failure needs one of sites, count, or a place (place, or lon and lat)"
        if event.radius_m is not None and not located:
            yield f".radius_m = {event.radius_m:g}: around which place? give place, or lon and lat"
    if event.announced and not located:
        yield ".announced = true: nobody can announce a crowd at a place yet to be drawn; give place, or lon and lat"


def _what(event: EventConfig, scenario: Scenario) -> Iterator[str]:
    if event.types is not None:
        yield from _types(event.types, tuple(request.name for request in scenario.workload.requests))
    if event.kind == "popularity_drift" and (event.types is None) == (event.sd_per_hour is None):
        yield ": a popularity_drift needs either types, for where it leads, or sd_per_hour, for a random walk"
    if event.gather_s is not None and event.duration_s is not None and event.gather_s > event.duration_s:
        yield (
            f".gather_s = {event.gather_s:g}: people would still arrive when it is over; at most duration_s = "
            f"{event.duration_s:g}"
        )
    prefixes = [prefix.name for prefix in scenario.workload.prefixes]
    if event.prefix is not None and event.prefix not in prefixes:
        hint = toml.did_you_mean(event.prefix, prefixes)
        yield f".prefix = {toml.shown(event.prefix)}: no such prefix{hint}; known: {', '.join(prefixes) or 'none'}"
    for site, times in Counter(event.sites or ()).items():
        if times > 1:
            yield f".sites: site {site} is named {times} times; name each once"


def _types(types: tuple[TypeWeight, ...], known: tuple[str, ...]) -> Iterator[str]:
    for name, times in Counter(one.name for one in types).items():
        if name not in known:
            hint = toml.did_you_mean(name, known)
            yield f".types: {toml.shown(name)} is no request type{hint}; known: {', '.join(known)}"
        elif times > 1:
            yield f".types: {toml.shown(name)} is named {times} times; name each once"
    if not any(one.weight for one in types):
        yield ".types: all weights are 0, so nothing is asked for; make one positive"


def _drifts(events: tuple[EventConfig, ...]) -> Iterator[str]:
    drifts = [
        (event.start_s, event.end_s, k) for k, event in enumerate(events) if event.kind == "popularity_drift"
    ]
    for (_, end, first), (start, _, second) in pairwise(sorted(drifts)):
        if start < end:
            yield (
                f"dynamics.events[{second}].start_hour = {start / HOUR_S:g}: the popularity_drift of events[{first}] lasts "
                f"until {end / HOUR_S:g} h; begin there or later, one drift at a time"
            )
