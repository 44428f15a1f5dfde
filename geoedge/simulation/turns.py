"""People who ask again: which requests open a session, and when its later turns are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from geoedge.serving.warm import Turns
from geoedge.simulation.mobility import Asked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.theory.services import ServiceLaw
    from geoedge.workload.sessions import Dialogue

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Locate = Callable[[Ints, Floats], tuple[Floats, NDArray[np.int8]]]

__all__ = ["Asking", "SessionSource"]

LEAD_LENGTHS = 6.0
"""How long before the window sessions may have begun, in mean lengths of a session: e^-6 of them go on longer."""


class Asking(NamedTuple):
    """The requests of an epoch as turns of sessions, sorted by time.

    Parameters
    ----------
    asked
        The requests.
    mark
        Service mark of each, shape (m,).
    turns
        Which turn of which session each is.
    """

    asked: Asked
    mark: Floats
    turns: Turns


class _Later(NamedTuple):
    """Turns that are still to come."""

    created_s: Floats
    user: Ints
    request_type: Ints
    mark: Floats
    session: Ints
    turn: Ints

    def part(self, chosen: NDArray[np.bool_]) -> _Later:
        return _Later._make(column[chosen] for column in self)

    def joined(self, other: _Later) -> _Later:
        return _Later._make(np.concatenate(pair) for pair in zip(self, other, strict=True))

    @classmethod
    def none(cls) -> _Later:
        whole = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(0), whole, whole, np.zeros(0), whole, whole)


class SessionSource:
    """Turns requests into sessions, epoch by epoch.

    A request opens a session with the chance 1/m of its type's mean number of turns m, so that the mean number of
    requests stays what it was; the others are not made. Requests that stay keep their instant, place, type and
    mark. A turn is made when the answer to the last one, had nothing been cached and had nobody waited, has come and
    the user has thought; so nothing that people do depends on how they are served.

    Parameters
    ----------
    dialogue
        Length and number of turns.
    think_time_s
        Mean time to think [s].
    prefill_s
        Prefill time of 0, 1, 2, … tokens [s].
    decode_time
        Mean decode of each request type [s], shape (Q,).
    law
        Service law.
    """

    def __init__(
        self,
        dialogue: Dialogue,
        *,
        think_time_s: float,
        prefill_s: Floats,
        decode_time: Floats,
        law: ServiceLaw,
    ) -> None:
        self.dialogue = dialogue
        self.think_time_s = think_time_s
        self.prefill_s = prefill_s
        self.decode_time = decode_time
        self.law = law
        self._later = _Later.none()
        self.sessions = 0

    @property
    def lead_s(self) -> float:
        """How long before a window sessions begin that go on into it [s]."""
        last = self.dialogue.most_turns - 1
        answer = self.prefill_s[self.dialogue.prompt_tokens(last)] + self.decode_time
        # a session without end has a geometric number of turns
        turns = self.dialogue.going_on / max(1.0 - self.dialogue.going_on, 1e-12)
        return float(LEAD_LENGTHS * turns * (self.think_time_s + answer.max()))

    def begin(self, asked: Asked, start_s: float, rng: np.random.Generator) -> None:
        """Take up the sessions that were begun before a window, of which only later turns fall into it.

        Parameters
        ----------
        asked
            What people would have asked without sessions before the window.
        start_s
            Start of the window [s].
        rng
            Random stream.
        """
        mark = rng.standard_exponential(len(asked.created_s))
        self._open(asked, mark, rng)
        self._later = self._later.part(self._later.created_s >= start_s)

    def ask(
        self, asked: Asked, mark: Floats, end_s: float, locate: Locate, rng: np.random.Generator
    ) -> Asking:
        """Return the turns of an epoch.

        Parameters
        ----------
        asked
            What people would ask without sessions in the epoch.
        mark
            Service mark of each, shape (n,).
        end_s
            End of the epoch [s]; turns beyond it are made in later epochs.
        locate
            Returns where users are at instants [m], shape (m, 2), and what they do, shape (m,).
        rng
            Random stream of this epoch.
        """
        first, first_mark, session = self._open(asked, mark, rng)
        due = self._later.created_s < end_s
        later, self._later = self._later.part(due), self._later.part(~due)
        xy, activity = locate(later.user, later.created_s)
        columns: tuple[NDArray[Any], ...] = (
            *(later.created_s, later.user, later.request_type),
            *(xy[:, 0], xy[:, 1], activity),
        )
        opened: tuple[NDArray[Any], ...] = first
        together = [
            np.concatenate((one, other.astype(one.dtype))) for one, other in zip(opened, columns, strict=True)
        ]
        order = np.argsort(together[0], kind="stable")
        turn = np.concatenate((np.zeros(len(session), dtype=np.int64), later.turn))[order]
        merged = Asked._make(column[order] for column in together)
        return Asking(
            merged,
            np.concatenate((first_mark, later.mark))[order],
            Turns(
                np.concatenate((session, later.session))[order],
                turn,
                self.dialogue.prompt_tokens(turn, merged.request_type),
            ),
        )

    def _open(self, asked: Asked, mark: Floats, rng: np.random.Generator) -> tuple[Asked, Floats, Ints]:
        """Open sessions and note their later turns; return the requests that open them, marks and sessions."""
        chance = 1.0 / self.dialogue.mean_turns[asked.request_type]
        kept = rng.random(len(chance)) < chance
        first, first_mark = Asked._make(column[kept] for column in asked), mark[kept]
        kind = first.request_type.astype(np.int64)
        count = self.dialogue.draw_turns(kind, rng)
        session = self.sessions + np.arange(len(count))
        self.sessions += len(count)
        owner = np.repeat(np.arange(len(count)), count)
        turn = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        marks, think = rng.standard_exponential(len(owner)), rng.standard_exponential(len(owner))
        opening = turn == 0
        marks[opening] = first_mark
        gap = self._answer_s(kind[owner], turn, marks) + self.think_time_s * think
        since = np.cumsum(gap) - gap
        created = first.created_s[owner] + since - since[opening][owner]
        every = _Later(created, first.user[owner].astype(np.int64), kind[owner], marks, session[owner], turn)
        self._later = self._later.joined(every.part(~opening))
        return first, first_mark, session

    def _answer_s(self, kind: Ints, turn: Ints, mark: Floats) -> Floats:
        """Return how long answers take where nothing is cached and nobody waits [s]."""
        decode = self.decode_time[kind]
        prefill = self.prefill_s[self.dialogue.prompt_tokens(turn, kind)]
        fixed, scale = self.law.parts(prefill, decode, prefill + decode)
        return np.asarray(fixed + self.law.unit_service(mark) * scale)
