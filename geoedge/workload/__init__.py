"""What is asked and what can be stored: prefix forest, cache profiles, request types, hardware."""

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
