"""Which places to equip first, and with which profile, by the field."""

from geoedge.planning.places.plan import PlacesPlan, plan_places

__all__ = ["PlacesPlan", "plan_places"]
