"""Make heterogeneity.json: coverage end to end of Poisson networks that no formula was fitted to.

The baseline and networks drawn blindly, from light load to 0.9 of capacity, each averaged over Poisson layouts by
`geoedge.field.ensemble` until the standard error is below 0.0015, or 0.003 near capacity. Where load spreads farther
than such tori are wide, `geoedge.theory` solves wider ones. Rows that are in the file already are kept, so that a run
may be interrupted; delete the file to make all of it anew, which takes some hours.

    python tests/reference/make_heterogeneity.py [seconds to spend]
"""

from __future__ import annotations

import json
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.field.ensemble import torus_ensemble
from geoedge.streams import stream
from geoedge.theory import Equilibrium, ErlangC, TheoryAnswer, TieredNetwork, capacity, solve
from geoedge.theory._patch import Patch, Settled
from geoedge.theory._patch_kernels import winners
from geoedge.theory._typical import settled_levels

FILE = Path(__file__).with_name("heterogeneity.json")
SEED, BLIND, FRESH = 20, 8, 3
LARGEST_ERROR = 0.0015
CROWDED, CROWDED_SITES, CROWDED_PLACES, CROWDED_ERROR = 0.7, 1000, 60, 0.003
"""With waits per site, share of capacity from which load spreads so far that tori must be wide: their sites, places
of demand per site, and largest standard error."""
WIDE, WIDE_SITES, WIDE_LAYOUTS = 0.85, 4096, (3, 40)
NEAR = ("baseline", "blind 2")
"""With waits per site, share of capacity from which load spreads farther than a torus of 1000 sites is wide, but for
some networks; the sites of a wider torus, and how many are drawn at least and at most. It is solved as the law solves
its patch, which rows below that share check against the field; what it checks is that few sites stand for many."""
BASELINE_LOADS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0, 16.0)
PLACES_PER_SITE = {"tier": 80, "site": 160}
"""Places of demand per site; against far more of them they move coverage by less than half a standard error."""
SHARES_OF_CAPACITY = (0.3, 0.6, 0.8, 0.9)
NOTE = (
    "TTFT coverage of Poisson networks end to end: every site has its own region, load and M/M/c queue, and requests "
    "at sites with utilisation >= 1 count as misses. Means over Poisson layouts on a torus with control variates, made "
    "by make_heterogeneity.py. scope says who advertises a wait; mean_field is Eq. (39) with one load a tier. Tori of "
    "about 120 sites (240 for waits per site), wider where serving distances ask for it; with waits per site from 0.7 of "
    "capacity on 1000 sites and standard errors up to 0.003. Rows with sites are means over tori of so many sites, "
    "solved by geoedge.theory._patch, as load spreads farther there than 1000 sites reach. Networks called fresh were "
    "drawn after the law had its final form."
)


def baseline() -> TieredNetwork:
    """Return the baseline of the paper's numbers."""
    length, hit = np.array([1024, 4096]), np.array([[0, 0], [512, 512], [1024, 2048]])
    return network(
        1.2 * np.array([0.45, 0.35, 0.2]), [18, 14, 6], [0.4, 0.6], length, hit, [0.4, 0.4], 0.28, 2.5
    )


def network(density, concurrency, mix, length, hit, decode, xi, alpha, speed=1.0) -> TieredNetwork:
    """Return a network whose GPUs prefill `speed` times as fast as the baseline's, under no demand yet."""

    def prefill(tokens):
        return (1.6e-4 * tokens + 1.8e-8 * tokens**2) / speed

    time_s = prefill(length - hit)
    return TieredNetwork(
        density, concurrency, mix, time_s, time_s + decode, 0.0, xi, alpha, hit, length, prefill(length)
    )


