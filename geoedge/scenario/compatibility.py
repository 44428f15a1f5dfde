"""What a scenario must agree on where sites do not all serve every request: models, privacy domains, routing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from geoedge.policies import POLICIES
from geoedge.scenario import toml

if TYPE_CHECKING:
    from geoedge.scenario import Scenario
    from geoedge.scenario.sections import ProfileConfig, StateConfig

__all__ = ["compatibility_problems"]

BUDGETED = ("none", "random", "greedy", "look_ahead")
"""Controllers that move nothing beyond their budget."""
Kind = tuple[str, str]
"""Model and privacy domain, "" for the city's default."""


def _kind(state: StateConfig | None) -> Kind:
    return ("", "") if state is None else (state.model or "", state.privacy_domain or "")


def _told(kind: Kind) -> str:
    return " in ".join(toml.shown(name) for name in kind if name) or "the default model"


def compatibility_problems(scenario: Scenario) -> Iterator[str]:
    """Say what does not fit together, one line each.

    Parameters
    ----------
    scenario
        A scenario whose tables are valid one by one.
    """
    work = scenario.workload
    kinds = [_kind(profile.made_with) for profile in work.profiles]
    if set(kinds) == {("", "")} and all(request.needs is None for request in work.requests):
        return
    yield from _fallbacks(work.profiles, kinds)
    yield from _planners(scenario, kinds)
    refused = False
    for index, request in enumerate(work.requests):
        model, domain = _kind(request.needs)
        fits = [own == model and closed in ("", domain) for own, closed in kinds]
        refused |= not all(fits)
        shares = [p.placement_probability for p, fit in zip(work.profiles, fits, strict=True) if fit]
        if not sum(shares) > 0.0:
            yield (
                f"workload.requests[{index}] = {toml.shown(request.name)}: no profile with a share of the sites runs "
                f"{_told((model, domain))}; give one `made_with`, or change the request's `needs`"
            )
    if refused and POLICIES[scenario.routing.policy].solved_as == "nearest":
        yield (
            f"routing.policy = {toml.shown(scenario.routing.policy)}: it would send requests to sites that do not run "
            "their model; use a policy that counts prefill, such as load_aware"
        )


def _planners(scenario: Scenario, kinds: list[Kind]) -> Iterator[str]:
    """Say what would give sites another model; planners within a budget cannot, as no budget pays for it."""
    control = scenario.control
    if len(set(kinds)) > 1 and (control.controller not in BUDGETED or control.start != "layout"):
        yield (
            f"control.controller = {toml.shown(control.controller)}, control.start = {toml.shown(control.start)}: sites of "
            f'several models or privacy domains keep theirs; use one of {", ".join(BUDGETED)}, and start = "layout"'
        )


def _fallbacks(profiles: tuple[ProfileConfig, ...], kinds: list[Kind]) -> Iterator[str]:
    """Say which kinds of site have no profile that stores nothing, to fall back on when a cache is lost."""
    empty = {kind for profile, kind in zip(profiles, kinds, strict=True) if not profile.prefixes}
    for index, kind in enumerate(kinds):
        if kind not in empty and kinds.index(kind) == index:
            yield (
                f"workload.profiles[{index}] = {toml.shown(profiles[index].name)}: sites that run {_told(kind)} need a "
                "fallback of their own; add a profile with the same `made_with` and prefixes = []"
            )
