"""One self-contained page about a run, or about several side by side."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geoedge.report.page.page import ReportPage, report_page

__all__ = ["ReportPage", "report_page"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("geoedge.report.page.page"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
