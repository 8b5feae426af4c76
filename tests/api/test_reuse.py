"""Results that are handed out again: the right ones, for nothing, and never others."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe import runner
from dpframe.api import reuse
from dpframe.api.files import Content, NotKept, unpack
from dpframe.api.payer import Spend
from dpframe.api.query import parts
from dpframe.api.release import Release, Releases
from dpframe.api.reuse import ReusePolicy
from dpframe.core.edition import as_the_edition_before
from dpframe.core.parameters import Parameter
from dpframe.frames.public import digest
from dpframe.ledger.contents import FolderContents
from dpframe.ledger.kept import Attempt, Begun, Identity, content_digest, same_key
from dpframe.optimise.limit_rule import LimitRule
from dpframe.optimise.queries import Queries
from dpframe.release.intervals import read_intervals
from tests.ledger.ledgers import Place, in_memory, sql

PEOPLE = pl.DataFrame({"city": ["A", "B", "A"], "x": [1, 2, 3], "who": ["p", "q", "q"]})
KEYS = ["A", "B"]
PUBLIC = pl.DataFrame({"city": ["A", "B"], "land": ["c", "d"]})

Ask = Callable[[dp.PrivateFrame], dp.PrivateQuery]


def session(place: Place | None, *, name: str | None = None, epsilon: int = 100) -> dp.Session:
    where = None if place is None else str(place)
    return dp.Session(epsilon=epsilon, ledger=where, name=name, keep_releases=True)


def people(
    of: dp.Session, name: str | None = "people", rows: pl.DataFrame = PEOPLE
) -> dp.PrivateFrame:
    return of.protect(rows, unit=dp.Rows(), name=name)


def counts(frame: dp.PrivateFrame, keys: list[str] | None = None) -> dp.PrivateQuery:
    return frame.group_by("city", keys=keys or KEYS).agg(
        dp.count().alias("n"), pl.col("x").dp_sum((0, 5)).alias("s")
    )


def asked(
    place: Place | None,
    ask: Ask = counts,
    *,
    frame: str = "people",
    rows: pl.DataFrame = PEOPLE,
    budget: str | None = None,
    interval: float | None = None,
    repeat: ReusePolicy | None = None,
    parameter: str | None = None,
    **spend: Any,
) -> Release:
    """As another process would ask."""
    of = session(place, name=budget)
    query = ask(people(of, frame, rows))
    bare, source, payer = parts(query)
    assert payer is not None
    if parameter is not None:  # as of a job
        payer.parameters = (Parameter("day", "date", parameter),)
    how = Spend(**spend or {"epsilon": 1})
    releases = payer.release(
        Queries((bare,)),
        [source],
        how,
        read_intervals(interval),
        repeat=repeat or ReusePolicy("same"),
    )
    return releases[0]


def files(place: Path) -> list[Path]:
    return sorted(place.with_name(f"{place.name}.releases").iterdir())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("DPFRAME_")]:
        monkeypatch.delenv(name)
    return tmp_path / "budget.db"


def test_the_same_is_answered_for_nothing_and_says_so(place: Place) -> None:
    first = asked(place)
    assert not first.reused
    assert "nothing was charged" not in repr(first)
    again = asked(place)
    assert again.reused
    assert again.frame.equals(first.frame)
    assert "nothing was charged" in repr(again)
    assert "nothing was charged" in again._repr_html_()
    assert again.cost == first.cost
    assert again.plan.fingerprint == first.plan.fingerprint
    of = session(place)
    assert of.spent == dp.PureDP(1)
    kept = of.releases()
    assert kept["fingerprint"].to_list() == [first.plan.fingerprint]
    assert kept.select("frame", "cost", "run", "periods").row(0) == (
        "people",
        "epsilon 1",
        None,
        None,
    )
    assert kept["query"][0].startswith("people.group_by(city).agg(n=dp.count(), s=")
    of._payer.ledger.verify()


def test_without_asking_each_release_is_paid(folder: Path) -> None:
    for _ in range(2):
        assert not asked(folder, repeat=ReusePolicy()).reused
    of = session(folder)
    assert of.spent == dp.PureDP(2)
    assert of.releases().height == 2
    newest = of.releases()["number"].to_list()[-1]
    found = asked(folder)
    assert found.reused
    assert found.origin.endswith(f" {newest}")


CHANGES: dict[str, dict[str, Any]] = {
    "filter": {"ask": lambda frame: counts(frame.filter(pl.col("x") > 1))},
    "key set": {"ask": lambda frame: counts(frame, ["A", "B", "C"])},
    "order of keys": {"ask": lambda frame: counts(frame, ["B", "A"])},
    "order of outputs": {
        "ask": lambda frame: frame.group_by("city", keys=KEYS).agg(
            pl.col("x").dp_sum((0, 5)).alias("s"), dp.count().alias("n")
        )
    },
    "name of an output": {
        "ask": lambda frame: frame.group_by("city", keys=KEYS).agg(
            dp.count().alias("m"), pl.col("x").dp_sum((0, 5)).alias("s")
        )
    },
    "bounds": {
        "ask": lambda frame: frame.group_by("city", keys=KEYS).agg(
            dp.count().alias("n"), pl.col("x").dp_sum((0, 6)).alias("s")
        )
    },
    "mechanism": {
        "ask": lambda frame: frame.group_by("city", keys=KEYS).agg(
            dp.count(mechanism="discrete_laplace").alias("n"),
            pl.col("x").dp_sum((0, 5)).alias("s"),
        )
    },
    "weight": {
        "ask": lambda frame: frame.group_by("city", keys=KEYS).agg(
            dp.count(weight=3).alias("n"), pl.col("x").dp_sum((0, 5)).alias("s")
        )
    },
    "not below zero": {
        "ask": lambda frame: frame.group_by("city", keys=KEYS).agg(
            dp.count(nonnegative=True).alias("n"), pl.col("x").dp_sum((0, 5)).alias("s")
        )
    },
    "step that changes nothing": {
        "ask": lambda frame: counts(frame.with_columns(y=pl.col("x") + 1))
    },
    "public frame": {"ask": lambda frame: counts(frame.join(PUBLIC, on="city", how="left"))},
    "spend": {"epsilon": "1.0000001"},
    "split": {"epsilon": 1, "split": "equal"},
    "interval": {"interval": 0.95},
    "frame": {"frame": "others"},
    "budget": {"budget": "another"},
    "parameter": {"parameter": "2026-11-22"},
    "type of a column": {"rows": PEOPLE.with_columns(pl.col("x").cast(pl.Int8))},
    "type of a key": {"rows": PEOPLE.with_columns(pl.col("city").cast(pl.Categorical))},
    "period": {"repeat": ReusePolicy("same", period="2026-11-22")},
}


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_else_is_answered_by_it(folder: Path, change: str) -> None:
    """Each part of what tells results apart, changed by itself."""
    first = asked(folder)
    other = asked(folder, **CHANGES[change])
    assert not other.reused
    assert other.origin != first.origin
    once_more = asked(folder, **CHANGES[change])
    assert once_more.reused
    assert once_more.origin == other.origin
    assert once_more.frame.equals(other.frame)
    same = asked(folder)
    assert same.reused
    assert same.origin == first.origin


MISTAKES: dict[str, tuple[Any, str]] = {
    "fingerprint": ("0" * 64, "spend"),
    "frames": (("people",), "frame"),
    "outputs": ((("city", "n", "s"),), "order of outputs"),
    "interval": (None, "interval"),
    "parameters": ((), "parameter"),
    "period": (None, "period"),
    "types": (None, "type of a key"),
    "release": ("0" * 64, "spend"),
}
"""What each part of an identity would always be if it were forgotten, and a change that tells."""


@pytest.mark.parametrize("part", [part.name for part in fields(Identity)])
def test_a_part_that_were_forgotten_would_be_seen(
    folder: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = reuse.identity_of
    value, change = MISTAKES[part]
    monkeypatch.setattr(reuse, "identity_of", lambda *a: replace(real(*a), **{part: value}))

    def looked_at() -> None:
        test_nothing_else_is_answered_by_it(folder, change)
        test_what_is_kept_says_what_it_is_of(folder.with_name("another.db"))

    with pytest.raises((AssertionError, ValueError, dp.DPFrameError)):  # ledgers refuse it, too
        looked_at()


def test_what_is_kept_says_what_it_is_of(folder: Path) -> None:
    """The plan has names of frames and parameters too, so that results differ without these."""
    asked(folder)
    asked(folder, frame="others")
    asked(folder, parameter="2026-11-22")
    kept = session(folder).releases()
    assert kept["frame"].to_list() == ["people", "others", "people"]
    assert kept["parameters"].to_list() == [None, None, "day=2026-11-22"]


def test_public_frames_are_told_apart_by_their_values(folder: Path) -> None:
    def ask(land: str) -> bool:
        public = PUBLIC.with_columns(land=pl.lit(land))
        keys = {"land": ["c", "d"]}
        joined = people(session(folder)).join(public, on="city", how="left")
        query = joined.group_by("land", keys=keys).agg(dp.count().alias("n"))
        return query.release(epsilon=1, reuse="same").reused

    assert [ask("c"), ask("d"), ask("c"), ask("d")] == [False, False, True, True]


def test_the_order_of_queries_tells(folder: Path) -> None:
    def ask(turned: bool) -> bool:
        of = session(folder)
        frame = people(of)
        both = [frame.dp_count(), frame.filter(pl.col("x") > 1).dp_count()]
        return of.release(both[::-1] if turned else both, epsilon=1, reuse="same").reused

    assert [ask(turned) for turned in (False, True, False, True)] == [False, False, True, True]


def test_threads_charge_once(place: Place) -> None:
    """Who comes while another computes is told so, or gets what was kept."""

    def ask(_: int) -> Release | str:
        try:
            return asked(place)
        except dp.LedgerError as error:
            return type(error).__name__

    asked(place, frame="others")  # so that the ledger is there
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(ask, range(12)))
    released = [one for one in found if isinstance(one, Release)]
    assert {one for one in found if isinstance(one, str)} <= {"UnderWay"}
    assert sum(not release.reused for release in released) == 1
    assert len({release.origin for release in released}) == 1
    assert session(place).spent == dp.PureDP(2)


def test_values_of_parameters_and_intervals_tell_results_apart(folder: Path) -> None:
    given = [
        *({"parameter": f"2026-11-{d}"} for d in (21, 22)),
        *({"interval": level} for level in (0.9, 0.95, 0.99)),
        *({"repeat": ReusePolicy("same", period=period)} for period in ("1", "2")),
    ]
    assert [asked(folder, **one).reused for one in given] == [False] * len(given)
    assert [asked(folder, **one).reused for one in given] == [True] * len(given)


def test_results_of_earlier_versions_are_handed_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They kept no types: then whatever is called the same is taken for it, once. What is released
    anew has its types.
    """
    real = reuse.identity_of
    with monkeypatch.context() as patch:
        patch.setattr(reuse, "identity_of", lambda *a: replace(real(*a), types=None))
        first = asked(folder)
    other = CHANGES["type of a key"]
    for found in (asked(folder), asked(folder, **other)):
        assert found.reused
        assert found.origin == first.origin
    anew = asked(folder, repeat=ReusePolicy())
    assert asked(folder).origin == anew.origin
    assert asked(folder, **other).origin == first.origin
    run = ReusePolicy(run="monday")
    with monkeypatch.context() as patch:
        patch.setattr(reuse, "identity_of", lambda *a: replace(real(*a), types=None))
        asked(folder, repeat=run)
    assert asked(folder, repeat=run).reused


