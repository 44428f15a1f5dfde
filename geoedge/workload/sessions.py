"""How long the turns of a session are, and how many there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoedge.scenario.sections import HardwareConfig, WorkloadConfig
from geoedge.scenario.sessions import SessionsConfig, added_tokens, context_limit, most_turns
from geoedge.workload.requests import NEVER_S, Workload, prefill_curve

__all__ = ["Dialogue", "LaterTurns", "build_dialogue", "later_turns"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Dialogue:
    """The turns of a session by request type; turns are counted from 0.

    Parameters
    ----------
    going_on
        Chance of another turn after each, as long as there is room, 1 − 1/m for a mean of m turns [–].
    first_tokens
        Prompt of the first turn L_q [token], shape (Q,).
    added_tokens
        What a later turn adds [token], shape (Q,).
    answer_tokens
        Answer to every turn [token], shape (Q,).
    most_turns
        Turns for which a running request has memory, shape (Q,).
    """

    going_on: float
    first_tokens: Ints
    added_tokens: Ints
    answer_tokens: Ints
    most_turns: Ints

    @property
    def mean_turns(self) -> Floats:
        """Mean number of turns, the geometric number cut at the most, shape (Q,)."""
        if self.going_on == 0.0:
            return np.ones(self.most_turns.shape)
        return np.asarray((1.0 - self.going_on**self.most_turns) / (1.0 - self.going_on))

    @property
    def longest_tokens(self) -> int:
        """Longest prompt with its history and answer [token]."""
        return int((self.prompt_tokens(self.most_turns - 1) + self.answer_tokens).max())

    @property
    def longest_state(self) -> Ints:
        """Longest state after which there is room for another turn [token], shape (Q,); 0 where there is none."""
        last = self.prompt_tokens(self.most_turns - 2) + self.answer_tokens
        return np.asarray(np.where(self.most_turns > 1, last, 0))

    def prompt_tokens(self, turn: npt.ArrayLike, request_type: npt.ArrayLike | None = None) -> Ints:
        """Return the prompt of a turn with all its history [token].

        Parameters
        ----------
        turn
            Number of the turn, shape (m,).
        request_type
            Request type of each, shape (m,); all types in their order by default.
        """
        kind = slice(None) if request_type is None else np.asarray(request_type, dtype=np.int64)
        step = self.answer_tokens + self.added_tokens
        return np.asarray(self.first_tokens[kind] + np.asarray(turn, dtype=np.int64) * step[kind])

    def draw_turns(self, request_type: npt.ArrayLike, rng: np.random.Generator) -> Ints:
        """Return how many turns sessions have, shape (m,).

        Parameters
        ----------
        request_type
            Request type of each session, shape (m,).
        rng
            Random stream.
        """
        kind = np.asarray(request_type, dtype=np.int64)
        return np.minimum(rng.geometric(1.0 - self.going_on, size=kind.size), self.most_turns[kind])


def build_dialogue(sessions: SessionsConfig, workload: WorkloadConfig, hardware: HardwareConfig) -> Dialogue:
    """Return the turns of a scenario's sessions.

    Parameters
    ----------
    sessions, workload, hardware
        Tables of the scenario.
    """
    limit = context_limit(sessions, hardware, workload)
    first = [request.prompt_tokens for request in workload.requests]
    added = [added_tokens(sessions, request, workload) for request in workload.requests]
    answer = [request.output_tokens for request in workload.requests]
    most = [most_turns(limit, *lengths) for lengths in zip(first, added, answer, strict=True)]
    columns = (np.array(column, dtype=np.int64) for column in (first, added, answer, most))
    return Dialogue(1.0 - 1.0 / sessions.mean_turns, *columns)


@dataclass(frozen=True, eq=False)
class LaterTurns:
    """Later turns in the mean, as request types beside those of first turns.

    Parameters
    ----------
    share
        Share of later turns among the requests of each type [–], shape (Q,).
    weighed_s
        Prefill by which their site is found: that of the first turn where they stay with it, else their own without
        a warm state [s], shape (S, Q); `NEVER_S` where the type is not served.
    taken_s
        Prefill with a warm state at the site [s], shape (S, Q).
    full_s
        Prefill without any cache [s], shape (Q,).
    prompt_tokens
        Prompt with history [token], shape (Q,).
    hit_tokens
        Tokens of it that are not computed [token], shape (S, Q).
    """

    share: Floats
    weighed_s: Floats
    taken_s: Floats
    full_s: Floats
    prompt_tokens: Floats
    hit_tokens: Floats


def later_turns(
    sessions: SessionsConfig, config: WorkloadConfig, hardware: HardwareConfig, workload: Workload
) -> LaterTurns:
    """Return the later turns of a scenario's sessions in the mean.

    All find their state warm at the site: states that are lost, and fetches that a turn must wait for, are left out.
    Where they may stay they are taken to go where first turns go, for that is where their states are.

    Parameters
    ----------
    sessions, config, hardware
        Tables of the scenario.
    workload
        The workload as arrays.
    """
    dialogue = build_dialogue(sessions, config, hardware)
    curve, per_token = prefill_curve(hardware), hardware.kv_bytes_per_token
    turn = np.arange(1, max(2, int(dialogue.most_turns.max())))[:, None]
    weight = np.where(turn < dialogue.most_turns, dialogue.going_on**turn, 0.0)
    weight = weight / np.maximum(weight.sum(axis=0), 1e-300)
    prompt = dialogue.prompt_tokens(turn)
    history = prompt - dialogue.added_tokens
    hits = workload.hit_tokens[:, None, :]
    reload = np.maximum(history - hits, 0) * per_token / sessions.host_bytes_per_s
    covered = np.maximum(history, hits)
    taken = (weight * (reload + curve.residual(prompt, covered))).sum(axis=1)
    again = np.where(workload.serves, (weight * curve.residual(prompt, hits)).sum(axis=1), NEVER_S)
    stays = sessions.handover in ("by_cost", "stay")
    return LaterTurns(
        1.0 - 1.0 / dialogue.mean_turns,
        np.asarray(workload.prefill_time if stays else again),
        np.asarray(taken),
        np.asarray((weight * curve(prompt)).sum(axis=0)),
        np.asarray((weight * prompt).sum(axis=0)),
        np.asarray((weight * covered).sum(axis=1)),
    )
