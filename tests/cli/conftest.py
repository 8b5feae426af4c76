"""A folder with data, in memory where that is possible: each charge waits for the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpframe import cli
from tests.cli.commands import PEOPLE, Done, Run
from tests.ledger.conftest import tmp_path

__all__ = ["folder", "tmp_path"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    PEOPLE.write_parquet(tmp_path / "people.parquet")
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in this process, in the folder: a process of its own takes long to start."""
    monkeypatch.chdir(folder)
    for name in list(os.environ):
        if name.startswith("DPFRAME_"):
            monkeypatch.delenv(name)

    def done(*arguments: object) -> Done:
        try:
            code = cli.main([str(a) for a in arguments])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        return Done(code, *capsys.readouterr())

    return done
