"""What an audit of a run found, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from geoedge.report._text import terminal
from geoedge.texts import plain_text
from geoedge.units import GB

if TYPE_CHECKING:
    from geoedge.simulation.audit import RunAudit

__all__ = ["print_audit"]

SHOWN = 20
"""Violations listed."""


def print_audit(audit: RunAudit, name: str, *, brief: bool = False) -> None:
    """Print what an audit found.

    Parameters
    ----------
    audit
        What it found.
    name
        The run.
    brief
        Print the verdict and what breaks rules alone.
    """
    console = terminal()
    fine = not audit.violations
    head = "the log replays, and all rules are kept" if fine else f"{len(audit.violations)} rules are broken"
    console.print(Text(f"{plain_text(name)}: {head}", style="bold"))
    if not brief:
        _print_counts(audit, console)
    for line in audit.violations[:SHOWN]:
        console.print(Text(f"  {plain_text(line)}"))
    if len(audit.violations) > SHOWN:
        console.print(Text(f"  and {len(audit.violations) - SHOWN} more"))


def _print_counts(audit: RunAudit, console: Console) -> None:
    counts = ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in audit.requests.items())
    console.print(Text(f"requests   {sum(audit.requests.values()):,}: {counts}"))
    for key, seconds in audit.outside_s.items():
        console.print(Text(f"bounds     sites held what breaks control.{key} for {seconds:,.0f} s"))
    moved = f"{audit.bytes_moved / GB:.1f} GB moved, {audit.events} events replayed"
    console.print(
        Text(f"actions    {audit.actions}: {moved}, {len(audit.oscillations)} undone within four epochs")
    )
