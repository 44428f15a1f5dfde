from __future__ import annotations

import pytest

from geoedge.city import ATTRIBUTION, City
from geoedge.maps.credit import ODBL_CREDIT, map_credit
from geoedge.maps.view import RunView
from geoedge.results import Results


@pytest.mark.parametrize("date", ["", "unknown"])
def test_a_date_that_nobody_knows_is_said_to_be_unknown(date: str) -> None:
    assert map_credit(ATTRIBUTION, date) == [*ODBL_CREDIT, ("; date of extract unknown", "")]
    assert map_credit("Surveyors", date) == [("Surveyors; date of extract unknown", "")]


def test_words_of_a_file_stay_text_on_one_line() -> None:
    ((words, address),) = map_credit("A\u202e\nb", "2016-03-05\n<b>")
    assert address == ""
    assert words == "A b; extract of 2016-03-05 <b>"


def test_a_runs_map_is_owed_to_its_city(run: Results, town: City) -> None:
    assert RunView.of(run, town).credit() == map_credit(ATTRIBUTION, "2016-03-05")
    assert RunView.of(run, town).credit()[-1] == ("; extract of 2016-03-05", "")
