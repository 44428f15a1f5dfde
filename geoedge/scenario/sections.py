"""The tables of a scenario: each field with its meaning, unit, default and range."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from geoedge.scenario.base import MAX_BYTES, Hourly, Section
from geoedge.scenario.workload import (
    HardwareConfig,
    PlaceWeight,
    PrefixConfig,
    ProfileConfig,
    RequestConfig,
    StateConfig,
    WorkloadConfig,
)

__all__ = [
    "PROCESS_PARAMETERS",
    "CityConfig",
    "DemandConfig",
    "DwellHours",
    "FieldConfig",
    "HardwareConfig",
    "MobilityConfig",
    "PlaceWeight",
    "PlanConfig",
    "PrefixConfig",
    "ProcessConfig",
    "ProfileConfig",
    "RadioConfig",
    "RequestConfig",
    "Section",
    "SimulationConfig",
    "SitesConfig",
    "StateConfig",
    "TargetConfig",
    "WorkloadConfig",
]

# A day with two halves: people leave for work in the morning and after lunch, for leisure in the evening.
_DEPARTURES = (
    *(0.01, 0.01, 0.01, 0.01, 0.02, 0.06, 0.20, 0.45, 0.50, 0.35, 0.20, 0.15),
    *(0.20, 0.50, 0.40, 0.15, 0.12, 0.20, 0.40, 0.45, 0.25, 0.10, 0.05, 0.02),
)
_WORK_SHARE = (
    *(0.20, 0.20, 0.20, 0.30, 0.60, 0.85, 0.90, 0.90, 0.90, 0.85, 0.60, 0.40),
    *(0.35, 0.85, 0.75, 0.40, 0.15, 0.08, 0.05, 0.05, 0.05, 0.10, 0.20, 0.20),
)
_LEISURE_SHARE = (
    *(0.80, 0.80, 0.80, 0.70, 0.40, 0.15, 0.10, 0.10, 0.10, 0.15, 0.40, 0.60),
    *(0.65, 0.15, 0.25, 0.60, 0.85, 0.92, 0.95, 0.95, 0.95, 0.90, 0.80, 0.80),
)


class CityConfig(Section):
    """Where the study takes place."""

    source: str = Field(
        min_length=1,
        description="shipped city, path of an .osm, .osm.gz, .osm.bz2 or .osm.pbf file, or place name [–]",
    )
    buildings: str | None = Field(
        default=None,
        min_length=1,
        description="file of building footprints instead of the map's own, .gpkg, .geojson, .shp or zipped .shp; columns "
        "building, levels and height count [–]",
    )
    bbox: tuple[float, float, float, float] | None = Field(
        default=None, description="west, south, east, north of the part to use; all of it if omitted [degree]"
    )
    boundary_buffer_m: float = Field(
        default=100.0,
        gt=0.0,
        le=2000.0,
        description="how far from streets and buildings land counts as land where people are [m]",
    )


PROCESS_PARAMETERS: dict[str, tuple[str, ...]] = {
    "poisson": (),
    "binomial": (),
    "demand": (),
    "hard_core": ("radius_m",),
    "hard_core_one": ("radius_m",),
    "strauss": ("radius_m", "gamma", "fixed_count"),
    "lattice": ("shift_m", "shape", "noise"),
    "ginibre": ("beta",),
    "gauss": ("alpha_m",),
    "thomas": ("parents_per_km2", "spread_m"),
    "matern_cluster": ("parents_per_km2", "radius_m"),
    "holes": ("holes_per_km2", "radius_m"),
    "streets": ("mode",),
    "rooftops": ("weight",),
}
"""Point processes that sites may be drawn from, and the parameters of each."""


class ProcessConfig(Section):
    """Parameters of the point process; each belongs to some processes, and defaults follow the mean spacing 1/√λ."""

    radius_m: float | None = Field(
        default=None,
        gt=0.0,
        le=1e6,
        description="least distance (hard_core: 0.45 spacings if omitted, hard_core_one: 0.3), reach (strauss: 0.6), "
        "size of a cluster (matern_cluster: 1) or of a hole (holes: 1) [m]",
    )
    gamma: float | None = Field(
        default=None, ge=0.0, le=1.0, description="strauss: factor of a close pair, 0.2 if omitted [–]"
    )
    fixed_count: bool | None = Field(
        default=None, description="strauss: whether the number of sites is fixed, false if omitted [–]"
    )
    shift_m: float | None = Field(
        default=None, ge=0.0, le=1e6, description="lattice: error of a site, 0.2 spacings if omitted [m]"
    )
    shape: Literal["hexagonal", "square"] | None = Field(
        default=None, description="lattice: shape of the cells, hexagonal if omitted [–]"
    )
    noise: Literal["gaussian", "uniform"] | None = Field(
        default=None, description="lattice: law of the errors, gaussian if omitted [–]"
    )
    beta: float | None = Field(
        default=None, gt=0.0, le=1.0, description="ginibre: how regular, 1 if omitted; near 0 is Poisson [–]"
    )
    alpha_m: float | None = Field(
        default=None, gt=0.0, le=1e6, description="gauss: range of repulsion, 0.5 spacings if omitted [m]"
    )
    parents_per_km2: float | None = Field(
        default=None,
        gt=0.0,
        le=1e5,
        description="thomas, matern_cluster: density of clusters, a fifth of the sites' if omitted [1/km²]",
    )
    spread_m: float | None = Field(
        default=None,
        gt=0.0,
        le=1e6,
        description="thomas: standard deviation of a site from its parent, 0.5 spacings if omitted [m]",
    )
    holes_per_km2: float | None = Field(
        default=None,
        ge=0.0,
        le=1e5,
        description="holes: density of holes, a fifth of the sites' if omitted [1/km²]",
    )
    mode: Literal["drive", "walk"] | None = Field(
        default=None, description="streets: whose streets, drive if omitted [–]"
    )
    weight: Literal["floor_area", "uniform"] | None = Field(
        default=None, description="rooftops: what makes a roof likelier, floor_area if omitted [–]"
    )

    def given(self) -> dict[str, Any]:
        """Return the parameters that are given."""
        return self.model_dump(exclude_none=True)


class SitesConfig(Section):
    """Where edge GPUs stand."""

    source: str = Field(
        default="hosts",
        min_length=1,
        description='"hosts" (candidate hosts in the map file), a file of sites (CSV, GeoJSON, GeoPackage, shapefile, OpenStreetMap), or a point process: '
        + ", ".join(PROCESS_PARAMETERS)
        + " [–]",
    )
    merge_distance_m: float = Field(
        default=50.0, ge=0.0, le=5000.0, description="objects closer than this are one site [m]"
    )
    operator: str | None = Field(
        default=None,
        min_length=1,
        description='file: the only operator to keep, by name or as "208-01", all if omitted [–]',
    )
    radio: str | None = Field(
        default=None,
        min_length=1,
        description='file: the only technologies to keep, such as "LTE" or "LTE,NR", all if omitted [–]',
    )
    columns: str | None = Field(
        default=None,
        min_length=1,
        description='file: which column is what, such as "lon=LONGITUDE,lat=LATITUDE", guessed if omitted [–]',
    )
    crs: str | None = Field(
        default=None,
        min_length=1,
        description='file: CRS of its coordinates if it states none, such as "EPSG:2154", degrees if omitted [–]',
    )
    density_per_km2: float | None = Field(
        default=None, gt=0.0, le=1e5, description="site density λ_b, needed for a point process [1/km²]"
    )
    process: ProcessConfig | None = Field(default=None, description="parameters of the point process [–]")
    placement: Literal["fixed", "independent", "repelled", "clustered", "demand"] | None = Field(
        default=None,
        description="which site holds which profile: fixed counts shuffled, each on its own, alike apart, alike "
        "together, where the demand is; if omitted on its own with a point process, fixed counts otherwise [–]",
    )


class RadioConfig(Section):
    """Delay from user to site, ξ r^α."""

    delay_coefficient: float = Field(default=0.32, ge=1e-4, le=1e4, description="ξ [s/km^α]")
    delay_exponent: float = Field(default=2.5, ge=1.0, le=8.0, description="α [–]")
    distance: Literal["straight", "street"] = Field(
        default="straight",
        description="how r is measured in the field: in a straight line, or along the streets from the nearest junction "
        "to that of the site; theory knows straight lines alone, and runs refuse streets [–]",
    )


class FieldConfig(Section):
    """What the field's answer is given beyond the city; prices, runs and theory know the city alone."""

    edge: Literal["cut", "buffer", "torus"] = Field(
        default="cut",
        description="what lies beyond the edge: nothing; a ring with the sites that the source has there and demand as "
        "dense as nearby, of which averages count nothing; the opposite side, of a city that fills its "
        "bounding box but for a millionth, with sites of a point process: land around the streets of a map never does, a "
        "City made in Python with a rectangle as `boundary` does [–]",
    )
    edge_buffer_m: float = Field(
        default=500.0, gt=0.0, le=20_000.0, description='width of the ring, for edge = "buffer" [m]'
    )


