"""One layer a question about the network: who serves whom, how loaded, who fails, what the controller did.

Every function takes tables or geometry in one projected CRS and returns folium layers. Colours come from the
scales that also write the legends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geoedge.maps.outlines import STREET_CLASSES, street_lines
from geoedge.maps.page import MapLayer
from geoedge.maps.scales import CategoryScale, utilisation_scale
from geoedge.maps.wire import ToLonLat, encode_lines, encode_point, encode_polygons
from geoedge.maps.words import byte_count, clock, percent, plain_text, points, rate, seconds

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.city import City

__all__ = [
    "HOT_SITES",
    "REGION_OPACITY",
    "Region",
    "action_layers",
    "by_epoch",
    "each",
    "hot_site_layers",
    "land_layer",
    "region_layers",
    "site_layers",
    "site_load",
    "street_layer",
]

HOT_SITES = 10
"""How many sites the ranking of hot sites names."""
ACTION_COLOUR = "#6a00a8"
REGION_OPACITY = 0.42
STREET_STYLES: tuple[Mapping[str, Any], ...] = (
    {"color": "#9aa5b1", "weight": 0.7, "opacity": 0.75},
    {"color": "#8793a1", "weight": 1.3, "opacity": 0.85},
    {"color": "#5d6977", "weight": 2.2, "opacity": 0.9},
)
SITE_FIELDS = (
    "Kind",
    "Profile",
    "Utilisation",
    "Load offered",
    "Mean wait",
    "In time",
    "Requests",
    "Prefill asked",
)


def by_epoch(table: pd.DataFrame) -> Iterator[tuple[int, pd.DataFrame]]:
    """Yield the epochs of a table in order, and the rows of each."""
    for epoch in sorted(set(table["epoch"].tolist())):
        yield int(epoch), table[table["epoch"] == epoch]


def each(rows: pd.DataFrame) -> Iterator[Any]:
    """Return the rows of a table as named tuples."""
    return iter(rows.itertuples(index=False))


# -- the base ---------------------------------------------------------------------------------------


def street_layer(city: City, tolerance_m: float) -> MapLayer:
    """Return the streets of a city, one bundle of lines a class.

    Parameters
    ----------
    city
        The city.
    tolerance_m
        How far a line may lie from the street [m].
    """
    bundles = [encode_lines(lines, city.to_lonlat) for lines in street_lines(city.streets, tolerance_m)]
    colours = tuple(str(style["color"]) for style in STREET_STYLES)
    legend = CategoryScale("Streets", tuple(name.capitalize() for name in STREET_CLASSES), colours)
    return MapLayer(
        "streets",
        "Streets",
        [["line", lines, level, None, {}] for level, lines in enumerate(bundles) if lines],
        pane="streets",
        styles=STREET_STYLES,
        legends=[legend.legend(form="lines")],
        show=True,
    )


def land_layer(boundary: Any, to_lonlat: ToLonLat) -> MapLayer:
    """Return the land where people are.

    Parameters
    ----------
    boundary
        Shapely (multi)polygon [m].
    to_lonlat
        From points [m], shape (n, 2), to longitude and latitude [degree].
    """
    return MapLayer(
        "land",
        "Land",
        [["polygon", encode_polygons(boundary, to_lonlat), 0, None, {}]],
        pane="land",
        style={"color": "#7b8794", "weight": 1, "opacity": 0.8, "fillColor": "#ffffff", "fillOpacity": 1},
        show=True,
    )


# -- sites ------------------------------------------------------------------------------------------


def site_layers(sites: pd.DataFrame, epochs: pd.DataFrame, profiles: CategoryScale) -> list[MapLayer]:
    """Return the sites of every epoch: colour by utilisation, black where more is asked than they have; shape by profile.

    Parameters
    ----------
    sites
        One row a site: site, name, kind, lon, lat.
    epochs
        One row an epoch and site: epoch, start_s, end_s, site, profile, requests, missed, utilization,
        offered_load, mean_wait_s, prefill_s_per_s.
    profiles
        Names, colours and shapes of the profiles.
    """
    scale = utilisation_scale()
    radius = 7.0 if len(sites) <= 150 else 5.0 if len(sites) <= 600 else 3.5
    return [
        MapLayer(
            "sites",
            "Sites",
            [
                _site_feature(row, int(row.profile) * len(scale.colours) + int(level), profiles.names)
                for row, level in zip(each(rows), scale.index(site_load(rows)), strict=True)
            ],
            pane="sites",
            question="How loaded is each site, and how does it serve?",
            fields=SITE_FIELDS,
            style={"color": "#10151b", "weight": 1.4, "fillOpacity": 1, "radius": radius},
            styles=[{"fillColor": c, "shape": shape} for shape in profiles.shapes for c in scale.colours],
            legends=[scale.legend(), profiles.legend(form="shapes")],
            epoch=epoch,
            show=True,
        )
        for epoch, rows in by_epoch(_with_places(epochs, sites))
    ]


def site_load(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Return the load that colours each site: its utilisation, or what is asked of it where that is beyond capacity.

    Parameters
    ----------
    rows
        One row a site: utilization, offered_load; a site that has neither counts as idle.
    """
    offered = rows["offered_load"].to_numpy(dtype=np.float64)
    used = rows["utilization"].to_numpy(dtype=np.float64)
    return np.nan_to_num(np.where(offered >= 1, offered, used), posinf=np.inf)


