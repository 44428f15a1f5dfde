"""Predicting a network of which some sites are down: the others, alone."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoedge.control.planners.base import Prediction, Predictor

__all__ = ["OpenSites"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class OpenSites:
    """A predictor of all sites, of which one that knows the open ones alone is asked.

    A site that is down serves nobody, and its price is that of a site without a stable wait.

    Parameters
    ----------
    inner
        Predictor of the sites that are open, in their order.
    is_open
        Which sites are, shape (n,).
    idle_occupancy
        Mean time that a request would hold a server [s], by profile, shape (S,): what is said of a site that
        serves nothing.
    """

    def __init__(self, inner: Predictor, is_open: NDArray[np.bool_], idle_occupancy: Floats) -> None:
        self.inner, self.is_open, self.idle_occupancy = inner, is_open, idle_occupancy

    def coarse(self) -> OpenSites:
        """Return the same on coarse cells."""
        return OpenSites(self.inner.coarse(), self.is_open, self.idle_occupancy)

    def solve(self, profile: Ints, start: Prediction | None = None) -> Prediction:
        """Return the equilibrium of a placement.

        Parameters
        ----------
        profile
            Profile of each site, shape (n,).
        start
            Equilibrium of a placement or demand like it, to start from.
        """
        found = self.inner.solve(profile[self.is_open], self._within(start))
        return self._around(found, profile)

    def screen(self, profile: Ints, base: Prediction) -> Floats:
        """Return the rough gain in coverage of giving site i profile s alone, none of a site that is down, shape (n, S).

        Parameters
        ----------
        profile
            The placement, shape (n,).
        base
            Its equilibrium.
        """
        within = self._within(base)
        assert within is not None
        gains = np.full((len(profile), len(self.idle_occupancy)), -np.inf)
        gains[self.is_open] = self.inner.screen(profile[self.is_open], within)
        return gains

    def judge(self, profile: Ints, wait: Floats) -> float:
        """Return the coverage of a placement under advertised waits that are no equilibrium.

        Parameters
        ----------
        profile
            Profile of each site, shape (n,).
        wait
            What each advertises [s], shape (n,).
        """
        return self.inner.judge(profile[self.is_open], wait[self.is_open])

    def _within(self, prediction: Prediction | None) -> Prediction | None:
        """Return what is predicted of the open sites."""
        if prediction is None:
            return None
        arrays: dict[str, Any] = {
            field.name: value[self.is_open]
            for field in fields(prediction)
            if isinstance(value := getattr(prediction, field.name), np.ndarray)
        }
        return replace(prediction, **arrays)

    def _around(self, found: Prediction, profile: Ints) -> Prediction:
        """Return a prediction of all sites from that of the open ones."""
        idle = {"wait": np.full(len(profile), np.inf), "occupancy": self.idle_occupancy[profile]}
        arrays: dict[str, Any] = {}
        for field in fields(found):
            value = getattr(found, field.name)
            if isinstance(value, np.ndarray):
                arrays[field.name] = idle.get(field.name, np.zeros(len(profile), dtype=value.dtype))
                arrays[field.name][self.is_open] = value
        return replace(found, **arrays | {"profile": profile})
