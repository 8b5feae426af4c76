"""Everyday tasks, as somebody who knows Polars writes them at first try."""

from __future__ import annotations

from dataclasses import dataclass

from tests.snippets import formatted


@dataclass(frozen=True)
class Task:
    """One task.

    Parameters
    ----------
    title
        What is wanted.
    first
        What is written first. ``spend`` is empty where it runs on plain Polars, for the truth.
    within
        How far each number may be from the truth, at epsilon 4.
    says
        Words of the message where the first try is refused.
    then
        What the message says to write.
    truth
        The same in plain Polars, where that differs.
    """

    title: str
    first: str
    within: float
    says: str = ""
    then: str = ""
    truth: str = ""


FIRST = (
    Task("Cross-tab", 'trips.group_by("zone", "payment").len().collect(**spend)', 120),
    Task(
        "Join with a public table",
        'orders.join(products, on="product").group_by("department").agg(pl.len()).collect(**spend)',
        150,
    ),
    Task(
        "Groups that nobody listed",
        'orders.group_by("product").agg(pl.col("amount").clip(0, 200).sum()).collect(**spend)',
        20_000,
    ),
    Task(
        "Pivot of a result",
        'trips.group_by("zone", "payment").len().collect(**spend)'
        '.pivot("payment", index="zone", values="len")',
        120,
    ),
    Task(
        "Buckets by when and then",
        'trips.with_columns(ride=pl.when(pl.col("distance") < 10).then(pl.lit("short"))'
        '.otherwise(pl.lit("long"))).group_by("ride").agg(pl.len()).collect(**spend)',
        120,
    ),
    Task(
        "Sum of some rows",
        'trips.filter(pl.col("payment") == "card").select(pl.col("fare").clip(0, 80).sum())'
        ".collect(**spend)",
        6_000,
    ),
    Task(
        "Share by group",
        'trips.group_by("zone").agg((pl.col("payment") == "card").mean()).collect(**spend)',
        0.3,
    ),
    Task(
        "The five most frequent",
        'orders.group_by("product").len().collect(**spend).sort("len", descending=True).head(5)',
        150,
    ),
    Task(
        "Quantiles by group",
        'visits.group_by("ward").agg(pl.col("days").clip(0, 30).quantile(0.9)).collect(**spend)',
        2,
    ),
    Task(
        "Histogram of decimal numbers",
        'trips.with_columns(bin=pl.col("fare").cut([10, 20, 30, 40, 50], labels=list("abcdef")))'
        '.group_by("bin").len()'
        ".collect(**spend)",
        120,
    ),
    Task(
        "Distribution function",
        'visits.select((pl.col("days") <= d).mean().alias(f"{d} days") for d in range(1, 15))'
        ".collect(**spend)",
        0.1,
    ),
    Task("Winsorised mean", 'trips.select(pl.col("fare").clip(8, 50).mean()).collect(**spend)', 1),
    Task(
        "Percent of total",
        'trips.group_by("zone").len().collect(**spend)'
        '.with_columns(percent=100 * pl.col("len") / pl.col("len").sum())',
        120,
    ),
    Task("How many rows", "trips.select(pl.len()).collect(**spend)", 120),
    Task(
        "Values of a column and their counts",
        'orders.select(pl.col("product").value_counts()).collect(**spend)',
        150,
        ".value_counts(column) of the frame",
        'orders.value_counts("product").collect(**spend)',
        'orders.group_by("product").agg(count=pl.len()).collect()',
    ),
    Task(
        "A chart",
        'visits.group_by("ward").len().collect(**spend).plot.bar(x="ward", y="len").data',
        120,
    ),
    Task(
        "How many rows fulfil a condition",
        'trips.select((pl.col("distance") > 20).sum()).collect(**spend)',
        120,
    ),
    Task(
        "Trips and passengers",
        'trips.select(trips=pl.len(), passengers=pl.col("passenger").n_unique()).collect(**spend)',
        120,
    ),
    Task(
        "Mean by month",
        'trips.group_by(pl.col("pickup").dt.month()).agg(pl.col("fare").clip(0, 80).mean())'
        ".collect(**spend)",
        12,
    ),
    Task(
        "Distinct customers by quarter",
        'orders.group_by_dynamic("at", every="1q").agg(pl.col("customer").n_unique())'
        ".collect(**spend)",
        200,
    ),
    Task(
        "Year over year",
        'orders.group_by(pl.col("at").dt.year()).agg(pl.col("amount").clip(0, 250).sum())'
        '.collect(**spend).sort("at").with_columns(growth=pl.col("amount").pct_change())',
        25_000,
    ),
    Task(
        "Windows of time",
        'trips.group_by_dynamic("pickup", every="1mo").agg(pl.len(), '
        'pl.col("fare").clip(0, 80).mean()).collect(**spend)',
        150,
    ),
    Task(
        "Rolling mean",
        'trips.rolling("pickup", period="12w").agg(pl.len()).collect(**spend)',
        150,
        "group by windows of time, .group_by_dynamic(column, every='1w').agg(...)",
        'trips.group_by(pl.col("pickup").dt.truncate("4w")).agg(pl.len()).collect(**spend)'
        '.sort("pickup").with_columns(pl.col("len").rolling_mean(3))',
    ),
    Task(
        "Describe",
        'visits.describe(["age", "days"])',
        150,
        "write .describe(['age', 'days'], bounds={\"age\": (low, high), \"days\": (low, high)})",
        "visits.describe(['age', 'days'], bounds={\"age\": (0, 100), \"days\": (0, 100)})"
        ".collect(**spend)",
        'visits.select("age", "days").describe()'
        '.filter(~pl.col("statistic").is_in(["min", "max"])).lazy().collect()',
    ),
    Task(
        "A condition inside an aggregate",
        'trips.group_by("payment").agg(pl.col("fare").clip(0, 80).filter(pl.col("night")).mean())'
        ".collect(**spend)",
        2,
    ),
)

