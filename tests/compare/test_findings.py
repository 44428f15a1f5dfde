"""The sentence on service times says what field and simulation assume."""

from __future__ import annotations

import pytest

from geoedge.compare.findings import _service
from geoedge.scenario.operation import ServiceConfig


@pytest.mark.parametrize(
    ("service", "words"),
    [
        ({}, "service times are not exponential"),
        ({"law": "exponential_mixture"}, ""),
        ({"queue": "service_law"}, "the field knows mean and variance alone"),
        ({"law": "exponential_mixture", "queue": "service_law"}, ""),
    ],
)
def test_what_the_field_leaves_out_of_service_times(service: dict[str, str], words: str) -> None:
    said = _service(ServiceConfig(**service))
    assert words in said
    assert bool(said) == bool(words)
