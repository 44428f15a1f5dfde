from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoedge.errors import OutputError
from geoedge.maps.levels import ALPHABET, LevelScale, encode_digits
from geoedge.maps.wire import script_json


def decoded(text: str, scale: LevelScale) -> np.ndarray:
    """Return what the page reads, by the page's own rule written again."""
    base = len(ALPHABET)
    digit = {character: i for i, character in enumerate(ALPHABET)}
    codes = [digit[a] * base + digit[b] for a, b in zip(text[::2], text[1::2], strict=True)]
    top = base**2 - 2
    found = []
    for code in codes:
        if code == 0:
            found.append(np.nan)
        elif code == base**2 - 1:
            found.append(np.inf)
        elif not scale.log:
            found.append(scale.low + (code - 1) / (top - 1) * (scale.high - scale.low))
        else:
            found.append(
                0.0 if code == 1 else scale.low * (scale.high / scale.low) ** ((code - 2) / (top - 2))
            )
    return np.array(found)


def test_the_alphabet_needs_no_escape_in_json_and_in_a_script() -> None:
    assert len(ALPHABET) == len(set(ALPHABET)) == 90
    assert all(script_json(character) == f'"{character}"' for character in ALPHABET)


def test_shares_come_back_to_a_hundredth_of_a_point() -> None:
    shares = np.linspace(0, 1, 777)
    back = decoded(LevelScale.shares().encode(shares), LevelScale.shares())
    np.testing.assert_allclose(back, shares, atol=1e-4)
    assert (back[0], back[-1]) == (0.0, 1.0)


def test_counts_up_to_eight_thousand_come_back_exactly() -> None:
    counts = np.array([0, 1, 2, 999, 8097])
    np.testing.assert_allclose(
        decoded(LevelScale.counts(counts).encode(counts), LevelScale.counts(counts)), counts, atol=1e-9
    )


@given(st.lists(st.floats(1e-4, 1e5), min_size=1, max_size=20))
def test_times_come_back_to_three_digits(times: list[float]) -> None:
    scale = LevelScale.times(times)
    np.testing.assert_allclose(decoded(scale.encode(times), scale), times, rtol=2e-3)


def test_what_is_unknown_unbounded_or_nothing_stays_so() -> None:
    values = [np.nan, np.inf, 0.0, 2.0]
    scale = LevelScale.times(values)
    back = decoded(scale.encode(values), scale)
    assert np.isnan(back[0])
    assert back[1:].tolist() == [np.inf, 0.0, pytest.approx(2.0)]
    assert LevelScale.between([np.nan, np.inf]) == LevelScale(0.0, 1.0)


@pytest.mark.parametrize("wrong", [[-0.1], [1.1]])
def test_a_number_outside_of_its_scale_is_an_error(wrong: list[float]) -> None:
    with pytest.raises(OutputError, match="lies outside of 0 to 1"):
        LevelScale.shares().encode(wrong)


def test_digits_are_one_character_each() -> None:
    assert encode_digits([0, 1, 89]) == ALPHABET[0] + ALPHABET[1] + ALPHABET[89]
    with pytest.raises(OutputError, match="91 different things"):
        encode_digits([90])
