"""What Poisson theory predicts, told in full: tiers, capacity, and laws of load side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from geoedge import theory
from geoedge.answers import WindowedAnswer, answer_metrics
from geoedge.errors import GeoEdgeError
from geoedge.theory.heterogeneity import LOAD_LAWS, solve_law

if TYPE_CHECKING:
    from geoedge.theory import TheoryAnswer, TieredNetwork

    Answers = TheoryAnswer | WindowedAnswer[TheoryAnswer]

__all__ = ["busiest", "capacity", "law_coverage", "prediction", "tier_rows"]

SPREAD = (0.5, 1.0, 1.5, 2.0)
"""Targets at which laws are compared, over the scenario's."""


def prediction(answer: Answers, ttft_target_s: float, profile_names: Sequence[str]) -> dict[str, Any]:
    """Return all that theory says of a scenario as plain values.

    Parameters
    ----------
    answer
        What `geoedge.solve` gives. Of a window, tiers, capacity and laws are those of its busiest epoch.
    ttft_target_s
        TTFT target τ₀ [s].
    profile_names
        Names of the profiles, length S.

    Returns
    -------
    dict
        The metrics of `answer_metrics`, and ``tiers``, ``capacity``, ``laws``, and ``unsolved``: why a law has none.
    """
    one = busiest(answer)
    laws, unsolved = law_coverage(one, ttft_target_s)
    return {
        **answer_metrics(answer, ttft_target_s, profile_names),
        "tiers": tier_rows(one, profile_names),
        "capacity": capacity(one, profile_names),
        "laws": laws,
        "unsolved": unsolved,
    }


def busiest(answer: Answers) -> TheoryAnswer:
    """Return the answer of the epoch with the most requests among those that count, or the only answer."""
    if not isinstance(answer, WindowedAnswer):
        return answer
    counted = [one for one, weight in zip(answer.answers, answer.weights, strict=True) if weight > 0]
    return max(counted, key=lambda one: one.network.request_intensity)


def tier_rows(answer: TheoryAnswer, profile_names: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row a tier: sites, servers, load, wait and share of requests."""
    point, network = answer.equilibrium, answer.network
    columns = {
        "site_density_per_km2": network.tier_density,
        "concurrency": network.concurrency,
        "site_arrival_rate_per_s": point.site_arrival_rate,
        "service_time_s": 1.0 / point.service_rate,
        "utilization": point.utilization,
        "mean_wait_s": point.mean_wait,
        "prefill_s_per_s": answer.prefill_seconds_per_site,
        "share": answer.profile_share,
        "overloaded": point.overloaded,
    }
    return [
        {"profile": name} | {key: column[s].item() for key, column in columns.items()}
        for s, name in enumerate(profile_names)
    ]


def capacity(answer: TheoryAnswer, profile_names: Sequence[str]) -> dict[str, Any]:
    """Return how much can be carried, how far the load is from it, how well the point is solved, and who is to blame.

    Returns
    -------
    dict
        Intensities [1/(s km²)]: ``request_intensity``; ``sufficient_intensity``, below which a stable load-aware point
        exists; ``necessary_intensity``, from which none does; ``critical_intensity``, where stability ends under
        this policy, or the necessary one if ``critical_is_exact`` is false; ``margin``, by what share the load may
        grow until then. Then the solver's ``residual_s``,
        ``residual_utilization`` and ``iterations``, ``converged``, ``stable``, ``overloaded`` profiles, and all of
        that in a sentence, ``verdict``.
    """
    point, network = answer.equilibrium, answer.network
    critical, exact = critical_intensity(answer)
    asked = network.request_intensity
    return {
        "request_intensity": asked,
        "sufficient_intensity": network.sufficient_intensity,
        "necessary_intensity": network.necessary_intensity,
        "critical_intensity": critical,
        "critical_is_exact": exact,
        "margin": critical / asked - 1.0 if asked > 0.0 else float("inf"),
        "residual_s": point.residual_s,
        "residual_utilization": point.residual_utilization,
        "iterations": point.iterations,
        "converged": point.converged,
        "stable": point.stable,
        "verdict": point.verdict(profile_names),
        "overloaded": [name for name, full in zip(profile_names, point.overloaded, strict=True) if full],
    }


def critical_intensity(answer: TheoryAnswer) -> tuple[float, bool]:
    """Return the intensity at which some tier fills up under the answer's policy [1/(s km²)], and if it is exact.

    Under load-aware routing all tiers fill together; where that state was not found, the intensity is the necessary
    bound, from which no point is stable. Otherwise shares do not depend on the load, and the tier that is relatively
    fullest fills first.
    """
    network: TieredNetwork = answer.network
    if answer.policy == "load_aware":
        room = theory.capacity(network)
        return room.intensity, room.exact
    there = network.tier_density > 0.0
    unit = network.with_intensity(1.0)
    alike = theory.solve_equilibrium(unit, answer.policy, queue=answer.equilibrium.queue)
    return 1.0 / float(alike.utilization[there].max()), True


def law_coverage(
    answer: TheoryAnswer, ttft_target_s: float
) -> tuple[dict[str, list[float | None]], dict[str, str]]:
    """Return the coverage at some targets under each law of load, and if nobody waited.

    Parameters
    ----------
    answer
        A solved network.
    ttft_target_s
        TTFT target τ₀ [s].

    Returns
    -------
    laws, unsolved
        ``ttft_target_s``, then a coverage for each of them by law: ``mean_field`` (every site of a tier carries the
        tier's mean load), ``per_tier`` and ``per_site`` (loads differ; waits are advertised for a tier or for a site)
        and ``queue_free``, an upper bound at the same association. None where a law finds no equilibrium;
        the second answer says why, by law.
    """
    targets = [factor * ttft_target_s for factor in SPREAD]
    rows: dict[str, list[float | None]] = {"ttft_target_s": [*targets]}
    unsolved: dict[str, str] = {}
    for law in LOAD_LAWS:
        try:
            found = solve_law(answer.network, law, answer.policy, queue=answer.equilibrium.queue)
        except GeoEdgeError as error:  # no equilibrium of the patch; the other laws stand
            rows[law], unsolved[law] = [None] * len(targets), str(error)
        else:
            rows[law] = found.ttft_coverage(targets).tolist()
    return rows | {"queue_free": answer.queue_free_coverage(targets).tolist()}, unsolved
