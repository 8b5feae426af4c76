"""What commands read: files that people name, and plans."""

from __future__ import annotations

from pathlib import Path

from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.report import Plan


class BadInput(DPFrameError):
    """A file that is not what the command needs.

    Parameters
    ----------
    error
        The refusal.
    path
        The file.
    """

    def __init__(self, error: DPFrameError, path: Path) -> None:
        super().__init__(error.what, where=str(path), why=error.why, remedy=error.remedy)
        self.error = error


class NotWritten(BadInput):
    """A result that was paid for, and could not be written where it should.

    Parameters
    ----------
    error
        The refusal.
    path
        Where it should have been written.
    result
        The result as JSON, so that it is not lost.
    """

    def __init__(self, error: DPFrameError, path: Path, result: str) -> None:
        super().__init__(error, path)
        self.why = "the result was charged, and is on the standard output"
        self.result = result


def require_file(path: Path) -> Path:
    """The path of a file that is there.

    Raises
    ------
    BadInput
        When it is not.
    """
    if not path.is_file():
        what = "this is a folder, not a file" if path.is_dir() else "this file does not exist"
        folder = str(path.absolute().parent)
        why = None if path.is_absolute() else f"dpframe looked in the folder {folder!r}"
        remedy = "write the path of a file that exists"
        raise BadInput(UnsupportedOperation(what, why=why, remedy=remedy), path)
    return path


def not_a_job(path: Path, what: str, remedy: str | None = None) -> BadInput:
    """The refusal of a file that is not a job, or that makes none."""
    if remedy is None and path.suffix == ".toml":
        remedy = "copy the job that `dpframe run --help` shows, and change it"
    if remedy is None:
        remedy = 'define query, a private query or a list of them, and spend = {"epsilon": 0.5}'
    return BadInput(UnsupportedOperation(f"this is not a job: {what}", remedy=remedy), path)


def plan_in(path: Path) -> Plan:
    """The plan that a file holds.

    Raises
    ------
    BadInput
        When it holds none, or one that was edited.
    """
    require_file(path)
    try:
        return Plan.from_json(path)
    except DPFrameError as error:
        raise BadInput(error, path) from None
