"""The errors that a plan says its outputs will have, before anything is run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpframe.core.exact import Number, as_given
from dpframe.errors import InvalidBounds, UnknownColumn, UnsupportedOperation
from dpframe.plan import PlanData
from dpframe.report.plots.theme import (
    BAR,
    MARK,
    WIDTH,
    altair,
    data,
    finished,
    only_first,
    plain,
    shown,
)
from dpframe.rows.suggest import did_you_mean

_MOST = 20


def plot_plan(
    plan: PlanData, guess: Mapping[str, float] | None, count: float | None, confidence: Number
) -> Any:
    """One row per output: a guess of its value, and how far a release may be from it."""
    guesses = _checked(plan, {} if guess is None else guess)
    if count is None:
        count = _count_among(plan, guesses)
    rows, notes = [], []
    names = [output.name for output in plan.outputs]
    for name in names[:_MOST]:
        try:
            error = plan.accuracy(name, confidence, count=count, guess=guesses.get(name))
        except UnsupportedOperation as reason:
            notes.append(f"{name}: {reason.what}")
            continue
        if _is_selection(plan, name):
            notes.append(
                f"{name}: the score of what is chosen is within {shown(error)} of the best"
            )
            continue
        rows.append(_row(name, guesses.get(name), error))
    if not rows:
        raise UnsupportedOperation(
            "no output of the plan has an error in its own units",
            where="plan.plot()",
            remedy=("read plan.explain()", "simulate the query on public data"),
        )
    notes += only_first(len(names), _MOST, "outputs")
    notes.append(f"of one group, with {100 * float(confidence):.4g}% confidence")
    return finished(_chart(rows), f"Errors that the plan of {plan.source!r} will have", notes)


def _chart(rows: list[dict[str, Any]]) -> Any:
    alt = altair()
    base = alt.Chart(data(rows))
    scale = alt.Scale(zero=False, nice=True, padding=8)
    x = alt.X("low:Q", title="value and error", scale=scale, axis=alt.Axis(grid=False))
    tooltip = [
        alt.Tooltip("output:N"),
        alt.Tooltip("guess:Q", title="guess"),
        alt.Tooltip("error:Q", title="error", format=",.6g"),
    ]
    ends = base.mark_rule(color=MARK, strokeWidth=3, strokeCap="round").encode(
        x=x, x2="high:Q", tooltip=tooltip
    )
    points = base.mark_point(color=BAR, filled=True, size=70, opacity=1).encode(
        x="guess:Q", tooltip=tooltip
    )
    texts = base.mark_text(align="right", baseline="bottom", dy=-7, color=MARK, fontSize=12).encode(
        x=alt.value(WIDTH), y=alt.value(14), text="label:N"
    )
    layers = alt.layer(ends, points, texts).properties(width=WIDTH, height=28)
    header = alt.Header(labelAngle=0, labelAlign="left", title=None)
    order = [plain(row["output"]) for row in rows]
    faceted = layers.facet(row=alt.Row("output:N", header=header, sort=order), spacing=6)
    return faceted.resolve_scale(x="independent")


def _row(name: str, guess: float | None, error: float) -> dict[str, Any]:
    middle = 0.0 if guess is None else float(guess)
    share = f" ({shown(100 * error / abs(middle))}%)" if middle else ""
    label = f"± {shown(error)}" if guess is None else f"{shown(middle)} ± {shown(error)}{share}"
    return {
        "output": name,
        "guess": middle,
        "low": middle - error,
        "high": middle + error,
        "error": error,
        "label": label,
    }


def _checked(plan: PlanData, guess: Mapping[str, float]) -> Mapping[str, float]:
    names = [output.name for output in plan.outputs]
    for name, value in guess.items():
        if name not in names:
            raise UnknownColumn(
                f"the plan has no output {name!r}",
                where="plan.plot(guess=...)",
                remedy=did_you_mean(str(name), names),
            )
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value - value != 0:
            raise InvalidBounds(
                f"the guess for {name!r} is a finite number, not {as_given(value)}",
                where="plan.plot(guess=...)",
                remedy=f'write for example guess={{"{name}": 1000}}',
            )
    return guess


def _count_among(plan: PlanData, guesses: Mapping[str, float]) -> float | None:
    """The guess of a count of rows, which is the number of values of means."""
    counts = (r.name for r in plan.releases if r.aggregate == "count")
    return next((guesses[name] for name in counts if name in guesses), None)


def _is_selection(plan: PlanData, name: str) -> bool:
    return any(r.candidates is not None for r in plan.releases if name in r.users)
