"""Memory of a site in whole bytes, shared by the scenario, which must refuse, and the workload, which computes."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geoedge.scenario.workload import HardwareConfig, WorkloadConfig

__all__ = ["concurrency", "longest_tokens", "request_bytes", "runtime_bytes", "usable_kv_bytes"]


def usable_kv_bytes(memory_bytes: int, memory_fraction: float, weights_bytes: int, reserve_bytes: int) -> int:
    """Return the memory left for keys and values, memory × fraction − weights − reserve [B].

    The fraction is taken as the decimal number it is written as, so that the result is exact.
    It is negative where the weights do not fit.

    Parameters
    ----------
    memory_bytes
        Memory M of the GPU [B].
    memory_fraction
        Share of it that the engine may use.
    weights_bytes
        Weights of the model [B].
    reserve_bytes
        What the engine keeps for itself [B].
    """
    return int(Fraction(repr(memory_fraction)) * memory_bytes) - weights_bytes - reserve_bytes


def runtime_bytes(longest_tokens: int, kv_bytes_per_token: int) -> int:
    """Return the memory of one running request, m_run = longest prompt with answer × κ [B].

    Parameters
    ----------
    longest_tokens
        Longest prompt with its answer [token].
    kv_bytes_per_token
        Keys and values κ of one token [B/token].
    """
    return longest_tokens * kv_bytes_per_token


def longest_tokens(workload: WorkloadConfig) -> int:
    """Return the longest prompt with its answer [token].

    Parameters
    ----------
    workload
        A scenario's workload.
    """
    return max(request.prompt_tokens + request.output_tokens for request in workload.requests)


def request_bytes(hardware: HardwareConfig, workload: WorkloadConfig) -> int:
    """Return the memory of one running request m_run as a scenario states it, or by its longest [B].

    Parameters
    ----------
    hardware, workload
        Tables of the scenario.
    """
    return hardware.runtime_bytes_per_request or runtime_bytes(
        longest_tokens(workload), hardware.kv_bytes_per_token
    )


def concurrency(usable_bytes: int, persistent_bytes: int, request_bytes: int) -> int:
    """Return the requests that run at once, c = ⌊(M − B)/m_run⌋ in whole bytes, Eq. (13).

    It is 0 where the cache leaves too little room for one request.

    Parameters
    ----------
    usable_bytes
        Memory M for keys and values [B].
    persistent_bytes
        What the cache takes of it, B [B].
    request_bytes
        What one running request takes, m_run [B].
    """
    return max(0, (usable_bytes - persistent_bytes) // request_bytes)
