"""What is unusual about plans is said first, and nothing else is."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.plan.looks import looks_identifying
from dpframe.report.numbers import bounds_separated, separated, shown

VISITS = pl.LazyFrame(
    schema={
        "patient": pl.Int64,
        "visit_id": pl.Int64,
        "ward": pl.String,
        "email": pl.String,
        "day": pl.Date,
        "cost": pl.Float64,
        "score": pl.Int8,
    }
)
WARDS = ["north", "south"]


def visits(unit: Any = "patient", **about: Any) -> dp.PrivateFrame:
    session = dp.Session(epsilon=100, delta="0.1")
    frame = (
        VISITS
        if unit == "patient" or about.pop("whole", False)
        else VISITS.drop("patient", "email")
    )
    return session.protect(frame, unit=unit, name="visits", **about)


def good() -> dp.PrivateFrame:
    return visits(typical={"cost": 900}).limit_rows(10).limit_groups(2, by="ward")


def only(plan: dp.Plan) -> str:
    (risk,) = plan.risks
    return risk


def test_a_plan_with_nothing_unusual_has_no_risks() -> None:
    query = (
        good()
        .group_by("ward", keys=WARDS)
        .agg(dp.count().alias("n"), dp.mean("cost", (0, 5000)).alias("mean"))
    )
    plan = query.plan(epsilon=1)
    assert plan.risks == ()
    assert len(plan.notes) == 2  # rows are dropped, and values clamped: as they mostly are
    assert plan.warnings == plan.notes
    for format in ("text", "markdown", "html"):
        text = plan.explain(format)  # type: ignore[arg-type]
        assert "no risks found" in text
        assert "Risks" not in text


def test_risks_come_first_in_every_form() -> None:
    plan = visits().limit_rows(600).dp_count().plan(epsilon=9)
    assert len(plan.risks) == 2
    assert plan.warnings == (*plan.risks, *plan.notes)
    lines = plan.explain().splitlines()
    assert lines[0].startswith("DECIDE     2 risks; ")
    assert lines[1] == "Risks"
    markdown = plan.explain("markdown").splitlines()
    assert next(line for line in markdown if line.startswith("## ")) == "## Risks"
    html = plan.explain("html")
    assert html.index("is large for a person") < html.index("Protects") < html.index("notes")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in ("id", "user_id", "userId", "PatientID", "patient", "riders")),
        *((name, True) for name in ("customer_no", "e_mail", "id_2", "client_ref", "user_name")),
        *((name, False) for name in ("trip_id", "order_id", "hospital_id", "city_code", "age")),
        *((name, False) for name in ("paid", "valid", "period", "account_balance", "", "7", "_")),
    ],
)
def test_columns_that_look_like_identifiers(name: str, expected: bool) -> None:
    assert looks_identifying(name) is expected


def test_rows_where_a_column_says_whose_they_are() -> None:
    risk = only(visits(dp.Rows(), whole=True).dp_count().plan(epsilon=1))
    # in the order of their names, which does not depend on how the frame is stored
    assert "one row is protected, and 'email' and 'patient' look like people" in risk
    assert "unit='email'" in risk
    assert not visits(dp.Rows()).dp_count().plan(epsilon=1).risks
    assert not visits(dp.Rows(contributions=3), whole=True).dp_count().plan(epsilon=1).risks
    assert not visits().limit_rows(3).dp_count().plan(epsilon=1).risks


def test_a_frame_that_is_joined_is_looked_at_too() -> None:
    session = dp.Session(epsilon=1)
    plain = session.protect(VISITS.select("ward"), unit=dp.Rows(), name="plain")
    other = session.protect(VISITS.select("ward", "patient"), unit=dp.Rows(), name="other").select(
        "ward"
    )
    assert "'patient'" in only(plain.concat(other).dp_count().plan(epsilon=1))


@pytest.mark.parametrize("spend", [{"epsilon": "5.1"}, {"rho": "0.41"}])
def test_amounts_are_large_by_whom_they_protect(spend: dict[str, str]) -> None:
    (currency, amount) = next(iter(spend.items()))
    session = dp.Session(**{currency: 100})
    people = session.protect(VISITS, unit="patient", name="visits").limit_rows(3)
    assert f"{currency} {amount} is large for a person" in only(people.dp_count().plan(**spend))
    less = {currency: str(Fraction(amount) / 2)}
    assert not people.dp_count().plan(**less).risks
    rows = dp.Session(**{currency: 100}).protect(VISITS.select("ward"), unit=dp.Rows())
    assert f"{currency} {amount} is large for one row" in only(rows.dp_count().plan(**spend))


def test_a_person_in_a_window_has_several() -> None:
    unit = dp.Identifier("patient", window="1mo", time="day")
    people = dp.Session(epsilon=9).protect(VISITS, unit=unit).limit_rows(3)
    large, yearly = people.dp_count().plan(epsilon=5).risks
    assert "epsilon 5 is large for a person in one window" in large
    assert "epsilon 5 a month is epsilon 60 for someone present all year" in yearly
    assert not people.dp_count().plan(epsilon=1).risks


def test_very_large_amounts_are_said_once() -> None:
    plan = visits().limit_rows(3).dp_count().plan(epsilon=20)
    assert only(plan) == "epsilon 20 is above 10: it protects nobody in practice"
    query = visits().limit_rows(3).agg(dp.count(mechanism="discrete_gaussian").alias("n"))
    plan = query.plan(epsilon=1, delta="1e-3")
    assert only(plan).startswith("delta 0.001 is above 1e-5")


@pytest.mark.parametrize(
    "predicate",
    [
        pl.col("patient") == 4711,
        pl.col("patient") != 4711,
        pl.col("patient") > 4710,
        pl.col("patient").is_in([4711, 4712]),
        pl.col("patient").is_between(4711, 4711),
        pl.col("patient").cast(pl.String) == "4711",
        (pl.col("ward") == "north") & pl.col("patient").eq_missing(4711),
        pl.col("patient").cast(pl.String).str.contains("^4711$"),
        pl.col("patient").cast(pl.String).str.starts_with("471"),
        pl.col("patient").cast(pl.String).str.slice(0, 3) == "471",
        pl.col("patient").cast(pl.String).str.pad_start(6, "0").is_in(["004711"]),
        pl.col("email") == "ann@example.org",
        pl.col("email").is_in(["ann@example.org"]),
        pl.col("patient") % 10 == 3,
    ],
)
def test_selections_of_single_people(predicate: pl.Expr) -> None:
    people = visits().limit_rows(3)
    assert only(people.filter(predicate).dp_count().plan(epsilon=1)).startswith("singles people")
    inside = people.agg(dp.sum("cost", (0, 9)).alias("s"), dp.count().alias("n"))
    assert not inside.plan(epsilon=1).risks
    chosen = people.with_columns(cost=pl.when(predicate).then(pl.col("cost")).otherwise(0))
    assert only(chosen.dp_sum("cost", (0, 9)).plan(epsilon=1)).startswith("singles people")


@pytest.mark.parametrize("how", ["inner", "semi", "anti", "left"])
def test_public_rows_that_say_who_is_kept(how: Any) -> None:
    listed = pl.DataFrame({"patient": [4711], "group": ["a"]})
    people = visits().join(listed, on="patient", how=how).limit_rows(3)
    risks = people.dp_count().plan(epsilon=1).risks
    said = "singles people out: the plan picks rows by public rows with values of 'patient'"
    assert [risk[: len(said)] for risk in risks] == ([] if how == "left" else [said])
    named = visits().rename({"patient": "a"}).limit_rows(3)
    again = named.join(listed, left_on="a", right_on="patient", how=how)
    assert len(again.dp_count().plan(epsilon=1).risks) == (how != "left")
    wards = pl.DataFrame({"ward": ["north"]})
    other = visits().join(wards, on="ward", how="semi").limit_rows(3)
    assert not other.dp_count().plan(epsilon=1).risks


@pytest.mark.parametrize(
    "predicate",
    [
        pl.col("ward") == "north",
        pl.col("visit_id") == 3,
        pl.col("email").is_not_null(),
        pl.col("email").str.ends_with(".org"),
        pl.col("cost") > 4711,
    ],
)
def test_other_selections_are_as_they_mostly_are(predicate: pl.Expr) -> None:
    assert not visits().limit_rows(3).filter(predicate).dp_count().plan(epsilon=1).risks


def test_the_identifier_is_followed_through_new_names() -> None:
    people = visits().limit_rows(3).rename({"patient": "a"}).with_columns(b=pl.col("a"))
    for name in ("a", "b"):
        plan = people.filter(pl.col(name) == 7).dp_count().plan(epsilon=1)
        assert f"compares {name!r} with a constant" in only(plan)
    query = people.limit_groups(1, by="a").group_by("a", keys=[1, 2]).dp_count()
    assert "has a group for each 'a'" in only(query.plan(epsilon=1))


def test_limits_of_very_many_rows() -> None:
    risk = only(visits().limit_rows(5000).dp_count().plan(epsilon=1))
    assert risk.startswith("one individual may have 5000 rows in 'len', and the noise")
    assert not visits().limit_rows(500).dp_count().plan(epsilon=1).risks


def cost_of(bounds: tuple[int, int], **about: Any) -> dp.Plan:
    frame = visits(dp.Rows(), **about)
    return frame.agg(dp.sum("cost", bounds).alias("s")).plan(epsilon=1)


def test_bounds_that_are_far_from_what_is_typical() -> None:
    risk = only(cost_of((0, 9_000_000), typical={"cost": 900}))
    assert risk.startswith(
        "s: the bounds of 'cost' reach 9,000,000, 10,000 times the typical 900; "
    )
    assert "26,9" in risk or "27," in risk  # the noise, with separators
    assert "as much as 29,9" in risk or "as much as 30," in risk
    assert not cost_of((0, 90_000), typical={"cost": 900}).risks
    assert "times the typical -900" not in only(cost_of((-(10**6), 0), typical={"cost": -900}))


def test_bounds_that_other_outputs_make_doubtful() -> None:
    frame = visits(dp.Rows())
    query = frame.agg(
        dp.mean("cost", (0, 1_000_000)).alias("mean"),
        dp.histogram("cost", [0, 100, 5000]).alias("h"),
    )
    risk = only(query.plan(epsilon=1))
    assert risk.startswith(
        "mean: the bounds of 'cost' reach 1,000,000, and by h values reach 5000;"
    )
    declared = visits(dp.Rows(), bounds={"cost": (0, 2000)})
    wide = declared.agg(dp.sum("cost", (0, 1_000_000)).alias("s")).plan(epsilon=1)
    assert "by what is known of it values reach 2000" in only(wide)
    near = frame.agg(
        dp.mean("cost", (0, 50_000)).alias("m"), dp.histogram("cost", [0, 5000]).alias("h")
    )
    assert not near.plan(epsilon=1).risks


def test_bounds_that_reach_very_far_are_doubted_where_nothing_is_said() -> None:
    risk = only(cost_of((0, 100_000_000)))
    assert "reach 100,000,000. Do values reach as far?" in risk
    assert "typical={'cost': value}" in risk
    assert not cost_of((0, 9_999_999)).risks
    assert not cost_of((0, 100_000_000), typical={"cost": 5_000_000}).risks


def test_a_reviewer_may_guess_what_is_typical() -> None:
    plan = cost_of((0, 1_000_000))
    assert not plan.risks
    assert "\nRisks\n  1. s: the bounds of 'cost'" in plan.explain(typical={"cost": 900})
    query = visits(dp.Rows(), typical={"cost": 900}).agg(dp.mean("cost", (0, 9000)).alias("m"))
    plan = query.plan(epsilon="0.1")
    assert not plan.risks
    assert "m: the mean of 200 values may be off by" in plan.explain(size=200)
    for wrong in (0, "x", None, float("nan"), True):
        with pytest.raises(dp.InvalidBounds, match="typical"):
            plan.explain(typical={"cost": wrong})  # type: ignore[dict-item]


def test_groups_of_few_people_at_a_large_epsilon() -> None:
    query = visits().limit_groups(1, by="day").group_by("day")
    people = query.agg(dp.n_unique("patient").alias("n"))
    few = people.plan(epsilon=7, delta="1e-5")
    assert "people appear half of the time" in " ".join(few.risks)
    assert not people.plan(epsilon=1, delta="1e-6").risks


def test_numbers_of_individuals_that_are_weighed() -> None:
    query = visits().limit_norm(1).group_by("day").agg(dp.n_unique("patient").alias("n"))
    said = only(query.plan(epsilon=1, delta="1e-6"))
    assert "numbers are too small where people are in several" in said
    whole = visits().group_by("day").agg(dp.n_unique("patient").alias("n"))
    found = whole.plan(epsilon=1, delta="1e-6")
    assert not any("numbers are too small" in risk for risk in found.risks)
    written = visits().limit_norm(2).group_by("day").agg(dp.n_unique("patient").alias("n"))
    assert not written.plan(epsilon=1, delta="1e-6").risks


def test_files_that_are_scanned_are_a_risk(tmp_path: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age\n1\n")
    people = dp.Session(epsilon=1).protect(pl.scan_csv(path), unit=dp.Rows())
    assert "scanned from a text file" in only(people.dp_count().plan(epsilon=1))


def test_plans_of_several_queries_say_which() -> None:
    session = dp.Session(epsilon=1)
    people = session.protect(VISITS, unit="patient", typical={"cost": 900}).limit_rows(3)
    both = [people.dp_count(), people.filter(pl.col("patient") == 3).dp_count()]
    plan = session.plan(both, epsilon=1)
    assert only(plan).startswith("query 2: singles people out")
    assert plan.explain().splitlines()[1] == "Risks"
    assert [one.column for one in plan.typical] == ["cost"]
    assert dp.Plan.from_json(plan.to_json()).risks == plan.risks


# -- documents ------------------------------------------------------------------------------------


def test_what_is_typical_is_shown_and_under_the_fingerprint() -> None:
    plain, stated = cost_of((0, 9)), cost_of((0, 9), typical={"cost": "900.5"})
    assert plain.fingerprint != stated.fingerprint
    assert "cost is typically 900.5" in stated.explain()
    assert plain.diff(stated) == (
        "stated by the data owner: cost of visits is typically 1801/2 (added)"
    )
    read = dp.Plan.from_json(stated.to_json())
    assert read.typical == stated.typical
    assert read.explain() == stated.explain()
    assert "typical" not in json.loads(plain.to_json())["plan"]


def test_columns_that_identify_are_kept_and_under_the_fingerprint() -> None:
    plan = visits(dp.Rows(), whole=True).dp_count().plan(epsilon=1)
    document = json.loads(plan.to_json())
    assert [one["column"] for one in document["plan"]["identifying"]] == ["email", "patient"]
    assert plan.fingerprint != visits(dp.Rows()).dp_count().plan(epsilon=1).fingerprint
    assert dp.Plan.from_json(plan.to_json()).risks == plan.risks


@pytest.mark.parametrize("typical", [{"cost": 0}, {"cost": "much"}, {"ward": 3}, {"cost": None}, 7])
def test_what_is_no_typical_value_is_refused(typical: Any) -> None:
    with pytest.raises(dp.InvalidBounds, match="typical"):
        visits(typical=typical)


def test_a_column_that_is_not_there_has_no_typical_value() -> None:
    with pytest.raises(dp.UnknownColumn, match="costs"):
        visits(typical={"costs": 3})


# -- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("95%: within 2397000000 of it", "95%: within 2,397,000,000 of it"),
        ("9999 rows in 2026, 10000 more", "9999 rows in 2026, 10,000 more"),
        ("scale 32701.41234, in steps of 0.0000123", "scale 32,701.41234, in steps of 0.0000123"),
        ("x12345 and a_12345 and 12345x", "x12345 and a_12345 and 12345x"),
        ("'12345' and \"12345\" and -12345", "'12345' and \"12345\" and -12,345"),
        ("1e12345 and 5.55556e10", "1e12345 and 55,555,600,000"),
        ("scale 1.05263e6, 1e5 to 2e15", "scale 1,052,630, 100,000 to 2e15"),
        ("'1e6' and x1e6 and 1.5e-6", "'1e6' and x1e6 and 1.5e-6"),
    ],
)
def test_long_numbers_have_separators(text: str, expected: str) -> None:
    assert separated(text) == expected
    assert shown(Fraction(123456)) == "123,456"
    assert shown(1052631.5) == "1,052,630"


def test_code_is_left_alone() -> None:
    text = 'sum of col("pay 10000") + 10000 clamped to [-20000, 10000.5], less 5000'
    assert bounds_separated(text) == text.replace("[-20000, 10000.5]", "[-20,000, 10,000.5]")
    assert bounds_separated("sum of 50000, less 50000; null adds 0") == (
        "sum of 50000, less 50,000; null adds 0"
    )
    people = visits(dp.Rows()).filter(pl.col("cost") < 1000000)
    assert "< 1000000" in people.dp_count().plan(epsilon=1).explain()


@pytest.mark.parametrize("sets", [dp.rollup, dp.cube, lambda *by: dp.grouping_sets([by, ()])])
def test_rows_that_no_grouping_set_has_are_a_risk(sets: Any) -> None:
    """Those with a value that is no key in a column that the set leaves out."""
    frame = pl.LazyFrame({"a": ["x", "x"], "b": ["u", None]})
    people = dp.Session(epsilon=10**6).protect(frame, unit=dp.Rows())
    keys = {"a": ["x"], "b": ["u"]}
    query = people.group_by(sets("a", "b"), keys=keys).agg(dp.count())
    assert "Totals miss the other rows" in only(query.plan(epsilon=1))
    assert not people.group_by("a", "b", keys=keys).agg(dp.count()).plan(epsilon=1).risks
    total = query.collect(epsilon=10**5).filter(pl.col("grouping") == 3)["len"].to_list()
    assert total == [1]
