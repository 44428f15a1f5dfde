"""The app: a city that one watches and changes in the browser. A SolaraViz page around the Mesa model.

`serve` shows a scenario's city with sliders for load, density, mix and policy, a step of the clock, and live
charts, until it is interrupted; ``geoedge app`` is the same on the command line. It needs the extra ``app``
and listens to this machine alone.

>>> from geoedge import load_scenario
>>> from geoedge.app import serve
>>> serve(load_scenario("paper"), open_browser=False)
Traceback (most recent call last):
    ...
geoedge.errors.ScenarioError: app: the scenario has no [city] to watch; ...

Hours are those of the scenario's day, loads shares of it. A page is one run with one seed: it shows what
happens, without replications and intervals; `geoedge.run` measures.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geoedge.app.server import serve

__all__ = ["serve"]

DEFAULT_PORT = 8765
"""Port of the app on this machine, unless another is asked for."""


def __getattr__(name: str) -> Any:
    if name == "serve":
        return getattr(import_module("geoedge.app.server"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
