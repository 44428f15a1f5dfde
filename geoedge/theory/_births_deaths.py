"""The law of the number of requests at an M/M/c site, carried through a time of constant rates.

Near its servers the number is followed event by event, by uniformisation, on those states alone that have any
probability. A queue that will not come back to free servers is the difference of two Poisson processes, which is taken
through any time at once: beyond capacity a site is soon there, and what follows costs no more the longer it lasts.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import gammainc

from geoedge.compiled import kernel

__all__ = ["FAR", "GONE", "more_than_leave", "passed"]

FloatArray = NDArray[np.float64]

FAR = 8.0
"""Standard deviations of a number of events beyond which nothing is looked for."""
GONE = 1e-18
"""Probability of a state below which it is left out at either end."""
_STILL = 1e-15  # change of any probability in a step below which the queue is at rest
_GLANCE = 32  # steps between two looks at either
_BACK = 1e-12  # probability to come back to a free server below which a queue is taken as never to
_NOISE = 1e-14  # part of the greatest probability below which a transform tells nothing
_FEW = 1000.0  # events for which it is not worthwhile to look again


def passed(
    law: FloatArray, births: float, deaths: float, servers: int, length: float
) -> tuple[FloatArray, int]:
    """Carry the law of the number at a site through a time, in place; return its mean over it, and the work.

    Parameters
    ----------
    law
        Probability of each number of requests, from 0 to one that is never reached.
    births
        Arrival rate [1/s].
    deaths
        Rate of one server [1/s].
    servers
        How many servers there are.
    length
        The time [s].

    Returns
    -------
    tuple[FloatArray, int]
        The mean law, and how many probabilities were computed on the way to it.
    """
    mean, work, left = np.zeros_like(law), 0, length
    leaving = servers * deaths
    while left > 0.0:
        if _never_back(law, births, leaving, servers, left):
            span = left
            part, cells = _difference(law, births, leaving, span)
        else:
            span = min(left, _time_away(births, leaving))
            part, cells = _event_by_event(law, births, deaths, servers, span)
        mean += part * (span / length)
        work += cells
        left -= span
    return mean, work


def _time_away(births: float, leaving: float) -> float:
    """Return after which time a queue will have left free servers for ever, or is worth another look [s]."""
    if births <= leaving:
        return math.inf
    away = -math.log(_BACK) / (math.sqrt(births) - math.sqrt(leaving)) ** 2
    return max(away, _FEW / (births + leaving))


def _never_back(law: FloatArray, births: float, leaving: float, servers: int, length: float) -> bool:
    """Return whether no server gets free in a time, but for a probability of `_BACK`."""
    lowest = int(np.searchsorted(np.cumsum(law), 0.1 * _BACK))
    reach = max(leaving - births, 0.0) * length + FAR * math.sqrt((births + leaving) * length) + 20.0
    if lowest - servers > reach:
        return True
    if births <= leaving:
        return False
    near = math.log(_BACK * _BACK) / math.log(leaving / births)  # who is farther away does not come back
    waiting = law[servers : servers + math.ceil(near)]
    returns = waiting @ (leaving / births) ** np.arange(1.0, len(waiting) + 1.0)
    return bool(law[:servers].sum() + returns < _BACK)


def _difference(law: FloatArray, births: float, leaving: float, length: float) -> tuple[FloatArray, int]:
    """Do the same while all servers are busy: what comes less what leaves, both Poisson."""
    drift, far = (births - leaving) * length, FAR * math.sqrt((births + leaving) * length) + 20.0
    below, above = int(max(-drift, 0.0) + far), int(max(drift, 0.0) + far)
    some = np.flatnonzero(law > GONE)
    first, last = int(some[0]), int(some[-1])
    padded = np.zeros(next_fast_len(last - first + 1 + below + above, real=True))
    padded[below : below + last - first + 1] = law[first : last + 1]
    angle = 2.0 * np.pi * np.fft.rfftfreq(len(padded))
    growth = length * (births * np.expm1(-1j * angle) + leaving * np.expm1(1j * angle))
    before = rfft(padded)
    averaged = np.ones_like(growth)
    averaged[1:] = np.expm1(growth[1:]) / growth[1:]
    mean = np.zeros_like(law)
    begin = max(first - below, 0)
    for into, factor in ((mean, averaged), (law, np.exp(growth))):
        found = irfft(before * factor, len(padded))[begin - (first - below) :][: len(law) - begin]
        found[found < _NOISE * found.max()] = 0.0
        into[:] = 0.0
        into[begin : begin + len(found)] = found / found.sum()
    return mean, len(padded) * int(math.log2(len(padded)))


def _event_by_event(
    law: FloatArray, births: float, deaths: float, servers: int, length: float
) -> tuple[FloatArray, int]:
    """Do the same by uniformisation."""
    total = births + servers * deaths
    events = total * length
    k = np.arange(int(events + FAR * np.sqrt(events)) + 20.0)
    more = gammainc(k + 1.0, events)  # probability of more than k events
    exactly = np.maximum(-np.diff(more, prepend=1.0), 0.0)
    mean = np.zeros_like(law)
    cells = _uniformised(
        law, births / total, deaths / total, servers, np.asarray(more / events), exactly, mean
    )
    return mean, cells


@kernel
def _uniformised(
    law: FloatArray,
    up: float,
    down: float,
    servers: int,
    weight: FloatArray,
    last: FloatArray,
    mean: FloatArray,
) -> int:
    """Add the law after each number of events by `weight` to `mean`, and by `last` to what replaces it."""
    top = law.size - 1
    here, after, end = law.copy(), np.zeros_like(law), np.zeros_like(law)
    low, high, work = 0, top, 0
    for k in range(weight.size):
        if k % _GLANCE == 0:
            while high > low and here[high] < GONE:
                here[high] = after[high] = 0.0
                high -= 1
            while low < high and here[low] < GONE:
                here[low] = after[low] = 0.0
                low += 1
        _add(mean[low : high + 1], weight[k], here[low : high + 1])
        if last[k] > 0.0:
            _add(end[low : high + 1], last[k], here[low : high + 1])
        low, high = max(low - 1, 0), min(high + 1, top)
        work += high + 1 - low
        for n in range(low, min(high + 1, servers)):
            leaves = n * down + (up if n < top else 0.0)
            comes = up * here[n - 1] if n > 0 else 0.0
            if n < top:
                comes += (n + 1) * down * here[n + 1]
            after[n] = here[n] * (1.0 - leaves) + comes
        begin = max(low, servers)
        length = min(high, top - 1) + 1 - begin
        if length > 0:  # all servers are busy, so that every event is an arrival or one that leaves
            _step(after[begin:], up, here[begin - 1 :], servers * down, here[begin + 1 :], length)
        if high == top and top >= servers:
            after[top] = here[top] * (1.0 - servers * down) + up * here[top - 1]
        moved = 1.0
        if k % _GLANCE == 0:
            moved = np.abs(after[low : high + 1] - here[low : high + 1]).max()
        here, after = after, here
        if moved < _STILL:
            _add(mean[low : high + 1], weight[k + 1 :].sum(), here[low : high + 1])
            _add(end[low : high + 1], last[k + 1 :].sum(), here[low : high + 1])
            break
    law[:] = end / end.sum()
    return work


@kernel
def _add(into: FloatArray, factor: float, values: FloatArray) -> None:
    for i in range(values.size):
        into[i] += factor * values[i]


@kernel
def _step(into: FloatArray, up: float, less: FloatArray, down: float, more: FloatArray, length: int) -> None:
    for i in range(length):
        into[i] = up * less[i] + down * more[i]


@kernel
def more_than_leave(at_least: FloatArray, leaving: FloatArray) -> FloatArray:
    """Return how likely more stand before one than leave, a Poisson number, shape as that of its means.

    Parameters
    ----------
    at_least
        Probability that more than 0, 1, … stand before one; none beyond the last.
    leaving
        Mean numbers that leave, shape (times,).
    """
    found = np.zeros_like(leaving)
    for i in range(leaving.size):
        mean, size = leaving[i], at_least.size
        if size == 0 or not mean < size + 10.0 * math.sqrt(mean) + 41.0:
            continue
        mode = int(mean)
        whole = part = 0.0
        share, j = 1.0, mode  # relative to that of the likeliest number
        while j >= 0 and share > GONE:
            whole += share
            part += share * at_least[j] if j < size else 0.0
            share *= j / mean if j > 0 else 0.0
            j -= 1
        share, j = mean / (mode + 1.0), mode + 1
        while share > GONE:
            whole += share
            part += share * at_least[j] if j < size else 0.0
            j += 1
            share *= mean / j
        found[i] = part / whole
    return found
