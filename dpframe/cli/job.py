"""Jobs: a query, the session that pays for it, and what may be spent.

Jobs in TOML: no code, only SQL expressions and names of aggregates.

::

    output = "result.parquet"          # optional

    [session]                          # as dp.Session(...)
    epsilon = "1"
    ledger = "budget.db"

    [source]                           # as session.protect(...)
    path = "people.csv"
    unit = "user_id"                   # or {adjacency = "add-remove", contributions = 1},
                                       # {identifier = "user_id", window = "1mo", time = "at"}
    bounds = {age = [0, 120]}
    engine = "duckdb"                  # optional

    [source.schema]                    # optional: the columns to read, and their types; nothing
                                       # of the data is read then until the job runs
    user_id = "Int64"
    age = "Int64"
    hours = "Float64"
    day = "Date"                       # String, Boolean, Float64, "Datetime(ms)", "Decimal(9, 2)"
    education = ["Bachelors", "Masters"]

    [parameters]                       # optional: what each run is given, with --param day=...
    day = {type = "date", default = 2026-11-20}

    [query]
    filter = ["age >= 40", "day = :day"]
    with_columns = {overtime = "hours - 40"}
    group_by = ["education"]
    keys = {education = ["Bachelors", "Masters"]}
    limit_groups = {n = 3, by = ["education"]}
    limit_rows = {n = 5, by = ["education"]}

    [query.outputs.n]
    aggregate = "count"

    [query.outputs.mean_overtime]
    aggregate = "mean"
    of = "overtime"
    bounds = [0, 60]

    # or, in place of outputs and keys: which groups there are
    # dp_groups = {rounds = 2}

    [spend]                            # as collect(...), interval and sampling too;
    # limits = "none" refuses a query that lacks a limit
    epsilon = "0.5"

Several queries of the source are written as `[[query]]`, each with its outputs as
`[query.outputs.n]` below it: one plan, one charge, and with an output `result.parquet` the files
`result-1.parquet`, `result-2.parquet`, ...

Steps happen in this order: `with_columns`, `filter`, `limit_rows`, `limit_norm`, `limit_groups`,
`group_by`.
Expressions are SQL that Polars reads; what it makes of them is checked like any other expression.
Dates are written as DATE '2026-11-22', or as text if they are compared with a date. A column with
a time zone is compared by its local clock time. DATE_TRUNC, EXTRACT, CAST(at AS DATE) and
INTERVAL '7 days' work on columns. Parameters are of type bool, int, float, decimal (with
`scale`), string, date or datetime (with `zone`), or a list of one such as "list[string]", for x
IN (:cities) and keys = {city = ":cities"}. An output takes the arguments of its aggregate by
name: bounds, q, bins, candidates, per, weight ... Paths, the ledger's too, start from the folder
of the job.
"""

from __future__ import annotations

import os
import re
import runpy
import sys
import tomllib
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import polars as pl

from dpframe.api import functions as dp
from dpframe.api.frame import PrivateFrame
from dpframe.api.parameters import DEFAULT_SCALE, Parameters, declaring
from dpframe.api.payer import Payer, Spend, payer_of, prepare_for
from dpframe.api.query import PrivateQuery, batch_of, owner_of, refuse_weights
from dpframe.api.readers import missing_file
from dpframe.api.release import Releases
from dpframe.api.reuse import ONCE_MORE, ReusePolicy
from dpframe.api.session import Session
from dpframe.api.source import Source, Sources
from dpframe.audit import Audit, audit
from dpframe.cli.output import BadInput, not_a_job, require_file
from dpframe.core.parameters import NotAValue, Parameter, ParameterType, read_type
from dpframe.core.units import Identifier, Rows, Unit
from dpframe.errors import DPFrameError, UnsupportedOperation, location
from dpframe.ledger.amounts import left_fields
from dpframe.ledger.approvals import Allowed
from dpframe.optimise.queries import Queries
from dpframe.parse.sql import sql_expression
from dpframe.release import Intervals, read_intervals
from dpframe.report import Plan
from dpframe.rows.failures import FAILURES
from dpframe.rows.suggest import did_you_mean
from dpframe.sealed import misfit

# Refusals of SQL expressions, in the words of SQL.

