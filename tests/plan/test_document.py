"""Plans as documents: written, read, and the same in every process and with every Polars."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.frames.public import digest, freeze
from tests.golden.queries import SECRET
from tests.plan.documents import ALL, DOCUMENTS, KEPT, of_version_1, path_of, plan_of, unreadable

each = pytest.mark.parametrize("name", ALL)


def accuracies(plan: dp.Plan) -> list[str]:
    """The accuracy of each output, or why it has none."""
    found = []
    for output in plan.outputs:
        for count in (None, 1000):
            try:
                found.append(repr(plan.accuracy(output.name, "0.9", count=count)))
            except dp.UnsupportedOperation as error:
                found.append(str(error))
    return found


@each
@pytest.mark.parametrize("indent", [None, 0, 2])
def test_what_is_read_is_what_was_written(name: str, indent: int | None) -> None:
    plan = plan_of(name)
    read = dp.Plan.from_json(plan.to_json(indent))
    for field in dp.Plan.__dataclass_fields__:
        assert getattr(read, field) == getattr(plan, field), field
    assert read.to_json(indent) == plan.to_json(indent)
    assert read.fingerprint == plan.fingerprint


@each
def test_a_plan_that_is_read_answers_as_before(name: str) -> None:
    plan, read = plan_of(name), dp.Plan.from_json(plan_of(name).to_json())
    assert read.explain() == plan.explain()
    assert read.explain("markdown") == plan.explain("markdown")
    assert repr(read) == repr(plan)
    assert [repr(event) for event in read.events] == [repr(event) for event in plan.events]
    assert accuracies(read) == accuracies(plan)
    assert plan.diff(read) == read.diff(plan) == ""


def test_plans_are_read_from_text_bytes_and_files(tmp_path: Path) -> None:
    plan = plan_of("lists")
    text, path = plan.to_json(), tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    for form in (text, text.encode(), path, b"\xef\xbb\xbf" + text.encode(), text.encode("utf-16")):
        assert dp.Plan.from_json(form).fingerprint == plan.fingerprint


# -- the same everywhere --------------------------------------------------------------------------


@pytest.mark.parametrize("name", KEPT)
def test_documents_are_as_kept(name: str) -> None:
    assert plan_of(name).to_json() + "\n" == path_of(name).read_text(encoding="utf-8"), (
        "a document changed; if that is meant: python -m tests.plan.documents"
    )


@pytest.mark.parametrize("name", KEPT)
def test_kept_documents_can_be_read(name: str) -> None:
    assert dp.Plan.from_json(path_of(name)).fingerprint == plan_of(name).fingerprint


def test_every_kept_document_has_its_plan() -> None:
    assert {path.stem for path in DOCUMENTS.glob("*.json")} == {*KEPT}


@pytest.mark.parametrize("seed", [pytest.param("0", marks=pytest.mark.slow), "17"])
def test_documents_are_the_same_in_every_process(seed: str) -> None:
    code = (
        "import json, sys, dpframe as dp\n"
        "from tests.plan.documents import ALL, plan_of\n"
        "assert all(dp.Plan.from_json(t).to_json() == t for t in json.load(sys.stdin).values())\n"
        "print(json.dumps({name: plan_of(name).to_json() for name in reversed(ALL)}))"
    )
    environment = {
        **os.environ,
        "PYTHONHASHSEED": seed,
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    here = {name: plan_of(name).to_json() for name in ALL}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        input=json.dumps(here),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == here


FRAME = pl.DataFrame(
    {
        "f": pl.Series([1.5, -0.0, float("nan"), float("inf"), 1e-7, 1e22, None, 5e-324]),
        "f32": pl.Series([1.5, 0.1, 1e-7, 3e38, None, 0, 1, 2], dtype=pl.Float32),
        "i": [1, None, 3, 4, 5, 6, 7, 8],
        "u": pl.Series([2**64 - 1, 0, 1, 2, 3, 4, 5, 6], dtype=pl.UInt64),
        "wide": pl.Series([2**100, -(2**100), 0, 1, 2, 3, 4, None], dtype=pl.Int128),
        "s": ["a", None, "", "\x00", 'q"uo', "n\nl", "é", "😀"],
        "b": [True, None, False] + [True] * 5,
        "bin": [b"\x00\xff", None, b"", b"a", b"b", b"c", b"d", b"e"],
        "day": [date(2020, 1, 1), None, date(1, 1, 1)] + [date(9999, 12, 31)] * 5,
        "ns": pl.Series([datetime(2020, 1, 1)] * 8, dtype=pl.Datetime("ns")),
        "zone": pl.Series([datetime(2020, 7, 1)] * 8, dtype=pl.Datetime("ms", "Europe/Zurich")),
        "span": [timedelta(days=1, microseconds=3), timedelta(-1), None] + [timedelta(0)] * 5,
        "time": [time(1, 2, 3, 4)] * 8,
        "decimal": pl.Series([Decimal("1.50"), None] * 4, dtype=pl.Decimal(10, 2)),
        "category": pl.Series(["b", "a", None, "b"] * 2, dtype=pl.Categorical),
        "enum": pl.Series(["b", "a", None, "b"] * 2, dtype=pl.Enum(["a", "b"])),
        "list": [[1.5, None], None, [], [float("nan")]] * 2,
        "array": pl.Series([[1, 2], None] * 4, dtype=pl.Array(pl.Int64, 2)),
        "struct": [{"a": 1, "b": "x"}, None, {"a": None, "b": None}, {"a": 2, "b": "y"}] * 2,
        "null": [None] * 8,
    }
)


def test_the_digest_of_a_public_frame_is_that_of_every_version_of_polars() -> None:
    expected = "720b9a7f0f39e9e0eaf85059c062f7130ede7284eccef0d89fd84a8b0a1204dc"
    assert digest(freeze(FRAME)) == expected
    assert digest(pl.concat([FRAME[:3], FRAME[3:]], rechunk=False)) == expected


def changed_frames() -> Iterator[pl.DataFrame]:
    """Frames that differ from it in one thing."""
    for name in FRAME.columns:
        if name != "null":
            other = (
                pl.col(name).shift(1) if name in ("ns", "zone", "time") else pl.col(name).reverse()
            )
            yield FRAME.with_columns(other)
        yield FRAME.rename({name: f"{name}2"})
    yield FRAME[:-1]
    yield FRAME.select(reversed(FRAME.columns))
    yield FRAME.with_columns(pl.when(pl.col("f") == 0).then(0.0).otherwise("f").alias("f"))
    yield FRAME.with_columns(pl.col("f").fill_nan(None))
    yield FRAME.with_columns(pl.col("i").cast(pl.Int32))
    yield FRAME.with_columns(pl.col("category").cast(pl.String))
    yield FRAME.with_columns(pl.col("enum").cast(pl.Enum(["b", "a"])))
    yield FRAME.with_columns(pl.col("ns").cast(pl.Datetime("us")))
    yield FRAME.with_columns(pl.col("zone").dt.convert_time_zone("Europe/Paris"))
    yield FRAME.with_columns(pl.col("s").fill_null("\x00"))
    yield FRAME.with_columns(pl.col("s").fill_null(""))
    yield FRAME.with_columns(pl.col("list").fill_null([]))


def test_digests_of_other_frames_are_others() -> None:
    found = [digest(freeze(frame)) for frame in (FRAME, *changed_frames())]
    assert len({*found}) == len(found) == 52


@pytest.mark.parametrize("name", ["^a$", "*", "", "a\n"])
def test_columns_of_a_public_frame_have_any_name(name: str) -> None:
    values = [None, {name: 1, "b": "x"}]
    one = pl.DataFrame({name: values, "b": [1.5, None]})
    assert digest(freeze(one)) != digest(freeze(one.rename({"b": "c"})))
    assert digest(freeze(one)) != digest(freeze(one.reverse()))


def test_texts_do_not_run_into_each_other() -> None:
    frames = [
        pl.DataFrame({"a": a, "b": b}, schema={"a": pl.String, "b": pl.String})
        for a, b in [(["x", "y"], ["", ""]), (["xy", ""], ["", ""]), (["x", ""], ["y", ""])]
    ]
    assert len({digest(frame) for frame in frames}) == 3


# -- names and constants --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ['q"', "n\n", "\u202e", "é", "`", "\\", "\x00", "\ud800"])
def test_any_name_can_be_written_and_stored(name: str, tmp_path: Path) -> None:
    columns = {"x": pl.Int64} if name == "\ud800" else {name: pl.Int64, "x": pl.Int64}
    people = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=columns), dp.Rows(), name=name)
    plan = people.filter(pl.col(next(iter(columns))) > 1).dp_count().plan(epsilon=1)
    path = tmp_path / "plan.json"
    path.write_text(plan.to_json(), encoding="utf-8")
    read = dp.Plan.from_json(path)
    assert (read.source, read.fingerprint) == (name, plan.fingerprint)
    assert read.explain() == plan.explain()


def test_deep_expressions_can_be_written() -> None:
    deep = pl.col("age")
    for i in range(140):
        deep = deep + random.Random(i).choice([1, 2])
    plan = (
        dp.Session(epsilon=1)
        .protect(unreadable(), dp.Rows())
        .filter(deep > 3)
        .dp_count()
        .plan(epsilon=1)
    )
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint


@each
def test_no_document_holds_or_reads_data(name: str) -> None:
    assert SECRET not in plan_of(name).to_json()


@given(
    low=st.floats(-1e12, 1e12, allow_subnormal=False),
    width=st.floats(1e-9, 1e12),
    column=st.sampled_from(["bill", "visits"]),
    spend=st.sampled_from([{"rho": "0.005"}, {"epsilon": 1}, {"epsilon": 1, "delta": "1e-9"}]),
    adjacency=st.sampled_from(["add-remove", "change-one"]),
    kinds=st.sets(st.sampled_from(["sum", "mean", "var", "std"]), min_size=1),
)
def test_plans_of_any_bounds_are_read_as_written(
    low: float, width: float, column: str, spend: Any, adjacency: Any, kinds: set[str]
) -> None:
    """The terms of a number that follows from several may have more digits than 64 bits."""
    session = dp.Session(rho=1) if "rho" in spend else dp.Session(**spend)
    frame = session.protect(unreadable(), dp.Rows(adjacency), name="patients")
    bounds = (Fraction(low), Fraction(low) + Fraction(width))
    asked = [
        getattr(dp, kind)(column, bounds if column == "bill" else tuple(map(int, bounds)))
        for kind in sorted(kinds)
        if column == "bill" or int(bounds[0]) < int(bounds[1])
    ]
    outputs = [made.alias(f"o{i}") for i, made in enumerate(asked)]
    plan = frame.group_by("region", keys=["a"]).agg(dp.count().alias("n"), *outputs).plan(**spend)
    again = dp.Plan.from_json(plan.to_json())
    assert (again.fingerprint, again.to_json()) == (plan.fingerprint, plan.to_json())


def test_a_document_from_before_plans_stated_their_budget_is_read() -> None:
    session = dp.Session(epsilon=1)
    people = session.protect(pl.DataFrame({"a": [1]}), unit=dp.Rows())
    plan = people.dp_count().plan(epsilon="0.5")
    document = json.loads(of_version_1(plan))
    assert document["session"].pop("budget")["whole"]["epsilon"] == "1"
    del document["digest"]
    canonical = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    again = dp.Plan.from_json(json.dumps({**document, "digest": digest}))
    assert again.budget is None
    assert again.fingerprint == replace(plan, physical=None).fingerprint != plan.fingerprint
    with pytest.raises(dp.PlanMismatch):
        dp.Plan.from_json(json.dumps({**document, "digest": "0" * 64}))