class DemandConfig(Section):
    """How much is asked."""

    users: int | None = Field(
        default=None, ge=1, le=10_000_000, description="people who use the service [users]"
    )
    request_rate_per_user_s: float | None = Field(
        default=None, gt=0.0, le=100.0, description="base request rate of a user ν [1/s]"
    )
    request_intensity_per_km2_s: float | None = Field(
        default=None, gt=0.0, le=1e6, description="λ_u ν of a study without a city [1/(s km²)]"
    )
    cell_m: float = Field(default=50.0, ge=5.0, le=2000.0, description="cell of the demand raster [m]")


class DwellHours(Section):
    """Mean stay at a destination (exponential)."""

    work: float = Field(default=4.0, gt=0.0, le=24.0, description="at work [h]")
    leisure: float = Field(default=1.5, gt=0.0, le=24.0, description="at leisure [h]")


class MobilityConfig(Section):
    """How people move: home, a destination, home again."""

    walk_share: float = Field(
        default=0.5, ge=0.0, le=1.0, description="share of people who walk, others drive [–]"
    )
    departures_per_hour: Hourly = Field(
        default=_DEPARTURES, description="rate at which a person at home leaves, by hour from midnight [1/h]"
    )
    work_share: Hourly = Field(
        default=_WORK_SHARE, description="pull of work destinations on those who leave, by hour [–]"
    )
    leisure_share: Hourly = Field(
        default=_LEISURE_SHARE, description="pull of leisure destinations on those who leave, by hour [–]"
    )
    dwell_hours: DwellHours = Field(default=DwellHours(), description="mean stay at a destination [h]")
    destinations: int = Field(default=240, ge=2, le=2000, description="destinations in the city K [places]")


