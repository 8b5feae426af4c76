"""How a budget was spent over time."""

from __future__ import annotations

from typing import Any

import polars as pl

from dpframe.core.exact import show
from dpframe.report.plots.theme import BAR, INK, MARK, WIDTH, altair, data, finished, shown

_MOST = 1000


def plot_budget(history: pl.DataFrame, main: str, budget: float, name: str | None) -> Any:
    """Steps of what was spent in all, below the budget.

    Parameters
    ----------
    history
        One row per charge, in order, as `Session.history` has it.
    main
        ``"epsilon"`` or ``"rho"``: the column that is added up.
    budget
        All that may be spent of it.
    name
        What the session is called.
    """
    spent = history.select(
        pl.col("time").dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"),
        pl.col(main).alias("charge"),
        pl.col(main).cum_sum().alias("spent"),
        "status",
        pl.col("fingerprint").str.head(12).alias("plan"),
    )
    total = float(history[main].sum())
    notes = [f"{shown(total)} of {shown(budget)} spent in {_charges(history.height)}"]
    if history["delta"].sum():
        notes.append(f"and delta {show(float(history['delta'].sum()), 3)}")
    label = "" if name is None else f" of {name!r}"
    chart = _chart(_thinned(spent).to_dicts(), main, budget)
    return finished(chart, f"Budget{label} over time", notes)


def _charges(number: int) -> str:
    return "1 charge" if number == 1 else f"{number:,} charges"


def _thinned(spent: pl.DataFrame) -> pl.DataFrame:
    """At most this many points, the last among them: of steps that small no eye sees one."""
    if spent.height <= _MOST:
        return spent
    every = -(-spent.height // _MOST)
    return pl.concat([spent[:-1].gather_every(every), spent[-1:]])


def _chart(rows: list[dict[str, Any]], main: str, budget: float) -> Any:
    alt = altair()
    scale = alt.Scale(domain=[0, budget * 1.08], nice=False)
    y = alt.Y("spent:Q", title=f"{main} spent in all", scale=scale)
    line = alt.Chart(data([{"budget": budget, "label": f"budget {shown(budget)}"}]))
    limit = line.mark_rule(color=MARK, strokeDash=[6, 4], strokeWidth=2).encode(
        y=alt.Y("budget:Q", scale=scale, title=f"{main} spent in all")
    )
    words = line.mark_text(align="left", dy=-8, dx=4, color=MARK, fontSize=12).encode(
        x=alt.value(0), y=alt.Y("budget:Q", scale=scale), text="label:N"
    )
    if not rows:
        return alt.layer(limit, words).properties(width=WIDTH, height=220)
    start = [{"time": rows[0]["time"], "spent": 0.0}]
    one_day = rows[0]["time"][:10] == rows[-1]["time"][:10]
    form = "%H:%M:%S" if one_day else "%Y-%m-%d"
    axis = alt.Axis(labelOverlap=True, tickCount=5, format=form)
    x = alt.X("time:T", title=f"time, on {rows[0]['time'][:10]}" if one_day else "time", axis=axis)
    steps = (
        alt.Chart(data([*start, *rows]))
        .mark_line(interpolate="step-after", color=BAR, strokeWidth=3)
        .encode(x=x, y=y)
    )
    points = _points(rows, main, x, y)
    return alt.layer(steps, limit, words, points).properties(width=WIDTH, height=220)


def _points(rows: list[dict[str, Any]], main: str, x: Any, y: Any) -> Any:
    """One for each charge, by what became of it."""
    alt = altair()
    known = ["charged", "released", "failed"]
    colour = alt.Color(
        "status:N", title="charge", scale=alt.Scale(domain=known, range=[INK, BAR, MARK])
    )
    return (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=45, opacity=1)
        .encode(
            x=x,
            y=y,
            color=colour,
            tooltip=[
                alt.Tooltip("time:T", format="%Y-%m-%d %H:%M:%S"),
                alt.Tooltip("charge:Q", title=f"{main} charged", format=",.6g"),
                alt.Tooltip("spent:Q", title="spent in all", format=",.6g"),
                alt.Tooltip("status:N"),
                alt.Tooltip("plan:N", title="plan"),
            ],
        )
    )
