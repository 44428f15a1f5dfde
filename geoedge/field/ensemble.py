"""The field over many Poisson layouts on a torus: theory end to end, site by site, with a standard error.

Theory's Eq. (39) knows one load for all sites of a tier. Here every site has its own region, load and queue, and
the mean over Poisson layouts is what a random network truly gives. What theory does know exactly of the same
layouts, such as the coverage without queues and the number of sites, serves as control variates: coverage is
regressed on them and read off at their exact means, which takes much of the luck of the layouts out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.streams import generator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.theory import Policy, TheoryAnswer, TieredNetwork, WaitModel
    from geoedge.theory.protocols import QueueOfMix

    Floats = NDArray[np.float64]

__all__ = ["EnsembleAnswer", "regressed", "torus_ensemble"]

SITES, OWN_WAITS_SITES = 120, 240
"""Mean number of sites on a torus, without and with waits per site."""
SPREADING, MOST_SPREAD = 0.4, 4.0
"""With waits per site load spreads the further the nearer demand is to capacity: a torus has more sites by this over
the mean share of idle servers, up to so many times as many."""
PLACES_PER_SITE, OWN_WAITS_PLACES_PER_SITE = 120, 160
"""Places of demand per site, without and with waits per site."""
FIRST_LAYOUTS, LAYOUTS_PER_CONTROL = 24, 6
"""Layouts before the interval is first looked at, and layouts per control variate of a regression, at least."""
MARGIN = 1.1
"""How many more layouts are drawn than the present scatter asks for."""
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class EnsembleAnswer:
    """Means over Poisson layouts of what the field says on each, with standard errors.

    Parameters
    ----------
    theory
        Theory's answer for the same network, policy and queue, the mean-field coverage among it.
    scope
        Who advertises a wait, ``"site"`` or ``"tier"``.
    targets
        Targets τ of the time to first token [s], shape (T,).
    half_width
        Half-width of the 95 % intervals that was asked for.
    layout_coverage
        Share of requests in time on each layout, Eq. (39) site by site, shape (L, T).
    layout_unstable_share
        Share of requests that go to sites beyond capacity on each layout, shape (L,).
    layout_share, layout_wait_share
        Share of requests that each tier serves, and what their waits add to the mean wait [s], shape (L, S).
    layout_advertised
        Mean of the advertised waits of each tier's sites [s], shape (L, S); NaN where a layout has none.
    queue_free
        Coverage if nobody waited, under theory's waits in the choice, less its exact mean, shape (L, T).
    controls
        Other quantities of each layout less their exact means, the most telling first, shape (L, K).
    residual
        Largest miss of an equilibrium, in utilisation, shape (L,).
    """

    theory: TheoryAnswer
    scope: str
    targets: Floats
    half_width: float
    layout_coverage: Floats
    layout_unstable_share: Floats
    layout_share: Floats
    layout_wait_share: Floats
    layout_advertised: Floats
    queue_free: Floats
    controls: Floats
    residual: Floats

    def __repr__(self) -> str:
        found = ", ".join(
            f"{value:.4f} ± {half:.4f} at {tau:g} s"
            for tau, value, half in zip(self.targets, self.coverage, self.interval, strict=True)
        )
        return f"EnsembleAnswer({self.theory.equilibrium.policy}, waits per {self.scope}, {self.layouts} layouts: {found})"

    @property
    def layouts(self) -> int:
        """Number of layouts L."""
        return len(self.layout_coverage)

    @cached_property
    def _regressions(self) -> list[tuple[float, float, int]]:
        return [
            regressed(self.layout_coverage[:, t], np.column_stack((self.queue_free[:, t], self.controls)))
            for t in range(len(self.targets))
        ]

    @property
    def coverage(self) -> Floats:
        """TTFT coverage at each target, shape (T,)."""
        return np.array([value for value, _, _ in self._regressions])

    @property
    def standard_error(self) -> Floats:
        """Standard error of `coverage`, shape (T,)."""
        return np.array([error for _, error, _ in self._regressions])

    @property
    def interval(self) -> Floats:
        """Half-width of the 95 % interval of `coverage`, shape (T,)."""
        from scipy.stats import t

        return np.array(
            [error * float(t.ppf((1 + CONFIDENCE) / 2, free)) for _, error, free in self._regressions]
        )

    @property
    def reached(self) -> bool:
        """Whether every interval is as narrow as was asked for."""
        return bool((self.interval <= self.half_width).all())

    @property
    def variance_reduction(self) -> Floats:
        """How many times as many layouts the plain mean would need for the same errors, shape (T,)."""
        plain = self.layout_coverage.var(axis=0, ddof=1) / self.layouts
        return np.asarray(plain / np.maximum(self.standard_error**2, np.finfo(np.float64).tiny))

    @property
    def unstable_share(self) -> tuple[float, float]:
        """Share of requests that go to sites beyond capacity, and its standard error."""
        value, error, _ = regressed(self.layout_unstable_share, self.controls)
        return min(max(value, 0.0), 1.0), error

    @property
    def mean_wait(self) -> Floats:
        """Mean wait of the requests that each tier serves [s], shape (S,); infinite if any site is beyond capacity."""
        served = self.layout_share.sum(axis=0)
        waited = self.layout_wait_share.sum(axis=0)
        return np.where(served > 0, waited / np.where(served > 0, served, 1.0), np.nan)

    @property
    def advertised_wait(self) -> Floats:
        """Mean wait that a tier's sites advertise [s], shape (S,); NaN for a tier without sites."""
        there = np.isfinite(self.layout_advertised)
        total = np.where(there, self.layout_advertised, 0.0).sum(axis=0)
        count = there.sum(axis=0)
        return np.where(count > 0, total / np.where(count > 0, count, 1), np.nan)