T = TypeVar("T")

_KNOWN = (
    "comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, CASE, CAST, COALESCE, arithmetic, "
    "EXTRACT, DATE_TRUNC and INTERVAL"
)
_REMEDIES: tuple[tuple[str, str], ...] = (
    ("compare it with a value", "compare it with something, for example age >= 40"),
    (".dt.date()", "write CAST(at AS DATE), which is the day in the zone of the column"),
    ("parse the text first", "write CAST, or compare text with text: s = '2026-11-22'"),
    ("parse it with a fixed format", "write STRPTIME(s, '%Y-%m-%d'), or compare it as text"),
    (".replace_time_zone", "write the moment with its offset: '2026-11-22 00:00:00+01:00'"),
    ("methods of .dt", "write EXTRACT(YEAR FROM at), or CAST(at AS VARCHAR) for text"),
    ("methods of .str", "compare text with =, LIKE and IN, or write CAST(s AS BIGINT)"),
    (".cast(pl.Int64) or .cast(pl.String)", "write CAST(x AS BIGINT) or CAST(x AS VARCHAR)"),
    ("cast to one of these", "write CAST(x AS BIGINT), CAST(x AS DOUBLE) or CAST(x AS VARCHAR)"),
    (".cast(pl.Int64)", "write CAST(x AS BIGINT)"),
    (".cast(pl.String)", "write CAST(x AS VARCHAR)"),
    ("cast one side", "write CAST(x AS ...) around one side"),
    (".is_in(", "write IN, with values in brackets: x IN (1, 2), or x IN (:values)"),
    ("pl.when", "write CASE WHEN ... THEN ... ELSE ... END"),
    (".fill_null", "write COALESCE(x, 0)"),
    ("dp_ aggregate", 'name the aggregate in [query.outputs.NAME]: aggregate = "sum"'),
    ("dp.count()", 'name the aggregate in [query.outputs.NAME]: aggregate = "count"'),
    (".dp_", 'name the aggregate in [query.outputs.NAME]: aggregate = "mean"'),
    ("frame's own methods", "do it before the data come to where the job reads them"),
    ("true division", "write / or CAST(x / y AS BIGINT)"),
)
"""What a remedy for Polars says, and what to write in SQL instead."""

_POLARS = re.compile(r"\bpl\.|\bdp\.|\.[a-z_]+\.?[a-z_]*\(|\.dt\b|\.str\b|\bcol\(|with_columns")
_NAMES: tuple[tuple[str, str], ...] = (
    ("str.len_bytes", "OCTET_LENGTH"),
    ("str.len_chars", "LENGTH"),
    ("str.to_lowercase", "LOWER"),
    ("str.to_uppercase", "UPPER"),
    ("str.contains", "LIKE"),
    ("str.starts_with", "LIKE"),
    ("str.ends_with", "LIKE"),
    ("str.slice", "SUBSTR"),
    ("dt.offset_by", "INTERVAL"),
    ("dt.truncate", "DATE_TRUNC"),
    ("dt.date", "CAST(... AS DATE)"),
    ("is_in", "IN"),
    ("pl.len", "COUNT(*)"),
    ("pl.int_range", "ROW_NUMBER"),
    ("n_unique", "COUNT(DISTINCT ...)"),
)
_PREFIX = re.compile(r"\b(pl|dp|dt|str|list)\.(?=[a-z])")
_PART = re.compile(r"\bdt\.(year|month|day|hour|minute|second|week|weekday|quarter|iso_year)\b")
_TYPES = (
    (re.compile(r"\bDatetime\(\w+, ([^)]+)\)"), r"TIMESTAMP in \1"),
    (re.compile(r"\bDatetime(\(\w+\))?"), "TIMESTAMP"),
    (re.compile(r"\bU?Int(8|16|32|64|128)\b"), "integer"),
    (re.compile(r"\bFloat(32|64)\b"), "float"),
    (re.compile(r"\bString\b"), "text"),
    (re.compile(r"\bDuration(\(\w+\))?"), "INTERVAL"),
)


