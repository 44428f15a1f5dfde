"""Limits of validity: where the numbers of a run should not be trusted, or not beyond what they say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from geoedge.report.page.told import Told
from geoedge.simulation.audit import bounds_told

if TYPE_CHECKING:
    from geoedge.scenario import Scenario
    from geoedge.scenario.sections import HardwareConfig

__all__ = ["alarms", "limits"]

FEW = 5
"""Fewer replications give intervals of little worth."""
FITTED_TOKENS = (64, 16_384)
"""Prompts [token] on which the default prefill curve was fitted, see `HardwareConfig`."""


def alarms(told: Told) -> list[str]:
    """Return what makes numbers of a run untrustworthy: no equilibrium, capacity reached, too much prefill.

    Parameters
    ----------
    told
        A run.
    """
    said = [
        line
        for line in told.meta.get("findings", ())
        if line.startswith(("UNSTABLE", "UNSOLVED")) or "FLAGGED" in line
    ]
    return said or list(_flagged(told))


def _flagged(told: Told) -> Iterator[str]:
    """Yield the alarms of a run that has no findings: a model that was run by itself."""
    offered = told.measured["offered_load"]
    if (offered >= 1.0).any():
        count = int((offered >= 1.0).sum())
        yield f"UNSTABLE: a site's offered load reached capacity in {count} of {len(offered)} site-epochs; its waits depend on the horizon."
    most = float(told.measured["prefill_s_per_s"].max())
    if most > 1.0:
        yield f"Prefill work is up to {most:.2f} s per second and site, more than one GPU can do: FLAGGED."


def limits(told: Told) -> list[str]:
    """Return what the numbers of a run leave out, a sentence each.

    Parameters
    ----------
    told
        A run.
    """
    scenario = told.scenario
    own = [*_statistics(told), *_theory(told)]
    if scenario is None:
        trouble = f"The run's scenario cannot be read, so limits that follow from it are not told: {told.scenario_trouble}."
        return [*own, trouble]
    said = told.meta.get("findings", ())
    own += [line for line in bounds_told(told.results) if line not in said]
    return [*own, *_prompts(told, scenario), *_edge(scenario), *_model(scenario)]


def _statistics(told: Told) -> Iterator[str]:
    count = told.meta.get("replications", 1)
    if count == 1:
        yield "One run alone: simulated numbers have no interval."
    elif count < FEW:
        yield f"{count} replications: intervals rest on {count - 1} degrees of freedom, and are wide or lucky."
    if count > 1:
        yield (
            f"Intervals hold the luck of people, requests and services over {count} runs, not what is unsure in the "
            "scenario itself; distributions, sites and moves are those of the first run."
        )
    if not len(told.layouts("Poisson")):
        yield "No Poisson layouts were solved: what geography costs is not taken apart from the luck of a layout."


def _theory(told: Told) -> Iterator[str]:
    if told.column("theory (PPP)") is not None:
        yield (
            "The theory column is the mean-field law: one load for all sites of a profile. Sites that differ serve fewer "
            "requests in time than it says, the more so near capacity (`geoedge solve` has the corrected laws)."
        )
    if told.meta.get("solved_as", told.meta.get("policy")) != told.meta.get("policy"):
        policy, solved = (str(told.meta[key]).replace("_", "-") for key in ("policy", "solved_as"))
        yield f"Theory and field know no {policy} routing; they answer for {solved} in its place."


def _prompts(told: Told, scenario: Scenario) -> Iterator[str]:
    """Yield how far prompts reach beyond what the prefill curve was made from."""
    hardware = scenario.hardware
    longest = int(max(told.meta.get("prompt_tokens", [0])))
    if "context_tokens" in told.results.records.column_names:
        longest = max(longest, int(told.results.records.column("context_tokens").to_numpy().max(initial=0)))
    last = _known_tokens(hardware)
    if last is None:
        yield f"The scenario's prefill curve does not say up to which length it was measured; prompts have up to {longest:,} tokens."
    elif longest > last:
        yield (
            f"EXTRAPOLATED: prompts have up to {longest:,} tokens, the prefill curve was measured up to {last:,}; times of "
            "longer ones are the curve continued."
        )
    else:
        yield f"Prompts have up to {longest:,} tokens, within what the prefill curve was measured on (up to {last:,})."


def _known_tokens(hardware: HardwareConfig) -> int | None:
    """Return up to how many tokens a prefill curve was measured; None if nobody said."""
    if hardware.prefill_table_tokens is not None:
        return int(hardware.prefill_table_tokens[-1])
    own = type(hardware)()
    names = ("prefill_linear_s", "prefill_quadratic_s", "prefill_constant_s")
    same = all(getattr(hardware, name) == getattr(own, name) for name in names)
    return FITTED_TOKENS[1] if same else None


def _edge(scenario: Scenario) -> Iterator[str]:
    words = {
        "cut": "Nothing lies beyond the edge of the land: near it, sites outside that would help are missing, as is demand from there.",
        "buffer": f"In the field, sites and demand up to {scenario.field.edge_buffer_m:g} m beyond the edge count; in theory and simulation nothing does.",
        "torus": "In the field the land has no edge (opposite sides meet); in the simulation it has.",
    }
    yield words[scenario.field.edge]


def _model(scenario: Scenario) -> Iterator[str]:
    yield (
        "Radio is a delay ξ r^α in distance, without fading, interference or shared bandwidth; a site is parallel servers, "
        "first come, first served, without continuous batching."
    )
    if scenario.sites.source == "hosts":
        yield "Sites are candidate hosts from the map (public places), not an operator's network."
    yield "Users, their habits and the mix of requests are assumptions of the scenario, reasoned but not measured."
    if scenario.admission.close_threshold is not None and scenario.admission.redirect_s == 0.0:
        yield "A closed site sends requests on in no time, however often: `admission.redirect_s` says what each time takes."
    if scenario.admission.redirect_s > 0.0:
        yield "Theory and field know neither closed doors nor redirections: what these take is in the simulation's TTFT alone."
    if any(event.kind == "site_failure" for event in scenario.dynamics.events):
        yield "Waits of requests that a failed site lost count what they lost there, from when they were made."
    if any(event.kind == "site_failure" and not event.detection_s for event in scenario.dynamics.events):
        yield "Everybody knows of a site failure at once: `detection_s` of the event says how long nobody does."
