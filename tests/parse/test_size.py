"""Expressions of absurd size are refused at once, and end neither the process nor its memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.cli.main import main
from dpframe.parse import reader, size
from dpframe.parse.reader import read
from dpframe.parse.size import (
    MAX_DEPTH,
    MAX_SQL,
    TooLargeError,
    require_short_sql,
    serialised,
    shown,
)

SCHEMA: dict[str, Any] = {"x": pl.Float64(), "s": pl.String(), "b": pl.Boolean()}
X, B = pl.col("x"), pl.col("b")


def grown(step: Callable[[Any], Any], depth: int, start: Any = X) -> Any:
    return functools.reduce(lambda e, _: step(e), range(depth), start)


DEEP: dict[str, Callable[[int], pl.Expr]] = {
    "sum": lambda n: grown(lambda e: e + 1, n),
    "sum from the right": lambda n: grown(lambda e: 1 + e, n),
    "and": lambda n: grown(lambda e: e & B, n, B),
    "or": lambda n: grown(lambda e: B | e, n, B),
    "function": lambda n: grown(lambda e: e.abs(), n),
    "cast": lambda n: grown(lambda e: e.cast(pl.Float64), n),
    "choice": lambda n: grown(lambda e: pl.when(e > 0).then(1.0).otherwise(e), n),
    "name": lambda n: grown(lambda e: e.alias("a"), n),
    "braces in text": lambda n: grown(lambda e: e + '}"\\}}' * 3, n, pl.col("s")),
}


OPERATORS = ("sum", "sum from the right", "and", "or")
"""Polars itself ends the process where much deeper ones, or others so deep, are built."""


@pytest.mark.parametrize(
    ("name", "depth"),
    [*((name, 200) for name in DEEP), *((name, 10_000) for name in OPERATORS), ("cast", 1_500)],
)
def test_deep_expressions_are_refused(name: str, depth: int) -> None:
    expression = DEEP[name](depth)
    if name == "name" and depth == 200:  # names are no levels
        assert read(expression, SCHEMA)[0].name == "a"
        return
    with pytest.raises(dp.UnsupportedOperation, match="nested more than"):
        read(expression, SCHEMA)


@pytest.mark.parametrize("name", sorted(DEEP.keys() - {"choice"}))  # which repeats its operand
def test_expressions_of_fewer_levels_are_read(name: str) -> None:
    (named,) = read(DEEP[name](MAX_DEPTH - 10), SCHEMA)
    assert named.tree


def test_expressions_that_are_their_own_operands_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each step writes twice as much as the one before: 2**60 parts in all, few of which are."""
    twice, written = grown(lambda e: e + e, 60), [0]
    true = size._Measured.write

    def write(stream: Any, data: Any) -> int:
        written[0] += len(bytes(data))
        return true(stream, data)

    monkeypatch.setattr(size._Measured, "write", write)
    with pytest.raises(dp.UnsupportedOperation, match="parts"):
        read(twice, SCHEMA)
    assert shown(twice) == "expression"
    assert 0 < written[0] < 1 << 26


def test_dp_expressions_of_absurd_expressions_are_refused() -> None:
    people = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=SCHEMA), dp.Rows())
    for absurd in (DEEP["sum"](10_000), grown(lambda e: e + e, 60)):
        made = absurd.dp_sum((0, 1))
        for ask in (
            lambda e=absurd: people.filter(e > 0),
            lambda e=absurd: people.with_columns(y=e),
            lambda e=absurd: people.group_by(e, keys=[1]),
            lambda e=absurd: people.group_by("b", keys=[True]).agg(e),
            lambda e=made: people.agg(e),
            lambda e=made: people.agg(e / dp.count()),
            lambda e=made: e + pl.col("x"),
            lambda e=absurd: people.session.partition(people, e, [1]),
            lambda e=absurd: people.dp_argmax("b", score=e),
        ):
            with pytest.raises(dp.UnsupportedOperation):
                ask()
        assert "expression" in repr(made)


