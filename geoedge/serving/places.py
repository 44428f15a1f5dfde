"""Where requests were made, kept so that they can be routed again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Places"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Places:
    """Places and routers of all requests, as the columns in which they were given."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._columns: list[tuple[Floats, Floats, Ints]] = []

    def add(self, first: int, x: Floats, y: Floats, router: Ints) -> None:
        """Keep places [km] and routers of the requests from a row on."""
        if x.size:
            self._first.append(first)
            self._columns.append((x, y, router))

    def of(self, rows: Ints) -> tuple[Floats, Floats, Ints]:
        """Return places [km] and routers of some rows."""
        x, y, router = np.empty(rows.size), np.empty(rows.size), np.empty(rows.size, dtype=np.int64)
        part = np.searchsorted(self._first, rows, side="right") - 1
        for p in np.unique(part).tolist():
            chosen = part == p
            k = rows[chosen] - self._first[p]
            x[chosen], y[chosen], router[chosen] = (column[k] for column in self._columns[p])
        return x, y, router
