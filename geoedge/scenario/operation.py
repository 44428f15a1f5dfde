"""How a network is run: the choice of the site, its service, the controller."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from geoedge.scenario.sections import MAX_BYTES, Section

__all__ = ["ControlConfig", "RoutingConfig", "ServiceConfig"]


class RoutingConfig(Section):
    """Which site serves a request."""

    policy: Literal["load_aware", "nearest", "prefix_only"] = Field(
        default="load_aware",
        description="what the choice counts: radio, prefill and wait; radio; radio and prefill [–]",
    )
    advertise: Literal["equilibrium", "state", "measured"] = Field(
        default="equilibrium", description="which waits sites advertise [–]"
    )
    scope: Literal["site", "tier"] = Field(
        default="site", description="waits advertised for each site or for each tier [–]"
    )
    telemetry_period_s: float = Field(
        default=1.0, ge=0.0, le=86_400.0, description="time between two adverts; 0 at every request [s]"
    )
    telemetry_delay_s: float = Field(
        default=0.0, ge=0.0, le=86_400.0, description="age of an advert when it arrives [s]"
    )
    foresight: bool = Field(
        default=False,
        description="whether equilibrium waits and the controller follow the demand expected of the coming epoch "
        "instead of the one measured in the last [–]",
    )


class ServiceConfig(Section):
    """How long a request holds its server."""

    law: Literal[
        "prefill_plus_decode", "exponential_mixture", "exponential_type", "phase_type", "deterministic"
    ] = Field(default="prefill_plus_decode", description="distribution of the service time [–]")
    scv: float | None = Field(
        default=None,
        ge=0.02,
        le=25.0,
        description='squared coefficient of variation of one type\'s service, for law = "phase_type" [–]',
    )
    queue: Literal["erlang_c", "service_law"] = Field(
        default="erlang_c",
        description="wait that theory and field assume: M/M/c, or two moments of the service law [–]",
    )
    radio_shifts_arrival: bool = Field(
        default=True, description="whether a request reaches its site after the radio delay [–]"
    )


class ControlConfig(Section):
    """What the controller may do between epochs."""

    controller: Literal["greedy", "none"] = Field(default="greedy", description="who moves caches [–]")
    migration_budget_bytes: int = Field(
        default=16_000_000_000, ge=0, le=MAX_BYTES, description="bytes moved in an epoch, at most [B]"
    )
    backhaul_bytes_per_s: float = Field(
        default=1.25e9, gt=0.0, le=1e13, description="rate at which a site receives state, 10 Gbit/s [B/s]"
    )
    fallback_floor: float = Field(
        default=0.0, ge=0.0, le=1.0, description="share of sites that keep the fallback profile, at least [–]"
    )
    deep_cap: float = Field(
        default=1.0, ge=0.0, le=1.0, description="share of sites with one deep profile, at most [–]"
    )
    min_gain: float = Field(
        default=0.001,
        ge=0.0,
        le=1.0,
        description="predicted gain in coverage below which nothing is moved [–]",
    )
