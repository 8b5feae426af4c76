"""The rows that have one of several public keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from dpframe.core.domain import Scalar, columns
from dpframe.core.dtypes import STRING, DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exprs import Change, map_named
from dpframe.core.tree import Call, Literal, Named, Tree
from dpframe.frames.delays import Waits
from dpframe.frames.facts import FrameFacts
from dpframe.frames.refine import refine
from dpframe.frames.step import Step
from dpframe.rows.comparison import Eq
from dpframe.rows.constants import literal_lower, literal_words
from dpframe.rows.fold import domain, lower, outer_words
from dpframe.rows.layouts import unordered
from dpframe.rows.operation import Namespace


@dataclass(frozen=True, slots=True)
class Part(Step):
    """Keep the rows whose values of `by` are `key`; null equals null.

    Guarantee
    ---------
    1-stable, and parts with different keys have no row in common.

    Proof
    -----
    Each row is kept or dropped on its own values. Keys are values of the types of `by`, and are
    compared in them (text as text), so no row equals two keys.

    Parameters
    ----------
    by
        The expressions that identify parts.
    key
        One value for each of them, None for null; a constant where it is that of a parameter, or
        one of the values of a parameter that is a list.
    computed
        Whether a column may have been computed. What Polars then takes for sorted may not be, and
        equality would be decided by looking in the wrong half (docs/decisions/0002).
    waits
        How long after its end the part is released; None for at any time. It states nothing about
        its rows.
    """

    engines = EVERYWHERE

    by: tuple[Named, ...]
    key: tuple[Scalar | Literal, ...]
    computed: bool
    waits: Waits | None = None

    @property
    def values(self) -> tuple[Scalar, ...]:
        """The key, from any source."""
        return tuple(key.value if isinstance(key, Literal) else key for key in self.key)

    def map_exprs(self, change: Change) -> Self:
        return replace(self, by=map_named(self.by, change))

    def facts(self, before: FrameFacts) -> FrameFacts:
        table = dict(before.columns)
        for tree, dtype, value in self.pairs(before):
            if value is not None:
                table = refine(table, Call(Eq(), (tree, Literal(value, dtype))))
        return replace(before, columns=columns(table), complete=False)

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        return frame.filter(*(self._holds(*pair, before, ns) for pair in self.pairs(before)))

    def _holds(
        self, tree: Tree, dtype: DType, value: Scalar, before: FrameFacts, ns: Namespace
    ) -> pl.Expr:
        expression = lower(tree, before.columns, ns)
        if dtype == STRING and domain(tree, before.columns).dtype != STRING:
            expression = expression.cast(ns.String)
        if self.computed:
            expression = unordered(ns, expression)
        if value is None:
            return expression.is_null()
        equal: pl.Expr = expression == literal_lower(Literal(value, dtype), ns)
        return equal

    def pairs(self, before: FrameFacts) -> Iterator[tuple[Tree, DType, Scalar]]:
        """Each expression, the type in which it is compared, and its value."""
        for named, value in zip(self.by, self.values, strict=True):
            yield named.tree, key_type(domain(named.tree, before.columns).dtype), value

    def words(self) -> str:
        waits = () if self.waits is None else (self.waits.words(),)
        return f"part({', '.join([*self._words(), *waits])})"

    def _words(self) -> Iterator[str]:
        for named, key in zip(self.by, self.key, strict=True):
            by = outer_words(named.tree)
            if isinstance(key, Literal) and key.parameter is not None and key.parameter.kind.many:
                yield f"{by} is one of :{key.parameter.name}"
                continue
            # words do not depend on the type
            written = literal_words(key if isinstance(key, Literal) else Literal(key, STRING))
            yield f"{by} is null" if key is None else f"{by} == {written}"

    @property
    def stability(self) -> str:
        return "each row is in one part at most, by its own values"


def key_type(dtype: DType) -> DType:
    """The type in which values are compared with keys; codes of categories depend on the data."""
    return STRING if dtype.is_text else dtype