def blind(number: int) -> TieredNetwork:
    """Return a network of random numbers of tiers and types and of everything else; every other deepest tier is rare."""
    rng = stream(SEED, "network", number)
    tiers, types = 1 + number % 4, int(rng.integers(1, 5))
    placement = rng.dirichlet(np.full(tiers, 2.0))
    if number >= 4 and tiers > 1:
        placement[-1] = rng.uniform(0.01, 0.05)
        placement[:-1] *= (1 - placement[-1]) / placement[:-1].sum()
    length = np.rint(np.exp(rng.uniform(np.log(256), np.log(8192), types)))
    depth = np.sort(np.rint(np.exp(rng.uniform(np.log(128), np.log(8192), tiers))))
    depth[0] = depth[0] if tiers == 1 else 0
    hit = np.minimum(depth[:, None], length) * (rng.random((tiers, types)) < 0.75)
    return network(
        np.round(np.exp(rng.uniform(np.log(0.4), np.log(8.0))) * placement, 4),
        np.sort(np.rint(np.exp(rng.uniform(np.log(2), np.log(60), tiers))))[::-1],
        rng.dirichlet(np.full(types, 2.0)),
        length,
        hit,
        np.round(np.exp(rng.uniform(np.log(0.2), np.log(4.0), types)), 3),
        round(float(np.exp(rng.uniform(np.log(0.05), np.log(0.6)))), 3),
        round(float(rng.uniform(2.0, 4.0)), 2),
        round(float(np.exp(rng.uniform(np.log(0.5), np.log(4.0)))), 2),
    )


def cases(name: str, tiers: int, critical: float) -> list[tuple[float, str, str]]:
    """Return intensity, policy and scope of every row."""
    loads = (
        BASELINE_LOADS if name == "baseline" else [float(f"{k * critical:.4g}") for k in SHARES_OF_CAPACITY]
    )
    plain = loads[2:5:2] if name == "baseline" else loads[:2]
    rows = [(load, "load_aware", "tier") for load in loads]
    if name.startswith("fresh"):
        return [(load, "load_aware", "site") for load in loads]
    if tiers > 1:  # with one tier all three are the same
        rows += [(load, policy, "tier") for policy, load in product(("prefix_only", "nearest"), plain)]
    return rows + [(load, "load_aware", "site") for load in loads]


def targets(theory: TheoryAnswer) -> list[float]:
    """Return targets that theory says 0.65 and 0.9 of the requests meet that go to tiers within capacity."""
    served = float(theory.ttft_coverage(np.inf))
    if served < 0.05:
        theory, served = solve(theory.network), 1.0
    return [round(theory.ttft_quantile(share * served), 3) for share in (0.65, 0.9)]


def rows_of(net: TieredNetwork, case: tuple[float, str, str], critical: float, rng) -> list[dict]:
    """Return the rows of one case, a row a target."""
    load, policy, scope = case
    theory = solve(net.with_intensity(load), policy)
    aims, crowded = targets(theory), scope == "site" and load > CROWDED * critical
    answer = torus_ensemble(
        net.with_intensity(load),
        policy=policy,
        scope=scope,
        targets=aims,
        rng=rng,
        half_width=1.96 * (CROWDED_ERROR if crowded else LARGEST_ERROR),
        sites=CROWDED_SITES if crowded else None,
        places_per_site=CROWDED_PLACES if crowded else PLACES_PER_SITE[scope],
    )
    return [
        {
            "request_intensity": load,
            "policy": policy,
            "scope": scope,
            "target_s": target,
            "coverage": round(float(answer.coverage[k]), 5),
            "standard_error": float(f"{answer.standard_error[k]:.3g}"),
            "unstable_share": round(answer.unstable_share[0], 5),
            "mean_field": round(float(theory.ttft_coverage(target)), 5),
            "layouts": answer.layouts,
        }
        for k, target in enumerate(aims)
    ]


def spreads_far(name: str, case: tuple[float, str, str], critical: float) -> bool:
    """Return whether load spreads farther than a torus of the field can be wide."""
    return case[2] == "site" and case[0] > WIDE * critical and name not in NEAR


def wide_rows(net: TieredNetwork, load: float, rng: np.random.Generator) -> list[dict]:
    """Return the rows of a case with waits per site, by theory's solver on wide tori of random sites."""
    theory = solve(net.with_intensity(load))
    aims = targets(theory)
    found, error = np.empty((0, len(aims))), np.full(len(aims), np.inf)
    least, most = WIDE_LAYOUTS
    while len(found) < least or (error.max() > CROWDED_ERROR and len(found) < most):
        found = np.vstack((found, wide_coverage(theory.equilibrium, aims, rng)))
        error = found.std(axis=0, ddof=min(len(found) - 1, 1)) / np.sqrt(len(found))
    return [
        {
            "request_intensity": load,
            "policy": "load_aware",
            "scope": "site",
            "target_s": target,
            "coverage": round(float(found[:, k].mean()), 5),
            "standard_error": float(f"{error[k]:.3g}"),
            "unstable_share": 0.0,
            "mean_field": round(float(theory.ttft_coverage(target)), 5),
            "layouts": len(found),
            "sites": WIDE_SITES,
        }
        for k, target in enumerate(aims)
    ]


