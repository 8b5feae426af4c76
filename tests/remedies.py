"""Wrong uses, the errors that refuse them, and whether following each message leads to a result.

``python -m tests.remedies`` counts, for each folder of the package, the places that construct an
error, those that a wrong use of `misuse/*.txt` reaches, and those whose message was followed to a
result. ``python -m tests.remedies PATH`` lists the places of PATH that are left; a test fails where
there is one.

A block of `misuse/*.txt` is code, the error with words that its message must have, and what a user
writes who follows the message::

    people.agg(age.dp_sum(100))
        InvalidBounds: pair | col("age")
        then: people.agg(age.dp_sum((0, 100)))
        or: ...

``then:`` follows the first way of the message (``instead:``), ``or:`` the second. They are checked
against the message: each piece of code in it must occur, see `unlike`. Where code cannot show what
to do, the line is ``then: -- REASON``. A line is left out where `follow` can write it from the
message. Code may be several statements with ``;`` between them; `World` has the names in it, and
`folders.Folder` those for files, commands and ledgers.
"""

from __future__ import annotations

import ast
import copy
import math
import pickle
import re
import sys
import traceback
import warnings
import zoneinfo
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache, cached_property
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
import polars as pl
import pyarrow.parquet  # type: ignore[import-untyped]
from polars import selectors
from polars.io.plugins import register_io_source

import dpframe as dp
from dpframe import accounting, errors, mechanisms
from dpframe.core.parameters import Parameter
from dpframe.parse.sql import sql_expression
from tests.cli.commands import PYTHON_JOB, TOML_JOB
from tests.folders import NIGHTLY, Folder, members
from tests.postgres import binaries

ROOT = Path(__file__).parents[1]
SPARK = ROOT / "tests" / "remedies_spark.txt"
"""The functions whose errors wrong uses of `misuse/spark.txt` get; `engines/test_remedies_spark.py`
runs these and compares.
"""

NEWEST = not pl.__version__.startswith(("0.", "1."))
"""Whether this Polars has what the wrong uses of `newest_polars.txt` name."""

SECRET = "Zanzibar-918273"
"""Stands in the data that cannot be read; may never stand in a message."""

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


def readable() -> pl.DataFrame:
    """A frame of that schema: 600 rows of 300 people."""
    rows = range(600)
    columns = {
        "age": [18 + i % 60 for i in rows],
        "income": [float(100 * (i % 500)) for i in rows],
        "name": [f"person {i % 300}" for i in rows],
        "region": [("north", "south")[i % 2] for i in rows],
        "member": [i % 3 == 0 for i in rows],
        "joined": [date(2026, 1, 1) + timedelta(days=i % 90) for i in rows],
        "visits": [i % 50 for i in rows],
        "tags": [["a", "b"][: i % 3] for i in rows],
        "tier": [("gold", "silver")[i % 2] for i in rows],
        "blob": [b"x" for _ in rows],
    }
    return pl.DataFrame(columns, schema=SCHEMA)


