"""Limits of rows and groups, against plain Python, and that nobody's rows move anybody else's."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.frames.sampling import comparable
from dpframe.lower import execution
from dpframe.lower.tables import lower_rows
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.polars_dtypes import from_polars
from tests.laws.amounts import examples
from tests.laws.individuals import LIMITS, NAMES, POOLS, STEPS, frame_of, stepped
from tests.laws.layouts import stored
from tests.laws.neighbours import Engine

Row = tuple[Any, ...]
CHOSEN = [text for text in LIMITS if "id" not in text]


def limited(
    steps: Sequence[str], frame: pl.DataFrame, salt: int, engine: Engine = "in-memory"
) -> pl.DataFrame:
    """What steps leave of a frame."""
    private: Any = dp.Session(epsilon=1).protect(frame, "id")
    relation = stepped(steps, private)._relation
    lazy = lower_rows(relation, stored(frame).lazy(), pl, salt)
    return lazy.collect(engine=engine, optimizations=OPTIMIZATIONS)


def plain(frame: pl.DataFrame) -> list[Row]:
    """Rows as values that compare: NaN equal to NaN, minus zero to zero."""
    return [tuple(map(_plain, row)) for row in frame.rows()]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    return value


def hashes(frame: pl.DataFrame, names: Sequence[str], salt: int) -> list[int]:
    """The hash of each row's values of some columns."""
    values = (comparable(pl, n, from_polars(frame.schema[n])) for n in names)
    found: list[int] = frame.select(pl.struct(*values).hash(salt)).to_series().to_list()
    return found


# ------------------------------------------------------------------------------- plain Python


def rows_kept(frame: pl.DataFrame, n: int, by: Sequence[str], salt: int) -> list[Row]:
    """The n rows of each individual and value of `by` whose hashes come first."""
    owned = defaultdict(list)
    names = sorted(frame.columns)
    ranked = zip(hashes(frame, names, salt), frame.rows(named=True), strict=True)
    for (rank, row), values in zip(ranked, plain(frame), strict=True):
        owned[tuple(row[name] for name in ("id", *by))].append((rank, values))
    return [values for rows in owned.values() for _, values in sorted(rows, key=_rank)[:n]]


def _rank(ranked: tuple[int, Any]) -> int:
    return ranked[0]


def groups_kept(frame: pl.DataFrame, n: int, by: Sequence[str], salt: int) -> list[Row]:
    """The rows in each individual's n values of `by` whose hashes come first."""
    text = frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    names = list(dict.fromkeys(("id", *by)))
    pairs = text.select(names).unique()
    renamed = pairs.rename({name: f"key{i}" for i, name in enumerate(names)})
    owned = defaultdict(list)
    for rank, pair in zip(hashes(renamed, renamed.columns, salt), pairs.rows(), strict=True):
        owned[pair[0]].append((rank, pair))
    chosen = {pair for found in owned.values() for _, pair in sorted(found, key=_rank)[:n]}
    there = text.select(names).rows()
    return [row for row, key in zip(plain(frame), there, strict=True) if key in chosen]


def reference(text: str) -> tuple[Callable[..., list[Row]], int, tuple[str, ...]]:
    """Which limit a step is, its number and its columns."""

    class Written:
        def limit_rows(self, n: int, by: Any = ()) -> Any:
            return rows_kept, n, (by,) if isinstance(by, str) else tuple(by)

        def limit_groups(self, n: int, by: Any) -> Any:
            return groups_kept, n, (by,) if isinstance(by, str) else tuple(by)

    found: tuple[Callable[..., list[Row]], int, tuple[str, ...]] = eval(text, {"f": Written()})
    return found


@st.composite
def tables(draw: st.DrawFn) -> pl.DataFrame:
    cells = st.fixed_dictionaries(
        {"id": st.sampled_from([1, 1, 1, 2, 3])}
        | {name: st.sampled_from(pool) for name, pool in POOLS.items()}
    )
    rows = draw(st.lists(cells, max_size=12))
    again = [rows[i] for i in draw(st.lists(st.integers(0, 11), max_size=8)) if i < len(rows)]
    return frame_of(rows + again)


