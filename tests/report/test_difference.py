"""What two plans differ in, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.plan.documents import ALL, plan_of
from tests.plan.test_fingerprints import AGE, CITY, MANY, PAY, best, grouped, plan, prices, years

Build = Callable[[Any], Any]


def diff(one: Build, other: Build, **options: Any) -> list[str]:
    return rest(plan(one, **options).diff(plan(other, **options)))


def rest(told: str) -> list[str]:
    """What is told after whom the plans protect and how far off results are."""
    first = ("the guarantee ", "95% error of ")
    return [line for line in told.splitlines() if not line.startswith(first)]


def test_the_example_of_a_reviewer() -> None:
    """A smaller privacy loss, rows left out, and more rows of each individual."""

    def before(p: Any) -> Any:
        return p.limit_rows(4).agg(mean_age=dp.mean("age", (0, 110)))

    def after(p: Any) -> Any:
        return p.filter(CITY == "Bern").limit_rows(8).agg(mean_age=dp.mean("age", (0, 110)))

    one = plan(before, {"epsilon": "0.1"}, unit="person")
    other = plan(after, {"epsilon": "0.5"}, unit="person")
    lines = one.diff(other).splitlines()
    for line in (
        'filter on `city` added: filter(col("city") == "Bern")',
        "limit raised 4 -> 8: limit_rows(8)",
        "epsilon of `mean_age` 0.1 -> 0.5",
        "L1 sensitivity of `mean_age` [mean.sum] 220 -> 440",
        "epsilon of the plan 0.1 -> 0.5",
    ):
        assert line in lines
    assert not any(line.startswith("note") for line in lines)  # they follow from the limit
    back = other.diff(one).splitlines()
    for line in (
        'filter on `city` removed: filter(col("city") == "Bern")',
        "limit lowered 8 -> 4: limit_rows(4)",
        "epsilon of `mean_age` 0.5 -> 0.1",
    ):
        assert line in back
    assert len(back) == len(lines)


COUNT: Build = lambda p: p.dp_count()  # noqa: E731
PAIRS: dict[str, tuple[Build, Build, list[str]]] = {
    "a filter edited": (
        lambda p: p.filter(AGE > 1).dp_count(),
        lambda p: p.filter(AGE > 2).dp_count(),
        ['filter changed: filter(col("age") > 1) -> filter(col("age") > 2)'],
    ),
    "steps in another order": (
        lambda p: p.filter(AGE > 1).drop("city").dp_count(),
        lambda p: p.drop("city").filter(AGE > 1).dp_count(),
        ["step 2 is now step 1: drop('city')"],
    ),
    "behind the words of a step": (
        lambda p: p.filter(CITY.is_in([*MANY, "a"])).dp_count(),
        lambda p: p.filter(CITY.is_in([*MANY, "b"])).dp_count(),
        [
            "filter changed in what its words leave out: "
            'filter(col("city").is_in(["0", "1", "10", "11", "12", "13", "14", "15", '
            "... 101 in all]))"
        ],
    ),
    "behind the words of groups": (
        grouped(CITY.is_in([*MANY, "a"]).alias("g")),
        grouped(CITY.is_in([*MANY, "b"]).alias("g")),
        [
            "groups changed in what its words leave out: "
            'group_by(g=col("city").is_in(["0", "1", "10", "11", "12", "13", "14", "15", '
            "... 101 in all])): 2 keys, public because the column types list them"
        ],
    ),
    "keys": (
        grouped("city", ["a", "b"]),
        grouped("city", ["a", "c"]),
        ["keys 2 ('a', 'b') -> 2 ('a', 'c')"],
    ),
    "groups": (
        COUNT,
        grouped("city", ["a"]),
        ['groups added: group_by(col("city")): 1 keys, public because the query lists them'],
    ),
    "no groups": (
        grouped("sex"),
        COUNT,
        ['groups removed: group_by(col("sex")): 2 keys, public because the column types list them'],
    ),
    "a bound": (
        lambda p: p.dp_sum("age", (0, 9)),
        lambda p: p.dp_sum("age", (0, 19)),
        [
            'output `age` changed: col("age").dp_sum((0, 9)) -> col("age").dp_sum((0, 19))',
            "L1 sensitivity of `age` [sum] 9 -> 19",
            "L2 sensitivity of `age` [sum] 9 -> 19",
            "Linf sensitivity of `age` [sum] 9 -> 19",
        ],
    ),
    "an output": (
        COUNT,
        lambda p: p.agg(dp.count(), dp.count("age", mechanism="discrete_laplace")),
        [
            'output `age` added: col("age").dp_count(mechanism="discrete_laplace")',
            "epsilon of `len` 1 -> 0.5",
        ],
    ),
    "no output": (
        lambda p: p.agg(dp.count(), dp.count("age", mechanism="discrete_laplace")),
        COUNT,
        [
            'output `age` removed: col("age").dp_count(mechanism="discrete_laplace")',
            "epsilon of `len` 0.5 -> 1",
        ],
    ),
    "a mechanism": (
        lambda p: p.dp_argmax("sex"),
        lambda p: p.dp_argmax("sex", mechanism="exponential"),
        [
            'output `sex` changed: col("sex").dp_argmax() -> '
            'col("sex").dp_argmax(mechanism="exponential")',
            "mechanism of `sex` [argmax] permute_and_flip -> exponential",
            "mechanism asked for of `sex` [argmax] auto -> exponential",
        ],
    ),
    "behind the words of candidates": (
        best(years(7)),
        best(years(8)),
        [
            "output `year` changed in what its words leave out: dp.argmax(candidates=<60 rows of "
            'year, note>, score=(col("age") - col("year")).clip(0, 9))'
        ],
    ),
    "values of a public frame": (
        lambda p: p.join(prices(1.0), on="city").dp_count(),
        lambda p: p.join(prices(2.0), on="city").dp_count(),
        [
            "join changed in what its words leave out: join(public frame of 100 rows (city, cost), "
            "on 'city', how='inner')"
        ],
    ),
    "a weight": (
        lambda p: p.agg(
            dp.count(mechanism="discrete_laplace"), dp.sum("pay", (0, 1))
        ),
        lambda p: p.agg(
            dp.count(mechanism="discrete_laplace"), dp.sum("pay", (0, 1), weight=3)
        ),
        [
            'output `pay` changed: col("pay").dp_sum((0, 1)) -> '
            'col("pay").dp_sum((0, 1), weight=3)',
            "epsilon of `len` 0.5 -> 0.25",
            "epsilon of `pay` 0.5 -> 0.75",
            "split least error -> weights",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_each_change_in_words(name: str) -> None:
    one, other, expected = PAIRS[name]
    assert diff(one, other) == expected


def test_keys_that_words_leave_out() -> None:
    (line,) = diff(grouped("city", MANY), grouped("city", [*MANY[:-1], "x"]))
    assert line.startswith("keys changed in what its words leave out: 100 ('0', '1', ")


def test_units_frames_and_declarations() -> None:
    one = plan(lambda p: p.dp_sum("age"), bounds={"age": (0, 9)})
    other = plan(
        lambda p: p.dp_sum("age"), bounds={"age": (0, 19)}, unit=dp.Rows("change-one"), name="q"
    )
    lines = one.diff(other).splitlines()
    for line in (
        "frame people -> q",
        "the guarantee changes: adding or removing one row of one individual -> "
        "changing the values in one row of one individual (the number of rows is public)",
        "declared by the data owner: age is in [0, 9] (removed)",
        "declared by the data owner: age is in [0, 19] (added)",
    ):
        assert line in lines


def test_measures_and_small_amounts() -> None:
    pure, rho = plan(), plan(budget={"rho": 1}, spend={"rho": "0.5"})
    assert "cost of the plan epsilon 1 -> rho 0.5" in pure.diff(rho).splitlines()
    near = plan(spend={"epsilon": "1.000000000001"})
    assert "epsilon of the plan 1 -> 1.000000000001" in pure.diff(near).splitlines()


def test_a_delta_is_told_once() -> None:
    """With the guarantee, which comes first."""
    session = dp.Session(epsilon=9, delta="1e-3")
    rows = pl.LazyFrame(schema={"who": pl.Int64, "g": pl.String})
    people = session.protect(rows, unit="who").limit_groups(2, by="g")
    found = people.group_by("g").agg(dp.n_unique("who").alias("n"))
    one, other = (found.plan(epsilon=1, delta=delta) for delta in ("1e-6", "1e-7"))
    said = "the guarantee gets stronger: epsilon 1, delta 1e-6 -> epsilon 1, delta 1e-7"
    assert one.diff(other).splitlines() == [said]
    both = found.plan(epsilon=2, delta="1e-7")
    assert sum("delta" in line for line in one.diff(both).splitlines()) == 1


def test_what_remains_is_no_difference() -> None:
    assert plan().diff(plan(budget={"epsilon": 2, "delta": "1e-6"})) == ""


@pytest.mark.parametrize("name", ALL)
def test_a_plan_differs_from_all_others_but_itself(name: str) -> None:
    for other in ALL:
        one, two = plan_of(name), plan_of(other)
        assert (one.diff(two) == "") == (one.fingerprint == two.fingerprint) == (name == other)


@pytest.mark.parametrize(
    "name",
    ["a\nepsilon of the plan 1 -> 0.1", "a\u202eb", "a\u2028b", "a\rb", "a\x1b[2Kb", "a\x00"],
)
def test_names_cannot_pass_for_lines(name: str) -> None:
    def build(low: int) -> dp.Plan:
        frame = pl.LazyFrame(schema={name: pl.Int64})
        people = dp.Session(epsilon=1).protect(frame, dp.Rows(), name=name if low else "data")
        kept = people.filter(pl.col(name) > 0) if low else people
        return kept.agg(dp.sum(name, (low, 9)), dp.count().alias(f"{name}2")).plan(epsilon=1)

    text = build(0).diff(build(1))
    assert text.isascii()
    assert all(line.isprintable() for line in text.splitlines())
    assert not any(line.startswith("epsilon of the plan") for line in text.splitlines())
    assert text.count("\n") == len(text.splitlines()) - 1


def test_back_quotes_in_names_do_not_end_them() -> None:
    frame = pl.LazyFrame(schema={"a` 1 -> 2": pl.Int64})
    people = dp.Session(epsilon=1).protect(frame, dp.Rows())
    one, other = (people.dp_count("a` 1 -> 2").plan(epsilon=e) for e in ("0.1", "0.2"))
    assert "epsilon of `a\\` 1 -> 2` 0.1 -> 0.2" in one.diff(other).splitlines()


def test_rows_that_pay() -> None:
    lines = diff(
        lambda p: p.filter(PAY > 1).filter(AGE > 1).dp_count(),
        lambda p: p.filter(AGE > 1).filter(PAY > 2).dp_count(),
    )
    assert len(lines) == 2
    assert 'col("pay") > 2' in "".join(lines)


def test_what_is_drawn_together_costs_once() -> None:
    def both(p: Any, mechanism: Any = "auto") -> Any:
        return p.agg(
            n=dp.count(mechanism=mechanism), pay=PAY.dp_sum((0, 9)), mean=AGE.dp_mean((0, 9))
        )

    one, other = (plan(both, {"epsilon": e}) for e in ("0.1", "0.5"))
    assert len(one.draws) == 1
    assert rest(one.diff(other)) == [
        "epsilon of `n`, `pay` and `mean` together 0.1 -> 0.5",
        "epsilon of the plan 0.1 -> 0.5",
    ]
    apart = plan(lambda p: both(p, "discrete_laplace"), {"epsilon": "0.1"})
    names = {r.name: r.cost.epsilon for r in apart.releases}
    assert names["pay"] == names["mean"]
    lines = one.diff(apart).splitlines()
    assert [line for line in lines if line.startswith("epsilon of")] == [
        f"epsilon of `n` 0.1 -> {names['n']:.6g}",
        f"epsilon of `pay` 0.1 -> {names['pay']:.6g}",
        f"epsilon of `mean` 0.1 -> {names['mean']:.6g}",
    ]
