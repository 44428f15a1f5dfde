"""Many numbers in little text: two characters a number, on a scale of eight thousand levels, and digits of one character."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import OutputError

__all__ = ["ALPHABET", "LevelScale", "encode_digits"]

Floats = NDArray[np.float64]

ALPHABET = "".join(chr(code) for code in range(32, 127) if chr(code) not in '"\\<>&')
"""Characters that need no escape in JSON and in a script element."""
_CODES = np.frombuffer(ALPHABET.encode("ascii"), dtype=np.uint8)
_BASE = len(ALPHABET)
_INFINITE = _BASE**2 - 1
_TOP = _INFINITE - 1


@dataclass(frozen=True)
class LevelScale:
    """From numbers to codes: 0 is not a number, the last code is infinite, and the rest are evenly spread.

    Parameters
    ----------
    low, high
        Least and largest number; on a logarithmic scale `low` is the least above zero.
    log
        Spread evenly in the logarithm, with a code of its own for zero.
    """

    low: float
    high: float
    log: bool = False

    @classmethod
    def shares(cls) -> Self:
        """Return the scale of shares: from 0 to 1 in steps of about 0.0001."""
        return cls(0.0, 1.0)

    @classmethod
    def counts(cls, values: ArrayLike) -> Self:
        """Return a scale of counts, exact up to about 8,000."""
        return cls(0.0, float(max(_TOP - 1, np.max(values, initial=0))))

    @classmethod
    def times(cls, values: ArrayLike, least: float = 1e-4) -> Self:
        """Return a logarithmic scale from `least` to the largest finite value, to three digits."""
        known = np.asarray(values, dtype=np.float64)
        top = float(np.max(known[np.isfinite(known)], initial=0.0))
        return cls(least, max(top, 10.0 * least), log=True)

    @classmethod
    def between(cls, values: ArrayLike) -> Self:
        """Return a linear scale from the least to the largest finite value."""
        known = np.asarray(values, dtype=np.float64)
        known = known[np.isfinite(known)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        return cls(low, high if high > low else low + 1.0)

    def codes(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return the code of each number.

        Raises
        ------
        OutputError
            If a finite number lies outside of the scale.
        """
        given = np.asarray(values, dtype=np.float64)
        finite = np.isfinite(given)
        known = np.where(finite, given, self.low)
        slack = 1e-9 * (self.high - self.low)
        if (
            known.max(initial=self.low) > self.high + slack
            or (known < (0.0 if self.log else self.low - slack)).any()
        ):
            msg = f"map: a number lies outside of {self.low:g} to {self.high:g}; check the tables of the run"
            raise OutputError(msg)
        if self.log:
            steps = np.log(np.maximum(known, self.low) / self.low) / np.log(self.high / self.low)
            code = np.where(known < self.low / 2, 1, 2 + np.rint(steps * (_TOP - 2)))
        else:
            code = 1 + np.rint((known - self.low) / (self.high - self.low) * (_TOP - 1))
        code = np.where(finite, np.clip(code, 1, _TOP), np.where(np.isnan(given), 0, _INFINITE))
        return code.astype(np.int64)

    def encode(self, values: ArrayLike) -> str:
        """Return the numbers as text, two characters each."""
        codes = self.codes(np.ravel(np.asarray(values, dtype=np.float64)))
        return _text(np.stack(np.divmod(codes, _BASE), axis=-1))

    def described(self) -> dict[str, Any]:
        """Return the scale as the page takes it."""
        return {"low": self.low, "high": self.high, "log": self.log}


def encode_digits(values: ArrayLike) -> str:
    """Return whole numbers from 0 to 89 as text, one character each.

    Parameters
    ----------
    values
        The numbers.

    Raises
    ------
    OutputError
        If there are more than that.
    """
    digits = np.asarray(values, dtype=np.int64)
    if digits.size and not 0 <= digits.min() <= digits.max() < _BASE:
        msg = f"map: {digits.max() + 1} different things have no sign of their own on a page; it has {_BASE}"
        raise OutputError(msg)
    return _text(digits)


def _text(digits: NDArray[np.int64]) -> str:
    return _CODES[np.ravel(digits)].tobytes().decode("ascii")
