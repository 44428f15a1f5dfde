"""What Poisson theory predicts in full, and what it recommends to build.

Which mix of profiles, how many sites, what matters most? `plan` answers by theory as a `DeploymentPlan`;
`plan_places` takes the map and says which of its sites to equip first and with what, as a `PlacesPlan`;
`prediction` gives all that an answer of theory says as plain values.

>>> from geoedge import load_scenario
>>> from geoedge.planning import plan
>>> found = plan(load_scenario("paper"))
>>> found.placement.placement_probability.round(2).tolist()
[0.68, 0.0, 0.32]
>>> print(f"{found.density.with_best_mix.site_density:.2f} sites per km² for {found.density.reliability:.0%} in time")
1.62 sites per km² for 90% in time

Densities are 1/km², memory is in bytes, reliability the share of requests within the target [s]. The mix
obeys memory on average and queues that are stable, the constraints of Eq. (49). Theory's plan takes sites
scattered at random and demand that is even; `plan_places` takes the map, and searches by adding and
exchanging sites, without a promise of the optimum. Neither knows prices of sites, and both want a check by
simulation.
"""

from geoedge.planning.places import PlacesPlan, plan_places
from geoedge.planning.predict import prediction
from geoedge.planning.recommend import DensityPlan, DeploymentPlan, plan

__all__ = ["DensityPlan", "DeploymentPlan", "PlacesPlan", "plan", "plan_places", "prediction"]
