"""Wrong uses: each gets the right error before any data is read or any budget is charged.

The wrong uses are in `misuse/*.txt`, as pairs of the code and, indented, the error with words that
its message must have. `World` says what the names in them are.
"""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import re
import traceback
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy
import polars as pl
import pyarrow
import pytest
from polars.io.plugins import register_io_source

import dpframe as dp

SECRET = "Zanzibar-918273"
"""Stands in the data; may never stand in a message."""

SCHEMA: dict[str, Any] = {
    "age": pl.Int64,
    "income": pl.Float64,
    "name": pl.String,
    "region": pl.String,
    "member": pl.Boolean,
    "joined": pl.Date,
    "visits": pl.UInt8,
    "tags": pl.List(pl.String),
    "tier": pl.Enum(["gold", "silver"]),
    "blob": pl.Binary,
}


class UnreadableError(Exception):
    """The source was read although it must not be."""


def unreadable() -> pl.LazyFrame:
    """A frame whose schema is known and whose rows cannot be read."""

    def read(*_: object) -> Iterator[pl.DataFrame]:
        raise UnreadableError(SECRET)
        yield

    return register_io_source(read, schema=SCHEMA)


class World:
    """What the names in wrong uses are, fresh for each: private frames that cannot be read."""

    def __init__(self) -> None:
        self.raw = unreadable()
        self.session = dp.Session(epsilon=1.0)
        self.people = self.session.protect(self.raw, unit=dp.Rows(), bounds={"visits": (0, 50)})
        self.grouped = self.people.group_by("region", keys=["north", "south"])
        self.query = self.people.dp_count()
        self.users = dp.Session(epsilon=1.0).protect(self.raw.drop("tags"), unit="name")
        monthly = dp.Identifier("name", window="1mo", time="joined")
        self.months = dp.Session(epsilon=1.0, per="1mo").protect(self.raw.drop("tags"), monthly)
        self.approx = dp.Session(epsilon=1.0, delta=1e-6)
        self.zcdp = dp.Session(rho=0.1)
        self.zcdp_people = self.zcdp.protect(self.raw, unit=dp.Rows())
        self.plain = pl.DataFrame({"age": [1, 2], "region": ["a", "b"]})

    @property
    def names(self) -> dict[str, Any]:
        """For `eval`: the attributes, the column `age`, modules and types."""
        modules = {m.__name__: m for m in (copy, math, numpy, pickle, pyarrow)}
        types = {t.__name__: t for t in (date, Decimal, Path)}
        return {**modules, **types, **vars(self), "pl": pl, "dp": dp, "age": pl.col("age")}

    @property
    def spent(self) -> list[object]:
        return [s.spent for s in (self.session, self.approx, self.zcdp)]


def wrong_uses() -> list[Any]:
    """Each wrong use with its error and the words of its message."""
    uses = []
    for file in sorted((Path(__file__).parent / "misuse").glob("*.txt")):
        for block in file.read_text().split("\n\n"):
            code, expected = block.strip().split("\n")
            error, words = expected.strip().split(": ", 1)
            uses.append(pytest.param(code, error, words.split(" | "), id=f"{file.stem}: {code}"))
    return uses


@pytest.mark.parametrize(("code", "error", "words"), wrong_uses())
def test_wrong_use(code: str, error: str, words: list[str]) -> None:
    world = World()
    before = world.spent
    with pytest.raises(dp.DPFrameError) as caught:
        eval(code, world.names)
    assert type(caught.value).__name__ == error
    assert world.spent == before
    message = str(caught.value)
    for part in words:
        assert part in message
    assert caught.value.remedy
    if error == "UnboundedSensitivity":  # nobody knows the values, so an example would clamp them
        assert not re.search(r"\((-?\d+), ?(-?\d+)\)", caught.value.remedy)
    assert caught.value.__cause__ is None
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_the_frame_of_the_wrong_uses_cannot_be_read() -> None:
    with pytest.raises((UnreadableError, pl.exceptions.ComputeError), match=SECRET):
        unreadable().collect()
    with pytest.raises(dp.EngineError):
        World().query.collect(epsilon=1)
    assert len(wrong_uses()) > 300


