"""What a scenario or a map holds, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from geoedge.report._narrow import show
from geoedge.report._text import table, terminal
from geoedge.texts import plain_text
from geoedge.units import GIB

if TYPE_CHECKING:
    from geoedge.city.city import City
    from geoedge.scenario import Scenario
    from geoedge.workload import Workload

__all__ = ["print_city", "print_scenario", "scenario_facts"]


def print_scenario(scenario: Scenario, *, brief: bool = False) -> None:
    """Print what a scenario holds: profiles, request types, and what follows for memory and time.

    Parameters
    ----------
    scenario
        A valid scenario.
    brief
        Print that it is valid alone.
    """
    from geoedge.workload import build_workload

    workload = build_workload(scenario.workload, scenario.hardware)
    console = terminal()
    console.print(Text(f"{plain_text(scenario.title)}: the scenario is valid", style="bold"))
    if not brief:
        show(console, _profiles_table(workload))
        show(console, _requests_table(workload))


def _profiles_table(workload: Workload) -> Table:
    hits = (Text(f"hit {name}, token") for name in workload.type_names)
    profiles = table("Profiles", "profile", "share of sites", "memory GiB", "concurrency", *hits)
    for s, name in enumerate(workload.profile_names):
        profiles.add_row(
            Text(name),
            f"{workload.placement_probability[s]:.2f}",
            f"{workload.persistent_bytes[s] / GIB:.2f}",
            str(workload.concurrency[s]),
            *(str(hit) for hit in workload.hit_tokens[s]),
        )
    return profiles


def _requests_table(workload: Workload) -> Table:
    heads = ("probability", "prompt, token", "answer, token", "full prefill, s", "decode, s")
    requests = table("Request types", "type", *heads)
    for q, name in enumerate(workload.type_names):
        requests.add_row(
            Text(name),
            f"{workload.type_probability[q]:.2f}",
            str(workload.prompt_tokens[q]),
            str(workload.output_tokens[q]),
            f"{workload.full_prefill_time[q]:.3f}",
            f"{workload.decode_time[q]:.2f}",
        )
    return requests


def scenario_facts(scenario: Scenario) -> dict[str, Any]:
    """Return what a scenario holds and what follows from it, for machines.

    Parameters
    ----------
    scenario
        A valid scenario.
    """
    from geoedge.workload import build_workload

    workload = build_workload(scenario.workload, scenario.hardware)
    profiles = [
        {
            "profile": name,
            "placement_probability": float(workload.placement_probability[s]),
            "persistent_bytes": int(workload.persistent_bytes[s]),
            "concurrency": int(workload.concurrency[s]),
            "hit_tokens": dict(zip(workload.type_names, workload.hit_tokens[s].tolist(), strict=True)),
        }
        for s, name in enumerate(workload.profile_names)
    ]
    requests = [
        {
            "type": name,
            "type_probability": float(workload.type_probability[q]),
            "prompt_tokens": int(workload.prompt_tokens[q]),
            "output_tokens": int(workload.output_tokens[q]),
            "full_prefill_time_s": float(workload.full_prefill_time[q]),
            "decode_time_s": float(workload.decode_time[q]),
        }
        for q, name in enumerate(workload.type_names)
    ]
    given = scenario.to_dict()
    return {"valid": True, "profiles": profiles, "requests": requests, "scenario": given}


def print_city(city: City) -> None:
    """Print what a map holds, what was imputed and what was dropped.

    Parameters
    ----------
    city
        A loaded city.
    """
    console = terminal()
    console.print(
        Text(f"{city.name}: {city.area_km2:.2f} km² of land where people are, {city.crs}", style="bold")
    )
    facts = Table(box=None, pad_edge=False, show_header=False)
    for key, value in _flat(city.report):
        facts.add_row(Text(key), Text(plain_text(_plain(value), 1000)))
    show(console, facts)
    console.print(Text(city.attribution))


def _flat(report: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in report.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key} ")
        else:
            yield f"{above}{key}".replace("_", " "), value


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(_plain(part) for part in value)
    return str(value)