def test_rows_of_other_individuals_are_another_result(folder: Path) -> None:
    """Whose rows are may be said by another key of the same frames."""
    orders = pl.DataFrame({"order": [1, 2, 3], "again": [2, 3, 1], "who": [1, 1, 2]})
    items = pl.DataFrame({"order": [1, 2, 3, 3]})

    def ask(there: str) -> bool:
        of = session(folder)
        whose = of.protect(orders, unit="who", name="orders")
        unit = dp.Through(whose, left_on="order", right_on=there)
        query = of.protect(items, unit=unit, name="items").limit_rows(2).dp_count()
        return query.release(epsilon=1, reuse="same").reused

    assert [ask(there) for there in ("order", "again", "order", "again")] == [
        *(False, False),
        *(True, True),
    ]


def test_a_run_is_of_columns_of_one_type(folder: Path) -> None:
    run = ReusePolicy(run="monday")
    asked(folder, repeat=run)
    with pytest.raises(dp.PlanMismatch, match="another type of a column"):
        asked(folder, repeat=run, **CHANGES["type of a key"])


def test_another_ledger_is_another_budget(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert not asked(tmp_path / name / "budget.db").reused


texts = st.text(max_size=3)
identities = st.builds(
    Identity,
    texts,
    st.tuples(texts),
    st.tuples(st.tuples(texts)),
    st.none() | texts,
    st.tuples(st.tuples(texts, texts)),
    st.none() | texts,
    st.none() | texts,
)


@given(identities, identities)
def test_each_part_of_an_identity_tells(first: Identity, second: Identity) -> None:
    for part in fields(Identity):
        changed = replace(first, **{part.name: getattr(second, part.name)})
        assert (changed == first) == (changed.digest == first.digest)
        assert (same_key(changed) == same_key(first)) == (changed == first)


def test_several_queries_are_kept_together(place: Place) -> None:
    def several(epsilon: float) -> Any:
        of = session(place)
        frame = people(of)
        both = [counts(frame), frame.filter(pl.col("x") > 1).dp_count()]
        return of.release(both, epsilon=epsilon, reuse="same")

    first, again, other = several(1), several(1), several(2)
    assert [r.reused for r in (*first, *again, *other)] == [False] * 2 + [True] * 2 + [False] * 2
    assert again.reused
    assert "nothing was charged" in repr(again)
    for one, two in zip(first, again, strict=True):
        assert one.frame.equals(two.frame)
    assert session(place).spent == dp.PureDP(3)


def test_memory_keeps_results_while_it_lives() -> None:
    of = session(None)
    query = counts(people(of))
    first, again = (query.release(epsilon=1, reuse="same") for _ in range(2))
    assert (first.reused, again.reused) == (False, True)
    assert again.frame.equals(first.frame)
    assert of.spent == dp.PureDP(1)
    assert of.releases().height == 1


def test_what_remains_does_not_matter(folder: Path) -> None:
    """A budget that is used up still has its results."""
    for composition, epsilon in (("sum", 1), ("zcdp", "0.1"), ("gdp", "0.1")):

        def ask(composition: Any = composition, epsilon: Any = epsilon) -> Release:
            of = dp.Session(
                epsilon=1,
                delta="1e-6",
                ledger=folder,
                name=composition,
                composition=composition,
                keep_releases=True,
            )
            query = counts(people(of))
            made = query.release(epsilon=epsilon, reuse="same")
            with pytest.raises(dp.BudgetExceeded):
                query.collect(epsilon=1)
            return made

        assert [ask().reused, ask().reused] == [False, True]


def test_parts_are_told_apart(folder: Path) -> None:
    def ask(key: str) -> Release:
        of = session(folder)
        part = of.partition(people(of), "city", keys=KEYS)[key]
        return part.dp_count().release(epsilon=1, reuse="same")

    first = ask("A")
    assert not ask("B").reused
    again = ask("A")
    assert again.reused
    assert again.frame.equals(first.frame)


def test_windows_are_told_apart_and_listed(folder: Path) -> None:
    frame = PEOPLE.with_columns(
        at=pl.Series([date(2026, 1, 3), date(2026, 1, 9), date(2026, 2, 3)])
    )
    unit = dp.Identifier("who", window="1mo", time="at")

    def ask(month: int) -> bool:
        of = dp.Session(epsilon=1, per="1mo", ledger=folder, keep_releases=True)
        rows = of.protect(frame, unit=unit, name="visits")
        inside = pl.col("at").is_between(date(2026, month, 1), date(2026, month, 20))
        query = rows.filter(inside).limit_rows(2).dp_count()
        return query.release(epsilon=1, reuse="same").reused

    assert [ask(month) for month in (1, 2, 1, 2)] == [False, False, True, True]
    of = dp.Session(epsilon=1, per="1mo", ledger=folder)
    assert of.releases()["periods"].to_list() == ["2026-01", "2026-02"]


def test_a_frame_has_to_be_named(folder: Path) -> None:
    of = session(folder)
    for frame in (people(of, None), of.protect(PEOPLE, unit=dp.Rows(), name="")):
        with pytest.raises(dp.UnsupportedOperation, match="needs frames with names") as refusal:
            frame.dp_count().collect(epsilon=1, reuse="same")
        assert "name=" in str(refusal.value)
    assert of.spent == dp.PureDP(0)


def test_two_frames_of_one_name_are_not_reused(folder: Path) -> None:
    of = session(folder)
    first = people(of).dp_count().release(epsilon=1, reuse="same")
    assert people(of).dp_count().release(epsilon=1, reuse="same").origin == first.origin
    other = of.protect(PEOPLE.head(1), unit=dp.Rows(), name="people")
    with pytest.raises(dp.UnsupportedOperation, match="no other frame"):
        other.dp_count().collect(epsilon=1, reuse="same")
    other.dp_count().collect(epsilon=1)  # is kept, and not taken for one of the first
    assert people(of).dp_count().release(epsilon=1, reuse="same").origin == first.origin


def test_joined_frames_are_all_named(folder: Path) -> None:
    def ask(name: str | None, other: str | None) -> Release:
        of = session(folder)
        unit = dp.Identifier("who")
        left = of.protect(PEOPLE, unit=unit, name=name).limit_rows(2)
        right = of.protect(PEOPLE.select("who", y="x"), unit=unit, name=other).limit_rows(2)
        return left.join(right, on="who").dp_count().release(epsilon=1, reuse="same")

    assert not ask("a", "b").reused
    assert ask("a", "b").reused
    assert not ask("a", "c").reused
    with pytest.raises(dp.UnsupportedOperation, match="needs frames with names"):
        ask("a", None)


def test_a_session_that_keeps_nothing_reuses_nothing(folder: Path) -> None:
    of = dp.Session(epsilon=1, ledger=folder)
    with pytest.raises(dp.UnsupportedOperation, match="keeps no releases") as refusal:
        people(of).dp_count().collect(epsilon=1, reuse="same")
    assert "keep_releases=True" in str(refusal.value)
    people(of).dp_count().collect(epsilon=1)
    assert not folder.with_name("budget.db.releases").exists()
    with pytest.raises(dp.UnsupportedOperation, match="reuse='always' is not known") as refusal:
        people(of).dp_count().collect(epsilon=1, reuse="always")  # type: ignore[arg-type]
    assert 'write reuse="never" or reuse="same"' in str(refusal.value)


def refused(place: Place, match: str) -> None:
    before = session(place).spent
    with pytest.raises(dp.LedgerError, match=match) as refusal:
        asked(place)
    assert 'reuse="never"' in str(refusal.value)
    assert session(place).spent == before


def test_what_was_changed_or_lost_is_said_and_not_paid_again(folder: Path) -> None:
    asked(folder)
    (kept,) = files(folder)
    whole = kept.read_bytes()
    for place in (0, len(whole) // 2, len(whole) - 1):
        kept.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        refused(folder, "changed since it was kept")
    kept.unlink()
    refused(folder, "the stored result is missing")
    kept.write_bytes(whole)
    assert asked(folder).reused
    kept.unlink()
    anew = asked(folder, repeat=ReusePolicy())  # on purpose
    assert asked(folder).origin == anew.origin


def test_contents_are_not_taken_for_each_other(folder: Path) -> None:
    asked(folder)
    asked(folder, frame="others")
    first, second = files(folder)
    first.write_bytes(second.read_bytes())
    refused(folder, "changed since it was kept")


def test_postgres_notices_changed_contents(place: Place) -> None:
    if isinstance(place, Path):
        pytest.skip("files are tried above")
    asked(place)
    sql(place, "UPDATE dpframe_ledger.releases SET content = set_byte(content, 99, 7)")
    refused(place, "changed since it was kept")
    sql(place, "DELETE FROM dpframe_ledger.releases")
    refused(place, "the stored result is missing")


class Killed(BaseException):
    """As if the process was killed."""


def killed_before_records(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release of which the content is there, and no record of it."""
    from dpframe.ledger.ledger import Ledger

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "settle", killed)
        with pytest.raises(Killed):
            asked(place)


def test_what_was_written_and_not_recorded_is_finished(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_before_records(place, monkeypatch)
    assert session(place).releases().is_empty()
    found = asked(place)
    assert found.reused
    assert "had ended before it could be handed out" in found.remark
    of = session(place)
    assert of.spent == dp.PureDP(1)
    assert of.history["status"].to_list() == ["released"]
    assert asked(place).frame.equals(found.frame)
    of._payer.ledger.verify()


def test_a_forged_content_is_not_finished(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody recorded is bound to its charge by a seal."""
    monkeypatch.setenv("DPFRAME_LEDGER_KEY", "k" * 32)
    asked(folder, frame="others")
    (other,) = files(folder)
    killed_before_records(folder, monkeypatch)
    (left,) = set(files(folder)) - {other}
    whole = left.read_bytes()
    left.write_bytes(other.read_bytes())
    refused(folder, "not what was released by this charge")
    frame, said = pl.read_parquet(left), pl.read_parquet_metadata(left)
    frame.with_columns(pl.col("n") + 1).write_parquet(left, metadata=said)
    refused(folder, "not what was released by this charge")
    left.write_bytes(whole)
    assert asked(folder).reused


def test_a_failure_is_not_paid_again_in_silence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    with monkeypatch.context() as patched:
        patched.setattr(runner, "_count_parts", lambda *_: 1 / 0)
        with pytest.raises(dp.EngineError):
            asked(folder)
    refused(folder, "it failed")
    assert not asked(folder, repeat=ReusePolicy()).reused
    assert asked(folder).reused


def test_what_cannot_be_kept_is_handed_out_and_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise dp.LedgerError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(FolderContents, "write", full)
        found = asked(folder)
    assert found.frame.height == 2
    assert "NOT kept" in repr(found)
    assert session(folder).history["status"].to_list() == ["released"]
    refused(folder, "could not be kept")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_found_before_the_charge(folder: Path) -> None:
    folder.with_name("budget.db.releases").mkdir(mode=0o500)
    with pytest.raises(dp.LedgerError, match="cannot be kept"):
        asked(folder)
    assert session(folder).spent == dp.PureDP(0)


def test_a_file_in_the_place_of_the_folder_is_found_before_the_charge(folder: Path) -> None:
    folder.with_name("budget.db.releases").write_text("mine")
    with pytest.raises(dp.LedgerError, match="cannot be kept"):
        asked(folder)
    assert session(folder).spent == dp.PureDP(0)


def test_only_the_owner_reads_what_is_kept(folder: Path) -> None:
    asked(folder)
    place = folder.with_name("budget.db.releases")
    assert place.stat().st_mode & 0o777 == 0o700
    (kept,) = files(folder)
    assert kept.stat().st_mode & 0o777 == 0o600


def test_every_type_of_result_is_kept_as_it_is(folder: Path) -> None:
    """Enums, lists, structs, dates and decimals."""
    frame = pl.DataFrame(
        {
            "e": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])),
            "d": [date(2026, 1, 1), date(2026, 1, 2)],
            "x": [1, 2],
        }
    )

    lists = pl.col("x").dp_quantile([0.1, 0.9], candidates=[1, 2]).alias("q")
    mean = pl.col("x").dp_mean((0, 5)).alias("m")

    def ask(outputs: list[pl.Expr], interval: float | None) -> Release:
        of = session(folder)
        private = of.protect(frame, unit=dp.Rows(), name="typed")
        grouped = private.group_by("e", "d", keys=frame.select("e", "d"))
        return grouped.agg(*outputs).release(epsilon="0.5", reuse="same", interval=interval)

    for outputs, interval in (([lists, mean], None), ([mean], 0.9)):  # quantiles have no interval
        first, again = ask(outputs, interval), ask(outputs, interval)
        assert again.reused
        assert again.frame.schema == first.frame.schema
        assert again.frame.equals(first.frame, null_equal=True)


