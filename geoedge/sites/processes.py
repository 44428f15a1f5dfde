"""Point processes: layouts drawn at random, by name, on any land or on a torus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import CityError
from geoedge.sites import clusters, determinantal, hard_core, lattices, restricted, strauss
from geoedge.sites._parameters import Parameter, Process
from geoedge.sites._windows import drawing_window, uniform_points, whole_number
from geoedge.sites.layout import Layout, place_profiles
from geoedge.streams import generator
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from shapely import MultiPolygon, Polygon

    from geoedge.city.city import City
    from geoedge.city.demand import Demand
    from geoedge.sites._parameters import Parameter, Process
from geoedge.sites._windows import DrawingWindow

__all__ = ["PROCESSES", "Parameter", "Process", "draw_layout", "poisson_layout", "uniform_points"]


def _poisson(window: DrawingWindow, density: float, rng: np.random.Generator) -> NDArray[np.float64]:
    return uniform_points(window, int(rng.poisson(density * window.area_m2)), rng)


def _binomial(window: DrawingWindow, density: float, rng: np.random.Generator) -> NDArray[np.float64]:
    return uniform_points(window, whole_number(density * window.area_m2, rng), rng)


_PARENTS = Parameter("parents per area λ_p [1/km²]", 0.2)

PROCESSES: dict[str, Process] = {
    "poisson": Process("Poisson", _poisson, {}),
    "binomial": Process("uniform, fixed count", _binomial, {}),
    "demand": Process("Poisson by demand", restricted.demand_points, {}, needs="demand"),
    "hard_core": Process(
        "Matérn II hard core",
        hard_core.matern_two_points,
        {"radius_m": Parameter("least distance R [m]", 0.45)},
    ),
    "hard_core_one": Process(
        "Matérn I hard core",
        hard_core.matern_one_points,
        {"radius_m": Parameter("least distance R [m]", 0.3)},
    ),
    "strauss": Process(
        "Strauss",
        strauss.strauss_points,
        {
            "radius_m": Parameter("distance of interaction R [m]", 0.6),
            "gamma": Parameter("factor γ of a pair within it [–]", 0.2, most=1.0, zero=True),
            "fixed_count": Parameter("whether the number of sites on its torus is fixed [–]", False),
        },
    ),
    "lattice": Process(
        "shaken lattice",
        lattices.lattice_points,
        {
            "shift_m": Parameter("standard deviation, or radius, of a site's error [m]", 0.2, zero=True),
            "shape": Parameter("shape of the cells [–]", "hexagonal", choices=lattices.SHAPES),
            "noise": Parameter("law of the errors [–]", "gaussian", choices=lattices.NOISES),
        },
    ),
    "ginibre": Process(
        "β-Ginibre",
        determinantal.ginibre_points,
        {"beta": Parameter("share β of a Ginibre process that is kept [–]", 1.0, most=1.0)},
    ),
    "gauss": Process(
        "Gaussian determinantal",
        determinantal.gauss_points,
        {"alpha_m": Parameter("range of the repulsion α [m]", 0.5)},
    ),
    "thomas": Process(
        "Thomas cluster",
        clusters.thomas_points,
        {
            "parents_per_km2": _PARENTS,
            "spread_m": Parameter("standard deviation of a site from its parent σ [m]", 0.5),
        },
    ),
    "matern_cluster": Process(
        "Matérn cluster",
        clusters.matern_cluster_points,
        {"parents_per_km2": _PARENTS, "radius_m": Parameter("radius of a cluster R [m]", 1.0)},
    ),
    "holes": Process(
        "Poisson with holes",
        hard_core.hole_points,
        {
            "holes_per_km2": Parameter("holes per area λ_h [1/km²]", 0.2, zero=True),
            "radius_m": Parameter("radius of a hole D [m]", 1.0),
        },
    ),
    "streets": Process(
        "along streets",
        restricted.street_points,
        {"mode": Parameter("whose streets [–]", "drive", choices=restricted.MODES)},
        needs="city",
    ),
    "rooftops": Process(
        "on rooftops",
        restricted.rooftop_points,
        {"weight": Parameter("what makes a roof likelier [–]", "floor_area", choices=restricted.WEIGHTS)},
        needs="city",
    ),
}
"""Every process by name. Names and parameters are those of the scenario's ``[sites]`` and of `fit_process`."""


