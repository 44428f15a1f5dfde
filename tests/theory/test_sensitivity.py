"""Sensitivities: against differences of cold solutions, and against scalings under which coverage cannot change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from geoedge.errors import GeoEdgeError
from geoedge.theory import Knob, sensitivities, solve
from geoedge.theory.equilibrium import POLICIES


def table(network, target=0.8, policy="load_aware", **asked):
    """Return the rows by parameter."""
    return {row.parameter: row for row in sensitivities(network, target, policy, **asked)}


@given(st.integers(0, 10_000), st.sampled_from(POLICIES))
@settings(max_examples=12, deadline=None)
def test_scalings_that_change_nothing(random_network, seed: int, policy: str) -> None:
    # (λ_b, λ_req, ξ) → (kλ_b, kλ_req, k^{α/2}ξ) rescales lengths; all times by k and rates by 1/k rescales time
    network = random_network(seed, 0.5)
    answer = solve(network, policy)
    if not answer.stable:  # routing that looks at no wait fills a tier earlier
        network = network.with_intensity(0.5 * network.request_intensity / float(answer.utilization.max()))
        answer = solve(network, policy)
    assume(float(answer.ttft_coverage(1.2)) >= 0.01)
    assert answer.stable
    rows = table(network, 1.2, policy)
    slope = {name: row.derivative * row.value for name, row in rows.items()}
    error = 1e-5 + 20.0 * sum(row.error * row.value for row in rows.values())
    space = slope["site_density"] + slope["request_intensity"]
    assert space + network.delay_exponent / 2.0 * slope["delay_coefficient"] == pytest.approx(0.0, abs=error)
    times = ("prefill_scale", "decode_scale", "delay_coefficient", "ttft_target")
    assert sum(slope[name] for name in times) == pytest.approx(slope["request_intensity"], abs=error)


def test_against_differences_of_cold_solutions(baseline) -> None:
    network, rows = baseline(3.0), table(baseline(3.0))

    def cold(changed) -> float:
        return float(solve(changed).ttft_coverage(0.8))

    h = 1e-4
    density = (cold(network.scaled(1 + h)) - cold(network.scaled(1 - h))) / (2 * h * 1.2)
    assert rows["site_density"].derivative == pytest.approx(density, rel=1e-5)
    exponent = [cold(replace(network, delay_exponent=2.5 + sign * h)) for sign in (1, -1)]
    assert rows["delay_exponent"].derivative == pytest.approx((exponent[0] - exponent[1]) / (2 * h), rel=1e-4)
    more = cold(replace(network, concurrency=[18, 14, 7]))
    assert rows["concurrency[2]"].derivative == pytest.approx(more - cold(network), abs=1e-10)

    def leaning(share: float) -> float:
        return cold(network.with_placement([0.45 * (1 - share) / 0.8, 0.35 * (1 - share) / 0.8, share]))

    deep = (leaning(0.2 + h) - leaning(0.2 - h)) / (2 * h)
    assert rows["placement_probability[2]"].derivative == pytest.approx(deep, rel=1e-5)
    assert rows["site_density"].elasticity == pytest.approx(density * 1.2 / cold(network), rel=1e-5)


def test_the_error_bounds_what_a_finer_difference_finds(baseline) -> None:
    for load in (1.0, 9.0):
        rows = table(baseline(load))
        for parameter in ("request_intensity", "site_density"):
            row = rows[parameter]
            h = 3e-4

            def cold(factor: float, parameter=parameter, load=load) -> float:
                asked = (load * factor, 1.2) if parameter == "request_intensity" else (load, 1.2 * factor)
                return float(solve(baseline(*asked)).ttft_coverage(0.8))

            fine = (8 * (cold(1 + h) - cold(1 - h)) - (cold(1 + 2 * h) - cold(1 - 2 * h))) / (
                12 * h * row.value
            )
            assert abs(row.derivative - fine) <= row.error + 1e-7


def test_an_empty_tier_is_only_raised(baseline) -> None:
    rows = table(baseline(3.0, placement=(0.7, 0.0, 0.3)))
    row = rows["placement_probability[1]"]
    little = 1e-5
    raised = baseline(3.0, placement=(0.7 * (1 - little), little, 0.3 * (1 - little)))
    base = float(solve(baseline(3.0, placement=(0.7, 0.0, 0.3))).ttft_coverage(0.8))
    expected = (float(solve(raised).ttft_coverage(0.8)) - base) / little
    assert row.derivative == pytest.approx(expected, abs=1e-4)
    full = table(baseline(3.0, placement=(1.0, 0.0, 0.0)))
    assert np.isfinite([entry.derivative for entry in full.values()]).all()


def test_a_window_is_the_mean_of_its_hours(baseline) -> None:
    hours = [baseline(2.0), baseline(6.0)]
    together = table(hours, weights=[3.0, 1.0])
    first, second = table(hours[0]), table(hours[1])
    for name in ("delay_coefficient", "placement_probability[2]", "ttft_target", "concurrency[2]"):
        expected = 0.75 * first[name].derivative + 0.25 * second[name].derivative
        assert together[name].derivative == pytest.approx(expected, abs=1e-6)


def test_a_parameter_behind_the_arrays(baseline) -> None:
    # the whole prefill scaled through a knob of one's own is the prefill scale
    def change(network, value):
        return replace(
            network,
            prefill_time=value * network.prefill_time,
            full_prefill_time=value * network.full_prefill_time,
            occupancy_time=network.occupancy_time + (value - 1.0) * network.prefill_time,
        )

    rows = table(baseline(3.0), further={"mine": Knob(1.0, "–", change)})
    assert rows["mine"].derivative == pytest.approx(rows["prefill_scale"].derivative, abs=1e-9)


def test_nothing_moves_where_nothing_is_covered(baseline) -> None:
    rows = table(baseline(20.0))
    assert all(row.derivative == 0.0 for row in rows.values())
    assert np.isnan(rows["site_density"].elasticity)


def test_what_is_zero_has_a_derivative_and_no_elasticity(baseline) -> None:
    # an idle network waits for nobody, and a little load makes next to no wait; one-sided, in an absolute step
    rows = table(baseline(0.0))
    assert abs(rows["request_intensity"].derivative) < 1e-8
    assert rows["request_intensity"].elasticity == 0.0
    assert rows["site_density"].derivative > 0.1

    def later(network, value):
        times = ("prefill_time", "full_prefill_time", "occupancy_time")
        return replace(network, **{name: getattr(network, name) + value for name in times})

    network, h = baseline(3.0), 1e-5
    row = table(network, further={"overhead": Knob(0.0, "s", later, 0.1)})["overhead"]
    first, second = (float(solve(later(network, part * h)).ttft_coverage(0.8)) for part in (1.0, 2.0))
    base = float(solve(network).ttft_coverage(0.8))
    assert row.derivative == pytest.approx((4.0 * first - second - 3.0 * base) / (2.0 * h), rel=1e-3)
    assert row.elasticity == 0.0


def test_hours_with_an_idle_one_first(baseline) -> None:
    rows = table([baseline(0.0), baseline(6.0)])
    alone = table(baseline(6.0))
    expected = 0.5 * alone["request_intensity"].derivative
    assert rows["request_intensity"].derivative == pytest.approx(expected, abs=1e-5)


def test_the_scale_of_a_zero_must_make_sense(baseline) -> None:
    with pytest.raises(GeoEdgeError, match=r"the scale of `mine` is 0\.0"):
        table(baseline(3.0), further={"mine": Knob(0.0, "s", lambda network, value: network, 0.0)})