def wide_coverage(point: Equilibrium, aims: list[float], rng: np.random.Generator) -> np.ndarray:
    """Return the coverage at each target on one torus, with as many sites of each tier as on average."""
    network = point.network
    count = np.maximum(np.rint(WIDE_SITES * network.tier_density / network.site_density), 1).astype(int)
    side = float(np.sqrt(count.sum() / network.site_density))
    tier = np.repeat(np.arange(count.size), count)
    patch = Patch(network, point.queue, side, rng.random((tier.size, 2)) * side, tier)
    levels = settled_levels(patch, point.advertised_wait[tier])
    assert max(each.residual for each in levels) < 0.01
    return np.mean([in_time(patch, each, aims) for each in levels], axis=0)


def in_time(patch: Patch, settled: Settled, aims: list[float]) -> np.ndarray:
    """Return the share of requests in time for each target, place by place."""
    network, found = patch.network, np.zeros(len(aims))
    for q, share in enumerate(network.type_probability):
        own = network.prefill_time[patch.tier, q]
        site, delay = winners(patch.rivals(settled.wait, q), own + settled.wait)
        service, servers = 1.0 / settled.occupancy[site], patch.servers[site]
        for k, target in enumerate(aims):
            spare = target - own[site] - delay
            kept = ErlangC.wait_cdf(np.maximum(spare, 0.0), settled.work[site] * service, service, servers)
            found[k] += share * float(np.where(spare >= 0.0, kept, 0.0).mean())
    return found


def described(net: TieredNetwork) -> dict:
    """Return the arguments of a network, but for its demand."""
    names = [name for name in net.__dataclass_fields__ if name != "request_intensity"]
    return {name: np.asarray(getattr(net, name)).tolist() for name in names}


def start() -> dict:
    """Return the table without rows."""
    nets = {"baseline": baseline()} | {f"blind {k}": blind(k) for k in range(BLIND)}
    nets |= {f"fresh {k + 1}": blind(BLIND + k) for k in range(FRESH)}
    table: dict = {"note": NOTE, "configurations": []}
    for name, net in nets.items():
        critical = float(f"{capacity(net).intensity:.8g}")
        table["configurations"].append(
            {"name": name, "network": described(net), "critical_intensity": critical, "rows": []}
        )
    return table


def main() -> None:
    """Add rows until all are there or the time is over."""
    until = time.monotonic() + float(sys.argv[1]) if len(sys.argv) > 1 else np.inf
    table = json.loads(FILE.read_text()) if FILE.exists() else start()
    todo = []
    for number, entry in enumerate(table["configurations"]):
        there = {(row["request_intensity"], row["policy"], row["scope"]) for row in entry["rows"]}
        critical = entry["critical_intensity"]
        todo += [
            (case[2] == "site", case[0] / critical, number, case)
            for case in cases(entry["name"], len(entry["network"]["concurrency"]), critical)
            if case not in there
        ]
    for _, _, number, case in sorted(todo):
        if time.monotonic() > until:
            break
        entry = table["configurations"][number]
        net = TieredNetwork(**entry["network"], request_intensity=0.0)
        began = time.process_time()
        rng = stream(SEED, "layouts", entry["name"], *map(str, case))
        try:
            if spreads_far(entry["name"], case, entry["critical_intensity"]):
                rows = wide_rows(net, case[0], rng)
            else:
                rows = rows_of(net, case, entry["critical_intensity"], rng)
        except GeoEdgeError as error:
            print(f"{entry['name']} {case}: left out, {error}", flush=True)
            continue
        entry["rows"] += rows
        entry["rows"].sort(key=lambda r: (r["scope"], r["policy"], r["request_intensity"], r["target_s"]))
        FILE.write_text(json.dumps(table, indent=1) + "\n")
        print(
            f"{entry['name']} {case}: {time.process_time() - began:.1f} s, {rows[0]['layouts']} layouts,",
            *(f"{r['coverage']:.4f} ± {r['standard_error']:.4f} ({r['mean_field']:.4f})" for r in rows),
            flush=True,
        )


if __name__ == "__main__":
    main()
