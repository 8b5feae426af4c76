"""Numbers of absurd size, and what is no number, wherever one may be given.

Every public argument that is a number either works or is refused with an error of dpframe, at once,
before anything is charged: no overflow, no traceback of Python, no hang.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import accounting
from dpframe.rows.failures import BUG, FAILURES

_HUGE, _TINY = 10**5000, Fraction(1, 10**400)
AMOUNTS: list[Any] = [
    "1e400", "-1e400", "1e-400", "1e9999999999", "1e-9999999999", "1/" + "9" * 5000, "9" * 5000,
    "1e", "nan", "inf", "x", "", "0", "1/0", "1_0e1_0", "٣", "1e4000", "1e-4000", "9" * 3999,
    Decimal("1e400"), Decimal("1e-400"), Decimal("1e5000"), Decimal("-1e5000"), Decimal("NaN"),
    Decimal("1e999999"), Decimal("1e-999999"), Decimal("sNaN"), Decimal("-Infinity"), 10**400,
    -(10**400), 10**400 + 1, _HUGE, -_HUGE, 2**63, 2**64, -(2**63) - 1, 2**127, 10**38, 0, 1, -1,
    _TINY, 1 - _TINY, 1 + _TINY, Fraction(10**400), Fraction(-_HUGE, 3), Fraction(1, _HUGE),
    1e308, -1e308, 1.7976931348623157e308, 5e-324, math.inf, -math.inf, math.nan, -0.0,
    np.float64(1e308), np.float32(1e38), np.float64("nan"), np.float32("inf"), np.int64(2**62),
    np.uint64(2**64 - 1), np.array(1e308), True, np.True_, None, b"1", 1j, [], (), {}, object(),
    [_HUGE], (10**400, 10**400), [[]], pl.lit(10**18), pl.Series([1e308]),
]  # fmt: skip

FRAME = pl.DataFrame({"x": [1.5, 2.5, None], "i": [1, 2, 3], "s": ["a", "b", "a"], "u": [1, 1, 2]})
FRAME = FRAME.with_columns(d=pl.date(2020, 1, 1), dur=pl.duration(days=1), l=pl.concat_list("i"))
ROWS = dp.Rows()


def fresh(unit: Any = ROWS, **budget: Any) -> Any:
    return dp.Session(**(budget or {"epsilon": 1})).protect(FRAME, unit)


F = fresh()
PEOPLE = fresh(dp.Identifier("u")).limit_rows(2)
MANY = fresh(epsilon=1, delta="1e-6")
X: Any = pl.col("x")
WHOLE: Any = pl.col("i")
BOTH = F.select(count=dp.count(), sum=WHOLE.dp_sum((0, 3)), mean=X.dp_mean((0, 3)))
GROUPED = F.group_by("s", keys=["a", "b"])
PLAN = BOTH.plan(epsilon=1)


def planned(query: Any) -> None:
    """Planned, and all that one does with a plan."""
    plan = query.plan(epsilon=1)
    for form in ("text", "markdown", "html"):
        plan.explain(form)
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint
    for name in {output.name for output in plan.outputs}:
        try:
            plan.accuracy(name)
        except dp.DPFrameError:
            continue


AGGREGATES: dict[str, Callable[[Any], Any]] = {
    "weight": lambda v: dp.sum("x", (0, 9), weight=v),
    "weight of two": lambda v: dp.count(weight=v) / dp.sum("x", (0, 9)),
    "weight of a median": lambda v: dp.median("x", (0, 9), weight=v),
    "weight of a histogram": lambda v: dp.histogram("s", ["a"], weight=v),
    "weight of an argmax": lambda v: dp.argmax("s", candidates=["a", "b"], weight=v),
    "weight of bounds": lambda v: dp.bounds("x", weight=v),
    "count's bound": lambda v: dp.count(bounds=(0, v)),
    "count nonnegative": lambda v: dp.count(nonnegative=v),
    "sum nonnegative": lambda v: dp.sum("x", (0, 3), nonnegative=v),
    "sum from": lambda v: dp.sum("x", (v, 9)),
    "sum to": lambda v: dp.sum("x", (0, v)),
    "sum of one value": lambda v: dp.sum("x", (v, v)),
    "sum between": lambda v: dp.sum("x", v),
    "whole sum from": lambda v: dp.sum("i", (v, 9)),
    "whole sum to": lambda v: dp.sum("i", (0, v)),
    "sum of durations": lambda v: dp.sum("dur", (v, v)),
    "mean to": lambda v: dp.mean("x", (0, v)),
    "mean from": lambda v: dp.mean("x", (v, 0)),
    "whole mean to": lambda v: dp.mean("i", (0, v)),
    "mean shrunk": lambda v: dp.mean("x", (0, 3), shrink=v),
    "mean of dates": lambda v: dp.mean("d", (v, v)),
    "variance to": lambda v: dp.var("x", (0, v)),
    "whole variance to": lambda v: dp.var("i", (0, v)),
    "variance's ddof": lambda v: dp.var("x", (0, 2), ddof=v),
    "deviation from": lambda v: dp.std("x", (v, 0)),
    "deviation's ddof": lambda v: dp.std("x", (0, 2), ddof=v),
    "quantile": lambda v: dp.quantile("x", v, (0, 9)),
    "quantiles": lambda v: dp.quantile("x", [0.5, v], (0, 9)),
    "quantile to": lambda v: dp.quantile("x", 0.5, (0, v)),
    "whole quantile to": lambda v: dp.quantile("i", 0.5, (0, v)),
    "quantile's candidates": lambda v: dp.quantile("x", 0.5, candidates=v),
    "median's candidate": lambda v: dp.median("x", candidates=[0, v]),
    "whole median's candidate": lambda v: dp.median("i", candidates=[v, 0]),
    "edges": lambda v: dp.histogram("x", v),
    "bounds of bins": lambda v: dp.histogram("x", 3, bounds=(0, v)),
    "bins": lambda v: dp.histogram("x", v, bounds=(0, 3)),
    "whole bins": lambda v: dp.histogram("i", v, bounds=(0, 3)),
    "an edge": lambda v: dp.histogram("x", [0, 1, v]),
    "a whole edge": lambda v: dp.histogram("i", [v, 0, 1]),
    "an edge of dates": lambda v: dp.histogram("d", [v, v]),
    "categories": lambda v: dp.histogram("s", [v]),
    "histogram nonnegative": lambda v: dp.histogram("s", ["a"], nonnegative=v),
    "argmax's candidate": lambda v: dp.argmax("i", candidates=[1, v]),
    "k": lambda v: dp.argmax("s", candidates=["a", "b"], k=v),
    "argmax's score": lambda v: dp.argmax("s", dp.sum("x", (0, v)), ["a", "b"]),
    "n_unique nonnegative": lambda v: dp.n_unique("s", nonnegative=v),
    "plus": lambda v: dp.sum("i", (0, 3)) + v,
    "over": lambda v: v / dp.sum("i", (0, 3)),
    "times": lambda v: v * dp.sum("i", (0, 3)),
    "whole over": lambda v: dp.sum("i", (0, 3)) // v,
    "modulo": lambda v: dp.sum("i", (0, 3)) % v,
    "power": lambda v: dp.sum("i", (0, 3)) ** v,
    "power of": lambda v: v ** dp.sum("i", (0, 3)) if not isinstance(v, Fraction) else dp.count(),
    "decimals": lambda v: dp.sum("i", (0, 3)).round(v),
    "clip": lambda v: dp.sum("i", (0, 3)).clip(v),
    "clip between": lambda v: dp.sum("i", (0, 3)).clip(0, v),
}


def collected(**spend: Any) -> Any:
    query = fresh(epsilon=1, delta="1e-6").select(dp.count(), dp.sum("x", (0, 3)))
    return query.collect(**spend)


def spending(do: Callable[..., Any], name: str) -> Callable[[Any], Any]:
    return lambda amount: do(**{name: amount})


SPENDS: dict[str, Callable[[Any], Any]] = {
    f"{what} {amount}": spending(do, amount)
    for what, do in {
        "session": dp.Session,
        "plan": BOTH.plan,
        "explain": BOTH.explain,
        "collect": collected,
        "session's plan": lambda **spend: dp.Session(epsilon=1).plan(BOTH, **spend),
        "suggest": lambda **spend: PEOPLE.dp_count().suggest_limits(**spend),
        "simulate": lambda **spend: BOTH.simulate(FRAME, runs=2, **spend),
    }.items()
    for amount in ("epsilon", "delta", "rho")
}


OTHERS: dict[str, Callable[[Any], Any]] = {
    "epsilon with delta": lambda v: dp.Session(epsilon=v, delta="1e-6"),
    "delta with epsilon": lambda v: dp.Session(epsilon=1, delta=v),
    "delta with rho": lambda v: dp.Session(rho=1, delta=v),
    "delta with rho's spend": lambda v: fresh(rho=1).dp_count().plan(rho="0.1", delta=v),
    "rho of sums": lambda v: fresh(rho=1).dp_sum("x", (0, v)).plan(rho="0.1"),
    "delta of nothing": lambda v: fresh(rho=1, delta="1e-6").dp_count().plan(rho=v, delta="1e-7"),
    "rho of a session of rho": lambda v: fresh(rho=1).dp_count().plan(rho=v),
    "delta's spend": lambda v: MANY.dp_count().plan(epsilon="0.1", delta=v),
    "all at once": lambda v: MANY.dp_count().plan(epsilon=v, delta=v),
    "accuracy": lambda v: BOTH.plan(accuracy={"count": v}),
    "accuracy of a sum": lambda v: MANY.dp_sum("x", (0, 1)).plan(accuracy={"x": v}),
    "accuracies": lambda v: BOTH.plan(accuracy=v),
    "interval": lambda v: fresh().dp_count().collect(epsilon=1, interval=v),
    "interval of a release": lambda v: fresh().dp_count().release(epsilon=1, interval=v),
    "confidence": lambda v: PLAN.accuracy("count", v),
    "confidence of all": lambda v: PLAN.accuracy("count", v, simultaneous=True),
    "confidence of a sum": lambda v: PLAN.accuracy("sum", confidence=v),
    "confidence of a mean": lambda v: PLAN.accuracy("mean", v, count=100),
    "confidence of a release": lambda v: PLAN.releases[0].accuracy(v),
    "count of a mean": lambda v: PLAN.accuracy("mean", count=v),
    "guess": lambda v: PLAN.accuracy("mean", count=100, guess=v),
    "guess of a mean": lambda v: PLAN.accuracy("mean", count=100, guess={"mean": v}),
    "plot's confidence": lambda v: PLAN.plot(confidence=v),
    "plot's count": lambda v: PLAN.plot(count=v),
    "size": lambda v: BOTH.explain(epsilon=1, size=v),
    "size of a plan": lambda v: PLAN.explain("mermaid", size=v),
    "runs": lambda v: BOTH.simulate(FRAME, epsilon=1, runs=v),
    "runs of an audit": lambda v: BOTH.audit(epsilon=1, runs=v),
    "confidence of an audit": lambda v: BOTH.audit(epsilon=1, runs=100, confidence=v),
    "coverage": lambda v: PEOPLE.dp_count().suggest_limits(epsilon="0.1", coverage=v),
    "contributions": lambda v: planned(fresh(dp.Rows(contributions=v)).dp_count()),
    "change-one": lambda v: planned(fresh(dp.Rows("change-one", v)).dp_sum("x", (0, 3))),
    "limit_rows": lambda v: planned(fresh(dp.Identifier("u")).limit_rows(v).dp_count()),
    "limit_groups": lambda v: planned(
        fresh(dp.Identifier("u")).limit_groups(v, "s").limit_rows(1, "s").dp_count()
    ),
    "max_length": lambda v: planned(F.explode("l", max_length=v).dp_count()),
    "fill_null": lambda v: planned(F.fill_null(v).dp_sum("x", (0, 3))),
    "fill_nan": lambda v: planned(F.fill_nan(v).dp_sum("x", (0, 3))),
    "declared bounds": lambda v: planned(
        dp.Session(epsilon=1).protect(FRAME, ROWS, bounds={"x": (0, v)}).dp_sum("x")
    ),
    "declared whole bounds": lambda v: planned(
        dp.Session(epsilon=1).protect(FRAME, ROWS, bounds={"i": (v, 3)}).dp_histogram("i", 2)
    ),
    "declared categories": lambda v: dp.Session(epsilon=1).protect(
        FRAME, ROWS, categories={"i": [1, v]}
    ),
    "keys": lambda v: planned(F.group_by("i", keys=[1, v]).dp_count()),
    "made keys": lambda v: planned(F.group_by("i", keys=dp.keys({"i": [v]})).dp_count()),
    "grouped sum": lambda v: planned(GROUPED.dp_sum("x", (0, v))),
    "grouped weight": lambda v: planned(GROUPED.agg(dp.count(weight=v), dp.sum("i", (0, 3)))),
    "partition": lambda v: F.session.partition(F, "i", keys=[1, v]),
    "PureDP": dp.PureDP,
    "ApproxDP": lambda v: dp.ApproxDP(v, "1e-6"),
    "ApproxDP's delta": lambda v: dp.ApproxDP(1, v),
    "ZCDP": dp.ZCDP,
    "ZCDP's delta": lambda v: dp.ZCDP(1, v),
    "GDP": dp.GDP,
    "session of ApproxDP": lambda v: planned(fresh(budget=dp.ApproxDP(v, v)).dp_count()),
    "session of GDP": lambda v: planned(fresh(budget=dp.GDP(v)).dp_count()),
    "filter by name": lambda v: planned(F.filter(i=v).dp_count()),
}
EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    "clip from": lambda v: WHOLE.clip(v, None),
    "clip": lambda v: X.clip(v, v),
    "sum": lambda v: WHOLE + v,
    "quotient": lambda v: WHOLE / v,
    "remainder": lambda v: v % X,
    "power": lambda v: WHOLE**v,
    "power of": lambda v: v**WHOLE,
    "round": lambda v: X.round(v),
    "log": lambda v: X.log(v),
    "is_in": lambda v: WHOLE.is_in([1, v]),
    "is_between": lambda v: X.is_between(v, 1),
    "cut": lambda v: X.cut([v], labels=["a", "b"]).cast(pl.String) == "a",
    "replace": lambda v: WHOLE.replace(1, v),
    "replace_strict": lambda v: X.replace_strict([v], [v], default=v),
    "comparison": lambda v: v < X,
    "fill_null": lambda v: X.fill_null(v),
    "maximum": lambda v: pl.max_horizontal("x", v),
    "get": lambda v: pl.col("l").list.get(v),
    "head": lambda v: pl.col("s").str.head(v).str.len_chars(),
    "pad": lambda v: pl.col("s").str.pad_start(v).str.len_chars(),
    "offset": lambda v: pl.col("d").dt.offset_by(f"{v}d").dt.year(),
    "duration": lambda v: pl.duration(days=v).dt.total_days(),
    "date": lambda v: pl.date(v, 1, 1).dt.year(),
    "typed": lambda v: pl.lit(v, dtype=pl.Int128) + WHOLE,
    "Decimal": lambda v: pl.lit(v, dtype=pl.Decimal(38, 2)) + WHOLE,
}
"""Constants within expressions: what Polars itself refuses is not ours."""
EVENTS: dict[str, Callable[[Any], Any]] = {
    "Laplace's scale": lambda v: accounting.LaplaceEvent(1, v),
    "Laplace's sensitivity": lambda v: accounting.LaplaceEvent(v, 1),
    "discrete Laplace's scale": lambda v: accounting.DiscreteLaplaceEvent(1, v),
    "discrete Laplace's sensitivity": lambda v: accounting.DiscreteLaplaceEvent(v, 1),
    "Gaussian's sigma": lambda v: accounting.GaussianEvent(1, v),
    "Gaussian's sensitivity": lambda v: accounting.GaussianEvent(v, 1),
    "discrete Gaussian's sigma": lambda v: accounting.DiscreteGaussianEvent(1, v),
    "exponential": accounting.ExponentialEvent,
    "shared exponential": accounting.SharedExponentialEvent,
    "permute and flip": accounting.PermuteAndFlipEvent,
    "response": lambda v: accounting.RandomizedResponseEvent(v, 2),
    "categories": lambda v: accounting.RandomizedResponseEvent(1, v),
    "approximate": lambda v: accounting.ApproxEvent(v, 0),
    "approximate's delta": lambda v: accounting.ApproxEvent(1, v),
    "rho": accounting.ZCDPEvent,
    "delta": lambda v: accounting.best([accounting.GaussianEvent(1, 5)], v),
    "deltas": lambda v: accounting.compare([accounting.LaplaceEvent(1, 5)], v),
}


pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _polars_may_drop_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars drops errors over numbers that Python does not write, and pytest would write them."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)


def refused_or_done(run: Callable[[Any], Any], amount: Any) -> str | None:
    """Nothing, or what went wrong."""
    try:
        run(amount)
    except dp.DPFrameError as refusal:
        said = str(refusal)
        if BUG in said:
            return f"is a mistake of dpframe: {said[:300]}"
    except FAILURES as error:
        return f"raises {type(error).__name__}: {str(error)[:200]}"
    return None


def named(amount: Any) -> str:
    try:
        return repr(amount)[:40]
    except ValueError:
        return f"{type(amount).__name__} of absurd size"


def check(run: Callable[[Any], Any], amounts: Sequence[Any]) -> None:
    wrong = [
        f"{named(amount)} {problem}"
        for amount in amounts
        if (problem := refused_or_done(run, amount)) is not None
    ]
    assert not wrong, "\n".join(wrong)


def aggregated(name: str, amount: Any) -> None:
    planned(F.select(out=AGGREGATES[name](amount)))


def computed(name: str, amount: Any) -> None:
    try:
        made = EXPRESSIONS[name](amount)
    except FAILURES:  # Polars has no such expression
        return
    planned(F.with_columns(out=made).dp_sum("out", (0, 3)))


ENTRANCES: dict[str, Callable[[Any], Any]] = {
    **{f"{name} of an aggregate": partial(aggregated, name) for name in AGGREGATES},
    **{f"{name} spent": run for name, run in SPENDS.items()},
    **OTHERS,
    **{f"{name} of rows": partial(computed, name) for name in EXPRESSIONS},
    **{f"{name} of an event": run for name, run in EVENTS.items()},
}


def test_each_entrance_takes_some_absurd_amounts() -> None:
    for number, run in enumerate(ENTRANCES.values()):
        check(run, AMOUNTS[number % 13 :: 13])


@pytest.mark.parametrize(
    "name", ["weight of an aggregate", "an edge of an aggregate", "k of an aggregate", "PureDP"]
)
def test_all_amounts_at_some_entrances(name: str) -> None:
    check(ENTRANCES[name], AMOUNTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRANCES)
def test_all_amounts(name: str) -> None:
    check(ENTRANCES[name], AMOUNTS)


def test_nothing_is_charged() -> None:
    session = dp.Session(epsilon=1)
    frame: Any = session.protect(FRAME, ROWS)
    for amount in AMOUNTS:
        with contextlib.suppress(dp.DPFrameError):
            frame.dp_count().plan(epsilon=amount)
        with contextlib.suppress(dp.DPFrameError):
            frame.dp_sum("x", (0, amount)).plan(epsilon="0.1")
    assert session.spent == dp.PureDP(0)


def test_a_traceback_would_be_noticed() -> None:
    assert refused_or_done(float, 10**400) is not None
    assert refused_or_done(dp.PureDP, -1) is None
