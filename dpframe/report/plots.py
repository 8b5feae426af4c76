"""Charts of plans, budgets, releases, simulations and audits, with Altair, an optional extra.

Charts are made of public values only: plans, ledgers, released results, simulations, audits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import polars as pl

from dpframe.core.exact import Number, show, show_input
from dpframe.core.tree import Call, Column
from dpframe.errors import InvalidBounds, UnknownColumn, UnsupportedOperation
from dpframe.plan import PlanData
from dpframe.plan.reading import named_in
from dpframe.report.numbers import ends_of, kinds_of
from dpframe.rows.suggest import did_you_mean

# What all charts have in common: Altair, colours that do on light and dark, titles and notes.

INK = "#7d7d7d"
"""Text and lines: a grey with a contrast of 4 to white and to the dark of notebooks."""
BAR = "#5b8fc9"
MARK = "#d9822b"
"""Intervals and errors: a colour that colour-blind people can distinguish from bars."""
MIDDLE = "#10243d"
"""A mark on a bar."""
WIDTH = 420
ROW = 18
"""The height of one bar, in pixels."""


class _Altair:
    """Altair, which is imported only when something is drawn, and refused if not installed."""

    def __getattr__(self, name: str) -> object:
        try:
            import altair
        except ImportError:
            raise UnsupportedOperation(
                "charts are drawn with Altair, which is not installed",
                where=".plot()",
                remedy='install it: pip install "dpframe[plot]"',
            ) from None
        return getattr(altair, name)


if TYPE_CHECKING:
    import altair as alt
else:
    alt = _Altair()

Layers: TypeAlias = "alt.LayerChart | alt.FacetChart"
Chart: TypeAlias = "alt.Chart | Layers | alt.ConcatChart | alt.VConcatChart"
"""What `.plot()` returns."""


def plain(text: str) -> str:
    """Text that looks the same and ends no script: Altair writes the names and keys of a chart into
    the script of a page as they are. A space without width follows each sign that opens a tag.
    """
    return text.replace("<", "<\u200b")


def data(rows: Iterable[Mapping[str, object]]) -> Any:
    """Rows of a chart, inside of it; encodings name their types, so nothing is guessed."""
    safe = [{k: plain(v) if isinstance(v, str) else v for k, v in row.items()} for row in rows]
    made: Any = alt.Data  # which has no types
    return made(values=safe)


def finish(chart: Chart, title: str, notes: Sequence[str] = ()) -> Chart:
    """A chart with its title, what is to be known next to it, and readable text."""
    heading = alt.Title(
        plain(title),
        subtitle=[plain(note) for note in notes],
        anchor="start",
        color=INK,
        subtitleColor=INK,
        fontSize=14,
        subtitleFontSize=12,
        offset=12,
    )
    result: Chart = (
        chart.properties(title=heading, background="transparent", padding=10)
        .configure_view(strokeOpacity=0)
        .configure_axis(
            labelColor=INK,
            titleColor=INK,
            domainColor=INK,
            tickColor=INK,
            gridColor=INK,
            gridOpacity=0.25,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            labelLimit=200,
        )
        .configure_legend(
            labelColor=INK, titleColor=INK, labelFontSize=12, titleFontSize=12, orient="bottom"
        )
        .configure_header(
            labelColor=INK, titleColor=INK, labelFontSize=13, labelFontWeight="bold", labelLimit=400
        )
    )
    kind: type = result.__class__
    object.__setattr__(result, "__class__", _offline(kind))  # Altair's own would add a property
    return result


class _Offline:
    """A chart whose saved page holds all that it needs, so that it shows without a network."""

    def save(self, fp: object, format: object = None, *args: object, **options: object) -> None:
        """As Altair's method, but with ``inline=True`` by default."""
        if "inline" not in options:
            if find_spec("vl_convert") is None:
                raise UnsupportedOperation(
                    "charts are saved with vl-convert, which is not installed",
                    where=".plot().save(...)",
                    remedy='install it: pip install "dpframe[plot]"',
                )
            page = format == "html" or (format is None and str(fp).endswith(".html"))
            options |= {"inline": True} if page else {}
        super().save(fp, format, *args, **options)  # type: ignore[misc]