class World(Folder):
    """The names in wrong uses, made when they are needed: frames that cannot be read.

    `readable` is the same world for those who follow a message: its frames have rows.
    """

    def __init__(self, *, readable: bool = False) -> None:
        super().__init__()
        self.readable = readable

    @cached_property
    def raw(self) -> pl.LazyFrame:
        return readable().lazy() if self.readable else unreadable()

    @cached_property
    def public(self) -> pl.DataFrame:
        """Other rows of the same schema, which are public or made up."""
        return readable().with_columns(name=pl.lit("made up"))

    @cached_property
    def _first(self) -> tuple[dp.Session, dp.PrivateFrame]:
        session = dp.Session(epsilon=1.0)
        return session, session.protect(self.raw, unit=dp.Rows(), bounds={"visits": (0, 50)})

    @property
    def session(self) -> dp.Session:
        return self._first[0]

    @property
    def people(self) -> dp.PrivateFrame:
        return self._first[1]

    @cached_property
    def grouped(self) -> dp.PrivateGroupBy:
        return self.people.group_by("region", keys=["north", "south"])

    @cached_property
    def query(self) -> dp.PrivateQuery:
        return self.people.dp_count()

    @cached_property
    def users(self) -> dp.PrivateFrame:
        return dp.Session(epsilon=1.0).protect(self.raw.drop("tags"), unit="name")

    @cached_property
    def months(self) -> dp.PrivateFrame:
        monthly = dp.Identifier("name", window="1mo", time="joined")
        return dp.Session(epsilon=1.0, per="1mo").protect(self.raw.drop("tags"), monthly)

    @cached_property
    def approx(self) -> dp.Session:
        return dp.Session(epsilon=1.0, delta=1e-6)

    @cached_property
    def approx_people(self) -> dp.PrivateFrame:
        return self.approx.protect(self.raw, unit=dp.Rows())

    @cached_property
    def zcdp(self) -> dp.Session:
        return dp.Session(rho=0.1)

    @cached_property
    def zcdp_people(self) -> dp.PrivateFrame:
        return self.zcdp.protect(self.raw, unit=dp.Rows())

    @cached_property
    def survey(self) -> dp.PrivateFrame:
        """Rows that are public, in a session of their own, for wrong uses of results."""
        return dp.Session(epsilon=10.0).protect(self.public, unit=dp.Rows())

    @property
    def duckdb(self) -> Any:
        """The module."""
        return import_module("duckdb")

    @property
    def ds(self) -> Any:
        """Datasets of pyarrow."""
        return import_module("pyarrow.dataset")

    @cached_property
    def connection(self) -> Any:
        """A connection of DuckDB."""
        return self.duckdb.connect()

    @cached_property
    def relation(self) -> Any:
        """Public rows in DuckDB, of some of the columns, with a Decimal."""
        self.connection.register("survey", self.public.to_arrow())
        columns = "age, income, name, region, joined, age::DECIMAL(10, 2) AS price"
        return self.connection.sql(f"SELECT {columns} FROM survey")

    @property
    def spark(self) -> Any:
        """The session of Spark that is active."""
        return import_module("pyspark.sql").SparkSession.getActiveSession()

    @cached_property
    def folder(self) -> Path:
        """Parquet files of public rows in folders such as ``year=2025``."""
        for year in (2025, 2026):
            place = self.tmp / "visits" / f"year={year}"
            place.mkdir(parents=True)
            self.public.select("age", "name").write_parquet(place / "a.parquet")
        return self.tmp / "visits"

    def sql(self, text: str, **parameters: Parameter) -> dp.PrivateFrame:
        """Rows that fulfil a condition of a TOML job, which is written in SQL."""
        return self.people.filter(sql_expression(text, parameters))

    @cached_property
    def plain(self) -> pl.DataFrame:
        return pl.DataFrame({"age": [1, 2], "region": ["a", "b"]})

    @property
    def spent(self) -> list[object]:
        """What the sessions of this world have spent."""
        sessions: list[Any] = [v for v in vars(self).values() if isinstance(v, dp.Session)]
        frames = [v for k, v in vars(self).items() if isinstance(v, dp.PrivateFrame)]
        sessions += [v.session for v in frames if v is not vars(self).get("survey")]
        sessions += [self.session]
        return [s.spent.epsilon if hasattr(s.spent, "epsilon") else s.spent.rho for s in sessions]

    def run(self, code: str) -> object:
        """The value of the last statement."""
        tree = ast.parse(code.strip())
        named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        with self.inside() if named & members() or ".db" in code else nullcontext():
            return self._value(tree, named)

    def _value(self, tree: ast.Module, named: set[str]) -> object:
        names = {**FIXED}
        for name in named - names.keys():
            if hasattr(World, name):
                names[name] = getattr(self, name)
        *before, last = tree.body
        exec(compile(ast.Module(before, []), "<wrong use>", "exec"), names)
        if not isinstance(last, ast.Expr):
            exec(compile(ast.Module([last], []), "<wrong use>", "exec"), names)
            return None
        return eval(compile(ast.Expression(last.value), "<wrong use>", "eval"), names)


