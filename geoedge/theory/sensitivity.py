"""What a change of each parameter does to the coverage at the fixed point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError
from geoedge.theory._asked import Solver, Window
from geoedge.theory.equilibrium import Policy
from geoedge.theory.heterogeneity import LoadLaw
from geoedge.theory.network import TieredNetwork
from geoedge.theory.placement import Case
from geoedge.theory.protocols import QueueOfMix, WaitModel

__all__ = ["Knob", "Sensitivity", "sensitivities"]

FloatArray = NDArray[np.float64]
Change = Callable[[TieredNetwork, float], TieredNetwork]

_STEP, _WIDE_STEP = 2e-3, 4e-3  # relative step of a difference, smooth or not; a second one is half as wide
_SMALL = 1e-3  # a share of sites or requests below which it is only raised


class Sensitivity(NamedTuple):
    """How the coverage follows one parameter.

    Attributes
    ----------
    parameter
        Its name; ``placement_probability[1]`` is the share of the second profile.
    value, unit
        What it is now.
    derivative
        Change of the coverage per unit of the parameter; for a concurrency the change by one more server.
    elasticity
        Per cent of coverage per per cent of the parameter; zero where the parameter is, NaN where the coverage is.
    error
        Estimated error of the derivative, from two widths of the difference; large next to a jump.
    """

    parameter: str
    value: float
    unit: str
    derivative: float
    elasticity: float
    error: float


class Knob(NamedTuple):
    """A parameter that is behind the arrays of a network.

    Attributes
    ----------
    value, unit
        What it is now.
    change
        Makes the network of another value from a network.
    scale
        What counts as a large value, positive; differences around a value of zero are a small share of it.
    """

    value: float
    unit: str
    change: Change
    scale: float = 1.0


def sensitivities(
    networks: Case,
    ttft_target: float,
    policy: Policy = "load_aware",
    *,
    weights: ArrayLike | None = None,
    law: LoadLaw = "mean_field",
    queue: WaitModel | QueueOfMix | None = None,
    further: Mapping[str, Knob] | None = None,
) -> tuple[Sensitivity, ...]:
    """Return how the coverage follows each parameter, the fixed point included.

    Central differences of two widths, extrapolated to none; laws that sample cells are not smooth enough for that, and
    their derivatives have errors of a few 1e-2. Where a share is next to its bounds, or another parameter is zero,
    one-sided differences of second order. A share of sites or of requests grows at the cost of all others in proportion. Prefill and decode are
    scaled as a whole (``prefill_scale``, ``decode_scale``); give the coefficients behind them by `further`.

    Parameters
    ----------
    networks
        The network, or several of the same sites that count by weight.
    ttft_target
        Target τ₀ of the time to first token [s].
    policy, queue
        As in `solve`.
    weights
        Weight of each network; alike if omitted.
    law
        The coverage that counts, as in `optimal_placement`.
    further
        Parameters behind the arrays, by name.

    Raises
    ------
    GeoEdgeError
        If the target, the law, or the scale of a parameter that is zero makes no sense.
    """
    window = Window(networks, weights, ttft_target, lambda: Solver(policy, law, queue))
    base, step = window.coverage(), _STEP if window.smooth else _WIDE_STEP
    rows = []
    _check_scales(further or {})
    for name, knob in (*_knobs(window.networks), *(further or {}).items()):
        covered = partial(window.changed, knob.change)
        rows.append(_row(name, knob, *_derivative(covered, knob, base, step), base))
    for name, knob in _server_knobs(window.networks):
        rows.append(_row(name, knob, window.changed(knob.change, knob.value + 1.0) - base, 0.0, base))
    target = Knob(window.ttft_target, "s", lambda network, _: network)
    answers = window.answers()

    def at_target(tau: float) -> float:
        return float(window.weights @ [float(answer.ttft_coverage(tau)) for answer in answers])

    return (*rows, _row("ttft_target", target, *_derivative(at_target, target, base, _STEP), base))


def _check_scales(knobs: Mapping[str, Knob]) -> None:
    for name, knob in knobs.items():
        if not 0.0 < knob.scale < np.inf:
            msg = f"sensitivities: the scale of `{name}` is {knob.scale}, but must be a finite number > 0"
            raise GeoEdgeError(msg)


def _derivative(
    covered: Callable[[float], float], knob: Knob, base: float, step: float
) -> tuple[float, float]:
    """Return the derivative at a value and its error."""
    value, share = knob.value, knob.unit == "share"
    width = step * (1.0 if share else value or knob.scale)
    if value == 0.0 or (share and min(value, 1.0 - value) < _SMALL + width):
        side = -1.0 if share and value >= 0.5 else 1.0
        wide, half, quarter = (covered(value + side * part * width) - base for part in (1.0, 0.5, 0.25))
        coarse, fine = side * (4.0 * half - wide) / width, side * (8.0 * quarter - 2.0 * half) / width
        return fine, abs(fine - coarse)
    wide, narrow = (
        (covered(value + part * width) - covered(value - part * width)) / (2.0 * part * width)
        for part in (1.0, 0.5)
    )
    if step > _STEP:  # extrapolation would magnify what is not smooth
        return wide, abs(narrow - wide)
    return (4.0 * narrow - wide) / 3.0, abs(narrow - wide) / 3.0


def _row(parameter: str, knob: Knob, derivative: float, error: float, base: float) -> Sensitivity:
    elasticity = derivative * knob.value / base if base > 0.0 else float("nan")
    return Sensitivity(parameter, knob.value, knob.unit, derivative, elasticity, error)


def _knobs(networks: Sequence[TieredNetwork]) -> Iterator[tuple[str, Knob]]:
    """Yield the parameters that change by little; values are those of the first network."""
    first = networks[0]
    yield (
        "request_intensity",
        Knob(
            first.request_intensity,
            "1/(s km²)",
            _intensity_changer(first.request_intensity),
            first.sufficient_intensity,
        ),
    )
    yield (
        "site_density",
        Knob(
            first.site_density,
            "1/km²",
            lambda network, value: network.scaled(value / first.site_density),
        ),
    )
    mix = first.tier_density / first.site_density
    for s in range(first.tiers if first.tiers > 1 else 0):
        yield f"placement_probability[{s}]", Knob(float(mix[s]), "share", _mix_changer(s))
    yield (
        "delay_coefficient",
        Knob(
            first.delay_coefficient,
            "s/km^α",
            lambda network, value: replace(network, delay_coefficient=value),
        ),
    )
    yield (
        "delay_exponent",
        Knob(first.delay_exponent, "–", lambda network, value: replace(network, delay_exponent=value)),
    )
    yield "prefill_scale", Knob(1.0, "–", _with_prefill)
    yield "decode_scale", Knob(1.0, "–", _with_decode)
    for q in range(first.types if first.types > 1 else 0):
        yield f"type_probability[{q}]", Knob(float(first.type_probability[q]), "share", _type_changer(q))


def _server_knobs(networks: Sequence[TieredNetwork]) -> Iterator[tuple[str, Knob]]:
    """Yield the concurrencies of tiers."""
    for s in range(networks[0].tiers):
        yield (
            f"concurrency[{s}]",
            Knob(float(networks[0].concurrency[s]), "requests", _server_changer(s)),
        )


def _intensity_changer(present: float) -> Change:
    """Return a change of all intensities in proportion, or by as much where the first is zero."""
    if present == 0.0:
        return lambda network, value: network.with_intensity(network.request_intensity + value)
    return lambda network, value: network.with_intensity(network.request_intensity * value / present)


def _mix_changer(s: int) -> Change:
    def change(network: TieredNetwork, value: float) -> TieredNetwork:
        mix = _reshared(network.tier_density / network.site_density, s, value)
        return replace(network, tier_density=network.site_density * mix)

    return change


def _type_changer(q: int) -> Change:
    return lambda network, value: replace(
        network, type_probability=_reshared(network.type_probability, q, value)
    )


def _server_changer(s: int) -> Change:
    def change(network: TieredNetwork, value: float) -> TieredNetwork:
        servers = network.concurrency.copy()
        servers[s] = round(value)
        return replace(network, concurrency=servers)

    return change


def _reshared(shares: FloatArray, index: int, value: float) -> FloatArray:
    """Return shares with one of them set, the others keeping their proportions."""
    others = np.delete(np.arange(shares.size), index)
    left = shares[others].sum()
    changed = np.empty_like(shares)
    changed[index] = value
    changed[others] = shares[others] / left if left > 0.0 else 1.0 / others.size
    changed[others] *= 1.0 - value
    return changed


def _with_prefill(network: TieredNetwork, scale: float) -> TieredNetwork:
    return replace(
        network,
        prefill_time=scale * network.prefill_time,
        full_prefill_time=scale * network.full_prefill_time,
        occupancy_time=network.occupancy_time + (scale - 1.0) * network.prefill_time,
    )


def _with_decode(network: TieredNetwork, scale: float) -> TieredNetwork:
    decode = network.occupancy_time - network.prefill_time
    return replace(network, occupancy_time=network.prefill_time + scale * decode)
