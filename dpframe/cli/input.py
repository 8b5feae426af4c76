"""What commands read: files that people name, and plans."""

from __future__ import annotations

from pathlib import Path

from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.report import Plan


class BadInput(DPFrameError):
    """A file that is not what the command needs; `kind` is what was raised about it.

    Parameters
    ----------
    error
        The refusal.
    path
        The file.
    """

    def __init__(self, error: DPFrameError, path: Path) -> None:
        super().__init__(error.what, where=str(path), why=error.why, remedy=error.remedy)
        self.kind = type(error).__name__


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
        what = "this is not a file" if path.exists() else "this file does not exist"
        raise BadInput(UnsupportedOperation(what, remedy="check the path"), path)
    return path


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