def draw_layout(
    name: str,
    window: City | Polygon | MultiPolygon | tuple[float, float],
    density_per_km2: float | None,
    rng: np.random.Generator | int,
    *,
    demand: Demand | None = None,
    placement_probability: ArrayLike | None = None,
    crs: str | None = None,
    **parameters: float | str | bool,
) -> Layout:
    """Draw a layout of a point process.

    Parameters
    ----------
    name
        Key of `PROCESSES`.
    window
        A city, a polygon to fill [m], or width and height of a torus [m].
    density_per_km2
        λ_b [1/km²], mean density of the layouts over the window.
    rng
        Random generator, or a seed for one.
    demand
        Where requests come from, for sites that follow it.
    placement_probability
        π_s, shape (S,), of which each site draws its profile on its own. When left out, profiles are not placed:
        all are 0 and ``report["profiles_placed"]`` is False.
    crs
        The projected CRS of a polygon.
    **parameters
        Parameters of the process; defaults are those of `PROCESSES`.

    Raises
    ------
    CityError
        If process, window, density or a parameter is not what it must be, or the draw has no site.
    """
    process = _process(name)
    ground, city, crs = _ground(window, crs)
    density = _density(density_per_km2)
    values = process.values(name, density, parameters)
    rng = generator(rng)
    xy = process.draw(ground, density, rng, **values, **_needed(name, process, city, demand))
    if not len(xy):
        msg = f"`density_per_km2` = {density_per_km2} drew 0 sites on {ground.area_m2 / M2_PER_KM2:.2f} km²; raise it"
        raise CityError(msg)
    placed = placement_probability is not None
    share = (1.0,) if placement_probability is None else placement_probability
    return Layout(
        xy=xy,
        profile=place_profiles(len(xy), share, rng, independent=True),
        name=tuple(f"site {i}" for i in range(len(xy))),
        kind=("random",) * len(xy),
        label=", ".join(
            (process.words, *(_told(key, one) for key, one in values.items() if one is not False))
        ),
        crs=crs,
        period_m=ground.period_m,
        report={
            "sites": len(xy),
            "area_km2": ground.area_m2 / M2_PER_KM2,
            "process": name,
            "parameters": values,
            "density_per_km2": float(density * M2_PER_KM2),
            "fixed_count": name == "binomial",
            "profiles_placed": placed,
        },
    )


def poisson_layout(
    window: Polygon | MultiPolygon | tuple[float, float],
    density_per_km2: float | None,
    rng: np.random.Generator | int,
    *,
    count: int | None = None,
    placement_probability: ArrayLike | None = None,
    crs: str | None = None,
) -> Layout:
    """Draw a homogeneous Poisson layout, Eq. (2), or a binomial one of fixed count.

    A Poisson number of sites draws each site's profile on its own, Eq. (8); a fixed count has fixed counts of
    profiles too.

    Parameters
    ----------
    window
        Polygon to fill [m], or width and height of a torus [m].
    density_per_km2
        λ_b [1/km²]; the number of sites is Poisson with mean density times area. Not used with `count`.
    rng
        Random generator, or a seed for one.
    count
        Fixed number of sites instead.
    placement_probability
        π_s, shape (S,). When left out, profiles are not placed: all are 0 and
        ``report["profiles_placed"]`` is False.
    crs
        The projected CRS of the polygon.

    Raises
    ------
    CityError
        If the window is empty, the density or count is not positive, or the draw has no site.
    """
    if count is None:
        return draw_layout(
            "poisson", window, density_per_km2, rng, placement_probability=placement_probability, crs=crs
        )
    ground = drawing_window(window)
    area_km2 = ground.area_m2 / M2_PER_KM2
    if count < 1:
        msg = f"`count` = {count}: must be at least 1 site"
        raise CityError(msg)
    rng = generator(rng)
    placed = placement_probability is not None
    share = (1.0,) if placement_probability is None else placement_probability
    return Layout(
        xy=uniform_points(ground, count, rng),
        profile=place_profiles(count, share, rng),
        name=tuple(f"site {i}" for i in range(count)),
        kind=("random",) * count,
        label="Poisson, fixed count",
        crs=crs,
        period_m=ground.period_m,
        report={"sites": count, "area_km2": area_km2, "fixed_count": True, "profiles_placed": placed},
    )


def _process(name: str) -> Process:
    if name not in PROCESSES:
        msg = f"`name` = {name!r}: no such process; choose one of {', '.join(PROCESSES)}"
        raise CityError(msg)
    return PROCESSES[name]


def _ground(window: Any, crs: str | None) -> tuple[DrawingWindow, City | None, str | None]:
    """Return the window, the city if one was given, and the CRS."""
    if hasattr(window, "boundary") and hasattr(window, "streets"):
        return drawing_window(window.boundary), window, window.crs
    return drawing_window(window), None, crs


def _density(density_per_km2: float | None) -> float:
    """Return a density [1/m²]."""
    if density_per_km2 is None or not (np.isfinite(density_per_km2) and density_per_km2 > 0):
        msg = f"`density_per_km2` must be a positive number of sites per km², not {density_per_km2}"
        raise CityError(msg)
    return density_per_km2 / M2_PER_KM2


def _needed(name: str, process: Process, city: City | None, demand: Demand | None) -> dict[str, Any]:
    """Return what else a process is drawn from."""
    if not process.needs:
        return {}
    found = {"city": city, "demand": demand}[process.needs]
    if found is None:
        cure = (
            "give a city as `window`" if process.needs == "city" else "give `demand`, or `prepare` a scenario"
        )
        msg = f"`name` = {name!r}: such sites follow the {process.needs}, and there is none; {cure}"
        raise CityError(msg)
    return {process.needs: found}


def _told(name: str, value: float | str | bool) -> str:
    """Return a parameter in words for a label."""
    word, _, unit = name.partition("_")
    if isinstance(value, str | bool):
        return (value if isinstance(value, str) else name).replace("_", " ")
    return f"{word} {value:.4g}{ {'m': ' m', 'per_km2': ' per km²'}.get(unit, '') }"
