"""The form of messages, read from the code: what is wrong, why, and at most two things to do."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import dpframe as dp
from tests.syntax import nodes_of

ROOT = Path(dp.__file__).parent
_REASONS = ("because", "; or ", "would ")
"""What tells of a reason or a third way where an action should stand."""
MOST_WITH_REASONS = 4
"""How many remedies still give one; it may only fall."""


@cache
def _sources() -> dict[Path, str]:
    """The code of the package, by file."""
    return {file: file.read_text() for file in sorted(ROOT.rglob("*.py"))}


_CLASS = re.compile(r"^ *class (\w+)\(([^)]*)\):", re.MULTILINE)


@cache
def _errors() -> set[str]:
    """The names of all error classes of the package."""
    bases = {
        name: {base.strip() for base in of.split(",")}
        for source in _sources().values()
        for name, of in _CLASS.findall(source)
    }
    known = {"DPFrameError"}
    while more := {n for n, of in bases.items() if of & known} - known:
        known |= more
    return known


def _text(node: ast.expr) -> str | None:
    """The words of a text, with ``{}`` for what is filled in; None for what is computed."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(p) or "{}" for p in parts)
        case _:
            return None


def _remedies(node: ast.expr) -> list[str]:
    """Each way that a remedy names, where it is written at the place of the error."""
    match node:
        case ast.Tuple(elts=ways):
            return [text for way in ways for text in _remedies(way)]
        case ast.IfExp(body=one, orelse=other):
            return [*_remedies(one), *_remedies(other)]
        case _:
            text = _text(node)
            return [] if text is None else [text]


@cache
def sites() -> tuple[tuple[str, ast.Call], ...]:
    """Each place of the package that makes an error."""
    names = _errors()
    made = re.compile(rf"\b(?:{'|'.join(names)})\(")
    return tuple(
        (f"{file.relative_to(ROOT)}:{node.lineno}", node)
        for file, source in _sources().items()
        if made.search(source)
        for node in nodes_of(source)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    )


def _remedy(call: ast.Call) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == "remedy"), None)


@pytest.mark.always
def test_remedies_are_actions_and_not_reasons() -> None:
    wrong = [
        f"{place}: {text}"
        for place, call in sites()
        if (remedy := _remedy(call)) is not None
        for text in _remedies(remedy)
        if any(word in text for word in _REASONS)
    ]
    assert len(wrong) <= MOST_WITH_REASONS, "\n".join(wrong)


@pytest.mark.always
def test_there_are_at_most_two_remedies() -> None:
    places = sites()
    assert len(places) > 700
    for place, call in places:
        remedy = _remedy(call)
        if isinstance(remedy, ast.Tuple):
            assert len(remedy.elts) == 2, place
        for text in [] if remedy is None else _remedies(remedy):
            assert text.count("\n") <= 1, place


_WITHOUT = {"BadInput", "NotWritten"}
"""They repeat the remedy of the error that they hold."""
MOST_WITHOUT_REMEDY = 13
"""Of documents that were edited by hand, and what no query reaches; it may only fall."""


@pytest.mark.always
def test_all_errors_say_what_to_do() -> None:
    lacking = [
        place
        for place, call in sites()
        if _remedy(call) is None and ast.unparse(call.func) not in _WITHOUT
    ]
    assert len(lacking) <= MOST_WITHOUT_REMEDY, "\n".join(lacking)


def test_a_message_has_a_line_for_each_part() -> None:
    error = dp.UnknownColumn("no", where="here", why="so", remedy=("do a", "do b"))
    assert str(error) == "no\n  in: here\n  why: so\n  instead: do a\n       or: do b"
    assert error.remedy == "do a\ndo b"
    assert str(dp.UnknownColumn("no", remedy="do a")) == "no\n  instead: do a"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("s.protect(df)", "unit=dp.Rows()"),
        ('dp.Session(epsilon=1).protect(df, unit="rows")', "unit=dp.Rows()"),
        ('dp.mean("x", 0, 9)', "(0, 9)"),
        ('dp.mean("x", lower=0, upper=9)', "bounds=(low, high)"),
        ('pl.col("x").dp_mean(upper=9)', "bounds=(low, high)"),
        ("dp.Session(epsilom=1)", "epsilon="),
        ("dp.Rows(contribution=2)", "contributions="),
        ('r.dp_count().simulate(df, epsilon=1, limits="auto")', ".limit_rows(n)"),
        ("r.dp_count().collect(epsilon=1, streaming=True)", 'engine="streaming"'),
        ("r.dp_count(mechanisn='auto')", "mechanism="),
        ('r.join(df, on="x", nulls_equal=True)', "nulls_equal"),
        ('r.join(df, on="x", validate="1:m")', 'validate="m:1"'),
        ('r.group_by("x", keys=[1], other=True)', "dp_histogram"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_name(code: str, words: str) -> None:
    import polars as pl

    df = pl.DataFrame({"x": [1, 2]})
    s = dp.Session(epsilon=1)
    names = {"s": s, "df": df, "r": s.protect(df, dp.Rows()), "dp": dp, "pl": pl}
    with pytest.raises(dp.DPFrameError) as refusal:
        eval(code, names)
    assert words in (refusal.value.remedy or "")
    assert re.search(r"[a-z_]+", refusal.value.where or "")
    assert s.spent == dp.PureDP(0)
