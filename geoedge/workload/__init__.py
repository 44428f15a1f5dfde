"""What is asked and what can be stored: prefix forest, cache profiles, request types, hardware.

How many tokens of a prompt does a cache save, how much memory does it take, and how many requests then run
beside it? A `PrefixForest` holds what prompts share, a `CacheProfile` what a site keeps of it, with all
ancestors. `build_workload` makes all numbers of a scenario at once; `best_prefixes` and `generate_profiles`
choose what is worth its memory.

>>> from geoedge.scenario import load_scenario
>>> from geoedge.workload import build_workload
>>> paper = load_scenario("paper")
>>> workload = build_workload(paper.workload, paper.hardware)
>>> dict(zip(workload.profile_names, workload.concurrency.tolist()))
{'fallback': 18, 'shallow': 14, 'deep': 6}
>>> workload.hit_tokens.tolist()
[[0, 0], [512, 512], [1024, 2048]]

Axes are (s, q): profile, then request type. Memory is in bytes, lengths in tokens, times in seconds. Sources:
Eq. (1) for bytes of keys and values, (11) for prefill, (13) for concurrency. Prefill is a curve in the number
of tokens, with no batching of several prompts; a shared block is counted once, whoever shares it.
"""

from geoedge.workload.forest import ROOT, PrefixForest
from geoedge.workload.hardware import (
    Prefill,
    PrefillCurve,
    PrefillFunction,
    PrefillTable,
    concurrency,
    kv_bytes,
    runtime_bytes,
    usable_kv_bytes,
)
from geoedge.workload.knapsack import PrefixChoice, best_prefixes, generate_profiles, greedy_prefixes
from geoedge.workload.profiles import CacheProfile, dominated, incremental_values, value_score
from geoedge.workload.requests import ACTIVITIES, Workload, build_forest, build_workload, prefill_curve

__all__ = [
    "ACTIVITIES",
    "ROOT",
    "CacheProfile",
    "Prefill",
    "PrefillCurve",
    "PrefillFunction",
    "PrefillTable",
    "PrefixChoice",
    "PrefixForest",
    "Workload",
    "best_prefixes",
    "build_forest",
    "build_workload",
    "concurrency",
    "dominated",
    "generate_profiles",
    "greedy_prefixes",
    "incremental_values",
    "kv_bytes",
    "prefill_curve",
    "runtime_bytes",
    "usable_kv_bytes",
    "value_score",
]
