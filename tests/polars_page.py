"""The tables of docs/polars.md: what becomes of each operation of Polars on a private frame.

Nothing is listed by hand. Each public method is called and given to a private frame; what happens
is what the table says. Tables are made with one version of Polars and left as they are with others,
where tests check what both have in common.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl

import dpframe as dp
from dpframe.api.no_raw_access import FRAME_HINTS, GROUP_HINTS, MIXES, RAW, RESHAPES
from dpframe.core.tree import Call, Column, Literal
from dpframe.parse.hints import NEVER
from dpframe.parse.reader import read
from dpframe.rows.registry import BY_NAME

from .polars_calls import CALLS, NAMES, RECEIVERS, SCHEMA

WRITTEN_WITH = "2.1"
"""The version of Polars whose methods the tables list; set it to a newer one to list that one's."""
CURRENT = pl.__version__.startswith(WRITTEN_WITH + ".")

_NO_OPERATION = {*RECEIVERS, "meta", "ext", "map", "deserialize", "pipe", "from_json"}
_OWN = "dp_"
_SEEN_BY = {"bin_quantiles": 1, "bin_ranks": 1, "pipe_with_dtype": 3, "pl.pipe_with_dtype": 3}
"""Methods whose refusal names no reason of `NEVER`, by the place of theirs in it."""
_TITLES = {
    "": "Expressions",
    "str": "Text: `.str`",
    "dt": "Time: `.dt`",
    "list": "Lists: `.list`",
    "arr": "Arrays: `.arr`",
    "struct": "Structs: `.struct`",
    "cat": "Categories: `.cat`",
    "bin": "Binary: `.bin`",
    "name": "Names: `.name`",
    "pl": "Functions: `pl.`",
}
_WHY = (
    (
        "Combine many rows",
        "As a column of a private frame the result would carry no noise, and one person could be "
        "read from it. As an aggregate most of them exist, with noise.",
    ),
    (
        "Depend on other rows",
        "The value in a row depends on its neighbours, so adding one person would change what the "
        "rows of others hold, without limit.",
    ),
    (
        "Change the number of rows",
        "A column has one value for each row. What changes the number of rows is a matter of the "
        "frame, whose verbs say what they do to one person's rows.",
    ),
    (
        "Run Python, or code that Polars does not show",
        "Nobody can tell what such a function does to a row, or to others.",
    ),
)
_CODE = re.compile(r"^((?=.*\w)(?:.*\(.*\)|[\w.]+\.\w+|dp_\*?|bin_intervals|cut))(?=[,;.]?$)")


@dataclass(frozen=True)
class Outcome:
    """What became of one method: its rule where it has one, else why it has none."""

    name: str
    rule: str | None = None
    reason: int | None = None
    remedy: str = ""

    @property
    def status(self) -> str:
        if self.rule is not None:
            return "supported"
        return "not yet" if self.reason is None else "never"


@cache
def outcomes() -> tuple[Outcome, ...]:
    """Of all methods of expressions that the installed Polars has."""
    found = []
    for name in methods():
        expression = _called(name)
        if expression is not None:
            found.append(_outcome(name, expression))
    return tuple(found)


def methods() -> Iterator[str]:
    """All that the installed Polars has for expressions, by namespace."""
    for space in RECEIVERS:
        if space and not hasattr(pl.Expr, space):
            continue
        owner = type(getattr(pl.col("a"), space)) if space else pl.Expr
        for name in _public(owner):
            if space or not (name in _NO_OPERATION or name.startswith(_OWN)):
                yield f"{space}.{name}" if space else name
    for name in _public(pl):
        function = getattr(pl, name)
        if (inspect.isfunction(function) and _gives_expression(function)) or name == "col":
            yield f"pl.{name}"


def _public(owner: Any) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_")]


def _gives_expression(function: Any) -> bool:
    return re.search(r"\bExpr\b", str(inspect.signature(function).return_annotation)) is not None


def _called(name: str) -> pl.Expr | None:
    """The method's call; None where this Polars calls it otherwise."""
    space, _, method = name.rpartition(".")
    call = CALLS.get(name, f"{RECEIVERS.get(space, space)}.{method}()")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = eval(call, dict(NAMES))
        except (AttributeError, TypeError):
            return None
    return made if isinstance(made, pl.Expr) else None


