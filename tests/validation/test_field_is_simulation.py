"""Field and simulation of one city agree: Monaco's real sites and workload, people who stand still, caches that stay.

The field knows demand, sites and M/M/c queues; the simulation knows requests, one by one. Where people do not move
and the waits advertised are the field's equilibrium at their own positions, every site of the simulation is an
M/M/c queue if service is exponential at the mean of the site's mixture, and both must give the same numbers. Where
that premise does not hold, the difference is measured and traced to its cause: people who share a door, the
distribution of service, sites beyond capacity.

People stand where a moving population is at 18:00, at home, at work, at leisure or on the street, and ask for
hours what such people ask at 18:00. Intervals are 99 % from batch means, jointly for all claims of a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from geoedge.field import FieldAnswer, evaluate, solve_field
from geoedge.results import Results
from geoedge.scenario import load_scenario
from geoedge.simulation.mobility import Population
from geoedge.simulation.model import EdgeCity
from geoedge.streams import stream
from geoedge.study import Study, field_inputs, prepare

pytestmark = pytest.mark.slow

Floats = NDArray[np.float64]

SEED, PEOPLE, HOUR = 1, 20_000, 18
HOURS, WARM_UP_S, BATCHES = 8.0, 1800.0, 30
MODERATE, HIGH = 0.9, 1.2
"""Requests, in those of the scenario: about 50 % and 67 % mean utilisation under load-aware routing."""
LUMPY = 1.08
"""Requests that lumps of demand bring near, and not beyond, the capacity of some sites."""
UNEVEN, UNEVEN_HOURS = 0.806, 4.0
"""Requests at which the policies that do not look at load bring no site to the very edge of its capacity, where
nothing settles."""
DESTINATIONS = 240
"""As in the scenario."""
SAME_PARTS = ("radio", "prefill")
"""Parts of the TTFT that no queue touches."""
TARGET_S = 0.8
WIDEST = 0.01
"""Half of the widest interval of coverage that counts as an agreement."""
CONFIDENCE = 0.99
RARE = 0.02
"""Utilisation below which a site serves too few for an interval."""


class Standing(Population):
    """People who stay where a moving population is now, doing what it does.

    With `spread_m`, each is shifted by up to that distance along either axis, so that no two share a place.
    """

    def __init__(self, moving: Population, spread_m: float) -> None:
        xy, self.activity = moving.positions()
        shift = stream(SEED, "spread").uniform(-spread_m, spread_m, xy.shape)
        n = len(moving)
        super().__init__(
            xy + shift, np.full(n, -1), np.zeros(n, dtype=np.int8), None, np.zeros(n, dtype=np.uint64)
        )

    def position(self, user: ArrayLike, time_s: ArrayLike) -> tuple[Floats, NDArray[np.int8]]:
        xy, _ = super().position(user, time_s)
        return xy, self.activity[np.atleast_1d(np.asarray(user))]


@dataclass(frozen=True, eq=False)
class Trial:
    """A run, and the field's answer for its people at the waits that were advertised."""

    results: Results
    field: FieldAnswer
    decode_s: Floats

    def column(self, name: str) -> NDArray:
        return self.results.records.column(name).to_numpy()

    @cached_property
    def edges(self) -> Floats:
        """Bounds of the batches in time, after the warm-up."""
        meta = self.results.meta
        return np.linspace(meta["start_s"] + WARM_UP_S, meta["horizon_s"], BATCHES + 1)

    @cached_property
    def batch(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the batch of every request, and whether it has one."""
        batch = np.searchsorted(self.edges, self.column("created_s"), side="right") - 1
        return batch, (batch >= 0) & (batch < BATCHES)

    def batch_means(self, values: NDArray, chosen: NDArray[np.bool_] | None = None) -> Floats:
        """Return the mean over each batch's requests, of those chosen."""
        weight = np.ones(len(values)) if chosen is None else chosen.astype(np.float64)
        batch, inside = self.batch
        total, count = (np.bincount(batch[inside], v[inside], BATCHES) for v in (values * weight, weight))
        return total / count

    @cached_property
    def utilization(self) -> Floats:
        """Busy servers over servers of every batch and site, from the times in the records."""
        site, start, end = (self.column(name) for name in ("site", "started_s", "finished_s"))
        n = self.field.problem.n_sites
        busy = np.array([np.bincount(site, np.clip(t - start, 0.0, end - start), n) for t in self.edges])
        return np.diff(busy, axis=0) / (np.diff(self.edges)[:, None] * self.field.problem.servers)

    @property
    def in_time(self) -> NDArray[np.bool_]:
        return self.column("ttft_s") <= TARGET_S


@lru_cache(maxsize=2)
def study_at(load: float, hours: float, destinations: int) -> Study:
    """Monaco as shipped, save that every hour asks like 18:00, and one epoch holds the first prices to the end."""
    base = load_scenario("monaco")
    flat = {
        f"workload.requests[{q}].hour_weight": [kind.hour_weight[HOUR]] * 24
        for q, kind in enumerate(base.workload.requests)
    }
    window = {"start_hour": 6.0, "duration_s": hours * 3600, "epoch_s": hours * 3600, "warm_up_s": 0.0}
    changes = {
        "control.controller": "none",
        "demand.users": PEOPLE,
        "demand.request_rate_per_user_s": load
        * (base.demand.users or 0)
        / PEOPLE
        * (base.demand.request_rate_per_user_s or 0.0),
        "demand.cell_m": 100.0,
        "mobility.destinations": destinations,
    }
    changes |= flat | {f"simulation.{name}": value for name, value in window.items()}
    return prepare(base.override(changes))


@lru_cache(maxsize=4)
def trial(
    load: float,
    policy: str = "load_aware",
    law: str = "exponential_mixture",
    *,
    hours: float = HOURS,
    destinations: int = DESTINATIONS,
    spread_m: float = 40.0,
) -> Trial:
    study = study_at(load, hours, destinations)
    moving = Population.draw(study.mobility, PEOPLE, stream(SEED, "people"))
    moving.advance(HOUR * 3600.0)
    model = EdgeCity(
        study.scenario,
        study=study,
        population=Standing(moving, spread_m),
        rng=SEED,
        changes={"routing.policy": policy, "service.law": law},
    )
    problem = field_inputs(study, model.population.demand(model.rates))
    field = solve_field(problem, policy=policy)
    assert field.converged
    if policy == "load_aware":
        np.testing.assert_allclose(model.operator.catalogue.prices, field.advertised_wait, atol=1e-9)
    results = model.run()
    assert results.records.num_rows == sum(results.status_counts().values()) > 400_000
    return Trial(results, field, study.workload.decode_time)


def half_width(batches: Floats, confidence: float = CONFIDENCE) -> Floats:
    """Half of the interval of a mean, over the first axis."""
    free = len(batches) - 1
    return stats.t.ppf((1 + confidence) / 2, free) * batches.std(0, ddof=1) / np.sqrt(len(batches))


def assert_agree(claims: dict[str, tuple[Floats, float, float]]) -> None:
    """Assert that all claims, each batches, value expected and widest half interval, hold at a joint 99 %."""
    for name, (batches, expected, widest) in claims.items():
        mean, half = batches.mean(), half_width(batches, 1 - (1 - CONFIDENCE) / len(claims))
        print(f"{name:24} {mean:.4f} ± {half:.4f} (at most {widest:.4f}), expected {expected:.4f}")
        assert half <= widest, name
        assert abs(mean - expected) <= half, f"{name}: {mean:.5f} ± {half:.5f} against {expected:.5f}"


def assert_sites_agree(batches: Floats, expected: Floats, name: str) -> None:
    """Assert that every site lies in its interval of a joint 99 %, and that the sites together lie no wider.

    Poisson demand splits into independent parts, so the sites' t² add up like independent ones. Sites that serve
    next to nobody have no interval; they must serve next to nobody.
    """
    rare = expected < RARE
    assert np.abs(batches.mean(0) - expected)[rare].max(initial=0.0) < 0.2 * RARE, name
    error = batches[:, ~rare].std(0, ddof=1) / np.sqrt(len(batches))
    t = (batches[:, ~rare].mean(0) - expected[~rare]) / error
    free, n = len(batches) - 1, len(t)
    mean, square = free / (free - 2), 3 * free**2 / ((free - 2) * (free - 4))
    limit = n * mean + stats.norm.ppf(CONFIDENCE) * np.sqrt(n * (square - mean**2))
    furthest, total = np.abs(t).max(), np.sum(t**2)
    print(f"{name}: largest t {furthest:.2f} of {n} sites, t² add up to {total:.1f} of at most {limit:.1f}")
    assert furthest <= stats.t.ppf(1 - (1 - CONFIDENCE) / (2 * n), free), name
    assert total <= limit, name


# ---------------------------------------------------------------------- the premise holds: the numbers are the same

LOADS = pytest.mark.parametrize("load", [MODERATE, HIGH])


@LOADS
def test_utilisation_is_what_it_is_meant_to_be(load):
    low, high = {MODERATE: (0.48, 0.52), HIGH: (0.65, 0.70)}[load]
    assert low <= trial(load).field.mean_utilization <= high


@LOADS
def test_coverage_is_the_fields(load):
    run = trial(load)
    assert_agree(
        {
            f"coverage at {tau} s": (
                run.batch_means(run.column("ttft_s") <= tau),
                run.field.ttft_coverage(tau),
                WIDEST,
            )
            for tau in (0.3, TARGET_S, 2.0)
        }
    )


@LOADS
def test_mean_ttft_is_the_fields_in_all_its_parts(load):
    run = trial(load)
    expected = run.field.parts() | {"ttft": run.field.mean_ttft}
    widest = {"radio": 0.01, "wait": 0.06, "prefill": 0.01, "ttft": 0.05}
    claims = {
        name: (run.batch_means(run.column(f"{name}_s")), value, widest[name] * value)
        for name, value in expected.items()
    }
    distance = run.batch_means(run.column("distance_km"))
    assert_agree(claims | {"distance": (distance, run.field.mean_serving_distance, 0.003)})


@LOADS
def test_requests_go_where_the_field_sends_them(load):
    """Shares of the profiles, of all requests and of those of each type: Eq. (25) on the map."""
    run = trial(load)
    profile, kind, table = run.column("profile"), run.column("request_type"), run.field.association
    claims = {}
    for s, share in enumerate(run.field.profile_share):
        claims[f"profile {s}"] = (run.batch_means(profile == s), share, WIDEST)
        for q, part in enumerate(table[s]):
            claims[f"profile {s}, type {q}"] = (run.batch_means(profile == s, kind == q), part, WIDEST)
    assert_agree(claims)


@LOADS
def test_every_site_is_as_busy_as_in_the_field(load):
    run = trial(load)
    assert_sites_agree(run.utilization, run.field.utilization, "utilisation")


@LOADS
def test_every_profile_lets_wait_as_in_the_field(load):
    run = trial(load)
    rate, wait, profile = run.field.site_arrival_rate, run.field.mean_wait, run.column("profile")
    claims = {}
    for s in range(len(run.field.profile_share)):
        sites = (run.field.problem.profile == s) & (rate > 0)
        expected = float(rate[sites] @ wait[sites] / rate[sites].sum())
        claims[f"wait at profile {s}"] = (
            run.batch_means(run.column("wait_s"), profile == s),
            expected,
            0.2 * expected,
        )
    assert_agree(claims)


def test_a_slightly_wrong_field_is_noticed():
    """With 2 % more demand, or waits advertised that differ by a tenth, the field is outside what was simulated."""
    run = trial(HIGH)
    problem, wait = run.field.problem, run.field.advertised_wait
    coverage = run.batch_means(run.in_time)
    more = solve_field(problem.with_rate(1.02 * problem.rate), waits=wait)
    assert abs(coverage.mean() - more.ttft_coverage(TARGET_S)) > half_width(coverage)
    biased = evaluate(problem, wait * np.where(np.arange(len(wait)) % 2, 1.1, 0.9))
    with pytest.raises(AssertionError, match="utilisation"):
        assert_sites_agree(run.utilization, biased.utilization, "utilisation")


# ---------------------------------------------------------------------- people who share a door


def erlang_c(servers: int, load: float) -> float:
    """The probability of waiting, by the recursion of Erlang's loss formula."""
    loss = 1.0
    for k in range(1, servers + 1):
        loss = load * loss / (k + load * loss)
    return servers * loss / (servers - load + load * loss)


@dataclass(frozen=True, eq=False)
class Undivided:
    """M/M/c sites when each place sends all its requests of a type to the one site that is cheapest."""

    rate: Floats
    profile_share: Floats
    utilization: Floats
    wait: Floats
    coverage: float

    @classmethod
    def of(cls, field: FieldAnswer) -> Undivided:
        problem, geometry, servers = field.problem, field.problem.geometry, field.problem.servers
        prefill = problem.prefill_time[problem.profile]
        gap = geometry.point_xy[:, None] - geometry.site_xy[None]
        radio = geometry.delay_coefficient * np.hypot(gap[..., 0], gap[..., 1]) ** geometry.delay_exponent
        chosen = np.stack([(radio + field.offset[:, q]).argmin(axis=1) for q in range(problem.n_types)], 1)
        rate = np.zeros(problem.n_sites)
        np.add.at(rate, chosen, problem.rate)
        mean = 1.0 / field.service_rate
        load = rate * mean
        well = load < servers
        delayed = np.array([erlang_c(c, a) if a < c else 1.0 for c, a in zip(servers, load, strict=True)])
        drain = np.where(well, servers - load, 0.0) / mean
        place, kind = np.indices(chosen.shape)
        left = TARGET_S - radio[place, chosen] - prefill[chosen, kind]
        met = 1.0 - delayed[chosen] * np.exp(-drain[chosen] * np.maximum(left, 0.0))
        met = np.where((left >= 0) & well[chosen], met, 0.0)
        return cls(
            rate,
            np.bincount(problem.profile, rate, len(problem.concurrency)) / rate.sum(),
            load / servers,
            np.divide(delayed, drain, out=np.full(len(rate), np.inf), where=well),
            float((problem.rate * met).sum() / rate.sum()),
        )


def test_people_who_share_a_door_cannot_be_divided_between_sites():
    """With everybody at the very doors of homes and 40 destinations, demand comes in lumps that no price divides.

    The field's equilibrium divides a place between sites that cost the same; the simulation sends everybody at
    a place to the one that is cheaper by a hair. What is simulated lies outside the field's coverage, and is
    what M/M/c queues give when every place is served whole.
    """
    run = trial(LUMPY, spread_m=0.0, destinations=40)
    whole, field = Undivided.of(run.field), run.field
    assert len(np.unique(field.problem.geometry.point_xy, axis=0)) < PEOPLE / 4
    assert (whole.utilization < 1).all()
    coverage, wait = run.batch_means(run.in_time), run.batch_means(run.column("wait_s"))
    assert_agree(
        {
            "coverage, served whole": (coverage, whole.coverage, WIDEST),
            "wait, served whole": (wait, float(whole.rate @ whole.wait / whole.rate.sum()), np.inf),
        }
    )
    assert_sites_agree(run.utilization, whole.utilization, "utilisation, served whole")
    print(f"coverage simulated {coverage.mean():.4f}, field {field.ttft_coverage(TARGET_S):.4f}")
    assert coverage.mean() + half_width(coverage) < field.ttft_coverage(TARGET_S)
    with pytest.raises(AssertionError, match="utilisation"):
        assert_sites_agree(run.utilization, field.utilization, "utilisation")


def test_spread_people_can_be_divided():
    """The same sum gives the field's own numbers when no two people share a place: doors were the cause."""
    field = trial(HIGH).field
    whole = Undivided.of(field)
    assert whole.coverage == pytest.approx(field.ttft_coverage(TARGET_S), abs=0.001)
    assert np.abs(whole.utilization - field.utilization).max() < 0.015


# ---------------------------------------------------------------------- the law of a city


def variation(run: Trial) -> Floats:
    """Squared coefficient of variation of service at every site, for prefill and an exponential decode."""
    problem = run.field.problem
    prefill, decode = problem.prefill_time[problem.profile], run.decode_s
    rate = run.field.site_rate
    mix = rate / np.where(rate.sum(1) > 0, rate.sum(1), 1.0)[:, None]
    mean = (mix * (prefill + decode)).sum(1)
    square = (mix * (prefill**2 + 2 * prefill * decode + 2 * decode**2)).sum(1)
    return np.where(mean > 0, square / np.where(mean > 0, mean, 1.0) ** 2 - 1, 1.0)


def test_the_default_law_differs_by_the_variance_of_service_alone():
    """Prefill and exponential decode: same places, same radio and prefill, waits shifted by the variance of service.

    The larger the squared coefficient of variation c² of service, the longer the wait; to first order it is that of
    M/M/c times (1 + c²)/2, with several servers a little nearer to M/M/c. Prefill does not vary, which makes c²
    smaller than 1 where one length of answer prevails; where short and long answers meet, it is above 1. So sites
    differ in sign; over all sites the smaller variance prevails, but only just.
    """
    exact, city = trial(HIGH), trial(HIGH, law="prefill_plus_decode")
    for same in ("created_s", "site", "radio_s", "prefill_s"):
        assert np.array_equal(exact.column(same), city.column(same)), same
    parts = city.field.parts()
    claims = {name: (city.batch_means(city.column(f"{name}_s")), parts[name], np.inf) for name in SAME_PARTS}
    coverage = city.batch_means(city.in_time), city.field.ttft_coverage(TARGET_S), WIDEST
    assert_agree(claims | {"coverage": coverage})
    # as busy, too: the mean of service is the same
    assert_sites_agree(city.utilization, city.field.utilization, "utilisation")

    square, rate, wait = variation(city), city.field.site_arrival_rate, city.field.mean_wait
    foreseen = np.where(rate > 0, wait * (square - 1) / 2, 0.0)
    paired, site = city.column("wait_s") - exact.column("wait_s"), city.column("site")
    low, high = square < 0.95, square > 1.05
    assert low.sum() >= 10
    assert high.sum() >= 10

    def change(chosen: NDArray[np.bool_], name: str) -> tuple[Floats, float]:
        batches, limit = (
            city.batch_means(paired, chosen[site]),
            rate[chosen] @ foreseen[chosen] / rate[chosen].sum(),
        )
        print(f"wait, {name} {batches.mean():+.4f} ± {half_width(batches):.4f}, at most {limit:+.4f}")
        return batches, float(limit)

    shorter, most = change(low, f"{low.sum()} sites of c² < 0.95:")
    assert shorter.mean() + half_width(shorter) < 0
    assert shorter.mean() >= most - half_width(shorter)
    longer, most = change(high, f"{high.sum()} sites of c² > 1.05:")
    assert longer.mean() > 0
    assert longer.mean() <= most + half_width(longer)
    apart = longer - shorter
    assert apart.mean() - half_width(apart) > 0
    together, most = change(rate > 0, "all sites:")
    assert together.mean() + half_width(together) < 0
    assert most < 0
    assert together.mean() > 0.5 * shorter.mean()


# ---------------------------------------------------------------------- policies that do not look at load


@pytest.mark.parametrize("policy", ["nearest", "prefix_only"])
def test_policies_that_overload_sites(policy):
    """Sites within capacity are the field's; those beyond are named by both, and their queues grow as they must.

    What each site gets is compared with the sum over people served whole: the field divides people who are within
    half a millisecond of two sites, which matters where radio alone decides. That the two hardly differ is part
    of the claim.
    """
    run = trial(UNEVEN, policy, hours=UNEVEN_HOURS)
    field, whole, site = run.field, Undivided.of(run.field), run.column("site")
    rate, sick = whole.rate, field.utilization >= 1.0
    assert sick.sum() >= 4
    assert not ((field.utilization > 0.9) & (field.utilization < 1.04)).any()
    assert np.array_equal(whole.utilization >= 1.0, sick)
    assert [flag["site"] for flag in run.results.meta["unstable"]] == field.unstable_sites.tolist()
    assert np.abs(whole.utilization - field.utilization).max() < 0.02
    assert np.abs(whole.profile_share - field.profile_share).max() < 0.002
    assert whole.coverage == pytest.approx(field.ttft_coverage(TARGET_S), abs=0.002)

    well, parts = ~sick[site], field.parts()
    within = field.site_arrival_rate[~sick]
    met = float(within @ np.nan_to_num(field.site_coverage(TARGET_S)[~sick]) / within.sum())
    wait = float(rate[~sick] @ whole.wait[~sick] / rate[~sick].sum())
    claims = {name: (run.batch_means(run.column(f"{name}_s")), parts[name], np.inf) for name in SAME_PARTS}
    claims |= {
        f"share of profile {s}": (run.batch_means(run.column("profile") == s), share, WIDEST)
        for s, share in enumerate(whole.profile_share)
    }
    claims |= {
        "beyond capacity": (run.batch_means(~well), field.unstable_share, WIDEST),
        # as the field counts, requests to sites beyond capacity are misses
        "coverage": (run.batch_means(run.in_time & well), field.ttft_coverage(TARGET_S), WIDEST),
        "coverage elsewhere": (run.batch_means(run.in_time, well), met, 1.5 * WIDEST),
        "wait elsewhere": (run.batch_means(run.column("wait_s"), well), wait, 0.25 * wait),
    }
    assert_agree(claims)
    assert_sites_agree(run.utilization[:, ~sick], whole.utilization[~sick], "utilisation within capacity")

    # Beyond capacity all servers are busy, what is too much piles up, and soon nobody is served in time.
    assert (run.utilization[:, sick].mean(0) > 0.99).all()
    seconds, leaving = UNEVEN_HOURS * 3600.0, field.problem.servers * field.service_rate
    left = site[run.column("started_s") > run.results.meta["horizon_s"]]
    waiting = np.bincount(left, minlength=len(sick))[sick]
    foreseen, spread = (rate - leaving)[sick] * seconds, np.sqrt((rate + leaving)[sick] * seconds)
    print("waiting at the horizon", waiting, "foreseen", foreseen.round(), "±", (2.58 * spread).round())
    assert (np.abs(waiting - foreseen) <= stats.norm.ppf(1 - 0.005 / sick.sum()) * spread + 20).all()
    late = ~well & (run.column("created_s") > run.edges[BATCHES // 2])
    assert run.in_time[late].mean() < 0.01
