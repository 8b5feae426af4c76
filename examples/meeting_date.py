"""Choose a date for a meeting: only the date is released, and not who can come when.

    python examples/meeting_date.py

Each person has one row: the weekday on which they never can, and the days that they are away. The
dates to choose from are public. The score of a date is the number of people who can come, so one
person moves each score by at most 1; the date is chosen privately among those with high scores. The
second table shows how often each date would have won, and the exact scores, which stay secret if
people are real.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

import polars as pl

import dpframe as dp

MONDAY = date(2026, 3, 2)
DATES = pl.DataFrame({"day": [MONDAY + timedelta(days=n) for n in range(12) if n % 7 < 5]})
"""Two working weeks, which are public."""
DRAWS = 100


def main() -> None:
    """Choose once, as one would; then look at what else could have happened."""
    people = made_up_people()
    session = dp.Session(epsilon=1, name="meeting")
    query = chooser(session.protect(people, unit=dp.Rows()))
    print(query.explain(epsilon=1))

    chosen = query.collect(epsilon=1)["day"].item()
    off = query.plan(epsilon=1).accuracy("day")
    print(f"\nThe meeting is on {chosen:%A, %d %B}.")
    print(f"With 95% confidence at most {int(off)} more of {len(people)} can come on another day.")
    print("\nOn made-up people one may look, and draw again:\n")
    with pl.Config(
        tbl_rows=len(DATES),
        tbl_formatting="NOTHING",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
    ):
        print(compare(people))


def chooser(people: dp.PrivateFrame) -> dp.PrivateQuery:
    """The date on which most people can come. `day` is a column of the dates, all others of people,
    and no date is compared with anything but the row of one person.
    """
    here = ~pl.col("day").is_between(pl.col("away_from"), pl.col("away_to"))
    can_come = here & (pl.col("day").dt.weekday() != pl.col("never_on"))
    return people.agg(dp.argmax(score=can_come.cast(pl.Int64), candidates=DATES).alias("day"))


def made_up_people() -> pl.DataFrame:
    """A department of 90 people. A third is at a fair in the first week."""
    number = pl.int_range(90)
    at_fair = number % 3 == 0
    first = pl.when(at_fair).then(number % 2).otherwise(number * 5 % 12).cast(pl.Int64)
    length = pl.when(at_fair).then(3).otherwise(number % 4)
    return pl.select(
        never_on=(number * 7 % 11 % 5 + 1).cast(pl.Int8),
        away_from=pl.lit(MONDAY).dt.offset_by(pl.format("{}d", first)),
        away_to=pl.lit(MONDAY).dt.offset_by(pl.format("{}d", first + length)),
    )


def compare(people: pl.DataFrame) -> pl.DataFrame:
    """For each date: who can come exactly, and how often it wins at two budgets."""
    wins = {}
    for epsilon in (0.1, 0.3):
        session = dp.Session(epsilon=DRAWS * epsilon)  # for made-up people only
        query = chooser(session.protect(people, unit=dp.Rows()))
        drawn = Counter(query.collect(epsilon=epsilon)["day"].item() for _ in range(DRAWS))
        won = pl.Series([f"{drawn[day] / DRAWS:.0%}" for day in DATES["day"]])
        wins[f"wins at {epsilon}"] = won
    can = []
    for day in DATES["day"]:
        away = pl.lit(day).is_between(pl.col("away_from"), pl.col("away_to"))
        can.append(people.filter(~away, pl.col("never_on") != day.isoweekday()).height)
    day = DATES["day"].dt.strftime("%a %d %b").alias("day")
    return pl.DataFrame({"day": day, "can come": can, **wins})


if __name__ == "__main__":
    main()
