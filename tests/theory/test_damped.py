"""The paper's damped iteration: where it goes, where it swings, and how its end is judged."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.theory import damped_iteration, solve_equilibrium


@pytest.mark.parametrize(("load", "damping"), [(3.0, 0.3), (3.0, 0.7), (4.0, 0.4), (6.0, 0.15)])
def test_it_ends_at_the_equilibrium(baseline, load: float, damping: float) -> None:
    network = baseline(load)
    history = damped_iteration(network, damping, 400, overload_wait=1.0)
    np.testing.assert_allclose(history.waits[-1], solve_equilibrium(network).advertised_wait, atol=1e-8)
    assert history.settled() is not None
    assert history.residual_s[-1] < 1e-8


@pytest.mark.parametrize(("load", "largest"), [(3.0, 0.859), (6.0, 0.178), (8.0, 0.082), (12.0, 0.041)])
def test_the_largest_stable_damping(baseline, load: float, largest: float) -> None:
    # started next to the point, so that nothing but its own stability decides
    network = baseline(load)
    near = solve_equilibrium(network).advertised_wait * (1.0 + 1e-7)
    calm, swinging = (
        damped_iteration(network, factor * largest, 1500, start=near, overload_wait=10.0).residual_s
        for factor in (0.97, 1.03)
    )
    assert calm[-1] < 0.1 * calm[0]
    assert swinging[-1] > 10.0 * swinging[0]


def test_a_step_is_no_residual(baseline) -> None:
    # with η = 0.01 steps look small long before the waits are right
    history = damped_iteration(baseline(3.0), 0.01, 50)
    step = np.abs(np.diff(history.waits, axis=0)).max(axis=1)
    np.testing.assert_allclose(step, 0.01 * history.residual_s[:-1], rtol=1e-9)


def test_an_overload_ends_it_or_has_a_stand_in(baseline) -> None:
    # at load 4 the deep tier starts at utilisation 1.15, although there is a good point
    network = baseline(4.0)
    plain = damped_iteration(network, 0.3, 100)
    assert plain.waits.shape == (1, 3)
    assert np.isinf(plain.residual_s[-1])
    assert np.isinf(plain.caused[-1]).tolist() == [False, False, True]
    assert plain.settled() is None
    assert damped_iteration(network, 0.3, 100, overload_wait=5.0).waits.shape == (101, 3)


def test_settled_means_from_there_on(baseline) -> None:
    history = damped_iteration(baseline(3.0), 0.5, 60)
    first = history.settled(1e-3)
    assert first > 0
    assert (history.residual_s[first:] <= 1e-3).all()
    assert history.residual_s[first - 1] > 1e-3


def test_an_empty_tier_has_no_say(baseline) -> None:
    history = damped_iteration(baseline(6.0, placement=(1.0, 0.0, 0.0)), 0.5, 60)
    assert (history.waits[:, 1:] == 0.0).all()
    assert history.settled() is not None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"damping": 0.0, "iterations": 3}, r"`damping` is 0.0"),
        ({"damping": 1.2, "iterations": 3}, r"in \(0, 1\]"),
        ({"damping": "half", "iterations": 3}, "`damping` is 'half'"),
        ({"damping": 0.5, "iterations": -1}, "`iterations` is -1"),
        ({"damping": 0.5, "iterations": 2.5}, "`iterations` is 2.5, but must be a whole number"),
        ({"damping": 0.5, "iterations": 3, "start": [0.0]}, "`start` must be 3 finite waits"),
        (
            {"damping": 0.5, "iterations": 3, "overload_wait": np.inf},
            "`overload_wait` must be 1 finite wait >= 0 s",
        ),
        ({"damping": 0.5, "iterations": 3, "overload_wait": "a"}, "`overload_wait` must be"),
    ],
)
def test_bad_input_is_one_line(baseline, arguments, words: str) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        damped_iteration(baseline(), **arguments)
    assert "\n" not in str(caught.value)
