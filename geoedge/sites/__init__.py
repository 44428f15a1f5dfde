"""Where edge sites stand and what each holds: hosts of a real city, files of one's own, point processes."""

from __future__ import annotations

from geoedge.sites.layout import Layout, make_layout, place_profiles
from geoedge.sites.processes import poisson_layout
from geoedge.sites.towers import HOST_KINDS, host_layout, merge_nearby, read_sites

__all__ = [
    "HOST_KINDS",
    "Layout",
    "host_layout",
    "make_layout",
    "merge_nearby",
    "place_profiles",
    "poisson_layout",
    "read_sites",
]
