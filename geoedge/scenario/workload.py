"""The tables of what is asked, what can be stored, and on which hardware."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from geoedge.scenario.base import MAX_BYTES, MAX_TOKENS, Hourly, Name, Section, Weight
from geoedge.units import GIB

__all__ = [
    "HardwareConfig",
    "PlaceWeight",
    "PrefixConfig",
    "ProfileConfig",
    "RequestConfig",
    "StateConfig",
    "WorkloadConfig",
]

TableTokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
TableTime = Annotated[float, Field(ge=0.0, le=1e5)]

_FLAT_DAY = (1.0,) * 24


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
        le=MAX_TOKENS,
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
    prompt_tokens: int = Field(ge=1, le=MAX_TOKENS, description="prompt length L_q [token]")
    output_tokens: int = Field(ge=1, le=MAX_TOKENS, description="answer length [token]")
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