@cache
def _offline(kind: type) -> type:
    """The same kind of chart, saved with all that it needs."""
    return type(kind.__name__, (_Offline, kind), {})


def panels(charts: Sequence[Chart]) -> Chart:
    """Charts below each other, each with a scale of its own."""
    if len(charts) == 1:
        return charts[0]
    made: Chart = alt.vconcat(*charts, spacing=24).resolve_scale(
        x="independent", y="independent", color="independent"
    )
    return made


def named(chart: Chart, name: str) -> Chart:
    """A chart with a small title, as one of several."""
    title = alt.Title(plain(name), anchor="start", color=INK, fontSize=13)
    return chart.properties(title=title)


def shown(number: float) -> str:
    """A number in a few digits."""
    if number == 0 or 0.001 <= abs(number) < 1e15:
        return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
    return show(number, 3)


def only_first(total: int, most: int, what: str, which: str = "the first") -> list[str]:
    """The note that says that not all are shown."""
    return [f"{which} {most} of {total:,} {what}"] if total > most else []


# Which keys are parts of times, such as hours and months: numbers with an order of their own.

_PARTS: Final = frozenset(
    f"dt_{part}"
    for part in (
        *("century", "millennium", "year", "iso_year", "quarter", "month", "week", "weekday"),
        *("day", "ordinal_day", "hour", "minute", "second"),
    )
)


def parts_of_times(plan: PlanData) -> frozenset[str]:
    """The keys that are a part of a time, as the plan's definitions say: grouped by, or computed in
    a step before.
    """
    trees = {one.name: one.tree for step in plan.steps for one in named_in(step.definition)}
    result = set[str]()
    for key in named_in(plan.grouped_by):
        tree = trees.get(key.tree.name, key.tree) if isinstance(key.tree, Column) else key.tree
        if isinstance(tree, Call) and tree.operation.name in _PARTS:
            result.add(key.name)
    return frozenset(result)


# Charts of groups in an order: lines over time, tables of two keys, distribution functions.

MOST_LINES = 10
_MOST_WORDS = 150
_COLOURS = ["#5b8fc9", "#d9822b", "#4f9d69", "#a06fc0", "#c2575b", "#8c7b4f", "#3fa3a8", "#b05f94"]
_LIGHT, _DARK = "#dfe9f5", "#10243d"


def over_time(
    # `time`, `value`, `low`, `high`, and `series` where there are several lines. Times may be whole
    # numbers, such as hours.
    rows: pl.DataFrame,
    # `time`, `value`: what the axes are called.
    time: str,
    value: str,
    series: str | None,  # The labels that distinguish lines
) -> Layers:
    """A line through all groups in the order of their time, in a band that is their intervals."""
    known = rows.drop_nulls("time").sort("time")
    if rows.schema["time"].is_integer():
        axis, scale = alt.Axis(format="d", tickMinStep=1), alt.Scale(zero=False, nice=False)
        number = alt.X("time:Q", title=plain(time), axis=axis, scale=scale)
        told = [alt.Tooltip("time:Q", title=plain(time), format="d"), *_numbers()]
        whole = alt.Chart(data(known.to_dicts()))
        return _lines(whole, number, value, series, told, "linear")
    local = pl.col("time")
    if isinstance(rows.schema["time"], pl.Datetime):
        local = local.dt.replace_time_zone(None)
    text = local.cast(pl.Datetime("us")).dt.strftime("%Y-%m-%dT%H:%M:%S")
    base = alt.Chart(data(known.with_columns(text).to_dicts()))
    x = alt.X("time:T", title=plain(time), axis=alt.Axis(labelOverlap=True, tickCount=6))
    form = "%Y-%m-%d" if rows.schema["time"] == pl.Date else "%Y-%m-%d %H:%M"
    tooltip = [alt.Tooltip("time:T", title=plain(time), format=form), *_numbers()]
    return _lines(base, x, value, series, tooltip, "linear")


