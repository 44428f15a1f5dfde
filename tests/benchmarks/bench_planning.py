"""Speed of planning beside the same searches by quad and damped iteration: ``python tests/benchmarks/bench_planning.py``.

Both score the same mixes and look for the same density; what they find must agree. The peer takes one crossing by
Brent's method; `minimum_density` also scans the densities below it for an earlier one. Times are processor time in one
run on one core, kernels compiled before; only the ratios travel from machine to machine. The exit status is 1 if a
goal is missed.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from geoedge.planning.places.field import Evaluator
from geoedge.planning.places.planner import SEARCH_PLACES
from geoedge.planning.places.search import grow
from geoedge.planning.window import coarser
from geoedge.scenario import load_scenario
from geoedge.study import prepare
from geoedge.study.window import window_parts
from geoedge.theory import PlacementLimits, TieredNetwork, minimum_density, optimal_placement, solve
from geoedge.theory._search import lattice

sys.path.insert(0, str(Path(__file__).parent))
import quad_peer

TARGET, RELIABILITY = 0.8, 0.85
RATIO_WANTED = 100.0
LIMITS = PlacementLimits([0.0, 4.0, 12.0], 5.0, [0.1, 0.1, 0.1])
STEP = 0.1


def baseline(load: float = 1.5) -> TieredNetwork:
    """Return the paper's baseline at a load that damped iteration can start from."""
    length, hit = np.array([1024, 4096]), np.array([[0, 0], [512, 512], [1024, 2048]])
    residual, full = (1.6e-4 * tokens + 1.8e-8 * tokens**2 for tokens in (length - hit, length))
    density = 1.2 * np.array([0.45, 0.35, 0.2])
    return TieredNetwork(
        density, [18, 14, 6], [0.4, 0.6], residual, residual + 0.4, load, 0.28, 2.5, hit, length, full
    )


def large(profiles: int = 12, types: int = 20) -> tuple[TieredNetwork, PlacementLimits]:
    """Return a network of a dozen profiles and its limits."""
    rng = np.random.default_rng(0)
    length = np.sort(rng.integers(500, 8000, types))
    share = np.linspace(0.0, 0.8, profiles)[:, None] * (rng.random((profiles, types)) < 0.6)
    hit = (share * length).astype(int)
    residual, full = (1.6e-4 * tokens + 1.8e-8 * tokens**2 for tokens in (length - hit, length))
    stored = np.linspace(0.0, 14.0, profiles)
    network = TieredNetwork(
        np.full(profiles, 1.2 / profiles),
        np.maximum(18 - stored.astype(int), 1),
        rng.dirichlet(np.ones(types)),
        residual,
        residual + 0.4,
        1.0,
        0.28,
        2.5,
        hit,
        length,
        full,
    )
    lower = np.append(0.05, np.zeros(profiles - 1))
    return network.with_intensity(0.8 * network.sufficient_intensity), PlacementLimits(
        stored, 5.0, lower, 0.4
    )


def timed(call: Callable[[], object], times: int = 1) -> tuple[float, object]:
    """Return the least processor time of some calls [s], and what the last one returned."""
    taken, found = [], None
    for _ in range(times):
        start = time.process_time()
        found = call()
        taken.append(time.process_time() - start)
    return min(taken), found


def peer_coverage(network: TieredNetwork) -> float:
    """Return the coverage by the peer."""
    point = quad_peer.fixed_point(network)
    assert point.residual < 1e-7
    return quad_peer.coverage(network, point.wait, TARGET)


def best_of_lattice(coverage: Callable[[TieredNetwork], float]) -> tuple[float, np.ndarray]:
    """Return the best coverage of all mixes of the lattice, and its mix."""
    network = baseline()
    mixes = list(lattice(LIMITS, STEP))
    scores = [coverage(network.with_placement(mix)) for mix in mixes]
    best = int(np.argmax(scores))
    return scores[best], mixes[best]


def peer_density() -> float:
    """Return the least density by the peer and Brent's method, to the six digits that it can tell."""
    network = baseline()
    found = brentq(
        lambda log: peer_coverage(network.scaled(math.exp(log) / 1.2)) - RELIABILITY,
        math.log(1.0),
        math.log(3.0),
        xtol=1e-7,
    )
    return math.exp(found)


def goal(words: str, met: bool, found: str) -> bool:
    """Print whether a goal is met, and return it."""
    print(f"  goal: {words}: {'met' if met else 'MISSED'} ({found})")
    return met


