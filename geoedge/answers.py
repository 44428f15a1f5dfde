"""The questions that theory, field and simulation all answer, and answers of several epochs as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, Literal, Protocol, SupportsFloat, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "METRICS",
    "REDIRECTED",
    "REJECTED",
    "Answer",
    "WindowedAnswer",
    "answer_metrics",
    "first_reached",
    "metric_words",
]

DOUBLINGS = 60
"""Doublings of a bracket before what is looked for is called infinite."""

METRICS: Mapping[str, tuple[str, str]] = {
    "coverage": ("TTFT coverage", "–"),
    "mean_ttft_s": ("mean TTFT", "s"),
    "radio_s": ("  radio", "s"),
    "wait_s": ("  wait", "s"),
    "prefill_s": ("  prefill", "s"),
    "p95_ttft_s": ("p95 TTFT", "s"),
    "offload_tokens": ("offloading ratio, by tokens", "–"),
    "offload_prefill": ("offloading ratio, by prefill time", "–"),
    "distance_km": ("mean serving distance", "km"),
    "utilization": ("mean utilisation", "–"),
}
"""The questions that theory, field and simulation all answer: key, then label and unit."""

REJECTED = "rejected_share"
"""The share of requests that no site took: told of simulations, where any of those compared rejected one."""


REDIRECTED = "redirect_s"
"""What redirections take, a part of the mean TTFT: told of simulations in which they take time."""


def metric_words(metric: str) -> tuple[str, str]:
    """Return label and unit of a metric, of a profile's share of requests, of the share rejected or of redirections.

    Parameters
    ----------
    metric
        Key of a metric.
    """
    if metric == REJECTED:
        return "rejected", "–"
    if metric == REDIRECTED:
        return "redirections, part of TTFT", "s"
    return METRICS.get(metric, (metric.replace("share:", "served by "), "–"))


class Answer(Protocol):
    """What theory, field and simulation are all asked."""

    def ttft_coverage(self, tau: float) -> SupportsFloat:
        """Return the share of requests with TTFT at most `tau` [s]."""

    def ttft_quantile(self, probability: float) -> float:
        """Return the TTFT [s] that a share `probability` of requests meets; may be infinite."""

    def parts(self) -> Mapping[str, float]:
        """Return the mean radio delay, wait and prefill time [s]."""

    def offloading_ratio(self, by: Literal["tokens", "prefill_time"] = "tokens") -> float:
        """Return the share of prompt tokens, or of prefill time, that caches save, Eq. (45).

        Parameters
        ----------
        by
            What is counted: tokens of the prompts, or their prefill time.
        """

    @property
    def mean_ttft(self) -> float:
        """Mean TTFT [s]."""

    @property
    def mean_serving_distance(self) -> float:
        """Mean distance to the serving site [km]."""

    @property
    def mean_utilization(self) -> float:
        """Busy servers over servers, all sites together."""

    @property
    def profile_share(self) -> Floats:
        """Share of requests served by each profile, shape (S,)."""


def answer_metrics(answer: Answer, ttft_target_s: float, profile_names: Sequence[str]) -> dict[str, float]:
    """Return one number for each metric of `METRICS` and each profile's share of requests.

    Of a simulation in which redirections take time, `REDIRECTED` comes last.

    Parameters
    ----------
    answer
        Theory's, field's or simulation's answer.
    ttft_target_s
        TTFT target τ₀ [s].
    profile_names
        Names of the profiles, length S.
    """
    parts = answer.parts()
    metrics = {
        "coverage": float(answer.ttft_coverage(ttft_target_s)),
        "mean_ttft_s": answer.mean_ttft,
        "radio_s": parts["radio"],
        "wait_s": parts["wait"],
        "prefill_s": parts["prefill"],
        "p95_ttft_s": answer.ttft_quantile(0.95),
        "offload_tokens": answer.offloading_ratio("tokens"),
        "offload_prefill": answer.offloading_ratio("prefill_time"),
        "distance_km": answer.mean_serving_distance,
        "utilization": answer.mean_utilization,
    }
    shares = zip(profile_names, answer.profile_share, strict=True)
    metrics |= {f"share:{name}": float(share) for name, share in shares}
    return metrics | ({REDIRECTED: parts["redirect"]} if "redirect" in parts else {})


A = TypeVar("A", bound=Answer)


def first_reached(rising: Callable[[float], float], level: float, guess: float) -> float:
    """Return the least argument at which a rising function reaches a level, to 1e-13; infinite if it never does.

    Regula falsi between a value below and one at or above, halving whenever it stalls, so that a jump is bracketed
    as well as a root, and the end returned is the one where the level is reached.

    Parameters
    ----------
    rising
        The function, never falling from 0 on.
    level
        The level to reach.
    guess
        Where to look first, positive.
    """
    low, high, below = 0.0, guess, -level
    above = rising(high) - level
    for _ in range(DOUBLINGS):
        if above >= 0.0:
            break
        low, below, high = high, above, 2.0 * high
        above = rising(high) - level
    else:
        return float("inf")
    while low == 0.0:
        middle = 0.5 * high
        value = rising(middle) - level
        if value >= 0.0:
            high, above = middle, value
        else:
            low, below = middle, value
        if high < 1e-300:
            return high
    width, side = high - low, 0
    for count in range(200):
        if high - low <= 1e-13 * high:
            break
        middle = high - above * (high - low) / (above - below)
        if count % 3 == 2:
            middle = middle if high - low < 0.5 * width else 0.5 * (low + high)
            width = high - low
        middle = min(max(middle, low + 4e-14 * high), high - 4e-14 * high)
        value = rising(middle) - level
        if value >= 0.0:
            high, above, below = middle, value, below * (0.5 if side == 1 else 1.0)
            side = 1
        else:
            low, below, above = middle, value, above * (0.5 if side == -1 else 1.0)
            side = -1
    return high


class WindowedAnswer(Generic[A]):
    """Answers of several epochs as one: every question averaged by requests.

    A window of a changing day is thus compared with itself, whoever answers.

    Parameters
    ----------
    answers
        One an epoch.
    requests
        Requests of each epoch, the weights.
    prompt_tokens
        Mean prompt length of each epoch [token].
    full_prefill_s
        Mean prefill time without any cache of each epoch [s].
    seconds
        Measured time of each epoch [s], the weight of what servers are asked; all alike by default.
    """

    def __init__(
        self,
        answers: Sequence[A],
        requests: ArrayLike,
        prompt_tokens: ArrayLike,
        full_prefill_s: ArrayLike,
        seconds: ArrayLike | None = None,
    ) -> None:
        self.answers = tuple(answers)
        weights = np.asarray(requests, dtype=np.float64)
        self.weights = weights / weights.sum()
        time = np.asarray(weights > 0 if seconds is None else seconds, dtype=np.float64)
        self._time_weights = time / time.sum()
        self._ratio_weights = {
            "tokens": weights * np.asarray(prompt_tokens),
            "prefill_time": weights * np.asarray(full_prefill_s),
        }

    def _mean(self, question: Callable[[A], SupportsFloat]) -> float:
        asked = [(w, float(question(a))) for w, a in zip(self.weights, self.answers, strict=True) if w > 0]
        return float(sum(w * value for w, value in asked))

    def ttft_coverage(self, tau: float) -> float:
        """Return the share of requests with TTFT at most `tau` [s]."""
        return self._mean(lambda answer: answer.ttft_coverage(tau))

    def ttft_quantile(self, probability: float) -> float:
        """Return the least TTFT [s] that a share `probability` of the window's requests meets; may be infinite."""
        return first_reached(self.ttft_coverage, probability, max(self.mean_prefill, 1e-3))

    @property
    def mean_prefill(self) -> float:
        """Mean prefill time [s]."""
        return self.parts()["prefill"]

    @property
    def mean_ttft(self) -> float:
        """Mean TTFT [s]."""
        return self._mean(lambda answer: answer.mean_ttft)

    def parts(self) -> dict[str, float]:
        """Return the mean radio delay, wait and prefill time [s]."""
        return {
            part: self._mean(lambda answer, part=part: answer.parts()[part])  # type: ignore[misc]
            for part in ("radio", "wait", "prefill")
        }

    @property
    def profile_share(self) -> Floats:
        """Share of requests served by each profile, shape (S,)."""
        return np.asarray(
            sum(w * a.profile_share for w, a in zip(self.weights, self.answers, strict=True) if w > 0)
        )

    def offloading_ratio(self, by: Literal["tokens", "prefill_time"] = "tokens") -> float:
        """Return the share of prompt tokens, or of prefill time, that caches save, Eq. (45).

        Parameters
        ----------
        by
            What is counted: tokens of the prompts, or their prefill time.
        """
        weights = self._ratio_weights[by]
        saved = [w * a.offloading_ratio(by) for w, a in zip(weights, self.answers, strict=True) if w > 0]
        return float(sum(saved) / weights.sum())

    @property
    def mean_serving_distance(self) -> float:
        """Mean distance to the serving site [km]."""
        return self._mean(lambda answer: answer.mean_serving_distance)

    @property
    def mean_utilization(self) -> float:
        """Busy servers over servers, all sites together, averaged over time."""
        asked = zip(self._time_weights, self.answers, strict=True)
        return float(sum(w * answer.mean_utilization for w, answer in asked if w > 0))

    @property
    def stable(self) -> bool:
        """Whether every epoch has a stable equilibrium."""
        return all(a.stable for w, a in zip(self.weights, self.answers, strict=True) if w > 0)  # type: ignore[attr-defined]
