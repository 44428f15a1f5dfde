"""Speed of the field on a large map, beside brute force, in one run: ``python tests/benchmarks/bench_field.py``.

A thousand sites, ten request types and a quarter of a million cells with towns, at three loads. The peer is the
argmin over all sites in numpy, in chunks that stay in cache; an equilibrium needs the same answer, with shares and
derivatives, some hundred times. Only the ratios travel from machine to machine; times are processor time, kernels are
compiled before the clock starts. The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import numpy as np

from geoedge.field import FieldAnswer, FieldProblem, Geometry, solve_field
from geoedge.field.cells import owners

SIDE_CELLS, CELL_KM, SITES, TYPES, TOWNS = 500, 0.05, 1000, 10, 30
LOADS = (0.5, 0.7, 0.9)
RESIDUAL, EQUILIBRIUM_S, MEMORY_BYTES, TIMES_FASTER = 1e-3, 60.0, 2e9, 50.0
CHUNK = 500


def problem(load: float, side_cells: int = SIDE_CELLS) -> FieldProblem:
    """Return towns in a plain, asking `load` of what all servers could do if everybody met the mean cache."""
    rng = np.random.default_rng(5)
    side = SIDE_CELLS * CELL_KM
    axis = (np.arange(side_cells) + 0.5) * side / side_cells
    point = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    weight = np.ones(len(point))
    for centre, size, people in zip(
        rng.random((TOWNS, 2)) * side, rng.uniform(0.5, 3.0, TOWNS), rng.exponential(2.0, TOWNS), strict=True
    ):
        weight += people * np.exp(-((point - centre) ** 2).sum(axis=1) / (2.0 * size**2))
    prompt = np.linspace(500.0, 8000.0, TYPES)
    depth = np.array([0.0, 512.0, 2048.0, 4096.0])
    hit = np.minimum(depth[:, None] * (rng.random((4, TYPES)) < 0.7), prompt)

    def prefill(tokens: np.ndarray) -> np.ndarray:
        return 9e-5 * tokens + 2e-9 * tokens**2

    occupancy = prefill(prompt - hit) + rng.uniform(1.0, 3.0, TYPES)
    servers, share = np.array([10, 9, 7, 5]), np.array([0.4, 0.3, 0.2, 0.1])
    profile = rng.choice(4, SITES, p=share)
    rate = weight[:, None] * rng.dirichlet(np.ones(TYPES))
    rate *= load * servers[profile].sum() / float(rate.sum(axis=0) @ (share @ occupancy))
    geometry = Geometry(point, rng.random((SITES, 2)) * side, 0.32, 2.5, side / side_cells * 1000.0)
    return FieldProblem(
        geometry, rate, profile, prefill(prompt - hit), occupancy, servers, hit, prompt, prefill(prompt)
    )


def brute_force(field: FieldProblem, offset: np.ndarray) -> np.ndarray:
    """Return the cheapest site of every place and type by looking at all sites, shape (n_points, Q)."""
    geometry = field.geometry
    owner = np.empty((len(geometry.point_xy), field.n_types), dtype=np.int64)
    for first in range(0, len(owner), CHUNK):
        gap = geometry.point_xy[first : first + CHUNK, None] - geometry.site_xy
        radio = geometry.radio_delay(np.hypot(gap[..., 0], gap[..., 1]))
        for q in range(field.n_types):
            owner[first : first + CHUNK, q] = (radio + offset[:, q]).argmin(axis=1)
    return owner


def timed(call: Callable[[], object]) -> float:
    """Return the processor time of a call [s]."""
    start = time.process_time()
    call()
    return time.process_time() - start


def goal(words: str, met: bool, found: str) -> bool:
    """Print whether a goal is met, and return it."""
    print(f"  goal: {words}: {'met' if met else 'MISSED'} ({found})")
    return met


def main() -> int:
    """Print what was measured; return 1 if a goal is missed."""
    solve_field(problem(0.5, 60), tolerance=RESIDUAL)  # compiles
    print(f"field, {SITES:,} sites x {TYPES} types x {SIDE_CELLS**2:,} cells")
    goals, answers = [], []
    for load in LOADS:
        field = problem(load)
        taken = timed(lambda field=field: answers.append(solve_field(field, tolerance=RESIDUAL)))  # type: ignore[misc]
        answer: FieldAnswer = answers[-1]
        print(
            f"equilibrium at {answer.mean_utilization:.2f} of all servers: {taken:.1f} s, "
            f"{answer.iterations} responses of demand"
        )
        goals.append(
            goal(
                f"residual in utilisation {RESIDUAL:g}",
                answer.residual <= RESIDUAL,
                f"{answer.residual:.0e}",
            )
        )
        goals.append(goal(f"below {EQUILIBRIUM_S:g} s", taken < EQUILIBRIUM_S, f"{taken:.1f} s"))
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    goals.append(goal(f"below {MEMORY_BYTES / 1e9:g} GB", used < MEMORY_BYTES, f"{used / 1e9:.2f} GB"))
    answer, blocks = answers[1], answers[1].problem.geometry.blocks
    found: list[np.ndarray] = []
    ours = min(timed(lambda: found.append(owners(blocks, answer.offset))) for _ in range(3))
    peer = timed(lambda: found.append(brute_force(answer.problem, answer.offset)))
    print(
        f"argmin for all types: {ours:.2f} s, brute force {peer:.1f} s: {peer / ours:.0f} times; "
        f"an equilibrium takes as long as {taken / peer:.1f} brute-force argmins"
    )
    same = bool((found[0] == found[-1]).all())
    goals.append(goal("the same sites", same, f"{int((found[0] != found[-1]).sum())} differ"))
    goals.append(
        goal(
            f"at least {TIMES_FASTER:g} times as fast", peer > TIMES_FASTER * ours, f"{peer / ours:.0f} times"
        )
    )
    return 0 if all(goals) else 1


if __name__ == "__main__":
    sys.exit(main())
