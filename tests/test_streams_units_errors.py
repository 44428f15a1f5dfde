"""Streams are named, repeatable and independent; errors share one base and can be caught as ValueError."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from geoedge import errors, units
from geoedge.streams import generator, stream


def test_the_same_name_gives_the_same_stream():
    assert np.array_equal(stream(7, "arrivals", 3).random(100), stream(7, "arrivals", 3).random(100))


@pytest.mark.parametrize("other", [(8, "arrivals", 3), (7, "arrivals", 4), (7, "homes", 3), (7, "arrivals")])
def test_another_seed_or_name_gives_another_stream(other):
    assert not np.any(stream(7, "arrivals", 3).random(100) == stream(*other).random(100))


def test_drawing_from_one_stream_never_shifts_another():
    expected = stream(1, "mobility").random(10)
    stream(1, "arrivals").random(10_000)
    stream(1, "something new").random(3)
    assert np.array_equal(stream(1, "mobility").random(10), expected)


def test_streams_of_neighbouring_names_are_uncorrelated():
    draws = np.array([stream(1, "epoch", k).standard_normal(4000) for k in range(12)])
    correlation = np.corrcoef(draws)[np.triu_indices(12, 1)]
    # 66 correlations of sd 1/sqrt(4000) = 0.016: five sd leave one false alarm in 25,000 such tests.
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)


def test_a_stream_does_not_depend_on_the_hash_seed_of_the_process():
    code = "from geoedge.streams import generator, stream; print(stream(5, 'homes').integers(2**62))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert runs == {f"{stream(5, 'homes').integers(2**62)}\n"}


def test_streams_leave_the_global_state_alone():
    before = np.random.get_state(legacy=True)[1].copy()  # noqa: NPY002
    stream(1, "x").random(10)
    assert np.array_equal(np.random.get_state(legacy=True)[1], before)  # noqa: NPY002


def test_a_negative_seed_is_refused_by_name():
    with pytest.raises(ValueError, match=r"`seed` must be a nonnegative integer, not -1"):
        stream(-1, "x")


@pytest.mark.parametrize("given", [-1, "x", 1.5, [1, "y"]])
def test_what_is_no_seed_is_refused_in_one_line(given):
    with pytest.raises(errors.GeoEdgeError, match=r"`rng` must be a seed >= 0 or a numpy Generator, not "):
        generator(given)


def test_a_generator_stays_itself_and_a_seed_repeats():
    rng = np.random.default_rng(1)
    assert generator(rng) is rng
    assert generator(5).random() == generator(5).random()


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_a_geoedge_error_and_a_value_error(name):
    kind = getattr(errors, name)
    assert issubclass(kind, errors.GeoEdgeError)
    assert issubclass(kind, ValueError)
    assert kind.__doc__


def test_a_failed_download_is_a_city_error():
    assert issubclass(errors.DownloadError, errors.CityError)


def test_units_agree_with_each_other():
    assert units.M2_PER_KM2 == units.KM**2
    assert units.GIB == 1024**3
