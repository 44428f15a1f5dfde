"""How a network is run: the choice of the site, its service, the controller."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from geoedge.policies import POLICIES, ClosedForm
from geoedge.scenario.base import MAX_BYTES, Section

__all__ = [
    "AdmissionConfig",
    "CatalogueConfig",
    "ControlConfig",
    "PolicyConfig",
    "RoutingConfig",
    "ServiceConfig",
]


def _number(policy: str, name: str, description: str) -> Any:
    """Return the field of a policy's number, within the policy's own bounds."""
    about = POLICIES[policy].parameters[name]
    return Field(default=None, ge=about.low, le=about.high, description=f"{policy}: {description}")


class PolicyConfig(Section):
    """Numbers of routing policies; each belongs to one of them, and where omitted the policy's own default holds."""

    z: float | None = _number("risk_aware", "z", "standard deviations of the wait that are added to it [–]")
    temperature_s: float | None = _number(
        "softmax", "temperature_s", "cost differences that are overlooked [s]"
    )
    overlap_score_weight: float | None = _number(
        "dynamo_kv", "overlap_score_weight", "weight of the blocks to prefill [–]"
    )
    router_temperature: float | None = _number(
        "dynamo_kv", "router_temperature", "softmax temperature; 0 takes the least cost [–]"
    )
    block_tokens: float | None = _number("dynamo_kv", "block_tokens", "tokens of a block [token]")
    cache_threshold: float | None = _number(
        "sglang_cache_aware", "cache_threshold", "match from which the longest is taken [–]"
    )
    balance_abs_threshold: float | None = _number(
        "sglang_cache_aware", "balance_abs_threshold", "difference of unbalanced loads [requests]"
    )
    balance_rel_threshold: float | None = _number(
        "sglang_cache_aware", "balance_rel_threshold", "ratio of unbalanced loads [–]"
    )
    beta: float | None = _number("production_stack", "beta", "weight of the load [–]")
    prefix_weight: float | None = _number("llm_d", "prefix_weight", "weight of the cached share [–]")
    queue_weight: float | None = _number("llm_d", "queue_weight", "weight of the queue [–]")
    kv_weight: float | None = _number("llm_d", "kv_weight", "weight of the free KV memory [–]")
    balance_ratio: float | None = _number("preble", "balance_ratio", "ratio of unbalanced loads [–]")

    @property
    def given(self) -> dict[str, float]:
        """The numbers that are given, by name."""
        return {name: value for name, value in self if value is not None}