def in_sql(text: str, make: Callable[[], T]) -> T:
    """Build a value from an SQL expression; refusals quote the expression as written."""
    try:
        return make()
    except DPFrameError as error:
        what, remedy = error.what, error.remedy
        for name, said in _NAMES:  # functions and types as SQL calls them
            what = what.replace(name, said)
        what = _PART.sub(lambda part: f"EXTRACT({part[1].upper()} ...)", what)
        for pattern, said in _TYPES:
            what = pattern.sub(said, what)
        what = _PREFIX.sub("", what).replace("private expression", "private SQL expression")
        if remedy is not None:
            other = f"write it with {_KNOWN}" if _POLARS.search(remedy) else remedy
            remedy = next((said for sign, said in _REMEDIES if sign in remedy), other)
        error.what, error.where, error.remedy = what, text, remedy
        raise error from None


_TABLES = {"output", "session", "source", "parameters", "query", "spend"}
_TRIED = "dpframe:of"
"""A column that nothing has but an expression that is tried."""
_DECLARED = {"type", "zone", "scale", "default"}
_LIMITS = {"limit_rows": {"n", "by"}, "limit_norm": {"n"}, "limit_groups": {"n", "by"}}
_STEPS = ("with_columns", "filter", *_LIMITS, "group_by", "keys", "outputs", "dp_groups")
_OF_POLARS = {"avg": "mean", "average": "mean", "len": "count"}
"""Aggregates of SQL and Polars, by the name that they have here."""
_EXAMPLES = {
    "spend": "write [spend], and below it for example epsilon = 0.5",
    "session": "write [session], and below it for example epsilon = 1.0",
    "source": 'write [source], and below it path = "people.csv" and unit = "user_id"',
    "query": "write [query], and its outputs: [query.outputs]",
    "outputs": 'write [query.outputs], and below it n = {aggregate = "count"}',
}
"""What to write for a table that is missing."""
_SESSION = set(signature(Session).parameters) - {"budget"}
_GIVEN_AS_OF = {"column", "columns"}


def read_toml(path: Path, parameters: Parameters) -> dict[str, object]:
    """The session, query, spend and output of a job, which declares parameters. Raises `BadInput`
    when it is not a valid job, and what the session or the query refuses.
    """
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise not_a_job(path, f"it is not TOML: {error}") from None
    except OSError as error:
        what = f"it cannot be read: {error.strerror}"
        raise not_a_job(path, what, remedy="let this user read the file") from None
    try:
        _only(fields, _TABLES, "the job")
        given = _parameters(fields, parameters)
        spend, output = _table(fields, "spend"), _path(fields, "output", path.parent)
        stated = _table(fields, "session")
        _only(stated, _SESSION, "[session]")
        stated = stated | {"ledger": _path(stated, "ledger", path.parent)}
        session = _call("[session]", Session, **stated)
        frame = _source(session, _table(fields, "source"), path.parent)
        query = _Reader(given).queries(frame, fields)
    except _WrongError as error:
        raise not_a_job(path, *error.args) from None
    return {"query": query, "spend": spend, "output": output}


class _WrongError(Exception):
    """What is wrong with a job, and what to write instead where the help does not say it."""

    def __init__(self, what: str, remedy: str | None = None) -> None:
        super().__init__(what, remedy)


def _source(session: Session, given: Mapping[str, object], folder: Path) -> PrivateFrame:
    _only(given, {"path", "unit", "name", "bounds", "categories", "engine", "schema"}, "[source]")
    for name in ("path", "unit"):
        if name not in given:
            example = {"path": "people.csv", "unit": "user_id"}[name]
            raise _WrongError(f"[source] has no {name}", f'write for example {name} = "{example}"')
    for name, example in (("bounds", "[0, 120]"), ("categories", "[1, 2]"), ("schema", '"Int64"')):
        if not isinstance(given.get(name, {}), dict):
            remedy = f"write for example {name} = {{age = {example}}}"
            raise _WrongError(f"{name} in [source] is not a table", remedy)
    others = {name: found for name, found in given.items() if name not in ("path", "unit")}
    where, unit = _path(given, "path", folder), _unit(given["unit"])
    return _call("[source]", session.protect, where, unit=unit, **others)


