"""The page: Mesa's controls at the side, the city and its live charts beside them.

Solara imports this module by name and shows `Page` to every browser that comes; each has a model of its own.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Any

import solara
import solara.lab

from geoedge.app import parts
from geoedge.app.bench import Bench
from geoedge.app.charts import charts
from geoedge.app.choices import CONTROLLERS, LAYOUTS, MIX, Choices, epoch_minutes, most_sites
from geoedge.app.model import CityModel
from geoedge.app.townmap import COLOURINGS, Colouring, Frame, ground, moving
from geoedge.policies import POLICIES
from geoedge.texts import plain_text

with warnings.catch_warnings():
    # Solara reads Mesa's page when it is imported, and finds a hook behind an early return: that is Mesa's to mend
    warnings.filterwarnings(
        "ignore",
        message=r"(?s).*mesa[\\/]visualization[\\/]solara_viz\.py.*found despite early return",
        category=UserWarning,
    )
    from mesa.visualization import Slider, SolaraViz
    from mesa.visualization.utils import update_counter

__all__ = ["Layout", "Page", "show"]

SETTLE_S = 0.4
"""How long choices must rest before the model is made anew [s]."""
PLAY_INTERVAL_MS = 50
STYLE = (files("geoedge.app") / "style.css").read_text(encoding="utf-8")

Layout = partial(solara.AppLayout, sidebar_open=None)
"""How Solara lays the page out: the browser opens the controls where there is room beside them, not on a phone."""

_shown: list[Bench] = []


def show(bench: Bench) -> None:
    """Let the page show a bench; once a process, before it serves."""
    _shown[:] = [bench]


@solara.component
def Page() -> None:
    """Show a notice while the city is prepared, then the workbench."""
    bench = _shown[0]
    solara.Style(STYLE)
    solara.Title(plain_text(bench.scenario.title))
    knobs = solara.use_memo(lambda: _knobs(bench), [])
    make = solara.use_memo(lambda: _chosen_model(bench, knobs), [])
    first = solara.lab.use_task(make, dependencies=[], raise_error=False, prefer_threaded=True)
    if first.error:
        solara.Error(f"The city could not be prepared: {plain_text(first.exception, 400)}")
    elif not first.finished:
        _Waiting(f"Preparing {plain_text(bench.scenario.title)}")
    else:
        _Workbench(bench, knobs, make, first.value)


def _knobs(bench: Bench) -> dict[str, Any]:
    """Return one reactive variable a choice."""
    return {name: solara.reactive(value) for name, value in Choices.of(bench.scenario).flat().items()}


def _chosen_model(bench: Bench, knobs: dict[str, Any]) -> Callable[[], CityModel]:
    """Return the model of what is chosen now, whoever makes it: this page, or Mesa's reset with what it remembers."""

    class ChosenModel(CityModel):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(bench, **{name: knob.peek() for name, knob in knobs.items()})

    return ChosenModel


@solara.component
def _Waiting(words: str) -> None:
    with solara.Column(classes=["ge-waiting"]):
        solara.Text(f"{words} …")
        solara.ProgressLinear(True)


@solara.component
def _Workbench(bench: Bench, knobs: dict[str, Any], make: Callable[[], CityModel], first: CityModel) -> None:
    """Show the dashboard, and Mesa's controls at the side."""
    layout, sites = knobs["layout"].value, knobs["sites"]
    most = most_sites(bench.scenario, layout)
    # the scenario's own sites have been chosen again after more of another layout
    solara.use_effect(lambda: sites.set(min(sites.peek(), most)), [layout])
    model, ended, making = _use_model(make, first, {name: knob.value for name, knob in knobs.items()})
    if making.error:
        solara.Error(f"The model could not be made: {plain_text(making.exception, 400)}")
    _Dashboard(model.value, making.pending)
    SolaraViz(
        model,
        components=[],
        model_params=_controls(bench, knobs),
        name=plain_text(bench.scenario.title),
        play_interval=PLAY_INTERVAL_MS,
    ).key(f"after {ended} that ended")  # Mesa's buttons remember that a model has ended