@examples(30, 240)
@given(st.sampled_from(CHOSEN), tables(), st.integers(0, 2**64 - 1))
def test_a_limit_keeps_what_hashes_say(text: str, frame: pl.DataFrame, salt: int) -> None:
    expected, n, by = reference(text)
    kept = limited([text], frame, salt)
    assert Counter(plain(kept)) == Counter(expected(frame, n, by, salt))
    assert kept.schema == frame.schema


@examples(30, 240)
@given(st.sampled_from(CHOSEN), tables(), st.integers(0, 2**64 - 1))
def test_a_limit_keeps_as_many_as_it_may(text: str, frame: pl.DataFrame, salt: int) -> None:
    """Never more than n, and fewer only where there are fewer."""
    expected, n, by = reference(text)
    kept = limited([text], frame, salt)
    if expected is rows_kept:
        there = Counter(frame.select("id", *by).rows())
        left = Counter(kept.select("id", *by).rows())
        assert left == Counter({key: min(n, rows) for key, rows in there.items()})
    else:
        there = Counter(row[0] for row in frame.select("id", *by).unique().rows())
        left = Counter(row[0] for row in kept.select("id", *by).unique().rows())
        assert left == Counter({key: min(n, groups) for key, groups in there.items()})
        keys, remaining = frame.select("id", *by).rows(), Counter(kept.select("id", *by).rows())
        assert all(remaining[key] in (0, rows) for key, rows in Counter(keys).items())


def test_nobodys_rows_are_dropped() -> None:
    frame = frame_of([{"id": None, "x": 1}, {"id": 1, "x": 1}, {"id": None, "x": 2}])
    assert limited([], frame, 0)["id"].to_list() == [1]
    assert limited(["f.limit_rows(5)"], frame, 0)["id"].to_list() == [1]
    assert limited(['f.limit_groups(5, by="g")'], frame, 0)["id"].to_list() == [1]


def test_a_null_is_a_group_like_others() -> None:
    frame = frame_of([{"id": 1, "g": g, "x": x} for g in ("a", None) for x in range(4)])
    seen = set()
    for salt in range(20):
        kept = limited(['f.limit_groups(1, by="g")'], frame, salt)
        assert kept["g"].n_unique() == 1
        assert kept.height == 4
        seen.add(kept["g"][0])
    assert seen == {"a", None}
    by_group = limited(['f.limit_rows(1, by="g")'], frame, 0)
    assert sorted(by_group["g"].to_list(), key=str) == [None, "a"]


def test_equal_rows_count_each() -> None:
    frame = frame_of([{"id": 1, "g": "a", "x": 1}] * 9)
    for n in (1, 4, 9, 20):
        assert limited([f"f.limit_rows({n})"], frame, 0).height == min(n, 9)
        assert limited([f'f.limit_rows({n}, by="g")'], frame, 0).height == min(n, 9)
        assert limited([f'f.limit_groups({n}, by="g")'], frame, 0).height == 9


def test_another_salt_keeps_other_rows() -> None:
    """Each of ten rows has its turn, about as often as others, and for each of ten people."""
    frame = frame_of([{"id": who, "x": x} for who in range(10) for x in range(10)])
    kept = pl.concat([limited(["f.limit_rows(1)"], frame, salt) for salt in range(60)])
    assert kept["id"].value_counts()["count"].to_list() == [60] * 10
    assert kept.group_by("id").agg(pl.col("x").n_unique())["x"].min() > 8
    counts = Counter(kept["x"].to_list())
    assert sorted(counts) == list(range(10))
    assert min(counts.values()) > 30
    assert max(counts.values()) < 100


