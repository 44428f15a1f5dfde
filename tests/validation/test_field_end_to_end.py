"""The field on a torus reproduces the published end-to-end coverage, and theory where sites do not differ.

The reference scores the coupled system on 20 x 20 km tessellations; the field solves the same system on
tessellations of its own. Their mean must lie within a joint 99 % interval.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from geoedge.field import EnsembleAnswer, solve_field, torus_ensemble, torus_problem
from geoedge.field.ensemble import regressed
from geoedge.theory import solve

pytestmark = pytest.mark.slow

TARGET_S, HALF_WIDTH = 0.8, 0.004
SIDE_KM, LAYOUTS = 20.0, 24
KINDS = {
    "load_aware_per_site_waits": ("load_aware", "site"),
    "load_aware_per_tier_waits": ("load_aware", "tier"),
    "prefix_only": ("prefix_only", "tier"),
    "nearest": ("nearest", "tier"),
}
PUBLISHED = [
    *((load, kind) for load in (1.0, 3.0, 5.0) for kind in list(KINDS)[:3]),
    (3.0, "nearest"),
    (5.0, "nearest"),
]


@pytest.fixture(scope="module")
def ensembles(end_to_end_network) -> dict[tuple[float, str], EnsembleAnswer]:
    return {
        (load, kind): torus_ensemble(
            end_to_end_network(load),
            policy=KINDS[kind][0],
            scope=KINDS[kind][1],
            targets=(TARGET_S,),
            rng=6,
            half_width=HALF_WIDTH,
        )
        for load, kind in PUBLISHED
    }


def test_every_published_number_is_tried(end_to_end):
    assert {(load, kind) for load, row in end_to_end.items() for kind in KINDS if kind in row} == set(
        PUBLISHED
    )


@pytest.mark.parametrize(("load", "kind"), PUBLISHED)
def test_coverage_end_to_end(ensembles, end_to_end, load, kind):
    answer, expected = ensembles[load, kind], end_to_end[load][kind]
    assert answer.reached
    joint = stats.norm.ppf(0.995) * np.hypot(answer.standard_error[0], expected["standard_error"])
    assert joint <= 0.0075
    # The lattice of places and the size of the torus may leave a bias of this size.
    assert answer.coverage[0] == pytest.approx(expected["coverage"], abs=joint + 5e-4)
    lost = expected["share_of_requests_to_unstable_sites"]
    assert answer.unstable_share[0] == pytest.approx(lost, abs=0.02)


@pytest.fixture(scope="module")
def tessellations(end_to_end_network):
    return [torus_problem(end_to_end_network(1.0), SIDE_KM, seed, places=40_000) for seed in range(LAYOUTS)]


def at_the_mean_number_of_sites(tessellations, density, values) -> tuple[float, float]:
    """Return a mean over tessellations and its standard error, the luck in the numbers of sites taken out."""
    count = np.array([np.bincount(each.profile, minlength=3) for each in tessellations])
    return regressed(np.asarray(values), count - density * SIDE_KM**2)[:2]


def test_the_field_is_theory_where_sites_hardly_queue(tessellations, end_to_end_network):
    """At load 1 distance, offloading and parts are those of the closed forms."""
    network = end_to_end_network(1.0)
    theory, answers = solve(network), [solve_field(each, scope="tier") for each in tessellations]
    assert all(answer.converged for answer in answers)
    questions = {
        "tokens": lambda answer: answer.offloading_ratio("tokens"),
        "distance": lambda answer: answer.mean_serving_distance,
        "radio": lambda answer: answer.parts()["radio"],
        "prefill": lambda answer: answer.parts()["prefill"],
    }
    for ask in questions.values():
        expected = float(ask(theory))
        mean, error = at_the_mean_number_of_sites(
            tessellations, network.tier_density, [ask(answer) for answer in answers]
        )
        assert error < 0.008 * expected
        assert mean == pytest.approx(expected, abs=4 * error + 0.003 * expected)


def test_mean_utilisation_of_tiers_is_theorys_under_nearest_routing(tessellations, end_to_end_network):
    """Nearest routing gives every profile its share of the land; Eq. (17) holds for the mean over a tier."""
    network = end_to_end_network(3.0)
    theory = solve(network, "nearest")
    answers = [solve_field(each.with_rate(3.0 * each.rate), policy="nearest") for each in tessellations]
    for tier in range(3):
        utilization = [answer.utilization[answer.problem.profile == tier].mean() for answer in answers]
        mean, error = at_the_mean_number_of_sites(tessellations, network.tier_density, utilization)
        assert error < 0.02 * theory.utilization[tier]
        assert mean == pytest.approx(theory.utilization[tier], abs=4 * error + 1e-3)