def distribution(
    # `edge`, `value`, `low`, `high`, and `series` where there are several lines.
    rows: pl.DataFrame,
    # `name`, `value`: what the axes are called.
    name: str,
    value: str,
    series: str | None,  # The labels that distinguish lines
) -> Layers:
    """Steps up at each edge, in a band that is the intervals there."""
    base = alt.Chart(data(rows.sort("edge").to_dicts()))
    x = alt.X("edge:Q", title=plain(f"{name}, up to"), scale=alt.Scale(zero=False, nice=False))
    tooltip = [alt.Tooltip("edge:Q", title=plain(f"{name}, up to")), *_numbers()]
    return _lines(base, x, value, series, tooltip, "step-after")


def _lines(
    base: alt.Chart,
    x: alt.X,
    value: str,
    series: str | None,
    tooltip: list[alt.Tooltip],
    way: Literal["linear", "step-after"],
) -> Layers:
    colour: Any = alt.value(BAR)
    if series is not None:
        scale = alt.Scale(range=_COLOURS)
        legend = alt.Legend(symbolOpacity=1)
        colour = alt.Color("series:N", title=plain(series), sort=None, scale=scale, legend=legend)
        tooltip = [alt.Tooltip("series:N", title=plain(series)), *tooltip]
    y = alt.Y("value:Q", title=plain(value), scale=alt.Scale(zero=False, nice=True))
    band = (
        _known(base)
        .mark_area(opacity=0.25, interpolate=way)
        .encode(x=x, y=alt.Y("low:Q", title=plain(value)), y2="high:Q", color=colour)
    )
    line = base.mark_line(strokeWidth=2, interpolate=way).encode(x=x, y=y, color=colour)
    points = base.mark_point(filled=True, size=18, opacity=1).encode(
        x=x, y=y, color=colour, tooltip=tooltip
    )
    return alt.layer(band, line, points).properties(width=WIDTH, height=240)


def cells(
    rows: pl.DataFrame,  # `first` and `second`, which are texts, `value`, `low`, `high`
    keys: Sequence[str],  # What the two are called; the first goes downwards
    value: str,  # What the numbers are
) -> Layers:
    """A cell for each pair of keys, darker where the number is larger, with the number in it."""
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
        # all digits before the point, and about three in all
        size = max((abs(float(v)) for v in values.to_list()), default=0.0)
        digits = ",.0f" if size >= 100 else ",.1f" if size >= 10 else ",.3~f"
        layers.append(
            base.mark_text(fontSize=11).encode(
                x=across,
                y=down,
                text=alt.Text("value:Q", format=".3~s" if size >= 1e9 else digits),
                color=alt.condition(pale, alt.value(_LIGHT), alt.value(_DARK)),
            )
        )
    area = {"width": max(WIDTH, 24 * width), "height": max(4 * ROW, (ROW + 6) * height)}
    return alt.layer(*layers).properties(**area)


def before_and_after(
    rows: pl.DataFrame,  # `group`, `plain`, `p05`, `p50`, `p95`
    value: str,  # What the numbers are
) -> Layers:
    """For each group the plain result (a tick) and where released ones lie: 90% of runs, a line,
    and their median, a point.
    """
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


def _numbers() -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{name}:Q", format=",.6~g") for name in ("value", "low", "high")]


# Released results: lines over time, tables of two keys, distribution functions, bars, bins.

_MOST_OUTPUTS = 12
_MOST_FACETS = 12
_IN_CELLS = "hover over a cell to see its interval"
_TABLES = ({"histogram"}, {"cdf"})


