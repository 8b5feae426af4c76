"""Operations of one kind on many awkward values at once, on Polars and on another engine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.lower.engines.engine import Engine
from dpframe.rows.fold import lower
from tests.laws.checking import expression, run, same, tree_of
from tests.laws.frames import values, wide_columns

_LETTERS = [
    "a", "b", "aa", "A", "-", "+", "0", "7", "é", "e\u0301", "\u0301", "ß", "İ", "ŉ", "ﬁ", "日本",
    "🙂", "👍🏽", "👨‍👩‍👧", "٣", "$0", "$1", "\\", "'", '"', "%", "_", "{}", ".", "\x00", "\ufeff",
    " ", "\t", "\n", "\r", "\v", "\f", "\x1c", "\x1f", "\x85", "\u00a0", "\u1680", "\u180e",
    "\u2003", "\u2007", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u2060", "\u3000",
]  # fmt: skip
_FOUND = ["a", "aa", "é", "e\u0301", "\u0301", "👍", "$0", "\\", "'", " ", "日本", "\x00", "%"]
TEXT_EXPRESSIONS = [
    *(f"pl.col('s').str.{m}()" for m in ("len_bytes", "len_chars")),
    *(f"pl.col('s').str.{m}({n})" for m in ("head", "tail") for n in (-9, -2, -1, 0, 1, 3, 99)),
    *(f"pl.col('s').str.slice({o}, {n})" for o in (-5, -2, 0, 3) for n in (0, 1, 2, 4, None)),
    *(f"pl.col('s').str.slice({o})" for o in (-(2**40), 2**40)),
    *(
        f"pl.col('s').str.strip_chars{where}({given})"
        for where in ("", "_start", "_end")
        for given in ("", repr("a \u0301"), repr("'\\"), repr("👍"), repr(""))
    ),
    *(f"pl.col('s').str.strip_{end}fix({p!r})" for end in ("pre", "suf") for p in ("", *_FOUND)),
    *(f"pl.col('s').str.{m}({p!r})" for m in ("starts_with", "ends_with") for p in ("", *_FOUND)),
    *(
        f"pl.col('s').str.{m}({p!r}, literal=True)"
        for m in ("contains", "find", "count_matches")
        for p in _FOUND
    ),
    *(
        f"pl.col('s').str.{m}({p!r}, {v!r}, literal=True)"
        for m in ("replace", "replace_all")
        for p in _FOUND
        for v in ("", "$0", "é'\\")
    ),
    *(
        f"pl.col('s').str.pad_{end}({n}, {c!r})"
        for end in ("start", "end")
        for n in (0, 5)
        for c in "é'"
    ),
    *(f"pl.col('s').str.zfill({n})" for n in (0, 1, 4)),
    *(
        f"pl.concat_str('s', 'n', 'o', 'b', separator={between!r}, ignore_nulls={skipped})"
        for between in ("", "-", "'\\")
        for skipped in (False, True)
    ),
]  # fmt: skip


def texts(rows: int = 600) -> pl.DataFrame:
    """Texts of few letters, some of several bytes and code points, and columns beside them."""
    chance = random.Random(18)
    columns: dict[str, list[Any]] = {"row": list(range(rows)), "s": [], "o": [], "n": [], "b": []}
    for i in range(rows):
        letters = _LETTERS if i % 3 else _LETTERS[:12]
        for name in ("s", "o"):
            length = chance.choice([0, 1, 2, 3, 5, 9])
            columns[name].append("".join(chance.choices(letters, k=length)) if i % 17 else None)
        columns["n"].append(chance.choice([0, -1, 2**63 - 1, -(2**63), None]))
        columns["b"].append(chance.choice([True, False, None]))
    schema = {"row": pl.Int64, "s": pl.String, "o": pl.String, "n": pl.Int64, "b": pl.Boolean}
    return pl.DataFrame(columns, schema=schema)


def check_same(engine: Engine, data: Any, frame: pl.DataFrame, expressions: Sequence[str]) -> None:
    """Each gives the same value on each row of an engine's frame as on Polars."""
    columns = wide_columns(frame)
    trees = [tree_of(text, frame.schema) for text in expressions]
    made = [lower(tree, columns, engine.ns).alias(f"x{i}") for i, tree in enumerate(trees)]
    table = engine.collect([engine.frame(data).select(engine.ns.col("row"), *made)])[0].sort("row")
    checked = [expression(e, tree, columns) for e, tree in zip(expressions, trees, strict=True)]
    for i, expected in enumerate(run(frame.sort("row"), checked)):
        found = table[f"x{i}"]
        assert found.dtype == expected.dtype, expressions[i]
        for row, (one, other) in enumerate(zip(values(found), values(expected), strict=True)):
            where = f"{expressions[i]} in row {row}, {frame.row(row)!r}"
            assert same(one, other), f"{where}: {one!r}, and {other!r} on Polars"
