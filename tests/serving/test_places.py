"""Where requests were made: found again in the columns in which they were given."""

from __future__ import annotations

import numpy as np

from geoedge.serving.places import Places


def test_rows_are_found_again_whatever_their_order():
    places, x = Places(), np.arange(12.0)
    for low, high in [(0, 5), (5, 5), (5, 6), (6, 12)]:
        part = slice(low, high)
        places.add(low, x[part], -x[part], np.arange(12)[part] % 3)
    rows = np.array([11, 0, 5, 4, 6, 5])
    east, north, router = places.of(rows)
    assert east.tolist() == rows.tolist()
    assert north.tolist() == (-rows).tolist()
    assert router.tolist() == (rows % 3).tolist()
    assert [column.size for column in places.of(np.zeros(0, dtype=np.int64))] == [0, 0, 0]
