"""Request types and cache profiles as arrays: the workload that theory, field and simulation share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoedge.errors import ScenarioError
from geoedge.scenario import HardwareConfig, ProfileConfig, WorkloadConfig
from geoedge.scenario.memory import request_bytes
from geoedge.workload.forest import PrefixForest
from geoedge.workload.hardware import (
    Prefill,
    PrefillCurve,
    PrefillTable,
    concurrency,
    usable_kv_bytes,
)
from geoedge.workload.profiles import CacheProfile
from geoedge.workload.verification import served_types, verified_hits

__all__ = ["ACTIVITIES", "Workload", "build_forest", "build_workload", "prefill_curve"]

ACTIVITIES = ("home", "work", "leisure", "street")
"""What a user is doing, in the order of the columns of `Workload.place_weight`."""

NEVER_S = 1e9
"""Prefill of a request at a site that does not serve its type, three decades [s]."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Workload:
    """S cache profiles and Q request types; all arrays are read-only.

    Parameters
    ----------
    profile_names
        Names of the profiles, length S; the first is the fallback.
    type_names
        Names of the request types, length Q.
    type_probability
        Base popularity p_q [–], shape (Q,), sum 1.
    prompt_tokens
        Prompt length L_q [token], shape (Q,).
    output_tokens
        Answer length [token], shape (Q,).
    hit_tokens
        Hits d [token], shape (S, Q), Eq. (4).
    persistent_bytes
        Memory of the caches B_s [B], shape (S,), Eq. (5).
    concurrency
        Requests at once c_s [–], shape (S,), Eq. (13).
    prefill_time
        Residual prefill time T_pf [s], shape (S, Q), Eq. (12).
    full_prefill_time
        Prefill time without a hit g(L_q) [s], shape (Q,).
    decode_time
        Mean decode time D_q [s], shape (Q,).
    place_weight
        Relative rate by activity [–], shape (Q, 4), columns as `ACTIVITIES`.
    hour_weight
        Relative rate by hour of the day [–], shape (Q, 24), constant within an hour.
    placement_probability
        Share of sites by profile π_s [–], shape (S,), sum 1.
    serves
        Whether a site of profile s is a candidate for type q, shape (S, Q); where it is not, its prefill time is
        `NEVER_S`, so that no policy that counts it goes there.
    """

    profile_names: tuple[str, ...]
    type_names: tuple[str, ...]
    type_probability: Floats
    prompt_tokens: Ints
    output_tokens: Ints
    hit_tokens: Ints
    persistent_bytes: Ints
    concurrency: Ints
    prefill_time: Floats
    full_prefill_time: Floats
    decode_time: Floats
    place_weight: Floats
    hour_weight: Floats
    placement_probability: Floats
    serves: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @property
    def occupancy_time(self) -> Floats:
        """Mean time a request holds its server t_{s,q} = T_pf + D_q [s], shape (S, Q), Eq. (14)."""
        return self.prefill_time + self.decode_time

    @property
    def prefill_saving(self) -> Floats:
        """Prefill time saved by hits Δ_{s,q} [s], shape (S, Q), Eq. (6)."""
        return self.full_prefill_time - self.prefill_time


def build_forest(workload: WorkloadConfig) -> PrefixForest:
    """Return the prefix forest of a scenario.

    Parameters
    ----------
    workload
        A scenario's workload.
    """
    return PrefixForest.from_edges((v.name, v.parent or None, v.depth_tokens) for v in workload.prefixes)


def prefill_curve(hardware: HardwareConfig) -> Prefill:
    """Return the prefill curve of a scenario's hardware, measured or by its coefficients.

    Parameters
    ----------
    hardware
        A scenario's hardware.
    """
    if hardware.prefill_table_tokens is not None and hardware.prefill_table_s is not None:
        return PrefillTable(hardware.prefill_table_tokens, hardware.prefill_table_s)
    return PrefillCurve(hardware.prefill_linear_s, hardware.prefill_quadratic_s, hardware.prefill_constant_s)


def build_workload(
    workload: WorkloadConfig, hardware: HardwareConfig, *, curve: Prefill | None = None
) -> Workload:
    """Compute the workload of a scenario: hits, memory, concurrency, times.

    Parameters
    ----------
    workload
        Prefixes, profiles and request types.
    hardware
        GPU and model.
    curve
        Prefill curve in place of the one of the hardware, such as a `PrefillFunction`.

    Raises
    ------
    ScenarioError
        If a profile leaves no memory for requests.
    """
    requests, forest, curve = workload.requests, build_forest(workload), curve or prefill_curve(hardware)
    profiles = tuple(_profile(entry, forest, hardware) for entry in workload.profiles)
    prompt = np.array([r.prompt_tokens for r in requests], dtype=np.int64)
    output = np.array([r.output_tokens for r in requests], dtype=np.int64)
    hits, candidate = verified_hits(workload, forest), served_types(workload)
    return Workload(
        profile_names=tuple(p.name for p in profiles),
        type_names=tuple(r.name for r in requests),
        type_probability=np.array([r.type_probability for r in requests]),
        prompt_tokens=prompt,
        output_tokens=output,
        hit_tokens=hits,
        persistent_bytes=np.array([p.persistent_bytes for p in profiles], dtype=np.int64),
        concurrency=_concurrency(workload, hardware, profiles),
        prefill_time=np.where(candidate, curve.residual(prompt, hits), NEVER_S),
        full_prefill_time=curve(prompt),
        decode_time=_decode_time(output, hardware),
        place_weight=np.array([[getattr(r.place_weight, a) for a in ACTIVITIES] for r in requests]),
        hour_weight=np.array([r.hour_weight for r in requests]),
        placement_probability=np.array([p.placement_probability for p in workload.profiles]),
        serves=candidate,
    )


def _profile(entry: ProfileConfig, forest: PrefixForest, hardware: HardwareConfig) -> CacheProfile:
    profile = CacheProfile.of(entry.name, forest, entry.prefixes, hardware.kv_bytes_per_token)
    if entry.persistent_bytes is None:
        return profile
    return CacheProfile(entry.name, profile.vertices, entry.persistent_bytes)


def _concurrency(
    workload: WorkloadConfig, hardware: HardwareConfig, profiles: tuple[CacheProfile, ...]
) -> Ints:
    usable = usable_kv_bytes(
        hardware.memory_bytes, hardware.memory_fraction, hardware.weights_bytes, hardware.reserve_bytes
    )
    need = request_bytes(hardware, workload)
    servers = [
        entry.concurrency or concurrency(usable, profile.persistent_bytes, need)
        for entry, profile in zip(workload.profiles, profiles, strict=True)
    ]
    if min(servers) < 1:
        name = profiles[servers.index(min(servers))].name
        msg = f"profile {name!r} leaves no memory for requests of {need} B; store less or take more memory"
        raise ScenarioError(msg)
    return np.array(servers, dtype=np.int64)


def _decode_time(output_tokens: Ints, hardware: HardwareConfig) -> Floats:
    if hardware.decode_time_s is not None:
        return np.full(output_tokens.shape, hardware.decode_time_s)
    return output_tokens.astype(np.float64) * hardware.decode_step_s