def test_each_release_has_its_own_salt(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    true = execution.fresh_salt

    def noted() -> int:
        drawn.append(true())
        return drawn[-1]

    monkeypatch.setattr(execution, "fresh_salt", noted)
    frame = frame_of([{"id": 1, "x": 1}])
    private = dp.Session(epsilon=10).protect(frame, "id").limit_rows(1)
    for _ in range(3):
        private.dp_count().collect(epsilon=1)
    assert len(set(drawn)) == 3
    assert all(0 <= salt < 2**64 for salt in drawn)


# ----------------------------------------------------------------------------- neighbours, exactly

CHAIN = ['f.limit_groups(3, by=["g", "h"])', 'f.limit_rows(2, by="g")', "f.limit_rows(4)"]


def individuals_stay(frame: pl.DataFrame, steps: Sequence[str], salt: int, who: int) -> None:
    """Without one individual, just that individual's rows are gone."""
    whole = limited(steps, frame, salt)
    rest = limited(steps, frame.filter(pl.col("id") != who), salt)
    others = whole.filter(pl.col(whole.columns[_identifier(steps, frame)]) != who)
    assert Counter(plain(rest)) == Counter(plain(others))


def _identifier(steps: Sequence[str], frame: pl.DataFrame) -> int:
    private: Any = dp.Session(epsilon=1).protect(frame, "id")
    facts = stepped(steps, private)._relation.facts
    return list(facts.columns).index(facts.identifier)


@examples(30, 240)
@given(
    st.lists(st.sampled_from(CHOSEN), min_size=1, max_size=3),
    st.sampled_from([None, *(s for s in STEPS if "Enum" not in s)]),
    tables(),
    st.integers(0, 2**64 - 1),
)
def test_the_rows_of_others_stay(
    limits: list[str], step: str | None, frame: pl.DataFrame, salt: int
) -> None:
    steps = limits
    if step is not None:
        try:
            stepped([step, *limits])
        except dp.DPFrameError:
            return
        steps = [step, *limits]
    individuals_stay(frame, steps, salt, who=1)


N = 100_000


@pytest.fixture(scope="module")
def crowd() -> pl.DataFrame:
    """100,000 individuals with some 300,000 rows, and one of them with 5,000."""
    rng = np.random.default_rng(5)
    ids = np.concatenate([np.arange(3 * N) % N, np.full(5_000, 17)])
    size = ids.size
    texts = np.array(["a", "b", "c", "d", None], dtype=object)
    floats = np.array([0.0, -0.0, 1.5, np.nan, -7.25])
    return pl.DataFrame(
        {
            "id": ids,
            "g": pl.Series(texts[rng.integers(0, 5, size)].tolist(), dtype=pl.String),
            "h": rng.integers(0, 3, size),
            "x": rng.integers(-5, 5, size),
            "y": floats[rng.integers(0, 5, size)],
        }
    )


def ordered(frame: pl.DataFrame) -> pl.DataFrame:
    """The same rows in one order, zeros without a sign."""
    text = frame.with_columns(
        pl.col(pl.Categorical, pl.Enum).cast(pl.String), pl.col("y").replace(-0.0, 0.0)
    )
    return text.sort(text.columns)


@pytest.fixture(scope="module")
def kept_by(crowd: pl.DataFrame) -> Callable[[Engine], pl.DataFrame]:
    """What an engine keeps of the crowd."""
    return cache(lambda engine: limited(CHAIN, crowd, 77, engine))


@pytest.mark.parametrize("who", [17, 0, 99_999])
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_one_of_many_moves_no_row_of_others(
    crowd: pl.DataFrame,
    kept_by: Callable[[Engine], pl.DataFrame],
    who: int,
    engine: Engine,
) -> None:
    whole = kept_by(engine)
    rest = limited(CHAIN, crowd.filter(pl.col("id") != who), 77, engine)
    assert ordered(rest).equals(ordered(whole.filter(pl.col("id") != who)))
    assert 0 < whole.filter(pl.col("id") == who).height <= 4
    assert whole.height < crowd.height


@pytest.fixture(scope="module")
def kept_of_crowd(crowd: pl.DataFrame) -> pl.DataFrame:
    return ordered(limited(CHAIN, crowd, 3))


def _shuffled(crowd: pl.DataFrame) -> pl.DataFrame:
    return crowd[np.random.default_rng(6).permutation(crowd.height)]


def _in_chunks(crowd: pl.DataFrame) -> pl.DataFrame:
    shuffled, cut = _shuffled(crowd), crowd.height // 3
    return pl.concat([shuffled[:1], shuffled[1:cut], shuffled[cut:]], rechunk=False)


def _with_groups_of(crowd: pl.DataFrame, dtype: Any) -> pl.DataFrame:
    return _shuffled(crowd).with_columns(pl.col("g").cast(dtype))


FORMS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "reversed": lambda crowd: crowd.reverse(),
    "shuffled": _shuffled,
    "chunks": _in_chunks,
    "sorted by id": lambda crowd: crowd.sort("id"),
    "sorted by group": lambda crowd: crowd.sort("g", nulls_last=True),
    "sorted downwards": lambda crowd: crowd.sort("h", descending=True),
    "categorical": lambda crowd: _with_groups_of(crowd, pl.Categorical),
    "enum": lambda crowd: _with_groups_of(crowd, pl.Enum(["d", "a", "c", "b"])),
}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_kept_does_not_depend_on_form(
    crowd: pl.DataFrame, kept_of_crowd: pl.DataFrame, form: str, engine: Engine
) -> None:
    kept = limited(CHAIN, FORMS[form](crowd), 3, engine)
    assert ordered(kept).equals(kept_of_crowd)


