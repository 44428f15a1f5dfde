"""The Poisson twins of a city: random sites of the same density on the same land, asked the same demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.answers import answer_metrics
from geoedge.errors import CityError, GeoEdgeError
from geoedge.streams import stream

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.sites import Layout
    from geoedge.study import Study

__all__ = ["layout_table", "poisson_twin"]

ENSEMBLE_TOLERANCE = 1e-3
"""Residual of each layout's equilibria, in utilisation."""
LAYOUTS_A_TASK = 5
"""Poisson layouts solved by a process at a time: a study is not small to hand over."""


def layout_table(
    study: Study,
    layouts: int = 50,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Return the field over Poisson layouts of the study's density on its land, one row a layout.

    Half of the question is geography, half is luck in the number of sites; so there are two ensembles of
    `layouts` each, with a Poisson and with the real number of sites.

    Parameters
    ----------
    study
        The study.
    layouts
        Layouts of each kind, 0 for none.
    workers
        Processes; one a core by default. The table does not depend on it.
    progress
        Told how many layouts are done.

    Returns
    -------
    pandas.DataFrame
        Columns ``count`` ("Poisson" or "fixed"), ``sites``, ``stable``, ``converged`` and every metric; a layout that
        drew no site serves nobody, and its other metrics are NaN.

    Raises
    ------
    GeoEdgeError
        If `layouts` is negative or `workers` below 1.
    """
    import pandas as pd
    from joblib import cpu_count

    from geoedge.processes import in_processes

    if layouts < 0 or (workers is not None and workers < 1):
        msg = f"`layouts` = {layouts} must be at least 0 and `workers` = {workers} at least 1"
        raise GeoEdgeError(msg)
    tasks = [(kind, index) for index in range(layouts) for kind in ("Poisson", "fixed")]
    workers = cpu_count() if workers is None else workers
    parts = [tasks[k : k + LAYOUTS_A_TASK] for k in range(0, len(tasks), LAYOUTS_A_TASK)]
    rows: list[dict[str, Any]] = []
    tell = progress or (lambda *_: None)
    tell(0, len(tasks))
    for part in in_processes(_layout_rows, [(study, each) for each in parts], workers):
        rows += part
        tell(len(rows), len(tasks))
    return pd.DataFrame(rows)


def _layout_rows(study: Study, tasks: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    from geoedge.study import field_answers

    target, names = study.scenario.target.ttft_target_s, study.workload.profile_names
    rows: list[dict[str, Any]] = []
    for kind, index in tasks:
        layout = poisson_twin(study, kind, index)
        if layout is None:
            rows.append({"count": kind, "sites": 0, "stable": False, "converged": True, "coverage": 0.0})
            continue
        answer = field_answers(study.with_layout(layout), warm_up=False, tolerance=ENSEMBLE_TOLERANCE)
        converged = all(each.converged for each in answer.answers)
        facts = {"count": kind, "sites": len(layout), "stable": answer.stable, "converged": converged}
        rows.append(facts | answer_metrics(answer, target, names))
    return rows


def poisson_twin(study: Study, kind: str, index: int) -> Layout | None:
    """Return a Poisson layout of the study's density and mix on its land; None if it drew no site.

    Parameters
    ----------
    study
        The study.
    kind
        ``"Poisson"`` for a Poisson number of sites, each with a profile of its own luck; ``"fixed"`` for the real
        numbers of sites and profiles.
    index
        Which one; it depends on the scenario's seed and this number alone.

    Raises
    ------
    CityError
        If the layout cannot be drawn for another reason than having no site.
    """
    from geoedge.sites.processes import poisson_layout

    layout, area = study.layout, study.city.area_km2
    held = np.bincount(layout.profile, minlength=len(study.workload.profile_names)) / len(layout)
    rng = stream(study.scenario.seed, "Poisson layout", kind, index)
    count = None if kind == "Poisson" else len(layout)
    density = layout.density(area) if count is None else None
    try:
        return poisson_layout(
            study.city.boundary, density, rng, count=count, placement_probability=held, crs=layout.crs
        )
    except CityError:
        if density is None or not density > 0:
            raise
        return None  # with few sites a Poisson number may be zero