def regressed(
    values: Floats, controls: Floats, *, layouts_per_control: int = LAYOUTS_PER_CONTROL
) -> tuple[float, float, int]:
    """Return the mean of values at control 0 by linear regression, its standard error and degrees of freedom.

    Only as many controls are used, the first ones, as there are layouts to fit them by: a regression on nearly as
    many controls as layouts fits their luck and says that it knows everything.

    Parameters
    ----------
    values
        What is averaged, shape (L,).
    controls
        Quantities of expectation zero, shape (L, K).
    layouts_per_control
        Layouts for each control in use, at least.
    """
    used = min(controls.shape[1], len(values) // layouts_per_control)
    design = np.column_stack((np.ones(len(values)), controls[:, :used]))
    inverse = np.linalg.pinv(design)
    fitted = inverse @ values
    rest = values - design @ fitted
    freedom = len(values) - int(np.linalg.matrix_rank(design))
    error = np.sqrt(float(rest @ rest) / freedom * float(inverse[0] @ inverse[0]))
    return float(fitted[0]), float(error), freedom


def torus_ensemble(
    network: TieredNetwork,
    *,
    policy: Policy = "load_aware",
    scope: str = "site",
    targets: ArrayLike = (0.8,),
    rng: np.random.Generator | int,
    half_width: float = 0.002,
    layouts: int | None = None,
    most_layouts: int = 4000,
    sites: float | None = None,
    places_per_site: float | None = None,
    queue: WaitModel | QueueOfMix | None = None,
    workers: int = 1,
) -> EnsembleAnswer:
    """Average the field over Poisson layouts on a torus until coverage is known well enough.

    The number of sites of each tier is Poisson, so that with waits per tier, or under a policy that heeds none,
    coverage on a torus has exactly the mean of the infinite plane. The waits that tiers then advertise are those of
    an infinite network, theory's fixed point; solving for them on each torus would only add its luck. With waits
    per site the equilibrium is solved on every layout.

    Two approximations are left. Demand comes from a lattice of places, whose cells, where waits are solved for, share
    their requests between almost equal sites. And a torus is finite: with waits per tier nobody is served from
    farther than a quarter of it, so that it makes no difference, but with waits per site load spreads the further
    the nearer demand is to capacity. At the paper's baseline, up to two thirds of capacity, either moves coverage by
    less than 5e-4 at the defaults; at 0.9 of it the size of the torus may still cost some thousandths.

    Parameters
    ----------
    network
        Tiers, requests and their times.
    policy
        ``"load_aware"``, ``"prefix_only"`` or ``"nearest"``.
    scope
        ``"site"`` or ``"tier"``: who advertises a wait of its own.
    targets
        Targets τ of the time to first token [s], shape (T,).
    rng
        Random generator, or a seed for one; every layout has a stream of its own.
    half_width
        Half-width of the 95 % interval of coverage at which to stop, for all targets.
    layouts
        Fixed number of layouts instead, at least 8.
    most_layouts
        Layouts after which to stop in any case; `EnsembleAnswer.reached` tells.
    sites
        Mean number of sites on a torus; enough of them by default.
    places_per_site
        Places of demand per site; by default 160 cells where waits are solved for, 120 points otherwise.
    queue
        Wait model of every tier's sites, or the rule that makes it, as in `solve`; M/M/c if omitted.
    workers
        Processes; the answer does not depend on it.

    Raises
    ------
    GeoEdgeError
        If policy or scope are unknown, a number is out of range, or an equilibrium is not found on some layout.
    """
    from geoedge.field._layouts import LayoutReader, Reading, read_layouts
    from geoedge.theory import solve

    aims = np.atleast_1d(np.asarray(targets, dtype=np.float64))
    _check(aims, scope, half_width=half_width, sites=sites, places_per_site=places_per_site)
    _check_counts(layouts=(layouts, 8), most_layouts=(most_layouts, FIRST_LAYOUTS), workers=(workers, 1))
    theory = solve(network, policy, queue=queue)
    own_waits = policy == "load_aware" and scope == "site"
    side = _side(theory, own_waits, sites)
    if places_per_site is None:
        places_per_site = OWN_WAITS_PLACES_PER_SITE if own_waits else PLACES_PER_SITE
    places = max(1, round(places_per_site * network.site_density * side**2))
    reader = LayoutReader(theory, own_waits, aims, side, places, queue)
    streams = generator(rng)
    readings: list[Reading] = []
    wanted = FIRST_LAYOUTS if layouts is None else layouts
    while True:
        readings += read_layouts(reader, streams.spawn(wanted - len(readings)), workers)
        columns = {name: np.array([getattr(each, name) for each in readings]) for name in Reading._fields}
        answer = EnsembleAnswer(theory, scope, aims, half_width, **columns)
        if layouts is not None or answer.reached or len(readings) >= most_layouts:
            return answer
        wanted = min(_more(answer), most_layouts)


def _side(theory: TheoryAnswer, own_waits: bool, sites: float | None) -> float:
    """Return the side of the torus [km]."""
    from geoedge.field.torus import torus_side

    if sites is not None:
        return float(np.sqrt(sites / theory.network.site_density))
    if not own_waits:
        return torus_side(theory, SITES)
    idle = max(1.0 - theory.mean_utilization, SPREADING / MOST_SPREAD)
    return torus_side(theory, OWN_WAITS_SITES * max(1.0, SPREADING / idle))


def _check(targets: Floats, scope: str, **positive: float | None) -> None:
    """Say in one line what cannot be asked."""
    from geoedge.field.equilibrium import SCOPES

    if scope not in SCOPES:
        msg = f"torus_ensemble: `scope` must be one of {', '.join(SCOPES)}, not {scope!r}"
        raise GeoEdgeError(msg)
    if targets.ndim != 1 or targets.size == 0 or not (targets > 0).all():
        msg = f"torus_ensemble: `targets` must be one or more times above 0 s, not {targets.tolist()}"
        raise GeoEdgeError(msg)
    for name, value in positive.items():
        if value is not None and not 0 < value < np.inf:
            hint = "; to fix the cost instead give `layouts`" if name == "half_width" else ""
            msg = f"torus_ensemble: `{name}` must be a number above 0, not {value}{hint}"
            raise GeoEdgeError(msg)


def _check_counts(**counts: tuple[int | None, int]) -> None:
    """Say in one line which number is below the least that makes sense."""
    for name, (value, least) in counts.items():
        if value is not None and value < least:
            msg = f"torus_ensemble: `{name}` must be at least {least}, not {value}"
            raise GeoEdgeError(msg)


def _more(answer: EnsembleAnswer) -> int:
    """Return how many layouts the scatter so far asks for; at most twice as many as there are."""
    ratio = float((answer.interval / answer.half_width).max())
    return int(np.ceil(answer.layouts * min(max(MARGIN * ratio**2, 1.25), 2.0)))
