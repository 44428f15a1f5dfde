"""How a verb speaks: in words or in JSON, with progress or without."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from geoedge.errors import GeoEdgeError

if TYPE_CHECKING:
    import typer

    from geoedge.cli.progress import Report
    from geoedge.results import Results

__all__ = ["Manner", "check_ending", "given", "print_json", "run_facts"]


class Manner(NamedTuple):
    """How a verb speaks."""

    as_json: bool
    quiet: bool

    def progress(self, run_s: float | None = None) -> AbstractContextManager[Report]:
        """Return what shows progress, if it is wanted; a simulation lasts `run_s` [s]."""
        if self.as_json or self.quiet:
            return nullcontext(lambda *_: None)
        from geoedge.cli.progress import progress

        return progress(run_s)

    def named(self, path: Path | None) -> Path | None:
        """Return a file written beside the answer, if it is to be named to the reader."""
        return None if self.quiet else path


def print_json(found: Any) -> None:
    """Print one JSON document: infinite and undefined numbers are null."""
    import json

    print(json.dumps(_plain(found), indent=1, default=str))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def run_facts(results: Results, folder: Path) -> dict[str, Any]:
    """Return what a run says, for machines."""
    import json

    tables: dict[str, Any] = {
        name: json.loads(results.tables[name].to_json(orient="records"))
        for name in ("answers", "control", "policies")
        if name in results.tables
    }
    return {"run": str(folder), "meta": results.meta, **tables}


def given(context: typer.Context, *names: str) -> list[str]:
    """Return which of these options stand on the command line."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def check_ending(output: Path, what: str, *endings: str) -> None:
    """Refuse a file whose name does not end as such a file does."""
    if output.suffix.lower() not in endings:
        msg = f"--output {str(output)!r}: {what}; name a file that ends in {' or '.join(endings)}"
        raise GeoEdgeError(msg)