def test_limits_hold_in_a_crowd(crowd: pl.DataFrame) -> None:
    kept = limited(CHAIN, crowd, 5)
    rows = kept.group_by("id").agg(pl.len(), pl.struct("g", "h").n_unique().alias("groups"))
    assert rows["len"].max() == 4
    assert rows["groups"].max() == 3
    assert kept.group_by("id", "g").len()["len"].max() == 2
    assert rows.height == crowd["id"].n_unique()  # nobody is left out


# ------------------------------------------------------------------------------ identifiers

IDENTIFIERS: dict[str, list[Any]] = {
    "Int8": [1, 2, 3],
    "Int128": [2**64 + 1, -(2**100), 1],
    "UInt64": [2**64 - 1, 0, 2**63],
    "String": ["a", "", "a\x00"],
    "Categorical": ["z", "a", ""],
    "Binary": [b"", b"\x00", b"a"],
    "Boolean": [True, False, True],
    "Date": [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31)],
    "Datetime": [datetime(2020, 1, 1), datetime(1969, 1, 1), datetime(1, 1, 1)],
    "Duration": [timedelta(0), timedelta(days=-1), timedelta(microseconds=1)],
    "Time": [time(0), time(23, 59, 59, 999999), time(12)],
}
TYPES: dict[str, Any] = {name: getattr(pl, name) for name in IDENTIFIERS}
TYPES |= {"Decimal": pl.Decimal(20, 2), "Enum": pl.Enum(["q", "p", "r"]), "Null": pl.Null}
IDENTIFIERS |= {
    "Decimal": [Decimal("1.10"), Decimal("-1.10"), Decimal("184467440737095517.26")],
    "Enum": ["p", "q", "r"],
    "Null": [None, None, None],
}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("name", TYPES)
def test_any_identifier_and_any_column(name: str, engine: Engine) -> None:
    """Of any type that can be told apart: as the identifier, as `by`, and as a value."""
    who = pl.Series("id", [*IDENTIFIERS[name] * 4, None], dtype=TYPES[name])
    frame = pl.DataFrame({"id": who, "v": who.reverse(), "x": [*range(12), 0]})
    there = frame.filter(pl.col("id").is_not_null())
    distinct = len(set(there["id"].to_list()))
    chain = ["f.limit_rows(2)", 'f.limit_groups(1, by="v")', 'f.limit_rows(1, by="v")']
    for steps, most in ((chain[:1], 2), (chain, 1), (['f.limit_groups(1, by="id")'], 12)):
        kept = limited(steps, frame, 9, engine)
        assert kept.schema == frame.schema
        if distinct:
            assert kept["id"].null_count() == 0
            sizes = Counter(kept["id"].to_list())  # in Python, which is not under test
            assert len(sizes) == distinct
            assert max(sizes.values()) <= most
        for height in (0, 1):
            assert limited(steps, frame[:height], 9, engine).height == (height and distinct > 0)


