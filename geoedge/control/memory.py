"""Memory of a site while its caches change: what fits beside the requests that run, byte by byte.

A site that takes up another profile holds the old states and the new ones until the last byte is there, so
fewer requests may run meanwhile. Where even one request would find no room, the site gives up old states first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from geoedge.control.actions import compute_times, transfer_bytes
from geoedge.scenario import HardwareConfig, WorkloadConfig
from geoedge.scenario.memory import request_bytes
from geoedge.workload.hardware import usable_kv_bytes
from geoedge.workload.requests import Workload, prefill_curve

__all__ = ["SiteMemory", "site_memory"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SiteMemory:
    """What a site's memory holds under each profile, and on the way from one to another.

    Parameters
    ----------
    usable_bytes
        Memory for keys and values M [B].
    request_bytes
        Memory of one running request m_run [B].
    stored_bytes
        Memory of the caches B_s [B], shape (S,).
    added_bytes
        States of profile t that profile s lacks [B], shape (S, S), indexed ``[s, t]``.
    concurrency
        Requests at once c_s, shape (S,).
    counted
        Whether the concurrency follows from the memory, shape (S,); where the scenario states it, the memory is
        not what limits, and a site on its way runs the fewer of both profiles' requests.
    compute_s
        Time in which a site computes the states that it lacks [s], shape (S, S).
    """

    usable_bytes: int
    request_bytes: int
    stored_bytes: Ints
    added_bytes: Floats
    concurrency: Ints
    counted: NDArray[np.bool_]
    compute_s: Floats

    @cached_property
    def via(self) -> Ints:
        """Profile held while states of t arrive at a site that held s, shape (S, S); s itself where both fit.

        Elsewhere, of the profiles whose states the site holds already and beside which one request fits, the one
        that leaves the least to fetch.
        """
        n = len(self.concurrency)
        via = np.tile(np.arange(n)[:, None], (1, n))
        for s, t in zip(*np.nonzero(self._servers_beside < 1), strict=True):
            part = np.flatnonzero((self.added_bytes[s] == 0.0) & (self._servers_beside[:, t] >= 1))
            if part.size:
                via[s, t] = part[np.argmin(self.added_bytes[part, t])]
        return via

    @cached_property
    def empty(self) -> Ints:
        """Profile that is left of each one when all its states are lost, shape (S,)."""
        part = np.where(self.added_bytes == 0.0, self.stored_bytes, np.inf)
        return np.asarray(part.argmin(axis=1))

    @cached_property
    def servers(self) -> Ints:
        """Requests at once while a site that held s takes up t, shape (S, S)."""
        return np.asarray(self._servers_beside[self.via, np.arange(len(self.concurrency))])

    @cached_property
    def moved_bytes(self) -> Floats:
        """Bytes that a site fetches on its way from s to t [B], shape (S, S); more where it gives up states first."""
        return np.asarray(self.added_bytes[self.via, np.arange(len(self.concurrency))])

    @cached_property
    def computed_s(self) -> Floats:
        """Time in which a site computes what it lacks on its way from s to t [s], shape (S, S)."""
        return np.asarray(self.compute_s[self.via, np.arange(len(self.concurrency))])

    @cached_property
    def _servers_beside(self) -> Ints:
        """Requests that fit beside the states of s and those of t that s lacks, shape (S, S)."""
        room = (self.usable_bytes - self.union_bytes) // self.request_bytes
        both = np.minimum(self.concurrency[:, None], self.concurrency)
        counted = self.counted[:, None] & self.counted
        return np.asarray(np.where(counted, np.clip(room, 0, both), both))

    @cached_property
    def union_bytes(self) -> Ints:
        """Memory of the states of s and t together [B], shape (S, S)."""
        both = self.stored_bytes[:, None] + np.rint(self.added_bytes).astype(np.int64)
        return np.asarray(np.maximum(both, self.stored_bytes))


def site_memory(config: WorkloadConfig, hardware: HardwareConfig, workload: Workload) -> SiteMemory:
    """Return the memory of a scenario's sites.

    Parameters
    ----------
    config
        Prefixes, profiles and requests as the scenario states them.
    hardware
        GPU and model.
    workload
        The same as arrays.
    """
    return SiteMemory(
        usable_bytes=usable_kv_bytes(
            hardware.memory_bytes, hardware.memory_fraction, hardware.weights_bytes, hardware.reserve_bytes
        ),
        request_bytes=request_bytes(hardware, config),
        stored_bytes=workload.persistent_bytes,
        added_bytes=transfer_bytes(config, hardware.kv_bytes_per_token),
        concurrency=workload.concurrency,
        counted=np.array([profile.concurrency is None for profile in config.profiles]),
        compute_s=compute_times(config, prefill_curve(hardware)),
    )
