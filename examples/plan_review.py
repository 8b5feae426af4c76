"""What a reviewer does with a plan, who has neither the data nor the analyst's code.

    python examples/plan_review.py

A plan was approved last year; now another is submitted, as a file. The reviewer reads it, compares
it with last year's, and computes its cost again with other theorems. Then the reviewer checks a
sensitivity by hand on the worst possible frames, and approves the plan for a ledger. From then on
that plan runs, and no other.
"""

from __future__ import annotations

import tempfile
from math import sqrt
from pathlib import Path

import polars as pl

import dpframe as dp
from dpframe import accounting
from dpframe.cli import main as dpframe

REGIONS = ["north", "south", "east", "west"]
SCHEMA = {"person": pl.Int64, "region": pl.String, "spent": pl.Float64}
DELTA = 1e-7
BUDGET = dp.ApproxDP(2, DELTA)


def main() -> None:
    """Two plans arrive as files; the second one is reviewed."""
    with tempfile.TemporaryDirectory() as folder:
        before, now, ledger = (Path(folder) / name for name in ("2025.json", "2026.json", "db"))
        before.write_text(submitted(regions=2, most=100, epsilon=0.5), encoding="utf-8")
        now.write_text(submitted(regions=3, most=200, epsilon=1.0), encoding="utf-8")

        plan = dp.Plan.from_json(now)
        print(f"--- 1. Read it: fingerprint {plan.fingerprint[:16]}\n\n{plan.explain()}")
        print("\n--- 2. What is new since last year's\n")
        print(dp.Plan.from_json(before).diff(plan))
        print(f"\n--- 3. Count the cost again: at delta {DELTA:g} it claims {plan.cost.words()}\n")
        show(recounted(plan))
        print("\n--- 4. Check the sensitivity of `spent` on the worst frames\n")
        show(checked_by_hand(plan))
        print("\n--- 5. Approve it, and nothing else\n")
        approve(now, ledger)


def submitted(regions: int, most: int, epsilon: float) -> str:
    """The analyst's side: a plan as JSON. No data are read for it."""
    session = dp.Session(BUDGET, name="spending")
    asked = query(session, pl.LazyFrame(schema=SCHEMA), regions, most)
    return asked.plan(epsilon=epsilon).to_json()


def query(session: dp.Session, frame: pl.LazyFrame, regions: int, most: int) -> dp.PrivateQuery:
    """People, and what they spend, by region."""
    people = session.protect(frame, unit="person", name="purchases")
    return (
        people.limit_groups(regions, by="region")
        .group_by("region", keys=REGIONS)
        .agg(people=dp.n_unique("person"), spent=dp.sum("spent", (0, most), per="unit"))
    )


def recounted(plan: dp.Plan) -> pl.DataFrame:
    """What the plan's events cost together, by each theorem that applies: all are upper bounds, so
    the plan keeps its word where the least of them is no more than it claims.
    """
    found = accounting.compare(plan.events, DELTA).select("method", "epsilon")
    kept = pl.when(pl.col("epsilon") <= plan.cost.main + 1e-9).then(pl.lit("keeps it"))
    return found.sort("epsilon").with_columns(kept.otherwise(pl.lit("")).alias("claim"))


def checked_by_hand(plan: dp.Plan) -> pl.DataFrame:
    """The claimed sensitivity, and how far the worst person moves the exact result.

    The plan says: at most 3 regions of a person, and a total of 0 to 200 in each. So the worst
    person spends more than that in three regions, and the neighbour of that frame is without them.
    """
    one = pl.DataFrame({"person": 1, "region": REGIONS[:3], "spent": 1e6}, schema=SCHEMA)
    others = pl.DataFrame({"person": [2, 3], "region": REGIONS[2:], "spent": 50.0}, schema=SCHEMA)
    moved = (clamped_totals(pl.concat([one, others])) - clamped_totals(others)).abs().to_list()
    claimed = next(release for release in plan.releases if release.name == "spent").sensitivity
    norms = {
        "L0, regions": (claimed.l0, sum(m > 0 for m in moved)),
        "L1": (claimed.l1, sum(moved)),
        "L2": (claimed.l2, sqrt(sum(m * m for m in moved))),
        "Linf": (claimed.linf, max(moved)),
    }
    rows = [(norm, float(says), float(found)) for norm, (says, found) in norms.items()]
    return pl.DataFrame(rows, schema=["norm", "plan says", "worst person"], orient="row")


def clamped_totals(frame: pl.DataFrame) -> pl.Series:
    """What the plan says it adds up, in plain Polars: totals of persons, clamped, by region."""
    totals = frame.group_by("region", "person").agg(pl.col("spent").sum().clip(0, 200))
    by_region = totals.group_by("region").agg(pl.col("spent").sum())
    listed = pl.DataFrame({"region": REGIONS})
    joined = listed.join(by_region, on="region", how="left", maintain_order="left")
    return joined["spent"].fill_null(0)


def approve(document: Path, ledger: Path) -> None:
    """On record; then the analyst's session runs the plan, and refuses a larger limit."""
    dpframe(["approve", str(document), "--by", "reviewer", "--ledger", str(ledger), "--create"])
    data = pl.LazyFrame({"person": range(3000), "region": REGIONS * 750, "spent": [20.0] * 3000})
    for regions in (3, 4):
        session = dp.Session(BUDGET, ledger=ledger, require_approval=True, must_exist=True)
        try:
            result = query(session, data, regions, most=200).collect(epsilon=1)
            print(f"\nAt most {regions} regions of a person: it runs")
            show(result)
        except dp.PlanMismatch as refusal:
            print(f"\nAt most {regions} regions of a person: {refusal}")


def show(frame: pl.DataFrame) -> None:
    """Print a table without types and frame."""
    with pl.Config(
        tbl_rows=20,
        fmt_str_lengths=60,
        tbl_formatting="NOTHING",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
    ):
        print(frame)


if __name__ == "__main__":
    main()
