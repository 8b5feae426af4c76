"""Wrong uses: each gets the right error before any data is read or any budget is charged.

The wrong uses are in `misuse/*.txt`; `tests/remedies.py` describes these files, and `test_remedies`
follows what the messages say to do.
"""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import polars as pl
import pytest
from polars.io.plugins import register_io_source

import dpframe as dp
from tests.remedies import (
    SCHEMA,
    SECRET,
    Block,
    UnreadableError,
    World,
    blocks,
    refusal,
    unreadable,
)


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.name)
def test_wrong_use(block: Block) -> None:
    use = refusal(block)
    assert type(use.error).__name__ == block.error
    assert not use.charged
    message = str(use.error)
    for part in block.words:
        assert part in message
    assert use.error.remedy
    if block.error == "UnboundedSensitivity":  # an example of bounds would clamp the values
        assert not re.search(r"\((-?\d+), ?(-?\d+)\)", use.error.remedy)
    assert use.error.__cause__ is None
    assert SECRET not in "".join(traceback.format_exception(use.error))


def test_the_frame_of_the_wrong_uses_cannot_be_read() -> None:
    with pytest.raises((UnreadableError, pl.exceptions.ComputeError), match=SECRET):
        unreadable().collect()
    with pytest.raises(dp.EngineError):
        World().query.collect(epsilon=1)
    assert len(blocks()) > 300


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
