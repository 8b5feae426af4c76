"""The findings of an audit next to the claims of the plan."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from dpframe.report.plots.theme import BAR, INK, MARK, WIDTH, altair, data, finished, shown


def plot_audit(curve: pl.DataFrame, claimed: float, proved: float, delta: float, runs: int) -> Any:
    """How often events happened on either frame, below the line that the claim draws.

    Parameters
    ----------
    curve
        As `Audit.curve` has it.
    claimed, proved, delta, runs
        As of `Audit`.
    """
    alt = altair()
    axis = alt.Axis(format=".0%", tickCount=5)
    scale = alt.Scale(domain=[0, 1])
    x = alt.X("other:Q", title="probability on the other frame", axis=axis, scale=scale)
    y = alt.Y("likelier:Q", title="probability on one frame", axis=axis, scale=scale)
    lines = []
    for epsilon, colour, dash in ((claimed, INK, [1, 0]), (proved, MARK, [5, 3])):
        limit = alt.Chart(data(_limit(epsilon, delta)))
        lines.append(limit.mark_line(color=colour, strokeDash=dash, strokeWidth=2).encode(x=x, y=y))
    above = alt.Chart(data(_limit(claimed, delta)))
    forbidden = above.mark_area(color=INK, opacity=0.12).encode(x=x, y=y, y2=alt.Y2Datum(1.0))
    tooltip = [
        alt.Tooltip("likelier:Q", title="on one frame", format=".2%"),
        alt.Tooltip("other:Q", title="on the other", format=".2%"),
    ]
    seen = (
        alt.Chart(data(curve.to_dicts()))
        .mark_point(color=BAR, filled=True, size=22, opacity=0.8)
        .encode(x=x, y=y, tooltip=tooltip)
    )
    at = f" at delta {shown(delta)}" if delta else ""
    notes = [
        f"points: events among half of {runs:,} runs on each of two worst-case frames",
        f"grey line: epsilon {shown(claimed)} as claimed{at}; what it forbids is shaded",
        f"orange line: epsilon {shown(proved)}, the least that the runs prove",
    ]
    layers = alt.layer(forbidden, *lines, seen).properties(width=WIDTH, height=WIDTH)
    return finished(layers, "Audit of a plan", notes)


def _limit(epsilon: float, delta: float) -> list[dict[str, float]]:
    """The most that (epsilon, delta) allows on one frame, by the probability on the other: both
    exp(epsilon) q + delta and 1 - exp(-epsilon) (1 - q - delta).
    """
    corner = (1 - delta) / (1 + math.exp(epsilon))
    points = sorted({i / 100 for i in range(101)} | {corner, corner / 2, corner / 4})
    grow, shrink = math.exp(min(epsilon, 700.0)), math.exp(-epsilon)
    return [
        {"other": q, "likelier": min(1.0, grow * q + delta, 1 - shrink * (1 - q - delta))}
        for q in points
    ]
