"""What routing, reports and admission must agree on; each problem is one line with its cure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from geoedge.errors import GeoEdgeError
from geoedge.policies import POLICIES

if TYPE_CHECKING:
    from geoedge.scenario import Scenario

__all__ = ["routing_problems"]


def routing_problems(scenario: Scenario) -> Iterator[str]:
    """Yield what is wrong with routing and admission, one line each."""
    routing = scenario.routing
    if routing.telemetry_period_s == 0 and (routing.telemetry_delay_s > 0 or routing.advertise == "measured"):
        yield (
            "routing.telemetry_period_s = 0: reports at every request go with telemetry_delay_s = 0 and without "
            'advertise = "measured"; give a period > 0 [s]'
        )
    yield from _tiers(scenario)
    yield from _policy(scenario)
    yield from _admission(scenario)


def _tiers(scenario: Scenario) -> Iterator[str]:
    routing = scenario.routing
    if not (routing.scope == "tier" and routing.advertise == "state" and routing.telemetry_period_s == 0):
        return
    asks = {
        f'routing.policy = "{routing.policy}"': not POLICIES[routing.policy].has_closed_form,
        f"routing.routers = {routing.routers}": routing.routers > 1,
        f"routing.telemetry_noise = {routing.telemetry_noise:g}": routing.telemetry_noise > 0,
        "routing.local_count = true": routing.local_count,
        "[admission]": scenario.admission.close_threshold is not None,
        "[sessions]": scenario.sessions is not None,
    }
    if any(asks.values()) and POLICIES[routing.policy].reads != "nothing":
        yield (
            f"routing.telemetry_period_s = 0: with {next(key for key, does in asks.items() if does)} routers read every "
            'site\'s own queue, not the mean of its tier; give a period > 0 [s], or routing.scope = "site"'
        )


def _policy(scenario: Scenario) -> Iterator[str]:
    routing, policy = scenario.routing, POLICIES[scenario.routing.policy]
    try:
        policy.values(routing.policy_parameters.given)
    except GeoEdgeError as error:
        yield str(error)
    reported = routing.advertise != "equilibrium" and routing.scope == "site"
    if policy.reads == "count" and not reported:
        yield (
            f'routing.policy = "{policy.name}": it reads how many requests are at each site, which no price tells; '
            'set routing.advertise = "state" and routing.scope = "site"'
        )
    if policy.name == "risk_aware" and routing.advertise != "state":
        yield (
            'routing.policy = "risk_aware": measured waits come without their spread, and a margin on top of equilibrium '
            'prices is no equilibrium; set routing.advertise = "state"'
        )
    if routing.telemetry_noise > 0 and policy.reads == "nothing":
        yield f'routing.telemetry_noise = {routing.telemetry_noise:g}: "{policy.name}" hears no reports; leave it out'
    if routing.local_count and policy.reads != "nothing" and routing.advertise != "state":
        yield 'routing.local_count = true: routers add to reported queues; set routing.advertise = "state"'


def _admission(scenario: Scenario) -> Iterator[str]:
    close, reopen = scenario.admission.close_threshold, scenario.admission.reopen_threshold
    if reopen is not None and (close is None or reopen >= close):
        yield (
            f"admission.reopen_threshold = {reopen:g}: must be below admission.close_threshold, "
            f"{'which is omitted' if close is None else f'{close:g}'}; lower the one or give the other"
        )
    if scenario.admission.redirect_s and close is None:
        yield (
            f"admission.redirect_s = {scenario.admission.redirect_s:g}: no site ever sends a request on; give "
            "admission.close_threshold, or leave it out"
        )
