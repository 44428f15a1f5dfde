"""Candidate lists kept from search to search."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geoedge.serving.candidates import NO_LISTS, CandidateLists, Ground, build_lists

__all__ = ["ListKeeper"]

Floats = npt.NDArray[np.float64]

LISTS_FROM_SITES = 12
"""Fewer sites than this are scanned one by one."""
LISTS_FROM_POINTS = 2048
"""Points per request type from which building lists pays."""
TOO_MANY_SCANS = 0.02
"""Share of searches that look at all sites above which lists are made longer,"""
LONGEST_LIST = 48
"""unless they have this many sites in the mean."""


class ListKeeper:
    """Candidate lists from search to search, rebuilt when they no longer hold and longer when they fall short.

    Parameters
    ----------
    slack
        Slack of the first lists for costs that may lie above the offset [s]; see `build_lists`.
    """

    def __init__(self, slack: float = 0.0) -> None:
        self.slack = slack
        self._lists = NO_LISTS
        self._offset: Floats = np.zeros((0, 0))
        self._slack = 0.0

    def lists_for(self, x: Floats, y: Floats, ground: Ground, offset: Floats, rising: bool) -> CandidateLists:
        """Return lists for some places, or none where scanning all sites is cheaper.

        Parameters
        ----------
        x, y
            Places to be searched from [km], shape (m,).
        ground
            Where the sites are and what distance costs.
        offset
            What a site costs beyond the radio delay, at least [s], shape (n, Q).
        rising
            Whether more than the offset may be asked for.
        """
        slack = self.slack if rising else 0.0
        if self._slack == slack and np.array_equal(self._offset, offset) and self._covers(x, y):
            return self._lists
        if len(offset) < LISTS_FROM_SITES or x.size < LISTS_FROM_POINTS * offset.shape[1]:
            return NO_LISTS
        self._lists = build_lists(x, y, ground, offset, slack)
        self._offset, self._slack = offset, slack
        return self._lists

    def review(self, scans: int, searches: int) -> None:
        """Take note of how many searches had to look at all sites."""
        lists = self._lists
        if (
            self._slack > 0
            and scans > TOO_MANY_SCANS * searches
            and lists.site.size < LONGEST_LIST * lists.tail.size
        ):
            self.slack = 2.0 * self._slack

    @property
    def fell_short(self) -> bool:
        """Whether the lists at hand should be made longer."""
        return 0 < self._slack < self.slack

    def _covers(self, x: Floats, y: Floats) -> bool:
        lists = self._lists
        east, north = lists.origin_x + lists.columns / lists.per_x, lists.origin_y + lists.rows / lists.per_y
        return bool(
            lists.columns
            and lists.origin_x <= x.min()
            and x.max() <= east
            and lists.origin_y <= y.min()
            and y.max() <= north
        )
