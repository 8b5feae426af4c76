"""Charts of groups in an order: lines over time, tables of two keys, distribution functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.report.plots.theme import BAR, INK, MARK, ROW, WIDTH, altair, data, plain

MOST_LINES = 10
_MOST_WORDS = 150
_COLOURS = ["#5b8fc9", "#d9822b", "#4f9d69", "#a06fc0", "#c2575b", "#8c7b4f", "#3fa3a8", "#b05f94"]
_LIGHT, _DARK = "#dfe9f5", "#10243d"


def over_time(rows: pl.DataFrame, time: str, value: str, series: str | None) -> Any:
    """A line through all groups in the order of their time, in a band that is their intervals.

    Parameters
    ----------
    rows
        `time`, `value`, `low`, `high`, and `series` where there are several lines. Times may be
        whole numbers, such as hours.
    time, value
        What the axes are called.
    series
        The labels that distinguish lines.
    """
    alt = altair()
    known = rows.drop_nulls("time").sort("time")
    if rows.schema["time"].is_integer():
        axis, scale = alt.Axis(format="d", tickMinStep=1), alt.Scale(zero=False, nice=False)
        number = alt.X("time:Q", title=plain(time), axis=axis, scale=scale)
        told = [alt.Tooltip("time:Q", title=plain(time), format="d"), *_numbers()]
        whole = alt.Chart(data(known.to_dicts()))
        return _lines(whole, number, rows.schema, value, series, told, "linear")
    local = pl.col("time")
    if isinstance(rows.schema["time"], pl.Datetime):
        local = local.dt.replace_time_zone(None)
    text = local.cast(pl.Datetime("us")).dt.strftime("%Y-%m-%dT%H:%M:%S")
    base = alt.Chart(data(known.with_columns(text).to_dicts()))
    x = alt.X("time:T", title=plain(time), axis=alt.Axis(labelOverlap=True, tickCount=6))
    form = "%Y-%m-%d" if rows.schema["time"] == pl.Date else "%Y-%m-%d %H:%M"
    tooltip = [alt.Tooltip("time:T", title=plain(time), format=form), *_numbers()]
    return _lines(base, x, rows.schema, value, series, tooltip, "linear")


def distribution(rows: pl.DataFrame, name: str, value: str, series: str | None) -> Any:
    """Steps up at each edge, in a band that is the intervals there.

    Parameters
    ----------
    rows
        `edge`, `value`, `low`, `high`, and `series` where there are several lines.
    name, value
        What the axes are called.
    series
        The labels that distinguish lines.
    """
    alt = altair()
    base = alt.Chart(data(rows.sort("edge").to_dicts()))
    x = alt.X("edge:Q", title=plain(f"{name}, up to"), scale=alt.Scale(zero=False, nice=False))
    tooltip = [alt.Tooltip("edge:Q", title=plain(f"{name}, up to")), *_numbers()]
    return _lines(base, x, rows.schema, value, series, tooltip, "step-after")


def _lines(
    base: Any, x: Any, schema: pl.Schema, value: str, series: str | None, tooltip: Any, way: str
) -> Any:
    alt = altair()
    colour: Any = alt.value(BAR)
    if series is not None:
        scale = alt.Scale(range=_COLOURS)
        legend = alt.Legend(symbolOpacity=1)
        colour = alt.Color("series:N", title=plain(series), sort=None, scale=scale, legend=legend)
        tooltip = [alt.Tooltip("series:N", title=plain(series)), *tooltip]
    y = alt.Y("value:Q", title=plain(value), scale=alt.Scale(zero=False, nice=True))
    band = (
        base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_area(opacity=0.25, interpolate=way)
        .encode(x=x, y=alt.Y("low:Q", title=plain(value)), y2="high:Q", color=colour)
    )
    line = base.mark_line(strokeWidth=2, interpolate=way).encode(x=x, y=y, color=colour)
    points = base.mark_point(filled=True, size=18, opacity=1).encode(
        x=x, y=y, color=colour, tooltip=tooltip
    )
    return alt.layer(band, line, points).properties(width=WIDTH, height=240)


def cells(rows: pl.DataFrame, keys: Sequence[str], value: str) -> Any:
    """A cell for each pair of keys, darker where the number is larger, with the number in it.

    Parameters
    ----------
    rows
        `first` and `second`, which are texts, `value`, `low`, `high`.
    keys
        What the two are called; the first goes downwards.
    value
        What the numbers are.
    """
    alt = altair()
    base = alt.Chart(data(rows.select("first", "second", "value", "low", "high").to_dicts()))
    across = alt.X("second:N", sort=None, title=plain(keys[1]), axis=alt.Axis(labelAngle=-40))
    down = alt.Y("first:N", sort=None, title=plain(keys[0]))
    names = [
        alt.Tooltip(f"{c}:N", title=plain(k))
        for c, k in zip(("first", "second"), keys, strict=True)
    ]
    scale = alt.Scale(range=[_LIGHT, _DARK])
    squares = base.mark_rect().encode(
        x=across,
        y=down,
        color=alt.Color("value:Q", title=plain(value), scale=scale),
        tooltip=[*names, *_numbers()],
    )
    width, height = (rows[c].n_unique() for c in ("second", "first"))
    layers = [squares]
    if width * height <= _MOST_WORDS:
        values = rows["value"].drop_nulls().drop_nans()
        least, most = (0.0, 0.0) if values.is_empty() else (values.min(), values.max())
        pale = f"isValid(datum.value) && datum.value > {(least + most) / 2!r}"  # type: ignore[operator]
        layers.append(
            base.mark_text(fontSize=11).encode(
                x=across,
                y=down,
                text=alt.Text("value:Q", format=_cell_format(values)),
                color=alt.condition(pale, alt.value(_LIGHT), alt.value(_DARK)),
            )
        )
    size = {"width": max(WIDTH, 24 * width), "height": max(4 * ROW, (ROW + 6) * height)}
    return alt.layer(*layers).properties(**size)


def _cell_format(values: pl.Series) -> str:
    """Numbers of cells in all their digits before the point, and about three in all."""
    size = max((abs(float(v)) for v in values.to_list()), default=0.0)
    if size >= 1e9:
        return ".3~s"
    return ",.0f" if size >= 100 else ",.1f" if size >= 10 else ",.3~f"


def before_and_after(rows: pl.DataFrame, value: str) -> Any:
    """For each group the plain result (a tick) and where released ones lie: 90% of runs, a line,
    and their median, a point.

    Parameters
    ----------
    rows
        `group`, `plain`, `p05`, `p50`, `p95`.
    value
        What the numbers are.
    """
    alt = altair()
    base = alt.Chart(data(rows.select("group", "plain", "p05", "p50", "p95").to_dicts()))
    x = alt.X("p05:Q", title=plain(value), scale=alt.Scale(zero=False, nice=True))
    y = alt.Y("group:N", sort=None, title=None)
    words = {"plain": "before", "p05": "5%", "p50": "after, median", "p95": "95%"}
    tooltip = [
        alt.Tooltip("group:N"),
        *(alt.Tooltip(f"{n}:Q", title=t, format=",.6~g") for n, t in words.items()),
    ]
    after = base.mark_rule(color=BAR, strokeWidth=5, opacity=0.55).encode(
        x=x, x2="p95:Q", y=y, tooltip=tooltip
    )
    middle = base.mark_point(color=BAR, filled=True, size=40, opacity=1).encode(
        x="p50:Q", y=y, tooltip=tooltip
    )
    before = base.mark_tick(color=MARK, thickness=3, size=ROW - 4).encode(
        x="plain:Q", y=y, tooltip=tooltip
    )
    zero = alt.Chart(data([{"zero": 0}])).mark_rule(color=INK, strokeWidth=1)
    layers = [after, middle, before]
    ends = rows.select(
        pl.min_horizontal("plain", "p05").min(), b=pl.max_horizontal("plain", "p95").max()
    )
    low, high = ends.row(0)
    if low is not None and low <= 0 <= high:
        layers.insert(0, zero.encode(x="zero:Q"))
    return alt.layer(*layers).properties(width=WIDTH, height=max(2 * ROW, ROW * rows.height))


def _numbers() -> list[Any]:
    alt = altair()
    return [alt.Tooltip(f"{name}:Q", format=",.6~g") for name in ("value", "low", "high")]
