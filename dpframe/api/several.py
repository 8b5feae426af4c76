"""Several queries at once: one plan, one charge."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpframe.aggregates.aggregate import Query
from dpframe.api.auto_limits import Limits, require_amount, require_limits, search_of_several
from dpframe.api.payer import Payer
from dpframe.api.query import (
    PrivateQuery,
    owner_of,
    parts,
    query_or_unlimited,
    searched,
    source_of,
)
from dpframe.api.source import Source, Sources
from dpframe.api.spend import Spend
from dpframe.api.unlimited import Unlimited
from dpframe.core.exact import Number, as_given, exact
from dpframe.errors import InvalidBudget, UnsupportedOperation
from dpframe.infer import Queries

_WHERE = "session.collect([...])"
_MOST = 1000


def require_query(query: object) -> None:
    """Refuse what is no query.

    Raises
    ------
    UnsupportedOperation
        When it is not a private query.
    """
    if not isinstance(query, PrivateQuery):
        raise UnsupportedOperation(
            f"a session runs private queries, not a {type(query).__name__}",
            remedy="write frame.agg(...) or frame.dp_count(); for several queries a list of them",
        )


def asked_at_once(
    given: Sequence[PrivateQuery],
    weights: Sequence[Number] | None,
    limits: Limits,
    spend: Spend,
    payer: Payer,
) -> tuple[Queries, list[Source | Sources], Payer]:
    """The queries of a list, where their data are, and who pays for them; before them the search
    for the limit that some lack.

    Raises
    ------
    UnsupportedOperation
        When the list is empty, or holds what is no query; when several lack a limit and are of
        different frames.
    UnboundedSensitivity
        With `limits` None, when one lacks a limit.
    InvalidBudget
        When they are not paid for by one budget, or weights make no sense.
    """
    require_limits(limits)
    if not isinstance(given, (list, tuple)):
        require_query(given)  # which refuses it
    _require_queries(given)
    asked = [query_or_unlimited(query, limits) for query in given]
    payers = [payer.responsible_for(owner_of(query)) for query in given]
    if any(other is not payers[0] for other in payers):
        raise InvalidBudget(
            "the queries are of different parts of a divided frame, and each part has "
            "its own budget",
            where=_WHERE,
            remedy=(
                "collect the queries of each part separately",
                "group the whole frame instead of dividing it",
            ),
        )
    shares, sources = _shares(weights, len(given)), [source_of(query) for query in given]
    full = [one for one in asked if isinstance(one, Query)]
    if len(full) == len(asked):
        return Queries(tuple(full), shares), sources, payers[0]
    require_amount(spend)
    lacking = next(number for number, one in enumerate(asked) if isinstance(one, Unlimited))
    search = search_of_several(asked, shares)
    return Queries.searching(search), [sources[lacking], *sources], payers[0]


def asked_alone(
    query: PrivateQuery, limits: Limits, spend: Spend, payer: Payer
) -> tuple[Query | Queries, Source | Sources, Payer]:
    """One query, or the search for the limit that it lacks and the query; where its data are, and
    who pays for it.

    Raises
    ------
    UnboundedSensitivity
        With `limits` None, when it lacks a limit.
    """
    asked, source, owner = searched(query, limits, spend)
    return asked, source, payer.responsible_for(owner)


def asked_in_full(query: PrivateQuery, payer: Payer) -> tuple[Query, Source | Sources, Payer]:
    """One query that lacks no limit, where its data are, and who pays for it.

    Raises
    ------
    UnsupportedOperation
        When it is no query.
    UnboundedSensitivity
        When it lacks a limit.
    """
    require_query(query)
    asked, source, owner = parts(query)
    return asked, source, payer.responsible_for(owner)


def refuse_weights(weights: object) -> None:
    """Refuse the shares of several queries where there is one.

    Raises
    ------
    InvalidBudget
        When there are any.
    """
    if weights is not None:
        raise InvalidBudget(
            "weights= are shares of several queries, and this is one query",
            where="weights=...",
            remedy=(
                "give a list of queries",
                "write weight= in dp expressions, for the outputs of one query",
            ),
        )


def _require_queries(given: Sequence[object]) -> None:
    if not given:
        raise UnsupportedOperation(
            "the list of queries is empty",
            where=_WHERE,
            remedy="write for example [people.dp_count()]",
        )
    if len(given) > _MOST:
        raise UnsupportedOperation(
            f"{len(given)} queries are too many: one plan has at most {_MOST}",
            where=_WHERE,
            remedy=("write several outputs in one query", "group by a column"),
        )
    for number, query in enumerate(given, start=1):
        if isinstance(query, (list, tuple)):
            raise UnsupportedOperation(
                f"query {number} is a list: lists of queries are not nested",
                where=_WHERE,
                remedy="write all queries in one list",
            )
        require_query(query)


def _shares(weights: Sequence[Number] | None, queries: int) -> tuple[Fraction, ...] | None:
    if weights is None:
        return None
    if not isinstance(weights, (list, tuple)) or len(weights) != queries:
        raise InvalidBudget(
            f"there is one weight for each of the {queries} queries, not {as_given(weights)}",
            where="weights=...",
            remedy=f"write for example weights={[1] * queries}",
        )
    return tuple(_share(weight) for weight in weights)


def _share(weight: Number) -> Fraction:
    try:
        found = exact(weight)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        found = Fraction(0)
    if found <= 0:
        raise InvalidBudget(
            f"the weight of a query is a number above 0, not {as_given(weight)}",
            where="weights=...",
            remedy="write for example weights=[2, 1], which lets the first query cost twice "
            "as much",
        )
    return found
