"""Routing that looks at every site: published policies, several routers, noise, own counts, admission."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from geoedge.errors import GeoEdgeError
from geoedge.policies import Policy, Rule
from geoedge.serving.advertising import Advert
from geoedge.serving.asking import Book, Way, serve_asking
from geoedge.serving.candidates import Ground
from geoedge.serving.doors import Admission, Doors
from geoedge.serving.records import Requests
from geoedge.serving.routers import (
    WAIT,
    Routers,
    continued,
    cut_off,
    hear,
    joined_again,
    make_routers,
    settle_routers,
)
from geoedge.serving.rules import make_beliefs
from geoedge.serving.stations import Stations, expected_wait

__all__ = ["InquiringRouting", "Prompts", "RoutingOptions"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SECONDS_COUNTED = {
    "nearest": (0.0, 0.0),
    "prefix_only": (1.0, 0.0),
    "load_aware": (1.0, 1.0),
}
"""How often prefill and wait count in the closed forms."""


@dataclass(frozen=True, eq=False)
class Prompts:
    """What routers know of prompts, for policies that count tokens or blocks.

    Parameters
    ----------
    tokens
        Prompt tokens of each type, shape (Q,).
    output_tokens
        Tokens that are generated for each type in the mean, shape (Q,).
    prefill_s, residual_tokens
        Prefill times [s] of some numbers of tokens, rising from 0 at 0, shape (k,); between them the numbers are
        interpolated.
    type_probability
        Probability of each type, shape (Q,), for means over requests; by default all are asked equally often.
    """

    tokens: Floats
    output_tokens: Floats
    prefill_s: Floats
    residual_tokens: Floats
    type_probability: Floats | None = None

    def __post_init__(self) -> None:
        """Make plain columns and refuse what cannot be inverted."""
        for name in ("tokens", "output_tokens", "prefill_s", "residual_tokens"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=np.float64))
        if (np.diff(self.prefill_s) < 0).any() or self.prefill_s.shape != self.residual_tokens.shape:
            msg = "`prefill_s` must not fall and have the shape of `residual_tokens`"
            raise GeoEdgeError(msg)
        if self.tokens.shape != self.output_tokens.shape or not (self.tokens > 0).all():
            msg = "`tokens` must be positive numbers, one a request type as `output_tokens`"
            raise GeoEdgeError(msg)
        asked = self.type_probability
        if asked is not None and not (
            np.shape(asked) == self.tokens.shape and np.min(asked) >= 0 < np.sum(asked)
        ):
            msg = f"`type_probability` must be {self.tokens.size} weights >= 0, not all 0"
            raise GeoEdgeError(msg)

    def hit_share(self, prefill: Floats) -> Floats:
        """Return the share of each prompt's tokens that a site must have cached for its prefill times, shape (n, Q).

        Parameters
        ----------
        prefill
            Residual prefill [s], shape (n, Q).
        """
        residual = np.interp(prefill, self.prefill_s, self.residual_tokens)
        return np.clip(1.0 - residual / self.tokens, 0.0, 1.0)


@dataclass(frozen=True)
class RoutingOptions:
    """What else there is to routing than the policy.

    Parameters
    ----------
    routers
        Number of routers that do not know of each other.
    noise
        Standard deviation of a log-normal factor of mean 1 on what sites report.
    counts_own
        Whether a router adds the requests that it has sent itself since the report it goes by.
    reach_s
        Radio delay up to which routers that do not count it choose among sites [s].
    admission
        When sites take no new requests.
    seed
        Of the routers' own luck.
    """

    routers: int = 1
    noise: float = 0.0
    counts_own: bool = False
    reach_s: float = 0.2
    admission: Admission = field(default_factory=Admission)
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if self.routers < 1:
            msg = f"`routers` must be at least 1, not {self.routers}"
            raise GeoEdgeError(msg)
        if not (0 <= self.noise < np.inf and self.reach_s >= 0):
            msg = (
                f"`noise` must be finite and `reach_s` not negative, but are {self.noise} and {self.reach_s}"
            )
            raise GeoEdgeError(msg)

    @property
    def plain(self) -> bool:
        """Whether one router hears all as it is and every site takes all."""
        silent = self.admission.close_threshold is None
        return self.routers == 1 and self.noise == 0 and not self.counts_own and silent


class InquiringRouting:
    """Routers that look at every site for every request.

    Parameters
    ----------
    policy, numbers
        The policy and its numbers.
    options
        What else there is to routing.
    ground
        Where the sites are and what distance costs.
    shift
        1 if requests reach sites after the radio delay, 0 if at once.
    prompts
        What routers know of prompts; needed by policies that count tokens.
    start_s
        Where the clock starts [s].
    """

    def __init__(
        self,
        policy: Policy,
        numbers: tuple[float, ...],
        options: RoutingOptions,
        ground: Ground,
        shift: float,
        prompts: Prompts | None,
        start_s: float,
    ) -> None:
        if policy.reads_prompts and prompts is None:
            msg = f"policy {policy.name!r} counts tokens; give `prompts`"
            raise GeoEdgeError(msg)
        self.policy, self.options, self.ground, self.prompts = policy, options, ground, prompts
        self.n_sites = len(ground.site_xy)
        self.advert = Advert()
        self._parted = False
        self.way = self._way(numbers, shift)
        self._blocks_each = self._mean_blocks(numbers)
        self._routers = self._new_routers(self.advert, start_s)
        self._beliefs = make_beliefs(self.n_sites)
        self._book = Book(
            np.zeros((self.n_sites, 1)), np.zeros((self.n_sites, 1)), np.zeros(1), np.ones(1), 0.0
        )

    def _way(self, numbers: tuple[float, ...], shift: float) -> Way:
        policy = self.policy
        if policy.rule in (Rule.SECONDS, Rule.SOFTMAX):
            z = numbers if policy.name == "risk_aware" else (0.0,)
            numbers = (
                *SECONDS_COUNTED[policy.solved_as],
                *z,
                *(numbers if policy.rule == Rule.SOFTMAX else ()),
            )
        return Way(
            int(policy.rule),
            np.array([*numbers, 0.0]),
            policy.reads != "nothing",
            np.inf if policy.counts_radio else float(self.options.reach_s),
            shift,
            np.uint64(self.options.seed),
        )

    def _mean_blocks(self, numbers: tuple[float, ...]) -> float:
        """Return how many blocks a request holds in the mean, prompt and answer."""
        if self.policy.rule != Rule.DYNAMO or self.prompts is None:
            return 0.0
        each = self.prompts.tokens + self.prompts.output_tokens
        return float(np.average(each, weights=self.prompts.type_probability) / numbers[2])

    def _new_routers(self, advert: Advert, clock_s: float) -> Routers:
        own = self.options
        return make_routers(
            advert,
            self.n_sites,
            clock_s,
            routers=own.routers,
            noise=own.noise,
            counts_own=own.counts_own,
            seed=own.seed,
        )

    def take_up(self, advert: Advert, clock_s: float, doors: Doors, stations: Stations) -> None:
        """Hear an advert."""
        heeded = advert if self.policy.reads != "nothing" else Advert()
        self._refuse(heeded)
        prefill = advert.believed_prefill(stations.prefill)
        hit, tokens = np.zeros(prefill.shape), np.ones(prefill.shape[1])
        if self.prompts is not None:
            tokens = self.prompts.tokens
            hit = np.where(
                np.isfinite(prefill), self.prompts.hit_share(np.nan_to_num(prefill, posinf=0.0)), 0.0
            )
        self._book = Book(prefill, hit, hit @ tokens, tokens, self._blocks_each)
        if heeded.continues(self.advert):
            self._routers = continued(self._routers, heeded)
        else:
            self._routers = self._new_routers(heeded, clock_s)
            if self._parted:
                self.part(clock_s, stations)
            stations.sites["heard_wait_s"] = stations.sites["heard_starts"] = 0.0
        self.advert = heeded

    def _refuse(self, advert: Advert) -> None:
        """Refuse what the policy cannot hear from an advert that it heeds."""
        name = self.policy.name
        if self.policy.reads == "count" and (advert.kind == "static" or advert.scope == "tier"):
            msg = (
                f"policy {name!r} reads the number of requests at each site; "
                'let sites advertise kind "state" or "measured" with scope "site"'
            )
            raise GeoEdgeError(msg)
        if advert.kind != "static" and advert.scope == "tier" and advert.telemetry_period_s == 0:
            msg = (
                "routers that look at every site read each one's own queue at `telemetry_period_s` = 0, not the mean of its "
                'tier; give a period above 0, or scope "site"'
            )
            raise GeoEdgeError(msg)
        if name == "risk_aware" and advert.kind != "state":
            msg = f'policy {name!r} needs the spread of waits, which kind {advert.kind!r} does not tell; use "state"'
            raise GeoEdgeError(msg)
        if self.options.counts_own and self.policy.reads != "nothing" and advert.kind != "state":
            msg = f'routers that count what they send need kind "state", not {advert.kind!r}'
            raise GeoEdgeError(msg)

    def mind(self, doors: Doors) -> None:
        """Take note of which doors are open: routers ask at the doors themselves."""

    def serve(
        self,
        first: int,
        requests: Requests,
        x: Floats,
        y: Floats,
        drawn: Floats,
        doors: Doors,
        stations: Stations,
    ) -> None:
        """Route requests, the first of them to row `first`; places in the window [km], services drawn."""
        rows = np.arange(first, first + len(requests))
        new = stations.requests[first : first + len(requests)]
        new["created"], new["mark"], new["type"] = requests.created_s, drawn, requests.request_type
        new["lost"] = new["redirects"] = 0
        self._ask(rows, requests.created_s, x, y, requests.router, doors, stations)

    def again(
        self, rows: Ints, x: Floats, y: Floats, router: Ints, now: float, doors: Doors, stations: Stations
    ) -> None:
        """Route the requests of some rows once more, now and from where they were made [km]."""
        self._ask(rows, np.full(rows.size, now), x, y, router, doors, stations)

    def _ask(
        self, rows: Ints, now: Floats, x: Floats, y: Floats, router: Ints, doors: Doors, stations: Stations
    ) -> None:
        if router.size and not (router.min() >= 0 and router.max() < self.options.routers):
            msg = f"`router` must lie in 0..{self.options.routers - 1}"
            raise GeoEdgeError(msg)
        open_to = np.isfinite(self._book.prefill).any(axis=0)
        if not open_to.all():
            msg = f"no site serves request type {int(np.flatnonzero(~open_to)[0])}; leave at least one site for it"
            raise GeoEdgeError(msg)
        serve_asking(
            rows,
            now,
            x,
            y,
            router,
            self.way,
            self.ground,
            self._book,
            self._routers,
            doors,
            self._beliefs,
            stations,
        )

    def part(self, clock_s: float, stations: Stations) -> None:
        """Let routers keep what they have heard by now and hear no more reports."""
        self._parted = True
        self._routers = cut_off(clock_s, self._routers, stations)

    def rejoin(self, clock_s: float) -> None:
        """Let routers hear reports again from now on."""
        self._parted = False
        period = np.inf if self.advert.kind == "static" else self.advert.telemetry_period_s
        self._routers = joined_again(clock_s, period, self._routers)

    def settle(self, until_s: float, stations: Stations) -> None:
        """Let time pass at all sites, with the reports due meanwhile."""
        settle_routers(until_s, self._routers, stations)

    def waits(self, clock_s: float, stations: Stations) -> Floats:
        """Return the waits as the first router knows them [s], shape (n,)."""
        if self._routers.period == 0:
            return np.array([expected_wait(i, clock_s, stations) for i in range(self.n_sites)])
        return np.array(self._routers.reports[0, hear(0, clock_s, self._routers), :, WAIT])