@pytest.mark.parametrize(
    "use",
    [
        lambda w: pl.lit(dp.count()),
        lambda w: w.plain.select(pl.lit(dp.count(), allow_object=True)).item(),
        lambda w: w.plain.join(w.people, on="age"),
        lambda w: pl.concat([w.people, w.people]),
        lambda w: w.plain.filter(pl.col("age").is_in(w.people)),
        lambda w: sum(dp.count()),  # type: ignore[call-overload]
        lambda w: float(dp.count()),  # type: ignore[arg-type]
        lambda w: numpy.sum(dp.count()),  # type: ignore[call-overload]
    ],
)
def test_what_polars_and_python_refuse_by_themselves(use: Callable[[World], object]) -> None:
    world = World()
    try:
        result = use(world)
    except Exception as error:
        result = traceback.format_exception(error)
    assert SECRET not in str(result)
    assert not isinstance(result, (int, float, pl.DataFrame, numpy.ndarray))


@pytest.mark.parametrize(
    "method",
    [dp.Session.protect, pl.DataFrame().dp_count, pl.LazyFrame().dp_sum, pl.DataFrame().dp_protect],  # type: ignore[attr-defined]
)
def test_whom_to_protect_has_no_default(method: Callable[..., object]) -> None:
    assert inspect.signature(method).parameters["unit"].default is inspect.Parameter.empty


class Broken:
    """A source that yields one batch and then fails, quoting a value."""

    def __init__(self, error: BaseException) -> None:
        self.reads = 0
        self.error = error
        self.frame = register_io_source(self._read, schema=SCHEMA)

    def _read(self, *_: object) -> Iterator[pl.DataFrame]:
        self.reads += 1
        yield pl.DataFrame(schema=SCHEMA)
        raise self.error


@pytest.mark.parametrize(
    "error", [ValueError(SECRET), pl.exceptions.ComputeError(SECRET), OSError(5, SECRET)]
)
def test_a_failing_engine_is_silent_and_the_charge_stays(error: Exception) -> None:
    broken = Broken(error)
    session = dp.Session(epsilon=1.0)
    query = session.protect(broken.frame, unit=dp.Rows()).agg(pl.col("age").dp_sum((0, 9)))
    query.explain(epsilon=0.25)
    assert broken.reads == 0
    with pytest.raises(dp.EngineError) as caught:
        query.collect(epsilon=0.25)
    assert broken.reads == 1
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.args)
    assert SECRET not in shown
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert session.spent == dp.PureDP(0.25)
    assert session.history["status"].to_list() == ["failed"]
    assert session.history["epsilon"].to_list() == [0.25]


def test_an_interrupted_run_keeps_its_charge() -> None:
    session = dp.Session(epsilon=1.0)
    query = session.protect(Broken(KeyboardInterrupt()).frame, unit=dp.Rows()).dp_count()
    with pytest.raises((KeyboardInterrupt, dp.EngineError)):
        query.collect(epsilon=0.25)
    assert session.history["status"].to_list() == ["failed"]
    assert session.spent == dp.PureDP(0.25)


def test_a_file_that_is_gone_is_an_engine_error(tmp_path: Path) -> None:
    file = tmp_path / f"{SECRET}.parquet"
    pl.DataFrame({"age": [1, 2]}).write_parquet(file)
    session = dp.Session(epsilon=1.0)
    query = session.protect(pl.scan_parquet(file), unit=dp.Rows()).dp_count()
    file.unlink()
    with pytest.raises(dp.EngineError) as caught:
        query.collect(epsilon=0.5)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert session.spent == dp.PureDP(0)  # noticed before the charge


def test_a_schema_that_cannot_be_read_is_an_engine_error(tmp_path: Path) -> None:
    session = dp.Session(epsilon=1.0)
    file = tmp_path / "people.parquet"
    file.write_text(SECRET * 100)
    with pytest.raises(dp.EngineError, match="collect_schema") as caught:
        session.protect(pl.scan_parquet(file), unit=dp.Rows())
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_refused_spend_leaves_no_entry() -> None:
    session = dp.Session(epsilon=1.0)
    query = session.protect(unreadable(), unit=dp.Rows()).dp_count()
    with pytest.raises(dp.BudgetExceeded):
        query.collect(epsilon=1.5)
    assert session.history.is_empty()
    assert session.remaining == dp.PureDP(1)


def test_representations_show_no_data() -> None:
    frame = pl.DataFrame({"age": [918273], "name": [SECRET]})
    session = dp.Session(epsilon=1.0)
    people = session.protect(frame, unit=dp.Rows())
    query = people.dp_count()
    grouped = people.group_by("name", keys=["a"])
    shown = [repr(x) + str(x) for x in (session, people, query, grouped, people.schema)]
    shown += [people.explain_unit(), query.explain(epsilon=1), query.explain(epsilon=1, size=9)]
    shown += [x._repr_html_() for x in (session, people, query, grouped, query.plan(epsilon=1))]
    assert not any(SECRET in text or "918273" in text for text in shown)
    assert "age" in people
    assert "missing" not in people