@dataclass(frozen=True, slots=True, eq=False)
class _Bars:
    """What one panel shows."""

    name: str  # The output
    # `group`, `value`, `low` and `high`, the last two null where nothing is known; for bins `lower`
    # and `upper` as well.
    rows: pl.DataFrame
    labels: str  # What the bars are: the keys, the categories
    value: str  # What is measured
    keys: tuple[str, ...] = ()  # What groups the rows, each key in a column ``key0``, ``key1``,
    rises: bool = False  # Whether it is a distribution function
    parts: frozenset[str] = frozenset()  # The keys that are parts of times

    @property
    def has_order(self) -> bool:
        """Whether keys have an order that readers know: numbers, times, Enums and bins."""
        types = [self.rows.schema[f"key{i}"] for i in range(len(self.keys))]
        return any(dtype not in (pl.String, pl.Categorical, pl.Boolean) for dtype in types)

    def along_time(self) -> list[int]:
        """The positions of the keys that order groups along time: times before their parts."""
        types = [self.rows.schema[f"key{i}"] for i in range(len(self.keys))]
        times = [i for i, dtype in enumerate(types) if dtype in (pl.Date, pl.Datetime)]
        parts = [
            i for i, key in enumerate(self.keys) if key in self.parts and types[i].is_integer()
        ]
        return times + parts


def plot_release(frame: pl.DataFrame, plan: PlanData, most: int) -> Chart:
    """One panel per output that is a number or a histogram."""
    bars, notes = [], []
    for name in [output.name for output in plan.outputs[:_MOST_OUTPUTS]]:
        made = _bars_of(name, frame, plan)
        if made is None:
            notes.append(f"{name} is not a number and is not shown")
            continue
        if made.rows["low"].null_count() == made.rows.height:
            why = f"no interval of {name} is known: collect it with interval=0.95"
            chosen = any(r.candidates is not None for r in plan.releases if name in r.users)
            notes.append(f"{name} is chosen, and has no interval" if chosen else why)
        bars.append(made)
    if not bars:
        raise UnsupportedOperation(
            "no output of the release is a number",
            where="release.plot()",
            remedy="read release.frame",
        )
    charts = []
    for made in bars:
        chart, cut = _panel(made, most)
        notes += cut
        charts.append(named(chart, made.name) if len(bars) > 1 else chart)
    notes += only_first(len(plan.outputs), _MOST_OUTPUTS, "outputs")
    title = (
        f"{bars[0].name} of {plan.source!r}" if len(bars) == 1 else f"Release of {plan.source!r}"
    )
    given = any(f"{made.value}_low" in frame.columns for made in bars)
    which = "95% intervals, privacy noise only"
    if given:
        which = "the intervals asked for (privacy noise; sampling with sampling=True)"
    if any(made.rows["low"].null_count() < made.rows.height for made in bars):
        notes = [f"{plan.cost.words()}; lines and bands: {which}", *notes]
    return finish(panels(charts), title, list(dict.fromkeys(notes)))


def _bars_of(name: str, frame: pl.DataFrame, plan: PlanData) -> _Bars | None:
    outputs = {output.name for output in plan.outputs}
    ends = {f"{output}_{end}" for output in outputs for end in ("low", "high")}
    if len(outputs) == 1 and "count" in frame.columns and kinds_of(name, plan) in _TABLES:
        table = {name, "lower", "upper", "count", "count_low", "count_high", "share"}
        return _histogram(name, frame, [c for c in frame.columns if c not in table], plan)
    keys = [c for c in frame.columns if c not in outputs | ends]
    if name not in frame.columns:
        return None
    dtype = frame.schema[name]
    if isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct):
        if "count" not in [field.name for field in dtype.inner.fields]:
            return None
        lists = frame.select(*keys, pl.col(name).alias("__list")).explode("__list")
        return _histogram(name, lists.unnest("__list"), keys, plan)
    if not (dtype.is_numeric() or dtype == pl.Duration):
        return None
    value = pl.col(name).dt.total_microseconds() / 1e6 if dtype == pl.Duration else pl.col(name)
    what = f"{name}, in seconds" if dtype == pl.Duration else name
    columns = [pl.col(key).alias(f"key{i}") for i, key in enumerate(keys)]
    rows = frame.with_columns(*ends_of(frame, name, name, plan)).select(
        _label(keys), value.cast(pl.Float64).alias("value"), "low", "high", *columns
    )
    return _Bars(name, rows, ", ".join(keys), what, tuple(keys), parts=parts_of_times(plan))