def _with_places(table: pd.DataFrame, sites: pd.DataFrame) -> pd.DataFrame:
    return table.merge(sites[["site", "name", "kind", "lon", "lat"]], on="site", validate="many_to_one")


def _site_feature(row: Any, style: int, profile_names: tuple[str, ...]) -> list[Any]:
    over = ", more than one GPU has" if row.prefill_s_per_s > 1 else ""
    tip = [
        _title(row),
        plain_text(row.kind),
        plain_text(profile_names[row.profile]),
        percent(row.utilization),
        percent(row.offered_load),
        seconds(row.mean_wait_s),
        percent(1.0 - row.missed / row.requests) if row.requests else "–",
        rate(row.requests / (row.end_s - row.start_s), "/s"),
        rate(row.prefill_s_per_s, "s/s") + over,
    ]
    return ["point", _place(row), style, tip, {}]


def _title(row: Any) -> str:
    return plain_text(row.name) or f"Site {row.site}"


def _place(row: Any) -> list[int]:
    return encode_point(np.array([row.lon, row.lat]))


@dataclass(frozen=True)
class Region:
    """The places that one site serves for one request type in one epoch.

    Parameters
    ----------
    epoch, type, site
        Indices of the epoch, request type and site.
    profile
        Index of the profile that the site holds then.
    geometry
        Shapely (multi)polygon [m].
    wait_s
        Wait that the site advertises [s].
    prefill_s
        Prefill time of this type there [s].
    """

    epoch: int
    type: int
    site: int
    profile: int
    geometry: Any
    wait_s: float
    prefill_s: float


def region_layers(
    regions: Iterable[Region], sites: pd.DataFrame, profiles: CategoryScale, to_lonlat: ToLonLat
) -> list[MapLayer]:
    """Return the serving regions of every epoch and request type, coloured by the profile that serves.

    Parameters
    ----------
    regions
        The regions.
    sites
        One row a site: site, name.
    profiles
        Names and colours of the profiles.
    to_lonlat
        From points [m], shape (n, 2), to longitude and latitude [degree].
    """
    names = {int(row.site): _title(row) for row in each(sites)}
    groups: dict[tuple[int, int], list[list[Any]]] = {}
    for region in regions:
        tip = [names[region.site], plain_text(profiles.names[region.profile])]
        tip += [seconds(region.prefill_s), seconds(region.wait_s)]
        feature = ["polygon", encode_polygons(region.geometry, to_lonlat), region.profile, tip, {}]
        groups.setdefault((region.epoch, region.type), []).append(feature)
    return [
        MapLayer(
            "regions",
            "Serving regions",
            features,
            role="surface",
            question="Which site answers a request of this type from here, and with which cache?",
            fields=("Profile", "Prefill of this type", "Wait advertised"),
            style={"color": "#2b333d", "weight": 1.1, "opacity": 0.8, "fillOpacity": REGION_OPACITY},
            styles=[{"fillColor": colour} for colour in profiles.colours],
            legends=[profiles.legend() | {"opacity": REGION_OPACITY}],
            epoch=epoch,
            type=kind,
            show=True,
        )
        for (epoch, kind), features in sorted(groups.items())
    ]


