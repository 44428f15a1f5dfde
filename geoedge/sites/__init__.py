"""Where edge sites stand and what each holds: hosts of a real city, files of one's own, point processes.

`make_layout` gives the sites that a scenario asks for, `read_sites` those of a file (`survey_sites` also says
what is wrong with it), `draw_layout` those of a point process. `layout_statistics` tells how far a `Layout`
is from Poisson, `fit_process` which process describes it.

>>> from geoedge.sites import clark_evans, draw_layout
>>> regular = draw_layout("lattice", (4000.0, 4000.0), density_per_km2=3.0, rng=1)
>>> len(regular), clark_evans(regular, simulations=99, rng=1).p_value
(48, 0.01)

Coordinates are metres in one projected CRS, densities 1/km². A window is a city's land, a polygon or a torus;
without one nothing can be called close or far. Sites of a file are rows that were cleaned and counted, not
verified; those of shipped cities are candidate hosts, not an operator's network. Estimators are
edge-corrected as in Baddeley, Rubak and Turner, *Spatial Point Patterns* (2015), and checked against the R
package spatstat.
"""

from __future__ import annotations

from geoedge.sites._edges import StudyWindow, concave_window, convex_window, study_window
from geoedge.sites.contrast import ProcessFit
from geoedge.sites.envelopes import Envelope, envelope_test, global_test
from geoedge.sites.fitting import Fits, fit_process
from geoedge.sites.grouping import merge_nearby
from geoedge.sites.hosts import HOST_KINDS, host_layout
from geoedge.sites.hypotheses import following_demand, merged_alike, uneven_poisson
from geoedge.sites.layout import Layout, make_layout, place_profiles
from geoedge.sites.placements import PLACEMENTS, place
from geoedge.sites.processes import PROCESSES, draw_layout, poisson_layout
from geoedge.sites.spacing import ClarkEvans, clark_evans
from geoedge.sites.statistics import (
    Curve,
    f_function,
    g_function,
    j_function,
    k_function,
    l_function,
    pair_correlation,
)
from geoedge.sites.survey import SiteSurvey, survey_sites
from geoedge.sites.towers import read_sites
from geoedge.sites.unevenness import SmoothedSites, smoothed_sites
from geoedge.sites.verdicts import LayoutStatistics, layout_statistics, verdict

__all__ = [
    "HOST_KINDS",
    "PLACEMENTS",
    "PROCESSES",
    "ClarkEvans",
    "Curve",
    "Envelope",
    "Fits",
    "Layout",
    "LayoutStatistics",
    "ProcessFit",
    "SiteSurvey",
    "SmoothedSites",
    "StudyWindow",
    "clark_evans",
    "concave_window",
    "convex_window",
    "draw_layout",
    "envelope_test",
    "f_function",
    "fit_process",
    "following_demand",
    "g_function",
    "global_test",
    "host_layout",
    "j_function",
    "k_function",
    "l_function",
    "layout_statistics",
    "make_layout",
    "merge_nearby",
    "merged_alike",
    "pair_correlation",
    "place",
    "place_profiles",
    "poisson_layout",
    "read_sites",
    "smoothed_sites",
    "study_window",
    "survey_sites",
    "uneven_poisson",
    "verdict",
]
