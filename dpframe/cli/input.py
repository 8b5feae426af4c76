"""What commands read: files that people name, and plans."""

from __future__ import annotations

import argparse
from pathlib import Path

from dpframe.errors import DPFrameError
from dpframe.plan import Plan


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
        super().__init__(error.what, where=str(path), remedy=error.remedy)
        self.kind = type(error).__name__


def existing(text: str) -> Path:
    """The path of a file that is there, for `argparse`."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"no such file: {text}")
    return path


def plan_in(path: Path) -> Plan:
    """The plan that a file holds.

    Raises
    ------
    BadInput
        When it holds none, or one that was edited.
    """
    try:
        return Plan.from_json(path)
    except DPFrameError as error:
        raise BadInput(error, path) from None
