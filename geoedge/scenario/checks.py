"""What the tables of a scenario must agree on; each problem is one line with its cure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from geoedge.scenario import memory, sessions, toml
from geoedge.scenario.compatibility import compatibility_problems
from geoedge.scenario.dynamics import dynamics_problems
from geoedge.scenario.routing import routing_problems
from geoedge.scenario.sections import PROCESS_PARAMETERS
from geoedge.units import GIB

if TYPE_CHECKING:
    from geoedge.scenario import Scenario
    from geoedge.scenario.sections import (
        HardwareConfig,
        PrefixConfig,
        ProfileConfig,
        SitesConfig,
        WorkloadConfig,
    )

__all__ = ["prefill_table_problem", "problems"]

_SUM_TOLERANCE = 1e-9


def problems(scenario: Scenario) -> list[str]:
    """Return what does not fit together, most basic first, one line each."""
    work = scenario.workload
    found = [*_names(work)]
    if not found:
        found = [*_forest(work), *_profiles(work), *_requests(work)]
    if not found:
        found = [*_memory_room(scenario)]
    return [
        *found,
        *_prefill(scenario.hardware),
        *_place(scenario),
        *_demand(scenario),
        *_mobility(scenario),
        *routing_problems(scenario),
        *_edge(scenario),
        *_service(scenario),
        *_window(scenario),
        *dynamics_problems(scenario),
        *compatibility_problems(scenario),
        *sessions.problems(scenario),
    ]


def _names(work: WorkloadConfig) -> Iterator[str]:
    for table, entries in (
        ("prefixes", work.prefixes),
        ("profiles", work.profiles),
        ("requests", work.requests),
    ):
        counts = Counter(entry.name for entry in entries)
        for name in (name for name, count in counts.items() if count > 1):
            yield f"workload.{table}: name {toml.shown(name)} is given {counts[name]} times; give each its own name"


def _unknown_prefix(key: str, name: str, known: tuple[str, ...], empty: str) -> str:
    hint = toml.did_you_mean(name, known)
    names = ", ".join(known) if known else "none, add [[workload.prefixes]]"
    return f"{key} = {toml.shown(name)}: no such prefix{hint}; known: {names}{empty}"


def _forest(work: WorkloadConfig) -> Iterator[str]:
    depth = {prefix.name: prefix.depth_tokens for prefix in work.prefixes}
    for index, prefix in enumerate(work.prefixes):
        key = f"workload.prefixes[{index}]"
        if not prefix.parent:
            continue
        if prefix.parent not in depth:
            yield _unknown_prefix(f"{key}.parent", prefix.parent, tuple(depth), ' or "" for a root')
        elif prefix.depth_tokens <= depth[prefix.parent]:
            yield (
                f"{key}.depth_tokens = {prefix.depth_tokens}: {toml.shown(prefix.name)} must be deeper than its "
                f"parent {toml.shown(prefix.parent)}, so more than {depth[prefix.parent]} tokens"
            )


def _profiles(work: WorkloadConfig) -> Iterator[str]:
    parent = {prefix.name: prefix.parent for prefix in work.prefixes}
    for index, profile in enumerate(work.profiles):
        key = f"workload.profiles[{index}].prefixes"
        yield from _closure(key, profile.prefixes, parent)
        if index and profile.persistent_bytes and not profile.prefixes:
            yield (
                f"workload.profiles[{index}].persistent_bytes = {profile.persistent_bytes}: "
                f"{toml.shown(profile.name)} stores no prefixes; name them in prefixes, or leave the bytes out"
            )
    first = work.profiles[0]
    if first.prefixes or first.persistent_bytes:
        given = list(first.prefixes) if first.prefixes else f"persistent_bytes {first.persistent_bytes}"
        yield (
            f"workload.profiles[0] = {toml.shown(first.name)} stores {toml.shown(given)}: the first profile is the "
            "fallback and stores nothing; put one with prefixes = [] first"
        )
    yield from _sums_to_one(
        "workload.profiles[*].placement_probability", [p.placement_probability for p in work.profiles]
    )


def _closure(key: str, prefixes: tuple[str, ...], parent: dict[str, str]) -> Iterator[str]:
    stored = set(prefixes)
    if len(stored) < len(prefixes):
        yield f"{key} = {toml.shown(list(prefixes))}: a prefix is named twice; name each once"
    for name in prefixes:
        if name not in parent:
            yield _unknown_prefix(key, name, tuple(parent), "")
        elif parent[name] and parent[name] not in stored:
            yield (
                f"{key} = {toml.shown(list(prefixes))}: {toml.shown(name)} extends {toml.shown(parent[name])}, "
                f"which is not stored; profiles are ancestor-closed, so add {toml.shown(parent[name])}"
            )


def _sums_to_one(key: str, shares: list[float]) -> Iterator[str]:
    total = math.fsum(shares)
    if abs(total - 1.0) > _SUM_TOLERANCE:
        yield f"{key} = {toml.shown(shares)}: sum is {total:.9g}, must be 1; change one by {1.0 - total:+.9g}"


def _requests(work: WorkloadConfig) -> Iterator[str]:
    depth = {prefix.name: prefix.depth_tokens for prefix in work.prefixes}
    for index, request in enumerate(work.requests):
        key = f"workload.requests[{index}]"
        if request.prefix and request.prefix not in depth:
            yield _unknown_prefix(f"{key}.prefix", request.prefix, tuple(depth), ' or "" for none')
        elif request.prefix and request.prompt_tokens < depth[request.prefix]:
            yield (
                f"{key}.prompt_tokens = {request.prompt_tokens}: the prompt is shorter than its prefix "
                f"{toml.shown(request.prefix)}; at least {depth[request.prefix]} tokens, or name a shorter prefix"
            )
        if not any(request.place_weight.model_dump().values()):
            yield f"{key}.place_weight: all are 0, so nobody asks; make one positive or drop the request type"
        if not any(request.hour_weight):
            yield f"{key}.hour_weight: all are 0, so nobody asks; make one positive or drop the request type"
    yield from _sums_to_one(
        "workload.requests[*].type_probability", [r.type_probability for r in work.requests]
    )


def _memory_room(scenario: Scenario) -> Iterator[str]:
    gpu, work = scenario.hardware, scenario.workload
    usable = memory.usable_kv_bytes(
        gpu.memory_bytes, gpu.memory_fraction, gpu.weights_bytes, gpu.reserve_bytes
    )
    if usable <= 0 and any(profile.concurrency is None for profile in work.profiles):
        yield (
            f"hardware.memory_bytes = {gpu.memory_bytes}: × {gpu.memory_fraction} − weights − reserve leaves {usable} B "
            "for keys and values, must be positive; take more memory or a smaller model"
        )
        return
    need = memory.request_bytes(gpu, work)
    for index, profile in enumerate(work.profiles):
        stored = _stored_bytes(profile, work.prefixes, gpu.kv_bytes_per_token)
        if profile.concurrency is None and memory.concurrency(usable, stored, need) < 1:
            yield (
                f"workload.profiles[{index}] = {toml.shown(profile.name)} leaves no memory for requests: it stores "
                f"{stored / GIB:.3f} of {usable / GIB:.3f} GiB and one request needs {need / GIB:.3f} GiB; "
                "store fewer prefixes, shorten the prompts or take more memory"
            )


def _stored_bytes(profile: ProfileConfig, prefixes: tuple[PrefixConfig, ...], kv_bytes_per_token: int) -> int:
    if profile.persistent_bytes is not None:
        return profile.persistent_bytes
    by_name = {prefix.name: prefix for prefix in prefixes}
    ends = sum(by_name[name].depth_tokens for name in profile.prefixes)
    starts = sum(
        by_name[by_name[name].parent].depth_tokens for name in profile.prefixes if by_name[name].parent
    )
    return (ends - starts) * kv_bytes_per_token


def _prefill(gpu: HardwareConfig) -> Iterator[str]:
    tokens, seconds = gpu.prefill_table_tokens, gpu.prefill_table_s
    if tokens is None and seconds is None:
        return
    problem = prefill_table_problem(tokens or (), seconds or ())
    if problem is not None:
        yield f"hardware.{problem}"
    for name in ("prefill_linear_s", "prefill_quadratic_s", "prefill_constant_s"):
        if getattr(gpu, name):
            yield (
                f"hardware.{name} = {getattr(gpu, name):g}: prefill_table_tokens is given as well, and the table is the "
                "whole curve; leave out a, b and c0, or set them to 0"
            )
            return


def prefill_table_problem(tokens: Sequence[int], seconds: Sequence[float]) -> str | None:
    """Return what keeps measured prefill times from being a curve, or nothing."""
    if len(tokens) != len(seconds) or len(tokens) < 2:
        return (
            f"prefill_table_s has {len(seconds)} values and prefill_table_tokens {len(tokens)}: must be as many, "
            "two or more; give the time of each length"
        )
    for name, values, strict in (("tokens", tokens, True), ("s", seconds, False)):
        for index, (one, following) in enumerate(pairwise(values), start=1):
            if not (one < following or (one == following and not strict)):
                must = "increase" if strict else "not decrease"
                return (
                    f"prefill_table_{name}[{index}] = {following!r}: must {must} after {one!r}; "
                    "sort by tokens, and average repeated measurements"
                )
    return None


def _place(scenario: Scenario) -> Iterator[str]:
    city, sites = scenario.city, scenario.sites
    if city is not None and city.bbox is not None:
        west, south, east, north = city.bbox
        if not (-180 <= west < east <= 180 and -90 <= south < north <= 90):
            yield (
                f"city.bbox = {toml.shown(list(city.bbox))}: must be west < east within ±180 and south < north "
                "within ±90 degrees, in the order west, south, east, north"
            )
    if sites.source in PROCESS_PARAMETERS and sites.density_per_km2 is None:
        yield f'sites.density_per_km2 is missing: sites.source = "{sites.source}" needs a density > 0 [1/km²]'
    yield from _process(sites)
    if sites.source in ("hosts", *PROCESS_PARAMETERS):
        for key in ("operator", "radio", "columns", "crs"):
            if (value := getattr(sites, key)) is not None:
                yield (
                    f"sites.{key} = {toml.shown(value)}: sites.source = {toml.shown(sites.source)} is no file; "
                    "remove it, or name a file of sites"
                )
    if city is None and sites.source != "poisson":
        yield (
            f"sites.source = {toml.shown(sites.source)}: without [city] sites can only be Poisson; "
            'set sites.source = "poisson" with density_per_km2, or add [city]'
        )


def _process(sites: SitesConfig) -> Iterator[str]:
    known = PROCESS_PARAMETERS.get(sites.source)
    for name, value in (sites.process.given() if sites.process is not None else {}).items():
        if known is None:
            yield (
                f"sites.process.{name} = {toml.shown(value)}: sites.source = {toml.shown(sites.source)} is no point "
                f"process; remove it, or draw sites from one of {', '.join(PROCESS_PARAMETERS)}"
            )
        elif name not in known:
            takes = ", ".join(known) or "no parameters"
            yield (
                f"sites.process.{name} = {toml.shown(value)}: {sites.source} takes {takes}; remove it, or choose "
                f"another source"
            )


def _demand(scenario: Scenario) -> Iterator[str]:
    demand = scenario.demand
    if scenario.city is None:
        if demand.request_intensity_per_km2_s is None:
            yield "demand.request_intensity_per_km2_s is missing: a study without [city] needs a value > 0 [1/(s km²)]"
        return
    if demand.users is None:
        yield "demand.users is missing: a city needs users, an integer ≥ 1 [users]"
    if demand.request_rate_per_user_s is None:
        yield "demand.request_rate_per_user_s is missing: users need a rate > 0 [1/s]"
    if demand.request_intensity_per_km2_s is not None:
        yield (
            f"demand.request_intensity_per_km2_s = {demand.request_intensity_per_km2_s}: in a city the intensity "
            "follows from users and their rate; remove it, or remove [city]"
        )


def _mobility(scenario: Scenario) -> Iterator[str]:
    mobility = scenario.mobility
    for hour, (work, leisure) in enumerate(zip(mobility.work_share, mobility.leisure_share, strict=True)):
        if mobility.departures_per_hour[hour] > 0 and work + leisure == 0:
            yield (
                f"mobility.work_share[{hour}] = 0 and leisure_share[{hour}] = 0: people leave at this hour "
                f"and have nowhere to go; make one positive or departures_per_hour[{hour}] = 0"
            )


def _edge(scenario: Scenario) -> Iterator[str]:
    if scenario.field.edge != "torus":
        return
    if scenario.radio.distance == "street":
        yield 'field.edge = "torus": streets end at the edge; use radio.distance = "straight", or another edge'
    if scenario.sites.source not in PROCESS_PARAMETERS:
        yield (
            f'field.edge = "torus": sides are joined for point processes, not for sites.source = '
            f'{scenario.sites.source!r}; use "cut" or "buffer"'
        )


def _service(scenario: Scenario) -> Iterator[str]:
    service = scenario.service
    if service.law == "phase_type" and service.scv is None:
        yield (
            'service.scv is missing: law = "phase_type" is told by it; give the squared coefficient of variation of a '
            "service, 0.02 to 25 (1 is exponential)"
        )
    elif service.law != "phase_type" and service.scv is not None:
        yield (
            f"service.scv = {service.scv:g}: law = {toml.shown(service.law)} has a variance of its own; leave scv out, "
            'or take law = "phase_type"'
        )


def _window(scenario: Scenario) -> Iterator[str]:
    window = scenario.simulation
    end = window.start_hour + window.duration_s / 3600
    if end > 24:
        yield (
            f"simulation.duration_s = {window.duration_s:g}: from {window.start_hour:g} h the window ends at "
            f"{end:g} h, must end by 24 h; at most {(24 - window.start_hour) * 3600:g} s"
        )
    epochs = window.duration_s / window.epoch_s
    if round(epochs) < 1 or abs(epochs - round(epochs)) > _SUM_TOLERANCE * epochs:
        yield (
            f"simulation.epoch_s = {window.epoch_s:g}: the window of {window.duration_s:g} s is {epochs:.6g} epochs, "
            f"must be a whole number; for example {window.duration_s / max(1, round(epochs)):g}"
        )
    if window.warm_up_s >= window.duration_s:
        yield (
            f"simulation.warm_up_s = {window.warm_up_s:g}: must be shorter than duration_s = {window.duration_s:g}, "
            "or nothing is left to count"
        )
    cut = window.warm_up_s / window.epoch_s
    if abs(cut - round(cut)) > _SUM_TOLERANCE * max(cut, 1.0):
        yield (
            f"simulation.warm_up_s = {window.warm_up_s:g}: must be a whole number of epochs of {window.epoch_s:g} s, so "
            f"that no epoch is counted in part; for example {round(cut) * window.epoch_s:g}"
        )
