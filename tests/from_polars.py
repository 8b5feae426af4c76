"""The pairs of code on `docs/coming-from-polars.md`: each task in Polars and with dpframe, with the
results of both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from .snippets import formatted

PAGE = Path(__file__).parents[1] / "docs" / "coming-from-polars.md"
SPEND = ".collect(epsilon=1)"
_SETTING = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Task:
    """What is wanted; how it is written in Polars and with dpframe, the latter without the spend;
    whether both compute the same, but for noise.
    """

    wanted: str
    polars: str
    dpframe: str
    same: bool = True

    @property
    def written(self) -> str:
        """What dpframe runs."""
        return self.dpframe if SPEND in self.dpframe else self.dpframe + SPEND


_SEXES = 'keys=["Female", "Male"]'
_WEEK = 'week=pl.col("day").dt.truncate("1w")'
TASKS: Mapping[str, tuple[Task, ...]] = MappingProxyType(
    {
        "counts": (
            Task("all rows", "adult.select(pl.len())", "people.dp_count()"),
            Task(
                "rows that meet a condition",
                'adult.filter(pl.col("age") >= 40).select(pl.len())',
                'people.filter(pl.col("age") >= 40).dp_count()',
            ),
            Task(
                "values that are not null",
                'adult.select(pl.col("occupation").count())',
                'people.agg(dp.col("occupation").dp_count())',
            ),
            Task(
                "`value_counts`",
                'adult.select(pl.col("sex").value_counts(sort=True)).unnest("sex").sort("sex")',
                f'people.value_counts("sex", {_SEXES})',
            ),
            Task(
                "distinct people",
                'visits.select(pl.col("person").n_unique())',
                'guests.agg(dp.col("person").dp_n_unique())',
            ),
            Task(
                "the three most frequent values",
                'adult.group_by("education").len().sort("len", descending=True).head(3)'
                '.select("education", rank=pl.int_range(1, 4))',
                'people.dp_argmax("education", candidates=levels, k=3)',
            ),
        ),
        "numbers": (
            Task(
                "sum",
                'adult.select(pl.col("hours_per_week").sum())',
                'people.agg(dp.col("hours_per_week").dp_sum((0, 100)))',
            ),
            Task(
                "mean",
                'adult.select(pl.col("age").mean())',
                'people.agg(dp.col("age").dp_mean((17, 90)))',
            ),
            Task(
                "standard deviation",
                'adult.select(pl.col("age").std())',
                'people.agg(dp.col("age").dp_std((17, 90)))',
            ),
            Task(
                "sum of a formula",
                'adult.select((pl.col("hours_per_week") - 40).clip(0, 40).sum())',
                'people.agg((dp.col("hours_per_week") - 40).clip(0, 40).dp_sum())',
            ),
            Task(
                "mean of some rows, `filter` inside `agg`",
                'adult.select(pl.col("age").filter(pl.col("sex") == "Female").mean())',
                'people.agg(pl.col("age").filter(pl.col("sex") == "Female").clip(17, 90).mean())',
            ),
            Task(
                "total paid, where people have many rows",
                'visits.select(pl.col("paid").sum())',
                'guests.agg(dp.col("paid").dp_sum((0, 250), per="unit"))',
            ),
        ),
        "shares": (
            Task(
                "share of rows",
                'adult.select((pl.col("income") == ">50K").mean())',
                'people.agg((dp.col("income") == ">50K").dp_mean())',
            ),
            Task(
                "share by group",
                'adult.group_by("sex").agg((pl.col("income") == ">50K").mean()).sort("sex")',
                f'people.group_by("sex", {_SEXES}).agg((dp.col("income") == ">50K").dp_mean())',
            ),
            Task(
                "percent of all rows",
                'adult.select(100 * (pl.col("sex") == "Male").sum() / pl.len())',
                'people.agg((100 * (dp.col("sex") == "Male").cast(pl.Int64).dp_sum() '
                '/ dp.count()).alias("sex"))',
            ),
            Task(
                "percent of the total, by group",
                'adult.group_by("sex").len().sort("sex")'
                '.with_columns(percent=100 * pl.col("len") / pl.col("len").sum())',
                f'people.group_by("sex", {_SEXES}).dp_count(){SPEND}'
                '.with_columns(percent=100 * pl.col("len") / pl.col("len").sum())',
            ),
            Task(
                "ratio of two sums",
                'adult.select(ratio=pl.col("hours_per_week").sum() / pl.col("age").sum())',
                'people.agg(ratio=dp.col("hours_per_week").dp_ratio("age", (0, 100), '
                "denominator_bounds=(0, 90)))",
            ),
        ),
        "order": (
            Task(
                "median",
                'adult.select(pl.col("age").median())',
                'people.agg(dp.col("age").dp_median((17, 90)))',
            ),
            Task(
                "quartiles",
                'adult.select(pl.concat_list(pl.col("age").quantile(q).cast(pl.Int64) '
                'for q in (0.25, 0.5, 0.75)).alias("age"))',
                'people.agg(dp.col("age").dp_quantile([0.25, 0.5, 0.75], (17, 90)))',
            ),
            Task(
                "maximum: a high quantile, because the largest value is one person's",
                'adult.select(pl.col("age").max())',
                'people.agg(dp.col("age").dp_quantile(0.999, (17, 90)))',
                same=False,
            ),
            Task(
                "minimum and maximum, to use as bounds",
                'adult.select(pl.concat_list(pl.col("hours_per_week").min(), '
                'pl.col("hours_per_week").max()))',
                'people.dp_bounds("hours_per_week")',
                same=False,
            ),
            Task(
                "histogram, `hist`",
                'adult.group_by(lower=pl.col("age").clip(0, 89) // 30 * 30).len().sort("lower")',
                f'people.dp_histogram("age", [0, 30, 60, 120]){SPEND}.select("lower", "count")',
            ),
            Task(
                "running share, an empirical distribution function",
                'adult.select(pl.lit(40).alias("age"), (pl.col("age") <= 40).sum().alias("count"), '
                '(pl.col("age") <= 40).mean().alias("share"))',
                f'people.dp_cdf("age", [40, 90]){SPEND}.head(1)',
            ),
        ),
        "groups": (
            Task(
                "size and mean of each group",
                'adult.group_by("sex").agg(pl.len(), pl.col("age").mean()).sort("sex")',
                f'people.group_by("sex", {_SEXES}).agg(dp.count(), dp.col("age")'
                ".dp_mean((17, 90)))",
            ),
            Task(
                "groups by a condition, `when`/`then`",
                'adult.group_by(old=pl.when(pl.col("age") >= 60).then(1).otherwise(0)).len()'
                '.sort("old")',
                'people.group_by(old=pl.when(pl.col("age") >= 60).then(1).otherwise(0), '
                "keys=[0, 1]).dp_count()",
            ),
            Task(
                "pivot table",
                'adult.group_by("race", "sex").len().filter(pl.col("race").is_in(races)).collect()'
                '.pivot("sex", index="race", values="len", sort_columns=True).sort("race")',
                'people.group_by("race", "sex", keys={"race": races, "sex": ["Female", "Male"]})'
                f'.dp_count(){SPEND}.pivot("sex", index="race", values="len")',
            ),
            Task(
                "subtotals and the total",
                'pl.concat([adult.group_by("sex").len().sort("sex"), '
                'adult.select(pl.lit(None).alias("sex"), pl.len())], how="vertical_relaxed")',
                f'people.group_by(dp.rollup("sex"), {_SEXES}).agg(dp.count()){SPEND}'
                '.drop("grouping")',
            ),
            Task(
                "columns of a public table, `join`",
                'adult.join(years.lazy(), on="education").select(pl.col("years").mean())',
                'people.join(years, on="education").agg(dp.col("years").dp_mean((0, 20)))',
            ),
        ),
        "time": (
            Task(
                '`group_by_dynamic("day", every="1w")`',
                'visits.sort("day").group_by_dynamic("day", every="1w")'
                '.agg(pl.col("paid").sum()).head(3)',
                'guests.group_by_dynamic("day", every="1w", keys=weeks).agg('
                f'dp.col("paid").dp_sum((0, 100), per="unit")){SPEND}.head(3)',
            ),
            Task(
                "rolling mean of four weeks",
                f'visits.group_by({_WEEK}).agg(pl.col("paid").sum()).sort("week")'
                '.select(pl.col("paid").rolling_mean(4)).slice(3, 2)',
                f'guests.with_columns({_WEEK}).group_by("week", keys=weeks).agg('
                f'dp.col("paid").dp_sum((0, 100), per="unit")){SPEND}'
                '.select(pl.col("paid").rolling_mean(4)).slice(3, 2)',
            ),
            Task(
                "by the month of a date",
                'visits.group_by(pl.col("day").dt.month()).agg(pl.col("person").n_unique())'
                '.sort("day")',
                'guests.group_by(pl.col("day").dt.month()).agg(dp.col("person").dp_n_unique())'
                f"{SPEND}.head(3)",
            ),
        ),
        "describe": (
            Task(
                "`describe()` of a column, without minimum and maximum",
                'adult.select("age").describe()',
                'people.describe("age", bounds={"age": (17, 90)})',
                same=False,
            ),
        ),
    }
)


@cache
def setting() -> Mapping[str, Any]:
    """The frames that the first lines of the page make."""
    names: dict[str, Any] = {}
    first = _SETTING.search(PAGE.read_text(encoding="utf-8"))
    assert first is not None
    exec(first[1], names)
    return MappingProxyType(names)


def exact(task: Task) -> pl.DataFrame:
    """What Polars says."""
    found = eval(task.polars, dict(setting()))
    return found.collect() if isinstance(found, pl.LazyFrame) else found


def private(task: Task) -> pl.DataFrame:
    """What dpframe says, from a budget of its own."""
    found: pl.DataFrame = eval(task.written, dict(setting()))
    return found


def shown(frame: pl.DataFrame) -> str:
    """A small result as comments, a line for each row."""
    return "\n".join("# " + " ".join(map(_value, row)) for row in frame.rows())


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1000 else f"{value:.1f}"
    return "null" if value is None else str(value)


def blotted(text: str) -> str:
    """Pairs of code with results without numbers, which are noise."""
    results = re.compile(r"^# .*$", re.MULTILINE)
    return results.sub(lambda line: re.sub(r"-?\d+(\.\d+)?", "#", line[0]), text)


WIDTH = 62
"""The longest line of code that fits beside another."""
_PAIR = """### {title}

