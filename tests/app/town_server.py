"""The town's app in a process of its own, for a browser: run this file, and it says where the page is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType


def main() -> None:
    tests = ModuleType("tests")  # by hand, for an installed package calls itself so
    tests.__path__ = [str(Path(__file__).parents[1])]
    sys.modules["tests"] = tests
    from geoedge.app import serve
    from tests.app.conftest import hostile_layout, hostile_scenario
    from tests.simulation.conftest import make_town

    serve(
        hostile_scenario(),
        port=0,
        open_browser=False,
        city=make_town(),
        layout=hostile_layout(),
        say=lambda words: print(words, flush=True),
    )


if __name__ == "__main__":
    main()
