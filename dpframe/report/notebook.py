"""What notebooks show of frames, queries, sessions and releases: nothing private, no scripts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Protocol

import polars as pl

from dpframe.aggregates.aggregate import Query
from dpframe.core.budget import Budget
from dpframe.core.dtypes import Domain, DType
from dpframe.core.exact import nearest, show
from dpframe.core.interval import EVERYTHING
from dpframe.core.tree import Literal, shorten
from dpframe.errors import LedgerError
from dpframe.frames.definition import definition
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.report.html import (
    bar,
    code,
    escaped,
    fragment,
    head,
    line,
    listed,
    named,
    numbered,
    opening,
    quiet,
    remark,
    row,
    table,
    title,
)
from dpframe.report.numbers import released_table
from dpframe.report.plan import Plan
from dpframe.rows.constants import literal_words

# What is known of a frame and its columns, in words; from facts alone, without data.

_FEW = 6
_EPOCH = datetime(1970, 1, 1)


def frame_words(relation: Relation) -> str:
    """Whom a frame protects, and what is known of its columns."""
    lines = [f"{relation.name}: protects {relation.facts.unit.whom()}"]
    lines += [f"  {name}: {domain_words(found)}" for name, found in relation.facts.columns.items()]
    return "\n".join(lines)


def domain_words(domain: Domain) -> str:
    """The facts about a column on one line."""
    limits = limits_words(domain)
    return f"{domain.dtype}, {limits}" if limits else str(domain.dtype)


def limits_words(domain: Domain, *, declared: bool = False) -> str:
    """The known facts except the type. A `declared` column lists them in full for fingerprints."""
    parts = []
    interval, dtype = domain.interval, domain.dtype
    if interval != EVERYTHING and dtype.is_ordered and not dtype.is_boolean:
        lo, hi = (
            None if end is None else _end_words(end, dtype) for end in (interval.lo, interval.hi)
        )
        both = f"at least {lo}" if hi is None else f"at most {hi}" if lo is None else ""
        parts.append("any value" if lo is hi is None else both or f"in [{lo}, {hi}]")
    listed = domain.categories
    if listed is not None and not dtype.is_boolean and not (declared and dtype.name == "Enum"):
        shown = ", ".join(literal_words(Literal(c, dtype)) for c in listed[:_FEW])
        more = f" and {len(listed) - _FEW} more" if len(listed) > _FEW else ""
        if more and declared:  # elsewhere it follows from what was declared, and from the steps
            text = json.dumps(definition(listed), ensure_ascii=True)
            more += f" (all of SHA-256 {hashlib.sha256(text.encode()).hexdigest()})"
        parts.append(f"one of {shown}{more}")
    if not domain.nullable:
        parts.append("not null")
    if dtype.is_float and not domain.nan:
        parts.append("not NaN")
    return ", ".join(parts)


def _end_words(end: Fraction, dtype: DType) -> str:
    """An end of an interval as people write values of the type."""
    try:
        match dtype.name:
            case "Date":
                return (_EPOCH + timedelta(days=int(end))).date().isoformat()
            case "Datetime":
                zone = "Z" if dtype.zone else ""
                return f"{_EPOCH + _span(end, dtype)}{zone}"
            case "Duration":
                return str(_span(end, dtype))
            case "Time":
                return str((_EPOCH + timedelta(microseconds=int(end / 1000))).time())
    except (OverflowError, ValueError):
        return f"{show(end)} units"
    return show(end)


def _span(end: Fraction, dtype: DType) -> timedelta:
    return timedelta(microseconds=int(end * 10**6 / dtype.units_per_second))


_ROWS = 20
_CHARGES = 5
_LONGEST = 200


class Account(Protocol):
    """What a session has, has spent, and was charged for. Each may raise `LedgerError`."""

    @property
    def budget(self) -> Budget: ...
    @property
    def spent(self) -> Budget: ...
    @property
    def remaining(self) -> Budget: ...
    @property
    def history(self) -> pl.DataFrame: ...


def frame_html(relation: Relation) -> str:
    """A private frame: whom it protects, its columns, and what was done to it."""
    columns = []
    for name, domain in relation.facts.columns.items():
        words = quiet(limits_words(domain))
        columns.append(row((named(name), code(str(domain.dtype)), words)))
    return fragment(
        head("Private frame", relation.name, _protected(relation)),
        table(("column", "type", "known without data"), columns),
        *_steps(relation),
        remark("Rows are never shown: aggregate with dp expressions, such as .dp_count()."),
    )


def groups_html(relation: Relation, groups: Groups) -> str:
    """A private frame that is grouped."""
    keys = "" if groups.discovered else f"<p>{quiet(f'keys: {groups.list_keys()}')}</p>"
    return fragment(
        head("Groups of", relation.name, _protected(relation)),
        f"<p>{code(groups.words())} {line(groups.origin)}</p>{keys}",
        *_steps(relation),
        remark("Aggregate with .agg(...) and dp expressions."),
    )


def query_html(query: Query, bound: bool) -> str:
    """A query that has not run: its outputs, groups and rows."""
    relation, groups = query.relation, query.groups
    outputs = [row((named(output.name), code(output.words))) for output in query.outputs]
    pieces = [
        head("Private query of", relation.name, _protected(relation)),
        table(("output", "asked for"), outputs),
    ]
    if groups is not None:
        pieces += [title("groups"), f"<p>{code(groups.words())} {line(groups.origin)}</p>"]
    run = ".explain(epsilon=...) says" if bound else "session.plan(query, epsilon=...) says"
    hint = f"Nothing has run. {run} what it would do and cost."
    return fragment(*pieces, *_steps(relation), remark(hint))


def _protected(relation: Relation) -> str:
    return f"protects {relation.facts.unit.whom()}"


def _steps(relation: Relation) -> tuple[str, ...]:
    words = [code(step.words()) for step, _ in relation.steps]
    return (title("rows"), numbered(words)) if words else ()


def session_html(session: Account, name: str | None, where: str) -> str:
    """A session: what is spent and what is left, and the last charges."""
    first = head("Session", name or "", where)
    try:
        spent, left = session.spent, session.remaining
        whole = spent + left
        share = nearest(spent.main / whole.main) if whole.main else 0.0
        rows = [
            row((what, escaped(budget.words()), quiet(budget.guarantee)))
            for what, budget in (("spent", spent), ("left", left), ("budget", session.budget))
        ]
        return fragment(
            first,
            bar([("used", share)], f"{share:.0%} of the budget is spent"),
            table(("", "amount", "measure"), rows),
            *_charges(session.history),
        )
    except LedgerError as error:
        return fragment(first, f'<div class="dpf-warn" role="note">{line(error.what)}</div>')


def _charges(history: pl.DataFrame) -> tuple[str, ...]:
    """The last charges, the newest first."""
    if history.is_empty():
        return (remark("Nothing was charged so far."),)
    last = history.tail(_CHARGES).reverse()
    rows = []
    for charge in last.iter_rows(named=True):
        currency = "epsilon" if charge["rho"] is None else "rho"
        amount = f"{currency} {show(charge[currency])}"
        amount += f", delta {show(charge['delta'])}" if charge["delta"] else ""
        time = f"{charge['time']:%Y-%m-%d %H:%M:%S} UTC"
        rows.append(
            row((time, code(charge["fingerprint"][:12]), escaped(amount), charge["status"]))
        )
    some = history.height > _CHARGES
    shown = f"last {_CHARGES} of {history.height} charges" if some else "charges"
    return title(shown), table(("time", "plan", "amount", "status"), rows)


def release_html(
    # `frame`, `cost`: the result, and what was charged.
    frame: pl.DataFrame,
    # `plan`, `own_plan`: the plan, and its part that is about this result.
    plan: Plan,
    own_plan: Plan,
    cost: Budget,
    query: int | None = None,  # The number of the query that it answers, where several had one plan
    # `said`, `warnings`: a remark about it, and the sentences of its warnings.
    said: str = "",
    warnings: Sequence[str] = (),
) -> str:
    """A released result, which is public, with what it cost."""
    shared = "" if query is None else f", shared: query {query} of {len(plan.queries)}"
    paid = f"cost {cost.words()} ({cost.guarantee}){shared}; fingerprint {plan.fingerprint[:12]}"
    doubts = listed(line(each) for each in warnings)
    shown, more = released_table(frame.head(_ROWS), own_plan), frame.height - _ROWS
    names = list(shown.columns)
    numeric = [place for place, name in enumerate(names) if name in shown.numbers]
    cells = zip(*shown.columns.values(), strict=True)
    null = quiet("null")
    rows = [
        row([null if t is None else line(shorten(t, _LONGEST)) for t in each], numeric)
        for each in cells
    ]
    return fragment(
        head("Release of", own_plan.source, paid),
        remark(said) if said else "",
        f'<div class="dpf-warn" role="note">{doubts}</div>' if doubts else "",
        table(names, rows, numeric)
        + (remark(f"and {more:,} more rows") if more > 0 else "")
        + (remark(shown.note) if shown.note else ""),
        opening(quiet("the plan it came from"), plan._repr_html_()),
    )


def release_page(title: str, inside: str) -> str:
    """A release as a page of its own, which loads nothing."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escaped(title)}</title>\n"
        "<style>body{margin:1rem auto;max-width:72rem;padding:0 1rem}\n"
        "h1{font:600 1.3rem system-ui,sans-serif}</style>\n"
        f"</head>\n<body>\n<main>\n<h1>{line(title)}</h1>\n{inside}\n</main>\n</body>\n</html>\n"
    )