def _unit(given: object) -> Unit:
    if isinstance(given, str):
        return Identifier(given)
    if isinstance(given, dict) and "identifier" in given:
        _only(given, {"identifier", "window", "time"}, "unit")
        named = {name: found for name, found in given.items() if name != "identifier"}
        return _call("unit", Identifier, given["identifier"], **named)
    if isinstance(given, dict):
        _only(given, {"adjacency", "contributions"}, "unit")
        return _call("unit", Rows, **given)
    raise _WrongError(
        f"unit in [source] is neither the name of a column nor a table: {given!r}",
        'write unit = "user_id", or unit = {contributions = 1} where each row is one person',
    )


def _path(given: Mapping[str, object], name: str, folder: Path) -> str | None:
    """A path as the working directory sees it; URLs are left as they are, except of files."""
    text = given.get(name)
    if text is None:
        return None
    if not isinstance(text, str):
        raise _WrongError(f"{name} is text, not {text!r}", f'write {name} = "..."')
    scheme, separator, rest = text.partition("://")
    if not separator:
        return str(folder / os.path.expanduser(text))
    if scheme == "sqlite" and rest.startswith("/"):
        return f"sqlite:///{folder / rest[1:]}"
    return text


def _call(where: str, function: Callable[..., T], *arguments: object, **options: object) -> T:
    """What a function makes of values that may be of any type."""
    if (refusal := misfit(function, arguments, options)) is not None:
        raise _WrongError(f"{where}: {refusal.what}", refusal.remedy)
    try:
        return function(*arguments, **options)
    except DPFrameError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise _WrongError(f"{where}: {error}") from None


def _parameters(found: Mapping[str, object], parameters: Parameters) -> dict[str, Parameter]:
    """The parameters that the job declares, by name; others are refused."""
    declared = _table(found, "parameters") if "parameters" in found else {}
    parameters.require_known(declared)
    result = {}
    for name, given in declared.items():
        where = f"[parameters] {name}"
        if not isinstance(given, dict) or not isinstance(given.get("type"), str):
            remedy = f'write for example {name} = {{type = "date"}}'
            raise _WrongError(f"{where} has no type", remedy)
        _only(given, _DECLARED, where)
        result[name] = parameters.declare(name, _type(given, where), given.get("default"))
    return result


def _type(given: Mapping[str, object], where: str) -> ParameterType:
    words, zone, scale = str(given["type"]), given.get("zone"), given.get("scale")
    many = words.startswith("list[") and words.endswith("]")
    kind = words[5:-1] if many else words
    if kind == "decimal" and scale is None:
        scale = DEFAULT_SCALE
    try:
        if zone is None and scale is None:
            return read_type(words)
        return ParameterType(kind, _as(str, zone), _as(int, scale), many)
    except NotAValue as error:
        raise _WrongError(f"{where}: {error}") from None


def _as(kind: type[T], value: object) -> T | None:
    if value is not None and type(value) is not kind:
        raise NotAValue(f"{value!r} is not of type {kind.__name__}")
    return value


