"""The mean field on a map: the router's own choice and every site's own queue, on real sites and real demand."""

from __future__ import annotations

from geoedge.field.answer import FieldAnswer
from geoedge.field.edges import EDGES, Edged, edged
from geoedge.field.ensemble import EnsembleAnswer, torus_ensemble
from geoedge.field.equilibrium import SCOPES, evaluate, solve_field
from geoedge.field.problem import FieldProblem, Geometry, field_problem
from geoedge.field.regions import RegionRaster, region_raster, serving_regions
from geoedge.field.streets import StreetWays, street_ways
from geoedge.field.torus import torus_problem, torus_side

__all__ = [
    "EDGES",
    "SCOPES",
    "Edged",
    "EnsembleAnswer",
    "FieldAnswer",
    "FieldProblem",
    "Geometry",
    "RegionRaster",
    "StreetWays",
    "edged",
    "evaluate",
    "field_problem",
    "region_raster",
    "serving_regions",
    "solve_field",
    "street_ways",
    "torus_ensemble",
    "torus_problem",
    "torus_side",
]
