"""Named streets: what they are called, where they run, and which is the nearest to a place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from geoedge.errors import CityError
from geoedge.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["NAME_TAGS", "NEAR_M", "RANKS", "NamedWay", "StreetNames", "name_streets", "street_rank"]

NEAR_M = 60.0
"""A place lies at a street up to this distance [m]: across a wide street and the depth of a building."""

NAME_TAGS: tuple[str, ...] = ("highway", "name", "tunnel")
"""Tags that tell a named street."""

RANKS = ("main roads", "streets", "foot paths")
"""Classes of streets, the weightiest first."""

_SAME_M = 0.01
_MOST_BEND = np.pi / 3

_MAIN = ("motorway", "trunk", "primary", "secondary", "tertiary")
_STREETS = ("unclassified", "residential", "living_street", "road", "pedestrian")
_PATHS = ("service", "footway", "path", "steps", "track", "cycleway", "bridleway", "corridor")
_RANK_OF = {
    **{name: 0 for kind in _MAIN for name in (kind, f"{kind}_link")},
    **dict.fromkeys(_STREETS, 1),
    **dict.fromkeys(_PATHS, 2),
}


def street_rank(tags: Mapping[str, str]) -> int:
    """Return the class of a street that bears a name, an index into `RANKS`; -1 for anything else.

    Private streets count, since people know them by name; tunnels do not, since no house stands at one, nor do
    streets that are planned, being built or given up.

    Parameters
    ----------
    tags
        Tags of a mapped thing.
    """
    named = bool(tags.get("name")) and tags.get("tunnel") != "yes"
    return _RANK_OF.get(tags.get("highway", ""), -1) if named else -1


class NamedWay(NamedTuple):
    """A way that bears a name, as it is mapped: its name, class, positions [degree], and whether it is an area."""

    name: str
    rank: int
    lonlat: NDArray[np.float64]
    is_area: bool = False


@dataclass(frozen=True, eq=False)
class StreetNames:
    """Named streets as arrays: main roads first, and of one class the longest first.

    Parameters
    ----------
    name
        Each name once, shape (N,): text that anybody may have written, without invisible controls and cut to a
        length that can be shown, but no markup; it must be escaped where it is shown.
    rank
        Class of each, an index into `RANKS`, that of most of its length, shape (N,).
    line_name
        Which name each polyline bears, shape (P,); those of one name follow each other.
    line_offset
        Where each polyline begins in `xy`, and the end of the last one, shape (P + 1,).
    xy
        Vertices of the polylines [m], shape (G, 2).

    Raises
    ------
    CityError
        If the arrays do not belong together.
    """

    name: NDArray[np.object_]
    rank: NDArray[np.int64]
    line_name: NDArray[np.int64]
    line_offset: NDArray[np.int64]
    xy: NDArray[np.float64]

    def __post_init__(self) -> None:
        cuts = self.line_offset
        fits = len(self.name) == len(self.rank) and len(cuts) == len(self.line_name) + 1
        if not fits or int(cuts[0]) != 0 or int(cuts[-1]) != len(self.xy) or (np.diff(cuts) < 2).any():
            msg = f"street names: the arrays of {len(self.name)} names do not agree in length; compile the city anew"
            raise CityError(msg)
        known = self.line_name
        if len(known) and not 0 <= int(known.min()) <= int(known.max()) < len(self.name):
            msg = f"street names: a line bears a name outside 0..{len(self.name) - 1}; compile the city anew"
            raise CityError(msg)
        if (np.diff(known) < 0).any() or not np.isin(self.rank, range(len(RANKS))).all():
            msg = (
                "street names: lines do not follow their names, or a class is unknown; compile the city anew"
            )
            raise CityError(msg)

    @classmethod
    def none(cls) -> Self:
        """Return the street names of a city that has none."""
        empty = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(0, dtype=object), empty, empty, np.zeros(1, dtype=np.int64), np.zeros((0, 2)))

    def __len__(self) -> int:
        return len(self.name)

    def __repr__(self) -> str:
        return f"StreetNames({len(self)} names on {len(self.line_name)} lines)"

    @cached_property
    def lines(self) -> NDArray[Any]:
        """The polylines as shapely line strings [m], shape (P,)."""
        import shapely

        counts = np.diff(self.line_offset)
        lines = shapely.linestrings(self.xy, indices=np.repeat(np.arange(len(counts)), counts))
        return np.asarray(lines, dtype=object)

    @cached_property
    def _tree(self) -> Any:
        import shapely

        return shapely.STRtree(self.lines)

    def nearest(self, xy: ArrayLike, within_m: float = NEAR_M) -> NDArray[np.int64]:
        """Return the nearest named street of each point, -1 where none is near enough, shape (m,).

        Of streets that are equally near, as at a crossing, the weightiest counts.

        Parameters
        ----------
        xy
            Points in the city's CRS [m], shape (m, 2).
        within_m
            Largest distance [m].
        """
        import shapely

        points = np.asarray(xy, dtype=np.float64).reshape(-1, 2)
        found = np.full(len(points), len(self), dtype=np.int64)
        if len(self):
            point, line = self._tree.query_nearest(shapely.points(points), max_distance=within_m)
            np.minimum.at(found, point, self.line_name[line])
        return np.where(found == len(self), -1, found)

    def at(self, xy: ArrayLike, within_m: float = NEAR_M) -> list[str]:
        """Return what the street of each point is called, empty where none is near enough, m of them.

        Parameters
        ----------
        xy
            Points in the city's CRS [m], shape (m, 2).
        within_m
            Largest distance [m].
        """
        names = [*self.name.tolist(), ""]  # the last stands for -1
        return [names[index] for index in self.nearest(xy, within_m).tolist()]


def name_streets(ways: Sequence[NamedWay], project: Callable[[Any], Any], frame: Any = None) -> StreetNames:
    """Return the named streets of a map, the pieces of each joined.

    A square that is mapped as an area counts as the line through its middle.

    Parameters
    ----------
    ways
        Ways that bear names.
    project
        Function from longitudes and latitudes to the city's CRS, (n, 2) to (n, 2).
    frame
        Shapely polygon at which streets are cut [m]; by default they are not.
    """
    pieces: dict[str, list[tuple[int, Any]]] = {}
    for way in ways:
        name = plain_text(way.name)
        line = _line(way, project, frame)
        if name and line.length > 0.0:
            pieces.setdefault(name, []).append((way.rank, line))
    streets = [(_rank(parts), _joined(parts), name) for name, parts in pieces.items()]
    streets.sort(key=lambda street: (street[0], -sum(line.length for line in street[1]), street[2]))
    return _as_arrays(streets)


def _line(way: NamedWay, project: Callable[[Any], Any], frame: Any) -> Any:
    """Return a way as lines in metres, as far as it lies in the frame."""
    import shapely

    line = shapely.LineString(project(way.lonlat))
    if way.is_area and len(way.lonlat) > 3:
        line = _middle(shapely.make_valid(shapely.Polygon(line)))
    return line if frame is None else shapely.intersection(line, frame)


def _middle(area: Any) -> Any:
    """Return the line through the middle of an area, along its longer side."""
    import shapely

    corners = shapely.get_coordinates(shapely.oriented_envelope(area))
    if len(corners) < 4:
        return shapely.LineString()
    sides = np.hypot(*np.diff(corners[:3], axis=0).T)
    short = int(sides.argmin())
    ends = [(corners[short + k] + corners[short + k + 1]) / 2 for k in (0, 2)]
    return shapely.intersection(shapely.LineString(ends), area)


def _rank(parts: list[tuple[int, Any]]) -> int:
    """Return the class of most of the length, the weightier of two that are equal."""
    length = np.bincount(
        [rank for rank, _ in parts], weights=[line.length for _, line in parts], minlength=len(RANKS)
    )
    return int(length.argmax())


def _joined(parts: list[tuple[int, Any]]) -> list[Any]:
    """Return the pieces of a street as few long lines."""
    import shapely

    lines = shapely.get_parts([line for _, line in parts])
    lines = lines[shapely.get_type_id(lines) == shapely.GeometryType.LINESTRING]
    merged = shapely.get_parts(shapely.line_merge(shapely.multilinestrings(lines)))
    pieces = [shapely.get_coordinates(line) for line in merged]
    return [shapely.LineString(points) for points in _strokes(pieces, _links(pieces))]


End = tuple[int, int]
"""A piece and one end of it: 0 the first vertex, 1 the last."""


def _links(pieces: list[NDArray[np.float64]]) -> dict[End, End]:
    """Return which ends go on in which, where more than two pieces meet: those that bend least."""
    nodes: dict[tuple[int, int], list[tuple[End, float]]] = {}
    for piece, points in enumerate(pieces):
        for side, (tip, inner) in enumerate(((points[0], points[1]), (points[-1], points[-2]))):
            x, y = np.rint(tip / _SAME_M).astype(int).tolist()
            nodes.setdefault((x, y), []).append(((piece, side), float(np.arctan2(*(inner - tip)))))
    links: dict[End, End] = {}
    for meeting in nodes.values():
        pairs = ((_bend(a, b), one, other) for (one, a), (other, b) in combinations(meeting, 2))
        for bend, one, other in sorted(pairs):
            if bend <= _MOST_BEND and one[0] != other[0] and one not in links and other not in links:
                links |= {one: other, other: one}
    return links


def _bend(one: float, other: float) -> float:
    """Return how far a line turns that comes on one bearing and leaves on another, both away from the bend [rad]."""
    between = abs(one - other) % (2 * np.pi)
    return float(np.pi - min(between, 2 * np.pi - between))


def _strokes(pieces: list[NDArray[np.float64]], links: Mapping[End, End]) -> Iterator[NDArray[np.float64]]:
    """Yield the vertices of each chain of pieces that go on in each other."""
    left = dict.fromkeys(range(len(pieces)))
    # chains are begun at their ends; what is then left are rings, which begin anywhere
    begins = [(piece, side) for piece in left for side in (0, 1) if (piece, side) not in links]
    for begin in [*begins, *((piece, 0) for piece in list(left))]:
        chain: list[NDArray[np.float64]] = []
        end = begin
        while end[0] in left:
            del left[end[0]]
            points = pieces[end[0]][:: 1 - 2 * end[1]]
            chain.append(points if not chain else points[1:])
            end = links.get((end[0], 1 - end[1]), end)
        if chain:
            yield np.concatenate(chain)


def _as_arrays(streets: list[tuple[int, list[Any], str]]) -> StreetNames:
    import shapely

    if not streets:
        return StreetNames.none()
    lines = [line for _, parts, _ in streets for line in parts]
    counts = shapely.get_num_points(lines)
    return StreetNames(
        np.array([name for _, _, name in streets], dtype=object),
        np.array([rank for rank, _, _ in streets], dtype=np.int64),
        np.repeat(np.arange(len(streets)), [len(parts) for _, parts, _ in streets]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        shapely.get_coordinates(lines),
    )