class _Reader:
    """Reads queries, whose expressions may name parameters."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self._parameters = parameters

    def queries(self, frame: PrivateFrame, found: Mapping[str, object]) -> object:
        """The query, or the list of them."""
        given = found.get("query")
        if not isinstance(given, list):
            return self._query(frame, _table(found, "query"))
        if not all(isinstance(one, dict) for one in given):
            remedy = "write each query below a line [[query]]"
            raise _WrongError("query is a list of values that are not tables", remedy)
        return [self._query(frame, one) for one in given]

    def _query(self, frame: PrivateFrame, given: Mapping[str, object]) -> PrivateQuery:
        _only(given, set(_STEPS), "[query]")
        asked = {} if "dp_groups" in given else _table(given, "outputs")
        outputs = [self._output(name, made) for name, made in asked.items()]
        for name, text in _table(given, "with_columns").items() if "with_columns" in given else ():
            made = self._sql(text)
            frame = in_sql(text, partial(frame.with_columns, **{name: made}))
        for text in _list(given.get("filter", [])):
            made = self._sql(text)
            frame = in_sql(text, partial(frame.filter, made))
        for step, known in _LIMITS.items():
            if step in given:
                options = _table(given, step)
                _only(options, known, f"[query] {step}")
                frame = _call(step, getattr(frame, step), **options)
        for made in asked.values():
            if "of" in made:  # so that refusals quote it as written
                tried = partial(frame.with_columns, **{_TRIED: self._sql(made["of"])})
                in_sql(made["of"], tried)
        if "dp_groups" in given:
            return self._groups(frame, given)
        if "group_by" not in given:
            if "keys" in given:
                remedy = "name the columns of the keys: group_by = [...]"
                raise _WrongError("[query] has keys, and no group_by", remedy)
            return _call("[query]", frame.agg, *outputs)
        keys = given.get("keys")
        if isinstance(keys, dict):
            keys = {name: self._listed(values) for name, values in keys.items()}
        else:
            keys = self._listed(keys)
        grouped = _call("[query] keys", frame.group_by, *_by(given), keys=keys)
        return _call("[query]", grouped.agg, *outputs)

    def _groups(self, frame: PrivateFrame, given: Mapping[str, object]) -> PrivateQuery:
        """Which groups there are, and nothing else of them."""
        if "group_by" not in given or {"keys", "outputs"} & given.keys():
            raise _WrongError(
                "[query] dp_groups needs group_by, and takes no keys and no outputs",
                'write group_by = "city" and dp_groups = {}, and leave keys and outputs out',
            )
        options = _table(given, "dp_groups")
        _only(options, {"rounds"}, "[query] dp_groups")
        grouped = _call("[query]", frame.group_by, *_by(given))
        return _call("[query] dp_groups", grouped.dp_groups, **options)

    def _output(self, name: str, given: object) -> pl.Expr:
        if not isinstance(given, dict) or given.get("aggregate") not in list(dp.BY_NAME):
            aggregate = given.get("aggregate") if isinstance(given, dict) else given
            raise _WrongError(
                f"[query.outputs.{name}] needs an aggregate"
                + ("" if aggregate is None else f", and {aggregate!r} is not one"),
                did_you_mean(_OF_POLARS.get(str(aggregate), str(aggregate)), dp.BY_NAME),
            )
        options = {key: value for key, value in given.items() if key not in ("aggregate", "of")}
        if isinstance(options.get("bounds"), list):
            options["bounds"] = tuple(options["bounds"])
        made = dp.BY_NAME[given["aggregate"]]
        where = f"[query.outputs.{name}]"
        _only(options, set(signature(made).parameters) - _GIVEN_AS_OF, where)
        if "score" in options:
            options["score"] = self._sql(options["score"])
        if "of" in given:
            options |= {next(iter(signature(made).parameters)): self._sql(given["of"])}
        elif given["aggregate"] not in ("count", "argmax"):
            raise _WrongError(f"{where} has no `of`", 'name the column: of = "income"')
        return _call(where, made, **options).alias(name)

    def _listed(self, values: object) -> object:
        """Keys, where a parameter that is a list may stand for values."""
        if not isinstance(values, str) or not values.startswith(":"):
            return values
        found = self._parameters.get(values[1:])
        held = None if found is None else found.typed_value
        if not isinstance(held, tuple):
            raise _WrongError(
                f"[query] keys: {values} is not a parameter of a list",
                f'declare it: [parameters] {values[1:]} = {{type = "list[string]"}}',
            )
        return list(held)

    def _sql(self, text: object) -> pl.Expr:
        if not isinstance(text, str):
            remedy = 'write SQL as text, for example "age >= 18"'
            raise _WrongError(f"an expression is text, not {text!r}", remedy)
        return sql_expression(text, self._parameters)


def _by(given: Mapping[str, object]) -> list[str]:
    by = _list(given["group_by"])
    if not all(isinstance(name, str) for name in by):
        remedy = 'write for example group_by = ["city"]'
        raise _WrongError(f"group_by is a list of names of columns, not {by!r}", remedy)
    return by


def _table(given: Mapping[str, object], name: str) -> dict[str, Any]:
    if name not in given:
        raise _WrongError(f"[{name}] is missing", _EXAMPLES.get(name))
    result = given[name]
    if not isinstance(result, dict):
        raise _WrongError(f"[{name}] is a table, not {result!r}", _EXAMPLES.get(name))
    return result


def _list(given: object) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _only(given: Mapping[str, object], known: set[str], where: str) -> None:
    for name in given:
        if name not in known:
            remedy = did_you_mean(name, sorted(known)) if known else f"leave {name} out"
            raise _WrongError(f"{where} does not take {name!r}", remedy)


@dataclass(frozen=True, slots=True)
class Job:
    """One release that a job makes."""

    queries: Queries  # The query or queries
    sources: Sequence[Source | Sources]  # The data of each query
    is_list: bool  # Whether the job has a list of queries, with a separate file for each result
    payer: Payer  # The session's state that is charged
    spend: Spend  # The most that the release may cost
    interval: Intervals | None  # The intervals to release with the result, if any
    output: Path | None  # Where to write the result, if the job names a place
    allowed: Allowed = ()  # The ranges of parameters that have a range instead of a value

    def plan(self) -> Plan:
        """What it would do; nothing is charged."""
        return self.payer.prepare(self.queries, self.spend).plan

    def left(self) -> dict[str, object]:
        """What is left of the budget that pays for it, for programs."""
        return left_fields(self.payer.ledger.remaining)

    def audit(self, runs: int, confidence: str) -> Audit:
        """What runs on worst-case neighbours prove about its plan; nothing is charged. Raises
        `UnsupportedOperation` when it asks several queries, or one that lacks a limit.
        """
        if self.queries.search is not None:
            raise UnsupportedOperation(
                "the job's query has no limit on what one individual adds, and an audit needs one",
                remedy="write a limit that its plan lists, for example .limit_rows(10)",
            )
        query, *others = self.queries.queries
        if others:
            raise UnsupportedOperation(
                "the job has several queries, and an audit is of one",
                remedy="write a job for each of them, at its share of the spend",
            )
        return audit(prepare_for(self.payer, query, self.spend), runs, confidence)

    def require_approval(self) -> None:
        """Run it only if its plan was approved, regardless of the job's own setting."""
        self.payer.needs_approval = True

    def require_other(self, path: Path) -> None:
        """Refuse to write the result over a file that was protected by its path, or where the path,
        which may be a pattern, would find it the next time. Raises `BadInput` when it is one.
        """
        if any(source.holds(path) for source in self.sources):
            refusal = UnsupportedOperation(
                "the result would replace the data that it is made from, or become part of it",
                remedy="write it to another file",
            )
            raise BadInput(refusal, path)

    def places(self, path: Path | None) -> list[Path] | None:
        """Where results go: of a list of queries the number of each is added to the name."""
        if path is None or not self.is_list:
            return None if path is None else [path]
        asked = len(self.queries.queries) - (self.queries.search is not None)
        numbers = range(1, asked + 1)
        return [path.with_name(f"{path.stem}-{number}{path.suffix}") for number in numbers]

    def keep(self) -> None:
        """Keep its result next to the ledger, regardless of the job's own setting. Raises
        `UnsupportedOperation` when its budget is in memory.
        """
        if not self.payer.ledger.identities:
            raise UnsupportedOperation(
                "the session keeps its budget in memory, which forgets that the job was run",
                where="--run-id, --once",
                remedy='keep it in a ledger: dp.Session(..., ledger="budget.db")',
            )
        self.payer.keeps = True

    def release(self, repeat: ReusePolicy = ONCE_MORE) -> Releases:
        """Run it, or hand out what was kept."""
        how = self.spend, self.interval
        return self.payer.release(self.queries, self.sources, *how, repeat=repeat)