def _use_model(
    make: Callable[[], CityModel], first: CityModel, chosen: dict[str, Any]
) -> tuple[Any, int, Any]:
    """Return the model, made anew when what is chosen has come to rest, how many had ended by then, and the making."""
    model, ended = solara.use_reactive(first), solara.use_reactive(0)
    built, wanted = solara.use_ref(chosen), solara.use_ref(chosen)
    wanted.current = chosen

    def rebuild() -> None:
        if chosen == built.current:
            return
        time.sleep(SETTLE_S)
        fresh = make() if wanted.current == chosen else None
        if fresh is None or wanted.current != chosen:
            return  # somebody has gone on choosing
        built.current = chosen
        ended.value += not model.value.running
        model.value = fresh

    making = solara.lab.use_task(
        rebuild, dependencies=[tuple(chosen.items())], raise_error=False, prefer_threaded=True
    )
    shown = model.value
    solara.use_effect(lambda: shown.forget, [shown])
    return model, ended.value, making


def _controls(bench: Bench, knobs: dict[str, Any]) -> dict[str, Any]:
    """Return Mesa's description of the controls, each with its value in its label."""
    names = [plain_text(profile.name, 24) for profile in bench.scenario.workload.profiles]

    def times(name: str, words: str, most: float = 2.0) -> Slider:
        label = f"{words}: {100 * knobs[name].value:.0f} %"
        return Slider(label, knobs[name], 0.2, most, 0.05, dtype=float)

    def weight(k: int) -> Slider:
        knob, total = knobs[f"{MIX}{k}"], sum(knobs[f"{MIX}{j}"].value for j in range(len(names)))
        share = knob.value / total if total > 0 else 0.0
        return Slider(f"{names[k]}: {100 * share:.0f} % of sites", knob, 0.0, 1.0, 0.05, dtype=float)

    return {
        "load": times("load", "Load"),
        "sites": times("sites", "Number of sites", most_sites(bench.scenario, knobs["layout"].value)),
        "layout": _select("Where sites stand", knobs["layout"], list(LAYOUTS)),
        **{f"{MIX}{k}": weight(k) for k in range(len(names))},
        "policy": _select("Routing policy", knobs["policy"], list(POLICIES)),
        "controller": _select("Controller", knobs["controller"], list(CONTROLLERS)),
        "epoch_min": _select("Epoch [min]", knobs["epoch_min"], epoch_minutes(bench.scenario)),
        "seed": {"type": "InputText", "label": "Seed", "value": knobs["seed"]},
    }


def _select(label: str, knob: Any, values: list[Any]) -> dict[str, Any]:
    return {"type": "Select", "label": label, "value": knob, "values": values}


@solara.component
def _Dashboard(model: CityModel, making: bool) -> None:
    """Show the city as it is now, or what is wrong with what has been chosen above what was there before."""
    update_counter.get()
    colouring = solara.use_reactive(COLOURINGS[0])
    before = solara.use_ref(model)
    if model.city is not None:
        before.current = model
    stale = making or model.city is None
    with solara.Column(classes=["ge-page", *(["ge-stale"] if stale else [])]):
        if making:
            solara.ProgressLinear(True)
        if model.problem:
            solara.Error(plain_text(model.problem, 600), classes=["ge-problem"])
        if before.current.city is not None:
            _Picture(before.current, colouring)


@solara.component
def _Picture(model: CityModel, colouring: Any) -> None:
    """Show facts, map and charts of a model."""
    update_counter.get()
    _html("ge-facts", parts.facts(model))
    with solara.Div(classes=["ge-columns"]):
        with solara.Div(classes=["ge-left"]):
            _Map(model, colouring.value)
            with solara.Div(classes=["ge-choose"]):
                solara.Text("Colour sites by")
                solara.ToggleButtonsSingle(colouring, values=list(COLOURINGS), dense=True)
            _html("ge-legend", parts.legend(model, colouring.value))
        with solara.Div(classes=["ge-right"]):
            for chart in charts(model):
                _html("ge-card", chart)


@solara.component
def _Map(model: CityModel, colouring: Colouring) -> None:
    """Show the ground, sent once, and over it what moves."""
    update_counter.get()
    assert model.city is not None
    city = model.city.study.city
    frame = Frame.of(city)
    still = solara.use_memo(lambda: ground(city), [city.checksum])
    style = {"aspect-ratio": f"{frame.width:.0f} / {frame.height:.0f}"}
    with solara.Div(classes=["ge-map"], style=style):
        _html("ge-under", still)
        _html("ge-over", moving(model, colouring))
    _html("ge-credit", parts.credit(city))


def _html(style_class: str, markup: str) -> None:
    """Show markup whose texts are escaped by those who made it."""
    solara.HTML(tag="div", unsafe_innerHTML=markup, classes=[style_class])
