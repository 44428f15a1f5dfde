"""How far long pieces of work are, in this process or in others: noted by each, told seldom and in one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["UPDATE_S", "Underway", "noting"]

UPDATE_S = 0.5
"""Least time between two tellings while no piece ends [s]."""

Note = Callable[[float], None]
"""Takes the share of a piece that is done, 0 to 1 and never less than before."""


class Underway:
    """Pieces of work, how far each is, and who is told of it.

    Parameters
    ----------
    count
        Number of pieces.
    progress
        Told how many pieces are done, the shares of those underway included, and of how many; nobody by default.
    """

    def __init__(self, count: int, progress: Callable[[float, int], None] | None = None) -> None:
        self._count = count
        self._progress = progress
        self._cells = np.zeros((2, count))
        self._told, self._told_s = 0.0, -np.inf

    def share_through(self, path: Path) -> None:
        """Keep the notes in a new file, in which other processes note theirs with `noting`.

        Parameters
        ----------
        path
            The file; its folder must be there.
        """
        path.write_bytes(self._cells.tobytes())  # a hole in a file on a full disk would crash whoever maps it
        self._cells = _mapped(path)

    @contextmanager
    def noting(self, number: int) -> Iterator[Note]:
        """Do a piece of work in this process: what is noted is told, too, where the last time is long ago.

        Parameters
        ----------
        number
            Which piece it is, from 0 on.
        """
        with _noting(self._cells, number) as note:

            def noted(share: float) -> None:
                note(share)
                self.tell_seldom()

            yield noted

    def ended(self, number: int) -> bool:
        """Return whether a piece has ended, well or not; tell how far all are while it has not.

        Parameters
        ----------
        number
            Which piece it is, from 0 on.
        """
        if self._cells[1, number]:
            return True
        self.tell_seldom()
        return False

    def tell_seldom(self) -> None:
        """Tell how far all pieces are, unless this was told a moment ago."""
        if monotonic() - self._told_s >= UPDATE_S:
            self.tell()

    def tell(self) -> None:
        """Tell how far all pieces are; that all are done, once."""
        if self._progress is not None and self._told < self._count:
            self._told = float(self._cells[0].sum())
            self._progress(self._told, self._count)
            self._told_s = monotonic()


@contextmanager
def noting(path: Path, number: int) -> Iterator[Note]:
    """Do a piece of work in another process than the one that tells.

    Parameters
    ----------
    path
        The file that `Underway.share_through` made.
    number
        Which piece it is, from 0 on.
    """
    with _noting(_mapped(path), number) as note:
        yield note


@contextmanager
def _noting(cells: NDArray[np.float64], number: int) -> Iterator[Note]:
    """Note shares of a piece in the first row, and in the second that it has ended, well or not."""

    def note(share: float) -> None:
        cells[0, number] = share

    try:
        yield note
        note(1.0)
    finally:
        cells[1, number] = 1.0


def _mapped(path: Path) -> NDArray[np.float64]:
    return np.memmap(path, np.float64, "r+").reshape(2, -1)
