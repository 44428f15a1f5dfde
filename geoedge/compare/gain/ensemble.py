"""Poisson layouts of as many densities as it takes to find those that cover what a layout covers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.compare.gain.crossings import (
    CONFIDENCE,
    VALUES,
    Crossing,
    band,
    crossings,
    first_crossing,
    nothing_said,
    open_ends,
    resampled,
    single_crossings,
)
from geoedge.compare.gain.curves import MOST, Count, Curves, Ground, drawn_curves
from geoedge.errors import GeoEdgeError
from geoedge.streams import stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Ensemble", "unsolved"]

STEP, SMALL_STEP = 1.41, 1.19
"""How much farther a density is that is asked because the nearer ones do not bracket a level, or its interval."""
CLOSE = 1.1
"""Densities on both sides of a crossing are at most this far apart, or one site; between them lines are straight."""
EMPTIEST = 1.6
"""Least work over all servers beyond which no fewer sites are asked."""
ROUNDS = 10
A_TASK = 4
"""Layouts that a process is handed at a time."""
SOLVED = 5e-3
"""Residual up to which an equilibrium counts as solved, in utilisation."""
LONGEST, GRID = 4.0, 160
"""The curve P(TTFT ≤ τ) is known up to so many times the longest target, at so many times."""


class Ensemble:
    """Poisson layouts on a ground, asked density by density.

    Parameters
    ----------
    ground
        The layout in question and what it is asked.
    layouts
        Number of Poisson layouts.
    count
        As in `nested_layout`.
    seed
        Seed.
    workers
        Processes; one a core by default.
    progress
        Told the stage, and how much of it is done.
    where
        Who asks, for refusals.

    Raises
    ------
    GeoEdgeError
        If a number is out of range.
    """

    def __init__(
        self,
        ground: Ground,
        layouts: int,
        count: Count,
        seed: int,
        workers: int | None,
        progress: Callable[[str, int, int], None] | None,
        where: str = "deployment_gain",
    ) -> None:
        from joblib import cpu_count

        if layouts < 2 or (workers is not None and workers < 1):
            msg = f"{where}: `layouts` = {layouts} must be at least 2 and `workers` = {workers} at least 1"
            raise GeoEdgeError(msg)
        if count not in ("fixed", "Poisson"):
            msg = f'{where}: `count` must be "fixed" or "Poisson", not {count!r}'
            raise GeoEdgeError(msg)
        self.ground, self.layouts, self.count, self.where = ground, layouts, count, where
        self._seed, self._workers = seed, cpu_count() if workers is None else workers
        self.tell = progress or (lambda *_: None)
        self._known: dict[tuple[int, int], Floats] = {}

    def solve(self, factors: Floats, targets: Floats, levels: Floats) -> None:
        """Ask Poisson layouts until the density of every level is bracketed closely, or cannot be.

        Parameters
        ----------
        factors
            Demands, over the ground's, shape (F,).
        targets
            Targets of the time to first token [s], shape (T,).
        levels
            Coverage of the layout, shape (F, T).
        """
        self._factors, self._targets, self._levels = factors, targets, levels
        self._times = np.geomspace(0.1 * targets[0], LONGEST * targets[-1], GRID)
        self._load, self._missed = self.ground.load * factors, [0.0] * len(factors)
        sites = len(self.ground.layout)
        wanted = {(sites, i) for i in range(len(factors))}
        wanted -= self._known.keys()
        for round_ in range(ROUNDS):
            if wanted:
                self._ask(wanted, f"Poisson layouts, round {round_ + 1}")
            wanted = {
                (mean, i)
                for i in range(len(factors))
                for j in range(len(targets))
                for mean in self._next(i, j)
            }
            if not wanted:
                return

    def _ask(self, wanted: set[tuple[int, int]], stage: str) -> None:
        from geoedge.processes import in_processes

        means = sorted({mean for mean, _ in wanted})
        rows = {mean: sorted(i for each, i in wanted if each == mean) for mean in means}
        jobs = {mean: [float(self._factors[i]) for i in rows[mean]] for mean in means}
        taus = {mean: self._taus(mean) for mean in means}
        # a study is not small to hand over
        parts = [range(k, min(k + A_TASK, self.layouts)) for k in range(0, self.layouts, A_TASK)]
        calls = [(self.ground, self.count, self._seed, part, jobs, taus) for part in parts]
        found: list[dict[int, Curves]] = []
        for each in in_processes(drawn_curves, calls, self._workers):
            found += each
            self.tell(stage, len(found), self.layouts)
        for mean in means:
            for k, i in enumerate(rows[mean]):
                self._known[mean, i] = np.stack([each[mean].coverage[k] for each in found])
                self._missed[i] = max(self._missed[i], *(float(each[mean].residual[k]) for each in found))

    def _taus(self, mean: int) -> Floats:
        """Return the targets and, at the layout's own density, the times of the curve [s]."""
        own = mean == len(self.ground.layout)
        return np.concatenate((self._targets, self._times)) if own else self._targets

    def _curves(self, i: int, j: int) -> tuple[Floats, Floats]:
        """Return the mean numbers of sites asked at a load, rising, and each layout's coverage of a target there."""
        means = sorted(mean for mean, each in self._known if each == i)
        return np.array(means, dtype=np.float64), np.stack([self._known[m, i][:, j] for m in means], axis=1)

    def _next(self, i: int, j: int) -> list[int]:
        """Return the mean numbers of sites to ask next for a load and a target."""
        level, sites = float(self._levels[i, j]), len(self.ground.layout)
        if nothing_said(level):
            return []
        means, curves = self._curves(i, j)
        found = first_crossing(means, self._resampled(curves), level)
        if not np.isfinite(found[0]):
            asked = [max(means[-1] * STEP, means[-1] + 1) if found[0] > 0.0 else means[0] / STEP]
        else:
            singles = band(single_crossings(means, curves, self._known[sites, i][:, j]))
            ends = (*np.quantile(found[1:], CONFIDENCE, method="nearest"), *singles)
            asked = [means[-1] * SMALL_STEP + 0.5] if max(ends) == np.inf else []
            asked += [means[0] / SMALL_STEP - 0.5] if min(ends) == -np.inf else []
            near = [(float(found[0]), CLOSE), *((end, SMALL_STEP) for end in singles)]
            asked += [_between(means, at, apart) for at, apart in near if np.isfinite(at)]
        most, fewest = MOST * sites, max(1.0, self._load[i] * sites / EMPTIEST)
        return sorted(
            {round(mean) for mean in asked if fewest <= mean <= most}
            - {mean for mean, each in self._known if each == i}
        )

    def _resampled(self, curves: Floats) -> Floats:
        """Return the mean curve and those of bootstrap samples, the same samples at every call."""
        return resampled(curves, stream(self._seed, "deployment gain", "bootstrap"))

    def row(self, i: int, j: int) -> dict[str, Any]:
        """Return gain and shift of a load and a target, with intervals."""
        level, tau, sites = float(self._levels[i, j]), float(self._targets[j]), len(self.ground.layout)
        own = self._known[sites, i]
        row: dict[str, Any] = {"reference": "layouts", "reference_coverage": float(own[:, j].mean())}
        if said := nothing_said(level):
            return row | dict.fromkeys(VALUES, float("nan")) | {"note": said}
        density, singles = self._density(i, j)
        times, covered = self._times, own[:, len(self._targets) :]
        ends = (
            f"the Poisson layouts cover as much by {times[0]:.2g} s already, the shortest time looked at",
            f"the Poisson layouts cover less by {times[-1]:.3g} s, the longest time looked at",
        )
        time = crossings(times, self._resampled(covered), level, ends)
        later = band(single_crossings(times, covered, own[:, j]))
        single_notes = (
            open_ends("the band of gains of single Poisson layouts", *singles, self._ends(i, j)),
            open_ends("the band of shifts of single Poisson layouts", *later, ends),
        )
        notes = (density.note, time.note, *single_notes, self._unfinished(i, j), self._wavering(i, j))
        values = (
            *np.exp([density.value, density.low, density.high, *_known_low(singles)]),
            np.count_nonzero(own[:, j] < level),
            *(np.array([time.value, time.low, time.high, *_known_low(later)]) - tau),
            time.value / tau,
        )
        said = "; ".join(filter(None, (*notes, unsolved(self._missed[i]))))
        return row | dict(zip(VALUES, map(float, values), strict=True)) | {"note": said}

    def _density(self, i: int, j: int) -> tuple[Crossing, tuple[float, float]]:
        """Return the log density over the layout's that covers as much, and the band of single Poisson layouts."""
        means, curves = self._curves(i, j)
        sites, level = len(self.ground.layout), float(self._levels[i, j])
        dense = np.log(means / sites)
        found = crossings(dense, self._resampled(curves), level, self._ends(i, j))
        return found, band(single_crossings(dense, curves, self._known[sites, i][:, j]))

    def _ends(self, i: int, j: int) -> tuple[str, str]:
        """Return what to say of a level that the fewest sites asked reach, and of one that the most do not."""
        least, most = self._curves(i, j)[0][[0, -1]] / len(self.ground.layout)
        return (
            f"{least:.2f} times the sites already cover as much",
            f"{most:.2f} times the sites do not cover as much",
        )

    def _unfinished(self, i: int, j: int) -> str:
        """Return a warning where more densities should have been asked."""
        if not self._next(i, j):
            return ""
        means, curves = self._curves(i, j)
        found = float(first_crossing(means, curves.mean(axis=0)[None], float(self._levels[i, j]))[0])
        said = f"the search for densities ended after {ROUNDS} rounds"
        if np.isfinite(found) and _between(means, found, CLOSE):
            at = int(np.searchsorted(means, found))
            said += f", with {means[at] / means[at - 1]:.2f} times between those around the gain"
        return said

    def _wavering(self, i: int, j: int) -> str:
        """Return a warning where more sites, after the level is reached, cover less than it again beyond doubt."""
        level, (means, curves) = self._levels[i, j], self._curves(i, j)
        mean, error = curves.mean(axis=0), curves.std(axis=0, ddof=1) / self.layouts**0.5
        least = first_crossing(means, mean[None], level)[0]
        again = (means > least) & (mean + 2.0 * error < level)
        return "more sites cover less again: the least density counts" if again.any() else ""


def _between(means: Floats, at: float, apart: float) -> float:
    """Return a mean number of sites between those around a crossing if they are too far apart, or 0."""
    k = int(np.searchsorted(means, at))
    below, above = means[max(k - 1, 0)], means[k]
    return float((below * above) ** 0.5) if above - below > 1 and above > apart * below else 0.0


def _known_low(ends: tuple[float, float]) -> list[float]:
    """Return ends of a band, NaN for one that lies left of all that was asked."""
    return [float("nan") if end == -np.inf else end for end in ends]


def unsolved(residual: float) -> str:
    """Return a warning where an equilibrium is missed, in utilisation, or nothing if it is not."""
    return f"UNSOLVED by {residual:.2g} in utilisation" if residual > SOLVED else ""
