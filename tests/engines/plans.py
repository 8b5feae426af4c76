"""Plans that give the same exact tables on every engine: frame steps, a group-by, dp expressions.

`f`, `g` and `h` are private frames with the same columns; `f` and `g` of the same individuals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import polars as pl

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.api.query import parts
from tests.engines.data import CALENDAR, PUBLIC, REPEATED, rows


@dataclass(frozen=True)
class Plan:
    """A query as text, and whom it protects."""

    steps: str
    outputs: str
    groups: str = ""
    unit: str = "rows"


COUNTS = 'n=dp.count(), v=pl.col("x").dp_count(), m=pl.col("s").dp_count()'
SUMS = 'a=pl.col("i").dp_sum((-9, 99)), b=pl.col("x").dp_sum((-50, 70.5))'
MEANS = (
    'a=pl.col("y").dp_mean((0, 40)), sd=pl.col("z").dp_std((-3, 8)), c=pl.col("j").dp_var((0, 5))'
)
PEOPLE = """people=dp.n_unique("u"), c=dp.count(per="unit", bounds=(0, 3)),
    t=pl.col("x").dp_sum((-20, 90), per="unit"), w=pl.col("i").dp_sum((-5, 50), per="unit"),
    m=pl.col("y").dp_mean((0, 60), per="unit"), v=pl.col("n").dp_std((0, 99), per="unit")"""
BY_S = '.group_by("s", keys=["a", "a ", "e\\u0301", "é", None, "", "never", "\\x00"])'
BY_E = '.group_by("e")'

PLANS: dict[str, Plan] = {
    "counts": Plan("f", COUNTS),
    "sums": Plan("f", SUMS),
    "means": Plan("f", MEANS),
    "counts by text": Plan("f", COUNTS, BY_S),
    "sums by category": Plan("f", SUMS, BY_E),
    "means by two keys": Plan("f", MEANS, '.group_by("e", "b")'),
    "by day": Plan("f", COUNTS, '.group_by("d", keys=[date(1970,1,1), date(1,1,1), None])'),
    "by moment": Plan(
        "f", COUNTS, '.group_by("t", keys=[datetime(2024,3,10,2,30), datetime(1,1,1), None])'
    ),
    "by small numbers": Plan(
        "f", COUNTS, '.group_by("k", "b", keys={"k": [0, -128, 127, None], "b": [True, None]})'
    ),
    "by a computed number": Plan(
        "f", SUMS, '.group_by(r=pl.col("n") // 10, keys=[-2, -1, 0, 1, 5, None])'
    ),
    "by a condition": Plan("f", COUNTS, '.group_by(big=pl.col("x") > 5, keys=[True, False, None])'),
    "by a constant": Plan("f", COUNTS, '.group_by(pl.lit("x"), keys=["x", "y"])'),
    "filter": Plan('f.filter((pl.col("n") > 3) & pl.col("b"))', COUNTS),
    "filter NaN": Plan('f.filter(pl.col("x") > 2, pl.col("y") <= float("inf"))', COUNTS),
    "filter text": Plan('f.filter(pl.col("s") >= "b", pl.col("s") != "é")', COUNTS, BY_S),
    "filter lists": Plan(
        'f.filter(pl.col("s").is_in(["a", "é", "\\x00"]) | pl.col("i").is_in([0, 2**63 - 1]))',
        COUNTS,
    ),
    "filter floats in a list": Plan(
        'f.filter(pl.col("x").is_in([0.0, float("nan"), float("inf")]))', COUNTS
    ),
    "filter ranges": Plan(
        'f.filter(pl.col("d").is_between(date(1900,1,1), date(2024,6,1)), '
        'pl.col("t") < datetime(2025, 1, 1))',
        COUNTS,
    ),
    "filter three-valued": Plan(
        'f.filter(~(pl.col("b") & pl.col("c")) | (pl.col("b") ^ pl.col("c")))', COUNTS
    ),
    "wrapping": Plan(
        'f.with_columns(i=pl.col("i") * pl.col("i") + pl.col("n") * 3 - pl.col("i"))', SUMS
    ),
    "wrapping negation": Plan('f.with_columns(i=-pl.col("i") - 2**62)', SUMS),
    "narrow arithmetic": Plan('f.with_columns(i=pl.col("k") * pl.col("j") + pl.col("k"))', SUMS),
    "quotients": Plan(
        'f.with_columns(i=pl.col("i") // pl.col("n"), x=pl.col("x") / pl.col("y"))', SUMS
    ),
    "remainders": Plan('f.with_columns(i=pl.col("i") % pl.col("n") + pl.col("j") % 7)', SUMS),
    "large divisors": Plan(
        'f.with_columns(i=pl.col("j") // (2**63 - 1) + pl.col("k") // 2**62, '
        'n=pl.col("n") % (2**63 - 1) + pl.col("j") % 2**62)',
        SUMS + ', c=pl.col("n").dp_count()',
    ),
    "float arithmetic": Plan(
        'f.with_columns(x=(pl.col("x") * 1.1 - pl.col("y")) * pl.col("z") + pl.col("n"))', SUMS
    ),
    "conditions": Plan(
        'f.with_columns(x=pl.when(pl.col("x") > pl.col("y")).then(pl.col("n")).otherwise(2.5))',
        SUMS,
    ),
    "nulls filled": Plan(
        'f.with_columns(pl.col("x").fill_nan(None).fill_null(1.5), pl.col("i").fill_null(7))',
        SUMS + ", " + COUNTS,
    ),
    "casts": Plan(
        'f.with_columns(i=pl.col("x").cast(pl.Int64), x=pl.col("i").cast(pl.Float32))', SUMS
    ),
    "narrow casts": Plan(
        'f.with_columns(i=pl.col("x").cast(pl.Int8), x=pl.col("i").cast(pl.Int16) + 0.5)', SUMS
    ),
    "clipping": Plan(
        'f.with_columns(pl.col("x").clip(-3, 7.5), pl.col("i").clip(upper_bound=11))', SUMS
    ),
    "floors": Plan('f.with_columns(x=pl.col("x").floor(), y=pl.col("y").ceil() * 0.25)', MEANS),
    "extremes of a row": Plan(
        'f.with_columns(x=pl.max_horizontal("x", "y"), i=pl.min_horizontal("i", "n"))', SUMS
    ),
    "text": Plan(
        'f.filter(pl.col("s").str.starts_with("a") | pl.col("s").str.contains("_", literal=True))'
        '.with_columns(i=pl.col("s").str.len_chars())',
        SUMS,
        BY_S,
    ),
    "slices past the end": Plan(
        'f.with_columns(i=pl.col("s").str.slice(2**33, 2).str.len_chars() + 1, '
        'n=pl.col("s").str.head(2**63 - 1).str.len_chars(), '
        'x=pl.col("s").str.slice(1, 2**40).str.len_chars() * 1.0)',
        SUMS + ', n=pl.col("n").dp_sum((0, 99))',
    ),
    "replaced": Plan(
        'f.with_columns(i=pl.col("s").replace_strict({"a": 1, "é": 5}, default=2))', SUMS
    ),
    "dates": Plan(
        'f.with_columns(i=pl.col("d").dt.year() + pl.col("d").dt.month(), '
        'x=pl.col("d").dt.weekday() * 10.0 + pl.col("d").dt.quarter())',
        SUMS,
    ),
    "clock": Plan(
        'f.with_columns(i=pl.col("t").dt.hour() * 100 + pl.col("t").dt.minute(), '
        'j=pl.col("t").dt.day())',
        'a=pl.col("i").dp_sum((0, 2359)), b=pl.col("j").dp_sum((0, 31))',
    ),
    "numbers of dates": Plan(
        "f", 'a=pl.col("d").dp_histogram(4, bounds=(date(1990,1,1), date(2025,1,1)))'
    ),
    "columns": Plan(
        'f.rename({"x": "X", "y": "x"}).drop("z").drop_nulls(["X", "s"]).select("X", "x", "s", '
        'twice=pl.col("x") * 2)',
        'a=pl.col("X").dp_sum((0, 9)), b=pl.col("x").dp_sum((0, 9)), c=pl.col("twice").dp_count()',
        BY_S,
    ),
    "distinct": Plan(
        "f",
        's=pl.col("s").dp_n_unique(), x=pl.col("x").dp_n_unique(), d=pl.col("d").dp_n_unique()',
    ),
    "distinct by group": Plan(
        "f", 's=pl.col("s").dp_n_unique(), i=pl.col("i").dp_n_unique()', BY_E
    ),
    "categories": Plan(
        "f",
        'e=pl.col("e").dp_histogram(other=True), '
        's=pl.col("s").dp_histogram(["a", "", "\\x00", None, "é"], other=True), '
        'b=pl.col("b").dp_histogram(), '
        'i=pl.col("i").dp_argmax(candidates=[0, 7, 2**63 - 1, -2**63])',
    ),
    "bins": Plan(
        "f",
        'x=pl.col("x").dp_histogram([-10, 0, 0.5, 2.5, 90], other=True), '
        'i=pl.col("i").dp_histogram([0, 1, 7, 2**62]), '
        'n=pl.col("n").dp_histogram([0.5, 9.25, 80]), '
        f'y=pl.col("y").dp_histogram({[k / 2 for k in range(150)]}, other=True)',
        BY_E,
    ),
    "many bins of whole numbers": Plan(
        "f",
        'n=pl.col("n").dp_histogram(100, bounds=(0, 50)), '
        'i=pl.col("i").dp_histogram(100, bounds=(2**63 - 101, 2**63 - 1), other=True)',
    ),
    "steps": Plan(
        "f",
        'x=pl.col("x").dp_cdf([-10, -0.0, 0.5, 2.5, 90]), '
        'i=pl.col("i").dp_cdf([0, 1, 7, 2**62]), '
        'n=pl.col("n").dp_cdf([0.5, 9.25, 80], nonnegative=True), '
        'd=pl.col("d").dp_cdf([date(1990, 1, 1), date(2025, 1, 1)]), '
        'y=pl.col("y").dp_cdf(150, bounds=(0, 75))',
        BY_E,
    ),
    "points": Plan(
        "f",
        'a=pl.col("x").dp_median((-100, 100)), b=pl.col("n").dp_quantile(0.9, (0, 100)), '
        'c=pl.col("y").dp_quantile([0.1, 0.5], candidates=[0.5, 1.5, 20, 1e30])',
    ),
    "winners": Plan(
        "f",
        'a=pl.col("s").dp_argmax(candidates=["a", "é", "", "zz"]), '
        'b=pl.col("e").dp_argmax(score=pl.col("y").dp_sum((0, 30)))',
    ),
    "change-one": Plan("f", COUNTS + ", " + SUMS, BY_E, "change-one"),
    "people": Plan("f", PEOPLE, "", "u"),
    "ratios": Plan(
        "f",
        'a=pl.col("x").dp_ratio("y", (-20, 90), denominator_bounds=(0, 30)), '
        'b=pl.col("i").dp_ratio(pl.col("n") * 2, (0, 7), denominator_bounds=(-5, 2**40))',
        BY_E,
    ),
    "ratios of people": Plan(
        'f.limit_groups(2, by="e")',
        'a=pl.col("x").dp_ratio("y", (-20, 90), denominator_bounds=(0, 30), per="unit"), '
        'b=pl.col("i").dp_ratio("n", (0, 7), denominator_bounds=(-5, 99), per="unit")',
        BY_E, "u",
    ),
    "totals of people": Plan(
        'f.limit_groups(2, by="e")',
        'a=pl.col("x").dp_histogram([-10, 0, 0.5, 2.5, 90], other=True, per="unit"), '
        'b=pl.col("i").dp_histogram([0, 1, 7, 2**62], per="unit"), '
        'c=pl.col("x").dp_median((-100, 100), per="unit"), '
        'd=pl.col("n").dp_quantile([0.1, 0.5], (0, 100), per="unit"), '
        'q=pl.col("y").dp_quantile(0.5, candidates=[0.5, 1.5, 20], per="unit"), '
        't=pl.col("x").dp_sum((-20, 90), per="unit")',
        BY_E, "u",
    ),
    "people weighed": Plan("f.limit_norm(1.5)", PEOPLE, "", "u"),
    "people weighed by category": Plan('f.limit_norm("4/3")', PEOPLE, BY_E, "u"),
    "people weighed by text": Plan("f.limit_norm(0.3)", PEOPLE, BY_S, "u"),
    "rows weighed": Plan("f.limit_norm(2.5)", COUNTS + ", " + SUMS, "", "u"),
    "rows weighed by text": Plan("f.limit_norm(2)", COUNTS + ", " + SUMS, BY_S, "u"),
    "rows weighed by category": Plan("f.limit_norm(1)", MEANS, BY_E, "u"),
    "people by category": Plan('f.limit_groups(2, by="e")', PEOPLE, BY_E, "u"),
    "people by text": Plan('f.limit_groups(1, by=["s"])', PEOPLE, BY_S, "u"),
    "people by two": Plan('f.limit_groups(3, by=["n", "b"])', PEOPLE, '.group_by("b", "n", keys='
        '{"b": [True, None], "n": [0, 1, 5, None]})', "u"),
    "rows of people": Plan('f.select("u", "i", "n", "x", "s").limit_rows(2)', SUMS, "", "u"),
    "rows of people by group": Plan(
        'f.select("u", "i", "n", "x", "e").limit_rows(2, by="e").limit_groups(2, by="e")',
        SUMS, BY_E, "u",
    ),
    "first rows of people": Plan(
        'f.select("u", "i", "n", "x", "s", "d").limit_rows(2, order_by="d")', SUMS, "", "u"
    ),
    "first dates of people": Plan(
        'f.limit_groups(2, by="d", order_by="d")',
        PEOPLE,
        '.group_by("d", keys=[date(1970,1,1), date(1,1,1), None])',
        "u",
    ),
    "limits in turn": Plan(
        'f.limit_groups(4, by="n").filter(pl.col("b").fill_null(True)).select("u", "i", "x", "e")'
        '.limit_rows(3)',
        SUMS, BY_E, "u",
    ),
    "text individuals": Plan(
        'f.limit_groups(2, by="e")',
        'people=dp.n_unique("who"), ' + PEOPLE.split(",", 1)[1],
        BY_E,
        "who",
    ),
    "public join": Plan(
        'f.join(PUBLIC, on="s", how="inner").with_columns(x=pl.col("x") * pl.col("rate"))',
        SUMS, '.group_by("region", keys=["n", "s", None])',
    ),
    "public left join": Plan(
        'f.join(PUBLIC, on="s", how="left")', 'r=pl.col("rate").dp_sum((0, 5)), ' + COUNTS, BY_S
    ),
    "public fan-out": Plan(
        'f.join(REPEATED, on="n")', COUNTS, '.group_by("tag", keys=["x", "y", "z"])'
    ),
    "semi and anti joins": Plan(
        'f.join(PUBLIC, on="s", how="anti").join(CALENDAR, on="d", how="semi")', COUNTS
    ),
    "private rows with keys beside the identifier": Plan(
        'f.select("u", "i", "s", "x").limit_rows(3)'
        '.join(g.select("u", "s", "y").limit_rows(1, by="s"), on=["s", "u"], how="left")',
        'n=dp.count(), y=pl.col("y").dp_sum((0, 5)), k=dp.n_unique("u")', "", "u",
    ),
    "public dates": Plan('f.join(CALENDAR, on="d")', 'w=pl.col("w").dp_sum((0, 30))'),
    "private join": Plan(
        'f.select("u", "i", "x").limit_rows(2).join(g.select("u", "y", "e").limit_rows(1), on="u")',
        'a=pl.col("x").dp_sum((0, 9)), b=pl.col("y").dp_sum((0, 9))', BY_E, "u",
    ),
    "private left join": Plan(
        'f.select("u", "i", "x").limit_rows(2).join(g.select("u", "y").limit_rows(1), on="u", '
        'how="left")',
        'a=pl.col("x").dp_sum((0, 9)), b=pl.col("y").dp_count()', "", "u",
    ),
    "join with itself": Plan(
        'f.select("u", "x").limit_rows(1).join(f.select("u", "i").limit_rows(2), on="u")',
        'a=pl.col("x").dp_sum((0, 9)), b=pl.col("i").dp_sum((0, 9))', "", "u",
    ),
    "concat": Plan("f.concat(g)", COUNTS, BY_S),
    "concat of people": Plan(
        'f.concat(g).limit_groups(2, by="e")', PEOPLE, BY_E, "u"
    ),
    "parts": Plan(
        'f.session.partition(f, ["e", pl.col("n") > 9], [("p", True), (None, None)])["p", True]',
        SUMS,
    ),
    "found groups": Plan("f", COUNTS, '.group_by("s")'),
    "found groups of people": Plan(
        'f.limit_groups(2, by=["e", "n"])', PEOPLE, '.group_by("n", "e")', "u"
    ),
    "found groups by weights": Plan(
        "f.limit_norm(1)", PEOPLE.replace("\n", " "), '.group_by("s")', "u"
    ),
    "found groups by weights of rows": Plan("f.limit_norm(3)", SUMS, '.group_by("e", "c")', "who"),
    "windows of moments": Plan("f", PEOPLE, BY_S, "u 1d t"),
    "one row for each person": Plan(
        'f.group_by("u").agg(n=pl.len(), a=pl.col("i").clip(-9, 99).sum(), '
        'b=pl.col("x").clip(-50, 70.5).mean(), lo=pl.col("d").min(), hi=pl.col("x").max(), '
        'k=pl.col("s").n_unique(), z=pl.col("b").any(), m=pl.col("x").n_unique(), '
        'w=pl.col("i").filter(pl.col("b")).len())'
        '.filter(pl.col("lo") > date(1, 1, 1))',
        'c=dp.count(), n=pl.col("n").dp_sum((0, 9)), a=pl.col("a").dp_sum((-99, 999)), '
        'b=pl.col("b").dp_sum((-50, 70.5)), h=pl.col("hi").dp_sum((-9, 99)), '
        'k=pl.col("k").dp_sum((0, 9)), m=pl.col("m").dp_sum((0, 9)), w=pl.col("w").dp_sum((0, 9))',
        '.group_by("z")',
        "u",
    ),
    "one row for each person and category": Plan(
        'f.group_by("u", "e").agg(y=pl.col("y").clip(0, 7).sum() / pl.len(), '
        'q=pl.col("k").max() - pl.col("k").min(), v=pl.col("b").all()).limit_groups(2, by="e")',
        'c=dp.count(), y=pl.col("y").dp_sum((0, 9)), q=pl.col("q").dp_sum((0, 300))',
        BY_E,
        "u",
    ),
    "aggregates over each person": Plan(
        'f.with_columns(n=pl.len().over("u"), t=pl.col("x").clip(-1, 9).sum().over("u", "s"))'
        '.filter(pl.col("i").clip(-9, 9).mean().over("u") < 7).select("u", "n", "t", "e")'
        ".limit_rows(3)",
        'c=dp.count(), n=pl.col("n").dp_sum((0, 9)), t=pl.col("t").dp_sum((-9, 99))',
        "",
        "u",
    ),
    "rows of people who are there": Plan(
        'f.select("u", "i").join(g.filter(pl.col("x") > 3), on="u", how="semi").limit_rows(2)',
        'a=pl.col("i").dp_sum((-9, 99)), c=dp.count()',
        "",
        "u",
    ),
    "rows of people who are not": Plan(
        'f.select("u", "i", "s").join(g.filter(pl.col("x") > 3), on=["u", "s"], how="anti")'
        ".limit_rows(2)",
        'a=pl.col("i").dp_sum((-9, 99)), c=dp.count()',
        "",
        "u",
    ),
    "windows of dates": Plan('f.limit_groups(2, by="n").limit_rows(3)', SUMS, BY_E, "u 1w d"),
    "windows and groups": Plan('f.limit_groups(1, by="e")', PEOPLE, BY_E, "u 1mo t"),
    "windows and rows": Plan(
        'f.limit_rows(1, by="e").with_columns(n=pl.col("t").dt.day())', SUMS, BY_E, "who 1q t"
    ),
    "windows and norms": Plan("f.limit_norm(1)", PEOPLE.split(",")[0], BY_E, "u 1mo d"),
    "windows and choices": Plan(
        "f.limit_rows(2)", 'a=pl.col("s").dp_argmax(candidates=["a", "é"], '
        'score=dp.n_unique("u"))', BY_E, "u 1y t"
    ),
    "windows that meet": Plan(
        'f.limit_rows(2).join(g.rename({"t": "at"}).limit_rows(1), on="u")', SUMS, BY_E, "u 1y d"
    ),
    "windows together": Plan(
        'f.limit_rows(2).concat(g.filter(pl.col("n") > 1).limit_rows(2))', PEOPLE, BY_E, "u 1q d"
    ),
    "found groups in windows": Plan(
        "f", 'people=dp.n_unique("u")', '.group_by("e")', "u 1mo t"
    ),
    "found days": Plan("f", SUMS, '.group_by(pl.col("d").dt.month())'),
}  # fmt: skip

FRAMES = {"f": rows(1, 300), "g": rows(2, 200)}


def units(unit: str) -> Any:
    column, *windows = unit.split()
    if windows:
        every, time = windows
        return dp.Identifier(column, window=every, time=time)  # type: ignore[arg-type]
    return {"rows": dp.Rows(), "change-one": dp.Rows("change-one")}.get(unit, unit)


def query(plan: Plan) -> tuple[Query, dict[int, str]]:
    """The query on Polars frames, and which frame each token is of; limits have a known salt."""
    session = dp.Session(epsilon=1, delta=0.1)
    names: dict[str, Any] = {"pl": pl, "dp": dp, "date": date, "datetime": datetime}
    names |= {"PUBLIC": PUBLIC, "REPEATED": REPEATED, "CALENDAR": CALENDAR}
    tokens = {}
    for name, frame in FRAMES.items():
        private = session.protect(frame, units(plan.unit), name=name)
        names[name] = private
        tokens[private._relation.token] = name
    asked = parts(eval(f"{plan.steps}{plan.groups}.agg({plan.outputs})", names))[0]
    return replace(asked, relation=replace(asked.relation, salt=12345)), tokens
