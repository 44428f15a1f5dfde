"""What comparing controllers gives: tables, sentences, a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from geoedge.compare.controllers.hours import hours_table
from geoedge.compare.controllers.tables import change_table, contest_table, epoch_table

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.results import Results
    from geoedge.style import PaperFigure
    from geoedge.sweep import Replication

__all__ = ["ORACLE", "WORTH_IT", "ControllerComparison"]

ORACLE = "oracle"
"""The contestant that knows what will be asked, as far as the others can know it."""

WORTH_IT = 0.03
"""An oracle that gains so much coverage over the baseline leaves a controller something to earn."""


@dataclass(frozen=True, eq=False)
class ControllerComparison:
    """Controllers on the same people and requests.

    Parameters
    ----------
    title
        What was studied.
    ttft_target_s
        TTFT target τ₀ [s].
    window_s
        From when to when requests count [s since midnight].
    baseline
        Contestant that the others are measured against.
    runs
        Replications by contestant, paired by their place.
    """

    title: str
    ttft_target_s: float
    window_s: tuple[float, float]
    baseline: str
    runs: Mapping[str, Sequence[Replication]] = field(repr=False)

    @property
    def replications(self) -> int:
        """Paired runs of each contestant."""
        return len(self.runs[self.baseline])

    @property
    def kept(self) -> dict[str, Results]:
        """Results of the first run of the contestants that were to keep them."""
        return {name: line[0].results for name, line in self.runs.items() if line[0].results is not None}

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a contestant.

        Columns controller, replications, coverage (share of requests in time), change (of coverage against the
        baseline), oracle_share (of what the oracle gains over the baseline; NaN where that is not told apart from
        zero), each with _low and _high (95 % interval of paired runs), p95_ttft_s, mean_ttft_s, rejected_share (of
        requests, by all sites), and per run: moves,
        moved_gb, returns (moves of a site back to what it held at most four epochs before), unstable (epochs and
        sites whose offered load reached capacity).
        """
        return contest_table(self.runs, self.baseline, ORACLE)

    @cached_property
    def changes(self) -> pd.DataFrame:
        """One row a contestant and metric: controller, metric, value, change, change_low, change_high (95 %)."""
        return change_table(self.runs, self.baseline)

    @cached_property
    def epochs(self) -> pd.DataFrame:
        """One row a contestant and epoch.

        Columns controller, epoch, start_s, end_s, coverage and change (against the baseline), each with _low and
        _high (95 % interval), requests, utilization, mean_wait_s, moves, moved_gb (of the epoch).
        """
        return epoch_table(self.runs, self.baseline)

    @cached_property
    def hours(self) -> pd.DataFrame:
        """What is earned in the epochs in which the oracle gains three points or more, and in all others.

        Columns worth_it, controller, epochs and requests (a run), change (of coverage against the baseline) and
        oracle_share, each with _low and _high (95 % interval of paired runs). Which epochs of a run are worth it is
        told by the other runs; it takes three, and the oracle.
        """
        return hours_table(self.runs, self.baseline, ORACLE, self.window_s[0], WORTH_IT)

    def __repr__(self) -> str:
        return self._shown().to_string()

    def _repr_html_(self) -> str:
        return str(self._shown().to_html())

    def _shown(self) -> pd.DataFrame:
        import pandas as pd

        from geoedge.compare.controllers.words import heading, row_words

        names = heading(self)
        rows = [row_words(self, row) for _, row in self.table.iterrows()]
        return pd.DataFrame(rows, columns=names).set_index(names[0])

    def sentences(self) -> list[str]:
        """Return what the comparison says, a sentence each."""
        from geoedge.compare.controllers.words import sentences

        return sentences(self)

    def figure(self, *, columns: int = 2) -> PaperFigure:
        """Return the picture: coverage over the window, what each earns over the baseline, and what it moves.

        Parameters
        ----------
        columns
            Columns of a paper, 1 or 2.
        """
        from geoedge.compare.controllers.picture import picture

        return picture(self, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the runs as plain values."""
        tables = {
            name: getattr(self, name).to_dict(orient="records")
            for name in ("table", "changes", "epochs", "hours")
        }
        words = {name: getattr(self, name) for name in ("title", "ttft_target_s", "baseline")}
        return words | {"window_s": list(self.window_s)} | tables | {"sentences": self.sentences()}
