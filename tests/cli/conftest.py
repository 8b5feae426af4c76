"""A folder with data, in memory where that is possible: each charge waits for the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.commands import PEOPLE, Run, in_process
from tests.ledger.conftest import tmp_path

__all__ = ["folder", "tmp_path"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    PEOPLE.write_parquet(tmp_path / "people.parquet")
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in this process, in the folder."""
    monkeypatch.chdir(folder)
    for name in list(os.environ):
        if name.startswith("DPFRAME_"):
            monkeypatch.delenv(name)

    return lambda *arguments: in_process(arguments, capsys)