def test_results_with_plans_of_earlier_versions_are_read(folder: Path) -> None:
    """Their documents state the fingerprint that the ledger has, and are read with another one."""
    place = Path(__file__).parents[1] / "kept" / "6a4ac1c" / "plans.jsonl"
    documents = [json.loads(line) for line in place.read_text().splitlines()]
    found = (line["document"] for line in documents)
    document = next(d for d in found if dp.Plan.from_json(json.dumps(d)).fingerprint not in str(d))
    frame = PEOPLE.select("x")
    said = {"fingerprint": document["fingerprint"], "cost": "", "plan": document}
    said |= {"released": "2026-11-22T03:00:00+00:00", "content": digest(frame)}
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={"dpframe": json.dumps(said)})
    keeping = in_memory(dp.PureDP(1)).keeping
    identity = Identity(document["fingerprint"], ("people",), (("x",),))
    begun = Begun(identity, "", "0" * 32)
    content = content_digest([buffer.getvalue()])
    attempt = Attempt(0, datetime.now(UTC), begun, dp.PureDP(1), content)
    assert unpack([buffer.getvalue()], attempt, keeping).frames[0].equals(frame)
    other = replace(begun, identity=replace(identity, fingerprint="0" * 64))
    with pytest.raises(NotKept, match="another plan"):
        unpack([buffer.getvalue()], replace(attempt, begun=other), keeping)


