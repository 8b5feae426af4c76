"""Random expressions, and whether they keep the rule: equal values, equal results.

What an expression gives for a row is what it gives for a frame of that row alone. On every frame
that holds the row, however its columns are stored, it must give the same to the last bit; only the
sign of a zero may differ. Results are compared as they are, so the smallest difference is seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import polars as pl

from dpframe.core.dtypes import Columns
from dpframe.core.tree import Tree, column_names, substitute
from dpframe.errors import DPFrameError
from dpframe.rows.failures import OPTIMIZATIONS
from dpframe.rows.fold import domain, lower, words
from tests.laws.checking import tree_of
from tests.laws.frames import SCHEMA, nasty_frame, series, values, wide_columns
from tests.laws.layouts import stored
from tests.laws.trees import LEAVES, TEMPLATES, kind

_LONGEST = 400
"""Of an expression in words; longer ones take Polars before 1.37 too long."""
BATCH = 40


def ordinary(rng: random.Random, height: int = 40) -> pl.DataFrame:
    """Everyday values, many of them equal, among which rounding is seen: of awkward ones most
    results are null or infinite.
    """
    real = [round(rng.uniform(-50, 200), rng.choice([0, 1, 2])) for _ in range(9)]
    whole = [*(rng.randint(0, 100) for _ in range(6)), 0, 1, 7, 49]
    day = 19_000
    moments = [(day + n) * 86_400_000_000 + n for n in whole]
    drawn: list[tuple[str, Sequence[Any]]] = [
        ("f32 f64 f64b", [*real, 49.0, 0.1, 3.0, 7.0]),
        ("i8 i32 i64 i64b u8 u32 u64", whole),
        ("d", [day + n for n in whole]),
        ("dt dtb dtz", moments),
        ("dtms", [moment // 1000 for moment in moments]),
        ("dur durb", [n * 3_600_000_000 for n in whole]),
        ("t", [n * 3 * 10**11 for n in whole]),
    ]
    pools = {name: pool for names, pool in drawn for name in names.split()}
    plain = nasty_frame(61)
    made = []
    for name in SCHEMA:
        picked = [rng.randrange(61) for _ in range(height)]
        everyday = name in pools
        some = [rng.choice([*pools[name], None]) for _ in picked] if everyday else []
        made.append(series(name, some) if everyday else plain[name].gather(picked))
    return pl.DataFrame(made)


@dataclass(frozen=True)
class Held:
    """Rows, each of them alone, and the same rows stored in several ways."""

    rows: pl.DataFrame
    ways: Mapping[str, pl.DataFrame]


def held(rng: random.Random, pool: pl.DataFrame, height: int, ways: int = 2) -> Held:
    """Rows in which columns are constant or not, each by itself."""
    constant = rng.choice([0.3, 0.5, 0.7])
    columns = []
    for column in pool.iter_columns():
        one = rng.random() < constant
        first = rng.randrange(pool.height)
        picked = [first if one else rng.randrange(pool.height) for _ in range(height)]
        columns.append(column.gather(picked))
    rows = pl.DataFrame(columns)
    seeds = [rng.randrange(2**32) for _ in range(ways)]
    return Held(rows, {"plain": rows, **{f"seed {s}": stored(rows, s) for s in seeds}})


@dataclass
class Law:
    """Checks expressions in batches, and counts them.

    Parameters
    ----------
    columns
        What is known of the columns of all frames.
    frames
        The frames to check on.
    """

    columns: Columns
    frames: Sequence[Held]
    lowering: Callable[[Tree, Columns], pl.Expr] = lower
    expressions: int = 0
    results: int = 0
    broken: list[str] = field(default_factory=list)

    def check(self, trees: Sequence[Tree], frames: int | None = None, at: int = 0) -> None:
        """All trees on some of the frames, from the given one on."""
        made = [self.lowering(tree, self.columns).alias(f"r{i}") for i, tree in enumerate(trees)]
        chosen = len(self.frames) if frames is None else frames
        for i in range(chosen):
            self._check_on(self.frames[(at + i) % len(self.frames)], trees, made)
        self.expressions += len(trees)

    def _check_on(self, on: Held, trees: Sequence[Tree], made: Sequence[pl.Expr]) -> None:
        alone = pl.concat(_run(on.rows.slice(i, 1), made, "auto") for i in range(on.rows.height))
        for way, frame in on.ways.items():
            for engine in ("in-memory", "streaming"):
                found = _run(frame, made, engine)
                self.results += found.height * found.width
                for tree, one, other in zip(
                    trees, alone.iter_columns(), found.iter_columns(), strict=True
                ):
                    if one.dtype != other.dtype or not one.equals(other, null_equal=True):
                        self.broken.append(
                            f"{words(tree)} gives {values(other)} {engine}, stored by {way}, and "
                            f"row by row {values(one)}"
                        )

    def verdict(self) -> None:
        """Fail if any expression broke the rule."""
        assert not self.broken, f"{len(self.broken)} of {self.results}: {self.broken[:5]}"


def _run(frame: pl.DataFrame, made: Sequence[pl.Expr], engine: Any) -> pl.DataFrame:
    names = [e.meta.output_name() for e in made]
    lazy = frame.lazy().with_columns(made).select(names)
    return lazy.collect(engine=engine, optimizations=OPTIMIZATIONS)


def fitting(trees: Iterator[Tree], columns: Columns) -> Iterator[Tree]:
    """Those that inference accepts and that are not too long."""
    for tree in trees:
        try:
            domain(tree, columns)
            lower(tree, columns)
        except DPFrameError:  # also where an operand must not be constant
            continue
        if len(words(tree)) <= _LONGEST:
            yield tree


def grown(rng: random.Random, depth: int) -> Iterator[Tree]:
    """Random nested expressions without end."""
    kinds = sorted(TEMPLATES)
    types = wide_columns(nasty_frame(0))

    def tree(of: str, left: int) -> Tree:
        known = TEMPLATES.get(of) if left else LEAVES.get(of)
        template = rng.choice(known or TEMPLATES.get(of) or LEAVES[of])
        if not left:
            return template
        return substitute(
            template,
            {
                name: tree(kind(types[name].dtype), left - 1)
                for name in sorted(column_names(template))
                if rng.random() < 0.5
            },
        )

    while True:
        yield tree(rng.choice(kinds), depth)


BINARY = [
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} // {b}", "{a} % {b}", "{a} ** {b}",
    "{a} == {b}", "{a} < {b}", "{a} >= {b}", "{a}.eq_missing({b})", "{a}.ne_missing({b})",
    "{a} & {b}", "{a} | {b}", "{a} ^ {b}", "{a}.fill_null({b})", "pl.coalesce({a}, {b})",
    "pl.min_horizontal({a}, {b})", "pl.max_horizontal({a}, {b})", "pl.sum_horizontal({a}, {b})",
    "pl.mean_horizontal({a}, {b})", "pl.mean_horizontal({a}, {b}, ignore_nulls=False)",
    "{a}.is_between({b}, {a})", "pl.when(pl.col('b')).then({a}).otherwise({b})",
    "pl.concat_str({a}, {b})", "{a}.list.contains({b})", "pl.struct(x={a}, y={b})",
    "{a}.is_between({a}, {b}, closed='none')", "{a}.clip({b}, {b})",
]  # fmt: skip
"""Operations of two columns, of which each is tried on all pairs of types."""


WIDE: dict[str, Any] = {
    **SCHEMA,
    "i16": pl.Int16(),
    "u16": pl.UInt16(),
    "i128": pl.Int128(),
    "cat": pl.Categorical(),
    "dtns": pl.Datetime("ns"),
    "dtzb": pl.Datetime("ms", "America/New_York"),
    "durms": pl.Duration("ms"),
    "null": pl.Null(),
}
"""All types that columns have, for operations of two columns."""
_MADE_OF = {"i16": "i8", "u16": "u8", "i128": "i64", "dtns": "dt", "durms": "dur", "null": "b"}


def widened(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of `WIDE`, made of those of `SCHEMA`."""
    known = [pl.col(old).cast(WIDE[new], strict=False).alias(new) for new, old in _MADE_OF.items()]
    zoned = pl.col("dtms").dt.replace_time_zone("UTC").dt.convert_time_zone("America/New_York")
    text = pl.col("s").cast(pl.Categorical).alias("cat")
    return frame.with_columns(*known, zoned.alias("dtzb"), text).select(*WIDE)


def pairs(written: Iterator[tuple[str, str, str]], columns: Columns) -> Iterator[Tree]:
    """Operations of two columns, where they take their types."""
    for text, a, b in written:
        try:
            tree = tree_of(text.format(a=f"pl.col('{a}')", b=f"pl.col('{b}')"), WIDE)
        except DPFrameError:
            continue
        yield from fitting(iter([tree]), columns)


def batches(trees: Iterator[Tree], number: int) -> Iterator[list[Tree]]:
    """So many trees, some at a time."""
    left = number
    while left > 0:
        batch = list(islice(trees, min(BATCH, left)))
        if not batch:
            return
        left -= len(batch)
        yield batch
