"""Results: what a run leaves behind, the numbers that follow from it, and its folder on disk.

A run keeps a record of every request (`RECORD_COLUMNS`, `STATUS`), tables an epoch, a step and an action, the streets
that some residents took (`PATH_COLUMNS`, `followed`), and where it all came from. `Results` answers the same questions
as theory and field do, from what was measured after the warm-up; `Results.save` writes a folder of open formats, whole or not at all, that `Results.load` reads back. `check_writable`
says beforehand whether it can, `batch_interval` gives one stationary run an interval.

>>> from geoedge.results import RECORD_COLUMNS, STATUS, Results
>>> [name for name in RECORD_COLUMNS if name.endswith("_s")][:4]
['created_s', 'radio_s', 'arrived_s', 'started_s']
>>> print(*STATUS)
served in_service waiting in_flight rejected
>>> Results.load("runs/no-such-run")
Traceback (most recent call last):
    ...
geoedge.errors.OutputError: ...

Instants are s since midnight, times s, distances km, places metres in the CRS of the city. A run has no interval of
its own where demand shifts; that takes paired replications, as `geoedge.compare.run` and `geoedge.sweep.sweep` make.
"""

from geoedge.results.batches import batch_interval
from geoedge.results.folder import check_writable
from geoedge.results.records import PATH_COLUMNS, RECORD_COLUMNS, REDIRECT, STATUS, evenly, followed
from geoedge.results.results import Results

__all__ = [
    "PATH_COLUMNS",
    "RECORD_COLUMNS",
    "REDIRECT",
    "STATUS",
    "Results",
    "batch_interval",
    "check_writable",
    "evenly",
    "followed",
]
