"""Jobs in TOML: no code, only SQL expressions and names of aggregates.

::

    output = "result.parquet"          # optional

    [session]                          # as dp.Session(...)
    epsilon = "1"
    ledger = "budget.db"

    [source]                           # as session.protect(...)
    path = "people.parquet"
    unit = "user_id"                   # or {adjacency = "add-remove", contributions = 1}
    bounds = {age = [0, 120]}

    [query]
    filter = ["age >= 40"]
    with_columns = {overtime = "hours - 40"}
    group_by = ["education"]
    keys = {education = ["Bachelors", "Masters"]}
    limit_groups = {n = 3, by = ["education"]}

    [query.outputs.n]
    aggregate = "count"

    [query.outputs.mean_overtime]
    aggregate = "mean"
    of = "overtime"
    bounds = [0, 60]

    [spend]                            # as collect(...)
    epsilon = "0.5"

Steps happen in this order: `with_columns`, `filter`, `limit_rows`, `limit_groups`, `group_by`.
Expressions are SQL that Polars reads; what it makes of them is checked like any other expression.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from dpframe.api import functions as dp
from dpframe.api.frame import PrivateFrame, PrivateGroupBy
from dpframe.api.session import Session
from dpframe.cli.input import BadInput
from dpframe.core.units import Identifier, Rows, Unit
from dpframe.errors import UnsupportedOperation

_TABLES = {"output", "session", "source", "query", "spend"}
_STEPS = ("with_columns", "filter", "limit_rows", "limit_groups", "group_by", "keys", "outputs")
_AGGREGATES: Mapping[str, Callable[..., Any]] = {
    "count": dp.count,
    "sum": dp.sum,
    "mean": dp.mean,
    "var": dp.var,
    "std": dp.std,
    "median": dp.median,
    "quantile": dp.quantile,
    "n_unique": dp.n_unique,
    "histogram": dp.histogram,
    "argmax": dp.argmax,
}


def read_toml(path: Path) -> dict[str, Any]:
    """The session, query, spend and output of a job.

    Raises
    ------
    BadInput
        When it is no such job.
    DPFrameError
        What the session or the query refuses.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _bad(path, f"it is not TOML: {error}") from None
    try:
        _only(found, _TABLES, "the job")
        session = Session(**_table(found, "session"))
        frame = _source(session, _table(found, "source"), path.parent)
        query = _query(frame, _table(found, "query"))
    except (TypeError, KeyError, _WrongError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise _bad(path, what) from None
    output = found.get("output")
    return {
        "query": query,
        "spend": _table(found, "spend"),
        "output": None if output is None else path.parent / str(output),
    }


class _WrongError(Exception):
    """What is wrong with a job."""


def _source(session: Session, given: dict[str, Any], folder: Path) -> PrivateFrame:
    _only(given, {"path", "unit", "name", "bounds", "categories"}, "[source]")
    unit = given["unit"]
    return session.protect(
        folder / str(given["path"]),
        unit=_unit(unit),
        name=given.get("name"),
        bounds=given.get("bounds"),
        categories=given.get("categories"),
    )


def _unit(given: object) -> Unit:
    if isinstance(given, str):
        return Identifier(given)
    if isinstance(given, dict):
        return Rows(**given)
    raise _WrongError("unit is a column's name, or {adjacency = ..., contributions = ...}")


def _query(frame: PrivateFrame, given: dict[str, Any]) -> Any:
    _only(given, set(_STEPS), "[query]")
    outputs = [_output(name, made) for name, made in _table(given, "outputs").items()]
    if "with_columns" in given:
        named = _table(given, "with_columns")
        frame = frame.with_columns(**{name: _sql(text) for name, text in named.items()})
    for text in _list(given.get("filter", [])):
        frame = frame.filter(_sql(text))
    for step in ("limit_rows", "limit_groups"):
        if step in given:
            frame = getattr(frame, step)(**_table(given, step))
    grouped: PrivateFrame | PrivateGroupBy = frame
    if "group_by" in given:
        grouped = frame.group_by(*_list(given["group_by"]), keys=given.get("keys"))
    return grouped.agg(*outputs)


def _output(name: str, given: object) -> Any:
    if not isinstance(given, dict) or given.get("aggregate") not in _AGGREGATES:
        known = ", ".join(_AGGREGATES)
        raise _WrongError(f"[query.outputs.{name}] needs an aggregate, one of {known}")
    options = {key: value for key, value in given.items() if key not in ("aggregate", "of")}
    if isinstance(options.get("bounds"), list):
        options["bounds"] = tuple(options["bounds"])
    made = _AGGREGATES[given["aggregate"]]
    arguments = [_sql(given["of"])] if "of" in given else []
    return made(*arguments, **options).alias(name)


def _sql(text: object) -> pl.Expr:
    if not isinstance(text, str):
        raise _WrongError(f"an expression is text, not {text!r}")
    try:
        return pl.sql_expr(text)
    except Exception as error:  # Polars has a class for each way to be wrong
        raise UnsupportedOperation(
            f"this is not an SQL expression ({type(error).__name__})",
            where=text,
            remedy='write for example "age >= 40"',
        ) from None


def _table(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = given[name]
    if not isinstance(found, dict):
        raise _WrongError(f"[{name}] is a table, not {found!r}")
    return found


def _list(given: object) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _only(given: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in given:
        if name not in known:
            raise _WrongError(f"{where} has no {name!r}, only {', '.join(sorted(known))}")


def _bad(path: Path, what: str) -> BadInput:
    error = UnsupportedOperation(
        f"this is not a job: {what}", remedy="see `dpframe run --help` for the form of a job"
    )
    return BadInput(error, path)
