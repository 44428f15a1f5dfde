"""What a network accepts, and how it says no."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"type_probability": [0.4, 0.5]}, "add up to 0.9, but must be 1"),
        ({"type_probability": [-0.1, 1.1]}, "`type_probability` is -0.1"),
        ({"tier_density": [0.0, 0.0, 0.0]}, "no site in any tier"),
        ({"tier_density": []}, "no tier"),
        ({"tier_density": [np.nan, 1.0, 1.0]}, "`tier_density` is nan"),
        ({"request_intensity": -1.0}, "`request_intensity` is -1"),
        ({"request_intensity": np.nan}, "`request_intensity` is nan"),
        ({"delay_coefficient": 0.0}, "`delay_coefficient` is 0.0, but must be a positive number"),
        ({"delay_exponent": np.inf}, "`delay_exponent` is inf"),
        ({"delay_exponent": 17.0}, "`delay_exponent` is 17.0, but must be at most 16"),
        ({"concurrency": [18, 14, 0]}, "`concurrency`"),
        ({"concurrency": [18, 14, 1.5]}, "whole numbers"),
        ({"occupancy_time": np.zeros((3, 2))}, "`occupancy_time`"),
        ({"prefill_time": np.zeros((2, 3))}, r"shape \(2, 3\), but must be shape \(S, Q\) = \(3, 2\)"),
        ({"hit_tokens": [[0, 0], [512, 512], [1025, 2048]]}, r"`hit_tokens\[2, 0\]` is 1025.*1024 tokens"),
    ],
)
def test_refuses_in_one_line(baseline, change, words: str) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        replace(baseline(), **change)
    assert "\n" not in str(caught.value)


def test_is_read_only_and_owns_its_arrays(baseline) -> None:
    density = np.array([0.5, 0.4, 0.2])
    network = replace(baseline(), tier_density=density)
    density[0] = 9.0
    assert network.tier_density[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        network.tier_density[0] = 1.0


def test_variants(baseline) -> None:
    network = baseline()
    assert network.scaled(2.0).site_density == pytest.approx(2.4)
    assert network.scaled(2.0).request_intensity == network.request_intensity
    assert network.with_intensity(5.0).request_intensity == 5.0
    np.testing.assert_allclose(network.with_placement([1.0, 0.0, 0.0]).tier_density, [1.2, 0.0, 0.0])
    with pytest.raises(GeoEdgeError, match="placement_probability"):
        network.with_placement([0.5, 0.6, 0.1])


def test_capacity_bounds_by_hand(baseline) -> None:
    network = baseline()
    servers = 1.2 * (0.45 * 18 + 0.35 * 14 + 0.2 * 6)
    slow = 0.4 * network.occupancy_time[0, 0] + 0.6 * network.occupancy_time[0, 1]
    fast = 0.4 * network.occupancy_time[2, 0] + 0.6 * network.occupancy_time[2, 1]
    assert network.sufficient_intensity == pytest.approx(servers / slow)
    assert network.necessary_intensity == pytest.approx(servers / fast)
    # an empty tier carries nothing, however fast it is
    lone = network.with_placement([1.0, 0.0, 0.0])
    assert lone.necessary_intensity == pytest.approx(lone.sufficient_intensity)