def total(frame: dp.PrivateFrame) -> dp.PrivateQuery:
    return frame.dp_sum("x", (0, 5))


@pytest.mark.parametrize(
    "repeat", [ReusePolicy("same"), ReusePolicy(run="monday")], ids=["same", "run"]
)
def test_results_that_the_edition_before_drew_otherwise_are_found(
    folder: Path, repeat: ReusePolicy
) -> None:
    """A sum alone has staircase noise now, so its plan is another; it is not paid for twice."""
    with as_the_edition_before():
        first = asked(folder, total, repeat=repeat, epsilon=4)
    again = asked(folder, total, repeat=repeat, epsilon=4)
    assert again.reused
    assert again.frame.equals(first.frame)
    assert again.plan.releases[0].mechanism == "discrete_laplace"
    assert session(folder).spent == dp.PureDP(4)
    with pytest.raises(dp.PlanMismatch) if repeat.run else nullcontext():
        assert not asked(folder, total, repeat=repeat, epsilon=5).reused


def test_a_lost_result_of_the_edition_before_may_be_paid_again(folder: Path) -> None:
    """By the same ways as one of today."""
    with as_the_edition_before():
        asked(folder, total, epsilon=4)
    for file in files(folder):
        file.unlink()
    with pytest.raises(dp.LedgerError, match="pay again"):
        asked(folder, total, epsilon=4)
    assert session(folder).spent == dp.PureDP(4)
    anew = asked(folder, total, epsilon=4, repeat=ReusePolicy("same", again=True))
    assert not anew.reused
    assert session(folder).spent == dp.PureDP(8)
    for repeat in (ReusePolicy("same"), ReusePolicy("same", again=True)):
        assert asked(folder, total, epsilon=4, repeat=repeat).frame.equals(anew.frame)
    assert session(folder).spent == dp.PureDP(8)


