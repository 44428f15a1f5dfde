"""What a planner has asked its predictors: the gains that it screened and the placements that it solved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from geoedge.control.planners.base import Prediction, Predictor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.demand import Demand

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Noted", "Notes"]


class Noted:
    """A predictor that answers as another one does, and remembers what it was asked.

    Parameters
    ----------
    predictor
        Who answers.

    Attributes
    ----------
    screened
        Placements that were screened, shape (n,), and the gains told of each, shape (n, S).
    solved
        Coverage of each placement that was solved, by its bytes.
    """

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self.screened: list[tuple[Ints, Floats]] = []
        self.solved: dict[bytes, float] = {}
        self.rough: Noted | None = None

    def solve(self, profile: Ints, start: Prediction | None = None) -> Prediction:
        """Return the equilibrium of a placement, shape (n,), from that of one like it."""
        found = self._predictor.solve(profile, start)
        self.solved[profile.tobytes()] = found.coverage
        return found

    def screen(self, profile: Ints, base: Prediction) -> Floats:
        """Return the rough gains of giving site i profile s alone, shape (n, S)."""
        gains = self._predictor.screen(profile, base)
        self.screened.append((profile.copy(), np.array(gains)))
        return gains

    def judge(self, profile: Ints, wait: Floats) -> float:
        """Return the coverage of a placement, shape (n,), under advertised waits, shape (n,)."""
        return self._predictor.judge(profile, wait)

    def coarse(self) -> Noted:
        """Return the rough predictor, noted as well; always the same one."""
        if self.rough is None:
            self.rough = Noted(self._predictor.coarse())
        return self.rough

    @property
    def told(self) -> list[Noted]:
        """Itself and its rough one, if that was asked for."""
        return [self] if self.rough is None else [self, self.rough]

    @property
    def has_screened(self) -> bool:
        """Whether it or its rough one was asked for gains."""
        return any(one.screened for one in self.told)


class Notes:
    """What a plan was made on: one noted predictor for each demand of its forecast.

    Parameters
    ----------
    forecast
        Demand of the coming epochs, first of the one that starts.
    predictors
        The predictor of each.
    """

    def __init__(self, forecast: Sequence[Demand], predictors: Sequence[Predictor]) -> None:
        self._of = {id(demand): Noted(one) for demand, one in zip(forecast, predictors, strict=True)}
        self._each = [self._of[id(demand)] for demand in forecast]
        rates = np.array([demand.request_rate for demand in forecast])
        self._weight: Floats = (
            rates / rates.sum() if rates.sum() > 0.0 else np.full(len(rates), 1 / len(rates))
        )
        self.epochs = len(forecast)
        """Epochs that are planned for."""
        self.varies = len(self._of) > 1
        """Whether the epochs ahead differ, so that means over them are not the values of the one that starts."""

    def predictor_of(self, demand: Demand) -> Predictor:
        """Return the noted predictor of a demand of the forecast."""
        return self._of[id(demand)]

    def coverage_now(self, profile: Ints) -> float:
        """Return the coverage of a placement, shape (n,), that is predicted for the epoch that starts."""
        first = self._each[0]
        known = first.solved.get(profile.tobytes())
        return first.solve(profile).coverage if known is None else known

    @property
    def looked_at(self) -> int:
        """Placements besides the present one that a predictor was asked for."""
        return len({key for each in self._each for one in each.told for key in one.solved}) - 1

    @property
    def rough(self) -> bool:
        """Whether placements were solved roughly, as a plan needs that weighs many at once."""
        return any(one.solved for each in self._each for one in each.told[1:])

    def gains(self) -> Floats | None:
        """Return what the last screening told of each change of one site, mean over what was planned for, shape (n, S).

        None if nothing was screened.
        """
        asked, weight = self._asked()
        if not asked:
            return None
        last = [next(one.screened for one in each.told if one.screened)[-1][1] for each in asked]
        return np.asarray(np.tensordot(weight, np.array(last), axes=1))

    def solved(self) -> dict[bytes, float]:
        """Return the mean coverage of each placement that was solved for all that was planned for, by its bytes."""
        asked, weight = self._asked()
        if not asked:
            return {}
        common = set(asked[0].solved).intersection(*(each.solved for each in asked[1:]))
        return {key: float(weight @ [each.solved[key] for each in asked]) for key in common}

    def _asked(self) -> tuple[list[Noted], Floats]:
        """Return the predictors that a plan has screened with, and what each counts for."""
        both = [(each, w) for each, w in zip(self._each, self._weight, strict=True) if each.has_screened]
        weight = np.array([w for _, w in both])
        return [each for each, _ in both], weight / weight.sum() if both else weight