@pytest.mark.parametrize(
    "dtype", [pl.Float64, pl.Float32, pl.List(pl.Int8), pl.Struct({"a": pl.Int8})]
)
def test_what_cannot_be_told_apart_is_no_identifier(dtype: Any) -> None:
    schema = {"id": dtype, "x": pl.Int64, "ok": pl.Int64}
    session = dp.Session(epsilon=1)
    with pytest.raises(dp.UnsupportedOperation, match="do not identify"):
        session.protect(pl.LazyFrame(schema=schema), "id")
    with pytest.raises(dp.UnsupportedOperation, match=r"'id' of type .* cannot make groups"):
        session.protect(pl.LazyFrame(schema=schema), "ok").limit_groups(1, by="id")


def test_names_of_ours_are_free_to_use() -> None:
    """Columns may have any name, also those that lowering would give."""
    names = ["hash", "rank", "key0", "key1", "key0_", "hash_", "unit", "g0", "cell", "r0", "v0"]
    names += ["__g0", "__cell", "__unit", "value", "len", "k", ""]
    rows = [{"id": i % 3, **{n: j + i for j, n in enumerate(names)}} for i in range(30)]
    frame = pl.DataFrame(rows)
    kept = limited(["f.limit_rows(4)"], frame, 1)
    assert kept.height == 12
    for name in names:
        steps = [f"f.limit_groups(2, by={name!r})", f"f.limit_rows(1, by={name!r})"]
        expected = groups_kept(frame, 2, (name,), 1)
        assert Counter(plain(limited(steps[:1], frame, 1))) == Counter(expected)
        private: Any = eval(".".join(["p", *(s[2:] for s in steps)]), {**NAMES, "p": _loud(frame)})
        values = frame[name].unique().to_list()
        query = private.group_by(name, keys=values).agg(
            pl.col(name).dp_sum((0, 50), per="unit").alias("total"),
            dp.count().alias("n"),
            pl.col("id").dp_n_unique().alias("who"),
        )
        result = query.collect(epsilon=10**9)
        assert result["n"].sum() == result["who"].sum() == 6


def _loud(frame: pl.DataFrame) -> Any:
    return dp.Session(epsilon=10**10).protect(frame, "id")


@examples(30, 240)
@given(tables(), st.integers(1, 4), st.integers(0, 2**64 - 1))
def test_the_first_rows_are_kept(frame: pl.DataFrame, n: int, salt: int) -> None:
    """Of each individual those with the least values, nulls last, whatever the hashes are."""
    kept = limited([f'f.limit_rows({n}, order_by="x")'], frame, salt)
    for key, mine in groups_of(frame).items():
        assert sorted(groups_of(kept)[key], key=last_if_null) == sorted(mine, key=last_if_null)[:n]


@examples(30, 240)
@given(tables(), st.integers(1, 4), st.integers(0, 2**64 - 1))
def test_the_first_groups_are_kept(frame: pl.DataFrame, n: int, salt: int) -> None:
    kept = limited([f'f.limit_groups({n}, by="x", order_by="x")'], frame, salt)
    for key, mine in groups_of(frame).items():
        first = sorted(set(mine), key=last_if_null)[:n]
        assert Counter(groups_of(kept)[key]) == Counter(x for x in mine if x in first)


def groups_of(frame: pl.DataFrame) -> dict[Any, list[Any]]:
    """The values of each individual."""
    found: dict[Any, list[Any]] = {}
    for key, x in frame.select("id", "x").rows():
        found.setdefault(key, []).append(x)
    return found


def last_if_null(x: Any) -> tuple[bool, Any]:
    return x is None, 0 if x is None else x


def test_what_rows_are_ordered_by() -> None:
    frame = dp.Session(epsilon=1).protect(frame_of([{"id": 1, "x": 1}]), unit="id")
    with pytest.raises(dp.UnknownColumn, match="no column 'nothing'"):
        frame.limit_rows(1, order_by="nothing")
    with pytest.raises(dp.UnsupportedOperation, match="not ordered by values of type String"):
        frame.limit_rows(1, order_by="g")
    with pytest.raises(dp.UnsupportedOperation, match="is not one of the columns of by="):
        frame.limit_groups(1, by="g", order_by="x")
