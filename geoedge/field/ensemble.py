"""The field over many Poisson layouts: the random twin of a city, and theory end to end on a torus."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import CityError, GeoEdgeError
from geoedge.field.equilibrium import solve_field
from geoedge.field.problem import Workloadlike, field_problem
from geoedge.sites.processes import poisson_layout
from geoedge.streams import stream
from geoedge.units import KM

if TYPE_CHECKING:
    import pandas
    from numpy.typing import ArrayLike, NDArray
    from shapely import MultiPolygon, Polygon

    from geoedge.city.demand import Demand
    from geoedge.field.answer import FieldAnswer
    from geoedge.sites.layout import Layout

    Floats = NDArray[np.float64]

__all__ = ["Ensemble", "poisson_ensemble", "uniform_torus_demand"]


@dataclass(frozen=True, eq=False)
class Ensemble:
    """What the field answers for every layout of an ensemble; all of shape (n_layouts,).

    Parameters
    ----------
    sites
        Number of sites; a layout without any has coverage 0 and infinite times.
    coverage
        TTFT coverage at the target.
    mean_ttft
        Mean TTFT [s]; infinite if any request goes to a site beyond capacity.
    p95_ttft
        95 % quantile of TTFT [s].
    mean_utilization
        Busy servers over servers.
    unstable_share
        Share of requests at sites beyond capacity.
    stable
        Whether every site is within capacity.
    residual
        Miss of the equilibrium, in utilisation.
    mean_serving_distance
        Mean serving distance [km].
    offloading_ratio
        Offloading ratio by tokens.
    """

    sites: NDArray[np.int64]
    coverage: Floats
    mean_ttft: Floats
    p95_ttft: Floats
    mean_utilization: Floats
    unstable_share: Floats
    stable: NDArray[np.bool_]
    residual: Floats
    mean_serving_distance: Floats
    offloading_ratio: Floats

    def __len__(self) -> int:
        return len(self.sites)

    def rank(self, value: float, of: str = "coverage") -> float:
        """Return the share of layouts whose value is below this one, those equal counted half.

        Parameters
        ----------
        value
            That of the real layout.
        of
            Which quantity.
        """
        values = np.asarray(getattr(self, of), dtype=np.float64)
        return float(np.mean(values < value) + 0.5 * np.mean(values == value))

    def table(self) -> pandas.DataFrame:
        """Return the ensemble as a table, one row per layout, columns with units."""
        import pandas

        units = {"mean_ttft": "_s", "p95_ttft": "_s", "mean_serving_distance": "_km"}
        return pandas.DataFrame({f.name + units.get(f.name, ""): getattr(self, f.name) for f in fields(self)})


@dataclass(frozen=True, eq=False)
class _Task:
    """What every worker needs to know."""

    window: Any
    demand: Demand
    workload: Workloadlike
    radio: tuple[float, float]
    density_per_km2: float | None
    count: int | None
    placement_probability: Floats
    tau: float
    policy: str
    scope: str
    seed: int
    crs: str | None


def _row(answer: FieldAnswer, tau: float) -> tuple[float, ...]:
    return (
        answer.problem.n_sites,
        answer.ttft_coverage(tau),
        answer.mean_ttft,
        answer.ttft_quantile(0.95),
        answer.mean_utilization,
        answer.unstable_share,
        answer.stable,
        answer.residual,
        answer.mean_serving_distance,
        answer.offloading_ratio(),
    )


NOBODY = (0, 0.0, np.inf, np.inf, np.nan, 1.0, False, 0.0, np.nan, np.nan)
"""The answer of a layout that drew no site."""


def _draw(task: _Task, index: int) -> Layout | None:
    """Return layout `index`; None if a Poisson draw has no site. It depends on the seed and the index alone."""
    rng = stream(task.seed, "ensemble", index)
    try:
        return poisson_layout(
            task.window,
            task.density_per_km2,
            rng,
            count=task.count,
            placement_probability=task.placement_probability,
            crs=task.crs,
        )
    except CityError:
        if task.count is None and task.density_per_km2 is not None and task.density_per_km2 > 0:
            return None
        raise


def _solved(task: _Task, index: int) -> tuple[float, ...]:
    layout = _draw(task, index)
    if layout is None:
        return NOBODY
    problem = field_problem(
        task.demand,
        layout,
        task.workload,
        delay_coefficient=task.radio[0],
        delay_exponent=task.radio[1],
    )
    return _row(solve_field(problem, policy=task.policy, scope=task.scope), task.tau)


def poisson_ensemble(
    window: Polygon | MultiPolygon | tuple[float, float],
    demand: Demand,
    workload: Workloadlike,
    *,
    placement_probability: ArrayLike,
    delay_coefficient: float,
    delay_exponent: float,
    tau: float,
    density_per_km2: float | None = None,
    count: int | None = None,
    n_layouts: int = 50,
    policy: str = "load_aware",
    scope: str = "site",
    seed: int = 0,
    workers: int = 1,
    crs: str | None = None,
) -> Ensemble:
    """Solve the field on many Poisson layouts over the same land and demand.

    Layout k depends on the seed and on k alone, so the ensemble is the same whatever the number of workers,
    and a longer one begins with a shorter one.

    Parameters
    ----------
    window
        Land [m], or width and height of a torus [m].
    demand
        Requests at weighted points.
    workload
        Times, hits and concurrency by profile and type.
    placement_probability
        π_s, shape (S,).
    delay_coefficient, delay_exponent
        ξ [s/km^α] and α of the radio delay.
    tau
        TTFT target [s].
    density_per_km2
        λ_b [1/km²] of layouts with a Poisson number of sites and independent profiles.
    count
        Fixed number of sites instead, with fixed numbers of sites per profile.
    n_layouts
        How many layouts.
    policy, scope
        As in `solve_field`.
    seed
        Seed of the ensemble.
    workers
        Processes.
    crs
        The projected CRS of the land.

    Raises
    ------
    GeoEdgeError
        If neither or both of density and count are given, or `n_layouts` is below 1.
    """
    if (density_per_km2 is None) == (count is None):
        msg = "give either `density_per_km2` (Poisson number of sites) or `count` (fixed number)"
        raise GeoEdgeError(msg)
    if n_layouts < 1:
        msg = f"`n_layouts` must be at least 1, not {n_layouts}"
        raise GeoEdgeError(msg)
    share = np.asarray(placement_probability, dtype=np.float64)
    radio = (delay_coefficient, delay_exponent)
    task = _Task(
        window, demand, workload, radio, density_per_km2, count, share, tau, policy, scope, seed, crs
    )
    if workers == 1:
        rows = [_solved(task, index) for index in range(n_layouts)]
    else:
        from joblib import Parallel, delayed

        rows = Parallel(n_jobs=workers)(delayed(_solved)(task, index) for index in range(n_layouts))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Ensemble(*columns)


def uniform_torus_demand(
    period_km: tuple[float, float], intensity: float, mix: ArrayLike, cell_km: float
) -> Demand:
    """Return uniform demand on a torus, as square cells.

    Parameters
    ----------
    period_km
        Sizes of the window [km], whole multiples of the cell.
    intensity
        Requests [1/(s km²)].
    mix
        p_q, shape (Q,).
    cell_km
        Side of a cell [km].

    Raises
    ------
    GeoEdgeError
        If the window is not a whole number of cells.
    """
    from geoedge.city.demand import Demand

    cells = np.asarray(period_km, dtype=np.float64) / cell_km
    shape = np.rint(cells).astype(np.int64)
    if (shape < 1).any() or not np.allclose(cells, shape, rtol=1e-9):
        msg = f"`period_km` {period_km} must be a whole number of cells of `cell_km` = {cell_km}"
        raise GeoEdgeError(msg)
    x, y = ((np.arange(n) + 0.5) * cell_km * KM for n in shape)
    xy = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    rate = np.tile(intensity * cell_km**2 * np.asarray(mix, dtype=np.float64), (len(xy), 1))
    return Demand(xy, rate, cell_km * KM)
