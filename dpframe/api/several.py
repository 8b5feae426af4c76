"""Several queries that are asked at once: one plan, one charge."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpframe.aggregates.query import Query
from dpframe.api.auto_limits import Limits, require_limits
from dpframe.api.payer import Payer
from dpframe.api.query import PrivateQuery, parts, searched
from dpframe.api.source import Source, Sources
from dpframe.api.spend import Spend
from dpframe.core.exact import Number, as_given, exact
from dpframe.errors import InvalidBudget, UnsupportedOperation
from dpframe.infer import Queries

_WHERE = "session.collect([...])"
_MOST = 1000


def owned(query: object) -> tuple[Query, Source | Sources, Payer | None]:
    """What a session needs of a query.

    Raises
    ------
    UnsupportedOperation
        When it is none.
    """
    if not isinstance(query, PrivateQuery):
        raise UnsupportedOperation(
            f"a session runs private queries, not a {type(query).__name__}",
            remedy="make one with frame.agg(...) or frame.dp_count(); several of them are a list",
        )
    return parts(query)


def asked_at_once(
    given: Sequence[PrivateQuery], weights: Sequence[Number] | None, payer: Payer
) -> tuple[Queries, list[Source | Sources], Payer]:
    """The queries of a list, where their data are, and who pays for them.

    Raises
    ------
    UnsupportedOperation
        When the list is empty, or holds what is no query.
    InvalidBudget
        When they are not paid for by one budget, or weights make no sense.
    """
    if not isinstance(given, (list, tuple)):
        owned(given)  # which refuses it
    _require_queries(given)
    found = [owned(query) for query in given]
    payers = [payer.responsible_for(owner) for _, _, owner in found]
    if any(other is not payers[0] for other in payers):
        raise InvalidBudget(
            "the queries are of different parts of a divided frame, or of one and of the whole; "
            "each part has a budget of its own",
            where=_WHERE,
            remedy="collect those of each part by themselves, or group the whole frame instead of "
            "dividing it",
        )
    asked = Queries(tuple(query for query, _, _ in found), _shares(weights, len(found)))
    return asked, [source for _, source, _ in found], payers[0]


def asked_with_limit(
    query: object, limits: Limits, spend: Spend, payer: Payer
) -> tuple[Queries, list[Source | Sources], Payer] | None:
    """The same of one query and the search for the limit that it lacks; None where none is sought.

    Raises
    ------
    UnsupportedOperation
        When a limit is sought for several queries at once.
    """
    require_limits(limits, spend)
    if limits is None:
        return None
    if not isinstance(query, PrivateQuery):
        raise UnsupportedOperation(
            "a limit is found for one query, not for a list",
            where='limits="auto"',
            remedy="collect each query by itself, or write limits of the frame",
        )
    asked, source, owner = searched(query, limits, spend)
    found = payer.responsible_for(owner)
    return None if asked is None else (asked, [source, source], found)


def refuse_weights(weights: object) -> None:
    """Refuse the shares of several queries where there is one.

    Raises
    ------
    InvalidBudget
        When there are any.
    """
    if weights is not None:
        raise InvalidBudget(
            "weights are the shares of several queries, and this is one",
            where="weights=...",
            remedy="give a list of queries, or weight= on dp expressions for outputs of one",
        )


def _require_queries(given: Sequence[object]) -> None:
    if not given:
        raise UnsupportedOperation(
            "there are no queries in the list",
            where=_WHERE,
            remedy="give at least one, such as [people.dp_count()]",
        )
    if len(given) > _MOST:
        raise UnsupportedOperation(
            f"{len(given)} queries are more than {_MOST}, which one plan may have",
            where=_WHERE,
            remedy="ask for several outputs in one query, or by group",
        )
    for number, query in enumerate(given, start=1):
        if isinstance(query, (list, tuple)):
            raise UnsupportedOperation(
                f"query {number} is a list: lists of queries are not nested",
                where=_WHERE,
                remedy="give all queries in one list",
            )
        owned(query)


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
            remedy="write for example weights=[2, 1]: the first query may cost twice as much",
        )
    return found
