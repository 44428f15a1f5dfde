"""One site's answer alone: the wait it would settle at with another profile while all other prices stay.

It is the root of the site's own queue against its own demand, read off a sorted list of places. Newton's method
on the whole map takes a third of the steps from there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from geoedge.city.demand import Demand
from geoedge.field.problem import FieldProblem, Geometry
from geoedge.theory.queueing import mean_wait
from geoedge.units import KM

__all__ = ["Alone", "coarsened"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CELLS_PER_SITE = 2
LEAST_CELLS = 100
FIRST_CELL_KM = 0.1
WIDER = 1.2


def coarsened(problem: FieldProblem) -> FieldProblem:
    """Return the problem on a few cells a site, each where its demand is centred; small ones stay as they are."""
    geometry, limit = problem.geometry, max(LEAST_CELLS, CELLS_PER_SITE * problem.n_sites)
    if len(geometry.point_xy) <= limit:
        return problem
    cell, group = FIRST_CELL_KM, np.arange(len(geometry.point_xy))
    while group.max() >= limit:
        cell *= WIDER
        _, inverse = np.unique(
            np.floor(geometry.point_xy / cell).astype(np.int64), axis=0, return_inverse=True
        )
        group = inverse.reshape(-1)
    demand = _merged(problem, group, cell)
    return FieldProblem(
        Geometry(
            demand.xy,
            geometry.site_xy,
            geometry.delay_coefficient,
            geometry.delay_exponent,
            demand.cell_m,
            geometry.period_km,
        ),
        demand.rate,
        problem.profile,
        problem.prefill_time,
        problem.occupancy_time,
        problem.concurrency,
        problem.hit_tokens,
        problem.prompt_tokens,
        problem.full_prefill_time,
    )


def _merged(problem: FieldProblem, group: Ints, cell_km: float) -> Demand:
    """Return the demand of groups of places, at their centres [km]."""
    count, weight = int(group.max()) + 1, problem.rate.sum(axis=1) + 1e-300
    mass = np.bincount(group, weight, count)
    centre = [np.bincount(group, weight * problem.geometry.point_xy[:, k], count) / mass for k in (0, 1)]
    rate = [np.bincount(group, column, count) for column in problem.rate.T]
    return Demand(np.stack(centre, axis=1), np.stack(rate, axis=1), cell_km * KM)


class Alone:
    """Demand by place and type, seen by one site while the others' prices stay.

    Parameters
    ----------
    problem
        Demand, sites and workload.
    profile
        What the sites hold, shape (n,).
    wait
        What they advertise [s], shape (n,).
    """

    def __init__(self, problem: FieldProblem, profile: Ints, wait: Floats) -> None:
        place, self._type = np.nonzero(problem.rate)
        self._rate, self._problem = problem.rate[place, self._type], problem
        geometry = problem.geometry
        gap = np.abs(geometry.point_xy[:, None, :] - geometry.site_xy[None, :, :])
        gap = np.minimum(gap, np.asarray(geometry.period) - gap)
        self._radio = geometry.radio_delay(np.hypot(gap[..., 0], gap[..., 1]))[place]
        cost = self._radio + (problem.prefill_time[profile] + wait[:, None])[:, self._type].T
        self._site = cost.argmin(axis=1)
        rows = np.arange(len(place))
        self._best = cost[rows, self._site]
        cost[rows, self._site] = np.inf
        self._second = cost.min(axis=1)

    def wait(self, site: int, profile: int) -> float:
        """Return the wait [s] at which a site with another profile has just the demand that causes it.

        Parameters
        ----------
        site
            Which site.
        profile
            What it holds.
        """
        problem = self._problem
        rival = np.where(self._site == site, self._second, self._best)
        margin = rival - self._radio[:, site] - problem.prefill_time[profile, self._type]
        won = np.flatnonzero(margin > 0.0)
        won = won[np.argsort(-margin[won], kind="stable")]
        arrivals = np.cumsum(self._rate[won])
        load = np.cumsum(self._rate[won] * problem.occupancy_time[profile, self._type[won]])
        servers = problem.concurrency[profile]
        fits = int(np.searchsorted(load, servers))
        waits = mean_wait(arrivals[:fits], arrivals[:fits] / load[:fits], servers)
        stay = int((waits <= margin[won[:fits]]).sum())
        suffered = float(waits[stay - 1]) if stay else 0.0
        asked = float(margin[won[stay]]) if stay < len(won) else 0.0
        return max(suffered, asked) if np.isfinite(max(suffered, asked)) else suffered
