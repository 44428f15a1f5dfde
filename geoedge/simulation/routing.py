"""A scenario's routing as the event loop takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.serving.doors import Admission
from geoedge.serving.inquiring import Prompts, RoutingOptions
from geoedge.streams import stream

if TYPE_CHECKING:
    from geoedge.scenario import Scenario
    from geoedge.workload import Workload

__all__ = ["routing_of"]


def routing_of(scenario: Scenario, workload: Workload, seed: int) -> dict[str, Any]:
    """Return the arguments of `ServingEngine` that say how requests are routed.

    Parameters
    ----------
    scenario
        The scenario.
    workload
        Its workload.
    seed
        Of the run.
    """
    routing, admission = scenario.routing, scenario.admission
    return {
        "policy": routing.policy,
        "policy_parameters": routing.policy_parameters.given,
        "options": RoutingOptions(
            routers=routing.routers,
            noise=routing.telemetry_noise,
            counts_own=routing.local_count,
            reach_s=routing.reach_s,
            admission=Admission(
                admission.close_threshold,
                admission.reopen_threshold,
                admission.redirects,
                admission.redirect_s,
            ),
            seed=int(stream(seed, "routers").integers(2**63)),
        ),
        "prompts": _prompts(workload),
    }


def _prompts(workload: Workload) -> Prompts:
    """Return prompts, with the tokens behind every prefill time of the workload."""
    residual = np.maximum(workload.prompt_tokens - workload.hit_tokens, 0)
    times = np.concatenate(([0.0], workload.prefill_time.ravel(), workload.full_prefill_time))
    tokens = np.concatenate(([0.0], residual.ravel(), workload.prompt_tokens))
    order = np.lexsort((tokens, times))
    return Prompts(
        workload.prompt_tokens.astype(np.float64),
        workload.output_tokens.astype(np.float64),
        times[order],
        tokens[order],
        workload.type_probability,
    )
