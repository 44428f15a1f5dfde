"""Laws of a site's load: limits that are known, order between them, and the questions of every answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.theory import ErlangC, SiteLoadAnswer, TieredNetwork, solve, solve_law, wait_cdf
from geoedge.theory.heterogeneity import LOAD_LAWS

TARGETS = np.array([0.3, 0.6, 0.8, 1.2, 2.0, 5.0])
OTHERS = LOAD_LAWS[1:]


@pytest.fixture(scope="module")
def crowd() -> TieredNetwork:
    """One tier of Poisson-Voronoi cells at half load."""
    return TieredNetwork([1.0], [8], [1.0], [[0.3]], [[1.8]], 2.2, 0.2, 2.0, [[512]], [2048], [0.4])


def test_mean_field_is_the_plain_answer(baseline):
    network = baseline(3.0)
    assert solve_law(network).ttft_coverage(TARGETS) == pytest.approx(solve(network).ttft_coverage(TARGETS))
    assert not isinstance(solve_law(network), SiteLoadAnswer)


@pytest.mark.parametrize("law", OTHERS)
@pytest.mark.parametrize("policy", ["load_aware", "prefix_only", "nearest"])
def test_without_load_all_laws_agree(baseline, law, policy):
    network = baseline(1e-6)
    plain, ours = solve(network, policy), solve_law(network, law, policy)
    # places of demand are points with waits per site
    error = 2e-3 if law == "per_site" and policy == "load_aware" else 2e-4
    assert ours.ttft_coverage(TARGETS) == pytest.approx(plain.ttft_coverage(TARGETS), abs=error)
    assert ours.mean_ttft == pytest.approx(plain.mean_ttft, rel=error)
    assert ours.stable


def test_one_tier_is_the_average_over_voronoi_cells(crowd):
    """Areas are gamma of shape 3.575; requests meet the size-biased law, here without regard to their distance."""
    from scipy import stats

    level = (np.arange(2000) + 0.5) / 2000
    load = stats.gamma.ppf(level, 4.575, scale=1 / 3.575) * 2.2 * 1.8
    far = 20.0  # so late that only overloaded sites miss
    alive = np.mean(wait_cdf(far - 0.3, load / 1.8, 1 / 1.8, 8))
    found = solve_law(crowd, "per_tier")
    assert found.ttft_coverage(far) == pytest.approx(alive, abs=0.01)
    assert found.unstable_share == pytest.approx(np.mean(load >= 8), abs=0.01)


def test_laws_are_in_order(crowd):
    """Sites that differ serve worse than equal ones; advertising each its own wait wins most of that back."""
    mean, tier, site = (solve_law(crowd, law) for law in LOAD_LAWS)
    late = TARGETS[1:]
    assert (tier.ttft_coverage(late) < site.ttft_coverage(late)).all()
    assert (site.ttft_coverage(late) < mean.ttft_coverage(late)).all()
    assert mean.parts()["wait"] < site.parts()["wait"] < tier.parts()["wait"] == np.inf
    assert site.mean_serving_distance > mean.mean_serving_distance


@pytest.mark.parametrize("law", OTHERS)
def test_answers_are_consistent(baseline, law):
    answer = solve_law(baseline(3.0), law)
    coverage = answer.ttft_coverage(np.linspace(0.0, 8.0, 41))
    assert (np.diff(coverage) >= -1e-9).all()
    assert coverage[0] == 0.0
    assert answer.ttft_coverage(np.inf) == pytest.approx(1.0 - answer.unstable_share)
    assert answer.ttft_coverage(1e4) == pytest.approx(1.0 - answer.unstable_share, abs=1e-3)
    assert (answer.ttft_coverage(TARGETS) <= answer.queue_free_coverage(TARGETS) + 1e-9).all()
    by_type = answer.coverage_by_type(0.8)
    assert by_type @ answer.network.type_probability == pytest.approx(float(answer.ttft_coverage(0.8)))
    quantile = answer.ttft_quantile(0.7)
    assert answer.ttft_coverage(quantile) == pytest.approx(0.7, abs=1e-6)
    assert answer.association.sum(axis=0) == pytest.approx(1.0, abs=1e-9)
    share = answer.association * answer.network.type_probability
    assert (share * answer.serving_distance).sum() == pytest.approx(answer.mean_serving_distance)
    assert sum(answer.parts().values()) == answer.mean_ttft
    assert 0.0 < answer.mean_utilization < 1.0


def test_overloaded_sites_are_told(baseline):
    tier, site = solve_law(baseline(3.0), "per_tier"), solve_law(baseline(3.0), "per_site")
    assert 0.05 < tier.unstable_share < 0.09
    assert not tier.stable
    assert tier.mean_ttft == np.inf
    assert tier.ttft_quantile(0.97) == np.inf
    assert site.unstable_share == 0.0
    assert site.stable
    assert np.isfinite(site.mean_ttft)
    assert np.isfinite(site.ttft_quantile(0.97))


def test_work_is_conserved(baseline):
    """Busy servers are requests times occupancy, whoever serves them, as long as no site is full."""
    network = baseline(2.0)
    answer = solve_law(network, "per_site")
    work = (
        network.request_intensity
        * (answer.association * network.type_probability * network.occupancy_time).sum()
    )
    servers = network.tier_density @ network.concurrency
    assert answer.mean_utilization == pytest.approx(work / servers, rel=0.01)


@pytest.mark.parametrize("policy", ["prefix_only", "nearest"])
def test_policies_that_look_at_no_wait_know_no_price(baseline, policy):
    tier, site = (solve_law(baseline(3.0), law, policy) for law in OTHERS)
    assert (tier.ttft_coverage(TARGETS) == site.ttft_coverage(TARGETS)).all()


def test_where_radio_is_free_sites_are_one_pool(baseline):
    """Waits even out entirely, and Eq. (39) is right again."""
    network = replace(baseline(4.0), delay_coefficient=1e-4)
    site, mean = solve_law(network, "per_site"), solve_law(network)
    assert site.ttft_coverage(TARGETS) == pytest.approx(mean.ttft_coverage(TARGETS), abs=0.03)


@pytest.mark.parametrize("law", OTHERS)
def test_scale_invariance(baseline, law):
    network = baseline(3.0)
    scaled = replace(network.scaled(2.0), request_intensity=6.0, delay_coefficient=0.28 * 2.0**1.25)
    one, other = solve_law(network, law), solve_law(scaled, law)
    assert other.ttft_coverage(TARGETS) == pytest.approx(one.ttft_coverage(TARGETS), abs=1e-3)


@pytest.mark.parametrize("law", OTHERS)
def test_empty_tier_is_no_tier(baseline, law):
    network = baseline(2.0, placement=(0.6, 0.0, 0.4))
    kept = [0, 2]
    without = replace(
        network,
        tier_density=network.tier_density[kept],
        concurrency=network.concurrency[kept],
        prefill_time=network.prefill_time[kept],
        occupancy_time=network.occupancy_time[kept],
        hit_tokens=network.hit_tokens[kept],
    )
    one, other = solve_law(network, law), solve_law(without, law)
    # the environments that are drawn differ with the numbering of tiers
    assert one.ttft_coverage(TARGETS) == pytest.approx(other.ttft_coverage(TARGETS), abs=0.01)
    assert one.association[1] == pytest.approx(0.0)


@pytest.mark.parametrize("law", OTHERS)
def test_splitting_a_tier_changes_nothing(crowd, law):
    halves = replace(
        crowd,
        tier_density=np.array([0.4, 0.6]),
        concurrency=np.array([8, 8]),
        prefill_time=np.full((2, 1), 0.3),
        occupancy_time=np.full((2, 1), 1.8),
        hit_tokens=np.full((2, 1), 512),
    )
    one, other = solve_law(crowd, law), solve_law(halves, law)
    assert one.ttft_coverage(TARGETS) == pytest.approx(other.ttft_coverage(TARGETS), abs=0.01)


def test_beyond_capacity_every_site_is_full(baseline):
    answer = solve_law(baseline(25.0), "per_site")
    assert answer.unstable_share == pytest.approx(1.0)
    assert answer.ttft_coverage(5.0) == 0.0
    lucky = solve_law(baseline(25.0), "per_tier")
    assert 0.0 < lucky.ttft_coverage(5.0) < 1.0 - lucky.unstable_share


@pytest.mark.parametrize("law", OTHERS)
@pytest.mark.parametrize("seed", range(4))
def test_random_networks(random_network, law, seed):
    network = random_network(seed, 0.6)
    answer = solve_law(network, law)
    coverage = answer.ttft_coverage(np.append(TARGETS, 30.0))
    assert ((coverage >= 0.0) & (coverage <= 1.0)).all()
    assert (np.diff(coverage) >= -1e-9).all()
    assert answer.association.sum(axis=0) == pytest.approx(1.0)


@dataclass(frozen=True)
class HalfWaits(ErlangC):
    """A queue with half the waits of M/M/c, for which only the protocol is known."""

    def mean_wait(self, arrival_rate, service_rate, concurrency):
        return 0.5 * ErlangC.mean_wait(arrival_rate, service_rate, concurrency)

    def wait_cdf(self, time, arrival_rate, service_rate, concurrency):
        return wait_cdf(2.0 * np.asarray(time), arrival_rate, service_rate, concurrency)

    def normalised_wait_and_slope(self, offered_load, concurrency):
        wait, slope = ErlangC.normalised_wait_and_slope(offered_load, concurrency)
        return 0.5 * wait, 0.5 * slope

    def offered_load_for_wait(self, wait, concurrency):
        return ErlangC.offered_load_for_wait(2.0 * np.asarray(wait), concurrency)


@pytest.mark.parametrize("law", OTHERS)
def test_any_queue_will_do(crowd, law):
    erlang, half = solve_law(crowd, law), solve_law(crowd, law, queue=HalfWaits())
    assert (half.ttft_coverage(TARGETS[1:]) > erlang.ttft_coverage(TARGETS[1:])).all()


def test_unknown_law(baseline):
    with pytest.raises(
        GeoEdgeError, match="`law` is 'own', but must be one of mean_field, per_tier, per_site"
    ):
        solve_law(baseline(), "own")
    with pytest.raises(GeoEdgeError, match="`policy`"):
        solve_law(baseline(), "per_tier", "random")