FIXED: dict[str, Any] = {
    "replace": replace,
    **{m.__name__: m for m in (copy, math, numpy, pickle, pyarrow)},
    **{t.__name__: t for t in (date, datetime, time, timedelta, Decimal, Fraction, Path)},
    "UTC": UTC,
    "zoneinfo": zoneinfo,
    "pl": pl,
    "pa": pyarrow,
    "dp": dp,
    "Parameter": Parameter,
    "cs": selectors,
    "age": pl.col("age"),
    "NIGHTLY": NIGHTLY,
    "accounting": accounting,
    "mechanisms": mechanisms,
}
"""Names that are the same in every world."""


# -- Blocks -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A wrong use, the error that it must get, and the code of those who follow the message."""

    file: str
    code: str
    error: str
    words: tuple[str, ...]
    ways: dict[int, str] = field(hash=False)
    """What stands in ``then:`` (0) and ``or:`` (1)."""

    @property
    def name(self) -> str:
        return f"{self.file}: {self.code}"


@cache
def blocks(*, spark: bool = False) -> tuple[Block, ...]:
    """All wrong uses: those without Spark, or those with it."""
    result = []
    for file in sorted((ROOT / "tests" / "misuse").glob("*.txt")):
        if (file.stem == "spark") != spark or (file.stem == "newest_polars" and not NEWEST):
            continue
        if file.stem == "postgres" and binaries() is None:
            continue
        for text in file.read_text("utf-8").split("\n\n"):
            code, expected, *lines = (line.strip() for line in text.strip().split("\n"))
            error, words = expected.split(": ", 1)
            ways = {}
            for line in lines:
                label, _, way = line.partition(": ")
                ways[("then", "or").index(label)] = way
            result.append(Block(file.stem, code, error, tuple(words.split(" | ")), ways))
    return tuple(result)


