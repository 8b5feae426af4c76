"""Six queries that a data scientist might write over the Adult census data.

Each is a function, so that type checkers read it; what is printed is its source, then its plan and
its result.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dpframe import examples
from dpframe.api import functions as dp
from dpframe.api.frame import PrivateFrame
from dpframe.api.query import PrivateQuery
from dpframe.api.session import Session
from dpframe.core.units import Rows
from dpframe.errors import BudgetExceeded

# Public knowledge: the census form offers these. Listing them keeps them from being read from data.
EDUCATIONS = ["HS-grad", "Some-college", "Bachelors", "Masters", "Doctorate"]
OCCUPATIONS = [
    "Adm-clerical",
    "Armed-Forces",
    "Craft-repair",
    "Exec-managerial",
    "Farming-fishing",
    "Handlers-cleaners",
    "Machine-op-inspct",
    "Other-service",
    "Priv-house-serv",
    "Prof-specialty",
    "Protective-serv",
    "Sales",
    "Tech-support",
    "Transport-moving",
]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its query, and the spend for it."""

    title: str
    query: Callable[[PrivateFrame], PrivateQuery]
    epsilon: float


def forty_or_older(people: PrivateFrame) -> PrivateQuery:
    return people.filter(pl.col("age") >= 40).dp_count()


def by_education(people: PrivateFrame) -> PrivateQuery:
    complete = people.drop_nulls(["age", "hours_per_week"])
    return complete.group_by("education", keys=EDUCATIONS).agg(
        dp.count().alias("n"),
        dp.mean("age", (17, 90)).alias("mean_age"),
        dp.mean("hours_per_week", (1, 99)).alias("mean_hours"),
    )


def ages(people: PrivateFrame) -> PrivateQuery:
    return people.dp_histogram("age", bins=[0, 20, 30, 40, 50, 60, 70, 120])


def most_common_occupation(people: PrivateFrame) -> PrivateQuery:
    return people.dp_argmax("occupation", candidates=OCCUPATIONS)


def overtime(people: PrivateFrame) -> PrivateQuery:
    worked = people.with_columns(overtime=pl.col("hours_per_week").clip(40, 80) - 40)
    return worked.dp_sum("overtime")


def rich_doctors(people: PrivateFrame) -> PrivateQuery:
    rich = people.filter((pl.col("education") == "Doctorate") & (pl.col("income") == ">50K"))
    return rich.dp_count()


QUESTIONS = (
    Question("How many are forty or older?", forty_or_older, 0.1),
    Question("Size, age and hours by education: one noisy count serves all", by_education, 0.3),
    Question("The distribution of ages", ages, 0.1),
    Question("The most common occupation: only its name comes out", most_common_occupation, 0.1),
    Question("Overtime in all; its bounds follow from the expression", overtime, 0.1),
    Question("One question more than the budget allows", rich_doctors, 0.5),
)


def run(data: Path | None = None) -> int:
    """Print all questions, their plans and their results; the result is the exit code."""
    session = Session(epsilon=1.0, name="adult")
    census = examples.adult() if data is None else pl.scan_parquet(data)
    people = session.protect(census, unit=Rows())
    print("32,561 people of a public census extract, one row each, as if they were private.\n")
    print('session = dp.Session(epsilon=1.0, name="adult")')
    print("people = session.protect(dp.examples.adult(), unit=dp.Rows())")
    for number, question in enumerate(QUESTIONS, start=1):
        print(f"\n{_rule(f'{number}. {question.title}')}\n")
        print(shown(question))
        query = question.query(people)
        print(f"\nquery.explain(epsilon={question.epsilon})\n")
        print(textwrap.indent(query.explain(epsilon=question.epsilon), "  "))
        print(f"\nquery.collect(epsilon={question.epsilon})\n")
        try:
            print(textwrap.indent(str(query.collect(epsilon=question.epsilon)), "  "))
        except BudgetExceeded as error:
            print(textwrap.indent(f"BudgetExceeded: {error}", "  "))
        print(f"\nremaining: {session.remaining.words()}")
    return 0


def shown(question: Question) -> str:
    """The code of a question, as an analyst would type it."""
    _, _, body = inspect.getsource(question.query).partition("\n")
    return textwrap.dedent(body).replace("return ", "query = ", 1).rstrip()


def _rule(title: str) -> str:
    return f"--- {title} ".ljust(100, "-")
