from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from geoedge.texts import plain_text


@given(st.text(max_size=300))
def test_a_name_becomes_one_short_line_without_controls(name: str) -> None:
    shown = plain_text(name)
    assert len(shown) <= 80
    assert not any(unicodedata.category(character)[0] == "C" for character in shown)
    assert shown == " ".join(shown.split())
    assert plain_text(shown) == shown


def test_letters_of_any_script_stay_and_markup_stays_text() -> None:
    assert plain_text("  Poste\n de Monaco ") == "Poste de Monaco"
    assert plain_text("شركة") == "شركة"
    assert plain_text("<b>x</b>") == "<b>x</b>"
    assert plain_text("a\u202eb\u2066c\u200fd\x00e") == "abcde"
    assert plain_text(None) == plain_text(float("nan")) == ""
