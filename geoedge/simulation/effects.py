"""What events do to a run at their very instants."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoedge.control.repair import invalidation, may_restore, restoration, still_valid
from geoedge.serving.advertising import Advert
from geoedge.serving.records import Requests
from geoedge.simulation.dynamics import (
    Moment,
    Occurrence,
    Timeline,
    ask_in_crowd,
    occurrences,
    with_crowd,
)
from geoedge.simulation.happened import Toll, event_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from geoedge.city.demand import RequestRates
    from geoedge.simulation.model import EdgeCity
    from geoedge.simulation.tables import Drawn
    from geoedge.study import Study

__all__ = ["Disturbances"]


@dataclass(frozen=True, eq=False)
class _Loss:
    """What a site has lost and is to have again."""

    cause: Occurrence
    meant: int
    """Profile that it is meant to hold."""
    before: NDArray[np.int64]
    """Profile that every site was meant to hold before, shape (n,)."""
    why: str


@dataclass
class _Spell:
    """A time in which a site held states that it could not use."""

    site: int
    usable: int
    """Profile whose states it could use."""
    since_s: float
    until_s: float = np.inf


class Disturbances:
    """All that happens to a run besides an ordinary day.

    Parameters
    ----------
    study
        The study.
    rates
        What residents ask for in this run.
    seed
        Seed of the run.
    residents
        Number of residents; people of crowds are numbered from there.
    """

    def __init__(self, study: Study, rates: RequestRates, seed: int, residents: int) -> None:
        self.happening = occurrences(study, seed)
        self.timeline = Timeline(self.happening, study.epochs[0][0])
        self.study = study
        self._active: Counter[str] = Counter()
        self._outages: Counter[int] = Counter()
        self._silent: set[int] = set()
        self._losses: list[Occurrence] = []
        self._owed: dict[int, _Loss] = {}
        self._outdated: defaultdict[int, list[Occurrence]] = defaultdict(list)
        self._spells: list[_Spell] = []
        self._lacking: dict[int, _Spell] = {}
        self._heard: Advert | None = None
        self._tolls: defaultdict[Occurrence, Toll] = defaultdict(Toll)
        self._crowds: dict[int, tuple[int, Drawn]] = {}
        first = residents
        for k, one in enumerate(self.happening):
            if one.crowd is not None:
                self._crowds[k] = first, ask_in_crowd(one, one.crowd, study.city, rates, seed, first)
                first += one.crowd.people

    def asked(self, drawn: Drawn, start_s: float, end_s: float) -> Drawn:
        """Return what is asked in an epoch, crowds among the residents.

        Parameters
        ----------
        drawn
            What residents ask.
        start_s, end_s
            The epoch [s since midnight].
        """
        return with_crowd(drawn, [crowd for _, crowd in self._crowds.values()], start_s, end_s)

    def next_s(self) -> float:
        """Return when something begins, is found or ends next [s since midnight]; infinite if nothing does."""
        return self.timeline.next_s()

    def apply(self, model: EdgeCity) -> None:
        """Let everything that begins, is found or ends by now take effect, and let sites repair what they have lost.

        Parameters
        ----------
        model
            The run, whose clock says when now is.
        """
        for one, moment in self.timeline.due(model.clock_s):
            if moment is Moment.IS_FOUND:
                self._find(model, one)
                continue
            begins = moment is Moment.BEGINS
            self._active[one.kind] += 1 if begins else -1
            _EFFECTS[one.kind](self, model, one, begins)
        self.repair(model)

    def advert(self, advert: Advert) -> Advert:
        """Return what routers hear: the catalogue's advert, or the last one that reached them.

        Parameters
        ----------
        advert
            What the catalogue advertises.
        """
        return advert if self._heard is None else self._heard

    def repair(self, model: EdgeCity) -> None:
        """Let sites that no longer wait for states give up what is out of date, and fetch what they are meant to hold.

        Parameters
        ----------
        model
            The run.
        """
        placement, operator = model.placement, model.operator
        before = placement.profile
        for site in [site for site in self._outdated if site not in placement.in_transit]:
            self._give_up(model, site, self._outdated.pop(site))
        if not np.array_equal(placement.profile, before):
            operator.reassess()
        for site in [site for site in self._owed if site not in placement.busy]:
            loss = self._owed.pop(site)
            held = int(placement.profile[site])
            if held == loss.meant:
                continue
            if not may_restore(loss.before, placement.goal, site, loss.meant, operator.limits):
                self._tolls[loss.cause].given_up += 1
                continue
            action = restoration(site, held, loss.meant, placement.moved_bytes, loss.why)
            begun = operator.order(model.clock_s, model.epoch, action)
            self._tolls[loss.cause].restored_bytes += begun.bytes_moved

    def _give_up(self, model: EdgeCity, site: int, updates: list[Occurrence]) -> None:
        """Let a site give up what new versions of prefixes have made useless."""
        placement = model.placement
        held = int(placement.profile[site])
        left, causes = self._left(held, updates)
        if site in placement.down or left == held:
            return
        prefix = causes[-1].prefix
        self._owed[site] = _Loss(causes[-1], held, placement.goal, f"{prefix} has a new version")
        model.operator.order(model.clock_s, model.epoch, invalidation(site, held, left, prefix))

    def _left(self, held: int, updates: list[Occurrence]) -> tuple[int, list[Occurrence]]:
        """Return the profile that updates of prefixes leave of one, and which of them lessen it."""
        left, causes = held, list[Occurrence]()
        for one in updates:
            rest = int(still_valid(self.study.scenario.workload, one.prefix)[left])
            if rest != left:
                left, causes = rest, [*causes, one]
        return left, causes

    def usable(self, profile: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the profiles whose states sites can use: what they hold, less what waits to be given up, shape (n,).

        Parameters
        ----------
        profile
            What sites hold, shape (n,).
        """
        can = profile.copy()
        for site, updates in self._outdated.items():
            can[site], _ = self._left(int(profile[site]), updates)
        return can

    def note(self, now_s: float, held: NDArray[np.int64], usable: NDArray[np.int64]) -> None:
        """Note what sites hold from now on [s since midnight] and what of it they can use, each of shape (n,)."""
        for site, spell in list(self._lacking.items()):
            if usable[site] == held[site] or usable[site] != spell.usable:
                self._lacking.pop(site).until_s = now_s
        for site in np.flatnonzero(usable != held).tolist():
            if site not in self._lacking:
                self._lacking[site] = _Spell(site, int(usable[site]), now_s)
                self._spells.append(self._lacking[site])

    def used(
        self, site: NDArray[np.int64], profile: NDArray[np.int64], started_s: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Return the profiles whose states requests could use, shape (m,).

        Parameters
        ----------
        site, profile, started_s
            Where each started, what the site held then, and when [s since midnight], shape (m,).
        """
        could = profile.copy()
        for spell in self._spells:
            mine = (site == spell.site) & (started_s > spell.since_s) & (started_s <= spell.until_s)
            could[mine] = spell.usable
        return could

    def _part(self, model: EdgeCity, one: Occurrence, begins: bool) -> None:
        """Let routers keep what they have last heard, each for itself, or hear again."""
        if begins and self._heard is None:
            self._heard = model.operator.catalogue.advert()
            model.engine.part()
            model.beliefs.part()
        elif not self._active[one.kind]:
            self._heard = None
            model.engine.rejoin()
            model.beliefs.rejoin()

    def _leave(self, model: EdgeCity, one: Occurrence, begins: bool) -> None:
        """Let the controller go or come back; it acts again at the start of the next epoch."""
        model.operator.absent = self._active[one.kind] > 0

    def _fail(self, model: EdgeCity, one: Occurrence, begins: bool) -> None:
        """Let sites fail, known at once or not, or come back without their caches."""
        self._outages.update(dict.fromkeys(one.sites, 1 if begins else -1))
        changed = [site for site in one.sites if self._outages[site] == int(begins)]
        if not begins:
            self._come_back(model, one, changed)
        elif one.detection_s > 0.0:
            for site in changed:
                model.engine.fall_silent(site)
            self._silent.update(changed)
        else:
            self._lose(model, one, [site for site in one.sites if site in {*changed, *self._silent}])

    def _find(self, model: EdgeCity, one: Occurrence) -> None:
        """Let it be known which sites have failed in silence."""
        self._lose(model, one, [site for site in one.sites if site in self._silent])

    def _lose(self, model: EdgeCity, one: Occurrence, sites: list[int]) -> None:
        """Let everybody know that sites have failed, all doors first."""
        for site in sites:
            self._owe(model, one, site)
            model.engine.close(site)
        for site in sites:
            self._tolls[one].rerouted += model.engine.fail(site)
            model.placement.fail(site, model.clock_s)
        self._silent.difference_update(sites)
        if sites:
            model.operator.reassess()

    def _come_back(self, model: EdgeCity, one: Occurrence, sites: list[int]) -> None:
        """Let sites come back; of one that nobody has missed it is known now that it has lost its cache.

        The engine knows that first, as what is held there starts at once.
        """
        unmissed = [site for site in sites if site in self._silent]
        for site in unmissed:
            self._owe(model, one, site)
            model.placement.fail(site, model.clock_s)
        if unmissed:
            model.reconfigure()
        for site in sites:
            model.engine.recover(site)
            model.placement.recover(site, model.clock_s)
        self._silent.difference_update(sites)
        if sites:
            model.operator.reassess()

    def _owe(self, model: EdgeCity, one: Occurrence, site: int) -> None:
        """Note what a site that loses its cache is to have again."""
        goal = model.placement.goal
        self._owed[site] = _Loss(one, int(goal[site]), goal, f"site {site} has recovered")

    def find_rest(self, model: EdgeCity) -> None:
        """Let silent sites serve what they hold at the end of a run, each from when its silence would be over.

        Nobody is sent elsewhere or rejected any more: at the horizon these requests wait, as others do whose times are
        settled after it.

        Parameters
        ----------
        model
            A run that has reached its horizon; its engine goes on.
        """
        engine, horizon_s = model.engine, model.engine.clock_s
        over = sorted((self._silence_ends_s(site, horizon_s), site) for site in self._silent)
        for time_s, site in over:
            engine.run(Requests.none(), max(engine.clock_s, time_s))
            engine.recover(site)
        self._silent.clear()

    def _silence_ends_s(self, site: int, now_s: float) -> float:
        """Return when a silent site will be missed, by whichever failure, or be back [s since midnight]."""
        mine = [
            one
            for one in self.happening
            if one.kind == "site_failure" and site in one.sites and one.start_s < now_s <= one.end_s
        ]
        missed = [one.known_s for one in mine if now_s <= one.known_s < one.end_s]
        return min([*missed, max((one.end_s for one in mine), default=now_s)])

    def _slow(self, model: EdgeCity, one: Occurrence, begins: bool) -> None:
        """Let the backhaul of sites lose rate, or get it back; losses at a time multiply."""
        self._losses = [*self._losses, one] if begins else [loss for loss in self._losses if loss is not one]
        left = np.ones(len(self.study.layout))
        for loss in self._losses:
            left[list(loss.sites)] *= loss.rate_left
        rate = model.scenario.control.backhaul_bytes_per_s * left[list(one.sites)]
        model.placement.set_backhaul(rate, one.sites, now_s=model.clock_s)
        model.engine.set_backhaul(rate, one.sites)

    def _renew(self, model: EdgeCity, one: Occurrence, begins: bool) -> None:
        """Let a prefix have a new version; a site that waits for states finishes that first."""
        model.beliefs.forget(still_valid(model.scenario.workload, one.prefix))
        for site in range(len(self.study.layout)):
            self._outdated[site].append(one)
            if site not in model.placement.in_transit:
                self._give_up(model, site, self._outdated.pop(site))
        model.operator.reassess()

    def _nothing(self, model: EdgeCity, one: Occurrence, begins: bool) -> None:
        """Leave the run alone: crowds and drifts are in what is asked."""

    # -- afterwards ------------------------------------------------------------------------------------

    def table(self, records: pa.Table, tau: float) -> pd.DataFrame:
        """Return the table ``events``, as `event_table` describes it.

        Parameters
        ----------
        records
            Records of the run.
        tau
            TTFT target [s].
        """
        first = {k: number for k, (number, _) in self._crowds.items()}
        return event_table(self.study, self.happening, first, self._tolls, records, tau)


_EFFECTS: dict[str, Callable[[Disturbances, EdgeCity, Occurrence, bool], None]] = {
    "flash_crowd": Disturbances._nothing,
    "popularity_drift": Disturbances._nothing,
    "site_failure": Disturbances._fail,
    "backhaul_loss": Disturbances._slow,
    "catalogue_partition": Disturbances._part,
    "controller_down": Disturbances._leave,
    "prefix_update": Disturbances._renew,
}
"""What begins or ends with each kind of event."""