def is_job(path: Path) -> bool:
    """Whether a file is named as jobs are."""
    return path.suffix in (".py", ".toml")


def read_job(
    path: Path, given: Mapping[str, str] = MappingProxyType({}), *, ranged: bool = False
) -> Job:
    """The job in a file, with values of its parameters as text; or with ranges of them, and one
    value of each. Raises `BadInput` when it is no job, or fails before it has a query, and what the
    job itself raises, such as a ledger that does not verify.
    """
    if not is_job(require_file(path)):
        raise not_a_job(
            path, "its name ends neither in .py nor in .toml", remedy="name it job.py or job.toml"
        )
    parameters = Parameters(given, ranged=ranged)
    with declaring(parameters):
        found = _from_python(path) if path.suffix == ".py" else read_toml(path, parameters)
    parameters.require_known([parameter.name for parameter in parameters.declared])
    query, spend = found.get("query"), found.get("spend")
    session, output = found.get("session"), found.get("output")
    is_list = isinstance(query, (list, tuple))
    listed: list[Any] = [*query] if isinstance(query, (list, tuple)) else [query]
    if not is_list and not isinstance(query, PrivateQuery):
        raise not_a_job(path, f"`query` is {_kind(query)}, not a private query")
    if not isinstance(spend, Mapping) or not spend:
        is_toml = path.suffix == ".toml"
        raise not_a_job(
            path,
            "[spend] is empty" if is_toml else f"`spend` is {_kind(spend)}, not a dict of amounts",
            remedy="write for example "
            + ("epsilon = 0.5" if is_toml else 'spend = {"epsilon": 0.5}'),
        )
    apart = ("interval", "sampling", "weights", "limits")
    allowed = ("epsilon", "delta", "rho", "accuracy", "split", *apart)
    unknown = [name for name in spend if name not in allowed]
    if unknown:
        raise not_a_job(
            path,
            f"`spend` does not take {unknown[0]!r}",
            remedy=did_you_mean(str(unknown[0]), allowed),
        )
    weights = spend.get("weights")
    if not is_list:
        refuse_weights(weights)
    costs = Spend(**{n: found for n, found in spend.items() if n not in apart})
    owner, limits = _payer(listed, session, path), spend.get("limits", "auto")
    limits = None if limits == "none" else limits  # TOML has no null
    asked, sources, payer = batch_of(listed, weights, limits, costs, owner)
    payer.parameters = parameters.declared
    if output is not None and not isinstance(output, str | os.PathLike):
        what = f"`output` is {_kind(output)}, not a path"
        raise not_a_job(path, what, remedy='write for example output = "result.csv"')
    place = None if output is None else Path(output)
    interval = read_intervals(spend.get("interval"), spend.get("sampling", False))
    return Job(asked, sources, is_list, payer, costs, interval, place, parameters.allowed)


