"""Sessions of a run: made from the scenario, asked epoch by epoch, and put into tables."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from geoedge.results import REDIRECT
from geoedge.serving.sessions import NOBODY, OUTCOMES
from geoedge.serving.warm import SessionRules
from geoedge.simulation.mobility import draw_requests
from geoedge.simulation.tables import Drawn
from geoedge.simulation.turns import SessionSource
from geoedge.streams import stream
from geoedge.theory.services import make_law
from geoedge.workload.requests import prefill_curve
from geoedge.workload.sessions import build_dialogue, later_turns

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from geoedge.city.demand import RequestRates
    from geoedge.field import FieldProblem
    from geoedge.serving.events import ServingEngine
    from geoedge.simulation.mobility import Population
    from geoedge.study import Study

    Floats = NDArray[np.float64]

__all__ = ["SESSION_COLUMNS", "Sessions", "session_tables", "with_later_turns"]

SESSION_COLUMNS: Mapping[str, str] = {
    "session": "int32",
    "turn": "int16",
    "handover": "int8",
    "context_tokens": "int32",
    "full_prefill_s": "float64",
    "warm_tokens": "int32",
    "moved_bytes": "int64",
    "fetch_s": "float64",
    "reload_s": "float64",
}
"""Columns of the records that a run with sessions has besides. ``handover`` is an index into
`geoedge.serving.sessions.OUTCOMES`, ``context_tokens`` the prompt with all its history, ``full_prefill_s`` what it
takes where nothing is cached; ``fetch_s`` and ``reload_s`` are parts of ``prefill_s``."""


class Sessions:
    """What a run with sessions asks, and the rules for its warm states.

    Parameters
    ----------
    study
        The study; its scenario has sessions.
    seed
        Seed of the run.
    """

    def __init__(self, study: Study, seed: int) -> None:
        scenario = study.scenario
        assert scenario.sessions is not None
        self.study, self.seed, self.config = study, seed, scenario.sessions
        self.dialogue = build_dialogue(self.config, scenario.workload, scenario.hardware)
        curve = prefill_curve(scenario.hardware)
        self.prefill_s: Floats = curve(np.arange(self.dialogue.longest_tokens + 1))
        self.source = SessionSource(
            self.dialogue,
            think_time_s=self.config.think_time_s,
            prefill_s=self.prefill_s,
            decode_time=study.workload.decode_time,
            law=make_law(scenario.service.law, scenario.service.scv),
        )

    @classmethod
    def of(cls, study: Study, population: Population, rates: RequestRates, seed: int) -> Sessions | None:
        """Return the sessions of a run whose users stand at its start; None without sessions.

        Those that were begun before go on, as far back as the users' positions are known.
        """
        if study.scenario.sessions is None:
            return None
        sessions = cls(study, seed)
        start = population.now_s
        since = max(population.since_s, start - sessions.source.lead_s)
        if since < start:
            rng = stream(seed, "sessions", "before")
            sessions.source.begin(draw_requests(population, rates, since, start, rng), start, rng)
        return sessions

    def copy(self) -> Self:
        """Return the same sessions, which go on by themselves."""
        other = copy(self)
        other.source = copy(self.source)
        return other

    def asked(self, drawn: Drawn, population: Population, epoch: int, end_s: float) -> Drawn:
        """Return the turns of an epoch in place of what would be asked in it without sessions."""
        rng = stream(self.seed, "sessions", epoch)
        return Drawn(*self.source.ask(drawn.asked, drawn.mark, end_s, population.position, rng))

    def rules(self, profile: NDArray[np.int64]) -> SessionRules:
        """Return the rules for the warm states of sites that hold these profiles, shape (n,)."""
        config, scenario, workload = self.config, self.study.scenario, self.study.workload
        return SessionRules(
            prefill_s=self.prefill_s,
            hit_tokens=workload.hit_tokens[profile],
            answer_tokens=workload.output_tokens,
            kv_bytes_per_token=scenario.hardware.kv_bytes_per_token,
            handover=config.handover,
            host_memory_bytes=config.host_memory_bytes,
            host_bytes_per_s=config.host_bytes_per_s,
            backhaul_bytes_per_s=scenario.control.backhaul_bytes_per_s,
            keep_s=config.keep_s,
            longest_tokens=self.dialogue.longest_state,
        )

    def records(self, table: pa.Table, engine: ServingEngine) -> pa.Table:
        """Return the records of a run with `SESSION_COLUMNS`, and hits that count warm states.

        Parameters
        ----------
        table
            Records without them.
        engine
            The engine at the end of the run.
        """
        turns = engine.turn_records()
        assert turns is not None
        kind = table.column("request_type").to_numpy()
        alone = turns.session == NOBODY
        context = np.where(alone, self.study.workload.prompt_tokens[kind], turns.prompt_tokens)
        columns: dict[str, NDArray[Any]] = {
            "session": turns.session,
            "turn": turns.turn,
            "handover": turns.outcome,
            "context_tokens": context,
            "full_prefill_s": self.prefill_s[context],
            "warm_tokens": turns.warm_tokens,
            "moved_bytes": turns.moved_bytes,
            "fetch_s": turns.stall_s,
            "reload_s": turns.reload_s,
        }
        place, hits = table.column_names.index("hit_tokens"), table.column("hit_tokens").to_numpy()
        table = table.set_column(
            place, "hit_tokens", [np.maximum(hits, turns.warm_tokens).astype(hits.dtype)]
        )
        for name, dtype in SESSION_COLUMNS.items():
            table = table.append_column(name, [columns[name].astype(dtype)])
        return table

    @property
    def facts(self) -> dict[str, Any]:
        """What a run notes of its sessions."""
        return {
            "handover": self.config.handover,
            "mean_turns": [round(float(mean), 6) for mean in self.dialogue.mean_turns],
            "most_turns": self.dialogue.most_turns.tolist(),
        }


def session_tables(
    records: pa.Table, engine: ServingEngine, tau: float, from_s: float
) -> dict[str, pd.DataFrame]:
    """Return the tables ``handovers`` and ``host_memory`` of a run.

    ``handovers`` has one row for what may become of a warm state, over the turns made from a time on: turns, their
    share of all, coverage and mean TTFT with its parts, and bytes fetched. ``host_memory`` has one row a site, over
    the whole run.

    Parameters
    ----------
    records
        Records with `SESSION_COLUMNS`.
    engine
        The engine at the end of the run.
    tau
        TTFT target [s].
    from_s
        When counting begins [s].
    """
    parts = [*_HANDOVER_PARTS, *[REDIRECT] * (REDIRECT in records.column_names)]
    frame = records.select([*parts, "handover", "created_s", "site", "moved_bytes"]).to_pandas()
    frame = frame[frame.created_s >= from_s]
    rows = []
    for code, name in enumerate(OUTCOMES):
        part = frame[frame.handover == code]
        taken = part[part.site >= 0]
        means = {column: float(taken[column].mean()) for column in parts}
        coverage = float((part.ttft_s <= tau).mean()) if len(part) else float("nan")
        rows.append(
            {
                "handover": name,
                "turns": len(part),
                "share": len(part) / max(len(frame), 1),
                "coverage": coverage,
            }
            | means
            | {"moved_bytes": int(part.moved_bytes.sum())}
        )
    hosts = engine.host_memory
    assert hosts is not None
    memory = {"site": np.arange(len(hosts)), "room_bytes": hosts["limit"], "peak_bytes": hosts["peak"]}
    lost = {f"states_{name}": hosts[name] for name in ("evicted", "expired", "refused")}
    return {"handovers": pd.DataFrame(rows), "host_memory": pd.DataFrame(memory | lost)}


def with_later_turns(problem: FieldProblem, study: Study) -> FieldProblem:
    """Return a field problem in which later turns of sessions are request types of their own; itself without sessions.

    Parameters
    ----------
    problem
        A problem of the study's request types.
    study
        The study.
    """
    scenario = study.scenario
    if scenario.sessions is None:
        return problem
    later = later_turns(scenario.sessions, scenario.workload, scenario.hardware, study.workload)
    return replace(
        problem,
        rate=np.hstack((problem.rate * (1.0 - later.share), problem.rate * later.share)),
        prefill_time=np.hstack((problem.prefill_time, later.weighed_s)),
        occupancy_time=np.hstack((problem.occupancy_time, later.taken_s + study.workload.decode_time)),
        hit_tokens=np.hstack((problem.hit_tokens, later.hit_tokens)),
        prompt_tokens=np.concatenate((problem.prompt_tokens, later.prompt_tokens)),
        full_prefill_time=np.concatenate((problem.full_prefill_time, later.full_s)),
    )


_HANDOVER_PARTS = ("ttft_s", "radio_s", "wait_s", "prefill_s", "fetch_s", "reload_s")