@contextmanager
def placed() -> Iterator[None]:
    """Errors constructed meanwhile remember where, in `place`."""
    original = errors.DPFrameError.__init__

    def remember(self: errors.DPFrameError, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        frame = sys._getframe(1)
        while frame.f_code.co_filename == errors.__file__ and frame.f_back:
            frame = frame.f_back
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            self.place = (path.relative_to(ROOT).as_posix(), frame.f_lineno)  # type: ignore[attr-defined]

    errors.DPFrameError.__init__ = remember  # type: ignore[method-assign]
    try:
        yield
    finally:
        errors.DPFrameError.__init__ = original  # type: ignore[method-assign]


@dataclass(frozen=True)
class Refusal:
    """What became of a wrong use."""

    error: dp.DPFrameError
    charged: bool
    place: tuple[str, int] | None
    """The file and line that constructed the error."""

    @property
    def ways(self) -> list[str]:
        """What the message says to do: one way or two."""
        return (self.error.remedy or "").split("\n")


@cache
def refusal(block: Block) -> Refusal:
    """The error that a wrong use gets."""
    world = World()
    with placed(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = world.run(block.code)
        except dp.DPFrameError as error:
            charged = any(world.spent)
            about = getattr(error, "error", error)  # what a command says about a file
            return Refusal(error, charged, getattr(about, "place", None))
    raise AssertionError(f"{block.code} is not refused, and gives {value!r}")


# -- Following a message ------------------------------------------------------------------------


_FOLLOWED: set[tuple[object, str]] = set()
"""Places and ways of messages that were followed without a user, so once is enough."""
_MOST_GUESSES = 4


def is_followed(block: Block, way: int) -> bool:
    """Whether code that follows a way of the message can be written from it, and has a result."""
    use = refusal(block)
    text = use.ways[way]
    if (use.place, text) in _FOLLOWED:
        return True
    for code in islice(follow(block.code, use.error, text), _MOST_GUESSES):
        with suppress(Exception):
            if not unlike(text, code):
                result_of(code)
                _FOLLOWED.add((use.place, text))
                return True
    return False


def is_action(code: str) -> bool:
    """Whether code cannot show what to do; its reason is given instead."""
    return code.startswith("--")


def result_of(code: str, *, run: bool = False) -> object:
    """What code gives in a world with rows: the plan of a query, or with `run` its result."""
    world = World(readable=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return collect(world.run(code), world, run=run)


def collect(value: object, world: World, *, run: bool) -> object:
    """The result of a query, of a count where there are only rows, and of other things itself."""
    if isinstance(value, dp.DPExpr):
        value = world.people.agg(value)
    elif isinstance(value, pl.Expr):
        value = world.people.with_columns(value.alias("result"))
    if isinstance(value, dp.PureDP | dp.ApproxDP | dp.ZCDP | dp.GDP):
        value = dp.Session(value)
    if isinstance(value, dp.Session):
        value = value.protect(world.raw, dp.Rows())
    if isinstance(value, dp.Rows | dp.Identifier):
        value = dp.Session(epsilon=1.0).protect(world.raw, value)
    if isinstance(value, dp.PrivateFrame | dp.PrivateGroupBy):
        value = value.agg(dp.count())
    if isinstance(value, dp.PrivateQuery):
        value = _ask(value, run)
    if isinstance(value, pl.LazyFrame):
        value = value.collect()
    assert value is not None, "nothing came out"
    return value


def _ask(query: dp.PrivateQuery, run: bool) -> object:
    """The plan or the result of a query, for a part of what its session has or of a new one."""
    ask: Callable[..., object] = query.collect if run else query.plan
    with suppress(dp.MissingKeys):
        try:
            return ask(epsilon=0.4)
        except dp.InvalidBudget as error:
            if "belongs to no session" in str(error):
                session = dp.Session(epsilon=1.0)
                return (session.collect if run else session.plan)(query, epsilon=0.4)
            return ask(rho=0.05)
    return ask(epsilon=0.4, delta=1e-9)


# -- Code in messages ---------------------------------------------------------------------------

_START = re.compile(
    r"(?<![\w.\"'])(?:(?P<call>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*\(|(?:\.[A-Za-z_]\w*)+\()"
    r"|(?P<keyword>[a-z_]\w*=(?=[\[({\"'\w.-])))"
)
_OPEN, _CLOSE = "([{", ")]}"
_REAL = {"pl", "pa", "ds", "dp", "cs", "date", "datetime", "time", "timedelta", "Decimal"} | {
    "zoneinfo"
}
"""Names in messages that are no placeholders."""
_EXAMPLES = {
    "user_id",
    "user",
    "city",
    "a",
    "b",
    "c",
    "x",
    "old",
    "country",
    "sex",
    "customer",
    "order",
    "budget.db",
    "new",
    "postgresql://host:5432/database",
    "postgresql://host/name",
    "at",
    "name",
    "n",
    "column",
    "key",
}
"""Texts in messages that stand for the user's own."""


def pieces(way: str) -> list[str]:
    """The pieces of Python in a message; functions in capitals are SQL."""
    result, end = [], 0
    while start := _START.search(way, end):
        end = start.end()
        if (start["call"] or "").isupper():
            end = _closed(way, end - 1)
            continue
        end = _closed(way, end - 1) if start["call"] else _value(way, end)
        while tail := re.compile(r"(?:\.[A-Za-z_]\w*)+(\(?)|\[").match(way, end):
            bracket = tail[0][-1] in _OPEN
            if not bracket and way[end] == "." and not tail[0].strip("."):
                break
            end = _closed(way, tail.end() - 1) if bracket else tail.end()
        result.append(way[start.start() : end])
    return result


def _closed(text: str, start: int) -> int:
    """The index after the bracket that closes the one at `start`."""
    depth, quote = 0, ""
    for index in range(start, len(text)):
        char = text[index]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
            if depth == 0:
                return index + 1
    return len(text)


def _value(text: str, start: int) -> int:
    """The index after the value that begins at `start`."""
    if text[start] in "\"'":
        return text.index(text[start], start + 1) + 1
    if text[start] in _OPEN:
        return _closed(text, start)
    match = re.compile(r"\.\.\.|-?\d[\d_.]*e-?\d+|-?[\w.]*\w").match(text, start)
    assert match is not None
    end = match.end()
    return _closed(text, end) if text[end : end + 1] == "(" else end


def parsed(piece: str) -> ast.expr:
    """A piece of code as a tree; ``_`` is in the place of what it is called on."""
    if re.match(r"[a-z_]\w*=", piece):
        piece = f"_({piece})"
    elif piece.startswith("."):
        piece = f"_{piece}"
    piece = re.sub(r"\bdatetime\.(date|datetime|timedelta|time)\b", r"\1", piece)
    return ast.parse(piece, mode="eval").body


def _is_placeholder(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return node.id not in _REAL
    if isinstance(node, ast.Starred):
        return _is_placeholder(node.value)
    return isinstance(node, ast.Constant) and (node.value is ... or node.value in _EXAMPLES)


def matches(piece: ast.AST, code: ast.AST) -> bool:
    """Whether code is what a piece of a message says, with its placeholders filled in."""
    if isinstance(piece, ast.expr) and _is_placeholder(piece):
        return True
    if isinstance(piece, ast.List | ast.Tuple | ast.Set) and any(
        isinstance(e, ast.Constant) and (e.value is ... or e.value in _EXAMPLES) for e in piece.elts
    ):
        return isinstance(code, ast.expr)
    if isinstance(piece, ast.Dict):
        return isinstance(code, ast.Dict)
    if isinstance(piece, ast.Call):
        return isinstance(code, ast.Call) and _same_call(piece, code)
    if type(piece) is not type(code):
        return False
    for name, value in ast.iter_fields(piece):
        other = getattr(code, name)
        if name in ("ctx", "kind"):
            continue
        if isinstance(value, list):
            if len(value) != len(other) or not all(map(matches, value, other)):
                return False
        elif isinstance(value, ast.AST):
            if not matches(value, other):
                return False
        elif value != other:
            return False
    return True


def _same_call(piece: ast.Call, code: ast.Call) -> bool:
    if not matches(piece.func, code.func):
        return False
    keywords = {k.arg: k.value for k in code.keywords}
    if any(k.arg not in keywords or not matches(k.value, keywords[k.arg]) for k in piece.keywords):
        return False
    return any(
        _same_arguments(piece.args, code.args[skipped:], bool(code.keywords)) for skipped in (0, 1)
    )


def _same_arguments(piece: list[ast.expr], code: list[ast.expr], named: bool) -> bool:
    """Whether positional arguments are those of a piece; methods of frames have a column first."""
    for place, argument in enumerate(piece):
        if isinstance(argument, ast.Constant) and argument.value is ...:
            return True
        if place >= len(code):
            return _is_placeholder(argument) and named
        if not matches(argument, code[place]):
            return False
    return True


class _Expanded(ast.NodeTransformer):
    """`age` is a short name of a column in wrong uses."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.parse("pl.col('age')", mode="eval").body if node.id == "age" else node


def unlike(way: str, code: str) -> list[str]:
    """The pieces of a message that code does not have; pieces with ``or`` between them are one."""
    whole, tree = way, _Expanded().visit(ast.parse(code))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
    kept = {k.arg for node in nodes if isinstance(node, ast.Call) for k in node.keywords}
    missing = [f"without {k}=" for k in re.findall(r"\bleave (\w+)=\S* out\b", way) if k in kept]
    lines = _lines(nodes)
    rest = way = re.sub(r"\bleave \S+ out\b|--[a-z-]+ \w+=\S*", "", way)
    alternatives: list[list[str]] = []
    for piece in pieces(way):
        before, _, rest = rest.partition(piece)
        if alternatives and re.search(r"\bor\b|,\s*$", before) and not before.count(":"):
            alternatives[-1].append(piece)
        else:
            alternatives.append([piece])
    for group in alternatives:
        if not any(matches(parsed(piece), node) for piece in group for node in nodes) and not any(
            _is_in_lines(parsed(piece), lines) for piece in group
        ):
            missing.append(" or ".join(group))
    if names := re.findall(r"did you mean '([^']*)'", way):
        missing += [name for name in names if name not in code]
    return missing + list(_unlike_lines(whole, lines))


def _lines(nodes: list[ast.expr]) -> list[str]:
    """The commands in code, and the texts of jobs; none where code has no command."""
    called = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
    if "shell" not in called:
        return []
    texts = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [*([TOML_JOB, PYTHON_JOB] if "job" in called else []), *texts]


def _is_in_lines(piece: ast.expr, lines: list[str]) -> bool:
    """Whether commands or jobs have the keywords of a piece, or its name where it has none."""
    calls = [node for node in ast.walk(piece) if isinstance(node, ast.Call)]
    names = [k.arg for call in calls for k in call.keywords]
    names = names or [ast.unparse(call.func).rpartition(".")[2] for call in calls]
    return all(
        any(re.search(rf"\b{name}\s*=|--{name}\b", line) for line in lines) for name in names
    )


def _unlike_lines(way: str, lines: list[str]) -> Iterator[str]:
    """The commands, their options and the fields of jobs in a message that no text of code has."""
    for command in re.findall(r"`dpframe ([^`]+)`", way):
        words = [word for word in command.split() if not re.search("[A-Z]", word)]
        if not any(set(words) <= set(line.split()) for line in lines):
            yield f"`dpframe {' '.join(words)}`"
    way = re.sub("`[^`]*`", "", way)
    last = lines[-1] if lines else ""
    for option in re.findall(r"\bleave (--\S+)(?: \w+)?(?: and (--\S+))? out\b", way):
        yield from (f"without {o}" for o in option if o and o in last.split())
    way = re.sub(r"\bleave --\S+(?: \w+)?(?: and --\S+)? out\b", "", way)
    for option in re.findall(r"--[a-z][a-z-]*", way):
        if not any(option in line.split() for line in lines):
            yield option
    for name in re.findall(r"(?<![\w\[(])([a-z_]+) = ", way) if lines else ():
        if not any(f"{name} =" in line for line in lines):
            yield f"{name} ="


# -- Code from messages -------------------------------------------------------------------------

_FILLED = {"low": "0", "high": "99", "n": "3"}
"""What a placeholder becomes when a message is followed without a user."""


def follow(code: str, error: dp.DPFrameError, way: str) -> Iterator[str]:
    """Code changed as a message says, in the ways that a program can think of."""
    if names := re.fullmatch(r"did you mean '?(\w+)=?'?\?", way):
        if wrong := re.search(r"'(\w+)'|has no (\w+)$", error.what):
            yield re.sub(rf"\b{wrong[1] or wrong[2]}\b", names[1], code)
        return
    if keyword := re.fullmatch(r"leave (\w+)= out(?:[,;:].*)?", way):
        yield from _without(ast.parse(code), keyword[1])
        return
    found = pieces(way)
    if len(found) != 1:
        return
    try:
        piece = parsed(found[0])
    except SyntaxError:
        return
    piece = _Filled().visit(piece)
    known = {*_REAL, "_"}
    if isinstance(piece, ast.Call) and not any(
        (isinstance(n, ast.Name) and n.id not in known)
        or (isinstance(n, ast.Constant) and n.value is ...)
        for n in ast.walk(piece)
    ):
        yield from _with(code, piece, f"{error.what} {error.where}")


class _Filled(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        filled = _FILLED.get(node.id)
        return node if filled is None else ast.parse(filled, mode="eval").body


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _without(tree: ast.Module, keyword: str) -> Iterator[str]:
    calls = [call for call in _calls(tree) if any(k.arg == keyword for k in call.keywords)]
    for call in calls:
        call.keywords = [k for k in call.keywords if k.arg != keyword]
    if calls:
        yield ast.unparse(tree)


def _with(code: str, piece: ast.Call, message: str) -> Iterator[str]:
    """Code with keywords set, instead of the last argument too, or with a call replaced."""
    name = ast.unparse(piece.func)
    names = {k.arg for k in piece.keywords}

    def order(number: int) -> tuple[bool, bool]:
        call = _calls(ast.parse(code))[number]
        called = ast.unparse(call.func).rpartition(".")[2]
        return not names & {k.arg for k in call.keywords}, called not in message

    for number in sorted(range(len(_calls(ast.parse(code)))), key=order):
        for kept in range(10, -1, -1) if name == "_" else (0, 1):
            tree = ast.parse(code)
            call = _calls(tree)[number]
            if name == "_" and kept <= len(call.args):
                call.args = call.args[:kept]
                call.keywords = [k for k in call.keywords if k.arg not in names] + piece.keywords
                yield ast.unparse(tree)
            elif ast.unparse(call.func).rpartition(".")[2] == name.rpartition(".")[2]:
                call.args, call.keywords = [*call.args[:kept], *piece.args], piece.keywords
                yield ast.unparse(tree)


# -- Counts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Site:
    """A place that constructs an error."""

    path: str
    function: str
    """In which it is."""
    first: int
    last: int

    @property
    def folder(self) -> str:
        return "/".join(self.path.split("/")[:2])

    def has(self, place: tuple[str, int]) -> bool:
        return place[0] == self.path and self.first <= place[1] <= self.last


@cache
def sites() -> tuple[Site, ...]:
    """Every place of the package that constructs an error for a user."""
    kinds = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type)
        and issubclass(kind, errors.DPFrameError)
        and kind is not errors.Unsound  # of dpframe itself, so its users can only report it
    }
    result = []
    for path in sorted((ROOT / "dpframe").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        given = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for node in _calls(tree):
            match node.func:
                case ast.Name(name) | ast.Attribute(attr=name) if name in kinds:
                    pass
                case ast.Name("error") if "error" in given:
                    pass
                case ast.Call(ast.Name("type"), [ast.Name("error")]):
                    pass
                case _:
                    continue
            place = path.relative_to(ROOT).as_posix()
            last = node.end_lineno or node.lineno
            around = [f for f in functions if f.lineno <= node.lineno <= (f.end_lineno or 0)]
            inside = max(around, key=lambda f: f.lineno, default=None)
            result.append(Site(place, inside.name if inside else "", node.lineno, last))
    return tuple(result)


def site_of(place: tuple[str, int] | None) -> Site | None:
    """The innermost place that constructed an error."""
    around = [site for site in sites() if place is not None and site.has(place)]
    return min(around, key=lambda site: site.last - site.first, default=None)


@dataclass
class Outcome:
    """How far following the message of a block led."""

    block: Block
    actions: int = 0
    failure: str | None = None
    unfollowed: bool = False


@cache
def outcome(block: Block) -> Outcome:
    """Follows each way of a block's message."""
    result = Outcome(block)
    for number, way in enumerate(refusal(block).ways):
        code = block.ways.get(number)
        if code is None:
            result.unfollowed |= not is_followed(block, number)
            continue
        if is_action(code):
            result.actions += 1
            continue
        try:
            missing = unlike(way, code)
            if missing:
                result.failure = f"{code}\ndoes not do what the message says: {missing}"
            else:
                result_of(code)
        except Exception:
            result.failure = f"{code}\nleads to\n{traceback.format_exc(limit=-3)}"
    return result


def followed() -> set[Site]:
    """The places whose message was followed to a result by a block."""
    with_spark = SPARK.read_text("utf-8").splitlines()
    done = {site for site in sites() if f"{site.path} {site.function}" in with_spark}
    for block in blocks():
        site = site_of(refusal(block).place)
        if site is not None and site not in done:
            result = outcome(block)
            if result.failure is None and not result.unfollowed:
                done.add(site)
    return done


def left() -> list[str]:
    """The places that no block has followed."""
    missing = set(sites()) - followed()
    return sorted(f"{site.path}:{site.first}" for site in missing)


def main(arguments: list[str]) -> None:
    done = followed()
    if arguments:
        for site in sites():
            if site not in done and site.path.startswith(tuple(arguments)):
                line = (ROOT / site.path).read_text("utf-8").splitlines()[site.first :][:1]
                print(f"{site.path}:{site.first}: {''.join(line).strip()}")
        return
    reached = {site_of(refusal(block).place) for block in blocks()}
    print("sites reached followed folder")
    for folder in sorted({site.folder for site in sites()}):
        inside = [site for site in sites() if site.folder == folder]
        counts = len(inside), sum(s in reached for s in inside), sum(s in done for s in inside)
        print(f"{counts[0]:5} {counts[1]:7} {counts[2]:8} {folder}")
    print(f"{len(sites()):5} {len(reached):7} {len(done):8} in all")
    actions = sum(outcome(block).actions for block in blocks())
    print(f"{len(blocks())} wrong uses; {actions} ways are actions that code cannot show")
    waiting = [block for block in blocks() if outcome(block).unfollowed]
    print(f"{len(waiting)} wrong uses have a way that is not followed")


if __name__ == "__main__":
    main(sys.argv[1:])
