"""The scenario: everything a study asks, in one frozen, validated object that reads and writes TOML.

Which city, which sites, what is asked, on which GPU, how routed, at what hours? `load_scenario` reads a
shipped name or a file, `Scenario.override` changes values by dotted key, `Scenario.save` writes TOML that
reads back to an equal scenario, `shipped_scenarios` names what comes along, `field_docs` lists all keys.

>>> from geoedge.scenario import load_scenario
>>> scenario = load_scenario("monaco").override({"routing.policy": "nearest", "target.ttft_target_s": 1.0})
>>> scenario.routing.policy, scenario.target.ttft_target_s
('nearest', 1.0)

Every field carries its meaning and unit (in square brackets), its default and its range. Fields are checked
one by one, then against each other (`geoedge.scenario.checks`); what is wrong is one line that names the key,
the value, what is allowed and the cure. A scenario holds no map and no arrays: `geoedge.study.prepare` makes
those from it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import tomli_w
from pydantic import Field, ValidationError, model_validator

from geoedge.errors import OutputError, ScenarioError
from geoedge.scenario import checks, toml
from geoedge.scenario.dynamics import DynamicsConfig, EventConfig, TypeWeight
from geoedge.scenario.operation import (
    AdmissionConfig,
    CatalogueConfig,
    ControlConfig,
    PolicyConfig,
    RoutingConfig,
    ServiceConfig,
)
from geoedge.scenario.sections import (
    CityConfig,
    DemandConfig,
    DwellHours,
    FieldConfig,
    HardwareConfig,
    MobilityConfig,
    PlaceWeight,
    PlanConfig,
    PrefixConfig,
    ProcessConfig,
    ProfileConfig,
    RadioConfig,
    RequestConfig,
    Section,
    SimulationConfig,
    SitesConfig,
    StateConfig,
    TargetConfig,
    WorkloadConfig,
)
from geoedge.scenario.sessions import SessionsConfig
from geoedge.scenario.toml import FieldDoc, field_docs
from geoedge.shipped import data_path

__all__ = [
    "AdmissionConfig",
    "CatalogueConfig",
    "CityConfig",
    "ControlConfig",
    "DemandConfig",
    "DwellHours",
    "DynamicsConfig",
    "EventConfig",
    "FieldConfig",
    "FieldDoc",
    "HardwareConfig",
    "MobilityConfig",
    "PlaceWeight",
    "PlanConfig",
    "PolicyConfig",
    "PrefixConfig",
    "ProcessConfig",
    "ProfileConfig",
    "RadioConfig",
    "RequestConfig",
    "RoutingConfig",
    "Scenario",
    "ServiceConfig",
    "SessionsConfig",
    "SimulationConfig",
    "SitesConfig",
    "StateConfig",
    "TargetConfig",
    "TypeWeight",
    "WorkloadConfig",
    "field_docs",
    "load_scenario",
    "require_scenario",
    "shipped_scenarios",
]


class Scenario(Section):
    """One study, complete and checked."""

    title: str = Field(
        default="untitled", max_length=200, description="what the study is called, plain text [–]"
    )
    seed: int = Field(default=1, ge=0, le=2**63 - 1, description="seed of every random stream [–]")
    city: CityConfig | None = Field(
        default=None, description="the map; omitted in a study of theory alone [–]"
    )
    sites: SitesConfig = Field(default=SitesConfig(), description="edge sites [–]")
    workload: WorkloadConfig = Field(description="requests and caches [–]")
    hardware: HardwareConfig = Field(default=HardwareConfig(), description="GPU and model of a site [–]")
    radio: RadioConfig = Field(default=RadioConfig(), description="radio delay [–]")
    field: FieldConfig = Field(default=FieldConfig(), description="edge of the field's map [–]")
    demand: DemandConfig = Field(description="users and their rate [–]")
    mobility: MobilityConfig = Field(default=MobilityConfig(), description="movement of users [–]")
    routing: RoutingConfig = Field(default=RoutingConfig(), description="choice of the site [–]")
    catalogue: CatalogueConfig = Field(
        default=CatalogueConfig(), description="how routers come to know what sites hold [–]"
    )
    admission: AdmissionConfig = Field(
        default=AdmissionConfig(), description="when sites take no new requests [–]"
    )
    service: ServiceConfig = Field(default=ServiceConfig(), description="service time [–]")
    sessions: SessionsConfig | None = Field(
        default=None, description="sessions of several turns; omitted where every request stands alone [–]"
    )
    control: ControlConfig = Field(default=ControlConfig(), description="controller [–]")
    plan: PlanConfig = Field(default=PlanConfig(), description="planning by theory [–]")
    dynamics: DynamicsConfig = Field(
        default=DynamicsConfig(), description="what happens besides an ordinary day [–]"
    )
    target: TargetConfig = Field(default=TargetConfig(), description="time target [–]")
    simulation: SimulationConfig = Field(default=SimulationConfig(), description="window of the day [–]")

    @model_validator(mode="after")
    def _fields_agree(self) -> Self:
        problems = checks.problems(self)
        if problems:
            raise ValueError(toml.first_and_more(problems))
        return self

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, source: str = "scenario") -> Self:
        """Validate nested tables as TOML gives them.

        Parameters
        ----------
        data
            Tables by name.
        source
            Where they come from; opens the error.

        Raises
        ------
        ScenarioError
            In one line: source, dotted key, value given, what is allowed, the cure.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            msg = f"{source}: {toml.explain(error, cls)}"
            raise ScenarioError(msg) from None

    def to_dict(self) -> dict[str, Any]:
        """Return nested tables of plain values; keys without a value are left out."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_toml(self) -> str:
        """Return the scenario as TOML that reads back to an equal scenario."""
        return tomli_w.dumps(self.to_dict())

    def save(self, path: str | Path) -> Path:
        """Write the scenario as TOML and return the path.

        Parameters
        ----------
        path
            The file.

        Raises
        ------
        OutputError
            If the file cannot be written.
        """
        path = Path(path)
        try:
            path.write_text(self.to_toml(), encoding="utf-8", newline="\n")
        except OSError as error:
            msg = f"{path}: cannot write the scenario ({error.strerror}); name a file in a folder you may write to"
            raise OutputError(msg) from error
        return path

    def override(self, changes: Mapping[str, Any]) -> Self:
        """Return a new, validated scenario with some values replaced.

        Parameters
        ----------
        changes
            Values by dotted key. Entries of a list are named or counted:
            ``"workload.requests.chat.prompt_tokens"``, ``"workload.requests[0].prompt_tokens"``.
            ``None`` puts a key back to its default.

        Raises
        ------
        ScenarioError
            If a key is unknown or the result is not valid.
        """
        data = copy.deepcopy(self.to_dict())
        for key, value in changes.items():
            toml.assign(data, key, value, type(self))
        return type(self).from_dict(data, source="override")


def require_scenario(value: object, call: str) -> None:
    """Refuse anything but a scenario, such as a study, where one is asked for.

    Parameters
    ----------
    value
        What was given.
    call
        The function it was given to.

    Raises
    ------
    ScenarioError
        If it is no scenario.
    """
    if isinstance(value, Scenario):
        return
    cure = (
        f"a study holds one: write {call}(study.scenario, study=study)"
        if isinstance(getattr(value, "scenario", None), Scenario)
        else 'load one: `load_scenario("monaco")`'
    )
    msg = f"{call}: `scenario` must be a Scenario, not {type(value).__name__}; {cure}"
    raise ScenarioError(msg)


def shipped_scenarios() -> tuple[str, ...]:
    """Return the names of the shipped scenarios, sorted."""
    return tuple(sorted(path.stem for path in data_path("scenarios").glob("*.toml")))


def load_scenario(name_or_path: str | Path) -> Scenario:
    """Read and check a scenario.

    Parameters
    ----------
    name_or_path
        Name of a shipped scenario, or path of a TOML file. Paths of maps and sites inside the file are taken
        relative to the file's own folder where they exist there.

    Raises
    ------
    ScenarioError
        In one line: file, dotted key, value given, what is allowed, the cure.
    """
    path = _find(name_or_path)
    data = toml.read(path)
    for section, key in (("city", "source"), ("city", "buildings"), ("sites", "source")):
        toml.resolve_path(data, section, key, path.parent)
    return Scenario.from_dict(data, source=path.name if path.parent == data_path("scenarios") else str(path))


def _find(name_or_path: str | Path) -> Path:
    shipped = data_path("scenarios")
    if isinstance(name_or_path, str) and name_or_path in shipped_scenarios():
        return shipped / f"{name_or_path}.toml"
    path = Path(name_or_path).expanduser()
    if path.is_file():
        return path
    names = shipped_scenarios()
    hint = toml.did_you_mean(str(name_or_path), names)
    msg = f"{name_or_path}: no such scenario{hint}; name a TOML file or one of {', '.join(names)}"
    raise ScenarioError(msg)
