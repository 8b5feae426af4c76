"""A table by education and sex, as a statistical office would publish it, with its errors.

    python examples/census_table.py

One noisy count serves the sizes and both means of the 32 groups, so the budget is divided by three
and not by five. Each number comes with a 95% interval. The second table compares everything with
the exact results: that is possible because these data are public. With private data the intervals
have to do.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

import dpframe as dp

DATA = Path(__file__).parent / "data" / "adult.parquet"
EDUCATIONS = [
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th"),
    *("HS-grad", "Some-college", "Assoc-voc", "Assoc-acdm"),
    *("Bachelors", "Masters", "Prof-school", "Doctorate"),
]
"""As the census form lists them: public, so the keys of a group-by."""
KEYS = {"education": EDUCATIONS, "sex": ["Female", "Male"]}
BOUNDS = {"age": (17, 90), "hours": (1, 80)}
"""Values outside count as the nearest end: bias, which intervals do not cover."""
EPSILON = 1.0


def main() -> None:
    """Publish the table, then compare it."""
    people = pl.read_parquet(DATA).rename({"hours_per_week": "hours"})
    published = release(people)
    print(f"\nThe published table, epsilon {EPSILON} in all, 95% intervals in brackets\n")
    show(table(published))
    print("\nHow far off it is, by size of the group: medians of absolute errors\n")
    show(errors(published, exact(people)))


def release(people: pl.DataFrame) -> pl.DataFrame:
    """The private part: after this there is nothing but noisy numbers."""
    session = dp.Session(epsilon=EPSILON, name="census")
    rows = session.protect(people, unit=dp.Rows())
    complete = rows.drop_nulls(list(BOUNDS))  # so the same count is below both means
    query = complete.group_by("education", "sex", keys=KEYS).agg(
        dp.count().alias("n"),
        dp.mean("age", BOUNDS["age"]),
        dp.mean("hours", BOUNDS["hours"]),
    )
    print(query.explain(epsilon=EPSILON))
    return query.collect(epsilon=EPSILON, interval=0.95)


def exact(people: pl.DataFrame) -> pl.DataFrame:
    """The same without noise and without bounds."""
    means = [pl.col(name).mean().alias(f"{name}_exact") for name in BOUNDS]
    return people.group_by("education", "sex").agg(pl.len().alias("n_exact"), *means)


def table(published: pl.DataFrame) -> pl.DataFrame:
    """One row for each education, with columns for women and men."""

    def cell(name: str, digits: int) -> pl.Expr:
        number, low, high = (pl.col(c).round(digits) for c in (name, f"{name}_low", f"{name}_high"))
        shown = pl.format("{} [{}, {}]", number, low, high).fill_null("-")
        return shown.alias(name if name == "n" else f"mean {name}")

    cells = published.select("education", "sex", cell("n", 0), cell("age", 1), cell("hours", 1))
    women, men = (cells.filter(sex=sex).drop("sex") for sex in KEYS["sex"])
    return women.join(men, on="education", suffix=", men", maintain_order="left").rename(
        {name: f"{name}, women" for name in women.columns[1:]}
    )


def errors(published: pl.DataFrame, exact: pl.DataFrame) -> pl.DataFrame:
    """Median errors, and how many intervals hold the exact number."""
    both = published.join(exact, on=["education", "sex"], maintain_order="left")
    n = pl.col("n_exact")
    small, middle = pl.when(n <= 100).then(pl.lit("to 100")), pl.lit("to 1,000")
    size = small.when(n <= 1000).then(middle).otherwise(pl.lit("larger"))
    names = ["n", *BOUNDS]

    def holds(name: str) -> pl.Expr:
        return pl.col(f"{name}_exact").is_between(pl.col(f"{name}_low"), pl.col(f"{name}_high"))

    off = [(pl.col(n) - pl.col(f"{n}_exact")).abs().median().round(2).alias(n) for n in names]
    share = (pl.col("n") / n - 1).abs().median() * 100
    return (
        both.group_by(size.alias("people in the group"))
        .agg(
            pl.len().alias("groups"),
            *off,
            share.round(2).alias("n, percent"),
            pl.sum_horizontal(holds(n).sum() for n in names).alias("intervals that hold"),
            (len(names) * pl.len()).alias("of"),
            n.min().alias("least"),
        )
        .sort("least")
        .drop("least")
    )


def show(frame: pl.DataFrame) -> None:
    """Print a table whole, without types and frame."""
    with pl.Config(
        tbl_rows=40,
        tbl_cols=20,
        tbl_width_chars=160,
        fmt_str_lengths=40,
        tbl_formatting="NOTHING",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
    ):
        print(frame)


if __name__ == "__main__":
    main()
