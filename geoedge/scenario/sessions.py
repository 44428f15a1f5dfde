"""Sessions: people who ask several times in a row, and the warm state that each turn leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, get_args

from pydantic import Field

from geoedge.scenario import memory
from geoedge.scenario.base import MAX_BYTES, MAX_TOKENS, Section
from geoedge.units import GIB

if TYPE_CHECKING:
    from geoedge.scenario import Scenario
    from geoedge.scenario.sections import HardwareConfig, RequestConfig, WorkloadConfig

__all__ = ["HANDOVERS", "SessionsConfig", "added_tokens", "context_limit", "most_turns", "problems"]

Handover = Literal["by_cost", "stay", "migrate", "re_prefill"]
HANDOVERS: tuple[Handover, ...] = get_args(Handover)
"""What may become of a warm state: see `SessionsConfig.handover`."""
SESSION_LAWS = ("prefill_plus_decode", "deterministic")
"""Service laws whose service holds the prefill itself, so that a warm state shortens it."""


class SessionsConfig(Section):
    """Sessions of several turns; without this table every request stands alone.

    The rate of a user goes on counting turns: first turns are thinned by the mean number of turns of their type.
    Theory and field take every turn for a first one; the waits that a run's sites advertise know the later ones in the
    mean. A later turn's choice needs waits that are true now: by cost is best with ``routing.advertise = "state"``.
    Each fetch comes at the whole backhaul rate of its site: fetches queue neither behind each other nor behind the
    controller's transfers. A state of 4,096 tokens is 0.4 s of 10 Gbit/s, so that runs are too kind to migration where
    a site fetches more than about one a second.
    """

    mean_turns: float = Field(
        default=4.0,
        ge=1.0,
        le=1000.0,
        description="mean number of turns (geometric), cut where a running request's memory or the context ends [turns]",
    )
    think_time_s: float = Field(
        default=60.0,
        ge=0.0,
        le=86_400.0,
        description="mean time from an answer, had nothing been cached and nobody waited, to the next turn "
        "(exponential) [s]",
    )
    turn_tokens: int | None = Field(
        default=None,
        ge=1,
        le=MAX_TOKENS,
        description="tokens that a later turn adds; the type's prompt beyond its prefix if omitted [token]",
    )
    handover: Handover = Field(
        default="by_cost",
        description="the router weighs every site with the cheapest of stay, fetch and recompute there; or the turn "
        "stays where its state is; or it goes where a new session would go, and fetches or recomputes [–]",
    )
    keep_s: float = Field(
        default=1800.0, gt=0.0, le=604_800.0, description="time a warm state is kept after its last use [s]"
    )
    host_memory_bytes: int = Field(
        default=64 * GIB,
        ge=0,
        le=MAX_BYTES,
        description="host memory of a site for warm states; the least recently used goes first [B]",
    )
    host_bytes_per_s: float = Field(
        default=2.0e10,
        gt=0.0,
        le=1e13,
        description="rate from host memory to the GPU, about what PCIe 4.0 x16 gives [B/s]",
    )
    context_tokens: int = Field(
        default=131_072,
        ge=1,
        le=1_000_000,
        description="prompt with history and answer, at most; never more than a running request has memory for [token]",
    )


def context_limit(sessions: SessionsConfig, hardware: HardwareConfig, workload: WorkloadConfig) -> int:
    """Return the longest prompt with history and answer [token]: the model's, or what m_run holds."""
    return min(
        sessions.context_tokens, memory.request_bytes(hardware, workload) // hardware.kv_bytes_per_token
    )


def added_tokens(sessions: SessionsConfig, request: RequestConfig, workload: WorkloadConfig) -> int:
    """Return the tokens that a later turn of a request type adds to its prompt [token], at least 1."""
    depth = {prefix.name: prefix.depth_tokens for prefix in workload.prefixes}
    return sessions.turn_tokens or max(1, request.prompt_tokens - depth.get(request.prefix, 0))


def most_turns(limit: int, first: int, added: int, answer: int) -> int:
    """Return how many turns fit into a context: the k-th ends at first + (k − 1)(answer + added) + answer tokens."""
    return 1 + max(0, limit - first - answer) // (answer + added)


def problems(scenario: Scenario) -> Iterator[str]:
    """Return what of a scenario does not go with its sessions, one line each."""
    sessions = scenario.sessions
    if sessions is None:
        return
    if scenario.city is None:
        yield "sessions: a study without [city] has no users who could go on; remove [sessions], or add [city]"
    law = scenario.service.law
    if law not in SESSION_LAWS:
        yield (
            f'sessions: service.law = "{law}" does not hold the prefill itself, so that a warm state could not shorten it; '
            f"use one of {', '.join(SESSION_LAWS)}, or remove [sessions]"
        )
    yield from _room(scenario, sessions)


def _room(scenario: Scenario, sessions: SessionsConfig) -> Iterator[str]:
    work = scenario.workload
    longest = memory.longest_tokens(work)
    if sessions.context_tokens < longest:
        yield (
            f"sessions.context_tokens = {sessions.context_tokens}: the longest prompt with its answer has {longest} "
            f"tokens; give at least {longest}"
        )
        return
    limit = context_limit(sessions, scenario.hardware, work)
    lengths = [
        request.prompt_tokens + added_tokens(sessions, request, work) + 2 * request.output_tokens
        for request in work.requests
    ]
    if sessions.mean_turns > 1 and min(lengths) > limit:
        need = memory.runtime_bytes(min(lengths), scenario.hardware.kv_bytes_per_token)
        yield (
            f"sessions.mean_turns = {sessions.mean_turns:g}: a second turn needs {min(lengths)} tokens, and a running "
            f"request has room for {limit}; give hardware.runtime_bytes_per_request of at least {need} B "
            f"and sessions.context_tokens of at least {min(lengths)}, or mean_turns = 1"
        )
