"""What Poisson theory predicts in full, and what it recommends to build."""

from geoedge.planning.places import PlacesPlan, plan_places
from geoedge.planning.predict import prediction
from geoedge.planning.recommend import DensityPlan, DeploymentPlan, plan

__all__ = ["DensityPlan", "DeploymentPlan", "PlacesPlan", "plan", "plan_places", "prediction"]