def _histogram(name: str, table: pl.DataFrame, keys: list[str], plan: PlanData) -> _Bars:
    rises = "share" in table.columns and table.schema[name].is_numeric()
    if rises:
        table = table.with_columns(pl.col(name).cast(pl.Float64).alias("upper"))
    ends = [c for c in ("lower", "upper") if c in table.columns and table.schema[c].is_numeric()]
    rows = table.with_columns(*ends_of(table, name, "count", plan)).select(
        pl.col(name).cast(pl.String).fill_null("other or null").alias("bar"),
        _label(keys),
        *(pl.col(c).cast(pl.Float64) for c in ends),
        pl.col("count").cast(pl.Float64).alias("value"),
        "low",
        "high",
    )
    return _Bars(name, rows, ", ".join(keys), "count", rises=rises)


def _label(keys: list[str]) -> pl.Expr:
    if not keys:
        return pl.lit("all rows").alias("group")
    text = [pl.col(key).cast(pl.String).fill_null("null") for key in keys]
    return pl.concat_str(text, separator=", ").alias("group")


def _panel(bars: _Bars, most: int) -> tuple[Chart, list[str]]:
    """The chart, and what it leaves out."""
    ordered = _ordered(bars)
    if ordered is not None:
        return ordered
    if "bar" not in bars.rows.columns:
        cut = only_first(bars.rows.height, most, "groups", "the largest")
        largest = pl.col("value").abs().rank("ordinal", descending=True) <= most
        rows = bars.rows.filter(largest) if cut else bars.rows
        if not bars.has_order:
            rows = rows.sort("value", descending=True, nulls_last=True, maintain_order=True)
        return _horizontal(rows.rename({"group": "bar"}), bars.labels or None, bars.value), cut
    groups = bars.rows["group"].unique(maintain_order=True)
    if len(groups) == 1:
        return _one_histogram(bars, bars.rows, most)
    cut = only_first(len(groups), _MOST_FACETS, "groups")
    charts = []
    for group in groups.head(_MOST_FACETS).to_list():
        chart, less = _one_histogram(bars, bars.rows.filter(pl.col("group") == group), most)
        charts.append(named(chart.properties(width=WIDTH // 2), group))
        cut = list(dict.fromkeys([*cut, *less]))
    return alt.concat(*charts, columns=2).resolve_scale(y="shared"), cut


def _ordered(bars: _Bars) -> tuple[Chart, list[str]] | None:
    """A line chart or heat map for groups with an order or with two keys; None for plain bars."""
    if bars.rises:
        rows = bars.rows.drop_nulls("upper").rename({"upper": "edge", "group": "series"})
        several = rows["series"].n_unique() > 1
        rows, notes = _first_series(rows, "groups")
        named_by = (bars.labels or "group") if several else None
        return distribution(_line_rows(rows, "edge"), bars.name, bars.value, named_by), notes
    times = bars.along_time()
    if "grouping" in bars.keys or len(bars.keys) > 2 or (len(bars.keys) < 2 and not times):
        return None  # of several tables, of more keys than a picture has directions, or plain bars
    others = [i for i in range(len(bars.keys)) if i not in times[:1]]
    if not times:
        texts = [pl.col(f"key{i}").cast(pl.String).fill_null("null") for i in others]
        names = (text.alias(name) for text, name in zip(texts, ("first", "second"), strict=True))
        return cells(bars.rows.with_columns(*names), bars.keys, bars.value), [_IN_CELLS]
    rows, series, notes = bars.rows.rename({f"key{times[0]}": "time"}), None, []
    if others:
        series = bars.keys[others[0]]
        label = pl.col(f"key{others[0]}").cast(pl.String).fill_null("null").alias("series")
        rows, notes = _first_series(rows.with_columns(label), series)
    if rows["time"].null_count():
        notes.append(f"groups without a {bars.keys[times[0]]} are not shown")
    return over_time(_line_rows(rows, "time"), bars.keys[times[0]], bars.value, series), notes


def _line_rows(rows: pl.DataFrame, along: str) -> pl.DataFrame:
    needed = [along, "value", "low", "high", "series"]
    return rows.select([name for name in needed if name in rows.columns])


def _first_series(rows: pl.DataFrame, what: str) -> tuple[pl.DataFrame, list[str]]:
    """As many lines as can be distinguished, with the note that says so."""
    found = rows["series"].unique(maintain_order=True)
    kept = rows.filter(pl.col("series").is_in(found.head(MOST_LINES).to_list()))
    return kept, only_first(len(found), MOST_LINES, f"lines ({what})")


def _one_histogram(bars: _Bars, rows: pl.DataFrame, most: int) -> tuple[Chart, list[str]]:
    if "lower" in rows.columns and rows["lower"].null_count() < rows.height:
        others = rows["lower"].null_count() > 0
        cut = ["values outside the bins are not shown"] if others else []
        return _vertical(rows.drop_nulls("lower"), bars), cut
    cut = only_first(rows.height, most, "categories", "the largest")
    if cut:
        rows = rows.filter(pl.col("value").rank("ordinal", descending=True) <= most)
    return _horizontal(rows, bars.name, bars.value), cut


def _horizontal(rows: pl.DataFrame, labels: str | None, value: str) -> Layers:
    base = alt.Chart(data(rows.select("bar", "value", "low", "high").to_dicts()))
    y = alt.Y("bar:N", sort=None, title=None if labels is None else plain(labels))
    tooltip = _tooltip("bar:N")
    made = base.mark_bar(color=BAR).encode(
        x=alt.X("value:Q", title=plain(value)), y=y, tooltip=tooltip
    )
    ends = base.mark_rule(color=MARK, strokeWidth=2.5).encode(
        x="low:Q", x2="high:Q", y=y, tooltip=tooltip
    )
    layers = alt.layer(made, _known(ends))
    return layers.properties(width=WIDTH, height=max(2 * ROW, ROW * rows.height))


def _vertical(rows: pl.DataFrame, bars: _Bars) -> Layers:
    middle = ((pl.col("lower") + pl.col("upper")) / 2).alias("middle")
    base = alt.Chart(data(rows.with_columns(middle).to_dicts()))
    tooltip = _tooltip("bar:N")
    made = base.mark_bar(color=BAR, binSpacing=1).encode(
        x=alt.X("lower:Q", bin="binned", title=plain(bars.name)),
        x2="upper:Q",
        y=alt.Y("value:Q", title=plain(bars.value)),
        tooltip=tooltip,
    )
    ends = base.mark_rule(color=MARK, strokeWidth=2.5).encode(
        x="middle:Q", y="low:Q", y2="high:Q", tooltip=tooltip
    )
    return alt.layer(made, _known(ends)).properties(width=WIDTH, height=220)


def _known(ends: alt.Chart) -> alt.Chart:
    """Intervals where there are any."""
    return ends.transform_filter("isValid(datum.low) && isValid(datum.high)")


def _tooltip(label: str) -> list[alt.Tooltip]:
    return [alt.Tooltip(label, title="group"), *_numbers()]


# How a budget was spent over time.

_MOST = 1000


def plot_budget(
    history: pl.DataFrame,  # One row per charge, in order, as `Session.history` has it
    main: str,  # ``"epsilon"`` or ``"rho"``: the column that is added up
    budget: float,  # All that may be spent of it
    name: str | None,  # What the session is called
) -> Chart:
    """Steps of what was spent in all, below the budget."""
    spent = history.select(
        pl.col("time").dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"),
        pl.col(main).alias("charge"),
        pl.col(main).cum_sum().alias("spent"),
        "status",
        pl.col("fingerprint").str.head(12).alias("plan"),
    )
    total = float(history[main].sum())
    charges = "1 charge" if history.height == 1 else f"{history.height:,} charges"
    notes = [f"{shown(total)} of {shown(budget)} spent in {charges}"]
    if history["delta"].sum():
        notes.append(f"and delta {show(float(history['delta'].sum()), 3)}")
    label = "" if name is None else f" of {name!r}"
    if spent.height > _MOST:  # of steps that small no eye sees one
        every = -(-spent.height // _MOST)
        spent = pl.concat([spent[:-1].gather_every(every), spent[-1:]])
    chart = _chart(spent.to_dicts(), main, budget)
    return finish(chart, f"Budget{label} over time", notes)


def _chart(rows: Sequence[Mapping[str, Any]], main: str, budget: float) -> Layers:
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


def _points(rows: Sequence[Mapping[str, Any]], main: str, x: alt.X, y: alt.Y) -> alt.Chart:
    """One for each charge, by what became of it."""
    known = ["charged", "released", "failed"]
    colour = alt.Color(
        "status:N", title="charge", scale=alt.Scale(domain=known, range=[INK, BAR, MARK])
    )
    made: alt.Chart = (
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
    return made


# The errors that a plan says its outputs will have, before anything is run.

_MOST_BARS = 20


def plot_plan(
    plan: PlanData, guess: Mapping[str, float] | None, count: float | None, confidence: Number
) -> Chart:
    """One row per output: a guess of its value, and how far a release may be from it."""
    guesses = _checked(plan, {} if guess is None else guess)
    if count is None:
        counts = (release.name for release in plan.releases if release.aggregate == "count")
        count = next((guesses[name] for name in counts if name in guesses), None)
    rows, notes = [], []
    names = [output.name for output in plan.outputs]
    for name in names[:_MOST_BARS]:
        try:
            error = plan.accuracy(name, confidence, count=count, guess=guesses.get(name))
        except UnsupportedOperation as reason:
            notes.append(f"{name}: {reason.what}")
            continue
        if any(r.candidates is not None for r in plan.releases if name in r.users):
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
    notes += only_first(len(names), _MOST_BARS, "outputs")
    notes.append(f"of one group, with {100 * float(confidence):.4g}% confidence")
    return finish(_error_chart(rows), f"Errors that the plan of {plan.source!r} will have", notes)


def _error_chart(rows: Sequence[Mapping[str, Any]]) -> alt.FacetChart:
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
    made: alt.FacetChart = faceted.resolve_scale(x="independent")
    return made


def _row(name: str, guess: float | None, error: float) -> dict[str, object]:
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
                f"the guess for {name!r} is a finite number, not {show_input(value)}",
                where="plan.plot(guess=...)",
                remedy=f'write for example guess={{"{name}": 1000}}',
            )
    return guess


# The distribution of errors over the runs of a simulation.

_SPREAD = "90% of the runs (line), half (bar), the median (tick)"
_LIMITS = "diamond: the result without noise, off by clamping and limits alone"
_AFTER = "90% of the released results (line), their median (point)"
_BEFORE = "orange: the plain result, before limits and noise"
_SHARES = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}


def plot_simulation(
    results: pl.DataFrame,  # As `Simulation.results` has them
    keys: Sequence[str],  # The columns of it that name a group or an entry
    runs: int,  # How often noise was drawn
    *,
    # `relative`, `most`, `values`: as for `Simulation.plot`.
    relative: bool,
    most: int,
    values: bool = False,
) -> Chart:
    """One panel per output, one row per group: where the errors of all runs lie."""
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
        if values:  # the released results are off by the errors
            shares = [(pl.col(name) + pl.col("plain")).alias(name) for name in _SHARES]
            panel = before_and_after(mine.with_columns(shares), output)
        else:
            panel = _error_panel(mine, relative)
        charts.append(named(panel, output))
    notes += only_first(len(outputs), _MOST_OUTPUTS, "outputs")
    title = "Before and after noise" if values else "Errors of a simulation"
    return finish(panels(charts), title, list(dict.fromkeys(notes)))


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


def _error_panel(spread: pl.DataFrame, relative: bool) -> Layers:
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


# The findings of an audit next to the claims of the plan.


def plot_audit(
    curve: pl.DataFrame,  # As `Audit.curve` has it
    # `claimed`, `proved`, `delta`, `runs`: as of `Audit`.
    claimed: float,
    proved: float,
    delta: float,
    runs: int,
) -> Chart:
    """How often events happened on either frame, below the line that the claim draws."""
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
    return finish(layers, "Audit of a plan", notes)


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