# -- where it hurts, and what was done ----------------------------------------------------------------


def hot_site_layers(sites: pd.DataFrame, epochs: pd.DataFrame) -> list[MapLayer]:
    """Return the sites with the largest shares of all missed requests of each epoch, ranked.

    Parameters
    ----------
    sites
        One row a site: site, name, kind, lon, lat.
    epochs
        One row an epoch and site: epoch, site, requests, missed.
    """
    return [
        MapLayer(
            "hot_sites",
            "Hottest sites",
            _ranked(rows),
            pane="ranks",
            fields=("Share of all misses", "Missed of its own"),
            epoch=epoch,
            ranking="Hottest sites, share of all misses",
            show=True,
        )
        for epoch, rows in by_epoch(_with_places(epochs, sites))
    ]


def _ranked(rows: pd.DataFrame) -> list[list[Any]]:
    total = float(rows.missed.sum())
    worst = rows[rows.missed > 0].sort_values(["missed", "site"], ascending=[False, True]).head(HOT_SITES)
    features = []
    for rank, row in enumerate(each(worst), start=1):
        share = float(row.missed) / total
        tip = [_title(row), percent(share), percent(float(row.missed) / float(row.requests))]
        more = {"rank": rank, "size": round(17 + 22 * share**0.5)}
        features.append(["rank", _place(row), 0, tip, more])
    return features


def action_layers(
    sites: pd.DataFrame, actions: pd.DataFrame, profile_names: tuple[str, ...]
) -> list[MapLayer]:
    """Return what the controller did in each epoch; no layer if it did nothing at all.

    Parameters
    ----------
    sites
        One row a site: site, name, kind, lon, lat.
    actions
        The controller's log: epoch, action, site, partner_site (-1 for none), from_profile, to_profile,
        bytes_moved, effective_s, predicted_gain, realised_gain.
    profile_names
        Names of the profiles.
    """
    place = {int(row.site): row for row in each(sites)}
    legend = CategoryScale("Controller", ("Site whose cache changes",), (ACTION_COLOUR,), ("circle",))
    return [
        MapLayer(
            "actions",
            "Controller actions",
            [feature for row in each(rows) for feature in _action_features(row, place, profile_names)],
            pane="actions",
            fields=(
                "Action",
                "From",
                "To",
                "With",
                "Moved",
                "In effect at",
                "Predicted gain",
                "Gain in hindsight (field)",
            ),
            style={"color": ACTION_COLOUR, "weight": 3, "fill": False, "radius": 13, "shape": "circle"},
            legends=[legend.legend(form="shapes")],
            epoch=epoch,
            show=True,
        )
        for epoch, rows in (by_epoch(actions) if len(actions) else ())
    ]


def _action_features(
    row: Any, place: Mapping[int, Any], profile_names: tuple[str, ...]
) -> Iterator[list[Any]]:
    """Yield a ring around each site whose cache an action changes; the two of a migration exchange profiles."""
    before, after = (plain_text(profile_names[p]) for p in (row.from_profile, row.to_profile))
    rest = [
        byte_count(float(row.bytes_moved)),
        clock(float(row.effective_s)) if np.isfinite(row.effective_s) else "–",
        points(float(row.predicted_gain)),
        points(float(row.realised_gain)),
    ]
    action, site, partner = plain_text(row.action), int(row.site), int(row.partner_site)
    other = _title(place[partner]) if partner >= 0 else ""
    yield ["point", _place(place[site]), 0, [_title(place[site]), action, before, after, other, *rest], {}]
    if partner >= 0:
        tip = [other, action, after, before, _title(place[site]), *rest]
        yield ["point", _place(place[partner]), 0, tip, {}]
