"""Each structural risk and question has a plan that it names, and one as close to it as possible
that it does not name.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.report.first_page import QUESTIONS, questions_in

PEOPLE = pl.LazyFrame(
    schema={
        "sex": pl.String,
        "town": pl.String,
        "job": pl.String,
        "birth_date": pl.Date,
        "seen_at": pl.Datetime(),
        "year": pl.Int64,
        "age": pl.Int64,
        "income": pl.Int64,
        "decision": pl.String,
        "is_member": pl.Boolean,
    }
)
ONE, TOWN, JOB = pl.col("sex") == "F", pl.col("town") == "Thun", pl.col("job") == "mayor"


def rows(**about: Any) -> dp.PrivateFrame:
    session = dp.Session(epsilon=100, delta="1e-6")
    return session.protect(PEOPLE, unit=dp.Rows(), name="people", **about)


def clients(unit: Any = "client", **about: Any) -> dp.PrivateFrame:
    frame = PEOPLE.with_columns(
        client=pl.lit(1), order_no=pl.lit(1), visit_date=pl.lit(dt.date.max)
    )
    session = dp.Session(epsilon=100, delta="1e-6")
    return session.protect(frame, unit=unit, name="people", **about)


def total(frame: dp.PrivateFrame, value: str = "income") -> dp.PrivateQuery:
    return frame.agg(dp.sum(value, (0, 100)).alias("s"))


def counted(condition: Any) -> Any:
    return condition.cast(pl.Int64).dp_sum((0, 1))


def by_bands(*keys: str) -> dp.PrivateQuery:
    bands = pl.col("town")
    return rows().group_by(bands, keys=list(keys)).agg(dp.count())


def bounded(low: float, high: float) -> dp.PrivateQuery:
    return rows().agg(dp.mean("income", (low, high)).alias("m"))


def monthly(epsilon: int) -> dp.Plan:
    unit = dp.Identifier("client", window="1mo", time="visit_date")
    return clients(unit).limit_rows(2).dp_count().plan(epsilon=epsilon)


def weighed(*weights: float) -> dp.PrivateQuery:
    outputs = [
        dp.sum("income", (0, 50 + i), weight=w).alias(f"n_{i}") for i, w in enumerate(weights)
    ]
    return rows().agg(*outputs)


def scored(most: int) -> dp.PrivateQuery:
    say = pl.when(JOB).then(most).when(TOWN).then(2).otherwise(1)
    frame = rows().with_columns(say=say)
    return frame.dp_argmax("decision", candidates=["pool", "park"], score=pl.col("say"))


def two_sums(one: Any, other: Any) -> dp.PrivateQuery:
    pay = pl.col("income").clip(0, 500)
    return rows().agg(a=pay.filter(one).sum(), b=pay.filter(other).sum())


def unequal(one: Any, other: Any) -> dp.PrivateQuery:
    pay = pl.col("income").clip(0, 500)
    return rows().agg(apart=pay.filter(one).sum() - pay.filter(other).sum())


def flags(**named: Any) -> dp.PrivateQuery:
    return rows().agg(**{name: counted(condition) for name, condition in named.items()})


AGE, DECISION = pl.col("age"), pl.col("decision")
LATE = dt.date(1998, 5, 3)

PAIRS: dict[str, tuple[str, Any, Any]] = {
    "equalities in one filter": (
        "singles people out: 'len' rests on rows with sex == 'F' and town == 'Thun' and job",
        lambda: rows().filter(ONE & TOWN & JOB).dp_count(),
        lambda: rows().filter(ONE & TOWN).dp_count(),
    ),
    "equalities, of which one fits all": (
        "singles people out",
        lambda: rows().filter(ONE, TOWN, pl.col("age") == 71).dp_count(),
        lambda: rows().filter(ONE, TOWN, pl.col("year") == 2026, pl.col("is_member")).dp_count(),
    ),
    "equalities, any of which is enough": (
        "singles people out",
        lambda: rows().filter(~(ONE.not_() | (TOWN & JOB).not_()) | (ONE & TOWN & JOB)).dp_count(),
        lambda: rows().filter(ONE | TOWN | JOB).dp_count(),
    ),
    "equalities over filter, expression and with_columns": (
        "singles people out: 's' rests on rows with sex == 'F' and town == 'Thun' and job",
        lambda: total(
            rows()
            .filter(ONE)
            .with_columns(here=TOWN)
            .with_columns(t=pl.when(pl.col("here") & JOB).then("income").otherwise(0)),
            "t",
        ),
        lambda: total(
            rows()
            .filter(ONE)
            .with_columns(here=TOWN, mayor=JOB)
            .with_columns(t=pl.when(pl.col("here")).then("income").otherwise(0)),
            "t",
        ),
    ),
    "equalities in the branches of when": (
        "singles people out",
        lambda: total(rows().with_columns(t=pl.when(ONE & TOWN & JOB).then(5).otherwise(1)), "t"),
        lambda: total(
            rows().with_columns(
                t=pl.when(ONE).then(5).when(TOWN).then(3).when(JOB).then(2).otherwise(1)
            ),
            "t",
        ),
    ),
    "dates of birth": (
        "a date of birth that few people share",
        lambda: rows().filter(pl.col("birth_date") == LATE).dp_count(),
        lambda: rows().filter(pl.col("birth_date") >= LATE).dp_count(),
    ),
    "days of birth beside other equalities": (
        "singles people out",
        lambda: (
            rows()
            .filter(ONE, TOWN, pl.col("birth_date").is_between(LATE, dt.date(1998, 5, 6)))
            .dp_count()
        ),
        lambda: (
            rows()
            .filter(ONE, TOWN, pl.col("birth_date").is_between(LATE, dt.date(1999, 5, 6)))
            .dp_count()
        ),
    ),
    "less than a day": (
        "less than a day",
        lambda: (
            rows()
            .filter(
                pl.col("seen_at").is_between(dt.datetime(2026, 3, 1, 8), dt.datetime(2026, 3, 1, 9))
            )
            .dp_count()
        ),
        lambda: (
            rows()
            .filter(pl.col("seen_at").is_between(dt.datetime(2026, 3, 1), dt.datetime(2026, 3, 2)))
            .dp_count()
        ),
    ),
    "keys that are names of people": (
        "2 of 2 keys shown look like names",
        lambda: by_bands("Ann Miller", "John Smith"),
        lambda: by_bands("Saint Anne", "Los Angeles"),
    ),
    "keys that are addresses": (
        "look like addresses",
        lambda: by_bands("12 Mill Lane", "14 Mill Lane"),
        lambda: by_bands("District 12", "Ward 14"),
    ),
    "candidates that are names of people": (
        "candidates shown look like names",
        lambda: rows().dp_argmax("job", candidates=["Maria Lopez", "Hans Keller"]),
        lambda: rows().dp_argmax("job", candidates=["Nurse Manager", "Head Chef"]),
    ),
    "bands with a gap": (
        "the keys '18-34' and '50-64' leave out 35 to 49",
        lambda: by_bands("0-17", "18-34", "50-64", "65+"),
        lambda: by_bands("0-17", "18-34", "35-64", "65+"),
    ),
    "bands of tens": (
        "leave out 20 to 29",
        lambda: by_bands("0-10", "10-19", "30-40"),
        lambda: by_bands("0-10", "10-20", "20-30"),
    ),
    "bounds with many digits": (
        "the bounds 356,483 and 2,847,613 of 'income' are not round",
        lambda: bounded(356_483, 2_847_613),
        lambda: bounded(356_000, 2_850_000),
    ),
    "bounds with parts": (
        "the bounds 16.3 and 87.4 of 'income' are not round",
        lambda: bounded(16.3, 87.4),
        lambda: bounded(16.5, 87),
    ),
    "one bound with many digits": (
        "the bound 1441 of 'income' is not round",
        lambda: bounded(0, 1441),
        lambda: bounded(0, 1440),
    ),
    "the largest value": (
        "'q' is the smallest or largest value",
        lambda: rows().agg(dp.quantile("income", 1.0, (0, 9000)).alias("q")),
        lambda: rows().agg(dp.quantile("income", 0.99, (0, 9000)).alias("q")),
    ),
    "an output with nearly no budget": (
        "'n_1' gets ",
        lambda: weighed(40, 1),
        lambda: weighed(30, 1),
    ),
    "outputs that share the spend equally": (
        "'n_1' gets ",
        lambda: weighed(1, 0.01),
        lambda: rows().agg(*(dp.median("age", (0, 90 + i)).alias(f"n_{i}") for i in range(40))),
    ),
    "a row that decides alone": (
        "counts one row 5000 times as much as another",
        lambda: scored(5000),
        lambda: scored(90),
    ),
    "sums that differ in one value": (
        "'a' and 'b' differ only in rows with age == 71",
        lambda: two_sums(AGE <= 71, AGE < 71),
        lambda: two_sums(AGE <= 71, AGE > 71),
    ),
    "sums that differ in few values": (
        "'a' and 'b' differ only in age <= 71 and age <= 70",
        lambda: two_sums(AGE <= 71, AGE <= 70),
        lambda: two_sums(AGE <= 71, AGE <= 60),
    ),
    "sums of which one leaves out an exact value": (
        "'a' and 'b' differ only in age != 71",
        lambda: two_sums(TOWN, TOWN & (AGE != 71)),
        lambda: two_sums(TOWN, TOWN & (DECISION != "open")),
    ),
    "a difference of sums in one output": (
        "'apart' subtracts numbers that differ only in rows with age == 71",
        lambda: unequal(AGE <= 71, AGE < 71),
        lambda: unequal(ONE, pl.col("sex") == "M"),
    ),
    "names of outputs that are swapped": (
        "the output 'granted' is named like the value 'granted'",
        lambda: flags(granted=DECISION == "refused", refused=DECISION == "granted"),
        lambda: flags(granted=DECISION == "granted", refused=DECISION == "refused"),
    ),
    "an output named like what it leaves out": (
        "the output 'granted' is named like the value 'granted'",
        lambda: flags(granted=DECISION != "granted"),
        lambda: flags(not_granted=DECISION != "granted"),
    ),
    "an output named like another column": (
        "the output 'age' is computed from 'income' and named like another column",
        lambda: rows().with_columns(x=AGE).agg(dp.mean("income", (0, 90)).alias("age")),
        lambda: rows().with_columns(x=AGE).agg(dp.mean("x", (0, 90)).alias("age")),
    ),
    "an output named like a quantity that it is not": (
        "the output 'mean_age' is computed from 'income', which its name does not say",
        lambda: rows().agg(dp.mean("income", (0, 90)).alias("mean_age")),
        lambda: rows().agg(dp.mean("income", (0, 90)).alias("mean_salary")),
    ),
    "a sum that is called a mean": (
        "the output 'mean_income' is called a mean",
        lambda: rows().agg(dp.sum("income", (0, 90)).alias("mean_income")),
        lambda: rows().agg((dp.sum("income", (0, 90)) / dp.count()).alias("mean_income")),
    ),
    "rows that are called people": (
        "the output 'clients' counts rows, and one person may have several",
        lambda: clients().limit_rows(2).agg(dp.count().alias("clients")),
        lambda: clients().limit_rows(1).agg(dp.count().alias("clients")),
    ),
    "a number without noise": (
        "'n' is released exactly",
        lambda: (
            dp.Session(epsilon=9)
            .protect(PEOPLE, unit=dp.Rows("change-one"), name="people")
            .agg(dp.count().alias("n"), dp.mean("age", (0, 100)).alias("m"))
        ),
        lambda: (
            dp.Session(epsilon=9)
            .protect(PEOPLE, unit=dp.Rows("change-one"), name="people")
            .agg(dp.mean("age", (0, 100)).alias("m"), dp.sum("age", (0, 100)).alias("s"))
        ),
    ),
    "an event that is protected": (
        "'order_no' is protected, which looks like one event",
        lambda: clients("order_no").limit_rows(1).dp_count(),
        lambda: clients("client").limit_rows(1).dp_count(),
    ),
    "a year of months": (
        "epsilon 2 a month is epsilon 24 for someone present all year",
        lambda: monthly(2),
        lambda: monthly(1),
    ),
}


def plan_of(build: Any) -> dp.Plan:
    found = build()
    return found if isinstance(found, dp.Plan) else found.plan(epsilon=1)


@pytest.mark.parametrize("name", PAIRS)
def test_a_risk_is_named_and_its_near_miss_is_not(name: str) -> None:
    words, bad, good = PAIRS[name]
    assert any(words in risk for risk in plan_of(bad).risks), plan_of(bad).risks
    assert plan_of(good).risks == ()


def asked(build: Any) -> tuple[str, ...]:
    plan = plan_of(build)
    questions = questions_in(plan)
    assert all(question in plan.explain().partition(QUESTIONS)[2] for question in questions)
    return questions


PUBLIC = pl.DataFrame({"town": ["Thun"], "mean_income": [3]})
PLACES = pl.DataFrame({"town": ["Thun"], "canton": ["BE"]})

QUESTIONS_OF: dict[str, tuple[str, Any, Any]] = {
    "who has one row": (
        "Does each person have exactly one row in people?",
        lambda: rows().dp_count(),
        lambda: clients().limit_rows(1).dp_count(),
    ),
    "who is a person": (
        "Is one value of 'order_no' one person",
        lambda: clients("order_no").limit_rows(1).dp_count(),
        lambda: clients().limit_rows(1).dp_count(),
    ),
    "limits that drop rows": (
        "more than 3 rows?",
        lambda: clients().limit_rows(3).dp_count(),
        lambda: clients().agg(dp.n_unique("client")),
    ),
    "limits of a frame that is joined below": (
        "or 7 rows in others?",
        lambda: below(7),
        lambda: below(None),
    ),
    "a public frame": (
        "Is the public frame with 1 row (town, canton) free of private data",
        lambda: rows().join(PLACES, on="town").dp_count(),
        lambda: rows().dp_count(),
    ),
    "a public frame that looks computed": (
        "mean_income is named like a statistic of a private column",
        lambda: rows().filter(pl.col("income") > 5).join(PUBLIC, on="town").dp_count(),
        lambda: rows().filter(pl.col("income") > 5).join(PLACES, on="town").dp_count(),
    ),
    "few people in a filter": (
        "Are there many people with age > 90",
        lambda: rows().filter(AGE > 90).dp_count(),
        lambda: rows().filter(pl.col("is_member")).dp_count(),
    ),
    "keys": (
        "Are these 2 keys public and complete",
        lambda: rows().group_by("town", keys=["a", "b"]).agg(dp.count()),
        lambda: rows().group_by("is_member").agg(dp.count()),
    ),
    "groups that dpframe finds": (
        "May it be known which values of town occur?",
        lambda: rows().group_by("town").agg(dp.count()).plan(epsilon=1, delta="1e-7"),
        lambda: rows().group_by("town", keys=["a"]).agg(dp.count()),
    ),
    "bounds": (
        "Do these bounds come from public knowledge",
        lambda: bounded(0, 90),
        lambda: rows().dp_count(),
    ),
    "scores": (
        "Does the score of 'decision' treat all alike",
        lambda: scored(90),
        lambda: rows().dp_argmax("decision", candidates=["pool", "park"]),
    ),
    "weights": (
        "Are the weights of the outputs intended",
        lambda: weighed(3, 1),
        lambda: weighed(1, 1),
    ),
    "noise": (
        "rows or more? With fewer, 'len'",
        lambda: rows().dp_count().plan(epsilon="0.01"),
        lambda: rows().dp_count().plan(epsilon="1"),
    ),
    "epsilon": (
        "Is epsilon 2 needed for this purpose?",
        lambda: rows().dp_count().plan(epsilon=2),
        lambda: rows().dp_count().plan(epsilon="1.9"),
    ),
}


def below(limit: int | None) -> dp.PrivateQuery:
    session = dp.Session(epsilon=9)
    schema = {"client": pl.Int64, "cost": pl.Int64}
    frames = [
        session.protect(pl.LazyFrame(schema=schema), unit="client", name=name).limit_rows(2)
        for name in ("people", "others")
    ]
    other = frames[1] if limit is None else frames[1].limit_rows(limit)
    return frames[0].concat(other).dp_count()


@pytest.mark.parametrize("name", QUESTIONS_OF)
def test_a_question_is_asked_and_its_near_miss_is_not(name: str) -> None:
    words, doubtful, clear = QUESTIONS_OF[name]
    assert any(words in question for question in asked(doubtful)), asked(doubtful)
    assert not any(words in question for question in asked(clear))