MORE = (
    Task(
        "Sum without bounds",
        'trips.select(pl.col("fare").sum()).collect(**spend)',
        8_000,
        'write pl.col("fare").clip(low, high).sum()',
        'trips.select(pl.col("fare").clip(0, 100).sum()).collect(**spend)',
    ),
    Task(
        "Maximum",
        'visits.select(pl.col("days").max()).collect(**spend)',
        2,
        ".dp_quantile(0.99, bounds)",
        'visits.select(pl.col("days").dp_quantile(0.99, (0, 30))).collect(**spend)',
        'visits.select(pl.col("days").max()).collect()',
    ),
    Task(
        "Distinct values of a column that may have nulls",
        'orders.select(pl.col("product").n_unique()).collect(**spend)',
        60,
        'write pl.col("product").drop_nulls().n_unique()',
        'orders.select(pl.col("product").drop_nulls().n_unique()).collect(**spend)',
    ),
    Task(
        "Sorted before it is collected",
        'trips.group_by("zone").len().sort("len").collect(**spend)',
        120,
    ),
    Task(
        "Rows by hour of the day",
        'trips.group_by(pl.col("pickup").dt.hour()).len().collect(**spend)',
        120,
    ),
    Task(
        "Rows by day of the week",
        'trips.group_by(weekday=pl.col("pickup").dt.weekday()).agg(pl.len()).collect(**spend)',
        120,
    ),
    Task(
        "By a Boolean column",
        'trips.group_by("night").agg(pl.col("fare").clip(0, 80).mean()).collect(**spend)',
        1.5,
    ),
    Task(
        "By a condition",
        'trips.group_by(far=pl.col("distance") > 15).agg(pl.col("fare").clip(0, 80).mean())'
        ".collect(**spend)",
        1.5,
    ),
    Task(
        "Spread by group",
        'visits.group_by("ward").agg(pl.col("age").clip(18, 90).std()).collect(**spend)',
        4,
    ),
    Task("Median", 'visits.select(pl.col("age").clip(18, 90).median()).collect(**spend)', 2),
    Task(
        "Mean of a quotient",
        'trips.select((pl.col("tip") / pl.col("fare")).clip(0, 1).mean()).collect(**spend)',
        0.02,
    ),
    Task("Share of nulls", 'trips.select(pl.col("tip").is_null().mean()).collect(**spend)', 0.02),
    Task("Number of nulls", 'visits.select(pl.col("days").null_count()).collect(**spend)', 120),
    Task("Values that are there", 'trips.select(pl.col("tip").count()).collect(**spend)', 120),
    Task(
        "Several columns at once",
        'trips.select(pl.col("fare", "tip").clip(0, 80).mean().name.suffix("_mean"))'
        ".collect(**spend)",
        1.5,
    ),
    Task(
        "Revenue of a trip",
        'trips.select(revenue=(pl.col("fare").clip(0, 80).sum() / pl.len()).round(2))'
        ".collect(**spend)",
        1,
    ),
    Task(
        "One of several values",
        'trips.filter(pl.col("zone").is_in(["Airport", "West"])).select(pl.len()).collect(**spend)',
        120,
    ),
    Task(
        "A range of dates",
        'orders.filter(pl.col("at").is_between(date(2025, 1, 1), date(2025, 3, 31)))'
        ".select(pl.len()).collect(**spend)",
        120,
    ),
    Task(
        "Rows that a public table names",
        'orders.join(products.filter(pl.col("price") > 5), on="product", how="semi")'
        ".select(pl.len()).collect(**spend)",
        150,
    ),
    Task(
        "A function of the frame",
        'trips.pipe(lambda frame, name: frame.group_by(name).len(), "payment").collect(**spend)',
        120,
    ),
    Task(
        "By month of a year",
        'orders.group_by(pl.col("at").dt.truncate("1mo")).agg(pl.len()).collect(**spend)',
        150,
    ),
    Task(
        "Bins with labels",
        'visits.group_by(pl.col("age").cut([30, 50, 70], labels=["a", "b", "c", "d"]))'
        ".agg(pl.len()).collect(**spend)",
        120,
    ),
    Task(
        "Text that contains something",
        'trips.select(pl.col("zone").str.contains("o").mean()).collect(**spend)',
        0.02,
    ),
    Task(
        "Weighted mean",
        'trips.select((pl.col("fare").clip(0, 80) * pl.col("distance").clip(0, 30)).sum() '
        '/ pl.col("distance").clip(0, 30).sum()).collect(**spend)',
        3,
    ),
    Task(
        "Percent of a condition in groups",
        'visits.group_by("ward").agg(percent=(100 * pl.col("readmitted").mean()).round(1))'
        ".collect(**spend)",
        8,
    ),
)


def table() -> str:
    """Every task, what is written, and whether it works at once or as the first message says; and
    how many do.
    """
    tasks = (*FIRST, *MORE)
    code = formatted([(t.then or t.first).replace("**spend", "epsilon=4") for t in tasks], 80)
    parts = [
        f"**{task.title}**{', after one message' if task.then else ''}\n\n```py\n{text}\n```\n"
        for task, text in zip(tasks, code, strict=True)
    ]
    tally = [
        f"{sum(not task.then for task in tasks)} of {who} work at once, and all {len(tasks)} after "
        "one message."
        for who, tasks in (
            (f"the {len(FIRST)} that were tried first", FIRST),
            (f"all {len(FIRST) + len(MORE)}", (*FIRST, *MORE)),
        )
    ]
    return "\n".join(["\n".join([*tally, ""]), *parts]).rstrip("\n") + "\n"
