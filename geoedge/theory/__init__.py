"""The Poisson closed forms of spatial prefix caching: arrays in, arrays out, kilometres and seconds.

What would a random network of this density and mix do? A `TieredNetwork` holds it as arrays; `solve` finds
which profile serves whom, the waits that follow and the coverage, as a `TheoryAnswer`. `solve_law` lets loads
differ from site to site, `optimal_placement` chooses the mix, `minimum_density` the number of sites,
`sensitivities` what matters most. The modules behind it are usable one by one.

>>> import geoedge as ge
>>> from geoedge.theory import solve, solve_law
>>> network = ge.solve(ge.load_scenario("paper")).network
>>> answer = solve(network)
>>> answer.equilibrium.utilization.round(2).tolist()
[0.04, 0.16, 0.7]
>>> [round(float(a.ttft_coverage(0.8)), 2) for a in (answer, solve_law(network, "per_tier"))]
[0.69, 0.59]

Axes are (s, q): profile, then request type; densities 1/km², distances km, times s. Integrals hold to 1e-10.
Theory knows no map, and Theorems 1 and 2 give all sites of a profile one load, which is too kind near
capacity: the corrected laws of `solve_law` say by how much. Equations (2) to (49) of arXiv 2608.01126;
`ErlangC` for its queue M/M/c.
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
    from geoedge.theory.cells import cell_moments
    from geoedge.theory.coverage import TheoryAnswer, evaluate, solve
    from geoedge.theory.damped import DampedHistory, damped_iteration
    from geoedge.theory.density import DensityAndMix, minimum_density, minimum_density_and_mix
    from geoedge.theory.equilibrium import (
        POLICIES,
        Capacity,
        Equilibrium,
        Policy,
        advertise,
        capacity,
        solve_equilibrium,
    )
    from geoedge.theory.heterogeneity import LOAD_LAWS, LoadLaw, SiteLoadAnswer, solve_law
    from geoedge.theory.montecarlo import (
        Sample,
        WaitSampler,
        mean_and_error,
        nearest_distances,
        sample_requests,
    )
    from geoedge.theory.network import TieredNetwork
    from geoedge.theory.pairwise import boundary_distance, break_even_wait, distance_advantage
    from geoedge.theory.phase_type import PhaseType, PhaseTypeQueue, unit_quantile
    from geoedge.theory.placement import (
        Placement,
        PlacementLimits,
        RobustPlacement,
        optimal_placement,
        project_placement,
        robust_placement,
    )
    from geoedge.theory.protocols import PerSite, QueueOfMix, WaitModel, select
    from geoedge.theory.queueing import (
        ErlangC,
        erlang_c,
        mean_wait,
        normalised_wait,
        normalised_wait_and_slope,
        offered_load_for_wait,
        offered_load_slope,
        wait_cdf,
        wait_quantile,
    )
    from geoedge.theory.queues import RenewalQueue, TwoMomentQueue
    from geoedge.theory.selection import (
        PairBoundary,
        SelectionRegions,
        boundary_curve,
        rival_area,
        selection_owner,
        selection_regions,
    )
    from geoedge.theory.sensitivity import Knob, Sensitivity, sensitivities
    from geoedge.theory.services import (
        SERVICE_LAWS,
        LawQueue,
        NamedLaw,
        ServiceLaw,
        make_law,
        queue_for,
        service_scv,
    )
    from geoedge.theory.tabulated import TabulatedQueue
    from geoedge.theory.transient import relaxation_time, transient_wait_tail

_HOME = {
    "association": (
        "association_per_density",
        "association_probability",
        "mean_serving_distance",
        "serving_distance_pdf",
    ),
    "cells": ("cell_moments",),
    "coverage": ("TheoryAnswer", "evaluate", "solve"),
    "damped": ("DampedHistory", "damped_iteration"),
    "density": ("DensityAndMix", "minimum_density", "minimum_density_and_mix"),
    "equilibrium": (
        "POLICIES",
        "Capacity",
        "Equilibrium",
        "Policy",
        "advertise",
        "capacity",
        "solve_equilibrium",
    ),
    "heterogeneity": ("LOAD_LAWS", "LoadLaw", "SiteLoadAnswer", "solve_law"),
    "montecarlo": ("Sample", "WaitSampler", "mean_and_error", "nearest_distances", "sample_requests"),
    "network": ("TieredNetwork",),
    "pairwise": ("boundary_distance", "break_even_wait", "distance_advantage"),
    "placement": (
        "Placement",
        "PlacementLimits",
        "RobustPlacement",
        "optimal_placement",
        "project_placement",
        "robust_placement",
    ),
    "phase_type": ("PhaseType", "PhaseTypeQueue", "unit_quantile"),
    "protocols": ("PerSite", "QueueOfMix", "WaitModel", "select"),
    "queueing": (
        "ErlangC",
        "erlang_c",
        "mean_wait",
        "normalised_wait",
        "normalised_wait_and_slope",
        "offered_load_for_wait",
        "offered_load_slope",
        "wait_cdf",
        "wait_quantile",
    ),
    "queues": ("RenewalQueue", "TwoMomentQueue"),
    "selection": (
        "PairBoundary",
        "SelectionRegions",
        "boundary_curve",
        "rival_area",
        "selection_owner",
        "selection_regions",
    ),
    "sensitivity": ("Knob", "Sensitivity", "sensitivities"),
    "services": (
        "SERVICE_LAWS",
        "LawQueue",
        "NamedLaw",
        "ServiceLaw",
        "make_law",
        "queue_for",
        "service_scv",
    ),
    "tabulated": ("TabulatedQueue",),
    "transient": ("relaxation_time", "transient_wait_tail"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "LOAD_LAWS",
    "POLICIES",
    "SERVICE_LAWS",
    "Capacity",
    "DampedHistory",
    "DensityAndMix",
    "Equilibrium",
    "ErlangC",
    "Knob",
    "LawQueue",
    "LoadLaw",
    "NamedLaw",
    "PairBoundary",
    "PerSite",
    "PhaseType",
    "PhaseTypeQueue",
    "Placement",
    "PlacementLimits",
    "Policy",
    "QueueOfMix",
    "RenewalQueue",
    "RobustPlacement",
    "Sample",
    "SelectionRegions",
    "Sensitivity",
    "ServiceLaw",
    "SiteLoadAnswer",
    "TabulatedQueue",
    "TheoryAnswer",
    "TieredNetwork",
    "TwoMomentQueue",
    "WaitModel",
    "WaitSampler",
    "advertise",
    "association_per_density",
    "association_probability",
    "boundary_curve",
    "boundary_distance",
    "break_even_wait",
    "capacity",
    "cell_moments",
    "damped_iteration",
    "distance_advantage",
    "erlang_c",
    "evaluate",
    "make_law",
    "mean_and_error",
    "mean_serving_distance",
    "mean_wait",
    "minimum_density",
    "minimum_density_and_mix",
    "nearest_distances",
    "normalised_wait",
    "normalised_wait_and_slope",
    "offered_load_for_wait",
    "offered_load_slope",
    "optimal_placement",
    "project_placement",
    "queue_for",
    "relaxation_time",
    "rival_area",
    "robust_placement",
    "sample_requests",
    "select",
    "selection_owner",
    "selection_regions",
    "sensitivities",
    "service_scv",
    "serving_distance_pdf",
    "solve",
    "solve_equilibrium",
    "solve_law",
    "transient_wait_tail",
    "unit_quantile",
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
