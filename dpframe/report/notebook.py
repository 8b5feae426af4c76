"""What notebooks show of frames, queries, sessions and releases: nothing private, no scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import polars as pl

from dpframe.aggregates.query import Query
from dpframe.core.budget import Budget
from dpframe.core.exact import nearest, show
from dpframe.core.visible import shortened
from dpframe.errors import LedgerError
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.report.columns import known_columns
from dpframe.report.markup import (
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
from dpframe.report.plan import Plan
from dpframe.report.released import released_table

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
    return fragment(
        head("Private frame", relation.name, _protected(relation)),
        _columns(relation),
        *_steps(relation),
        remark("Rows are never shown: aggregate with dp expressions, such as .dp_count()."),
    )


def groups_html(relation: Relation, groups: Groups) -> str:
    """A private frame that is grouped."""
    keys = "" if groups.discovered else f"<p>{quiet(f'keys: {groups.listed()}')}</p>"
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


def _columns(relation: Relation) -> str:
    made = (
        row((named(name), code(dtype), quiet(known)))
        for name, dtype, known in known_columns(relation)
    )
    return table(("column", "type", "known without data"), made)


def _steps(relation: Relation) -> tuple[str, ...]:
    words = [code(step.words()) for step, _ in relation.steps]
    return (title("rows"), numbered(words)) if words else ()


def session_html(session: Account, name: str | None, where: str) -> str:
    """A session: what is spent and what is left, and the last charges."""
    first = head("Session", name or "", where)
    try:
        return fragment(first, *_account(session), *_charges(session.history))
    except LedgerError as error:
        return fragment(first, f'<div class="dpf-warn" role="note">{line(error.what)}</div>')


def _account(session: Account) -> Iterable[str]:
    spent, left = session.spent, session.remaining
    whole = spent + left
    share = nearest(spent.main / whole.main) if whole.main else 0.0
    yield bar([("used", share)], f"{share:.0%} of the budget is spent")
    rows = [("spent", spent), ("left", left), ("budget", session.budget)]
    amounts = (row((what, *_amounts(amount))) for what, amount in rows)
    yield table(("", "amount", "measure"), amounts)


def _amounts(budget: Budget) -> tuple[str, str]:
    return escaped(budget.words()), quiet(budget.guarantee)


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
    frame: pl.DataFrame,
    plan: Plan,
    own_plan: Plan,
    cost: Budget,
    query: int | None = None,
    said: str = "",
    warnings: Sequence[str] = (),
) -> str:
    """A released result, which is public, with what it cost.

    Parameters
    ----------
    frame, cost
        The result, and what was charged.
    plan, own_plan
        The plan, and its part that is about this result.
    query
        The number of the query that it answers, where several had one plan.
    said, warnings
        A remark about it, and the sentences of its warnings.
    """
    shared = "" if query is None else f", shared: query {query} of {len(plan.queries)}"
    paid = f"cost {cost.words()} ({cost.guarantee}){shared}; fingerprint {plan.fingerprint[:12]}"
    doubts = listed(line(each) for each in warnings)
    return fragment(
        head("Release of", own_plan.source, paid),
        remark(said) if said else "",
        f'<div class="dpf-warn" role="note">{doubts}</div>' if doubts else "",
        _released(frame, own_plan),
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


def _released(frame: pl.DataFrame, plan: Plan) -> str:
    """The first rows of a released frame."""
    shown = released_table(frame.head(_ROWS), plan)
    names = list(shown.columns)
    numeric = [place for place, name in enumerate(names) if name in shown.numbers]
    cells = zip(*shown.columns.values(), strict=True)
    rows = (row(map(_cell, each), numeric) for each in cells)
    more = frame.height - _ROWS
    rest = remark(f"and {more:,} more rows") if more > 0 else ""
    return table(names, rows, numeric) + rest + (remark(shown.note) if shown.note else "")


def _cell(text: str | None) -> str:
    return quiet("null") if text is None else line(shortened(text, _LONGEST))