def _payer(queries: Sequence[object], session: object, path: Path) -> Payer:
    """Who pays for the queries, or for the whole of a frame that some are of a part of."""
    owners = [owner_of(query) for query in queries if isinstance(query, PrivateQuery)]
    owner = next((owner for owner in owners if owner is not None), None)
    if owner is None:
        if not isinstance(session, Session):
            raise not_a_job(
                path,
                f"the query belongs to no session, and `session` is {_kind(session)}",
                remedy="write session = dp.Session(...) with the session that pays",
            )
        return payer_of(session)
    while owner.whole is not None:
        owner = owner.whole
    return owner


def _from_python(path: Path) -> dict[str, object]:
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)  # as when it is run alone
    try:
        with redirect_stdout(sys.stderr):  # the standard output is the result's
            return runpy.run_path(str(path), run_name="__dpframe_job__")
    except DPFrameError:
        raise
    except SystemExit:
        raise not_a_job(path, "it called sys.exit()", remedy="leave sys.exit() out") from None
    except FAILURES as error:
        failed = f"it failed with {type(error).__name__}{_line(error, path)}"
        what = f"{failed}{_not_found(error, path)}"
        raise not_a_job(
            path, what, remedy=f"correct it: `python {path.name}` shows the error"
        ) from None
    finally:
        with suppress(ValueError):
            sys.path.remove(folder)


def _line(error: BaseException, path: Path) -> str:
    """Where the job failed. Not the message: what a job reads before it protects it is its own
    affair, and may be quoted there.
    """
    if isinstance(error, SyntaxError):
        return f" in line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if f.filename == str(path)]
    return f" in line {lines[-1]}" if lines else ""


def _not_found(error: BaseException, path: Path) -> str:
    """The file that was not there, if the job itself has its name."""
    if not isinstance(error, FileNotFoundError):
        return ""
    name = error.filename if isinstance(error.filename, str) else missing_file(error)
    written = path.read_text(encoding="utf-8", errors="replace")
    named = name is not None and Path(name).name and Path(name).name in written
    return f": there is no file {location(name)!r}" if named else ""


def _kind(value: object) -> str:
    return "missing" if value is None else f"a {type(value).__name__}"