def _outcome(name: str, expression: pl.Expr) -> Outcome:
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=SCHEMA), unit=dp.Rows())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            frame.with_columns(expression.name.keep() if name == "pl.all" else expression)
        except dp.DPFrameError as refusal:
            reason = next((i for i, why in enumerate(NEVER) if why in refusal.what), None)
            return Outcome(name, None, _SEEN_BY.get(name, reason), refusal.remedy or "")
        tree = read(expression, SCHEMA)[0].tree
    match tree:
        case Call(op):
            return Outcome(name, BY_NAME[op.name].summary)
        case Literal():
            return Outcome(name, "A constant.")
        case Column():
            return Outcome(name, "Chooses or names columns; values stay as they are.")


def supported() -> str | None:
    """A table for each namespace: what there is a rule for."""
    if not CURRENT:
        return None
    parts = []
    for space, title in _TITLES.items():
        mine = [o for o in _of(space) if o.status == "supported"]
        if mine:
            rows = [f"| `{o.name}` | {_cell(o.rule or '')} |" for o in mine]
            parts.append(_table(f"### {title}", ("method", "what it gives here"), rows))
    return "\n\n".join(parts)


def not_yet() -> str | None:
    """A table for each namespace: what is row-wise, or might be, and has no rule so far."""
    if not CURRENT:
        return None
    rows = []
    for space, title in _TITLES.items():
        mine = [o.name for o in _of(space) if o.status == "not yet"]
        if mine:
            rows.append(f"| {title} | {_names(mine)} |")
    known = [o for o in outcomes() if o.status == "not yet" and "supported expr" not in o.remedy]
    table = _table("", ("where", "not yet"), rows)
    return table + "\n\n" + _by_remedy([(o.name, o.remedy) for o in known])


def never() -> str | None:
    """A table for each reason that no rule could remove."""
    if not CURRENT:
        return None
    parts = []
    for i, (title, why) in enumerate(_WHY):
        mine = [(o.name, o.remedy) for o in outcomes() if o.reason == i]
        parts.append(f"### {title}\n\n{why}\n")
        parts.append(_by_remedy(mine) + "\n")
    return "\n".join(parts).rstrip("\n")


def frames() -> str:
    """What a private frame and its group-by have."""
    rows = []
    for owner, written in ((dp.PrivateFrame, ""), (dp.PrivateGroupBy, "group_by(...).")):
        for name in _public(owner):
            if owner is dp.PrivateFrame or not hasattr(dp.PrivateFrame, name) or name == "agg":
                rows.append(f"| `{written}{name}` | {_cell(_first_words(owner, name))} |")
    return _table("", ("method", "what it does"), rows)


def _first_words(owner: Any, name: str) -> str:
    """What the docstring says first; for shortcuts, that of the dp expression."""
    short = getattr(dp, name.removeprefix(_OWN), None) if name.startswith(_OWN) else None
    said = inspect.getdoc(short or inspect.getattr_static(owner, name)) or ""
    return said.split("\n\n")[0].replace("\n", " ")


def frames_refused() -> str:
    """What frames and group-bys of Polars have, and private ones do not."""
    hints = {
        **{name: FRAME_HINTS[name] for name in sorted(FRAME_HINTS)},
        **{f"group_by(...).{name}": GROUP_HINTS[name] for name in sorted(GROUP_HINTS)},
    }
    kinds: dict[str, list[tuple[str, str]]] = {"Never": [], "Not yet": [], "Write instead": []}
    for name, hint in hints.items():
        if hint in (RAW, MIXES):
            kinds["Never"].append((name, hint))
        else:
            kinds["Not yet" if hint == RESHAPES else "Write instead"].append((name, hint))
    return "\n\n".join(f"### {kind}\n\n{_by_remedy(mine)}" for kind, mine in kinds.items())


def _of(space: str) -> list[Outcome]:
    return [o for o in outcomes() if o.name.rpartition(".")[0] == space]


def _by_remedy(methods: Sequence[tuple[str, str]]) -> str:
    groups: dict[str, list[str]] = {}
    for name, remedy in methods:
        groups.setdefault(remedy, []).append(name)
    rows = [f"| {_names(names)} | {_code(remedy)} |" for remedy, names in groups.items()]
    return _table("", ("refused", "instead"), rows)


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _code(remedy: str) -> str:
    """A remedy, with what is code as code."""
    words: list[str] = []
    for word in remedy.replace("\n", "; or ").split(" "):
        if words and words[-1].count("(") > words[-1].count(")"):
            words[-1] += f" {word}"
        else:
            words.append(word)
    return _cell(" ".join(_CODE.sub(r"`\1`", word) for word in words))


def _table(title: str, columns: tuple[str, str], rows: Sequence[str]) -> str:
    head = [f"| {columns[0]} | {columns[1]} |", "| --- | --- |"]
    return "\n".join([*([title, ""] if title else []), *head, *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
