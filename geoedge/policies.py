"""Routing policies: what each counts, its parameters with their own defaults, and where it comes from.

One table for all rooms. Theory, field and prices know three of the policies in closed form; every other one names
the one of them that stands for it there (`Policy.solved_as`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from geoedge.errors import GeoEdgeError

__all__ = [
    "CLOSED_FORMS",
    "POLICIES",
    "ClosedForm",
    "Parameter",
    "Policy",
    "Rule",
    "known_policy",
    "solved_as",
]

Floats = NDArray[np.float64]
ClosedForm = Literal["load_aware", "prefix_only", "nearest"]
"""Name of a policy that theory and field solve."""

CLOSED_FORMS: tuple[ClosedForm, ...] = get_args(ClosedForm)
"""Policies that theory and field solve."""


class Rule(IntEnum):
    """How a policy turns what a router believes into a choice; the codes of `geoedge.serving.rules`."""

    SECONDS = 0
    SOFTMAX = 1
    TWO_CHOICES = 2
    DYNAMO = 3
    SGLANG = 4
    STACK = 5
    LLM_D = 6
    PREBLE = 7


class Parameter(NamedTuple):
    """A number of a policy."""

    default: float
    low: float
    high: float
    meaning: str


@dataclass(frozen=True)
class Policy:
    """One way to choose a site.

    Parameters
    ----------
    name
        Its name in scenarios.
    rule
        How it chooses.
    source
        Where it is described.
    solved_as
        The policy that theory, field and prices solve in its place; itself if they can.
    reads
        What it needs to hear from sites: nothing, a wait, or the number of requests there.
    parameters
        Its numbers by name, in the order in which its rule takes them.
    counts_radio
        Whether the radio delay is part of its cost; else it chooses among the sites within reach.
    reads_prompts
        Whether it counts tokens or blocks of the prompt.
    """

    name: str
    rule: Rule
    source: str
    solved_as: ClosedForm
    reads: Literal["nothing", "wait", "count"]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    counts_radio: bool = True
    reads_prompts: bool = False

    def __call__(self, prefill: Floats, wait: Floats) -> Floats:
        """Return what a site costs beyond the radio delay in closed form [s], shape (n, Q).

        Parameters
        ----------
        prefill
            Prefill time [s], shape (n, Q).
        wait
            Advertised wait [s], shape (n,).
        """
        if self.solved_as == "nearest":
            return np.zeros(prefill.shape)
        return prefill.copy() if self.solved_as == "prefix_only" else prefill + wait[:, None]

    @property
    def has_closed_form(self) -> bool:
        """Whether theory and field solve the policy itself."""
        return self.solved_as == self.name

    def values(self, given: Mapping[str, float] | None = None) -> tuple[float, ...]:
        """Return the policy's numbers, its own defaults but for those given.

        Parameters
        ----------
        given
            Numbers by name.

        Raises
        ------
        GeoEdgeError
            If a name is not one of the policy's, or a number is out of its range.
        """
        known = ", ".join(self.parameters) or "none"
        for name, value in (given or {}).items():
            if name not in self.parameters:
                msg = f"routing.policy_parameters.{name}: policy {self.name!r} has no such number; it has {known}"
                raise GeoEdgeError(msg)
            about = self.parameters[name]
            if not about.low <= value <= about.high:
                msg = (
                    f"routing.policy_parameters.{name} = {value}: must lie in {about.low:g}..{about.high:g}, "
                    f"{about.meaning}"
                )
                raise GeoEdgeError(msg)
        return tuple(float((given or {}).get(name, about.default)) for name, about in self.parameters.items())


_PAPER = "Spatial Prefix Caching for Wireless Edge LLM Inference, arXiv 2608.01126"
_BLOCK = Parameter(16.0, 1.0, 4096.0, "tokens of a block of the KV cache")

_TABLE = (
    Policy("load_aware", Rule.SECONDS, f"{_PAPER}, Eq. (22)", "load_aware", "wait"),
    Policy(
        "prefix_only", Rule.SECONDS, f"{_PAPER}, the baseline that leaves out waits", "prefix_only", "nothing"
    ),
    Policy("nearest", Rule.SECONDS, f"{_PAPER}, the baseline that counts radio alone", "nearest", "nothing"),
    Policy(
        "risk_aware",
        Rule.SECONDS,
        f"{_PAPER}, Eqs. (53, 54)",
        "load_aware",
        "wait",
        {"z": Parameter(1.645, 0.0, 10.0, "standard deviations of the wait that are added to it")},
    ),
    Policy(
        "power_of_two",
        Rule.TWO_CHOICES,
        "M. Mitzenmacher, The power of two choices in randomized load balancing, IEEE TPDS 12 (2001) 1094-1104",
        "load_aware",
        "count",
        counts_radio=False,
    ),
    Policy(
        "softmax",
        Rule.SOFTMAX,
        "the logit rule of stochastic user equilibrium: C. Daganzo and Y. Sheffi, Transportation Science 11 (1977)",
        "load_aware",
        "wait",
        {
            "temperature_s": Parameter(
                0.05, 1e-6, 3600.0, "scale of the cost differences that are overlooked [s]"
            )
        },
    ),
    Policy(
        "dynamo_kv",
        Rule.DYNAMO,
        "NVIDIA Dynamo documentation, Router Guide: KV cache routing cost and its arguments",
        "load_aware",
        "count",
        {
            "overlap_score_weight": Parameter(1.0, 0.0, 1000.0, "weight of the blocks to prefill"),
            "router_temperature": Parameter(
                0.0, 0.0, 1000.0, "softmax temperature over normalised costs; 0 takes the least"
            ),
            "block_tokens": _BLOCK,
        },
        counts_radio=False,
        reads_prompts=True,
    ),
    Policy(
        "sglang_cache_aware",
        Rule.SGLANG,
        "SGLang documentation, Router for Data Parallelism: the cache-aware policy and its arguments",
        "prefix_only",
        "count",
        {
            "cache_threshold": Parameter(
                0.3, 0.0, 1.0, "share of the prompt above which the longest match is taken"
            ),
            "balance_abs_threshold": Parameter(
                64.0, 0.0, 1e9, "difference of loads above which they may be unbalanced"
            ),
            "balance_rel_threshold": Parameter(
                1.5, 1.0, 1e9, "ratio of loads above which they may be unbalanced"
            ),
        },
        counts_radio=False,
        reads_prompts=True,
    ),
    Policy(
        "production_stack",
        Rule.STACK,
        "vLLM production-stack documentation, Load Aware Routing",
        "load_aware",
        "count",
        {"beta": Parameter(1.0, 0.0, 1000.0, "weight of the relative load against the share of the prompt")},
        counts_radio=False,
        reads_prompts=True,
    ),
    Policy(
        "llm_d",
        Rule.LLM_D,
        "llm-d documentation, Request Scheduler: scorers of prefix cache, queue and KV-cache utilisation",
        "load_aware",
        "count",
        {
            "prefix_weight": Parameter(3.0, 0.0, 1000.0, "weight of the share of the prompt that is cached"),
            "queue_weight": Parameter(2.0, 0.0, 1000.0, "weight of the shortness of the queue"),
            "kv_weight": Parameter(2.0, 0.0, 1000.0, "weight of the free share of the KV memory"),
        },
        counts_radio=False,
        reads_prompts=True,
    ),
    Policy(
        "preble",
        Rule.PREBLE,
        "Preble: Efficient Distributed Prompt Scheduling for LLM Serving, arXiv 2407.00023, E2 scheduling",
        "load_aware",
        "count",
        {
            "balance_ratio": Parameter(
                2.0, 1.0, 1e9, "ratio of loads above which the busiest site hands on its requests"
            )
        },
        counts_radio=False,
        reads_prompts=True,
    ),
)

POLICIES: Mapping[str, Policy] = {policy.name: policy for policy in _TABLE}
"""All policies by name."""


def known_policy(name: str) -> Policy:
    """Return a policy by its name.

    Parameters
    ----------
    name
        Its name, as in a scenario.

    Raises
    ------
    GeoEdgeError
        If there is none of this name.
    """
    if name not in POLICIES:
        msg = f"`policy` must be one of {', '.join(POLICIES)}, not {name!r}"
        raise GeoEdgeError(msg)
    return POLICIES[name]


def solved_as(name: str) -> ClosedForm:
    """Return the policy that theory, field and prices solve for a policy.

    Parameters
    ----------
    name
        Name of the policy, as in a scenario.

    Raises
    ------
    GeoEdgeError
        If there is none of this name.
    """
    return known_policy(name).solved_as
