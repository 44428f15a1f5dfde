"""The mean field on a map: the router's own choice and every site's own queue, on real sites and real demand.

What does theory's rule do on this map, with each site's own region, load and wait? `field_problem` puts
demand, layout and workload together (`torus_problem` Poisson sites without a city), `solve_field` finds the
waits that bring about themselves, Eqs. (33, 34), as a `FieldAnswer`; `serving_regions` draws who serves
where; `torus_ensemble` averages over Poisson layouts: theory from end to end.

>>> from geoedge import load_scenario, solve
>>> from geoedge.field import solve_field, torus_problem
>>> network = solve(load_scenario("paper")).network
>>> problem = torus_problem(network, side_km=8.0, rng=1, places=4000)
>>> answer = solve_field(problem)
>>> print(f"busiest site {answer.utilization.max():.2f}, coverage {answer.ttft_coverage(0.8):.2f}")
busiest site 0.75, coverage 0.68

Distances are km, rates 1/s, times s. Demand is a raster of places. The field is stationary: people stand
where they are expected, and queues have settled. Radio goes as the crow flies or along streets
(`street_ways`); the city's edge is cut, buffered or a torus.
"""

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
