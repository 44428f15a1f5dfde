"""Scenarios: read, written back, refused in one clear line."""

from __future__ import annotations

import errno
import math
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from geoedge.errors import GeoEdgeError, OutputError, ScenarioError
from geoedge.scenario import HardwareConfig, Scenario, field_docs, load_scenario, shipped_scenarios
from geoedge.shipped import data_path

SHIPPED = ("monaco", "neubrandenburg", "paper")

MINIMAL = """
[city]
source = "monaco"

[[workload.prefixes]]
name = "system"
depth_tokens = 512

[[workload.prefixes]]
name = "agent"
parent = "system"
depth_tokens = 2048

[[workload.profiles]]
name = "fallback"
placement_probability = 0.5

[[workload.profiles]]
name = "deep"
prefixes = ["system", "agent"]
placement_probability = 0.5

[[workload.requests]]
name = "chat"
type_probability = 1.0
prompt_tokens = 4096
output_tokens = 128
prefix = "agent"

[demand]
users = 100
request_rate_per_user_s = 0.01
"""


@pytest.fixture
def write(tmp_path):
    def write_file(text, name="mine.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_file


def refusal(path):
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert text.isprintable()
    return text


# ------------------------------------------------------------------ reading and writing back


def test_three_scenarios_are_shipped():
    assert shipped_scenarios() == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_scenario_reads_back_equal(name, tmp_path):
    scenario = load_scenario(name)
    path = scenario.save(tmp_path / "copy.toml")
    assert load_scenario(path) == scenario
    assert load_scenario(path).to_toml() == scenario.to_toml()


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_scenario_is_found_from_any_directory(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_scenario(name) == load_scenario(data_path("scenarios", f"{name}.toml"))


def test_the_cities_state_the_default_gpu_in_full():
    for name in ("monaco", "neubrandenburg"):
        assert load_scenario(name).hardware == HardwareConfig()
        stated = tomllib.loads(data_path("scenarios", f"{name}.toml").read_text(encoding="utf-8"))["hardware"]
        optional = {"decode_time_s", "runtime_bytes_per_request", "prefill_table_tokens", "prefill_table_s"}
        assert set(stated) == set(HardwareConfig.model_fields) - optional


def test_the_papers_baseline_is_the_published_one():
    paper = load_scenario("paper")
    assert paper.city is None
    assert (paper.sites.source, paper.sites.density_per_km2) == ("poisson", 1.2)
    assert paper.demand.request_intensity_per_km2_s == 3.0
    assert (paper.radio.delay_coefficient, paper.radio.delay_exponent) == (0.28, 2.5)
    assert paper.target.ttft_target_s == 0.8


@settings(max_examples=40, deadline=None)
@given(
    title=st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    seed=st.integers(0, 2**63 - 1),
    coefficient=st.floats(1e-4, 1e4),
    weight=st.floats(0, 1e6),
)
def test_every_number_and_text_survives_the_file_exactly(title, seed, coefficient, weight):
    changes = {
        "title": title,
        "seed": seed,
        "radio.delay_coefficient": coefficient,
        "workload.requests.chat.place_weight.work": weight,
    }
    scenario = load_scenario("monaco").override(changes)
    assert Scenario.from_dict(tomllib.loads(scenario.to_toml())) == scenario


@pytest.mark.parametrize(
    "title", ["<script>alert(1)</script>", 'a"""\n[city]\nsource = "x"', "\u202etxt\x00\x1b[31m", ""]
)
def test_hostile_text_in_the_title_stays_text(title, tmp_path):
    scenario = load_scenario("monaco").override({"title": title})
    again = load_scenario(scenario.save(tmp_path / "x.toml"))
    assert again.title == title
    assert again.city == scenario.city


def test_a_minimal_file_takes_the_defaults(write):
    scenario = load_scenario(write(MINIMAL))
    assert scenario.hardware == HardwareConfig()
    assert scenario.routing.policy == "load_aware"
    assert scenario.workload.requests[0].hour_weight == (1.0,) * 24
    assert scenario.workload.profiles[0].prefixes == ()


def test_byte_order_mark_and_windows_lines_are_read(write):
    expected = load_scenario(write(MINIMAL))
    assert load_scenario(write(b"\xef\xbb\xbf" + MINIMAL.replace("\n", "\r\n").encode())) == expected


def test_files_named_in_a_scenario_lie_beside_it(write, tmp_path, monkeypatch):
    write("", "town.osm.pbf")
    write("", "masts.csv")
    text = MINIMAL.replace('source = "monaco"', 'source = "town.osm.pbf"') + '[sites]\nsource = "masts.csv"\n'
    path = write(text)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    scenario = load_scenario(path)
    assert scenario.city.source == str((tmp_path / "town.osm.pbf").resolve())
    assert scenario.sites.source == str((tmp_path / "masts.csv").resolve())


def test_a_file_that_is_not_there_keeps_its_name_for_the_reader_to_refuse(write):
    text = MINIMAL.replace('source = "monaco"', 'source = "absent.osm.pbf"')
    assert load_scenario(write(text)).city.source == "absent.osm.pbf"


def test_a_scenario_cannot_be_changed_in_place():
    scenario = load_scenario("paper")
    with pytest.raises(ValidationError):
        scenario.radio.delay_exponent = 3.0
    assert hash(scenario) == hash(load_scenario("paper"))


def test_saving_where_nobody_may_write(tmp_path):
    with pytest.raises(OutputError, match=r"cannot write the scenario .*folder you may write to"):
        load_scenario("paper").save(tmp_path / "no such folder" / "x.toml")


# ------------------------------------------------------------------ refusals

BAD_VALUES = {
    # dotted key: value, what the line must hold besides key and value
    "sites.density_per_km2": (-1.0, "a number > 0 and ≤ 100000 [1/km²]"),
    "demand.users": (0, "an integer ≥ 1 and ≤ 10000000 [users]"),
    "demand.request_rate_per_user_s": (-0.5, "a number > 0 and ≤ 100 [1/s]"),
    "radio.delay_exponent": (0.5, "a number ≥ 1 and ≤ 8"),
    "routing.policy": ("neerest", 'one of "load_aware", "nearest", "prefix_only"'),
    "routing.advertise": ("live", '"equilibrium", "state", "measured"'),
    "service.radio_shifts_arrival": ("yes", "true or false"),
    "service.law": ("normal", '"phase_type", "deterministic"'),
    "service.scv": (0.0, "a number ≥ 0.02 and ≤ 25"),
    "service.queue": ("mm1", 'one of "erlang_c", "service_law"'),
    "simulation.replications": (2.5, "an integer ≥ 1"),
    "simulation.start_hour": (24.0, "a number ≥ 3 and < 24 [h]"),
    "target.reliability": (1.0, "a number > 0 and < 1"),
    "hardware.memory_fraction": (1.5, "a number > 0 and ≤ 1"),
    "hardware.kv_bytes_per_token": ("131072", "an integer ≥ 1"),
    "seed": (-3, "an integer ≥ 0"),
    "title": (7, "text"),
    "mobility.work_share": ([1.0, 2.0], "a list of 24 entries, each a number ≥ 0"),
    "mobility.dwell_hours.work": (0.0, "a number > 0 and ≤ 24 [h]"),
    "workload.requests[0].prompt_tokens": (0, "an integer ≥ 1 and ≤ 10000000 [token]"),
    "workload.requests[0].place_weight.street": (-1.0, "a number ≥ 0"),
    "workload.profiles[1].placement_probability": (1.5, "a number ≥ 0 and ≤ 1"),
    "workload.profiles[1].prefixes": ("agent", "a list, each text"),
    "city.bbox": ([1.0, 2.0, 3.0], "a list of 4 values, each a number"),
    "control.migration_budget_bytes": (-1, "an integer ≥ 0"),
}


@pytest.mark.parametrize("key", BAD_VALUES)
def test_a_bad_value_names_file_key_value_and_what_is_allowed(key, write):
    value, allowed = BAD_VALUES[key]
    data = tomllib.loads(MINIMAL)
    *path, last = key.replace("[", ".").replace("]", "").split(".")
    here = data
    for step in path:
        here = here[int(step)] if step.isdecimal() else here.setdefault(step, {})
    here[last] = value
    text = refusal(write(tomli_w.dumps(data)))
    assert "mine.toml: " in text
    assert f"{key} = " in text
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    assert shown in text
    assert allowed in text


UNKNOWN_KEYS = {
    ("[routing]\npolcy = 'nearest'", "routing.polcy", "routing.policy"),
    ("[radio]\ndelay_coeficient = 1.0", "radio.delay_coeficient", "radio.delay_coefficient"),
    ("[simulaton]\nstart_hour = 8.0", "simulaton", "simulation"),
    # A key of another table is found there.
    ("[target]\ntelemetry_period_s = 2.0", "target.telemetry_period_s", "routing.telemetry_period_s"),
    ("[mobility.dwell_hours]\nwrok = 2.0", "mobility.dwell_hours.wrok", "mobility.dwell_hours.work"),
}


@pytest.mark.parametrize(("table", "key", "nearest"), sorted(UNKNOWN_KEYS))
def test_an_unknown_key_names_the_nearest_known_one(table, key, nearest, write):
    text = refusal(write(MINIMAL + table + "\n"))
    assert f"{key} is not a known key, did you mean {nearest}?" in text


def test_a_mistyped_needed_key_is_told_as_the_typing_error_it_is(write):
    text = refusal(write(MINIMAL.replace("prompt_tokens", "promt_tokens")))
    assert (
        "workload.requests[0].promt_tokens is not a known key, did you mean workload.requests[0].prompt_tokens?"
        in text
    )
    assert text.endswith("(and 1 more)")


def test_a_missing_key_says_what_belongs_there(write):
    text = refusal(write(MINIMAL.replace("prompt_tokens = 4096\n", "")))
    assert (
        "workload.requests[0].prompt_tokens is missing; needed: an integer ≥ 1 and ≤ 10000000 [token]" in text
    )


def test_several_problems_are_counted(write):
    assert refusal(
        write(MINIMAL + "seed = -1\n[radio]\ndelay_exponent = 0.0\n").parent / "mine.toml"
    ).endswith(" more)")


DISAGREEMENTS = {
    "open profile": (
        {"workload.profiles.agent.prefixes": ["agent"]},
        'workload.profiles[2].prefixes = ["agent"]: "agent" extends "tools", which is not stored; profiles are '
        'ancestor-closed, so add "tools"',
    ),
    "unknown prefix of a profile": (
        {"workload.profiles.agent.prefixes": ["sistem"]},
        "workload.profiles[2].prefixes = \"sistem\": no such prefix, did you mean 'system'?",
    ),
    "prefix named twice": (
        {"workload.profiles.shallow.prefixes": ["system", "system"]},
        "a prefix is named twice",
    ),
    "unknown prefix of a request": (
        {"workload.requests.chat.prefix": "gide"},
        "workload.requests[0].prefix = \"gide\": no such prefix, did you mean 'guide'?",
    ),
    "unknown parent": (
        {"workload.prefixes.guide.parent": "root"},
        'workload.prefixes[3].parent = "root": no such prefix',
    ),
    "child not deeper": (
        {"workload.prefixes.tools.depth_tokens": 512},
        'workload.prefixes[1].depth_tokens = 512: "tools" must be deeper than its parent "system", so more than 768',
    ),
    "cycle": (
        {"workload.prefixes.system.parent": "agent"},
        '"system" must be deeper than its parent "agent"',
    ),
    "prompt too short": (
        {"workload.requests.guide.prompt_tokens": 5000},
        'workload.requests[3].prompt_tokens = 5000: the prompt is shorter than its prefix "guide"; at least 6144',
    ),
    "type probabilities": (
        {"workload.requests.chat.type_probability": 0.4},
        "workload.requests[*].type_probability = [0.4, 0.15, 0.3, 0.2]: sum is 1.05, must be 1; change one by -0.05",
    ),
    "placement probabilities": (
        {"workload.profiles.guide.placement_probability": 0.2},
        "placement_probability = [0.15, 0.2, 0.4, 0.2]: sum is 0.95, must be 1; change one by +0.05",
    ),
    "no fallback": (
        {"workload.profiles.fallback.prefixes": ["system"]},
        'workload.profiles[0] = "fallback" stores ["system"]: the first profile is the fallback and stores nothing',
    ),
    "fallback with memory": (
        {"workload.profiles.fallback.persistent_bytes": 5},
        'workload.profiles[0] = "fallback" stores "persistent_bytes 5"',
    ),
    "memory for nothing": (
        {"workload.profiles.guide.prefixes": [], "workload.profiles.guide.persistent_bytes": 7},
        'workload.profiles[3].persistent_bytes = 7: "guide" stores no prefixes',
    ),
    "two of a name": (
        {"workload.requests.chat.name": "guide"},
        'workload.requests: name "guide" is given 2 times',
    ),
    "no memory for requests": (
        {"workload.requests.guide.prompt_tokens": 42_000},
        'workload.profiles[3] = "guide" leaves no memory for requests: it stores 0.750 of 5.643 GiB and one request '
        "needs 5.143 GiB; store fewer prefixes, shorten the prompts or take more memory",
    ),
    "no memory at all": (
        {"hardware.memory_bytes": 16 * 2**30},
        "hardware.memory_bytes = 17179869184: × 0.9 − weights − reserve leaves -1671859559 B",
    ),
    "nobody asks by place": (
        {"workload.requests.chat.place_weight": {"home": 0, "work": 0, "leisure": 0, "street": 0}},
        "workload.requests[0].place_weight: all are 0, so nobody asks",
    ),
    "nobody asks by hour": (
        {"workload.requests.chat.hour_weight": [0.0] * 24},
        "workload.requests[0].hour_weight: all are 0, so nobody asks",
    ),
    "nowhere to go": (
        {"mobility.work_share": [0.0] * 24, "mobility.leisure_share": [0.0] * 8 + [1.0] * 16},
        "mobility.work_share[0] = 0 and leisure_share[0] = 0: people leave at this hour and have nowhere to go",
    ),
    "window past midnight": (
        {"simulation.start_hour": 23.0},
        "simulation.duration_s = 10800: from 23 h the window ends at 26 h, must end by 24 h; at most 3600 s",
    ),
    "broken epochs": (
        {"simulation.epoch_s": 1700.0},
        "simulation.epoch_s = 1700: the window of 10800 s is 6.35294 epochs, must be a whole number; for example 1800",
    ),
    "epoch longer than the window": (
        {"simulation.epoch_s": 43200.0},
        "is 0.25 epochs, must be a whole number",
    ),
    "only warm-up": (
        {"simulation.warm_up_s": 10800.0},
        "simulation.warm_up_s = 10800: must be shorter than duration_s = 10800",
    ),
    "phase type without its scv": (
        {"service.law": "phase_type"},
        'service.scv is missing: law = "phase_type" is told by it; give the squared coefficient of variation',
    ),
    "scv of a law that has its own": (
        {"service.law": "deterministic", "service.scv": 2.0},
        'service.scv = 2: law = "deterministic" has a variance of its own; leave scv out',
    ),
    "fresh reports that come late": (
        {"routing.advertise": "state", "routing.telemetry_period_s": 0.0, "routing.telemetry_delay_s": 1.0},
        "routing.telemetry_period_s = 0: reports at every request go with",
    ),
    "part of an epoch counted": (
        {"simulation.warm_up_s": 600.0},
        "simulation.warm_up_s = 600: must be a whole number of epochs of 900 s",
    ),
    "box turned round": (
        {"city.bbox": [7.4, 43.7, 7.3, 43.8]},
        "city.bbox = [7.4, 43.7, 7.3, 43.8]: must be west < east within ±180",
    ),
    "Poisson without density": ({"sites.source": "poisson"}, "sites.density_per_km2 is missing"),
    "process without density": (
        {"sites.source": "ginibre"},
        'sites.density_per_km2 is missing: sites.source = "ginibre" needs a density > 0',
    ),
    "parameter of another process": (
        {"sites.source": "strauss", "sites.density_per_km2": 3.0, "sites.process.beta": 0.5},
        "sites.process.beta = 0.5: strauss takes radius_m, gamma, fixed_count; remove it",
    ),
    "parameter without a process": (
        {"sites.process.radius_m": 200.0},
        'sites.process.radius_m = 200.0: sites.source = "hosts" is no point process',
    ),
    "city without users": (
        {"demand.users": None},
        "demand.users is missing: a city needs users, an integer ≥ 1",
    ),
    "users without rate": (
        {"demand.request_rate_per_user_s": None},
        "demand.request_rate_per_user_s is missing",
    ),
    "intensity in a city": (
        {"demand.request_intensity_per_km2_s": 3.0},
        "demand.request_intensity_per_km2_s = 3.0: in a city the intensity follows from users",
    ),
    "hosts without a city": (
        {"city": None},
        'sites.source = "hosts": without [city] sites can only be Poisson',
    ),
}


@pytest.mark.parametrize("case", DISAGREEMENTS)
def test_tables_that_disagree_are_told_with_the_cure(case):
    changes, words = DISAGREEMENTS[case]
    with pytest.raises(ScenarioError) as caught:
        load_scenario("monaco").override(changes)
    text = str(caught.value)
    assert words in text
    assert len(text.splitlines()) == 1


def test_a_study_without_a_city_needs_an_intensity():
    with pytest.raises(ScenarioError, match=r"demand\.request_intensity_per_km2_s is missing"):
        load_scenario("paper").override({"demand.request_intensity_per_km2_s": None})


def test_a_given_concurrency_needs_no_memory():
    gpu = {"hardware.memory_bytes": 2**30, "workload.profiles.fallback.concurrency": 1}
    names = ("fallback", "shallow", "agent", "guide")
    changes = {**gpu, **{f"workload.profiles.{name}.concurrency": 3 for name in names}}
    assert load_scenario("monaco").override(changes).workload.profiles[3].concurrency == 3


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(
        ScenarioError, match=r"radio\.delay_coefficient = .* is not allowed; allowed: a number ≥ 0.0001"
    ):
        load_scenario("paper").override({"radio.delay_coefficient": value})


@pytest.mark.parametrize("value", ["a\nb", "x" * 10_000, "\x1b[31m", "\u202e"])
def test_a_value_is_shown_on_one_short_clean_line(value):
    with pytest.raises(ScenarioError) as caught:
        load_scenario("paper").override({"routing.policy": value})
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


def test_a_hostile_key_is_shown_on_one_clean_line(write):
    text = refusal(write(MINIMAL + '"a\\nb\\u001b[31m' + "k" * 5000 + '" = 1\n'))
    assert "is not a known key" in text
    assert len(text) < 600


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def places(value, path=()):
    """Yield the path of everything in nested tables."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


PLACES = sorted(places(load_scenario("monaco").to_dict()), key=str)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PLACES), JUNK, st.sampled_from(["replace", "add"]))
def test_junk_anywhere_is_taken_or_refused_in_one_clean_line(path, junk, how):
    data = load_scenario("monaco").to_dict()
    here = data
    for step in path[:-1]:
        here = here[step]
    added = how == "add" and isinstance(here, dict)
    here[f"{path[-1]}x" if added else path[-1]] = junk
    try:
        Scenario.from_dict(data, source="junk.toml")
    except ScenarioError as error:
        text = str(error)
        assert text.startswith("junk.toml: ")
        assert text.isprintable()
        assert len(text) < 700
    else:
        assert not added


# ------------------------------------------------------------------ files


def test_a_missing_file_lists_what_is_shipped():
    with pytest.raises(
        ScenarioError, match=r"monacco: no such scenario, did you mean 'monaco'\?; .*monaco, neubr"
    ):
        load_scenario("monacco")


def test_a_file_that_is_no_toml_names_the_line(write):
    assert "mine.toml: not valid TOML: " in refusal(write("title = \n"))
    assert "line 2" in refusal(write("seed = 1\ntitle = mine\n"))


def test_a_file_that_is_no_text_is_refused(write):
    assert "byte 0 is not UTF-8" in refusal(write(b"\xff\xfe\x00"))


def test_a_folder_is_no_scenario(tmp_path):
    assert "no such scenario" in refusal(tmp_path)


def test_a_file_that_may_not_be_read(write, monkeypatch):
    path = write(MINIMAL)

    def forbidden(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", forbidden)  # a mode does not keep root out
        text = refusal(path)
    assert "mine.toml: cannot be read (Permission denied); name a TOML file" in text


def test_an_empty_file_says_what_is_needed(write):
    text = refusal(write(""))
    assert "workload is missing; needed: a table with prefixes, profiles, requests" in text


# ------------------------------------------------------------------ override


def test_override_returns_a_new_scenario_and_leaves_the_old():
    old = load_scenario("monaco")
    new = old.override({"routing.policy": "nearest", "demand.users": 5000})
    assert (new.routing.policy, new.demand.users) == ("nearest", 5000)
    assert old == load_scenario("monaco")
    assert new.override({"routing.policy": "load_aware", "demand.users": 10_000}) == old


def test_override_reaches_entries_of_lists_by_name_and_by_number():
    scenario = load_scenario("monaco")
    by_name = scenario.override({"workload.requests.agent.prompt_tokens": 5000})
    by_number = scenario.override({"workload.requests[2].prompt_tokens": 5000})
    assert by_name == by_number == scenario.override({"workload.requests.2.prompt_tokens": 5000})
    assert by_name.workload.requests[2].prompt_tokens == 5000


def test_override_by_none_goes_back_to_the_default():
    scenario = load_scenario("monaco").override({"hardware.decode_step_s": 0.05, "seed": 9})
    assert scenario.override({"hardware.decode_step_s": None, "seed": None}) == load_scenario("monaco")
    assert scenario.override({"hardware": None}).hardware == HardwareConfig()


def test_override_takes_numpy_numbers_and_paths_as_a_sweep_gives_them():
    changes = {
        "demand.users": np.arange(3)[2],
        "target.ttft_target_s": np.linspace(0.5, 1, 3)[1],
        "mobility.work_share": np.full(24, 0.5),
        "sites.source": Path("masts.csv"),
    }
    scenario = load_scenario("monaco").override(changes)
    assert (scenario.demand.users, scenario.target.ttft_target_s) == (2, 0.75)
    assert scenario.mobility.work_share == (0.5,) * 24
    assert scenario.sites.source == "masts.csv"


def test_override_with_a_whole_table():
    scenario = load_scenario("monaco").override({"simulation": {"start_hour": 9.0}})
    assert (scenario.simulation.start_hour, scenario.simulation.duration_s) == (9.0, 7200.0)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("routing.polcy", "did you mean routing.policy?"),
        ("policy", "did you mean routing.policy?"),
        (
            "workload.requests.chatt.prompt_tokens",
            "did you mean 'chat'?; entries: chat, navigation, agent, guide",
        ),
        ("workload.requests[9].prompt_tokens", "has no entry 9"),
        ("seed.x", "is not a known key"),
        ("seed.x.y", "is not a known key"),
        ("", "is not a key"),
    ],
)
def test_override_of_an_unknown_key(key, words):
    with pytest.raises(ScenarioError) as caught:
        load_scenario("monaco").override({key: 1})
    assert words in str(caught.value)


# ------------------------------------------------------------------ documentation of the fields

DOCS = list(field_docs(Scenario))


@pytest.mark.parametrize("doc", DOCS, ids=lambda doc: doc.key)
def test_every_field_says_what_it_is_in_which_unit_range_and_default(doc):
    assert len(doc.text) >= 1
    assert doc.unit, f"{doc.key} has no unit in its description; write [s] or [–] at its end"
    assert doc.allowed
    assert doc.default
    if doc.allowed.startswith(("a number", "an integer")):
        assert any(sign in doc.allowed for sign in "<>≤≥"), f"{doc.key} has no range"


def test_the_unit_of_a_field_agrees_with_the_ending_of_its_name():
    endings = {
        "_km2": "1/km²",
        "_m": "m",
        "_bytes": "B",
        "_tokens": "token",
        "_target_s": "s",
        "_period_s": "s",
    }
    for doc in DOCS:
        name = doc.key.rsplit(".", 1)[-1]
        for ending, unit in endings.items():
            if name.endswith(ending):
                assert doc.unit == unit, doc.key


def test_keys_are_unique_and_cover_every_shipped_file():
    keys = [doc.key for doc in DOCS]
    assert len(keys) == len(set(keys))

    def leaves(table, prefix=""):
        for name, value in table.items():
            if isinstance(value, dict):
                yield from leaves(value, f"{prefix}{name}.")
            elif isinstance(value, list) and value and isinstance(value[0], dict):
                for entry in value:
                    yield from leaves(entry, f"{prefix}{name}[].")
            else:
                yield f"{prefix}{name}"

    for name in SHIPPED:
        assert set(leaves(load_scenario(name).to_dict())) <= set(keys)


def test_a_scenario_error_is_a_geoedge_error():
    assert issubclass(ScenarioError, GeoEdgeError)