def compare(name: str, ours: float, peer: float) -> bool:
    """Print a comparison and whether its ratio is reached."""
    print(f"{name:44}{ours * 1e3:12,.1f}{peer * 1e3:14,.0f}{peer / ours:10,.0f}")
    return goal(f"at least {RATIO_WANTED:.0f} x", peer / ours >= RATIO_WANTED, f"{peer / ours:,.0f} x")


def methods() -> None:
    """Print what each method finds by itself and with the last climb by SLSQP, and at what cost."""
    columns = f"{'coverage':>12}{'mixes':>8}{'CPU s':>8}"
    print(f"\n{'':38}{'without a last climb':>28}{'with it':>28}")
    print(f"{'placement search':28}{'method':>10}{columns}{columns}")
    dozen, limits = large()
    cases = {
        "baseline, load 3": (baseline(3.0), PlacementLimits([0.0, 4.0, 12.0], 3.8, [0.1, 0.0, 0.0])),
        "baseline, load 9": (baseline(9.0), PlacementLimits([0.0, 4.0, 12.0], 3.8, [0.1, 0.0, 0.0])),
        "12 profiles, 20 types": (dozen, limits),
    }
    for name, (network, kept) in cases.items():
        for method in ("slsqp", "grid", "cobyqa", "spsa"):
            if method == "grid" and kept.tiers > 4:
                continue
            row = f"{name:28}{method:>10}"
            for polish in (False, True) if method != "slsqp" else (True,):
                asked = {"method": method, "rng": 1, "polish": polish}
                taken, found = timed(lambda: optimal_placement(network, TARGET, kept, **asked))  # noqa: B023
                row += f"{found.coverage:12.7f}{found.evaluations:8}{taken:8.2f}"
            print(row)


def places(sites: int = 20) -> bool:
    """Print what growing a network on Monaco's hosts costs, lazily and by looking at every option; return if it pays."""
    study = prepare(load_scenario("monaco"))
    demand, weight = window_parts(study, 1)
    coarse = [coarser(demand[0], SEARCH_PLACES)]
    options = [(place, profile) for place in range(len(study.layout)) for profile in (2, 3)]
    list(islice(grow(Evaluator(study, coarse, weight, TARGET, 0.67), options[:4]), 2))  # compiles
    score, seconds, solved = {}, {}, {}
    for lazy in (True, False):
        evaluator = Evaluator(study, coarse, weight, TARGET, 0.67)
        taken, steps = timed(lambda: list(islice(grow(evaluator, options, lazy=lazy), sites)))  # noqa: B023
        score[lazy], seconds[lazy], solved[lazy] = steps[-1][2].score, taken, evaluator.solved
    print(
        f"\n{f'{sites} of {len(study.layout)} places, 2 profiles':44}{'in time':>12}{'fields':>14}{'CPU s':>10}"
    )
    for lazy, name in ((True, "lazy"), (False, "every option")):
        print(f"{name:44}{score[lazy]:12.4f}{solved[lazy]:14}{seconds[lazy]:10.2f}")
    loss, ratio = score[False] - score[True], seconds[False] / seconds[True]
    return goal("lazy 1.5 x, within 0.02", ratio >= 1.5 and loss <= 0.02, f"{ratio:.1f} x, {loss:+.4f}")


def main() -> int:
    """Print the tables; return 1 if a goal is missed."""
    optimal_placement(baseline(), TARGET, LIMITS)
    print(f"{'CPU time':44}{'geoedge ms':>12}{'quad ms':>14}{'ratio':>10}")

    def ours_lattice() -> tuple[float, np.ndarray]:
        return best_of_lattice(lambda network: float(solve(network).ttft_coverage(TARGET)))

    ours, found = timed(ours_lattice, 3)
    peer, expected = timed(lambda: best_of_lattice(peer_coverage))
    assert abs(found[0] - expected[0]) < 1e-6
    assert (found[1] == expected[1]).all()
    goals = [compare(f"best of {len(list(lattice(LIMITS, STEP)))} mixes", ours, peer)]

    ours, density = timed(lambda: minimum_density(baseline(), RELIABILITY, TARGET), 3)
    peer, other = timed(peer_density)
    assert abs(density / other - 1.0) < 1e-5
    goals.append(compare(f"least density for {RELIABILITY}: {density:.6f} /km²", ours, peer))
    methods()
    goals.append(places())
    return 0 if all(goals) else 1


if __name__ == "__main__":
    sys.exit(main())
