"""The Poisson twins of a city, and the whole job where sites are few."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from geoedge.compare import cell_table, layout_table, poisson_twin, run, staleness_curve
from geoedge.errors import GeoEdgeError
from geoedge.study import field_answers, theory_answers


def test_twins_have_the_density_and_the_mix_of_the_layout(small_study) -> None:
    layout, shares = small_study.layout, len(small_study.workload.profile_names)
    fixed = poisson_twin(small_study, "fixed", 0)
    assert np.array_equal(
        np.bincount(fixed.profile, minlength=shares), np.bincount(layout.profile, minlength=shares)
    )
    free = [len(poisson_twin(small_study, "Poisson", k)) for k in range(200)]
    assert np.mean(free) == pytest.approx(len(layout), abs=4 * np.sqrt(len(layout) / 200))
    assert np.var(free) == pytest.approx(len(layout), rel=0.5)  # a Poisson number: variance = mean
    assert small_study.city.contains(fixed.xy).all()


def test_a_twin_depends_on_seed_and_index_alone(small_study) -> None:
    first, again, other = (poisson_twin(small_study, "fixed", k) for k in (3, 3, 4))
    assert np.array_equal(first.xy, again.xy)
    assert not np.array_equal(first.xy, other.xy)


@pytest.mark.slow
def test_the_table_does_not_depend_on_workers(small_study) -> None:
    one, two = (layout_table(small_study, 4, workers=workers) for workers in (1, 2))
    pd.testing.assert_frame_equal(one, two)
    assert list(one["count"]) == ["Poisson", "fixed"] * 4
    twin = field_answers(small_study.with_layout(poisson_twin(small_study, "fixed", 1)))
    assert one["coverage"][3] == pytest.approx(twin.ttft_coverage(0.8), abs=2e-3)


@pytest.mark.parametrize("bad", [{"layouts": -1}, {"layouts": 1, "workers": 0}])
def test_impossible_numbers_are_refused(small_study, bad) -> None:
    with pytest.raises(GeoEdgeError, match="must be at least 0"):
        layout_table(small_study, **bad)


@pytest.mark.slow
def test_the_map_compares_a_place_with_theory_for_its_own_requests(small_study) -> None:
    results = run(small_study.scenario, study=small_study, layouts=0, workers=1)
    theory = theory_answers(small_study)
    cells = cell_table(small_study, theory, results)
    for epoch, demand in enumerate(small_study.demand):
        rows = cells[cells["epoch"] == epoch]
        # averaged over requests, the places' predictions are the city's
        mean = np.average(rows["ppp_coverage"], weights=demand.rate.sum(axis=1))
        assert mean == pytest.approx(float(theory.answers[epoch].ttft_coverage(0.8)), abs=1e-9)
        assert rows["demand_per_km2_s"].sum() * 0.05**2 == pytest.approx(demand.request_rate)
    assert results.meta["findings"]


@pytest.mark.slow
def test_three_sites_and_ensembles_that_may_draw_none(small_scenario, tmp_path) -> None:
    path = tmp_path / "three.csv"
    path.write_text("lon,lat\n7.42,43.735\n7.43,43.74\n7.41,43.725\n")
    changes = {
        "sites.source": str(path),
        "demand.request_rate_per_user_s": 0.002,
        "simulation.replications": 1,
    }
    results = run(small_scenario.override(changes), layouts=30, workers=1)
    ensemble = results.tables["ensemble"]
    assert (
        ensemble["sites"] == 0
    ).any()  # 30 draws of mean 3 miss none with probability 0.2; this seed has some
    assert not ensemble.loc[ensemble["sites"] == 0, "stable"].any()
    assert results.tables["answers"]["value"].notna().all()


@pytest.mark.slow
def test_old_telemetry_destroys_coverage(small_study) -> None:
    curve = staleness_curve(small_study, (0.0, 1.0, 60.0), replications=3)
    assert list(curve["advertise"]) == ["equilibrium", "state", "state", "state"]
    fresh, second, minute = curve["coverage"][1:]
    assert fresh > second + 0.05
    assert second > minute + 0.05
    assert fresh > curve["coverage"][0]
