"""The tables of a scenario: each field with its meaning, unit, default and range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from geoedge.units import GIB

__all__ = [
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

_MAX_TOKENS = 10_000_000
MAX_BYTES = 10**15

Weight = Annotated[float, Field(ge=0.0, le=1e6)]
Hourly = Annotated[tuple[Weight, ...], Field(min_length=24, max_length=24)]
Name = Annotated[str, Field(min_length=1, max_length=80)]
TableTokens = Annotated[int, Field(ge=1, le=_MAX_TOKENS)]
TableTime = Annotated[float, Field(ge=0.0, le=1e5)]

_FLAT_DAY = (1.0,) * 24
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


class Section(BaseModel):
    """A frozen table of the scenario that refuses unknown keys and values of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _lists_are_tuples(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


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


class StateConfig(Section):
    """What cached states are made with, or what a request needs of them; what is left out is the city's default."""

    model: Name | None = Field(
        default=None,
        description="model, of the size that the hardware states; a site serves requests for its own alone [–]",
    )
    tokenizer: Name | None = Field(default=None, description="tokenizer of the prompt [–]")
    adapter: Name | None = Field(default=None, description="adapter on top of the model, such as a LoRA [–]")
    position_encoding: Name | None = Field(default=None, description="encoding of positions [–]")
    privacy_domain: Name | None = Field(
        default=None, description="whose data: a site of a domain serves that domain alone [–]"
    )


class PrefixConfig(Section):
    """One vertex of the prefix forest."""

    name: Name = Field(description="name of the prefix [–]")
    parent: str = Field(default="", description='prefix that this one extends, "" for a root [–]')
    depth_tokens: int = Field(
        ge=1,
        le=_MAX_TOKENS,
        description="tokens from the start of the prompt to the end of this prefix ℓ_v [token]",
    )
    privacy_domain: Name | None = Field(
        default=None, description="domain whose requests alone may use its states; everybody's if omitted [–]"
    )


class ProfileConfig(Section):
    """One cache profile: an ancestor-closed set of prefixes that a site keeps."""

    name: Name = Field(description="name of the cache profile [–]")
    prefixes: tuple[str, ...] = Field(default=(), description="prefixes stored, with all their ancestors [–]")
    placement_probability: float = Field(
        ge=0.0, le=1.0, description="share of sites that hold this profile π_s [–]"
    )
    persistent_bytes: int | None = Field(
        default=None, ge=0, le=MAX_BYTES, description="memory B_s, from the unique tokens if omitted [B]"
    )
    concurrency: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="requests at once c_s, from the memory if omitted [requests]",
    )
    made_with: StateConfig | None = Field(
        default=None,
        description="what runs at its sites and made its states; the city's default if omitted [–]",
    )


class PlaceWeight(Section):
    """Relative rate of a request type by what its user is doing."""

    home: Weight = Field(default=1.0, description="at home [–]")
    work: Weight = Field(default=1.0, description="at work [–]")
    leisure: Weight = Field(default=1.0, description="at leisure [–]")
    street: Weight = Field(default=1.0, description="on the way [–]")


class RequestConfig(Section):
    """One request type."""

    name: Name = Field(description="name of the request type [–]")
    type_probability: float = Field(ge=0.0, le=1.0, description="share of this type among requests p_q [–]")
    prompt_tokens: int = Field(ge=1, le=_MAX_TOKENS, description="prompt length L_q [token]")
    output_tokens: int = Field(ge=1, le=_MAX_TOKENS, description="answer length [token]")
    prefix: str = Field(default="", description='deepest prefix that the prompt starts with, "" for none [–]')
    place_weight: PlaceWeight = Field(
        default=PlaceWeight(), description="relative rate by the activity of the user [–]"
    )
    hour_weight: Hourly = Field(
        default=_FLAT_DAY, description="relative rate by hour of the day, from midnight [–]"
    )
    needs: StateConfig | None = Field(
        default=None, description="what its states must be made with; the city's default if omitted [–]"
    )


class WorkloadConfig(Section):
    """What is asked and what can be stored."""

    prefixes: tuple[PrefixConfig, ...] = Field(default=(), description="the prefix forest [–]")
    profiles: tuple[ProfileConfig, ...] = Field(
        min_length=1, description="cache profiles; the first is the fallback and stores nothing [–]"
    )
    requests: tuple[RequestConfig, ...] = Field(min_length=1, description="request types [–]")


class HardwareConfig(Section):
    """One site's GPU and model; defaults: RTX 4090 with Llama-3.1-8B in bf16.

    The prefill curve g(n) = c0 + a n + b n² is fitted by nonnegative least squares to the RTX 4090 kernel
    profiles published with LLMServingSim (64 to 16,384 tokens, chunks of at most 2,048).
    """

    name: str = Field(default="RTX 4090, Llama-3.1-8B bf16", description="what runs where [–]")
    prefill_linear_s: float = Field(
        default=8.846674664087123e-05, ge=0.0, le=10.0, description="prefill curve, a [s/token]"
    )
    prefill_quadratic_s: float = Field(
        default=1.974050893750552e-09, ge=0.0, le=1.0, description="prefill curve, b [s/token²]"
    )
    prefill_constant_s: float = Field(
        default=0.005400692145163204,
        ge=0.0,
        le=60.0,
        description="prefill curve, c0, charged once if n > 0 [s]",
    )
    prefill_table_tokens: tuple[TableTokens, ...] | None = Field(
        default=None,
        min_length=2,
        description="measured instead of a, b, c0: increasing tokens, beyond the last as steep as before it [token]",
    )
    prefill_table_s: tuple[TableTime, ...] | None = Field(
        default=None,
        min_length=2,
        description="measured prefill time of prefill_table_tokens, never decreasing [s]",
    )
    memory_bytes: int = Field(default=24 * GIB, ge=1, le=MAX_BYTES, description="GPU memory [B]")
    memory_fraction: float = Field(
        default=0.9, gt=0.0, le=1.0, description="share of the memory that the server may use [–]"
    )
    weights_bytes: int = Field(
        default=16_060_000_000,
        ge=0,
        le=MAX_BYTES,
        description="model weights, 8.03e9 numbers of 2 bytes [B]",
    )
    reserve_bytes: int = Field(
        default=GIB, ge=0, le=MAX_BYTES, description="kept free for activations and graphs [B]"
    )
    kv_bytes_per_token: int = Field(
        default=131_072, ge=1, le=MAX_BYTES, description="keys and values of one token κ [B/token]"
    )
    decode_step_s: float = Field(
        default=0.020, ge=0.0, le=60.0, description="time of one output token [s/token]"
    )
    decode_time_s: float | None = Field(
        default=None, ge=0.0, le=1e5, description="decode time D of every type; output × step if omitted [s]"
    )
    runtime_bytes_per_request: int | None = Field(
        default=None,
        ge=1,
        le=MAX_BYTES,
        description="memory of a running request m_run; longest if omitted [B]",
    )

    @model_validator(mode="before")
    @classmethod
    def _a_table_takes_the_place_of_the_default_curve(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        if data.get("prefill_table_tokens") is None and data.get("prefill_table_s") is None:
            return data
        return {"prefill_linear_s": 0.0, "prefill_quadratic_s": 0.0, "prefill_constant_s": 0.0, **data}


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
