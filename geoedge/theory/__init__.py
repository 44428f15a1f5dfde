"""The Poisson closed forms of spatial prefix caching: arrays in, arrays out, kilometres and seconds.

`solve` turns a `TieredNetwork` into a `TheoryAnswer`; the modules behind it are usable one by one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geoedge.theory.association import (
        association_per_density,
        association_probability,
        mean_serving_distance,
        serving_distance_pdf,
    )
    from geoedge.theory.coverage import TheoryAnswer, minimum_density, solve
    from geoedge.theory.equilibrium import POLICIES, Equilibrium, Policy, solve_equilibrium
    from geoedge.theory.montecarlo import Sample, nearest_distances, sample_requests
    from geoedge.theory.network import TieredNetwork
    from geoedge.theory.queueing import (
        ErlangC,
        ServiceLaw,
        WaitModel,
        erlang_c,
        mean_wait,
        normalised_wait,
        normalised_wait_and_slope,
        offered_load_for_wait,
        offered_load_slope,
        wait_cdf,
        wait_quantile,
    )

_HOME = {
    "association": (
        "association_per_density",
        "association_probability",
        "mean_serving_distance",
        "serving_distance_pdf",
    ),
    "coverage": ("TheoryAnswer", "minimum_density", "solve"),
    "equilibrium": ("POLICIES", "Equilibrium", "Policy", "solve_equilibrium"),
    "montecarlo": ("Sample", "nearest_distances", "sample_requests"),
    "network": ("TieredNetwork",),
    "queueing": (
        "ErlangC",
        "ServiceLaw",
        "WaitModel",
        "erlang_c",
        "mean_wait",
        "normalised_wait",
        "normalised_wait_and_slope",
        "offered_load_for_wait",
        "offered_load_slope",
        "wait_cdf",
        "wait_quantile",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "POLICIES",
    "Equilibrium",
    "ErlangC",
    "Policy",
    "Sample",
    "ServiceLaw",
    "TheoryAnswer",
    "TieredNetwork",
    "WaitModel",
    "association_per_density",
    "association_probability",
    "erlang_c",
    "mean_serving_distance",
    "mean_wait",
    "minimum_density",
    "nearest_distances",
    "normalised_wait",
    "normalised_wait_and_slope",
    "offered_load_for_wait",
    "offered_load_slope",
    "sample_requests",
    "serving_distance_pdf",
    "solve",
    "solve_equilibrium",
    "wait_cdf",
    "wait_quantile",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _MODULE_OF:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    """List public names without importing them."""
    return sorted(__all__)
