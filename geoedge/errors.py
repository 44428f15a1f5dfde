"""Errors of geoedge: each is one line that says where, what was given, what is allowed and the cure."""

from __future__ import annotations

__all__ = ["CityError", "DownloadError", "GeoEdgeError", "OutputError", "ScenarioError"]


class GeoEdgeError(ValueError):
    """Base of every error that a user can cause and cure."""


class ScenarioError(GeoEdgeError):
    """A scenario file or value that cannot be used."""


class CityError(GeoEdgeError):
    """A map file, or the sites on it, that cannot be used."""


class DownloadError(CityError):
    """A map service that did not deliver."""


class OutputError(GeoEdgeError):
    """A place that cannot be written to, or a run folder that cannot be read."""
