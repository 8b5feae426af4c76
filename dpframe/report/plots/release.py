"""Released results: lines over time, tables of two keys, distribution functions, bars, bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from dpframe.errors import UnsupportedOperation
from dpframe.plan import PlanData
from dpframe.report.plots.parts import parts_of_times
from dpframe.report.plots.shapes import MOST_LINES, cells, distribution, over_time
from dpframe.report.plots.theme import (
    BAR,
    MARK,
    ROW,
    WIDTH,
    altair,
    data,
    finished,
    named,
    only_first,
    panels,
    plain,
)
from dpframe.report.released import ends_of, kinds_of

_MOST_OUTPUTS = 12
_MOST_FACETS = 12
_IN_CELLS = "hover over a cell to see its interval"
_TABLES = ({"histogram"}, {"cdf"})


@dataclass(frozen=True, slots=True, eq=False)
class _Bars:
    """What one panel shows.

    Parameters
    ----------
    name
        The output.
    rows
        `group`, `value`, `low` and `high`, the last two null where nothing is known; for bins
        `lower` and `upper` as well.
    labels
        What the bars are: the keys, the categories.
    value
        What is measured.
    keys
        What groups the rows, each key in a column ``key0``, ``key1``, ...
    rises
        Whether it is a distribution function.
    parts
        The keys that are parts of times.
    """

    name: str
    rows: pl.DataFrame
    labels: str
    value: str
    keys: tuple[str, ...] = ()
    rises: bool = False
    parts: frozenset[str] = frozenset()

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


def plot_release(frame: pl.DataFrame, plan: PlanData, most: int) -> Any:
    """One panel per output that is a number or a histogram."""
    bars, notes = [], []
    for name in [output.name for output in plan.outputs[:_MOST_OUTPUTS]]:
        made = _bars_of(name, frame, plan)
        if made is None:
            notes.append(f"{name} is not a number and is not shown")
            continue
        if made.rows["low"].null_count() == made.rows.height:
            notes.append(_no_interval(name, plan))
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
    return finished(panels(charts), title, list(dict.fromkeys(notes)))


def _no_interval(name: str, plan: PlanData) -> str:
    if any(r.candidates is not None for r in plan.releases if name in r.users):
        return f"{name} is chosen, and has no interval"
    return f"no interval of {name} is known: collect it with interval=0.95"


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
    rows = _with_ends(frame, name, name, plan).select(
        _label(keys), value.cast(pl.Float64).alias("value"), "low", "high", *_columns(keys)
    )
    return _Bars(name, rows, ", ".join(keys), what, tuple(keys), parts=parts_of_times(plan))


def _histogram(name: str, table: pl.DataFrame, keys: list[str], plan: PlanData) -> _Bars:
    rises = "share" in table.columns and table.schema[name].is_numeric()
    if rises:
        table = table.with_columns(pl.col(name).cast(pl.Float64).alias("upper"))
    rows = _with_ends(table, name, "count", plan).select(
        pl.col(name).cast(pl.String).fill_null("other or null").alias("bar"),
        _label(keys),
        *(pl.col(c).cast(pl.Float64) for c in ("lower", "upper") if _is_axis(table, c)),
        pl.col("count").cast(pl.Float64).alias("value"),
        "low",
        "high",
    )
    return _Bars(name, rows, ", ".join(keys), "count", rises=rises)


def _is_axis(table: pl.DataFrame, column: str) -> bool:
    return column in table.columns and table.schema[column].is_numeric()


def _with_ends(frame: pl.DataFrame, name: str, column: str, plan: PlanData) -> pl.DataFrame:
    return frame.with_columns(*ends_of(frame, name, column, plan))


def _columns(keys: list[str]) -> list[pl.Expr]:
    return [pl.col(key).alias(f"key{i}") for i, key in enumerate(keys)]


def _label(keys: list[str]) -> pl.Expr:
    if not keys:
        return pl.lit("all rows").alias("group")
    text = [pl.col(key).cast(pl.String).fill_null("null") for key in keys]
    return pl.concat_str(text, separator=", ").alias("group")


def _panel(bars: _Bars, most: int) -> tuple[Any, list[str]]:
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
    return altair().concat(*charts, columns=2).resolve_scale(y="shared"), cut


def _ordered(bars: _Bars) -> tuple[Any, list[str]] | None:
    """A line chart or heat map for groups with an order or with two keys; None for plain bars."""
    if bars.rises:
        return _rising(bars)
    times = bars.along_time()
    if "grouping" in bars.keys or len(bars.keys) > 2 or (len(bars.keys) < 2 and not times):
        return None  # of several tables, of more keys than a picture has directions, or plain bars
    others = [i for i in range(len(bars.keys)) if i not in times[:1]]
    if not times:
        texts = [pl.col(f"key{i}").cast(pl.String).fill_null("null") for i in others]
        names = (text.alias(name) for text, name in zip(texts, ("first", "second"), strict=True))
        return cells(bars.rows.with_columns(*names), bars.keys, bars.value), [_IN_CELLS]
    rows, series = bars.rows.rename({f"key{times[0]}": "time"}), None
    notes: list[str] = []
    if others:
        series = bars.keys[others[0]]
        label = pl.col(f"key{others[0]}").cast(pl.String).fill_null("null").alias("series")
        rows, notes = _first_series(rows.with_columns(label), series)
    if rows["time"].null_count():
        notes.append(f"groups without a {bars.keys[times[0]]} are not shown")
    return over_time(_line_rows(rows, "time"), bars.keys[times[0]], bars.value, series), notes


def _rising(bars: _Bars) -> tuple[Any, list[str]]:
    rows = bars.rows.drop_nulls("upper").rename({"upper": "edge", "group": "series"})
    several = rows["series"].n_unique() > 1
    rows, notes = _first_series(rows, "groups")
    named_by = (bars.labels or "group") if several else None
    return distribution(_line_rows(rows, "edge"), bars.name, bars.value, named_by), notes


def _line_rows(rows: pl.DataFrame, along: str) -> pl.DataFrame:
    needed = [along, "value", "low", "high", "series"]
    return rows.select([name for name in needed if name in rows.columns])


def _first_series(rows: pl.DataFrame, what: str) -> tuple[pl.DataFrame, list[str]]:
    """As many lines as can be distinguished, with the note that says so."""
    found = rows["series"].unique(maintain_order=True)
    kept = rows.filter(pl.col("series").is_in(found.head(MOST_LINES).to_list()))
    return kept, only_first(len(found), MOST_LINES, f"lines ({what})")


def _one_histogram(bars: _Bars, rows: pl.DataFrame, most: int) -> tuple[Any, list[str]]:
    if "lower" in rows.columns and rows["lower"].null_count() < rows.height:
        return _vertical(rows.drop_nulls("lower"), bars), _others(rows)
    cut = only_first(rows.height, most, "categories", "the largest")
    if cut:
        rows = rows.filter(pl.col("value").rank("ordinal", descending=True) <= most)
    return _horizontal(rows, bars.name, bars.value), cut


def _others(rows: pl.DataFrame) -> list[str]:
    return ["values outside the bins are not shown"] if rows["lower"].null_count() else []


def _horizontal(rows: pl.DataFrame, labels: str | None, value: str) -> Any:
    alt = altair()
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


def _vertical(rows: pl.DataFrame, bars: _Bars) -> Any:
    alt = altair()
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


def _known(ends: Any) -> Any:
    """Intervals where there are any."""
    return ends.transform_filter("isValid(datum.low) && isValid(datum.high)")


def _tooltip(label: str) -> list[Any]:
    alt = altair()
    numbers = [alt.Tooltip(f"{name}:Q", format=",.6~g") for name in ("value", "low", "high")]
    return [alt.Tooltip(label, title="group"), *numbers]
