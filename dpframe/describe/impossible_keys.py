"""Listed keys that no row can have, by types or by what is known of expressions."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Iterator
from typing import Final

import polars as pl

from dpframe.aggregates.query import Query
from dpframe.aggregates.values import show_value
from dpframe.core.domain import Columns, Domain
from dpframe.core.exact import as_given
from dpframe.core.interval import EVERYTHING
from dpframe.core.tree import Call, Column, Named, Tree
from dpframe.errors import DPFrameError
from dpframe.rows.failures import FAILURES
from dpframe.rows.fold import domain, lower, words

_TWICE: Final = frozenset(
    ["dt_truncate", "dt_month_start", "dt_month_end", "str_to_lowercase", "str_to_uppercase"]
)
"""Operations that leave their own results unchanged: a key that they change cannot be one of
their results."""
_FEW: Final = 32
"""If there are at most this many possible values, the unlisted ones are named."""
_SHOWN: Final = 5


def impossible_keys(query: Query) -> Iterator[str]:
    """Sentences about listed keys that cannot occur. They follow from what the query says and from
    types alone.
    """
    groups = query.groups
    if groups is None or groups.discovered:
        return
    for named, listed in zip(groups.by, groups.keys.get_columns(), strict=True):
        columns = query.relation.facts.columns
        known = domain(named.tree, columns)
        tests = (_within(listed, known), _unchanged(listed, named.tree, known, columns))
        possible = _all(tests)
        # Keys may be millions: they are compared one by one only where a test leaves some out.
        if possible is not None and not possible.all():
            wrong = listed.filter(~possible).unique(maintain_order=True)
            yield _sentence(named, wrong, listed.drop_nulls().unique(), known)


def _all(tests: Iterable[pl.Series | None]) -> pl.Series | None:
    """The values that pass all tests; a null passes."""
    masks = [test.fill_null(value=True) for test in tests if test is not None]
    return functools.reduce(operator.and_, masks) if masks else None


def _within(values: pl.Series, known: Domain) -> pl.Series | None:
    """Which are among the values, or in the interval, that the expression is known to have. Nulls
    count as possible; nothing where every value is.
    """
    if known.categories is not None:
        listed = {*known.categories, None}
        return pl.Series([value in listed for value in values.to_list()], dtype=pl.Boolean)
    if known.interval == EVERYTHING or not (known.dtype.is_integer or known.dtype.is_temporal):
        return None
    numbers, ends = values.to_physical(), known.interval
    above = None if ends.lo is None else numbers >= math.ceil(ends.lo)
    below = None if ends.hi is None else numbers <= math.floor(ends.hi)
    return _all((above, below))


def _unchanged(values: pl.Series, tree: Tree, known: Domain, columns: Columns) -> pl.Series | None:
    """Which keys the outermost operation leaves as they are, if it does so with its own results."""
    if not isinstance(tree, Call) or tree.operation.name not in _TWICE or len(tree.args) != 1:
        return None
    if domain(tree.args[0], columns).dtype != known.dtype:
        return None
    again = Call(tree.operation, (Column("key"),))
    try:
        made = values.alias("key").to_frame().select(lower(again, {"key": known}).alias("key"))
        return (made.to_series() == values).fill_null(value=True)
    except (DPFrameError, *FAILURES):  # a sentence is not worth a refusal
        return None


def _sentence(named: Named, wrong: pl.Series, values: pl.Series, known: Domain) -> str:
    shown = ", ".join(as_given(value) for value in wrong.head(_SHOWN).to_list())
    more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    said = f"no row can have the listed {'key' if len(wrong) == 1 else 'keys'} {shown}{more} of "
    said += f"{named.name!r}"
    bounds = known.bounds
    if known.categories is not None:
        said += f": the values of {words(named.tree)} are listed otherwise"
    elif bounds is not None and (inside := _within(wrong, known)) is not None and not inside.all():
        ends = (show_value(end, known.dtype) for end in bounds)
        said += f": {words(named.tree)} lies in [{', '.join(ends)}]"
    else:
        said += f": {words(named.tree)} gives other values"
    if bounds is not None and known.dtype.is_integer and bounds[1] - bounds[0] < _FEW:
        every = range(int(bounds[0]), int(bounds[1]) + 1)
        if missing := [str(n) for n in every if n not in values]:
            said += f", and {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not listed"
    return said
