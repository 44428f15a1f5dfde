"""Exponential, logarithm and power that the compiler can run on several numbers at once.

The library functions are called one number at a time, and they are what the integrals of theory consist of. These
consist of sums, products and shifts alone, which LLVM turns into vector instructions inside a loop. Measured
against numpy: relative error below 5e-16 for the exponential's own rounding, which the exponent of a power
multiplies: 3e-15 for powers of 1e-12 to 100, 1e-13 of 1e-300 to 1e300.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from geoedge.compiled import inlined

__all__ = ["exponential", "power"]

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2 in 33 bits, and the rest
_PER_LN2 = 1.4426950408889634
_ROUND = 6755399441055744.0  # 1.5 · 2**52: adding it leaves a whole number in the low bits
_ROUND_BITS = 0x4338000000000000
_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # √½, where the mantissa range is folded
_MANTISSA = 52
_LEAST, _MOST = -700.0, 700.0  # exponents beyond which the exponential is held: 1e-304 and 1e304


def _reinterpretation(target: Any, source: Any) -> Callable[..., Any]:
    """Return the typing and code of a cast that keeps the bits of a number."""

    def cast(context: Any, number: Any) -> Any:
        def emit(target_context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], target_context.get_value_type(signature.return_type))

        return target(source), emit

    return cast


_bits: Callable[[float], int] = intrinsic(_reinterpretation(types.int64, types.float64))
_real: Callable[[int], float] = intrinsic(_reinterpretation(types.float64, types.int64))


@inlined
def exponential(x: float) -> float:
    """Return e^x for x in [−700, 700], and its value at the nearer end outside."""
    x = min(max(x, _LEAST), _MOST)
    rounded = x * _PER_LN2 + _ROUND
    halvings = rounded - _ROUND
    r = (x - halvings * _LN2_HIGH) - halvings * _LN2_LOW
    # |r| <= log(2)/2: the term r^14/14! is below 5e-18
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return _real(_bits(p) + ((_bits(rounded) - _ROUND_BITS) << _MANTISSA))


@inlined
def power(x: float, exponent: float) -> float:
    """Return x^exponent for a normal positive x; at zero, where the exponent is positive, a number next to zero."""
    doublings = (_bits(x) - _ROOT_HALF_BITS) >> _MANTISSA
    fraction = _real(_bits(x) - (doublings << _MANTISSA))
    count = _real(_ROUND_BITS + doublings) - _ROUND
    # log f = 2 artanh s; np.divide, as the operator would branch on a zero that cannot be
    s = np.divide(fraction - 1.0, fraction + 1.0)
    z = s * s
    # |s| <= 0.1716: the term z^11/23 is below 1e-18
    p = 1.0 / 21.0
    p = p * z + 1.0 / 19.0
    p = p * z + 1.0 / 17.0
    p = p * z + 1.0 / 15.0
    p = p * z + 1.0 / 13.0
    p = p * z + 1.0 / 11.0
    p = p * z + 1.0 / 9.0
    p = p * z + 1.0 / 7.0
    p = p * z + 1.0 / 5.0
    p = p * z + 1.0 / 3.0
    logarithm = count * _LN2_HIGH + (count * _LN2_LOW + 2.0 * (s + s * z * p))
    return exponential(exponent * logarithm)
