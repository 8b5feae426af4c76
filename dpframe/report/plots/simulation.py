"""The distribution of errors over the runs of a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.errors import UnsupportedOperation
from dpframe.report.plots.shapes import before_and_after
from dpframe.report.plots.theme import (
    BAR,
    INK,
    MARK,
    MIDDLE,
    ROW,
    WIDTH,
    altair,
    data,
    finished,
    named,
    only_first,
    panels,
)

_MOST_OUTPUTS = 12
_SPREAD = "90% of the runs (line), half (bar), the median (tick)"
_LIMITS = "diamond: the result without noise, off by clamping and limits alone"
_AFTER = "90% of the released results (line), their median (point)"
_BEFORE = "orange: the plain result, before limits and noise"
_SHARES = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}


def plot_simulation(
    results: pl.DataFrame,
    keys: Sequence[str],
    runs: int,
    *,
    relative: bool,
    most: int,
    values: bool = False,
) -> Any:
    """One panel per output, one row per group: where the errors of all runs lie.

    Parameters
    ----------
    results
        As `Simulation.results` has them.
    keys
        The columns of it that name a group or an entry.
    runs
        How often noise was drawn.
    relative, most, values
        As for `Simulation.plot`.
    """
    spread = _spread(results, keys, relative and not values)
    outputs = spread["output"].unique(maintain_order=True).to_list()
    if not outputs:
        raise UnsupportedOperation(
            "no output of the simulation has "
            + ("a relative error" if relative and not values else "errors that are numbers"),
            where="simulation.plot()",
            remedy=("plot(relative=False)", "read simulation.errors")
            if relative
            else "read simulation.errors",
        )
    notes = [_AFTER if values else _SPREAD, _BEFORE if values else _LIMITS]
    notes[0] = f"of {runs:,} runs on public data: {notes[0]}"
    charts = []
    for output in outputs[:_MOST_OUTPUTS]:
        mine = spread.filter(pl.col("output") == output)
        cut = only_first(mine.height, most, "groups", "the largest")
        notes += cut
        if cut:
            largest = pl.col("size").rank("ordinal", descending=True) <= most
            mine = mine.filter(largest)
        made = _both(mine, output) if values else _panel(mine, relative)
        charts.append(named(made, output))
    notes += only_first(len(outputs), _MOST_OUTPUTS, "outputs")
    title = "Before and after noise" if values else "Errors of a simulation"
    return finished(panels(charts), title, list(dict.fromkeys(notes)))


def _both(spread: pl.DataFrame, output: str) -> Any:
    """The plain results, and the released ones that are off by the errors."""
    shares = [(pl.col(name) + pl.col("plain")).alias(name) for name in _SHARES]
    return before_and_after(spread.with_columns(shares), output)


def _spread(results: pl.DataFrame, keys: Sequence[str], relative: bool) -> pl.DataFrame:
    """Quantiles of the error of each output and group that has any."""
    if "plain" not in results.columns:
        return pl.DataFrame(schema={"output": pl.String})
    plain = pl.col("plain")
    unit = pl.when(plain != 0).then(plain.abs()) if relative else pl.lit(1.0)
    error = (pl.col("noisy") - plain) / unit
    by = ["output", *keys]
    found = results.group_by(by, maintain_order=True).agg(
        plain.first().alias("plain"),
        plain.abs().first().alias("size"),
        ((pl.col("exact") - plain) / unit).first().alias("limits"),
        *(error.quantile(q, "linear").alias(name) for name, q in _SHARES.items()),
    )
    label = pl.concat_str(
        [pl.col(k).cast(pl.String).fill_null("null") for k in keys], separator=", "
    )
    finite = found.filter(pl.all_horizontal(pl.col(*_SHARES).is_finite().fill_null(False)))
    return finite.with_columns((label if keys else pl.lit("all rows")).alias("group"))


def _panel(spread: pl.DataFrame, relative: bool) -> Any:
    alt = altair()
    base = alt.Chart(data(spread.select("group", "limits", *_SHARES).to_dicts()))
    y = alt.Y("group:N", sort=None, title=None)
    axis = alt.Axis(format="~%") if relative else alt.Axis(format=",.4~g")
    title = "error, in % of the plain result" if relative else "error, in the output's units"
    scale = alt.Scale(zero=True, nice=True)
    x = alt.X("p05:Q", title=title, axis=axis, scale=scale)
    form = "+.3%" if relative else "+,.4~g"
    words = {"p05": "5%", "p25": "25%", "p50": "median", "p75": "75%", "p95": "95%"}
    tooltip = [
        alt.Tooltip("group:N"),
        *(alt.Tooltip(f"{name}:Q", title=words[name], format=form) for name in _SHARES),
        alt.Tooltip("limits:Q", title="without noise", format=form),
    ]
    zero = alt.Chart(data([{"zero": 0}])).mark_rule(color=INK, strokeWidth=1).encode(x="zero:Q")
    lines = base.mark_rule(color=BAR, strokeWidth=2).encode(x=x, x2="p95:Q", y=y, tooltip=tooltip)
    bars = base.mark_bar(color=BAR, size=10).encode(x="p25:Q", x2="p75:Q", y=y, tooltip=tooltip)
    ticks = base.mark_tick(color=MIDDLE, thickness=2, size=10).encode(
        x="p50:Q", y=y, tooltip=tooltip
    )
    limits = base.mark_point(shape="diamond", filled=True, color=MARK, size=60, opacity=1).encode(
        x="limits:Q", y=y, tooltip=tooltip
    )
    layers = alt.layer(zero, lines, bars, ticks, limits)
    return layers.properties(width=WIDTH, height=max(2 * ROW, ROW * spread.height))
