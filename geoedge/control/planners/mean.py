"""One predictor for several demands: it answers with means by requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geoedge.control.planners.base import Prediction, Predictor, Situation

__all__ = ["MeanPredictor", "mean_over"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Mean(Prediction):
    """Means over demands, and the predictions they are made of."""

    parts: tuple[Prediction, ...] = ()


class MeanPredictor:
    """Predicts by the mean of several predictors.

    Parameters
    ----------
    predictors
        One for each demand.
    weight
        Their weights, normalised here.
    """

    def __init__(self, predictors: Sequence[Predictor], weight: Sequence[float] | Floats) -> None:
        share = np.asarray(weight, dtype=np.float64)
        self.predictors, self.weight = tuple(predictors), share / share.sum()

    def solve(self, profile: Ints, start: Prediction | None = None) -> Prediction:
        """Return the mean of the equilibria of a placement, shape (n,); each starts from its own before."""
        starts: tuple[Prediction | None, ...] = (start,) * len(self.predictors)
        if isinstance(start, _Mean) and len(start.parts) == len(starts):
            starts = start.parts
        parts = tuple(one.solve(profile, s) for one, s in zip(self.predictors, starts, strict=True))

        def mean(name: str) -> Floats:
            return np.asarray(self.weight @ np.array([getattr(part, name) for part in parts]))

        return _Mean(
            float(mean("coverage")),
            profile,
            mean("wait"),
            mean("utilization"),
            mean("arrival_rate"),
            mean("missed_rate"),
            mean("prefill"),
            mean("occupancy"),
            parts,
        )

    def screen(self, profile: Ints, base: Prediction) -> Floats:
        """Return the mean of the rough gains of giving site i profile s alone, shape (n, S)."""
        parts = base.parts if isinstance(base, _Mean) else (base,) * len(self.predictors)
        gains = [one.screen(profile, part) for one, part in zip(self.predictors, parts, strict=True)]
        return np.asarray(np.tensordot(self.weight, np.array(gains), axes=1))

    def judge(self, profile: Ints, wait: Floats) -> float:
        """Return the mean coverage of a placement, shape (n,), under advertised waits, shape (n,)."""
        return float(self.weight @ [one.judge(profile, wait) for one in self.predictors])

    def coarse(self) -> MeanPredictor:
        """Return the mean of the rough predictors."""
        return MeanPredictor([one.coarse() for one in self.predictors], self.weight)


def mean_over(situation: Situation) -> Predictor:
    """Return the predictor for all epochs of the forecast, weighted by their requests.

    Parameters
    ----------
    situation
        What is known.
    """
    demands = situation.forecast
    if len({id(demand) for demand in demands}) == 1:
        return situation.predictor_of(demands[0])
    rates = [demand.request_rate for demand in demands]
    return MeanPredictor([situation.predictor_of(demand) for demand in demands], rates)
