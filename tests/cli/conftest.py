"""A run that the command has made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from geoedge import cli
from tests.cli.calling import FAST


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "small"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sys, "argv", ["geoedge", "run", "monaco", *FAST, "-q", "--layouts=2", "-o", str(folder)]
        )
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == 0
    return folder