def test_distribution_functions_answer_ranges_again(folder: Path) -> None:
    def ask() -> Release:
        return people(session(folder)).dp_cdf("x", [1, 2, 3]).release(epsilon=1, reuse="same")

    first, again = ask(), ask()
    assert again.reused
    assert again.between(1, 3) == first.between(1, 3)


def test_ranges_of_the_edition_before_err_as_they_were_drawn(tmp_path: Path) -> None:
    """By its tree, where this version would measure the square root."""

    def ask() -> Release:
        of = dp.Session(rho=1, ledger=str(tmp_path / "rho.db"), keep_releases=True)
        return people(of).dp_cdf("x", range(200)).release(rho="0.1", reuse="same")

    with as_the_edition_before():
        first = ask()
    again = ask()
    assert again.reused
    assert len(again.plan.releases) > 1
    assert again.between(20, 170).error == first.between(20, 170).error
    new = people(dp.Session(rho=1)).dp_cdf("x", range(200)).release(rho="0.1")
    assert len(new.plan.releases) == 1
    assert new.between(20, 170).error != first.between(20, 170).error


def limited(where: Path) -> Releases:
    of = dp.Session(epsilon=100, ledger=str(where), keep_releases=True)
    frame = of.protect(PEOPLE, unit="who", name="people")
    return of.release([frame.dp_sum("x", (0, 5))], epsilon=4, reuse="same")


def test_a_kept_result_is_of_the_limit_under_which_it_was_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever limit the rule of another version would find."""
    first = limited(tmp_path / "b.db")
    assert "dpframe chose" in str(first.remark)
    right = LimitRule.place
    monkeypatch.setattr(LimitRule, "place", lambda rule, counts: right(rule, counts) + 1)
    again = limited(tmp_path / "b.db")
    assert again.reused
    assert str(first.remark) in str(again.remark)


def test_a_kept_result_without_a_limit_on_record_states_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions before recorded none."""
    with monkeypatch.context() as patch:
        patch.setattr(reuse, "Content", lambda *parts: Content(*parts[:4]))
        first = limited(tmp_path / "b.db")
    again = limited(tmp_path / "b.db")
    assert again.reused
    assert again[0].frame.equals(first[0].frame)
    assert "did not record" in again.remark