class PlanConfig(Section):
    """What a plan by theory may use; floor and cap of the shares are those of [control]."""

    memory_budget_bytes: int | None = Field(
        default=None,
        ge=0,
        le=MAX_BYTES,
        description="mean memory of the caches of a site, at most; that of the present mix if omitted [B]",
    )
    load_factors: tuple[Annotated[float, Field(gt=0.0, le=1e3)], ...] = Field(
        default=(0.5, 1.0, 1.5),
        min_length=1,
        max_length=50,
        description="demands, over the present one, that a robust mix is to serve [–]",
    )


class TargetConfig(Section):
    """What counts as in time."""

    ttft_target_s: float = Field(default=0.8, gt=0.0, le=600.0, description="time to first token τ₀ [s]")
    reliability: float = Field(
        default=0.9, gt=0.0, lt=1.0, description="share of requests to be in time ζ [–]"
    )


class SimulationConfig(Section):
    """The window of the day that is studied."""

    start_hour: float = Field(default=8.0, ge=3.0, lt=24.0, description="start; the day begins at 03:00 [h]")
    duration_s: float = Field(default=7200.0, gt=0.0, le=75_600.0, description="length, warm-up included [s]")
    warm_up_s: float = Field(default=1800.0, ge=0.0, le=75_600.0, description="start that is not counted [s]")
    epoch_s: float = Field(default=1800.0, gt=0.0, le=75_600.0, description="time between two plans [s]")
    replications: int = Field(default=5, ge=1, le=10_000, description="independent runs [runs]")