class RoutingConfig(Section):
    """Which site serves a request, and what the routers that choose it hear."""

    policy: Literal[
        "load_aware",
        "nearest",
        "prefix_only",
        "risk_aware",
        "power_of_two",
        "softmax",
        "dynamo_kv",
        "sglang_cache_aware",
        "production_stack",
        "llm_d",
        "preble",
    ] = Field(
        default="load_aware",
        description="what the choice counts: radio, prefill and wait; radio; radio and prefill; or as named by the "
        "policy; theory and field solve the first three and the nearest to the others [–]",
    )
    policy_parameters: PolicyConfig = Field(
        default=PolicyConfig(), description="numbers of the policy in place of its own defaults [–]"
    )
    routers: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="routers that do not know of each other, users in turn [routers]",
    )
    telemetry_noise: float = Field(
        default=0.0,
        ge=0.0,
        le=10.0,
        description="s.d. of a log-normal factor of mean 1 on reported numbers [–]",
    )
    local_count: bool = Field(
        default=False,
        description="whether a router adds what it has sent itself since the report it goes by; with "
        "advertise = state [–]",
    )
    reach_s: float = Field(
        default=0.2,
        ge=0.0,
        le=3600.0,
        description="radio delay up to which policies that do not count it choose among sites; the nearest always "
        "counts [s]",
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

    @property
    def solved_as(self) -> ClosedForm:
        """The policy that theory, field and prices solve: the policy itself, or the nearest to it that they know."""
        return POLICIES[self.policy].solved_as


class CatalogueConfig(Section):
    """How routers come to know what sites hold; a site that holds less than they believe prefills more."""

    period_s: float = Field(
        default=0.0,
        ge=0.0,
        le=86_400.0,
        description="time between two reports of what sites hold; 0: whenever it changes [s]",
    )
    delay_s: float = Field(
        default=0.0, ge=0.0, le=86_400.0, description="age of such a report when routers hear it [s]"
    )


class AdmissionConfig(Section):
    """When a site takes no new requests, and what becomes of them.

    Redirections are free by default, however many there are: `redirect_s` says what each takes.
    """

    close_threshold: float | None = Field(
        default=None,
        gt=0.0,
        le=1e6,
        description="admitted requests per server, running, waiting and on the air, from which a site closes; never "
        "if omitted [–]",
    )
    reopen_threshold: float | None = Field(
        default=None,
        ge=0.0,
        le=1e6,
        description="admitted requests per server at which it opens again, below close_threshold; half of it if "
        "omitted [–]",
    )
    redirects: int = Field(
        default=1,
        ge=0,
        le=1_000_000,
        description="closed sites that may send a request on to the next best before it is rejected [sites]",
    )
    redirect_s: float = Field(
        default=0.0,
        ge=0.0,
        le=3600.0,
        description="time that a request loses at each site that sends it on, part of its TTFT; nothing by default, as if "
        "routers knew which doors are closed [s]",
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

    controller: Literal[
        "none", "random", "greedy", "look_ahead", "multi_period", "theory_mix", "static", "oracle"
    ] = Field(
        default="greedy",
        description="who moves caches: nobody; chance; the best predicted gain in the epoch that starts, or over "
        "horizon_epochs of the forecast; the best sequence of placements over them less the price of migration; "
        "theory's mix at the field's places; one placement, best for the whole window, from the start; or, as a "
        "yardstick, the best placement for what will really be asked, at once and at no cost [–]",
    )
    start: Literal["layout", "best"] = Field(
        default="layout",
        description="what sites hold at first: what the layout says, or what is best for the whole window's "
        "expected demand [–]",
    )
    forecast: Literal["last", "expected", "movement", "known"] = Field(
        default="last",
        description="demand of the coming epochs that equilibrium waits and plans follow: as measured in the last; as "
        "the mobility model expects it; as the users' own movement so far says; as it will really be [–]",
    )
    horizon_epochs: int = Field(
        default=3,
        ge=1,
        le=96,
        description="epochs that look_ahead and multi_period plan for, by the mean of their coverages weighted by "
        "requests; the log has the gain in the epoch that starts beside it [epochs]",
    )
    migration_price: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="coverage of an epoch that moving states must bring, γ of Eq. (58) [1/GB]",
    )
    hysteresis: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="gain in coverage beyond min_gain that taking a site back to a profile that it left in the last four "
        "epochs must bring; it ends coming and going but forgoes returns that would pay, too: over a day of Monaco, one "
        "run of greedy, 0.003 leaves none of 4 returns and costs 0.2 points of coverage [–]",
    )
    least_hold_epochs: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="epochs for which a site keeps what it was given, at least [epochs]",
    )
    migration_budget_bytes: int = Field(
        default=16_000_000_000, ge=0, le=MAX_BYTES, description="bytes moved in an epoch, at most [B]"
    )
    most_actions: int = Field(
        default=8,
        ge=1,
        le=1_000_000,
        description="actions in an epoch, at most; an exchange of two sites is one [actions]",
    )
    backhaul_bytes_per_s: float = Field(
        default=1.25e9, gt=0.0, le=1e13, description="rate at which a site receives state, 10 Gbit/s [B/s]"
    )
    most_transfers: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="sites that receive states at a time, at most; any number if omitted [sites]",
    )
    states: Literal["fetch", "compute", "sooner"] = Field(
        default="fetch",
        description="how a site comes by states: over its backhaul, by computing them on one of its servers, or as "
        "is done sooner at the backhaul's present rate [–]",
    )
    fallback_floor: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="share of sites that hold the fallback profile, at least; where it is broken, plans mend that first [–]",
    )
    deep_cap: float = Field(
        default=1.0,
        ge=0.0,
        le=1.0,
        description="share of sites that hold any one deep profile, at most; deep is a profile whose longest hit among the "
        "request types exceeds that of another one that stores [–]",
    )
    deep_share_cap: float = Field(
        default=1.0,
        ge=0.0,
        le=1.0,
        description="share of sites that hold deep profiles, all of them together, at most, π_max of Eq. (49) [–]",
    )
    min_gain: float = Field(
        default=0.001,
        ge=0.0,
        le=1.0,
        description="predicted gain in coverage below which nothing is moved [–]",
    )
