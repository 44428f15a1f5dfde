"""What Poisson theory predicts and recommends, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from geoedge.answers import metric_words
from geoedge.report._narrow import show
from geoedge.report._text import number, table, terminal
from geoedge.texts import plain_text
from geoedge.units import GIB

if TYPE_CHECKING:
    from geoedge.planning import DeploymentPlan

__all__ = ["print_plan", "print_prediction"]

STRONGEST = 12
"""Parameters listed by what they do to the coverage."""
LONGEST_VERDICT = 1000
"""Characters of a verdict that are shown."""
LAW_WORDS = {
    "mean_field": "mean field: every site of a tier carries the tier's mean",
    "per_tier": "loads differ from site to site, waits advertised per tier",
    "per_site": "loads differ from site to site, waits advertised per site",
    "queue_free": "nobody waits (upper bound)",
}


def print_prediction(found: Mapping[str, Any], title: str, ttft_target_s: float, epochs: int = 1) -> None:
    """Print all that theory predicts.

    Parameters
    ----------
    found
        As `geoedge.planning.prediction` gives it.
    title
        Title of the study.
    ttft_target_s
        TTFT target [s].
    epochs
        Epochs of the window.
    """
    console = terminal()
    show(console, _metrics_table(found, title, ttft_target_s))
    show(console, _laws_table(found["laws"], epochs))
    for why in found["unsolved"].values():
        console.print(Text(why))
    show(console, _tiers_table(found["tiers"], epochs))
    for line in _capacity_lines(found["capacity"]):
        console.print(Text(line))


def _metrics_table(found: Mapping[str, Any], title: str, ttft_target_s: float) -> Table:
    heading = Text(f"{plain_text(title)}: theory, TTFT target {ttft_target_s:g} s")
    made = table(heading, "", "unit", "theory (PPP)", left=2)
    for name, value in found.items():
        if isinstance(value, float):
            label, unit = metric_words(name)
            made.add_row(Text(label), unit, number(value, 4))
    return made


def _laws_table(laws: Mapping[str, Sequence[float | None]], epochs: int) -> Table:
    targets = [f"within {target:g} s" for target in laws["ttft_target_s"]]
    made = table(f"TTFT coverage by law of load{_where(epochs)}", "", *targets)
    for law, words in LAW_WORDS.items():
        made.add_row(words, *(number(value, 4) for value in laws[law]))
    return made


def _tiers_table(tiers: Sequence[Mapping[str, Any]], epochs: int) -> Table:
    made = table(
        f"Tiers{_where(epochs)}",
        "profile",
        "sites /km²",
        "servers",
        "arrivals /s",
        "service s",
        "utilisation",
        "mean wait s",
        "prefill s/s",
        "share",
        "",
    )
    for row in tiers:
        made.add_row(
            Text(plain_text(row["profile"])),
            number(row["site_density_per_km2"]),
            str(row["concurrency"]),
            number(row["site_arrival_rate_per_s"]),
            number(row["service_time_s"]),
            number(row["utilization"], 4),
            _wait(row["mean_wait_s"]),
            number(row["prefill_s_per_s"], 2),
            number(row["share"]),
            "OVERLOADED" if row["overloaded"] else "",
        )
    return made


def _wait(wait_s: float) -> str:
    """Return a wait [s] in words that mean something to a person."""
    if not np.isfinite(wait_s):
        return "∞"
    return f"{wait_s:.4f}" if wait_s >= 5e-5 or wait_s == 0.0 else "< 0.0001"


def _where(epochs: int) -> str:
    """Return which epoch is shown, if there are several."""
    return "" if epochs == 1 else f" in the busiest of {epochs} epochs"


def _capacity_lines(found: Mapping[str, Any]) -> list[str]:
    """Return how much can be carried and how well that is known, a line each."""
    asked, critical = found["request_intensity"], found["critical_intensity"]
    loud = ("" if found["converged"] else "NOT CONVERGED, ") + ("" if found["stable"] else "UNSTABLE, ")
    grow = f": the load may grow by {found['margin']:.1%}" if found["stable"] else ""
    lines = [
        f"{loud}{plain_text(found['verdict'], LONGEST_VERDICT)}.",
        f"Requests {asked:.4g} /(s km²); some tier is full from {critical:.4g} on{grow}.",
        f"Load-aware routing is stable for sure below {found['sufficient_intensity']:.4g}, and never from "
        f"{found['necessary_intensity']:.4g} on.",
    ]
    if not found["critical_is_exact"]:
        lines.append(f"Where stability ends was not found: {critical:.4g} is a bound from above.")
    if np.isfinite(found["residual_s"]):
        lines.append(
            f"Fixed point: residual {found['residual_s']:.1e} s, {found['residual_utilization']:.1e} in utilisation, "
            f"{found['iterations']} Newton steps."
        )
    return lines


def print_plan(plan: DeploymentPlan, title: str) -> None:
    """Print the best mix beside the present one, the sites needed, a mix for several demands, and what matters.

    Parameters
    ----------
    plan
        As `geoedge.plan` gives it.
    title
        Title of the study.
    """
    console = terminal()
    words = f"{plain_text(title)}: plan by theory, TTFT target {plan.ttft_target:g} s, routing {plan.policy}, law {plan.law}"
    console.print(Text(words, style="bold"))
    show(console, _mix_table(plan))
    _print_placement_lines(plan, console)
    for shown in (_density_table(plan), _robust_table(plan)):
        console.print()
        show(console, shown)
    console.print()
    if plan.placement.present_coverage > 0.0:
        show(console, _sensitivity_table(plan))
    else:
        console.print("No sensitivities: the present mix covers nobody, and small changes leave it so.")


def _mix_table(plan: DeploymentPlan) -> Table:
    found, limits = plan.placement, plan.placement.limits
    names = [plain_text(name) for name in plan.inputs.workload.profile_names]
    made = table("Mix of profiles", "", *(Text(name) for name in names), "memory GiB", "coverage", "")
    for label, mix, coverage in (
        ("best", found.placement_probability, found.coverage),
        ("present", found.present, found.present_coverage),
        ("uniform", found.uniform, found.uniform_coverage),
    ):
        note = "" if limits.holds(mix) else "beyond the limits"
        shares = (number(float(share)) for share in mix)
        made.add_row(label, *shares, number(limits.memory(mix) / GIB), number(coverage, 4), note)
    return made


def _print_placement_lines(plan: DeploymentPlan, console: Console) -> None:
    found = plan.placement
    budget = found.limits.memory_budget_bytes
    words = "none" if np.isinf(budget) else f"{budget / GIB:.3f} GiB a site"
    reached = ", ".join(plain_text(word) for word in plan.binding_words()) or "no limit"
    console.print(
        Text(
            f"The best mix reaches: {reached}. Budget: {words}. {found.evaluations} mixes by {found.method}."
        )
    )
    if not found.stable:
        console.print(Text("UNSTABLE: no mix within the limits is stable; the one shown is closest to it."))


def _density_table(plan: DeploymentPlan) -> Table:
    sites, names = plan.density, plan.inputs.workload.profile_names
    mix = sites.with_best_mix.placement_probability
    shares = ", ".join(f"{plain_text(n)} {p:.3f}" for n, p in zip(names, mix, strict=True))
    reached = np.isfinite(sites.with_best_mix.site_density)
    best = f"needed with the best mix: {shares}" if reached else "needed with any mix: no number is enough"
    made = table(f"Sites for a coverage of {sites.reliability:g}", "", "sites /km²", "over present")
    for label, density in (
        ("present", sites.present_density),
        ("needed with the present mix", sites.with_present_mix),
        (best, sites.with_best_mix.site_density),
    ):
        made.add_row(Text(label), number(density), number(density / sites.present_density, 2))
    return made


def _robust_table(plan: DeploymentPlan) -> Table:
    found, names = plan.robust, plan.inputs.workload.profile_names
    mix = zip(names, found.placement_probability, strict=True)
    shares = ", ".join(f"{plain_text(name)} {share:.3f}" for name, share in mix)
    columns = ("demand", "coverage", "regret", "best for this demand alone", "")
    made = table("One mix for all demands", *columns)
    made.caption = f"{shares}; best in: {found.criterion}"
    made.caption_justify = "left"
    for k, factor in enumerate(plan.load_factors):
        made.add_row(
            f"× {factor:g}",
            number(float(found.coverage[k]), 4),
            number(round(float(found.regret[k]), 4) + 0.0, 4),
            ", ".join(f"{share:.3f}" for share in found.best[k].placement_probability),
            "" if found.stable[k] else "UNSTABLE",
        )
    return made


def _sensitivity_table(plan: DeploymentPlan) -> Table:
    made = table(
        "What changes the present coverage most",
        "parameter",
        "unit",
        "value",
        "derivative",
        "elasticity",
        "points for +10 %",
        left=2,
    )
    for row in plan.sensitivities[:STRONGEST]:
        points = 10.0 * row.derivative * row.value
        step = "–" if row.unit == "requests" else number(points, 2)
        made.add_row(
            Text(plain_text(row.parameter)),
            row.unit,
            f"{row.value:.4g}",
            f"{row.derivative:+.4g}",
            number(row.elasticity),
            step,
        )
    made.caption = "to first order, at the fixed point; a concurrency: by one more request at a time"
    made.caption_justify = "left"
    return made
