"""What all tables of a scenario are made of: a frozen table, and the bounds that several share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["MAX_BYTES", "MAX_TOKENS", "Hourly", "Name", "Section", "Weight"]

MAX_TOKENS = 10_000_000
MAX_BYTES = 10**15

Weight = Annotated[float, Field(ge=0.0, le=1e6)]
Hourly = Annotated[tuple[Weight, ...], Field(min_length=24, max_length=24)]
Name = Annotated[str, Field(min_length=1, max_length=80)]


class Section(BaseModel):
    """A frozen table of the scenario that refuses unknown keys and values of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _lists_are_tuples(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