<div class="pair" markdown>

```py title="Polars"
{polars}
{exact}
```

```py title="dpframe"
{dpframe}
{private}
```

</div>
"""


def codes(section: str) -> list[tuple[str, str]]:
    """The code of each task of a section, in Polars and with dpframe, as the page shows it."""
    tasks = TASKS[section]
    code = formatted([code for task in tasks for code in (task.polars, task.dpframe)], WIDTH)
    return list(zip(code[::2], code[1::2], strict=True))


def pairs(section: str) -> str | None:
    """The pairs of a section; None where those of the page show the same but for noise."""
    written = [
        _PAIR.format(
            title=task.wanted[0].upper() + task.wanted[1:],
            polars=polars,
            dpframe=dpframe,
            exact=shown(exact(task)),
            private=shown(private(task)),
        )
        for task, (polars, dpframe) in zip(TASKS[section], codes(section), strict=True)
    ]
    text = "\n".join(["", *written]).rstrip("\n") + "\n"
    mark = f"<!-- table: from_polars_{section} -->\n"
    page = PAGE.read_text(encoding="utf-8").partition(mark)[2].partition("\n<!-- end -->")[0]
    return None if blotted(page) == blotted(text) else text


TABLES: Mapping[str, Callable[[], str | None]] = MappingProxyType(
    {f"from_polars_{section}": partial(pairs, section) for section in TASKS}
)
