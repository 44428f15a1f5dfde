"""When the farther of two sites is the better one, Eq. (46).

A request pays ξ r^α for the way and the offset β = W̄ + T_pf on arrival. Site t is chosen before s where
r_t^α − r_s^α < (β_s − β_t)/ξ: a longer way must be paid for by prefill saved, less what is waited more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.theory._plane import check_radio, nonnegative, offset_gap

__all__ = ["boundary_distance", "break_even_wait", "distance_advantage"]

FloatArray = NDArray[np.float64]


def boundary_distance(
    distance: ArrayLike,
    offset: ArrayLike,
    rival_offset: ArrayLike,
    delay_coefficient: float,
    delay_exponent: float,
) -> FloatArray:
    """Return the largest distance of t at which it is chosen before s, [r_s^α + (β_s − β_t)/ξ]₊^{1/α}, Eq. (46).

    Parameters
    ----------
    distance
        Distance r_s of the site s [km], nonnegative, any shape.
    offset
        Cost offset β_s of s, wait and prefill [s]; infinite if it is overloaded.
    rival_offset
        Cost offset β_t of t [s]; arrays broadcast.
    delay_coefficient
        Radio delay ξ at one kilometre [s/km^α].
    delay_exponent
        Exponent α of the radio delay.

    Returns
    -------
    FloatArray
        Distance [km]; 0 where t is chosen nowhere.

    Raises
    ------
    GeoEdgeError
        If a distance is negative, an offset is NaN, or both sites are overloaded.

    Examples
    --------
    >>> round(float(boundary_distance(0.4, 0.9573, 0.55, 0.28, 2.5)), 4)
    1.1934
    """
    check_radio(delay_coefficient, delay_exponent)
    radius = nonnegative("distance", distance)
    gap = offset_gap(offset, rival_offset, delay_coefficient)
    reach = np.maximum(radius**delay_exponent + gap, 0.0)
    return np.asarray(reach ** (1.0 / delay_exponent))


def distance_advantage(
    distance: ArrayLike,
    offset: ArrayLike,
    rival_offset: ArrayLike,
    delay_coefficient: float,
    delay_exponent: float,
) -> FloatArray:
    """Return how much farther than s the site t may be and still be chosen, r_t − r_s [km].

    Over the wait at t, which is part of `rival_offset`, this is how the advantage of a deep cache collapses: it is
    zero where the wait has eaten up the prefill saved, negative beyond, and −r_s where t is chosen nowhere.

    Parameters
    ----------
    distance, offset, rival_offset, delay_coefficient, delay_exponent
        As in `boundary_distance`.

    Raises
    ------
    GeoEdgeError
        As `boundary_distance`.
    """
    radius = nonnegative("distance", distance)
    return boundary_distance(radius, offset, rival_offset, delay_coefficient, delay_exponent) - radius


def break_even_wait(
    distance: ArrayLike,
    rival_distance: ArrayLike,
    offset: ArrayLike,
    rival_prefill: ArrayLike,
    delay_coefficient: float,
    delay_exponent: float,
) -> FloatArray:
    """Return the wait at t from which s is chosen, β_s − T_pf,t + ξ (r_s^α − r_t^α), Eq. (46) solved for W̄_t.

    Parameters
    ----------
    distance, rival_distance
        Distances r_s and r_t [km], nonnegative, any shape.
    offset
        Cost offset β_s of s [s].
    rival_prefill
        Residual prefill time of t [s].
    delay_coefficient, delay_exponent
        As in `boundary_distance`.

    Returns
    -------
    FloatArray
        Wait [s]; negative where t loses even when nobody waits there.

    Raises
    ------
    GeoEdgeError
        As `boundary_distance`.
    """
    check_radio(delay_coefficient, delay_exponent)
    near, far = nonnegative("distance", distance), nonnegative("rival_distance", rival_distance)
    radio = delay_coefficient * (near**delay_exponent - far**delay_exponent)
    return np.asarray(offset_gap(offset, rival_prefill, 1.0, rival_name="rival_prefill") + radio)