def test_arithmetic_of_results_of_absurd_size_is_refused() -> None:
    for step in (lambda e: e + e, lambda e: e + 1, lambda e: -e, lambda e: e.round(1)):
        with pytest.raises(dp.UnsupportedOperation, match="characters"):
            grown(step, 20_000, dp.count())
    people = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=SCHEMA), dp.Rows())
    many = grown(lambda e: e + 1, 1_500, dp.count())
    with pytest.raises(dp.UnsupportedOperation, match="nested more than"):
        people.agg(many.alias("n"))


@pytest.mark.parametrize("size", [0, 1, 100, 3_000])
def test_what_is_measured_is_what_polars_writes(size: int) -> None:
    """Texts that look like structure are none, wherever they are cut."""
    text = '{"[' * size + "\\" * size + "}" * (2 * size)
    for expression in (
        pl.col("s") == text,
        pl.col("s").is_in([text, "a" * size, "é"]),
        pl.col("x").is_in(list(range(10 * size))),
        pl.col("s") == "{\n" * (3 * size),  # written in pieces that have no quotation mark
        grown(lambda e: e + text, 20, pl.col("s")),
    ):
        assert serialised(expression) == expression.meta.serialize(format="json")


def test_many_constants_are_not_deep() -> None:
    (named,) = read(pl.col("x").is_in([i / 7 for i in range(100_000)]), SCHEMA)
    assert named.name == "x"


def test_the_first_text_too_many_is_refused() -> None:
    wide = pl.sum_horizontal(*[pl.col("x")] * 30_000)
    with pytest.raises(dp.UnsupportedOperation, match="parts"):
        read(wide, SCHEMA)
    with pytest.raises(TooLargeError):
        serialised(pl.sum_horizontal(*[pl.col("x") + 1] * 60_000))


# ---------------------------------------------------------------------------------------- SQL

SQL: dict[str, Callable[[int], str]] = {
    "and": lambda n: " and ".join(["b"] * n),
    "plus": lambda n: "+".join(["x"] * n) + " > 0",
    "brackets": lambda n: "(" * n + "b" + ")" * n,
    "not": lambda n: "not " * n + "b",
    "minus": lambda n: "- " * n + "x > 0",
    "cast": lambda n: "x" + "::int" * n + " > 0",
    "null": lambda n: "x" + " is null" * n,
    "between": lambda n: "x" + " between x and x" * n,
    "joined": lambda n: "||".join(["s"] * n) + " = 'a'",
}


@pytest.mark.parametrize("name", SQL)
@pytest.mark.parametrize("size", [1_000, 20_000])
def test_long_sql_in_jobs_is_refused(
    name: str, size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.DataFrame(schema=SCHEMA).write_parquet(tmp_path / "people.parquet")
    (tmp_path / "job.toml").write_text(
        f"""
        session.epsilon = "1"
        source = {{path = "people.parquet", unit = {{adjacency = "add-remove"}}}}
        spend.epsilon = "0.5"
        [query]
        filter = ["{SQL[name](size)}"]
        [query.outputs.n]
        aggregate = "count"
        """
    )
    assert main(["explain", str(tmp_path / "job.toml")]) == 5
    assert capsys.readouterr().err.startswith(("UnsupportedOperation", "UnknownColumn"))


def test_lists_in_sql_may_be_long() -> None:
    numbers = ", ".join(str(i) for i in range(20_000))
    texts = ", ".join(f"'it''s and {i}'" for i in range(20_000))
    for values in (numbers, texts):
        pl.sql_expr(require_short_sql(f"x in ({values})"))
    require_short_sql(f"x in ({numbers}, 1.5)")  # which Polars 1.32 does not read
    with pytest.raises(dp.UnsupportedOperation, match="words"):
        require_short_sql("x in (" + ", ".join(["y"] * (MAX_SQL + 1)) + ")")


def test_wide_expressions_have_as_many_nodes_as_are_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader, "MAX_NODES", 100)
    assert read(pl.sum_horizontal([X] * 90), SCHEMA)
    with pytest.raises(dp.DPFrameError, match="parts"):
        read(pl.sum_horizontal([X] * 110), SCHEMA)
    assert len(read(pl.sum_horizontal([X] * 90), SCHEMA)) == 1  # each is counted for itself
