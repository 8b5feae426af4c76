"""Errors cross processes: they are pickled and copied with all that they say."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe.cli.output import BadInput, NotWritten

DUE = datetime(2027, 3, 13, tzinfo=UTC)
_OPTIONAL = ("dpframe.ledger.postgres", "dpframe.lower.engines", "dpframe.report.plots")


def _subclasses(kind: type[dp.DPFrameError]) -> list[type[dp.DPFrameError]]:
    return [kind, *(found for sub in kind.__subclasses__() for found in _subclasses(sub))]


def every_error() -> list[type[dp.DPFrameError]]:
    """All of the package's, wherever they are defined."""
    for module in pkgutil.walk_packages(dp.__path__, "dpframe."):
        try:
            importlib.import_module(module.name)
        except ImportError:  # an extra that is not installed
            assert module.name.startswith(_OPTIONAL)
    return [kind for kind in _subclasses(dp.DPFrameError) if kind.__module__.startswith("dpframe")]


def made(kind: type[dp.DPFrameError]) -> dp.DPFrameError:
    if kind is NotWritten:
        return NotWritten(made(dp.LedgerError), Path("plan.json"), '{"n": [1]}')
    if kind is BadInput:
        return BadInput(made(dp.LedgerError), Path("plan.json"))
    if kind is dp.TooEarly:
        return dp.TooEarly("what is wrong", due=DUE, where="the place", remedy="do this")
    return kind("what is wrong", where="the place", remedy="do this")


def _fields(error: Exception) -> dict[str, object]:
    """What an error holds; another error in it by its words."""
    return {
        name: str(value) if isinstance(value, Exception) else value
        for name, value in vars(error).items()
    }


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("way", ["pickle", "copy", "deepcopy"])
def test_errors_survive_with_fields_and_notes(kind: type[dp.DPFrameError], way: str) -> None:
    error = made(kind)
    error.add_note("a note\nof two lines")
    again = {
        "pickle": lambda: pickle.loads(pickle.dumps(error)),
        "copy": lambda: copy.copy(error),
        "deepcopy": lambda: copy.deepcopy(error),
    }[way]()
    assert type(again) is kind
    assert str(again) == str(error)
    assert _fields(again) == _fields(error)
    assert again.args == error.args
    assert again.__notes__ == ["a note\nof two lines"]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_without_place_or_remedy_survive_every_protocol(protocol: int) -> None:
    for kind in every_error():
        if kind not in (BadInput, NotWritten, dp.TooEarly):
            again = pickle.loads(pickle.dumps(kind("only this"), protocol))
            assert (type(again), str(again)) == (kind, "only this")


def test_what_was_raised_from_what_is_left_behind() -> None:
    """An engine's own text must not travel."""
    error = dp.EngineError("the engine failed")
    error.__cause__ = ValueError("row 42")
    again = pickle.loads(pickle.dumps(error))
    assert again.__cause__ is None
    assert b"row 42" not in pickle.dumps(error)


def overspend(place: str) -> None:
    session = dp.Session(epsilon=1, ledger=place, name="shared")
    session._payer.ledger.charge(dp.PureDP(2), "fingerprint")


def ask_for_too_much(place: str) -> None:
    session = dp.Session(epsilon=1, ledger=place, name="shared")
    people = session.protect(pl.DataFrame({"age": [1, 2]}), unit=dp.Rows())
    people.dp_count().collect(epsilon=2)


@pytest.mark.parametrize(
    ("work", "start"),
    [(overspend, "fork"), pytest.param(ask_for_too_much, "spawn", marks=pytest.mark.slow)],
)
def test_a_worker_that_is_over_budget_says_so(
    tmp_path: Path, work: Callable[[str], None], start: str
) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context(start)) as pool:
        done = pool.submit(work, str(tmp_path / "budget.db"))
        with pytest.raises(dp.BudgetExceeded, match="the plan costs epsilon 2") as refused:
            done.result(timeout=60)
    assert refused.value.remedy == "spend at most epsilon 1"
