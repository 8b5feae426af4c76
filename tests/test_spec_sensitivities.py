"""The sensitivities that dpframe promises, from plans, against numbers written out by hand.

Each entry of the tables has the (L0, L1, L2, Linf) of one release: under add-remove with one and
three rows per individual, then under change-one with one and three. With b = max(|lo|, |hi|) and
w = max(hi, 0) - min(lo, 0):

- add-remove: L1 = L2 = Linf = b, whatever the number of groups;
- change-one, one entry: w;
- change-one, several entries: L1 = 2 b, L2 = max(sqrt(2) b, w), Linf = w;

all of them times the rows per individual.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import polars as pl
import pytest

import dpframe as dp

Four: TypeAlias = "tuple[float, float, float, float]"
"""L0, L1, L2, Linf."""

KEYS = list("abcdefgh")
SCHEMA: dict[str, Any] = {
    "g": pl.String,
    "x": pl.Int64,
    "y": pl.Float64,
    "e": pl.Enum(KEYS),
    "b": pl.Boolean,
}
BY_G = 'f.group_by("g", keys=keys)'
UNITS = [
    dp.Rows("add-remove", contributions=1),
    dp.Rows("add-remove", contributions=3),
    dp.Rows("change-one", contributions=1),
    dp.Rows("change-one", contributions=3),
]

ONE_COUNT = ((1, 1, 1, 1), (1, 3, 3, 3), (1, 1, 1, 1), (1, 3, 3, 3))
MANY_COUNTS = (
    (1, 1, 1, 1),
    (3, 3, 3, 3),
    (2, 2, 1.4142135623730951, 1),
    (6, 6, 4.242640687119285, 3),
)

TABLE: dict[tuple[str, str], tuple[Four, Four, Four, Four]] = {
    # -- counts: under change-one the number of all rows is public
    ("f", "dp.count()"): ((1, 1, 1, 1), (1, 3, 3, 3), (0, 0, 0, 0), (0, 0, 0, 0)),
    ('f.with_columns(pl.col("x") * 2)', "dp.count()"): (
        (1, 1, 1, 1),
        (1, 3, 3, 3),
        (0, 0, 0, 0),
        (0, 0, 0, 0),
    ),
    ('f.filter(pl.col("b"))', "dp.count()"): ONE_COUNT,
    ("f.drop_nulls()", "dp.count()"): ONE_COUNT,
    ("f", 'pl.col("x").dp_count()'): ONE_COUNT,
    (BY_G, "dp.count()"): MANY_COUNTS,
    (BY_G, 'pl.col("x").dp_count()'): MANY_COUNTS,
    ('f.filter(pl.col("b")).group_by("g", keys=keys)', "dp.count()"): MANY_COUNTS,
    ('f.group_by("e")', "dp.count()"): MANY_COUNTS,
    ('f.group_by("e", "b")', "dp.count()"): MANY_COUNTS,
    ('f.group_by("b")', "dp.count()"): (  # two entries, which all three rows can touch
        (1, 1, 1, 1),
        (2, 3, 3, 3),
        (2, 2, 1.4142135623730951, 1),
        (2, 6, 4.242640687119285, 3),
    ),
    ('f.group_by("g", keys=["a"])', "dp.count()"): ONE_COUNT,  # nowhere else to go
    # -- sums: b = 7, w = 10
    ("f", 'pl.col("x").dp_sum((-3, 7))'): (
        (1, 7, 7, 7),
        (1, 21, 21, 21),
        (1, 10, 10, 10),
        (1, 30, 30, 30),
    ),
    ('f.filter(pl.col("b"))', 'pl.col("x").dp_sum((-3, 7))'): (
        (1, 7, 7, 7),
        (1, 21, 21, 21),
        (1, 10, 10, 10),
        (1, 30, 30, 30),
    ),
    (BY_G, 'pl.col("x").dp_sum((-3, 7))'): (  # sqrt(2) b = 9.9 is less than w
        (1, 7, 7, 7),
        (3, 21, 21, 21),
        (2, 14, 10, 10),
        (6, 42, 30, 30),
    ),
    # -- b = w = 60
    ("f", 'pl.col("x").dp_sum((0, 60))'): (
        (1, 60, 60, 60),
        (1, 180, 180, 180),
        (1, 60, 60, 60),
        (1, 180, 180, 180),
    ),
    (BY_G, 'pl.col("x").dp_sum((0, 60))'): (
        (1, 60, 60, 60),
        (3, 180, 180, 180),
        (2, 120, 84.8528137423857, 60),
        (6, 360, 254.5584412271571, 180),
    ),
    # -- bounds on one side of 0: nulls count as 0, so w = 9 and not 7
    ("f", 'pl.col("x").dp_sum((2, 9))'): (
        (1, 9, 9, 9),
        (1, 27, 27, 27),
        (1, 9, 9, 9),
        (1, 27, 27, 27),
    ),
    ("f", 'pl.col("x").dp_sum((-9, -2))'): (
        (1, 9, 9, 9),
        (1, 27, 27, 27),
        (1, 9, 9, 9),
        (1, 27, 27, 27),
    ),
    (BY_G, 'pl.col("x").dp_sum((2, 9))'): (
        (1, 9, 9, 9),
        (3, 27, 27, 27),
        (2, 18, 12.727922061357855, 9),
        (6, 54, 38.18376618407357, 27),
    ),
    # -- symmetric bounds: b = 7, w = 14 = 2 b
    ("f", 'pl.col("x").dp_sum((-7, 7))'): (
        (1, 7, 7, 7),
        (1, 21, 21, 21),
        (1, 14, 14, 14),
        (1, 42, 42, 42),
    ),
    (BY_G, 'pl.col("x").dp_sum((-7, 7))'): (
        (1, 7, 7, 7),
        (3, 21, 21, 21),
        (2, 14, 14, 14),
        (6, 42, 42, 42),
    ),
    ('f.group_by("g", keys=["a"])', 'pl.col("x").dp_sum((-3, 7))'): (
        (1, 7, 7, 7),
        (1, 21, 21, 21),
        (1, 10, 10, 10),
        (1, 30, 30, 30),
    ),
    # -- inferred bounds: a Boolean is 0 or 1, and clip bounds
    ("f", 'pl.col("b").dp_sum()'): ONE_COUNT,
    ("f", 'pl.col("x").clip(-3, 7).dp_sum()'): (
        (1, 7, 7, 7),
        (1, 21, 21, 21),
        (1, 10, 10, 10),
        (1, 30, 30, 30),
    ),
    # -- distinct values
    ("f", 'pl.col("g").dp_n_unique()'): ONE_COUNT,
    (BY_G, 'pl.col("x").dp_n_unique()'): MANY_COUNTS,
    # -- histograms
    ("f", 'pl.col("e").dp_histogram()'): MANY_COUNTS,
    ("f", 'pl.col("g").dp_histogram(["a", "b", "c", "d", "e", "f"])'): MANY_COUNTS,
    ("f", 'pl.col("y").dp_histogram(10, bounds=(0, 1))'): MANY_COUNTS,
    ("f", 'pl.col("x").dp_histogram([0, 1, 2, 4, 8, 16], other=True)'): MANY_COUNTS,
    (BY_G, 'pl.col("e").dp_histogram()'): MANY_COUNTS,
    (BY_G, 'pl.col("b").dp_histogram()'): MANY_COUNTS,
}

PARTS: dict[tuple[str, str, str], tuple[Four, Four, Four, Four]] = {
    # -- centred in the bounds: values in [-100, 100]
    ("f", 'pl.col("x").dp_mean((0, 200))', "mean.sum"): (
        (1, 100, 100, 100),
        (1, 300, 300, 300),
        (1, 200, 200, 200),
        (1, 600, 600, 600),
    ),
    ("f", 'pl.col("x").dp_mean((0, 200))', "mean.count"): ONE_COUNT,
    (BY_G, 'pl.col("x").dp_mean((0, 200))', "mean.sum"): (
        (1, 100, 100, 100),
        (3, 300, 300, 300),
        (2, 200, 200, 200),
        (6, 600, 600, 600),
    ),
    (BY_G, 'pl.col("x").dp_mean((0, 200))', "mean.count"): MANY_COUNTS,
    ("f", 'pl.col("x").dp_mean((17, 90))', "mean.sum"): (
        (1, 36.5, 36.5, 36.5),
        (1, 109.5, 109.5, 109.5),
        (1, 73, 73, 73),
        (1, 219, 219, 219),
    ),
    # -- squares in [0, 10000], centred in turn
    ("f", 'pl.col("x").dp_var((0, 200))', "var.sum_of_squares"): (
        (1, 5000, 5000, 5000),
        (1, 15000, 15000, 15000),
        (1, 10000, 10000, 10000),
        (1, 30000, 30000, 30000),
    ),
    ("f", 'pl.col("x").dp_std((0, 200))', "var.sum_of_squares"): (
        (1, 5000, 5000, 5000),
        (1, 15000, 15000, 15000),
        (1, 10000, 10000, 10000),
        (1, 30000, 30000, 30000),
    ),
    ("f", 'pl.col("x").dp_var((0, 200))', "var.sum"): (
        (1, 100, 100, 100),
        (1, 300, 300, 300),
        (1, 200, 200, 200),
        (1, 600, 600, 600),
    ),
    ("f", 'pl.col("x").dp_var((0, 200))', "var.count"): ONE_COUNT,
    (BY_G, 'pl.col("x").dp_var((0, 200))', "var.sum_of_squares"): (
        (1, 5000, 5000, 5000),
        (3, 15000, 15000, 15000),
        (2, 10000, 10000, 10000),
        (6, 30000, 30000, 30000),
    ),
}

LINF_OF_SCORES: dict[tuple[str, str], tuple[float, float, float, float]] = {
    # -- max(q, 1 - q) when a row comes or goes, 1 when it moves from one side to the other
    ("f", 'pl.col("x").dp_median((0, 100))'): (0.5, 1.5, 1, 3),
    ("f", 'pl.col("x").dp_quantile(0.25, (0, 100))'): (0.75, 2.25, 1, 3),
    ("f", 'pl.col("x").dp_quantile(0.9, candidates=[1, 2, 3])'): (0.9, 2.7, 1, 3),
    ("f", 'pl.col("y").dp_quantile(1, (0, 1))'): (1, 3, 1, 3),
    (BY_G, 'pl.col("x").dp_quantile(0.25, (0, 100))'): (0.75, 2.25, 1, 3),
    # -- the score's: a count, or a sum
    ("f", 'pl.col("e").dp_argmax()'): (1, 3, 1, 3),
    (BY_G, 'pl.col("e").dp_argmax()'): (1, 3, 1, 3),
    ("f", 'pl.col("e").dp_argmax(score=pl.col("x").dp_sum((-3, 7)))'): (7, 21, 10, 30),
    ("f", 'pl.col("e").dp_argmax(score=pl.col("x").clip(-3, 7))'): (7, 21, 10, 30),
    ("f", 'pl.col("e").dp_argmax(score=pl.col("g").dp_n_unique())'): (1, 3, 1, 3),
    (
        "f",
        'dp.argmax(candidates=pl.DataFrame({"at": [0, 5]}), '
        'score=(pl.col("x") - pl.col("at")).clip(-3, 7))',
    ): (7, 21, 10, 30),
}


def releases(unit: Any, frame: str, text: str, **spend: Any) -> tuple[dp.NoisyAggregate, ...]:
    """The releases of the plan of one dp expression."""
    session = dp.Session(**(spend or {"epsilon": 1}))
    protected = session.protect(pl.LazyFrame(schema=SCHEMA), unit=unit)
    names = {"f": protected, "pl": pl, "dp": dp, "keys": KEYS}
    query = eval(frame, names).agg(o=eval(text, names))
    return tuple(query.plan(**(spend or {"epsilon": 1})).releases)


def four(sensitivity: dp.Sensitivity) -> Four:
    return (sensitivity.l0, sensitivity.l1, sensitivity.l2, sensitivity.linf)


@pytest.mark.parametrize("i", range(4), ids=[str(unit) for unit in UNITS])
@pytest.mark.parametrize(("frame", "text"), TABLE)
def test_sensitivity_is_the_promised_one(frame: str, text: str, i: int) -> None:
    (release,) = releases(UNITS[i], frame, text)
    assert four(release.sensitivity) == pytest.approx(TABLE[frame, text][i], rel=1e-14)


@pytest.mark.parametrize("i", range(4), ids=[str(unit) for unit in UNITS])
@pytest.mark.parametrize(("frame", "text", "role"), PARTS)
def test_sensitivity_of_each_part(frame: str, text: str, role: str, i: int) -> None:
    asked = releases(UNITS[i], frame, text)
    (release,) = (r for r in asked if r.aggregate == role)
    assert four(release.sensitivity) == pytest.approx(PARTS[frame, text, role][i], rel=1e-14)
    parts = {"mean": 2, "var": 3}
    assert len(asked) == parts[role.split(".")[0]]


@pytest.mark.parametrize("i", range(4), ids=[str(unit) for unit in UNITS])
@pytest.mark.parametrize(("frame", "text"), LINF_OF_SCORES)
def test_sensitivity_of_scores(frame: str, text: str, i: int) -> None:
    (release,) = releases(UNITS[i], frame, text)
    assert release.sensitivity.linf == pytest.approx(LINF_OF_SCORES[frame, text][i], rel=1e-14)


@pytest.mark.parametrize("spend", [{"epsilon": 0.5}, {"epsilon": 0.5, "delta": 1e-8}, {"rho": 0.1}])
def test_the_number_of_rows_is_public_under_change_one(spend: dict[str, float]) -> None:
    for frame in ("f", 'f.select("x").rename({"x": "z"})', "f.fill_null(0)"):
        (release,) = releases(dp.Rows("change-one", contributions=3), frame, "dp.count()", **spend)
        assert release.mechanism == "none"
        assert release.scale == 0
        assert release.cost.is_zero
        assert release.accuracy() == 0


def test_sensitivity_does_not_depend_on_the_measure() -> None:
    for spend in ({"epsilon": 1}, {"epsilon": 1, "delta": 1e-8}, {"rho": 1}):
        for (frame, text), expected in TABLE.items():
            (release,) = releases(UNITS[2], frame, text, **spend)
            assert four(release.sensitivity) == pytest.approx(expected[2], rel=1e-14)


@pytest.mark.parametrize(("lo", "hi"), [(0.0, 0.1), (-0.3, 0.7), (1e-7, 3.3), (-1e9, 0.123)])
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("frame", ["f", BY_G])
def test_a_grid_of_floats_only_rounds_sensitivities_up(
    unit: dp.Rows, frame: str, lo: float, hi: float
) -> None:
    """The bounds are rounded outwards onto the grid, by at most 2**-29 of their size."""
    (release,) = releases(unit, frame, f'pl.col("y").dp_sum(({lo!r}, {hi!r}))')
    k, b, w = unit.contributions, max(abs(lo), abs(hi)), max(hi, 0) - min(lo, 0)
    if unit.adjacency == "add-remove":
        expected = (k * b, k * b, k * b)
    elif frame == "f":
        expected = (k * w, k * w, k * w)
    else:
        expected = (k * 2 * b, k * max(2**0.5 * b, w), k * w)
    found = four(release.sensitivity)[1:]
    for declared, true in zip(found, expected, strict=True):
        assert true * (1 - 1e-15) <= declared <= true + k * b * 2.0**-28


LIMITED = pytest.mark.skipif(
    not hasattr(dp.PrivateFrame, "limit_groups"), reason="frames have no contribution limits yet"
)
LIMITS: dict[tuple[str, str], Four] = {
    ("f.limit_rows(20)", "dp.count()"): (1, 20, 20, 20),
    ("f.limit_rows(5)", 'pl.col("x").dp_sum((-3, 7))'): (1, 35, 35, 35),
    (
        'f.limit_groups(3, by="g").limit_rows(5, by="g").group_by("g", keys=keys)',
        "dp.count()",
    ): (3, 15, 8.660254037844387, 5),
    (
        'f.limit_groups(3, by="g").limit_rows(5, by="g").group_by("g", keys=keys)',
        'pl.col("x").dp_sum((0, 200))',
    ): (3, 3000, 1732.0508075688772, 1000),
    (  # two full groups of 5, and 2 of the 12 rows left
        'f.limit_groups(5, by="g").limit_rows(5, by="g").limit_rows(12).group_by("g", keys=keys)',
        "dp.count()",
    ): (5, 12, 7.3484692283495345, 5),
    (
        'f.limit_groups(3, by="g").limit_rows(5, by="g").limit_rows(100).group_by("g", keys=keys)',
        "dp.count()",
    ): (3, 15, 8.660254037844387, 5),
    (  # two public keys are two groups, whatever the limit
        'f.limit_groups(3, by="g").limit_rows(5, by="g").group_by("g", keys=["a", "b"])',
        "dp.count()",
    ): (2, 10, 7.0710678118654755, 5),
}


@LIMITED
@pytest.mark.parametrize(("frame", "text"), LIMITS)
def test_limits_bound_what_an_individual_contributes(frame: str, text: str) -> None:
    protected = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"id": pl.Int64, **SCHEMA}), "id")
    names = {"f": protected, "pl": pl, "dp": dp, "keys": KEYS}
    query = eval(frame, names).agg(o=eval(text, names))
    (release,) = query.plan(epsilon=1).releases
    assert four(release.sensitivity) == pytest.approx(LIMITS[frame, text], rel=1e-14)


@LIMITED
def test_without_limits_an_individual_may_contribute_anything() -> None:
    protected: Any = dp.Session(epsilon=1).protect(
        pl.LazyFrame(schema={"id": pl.Int64, **SCHEMA}), "id"
    )
    with pytest.raises(dp.UnboundedSensitivity, match="limit_rows"):
        protected.dp_count().plan(epsilon=1, limits=None)
