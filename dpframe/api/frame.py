"""Private frames: Polars' verbs where each row stays on its own, and dp aggregates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from dpframe import pipeline
from dpframe.api.arguments import IntoKeys, column_name, flat, require_rows
from dpframe.api.asking import query_of
from dpframe.api.group_by import PrivateGroupBy, PrivateGroupByIndividual
from dpframe.api.joins import (
    private_join,
    public_join,
    public_table,
    refuse_join_options,
    require_validated,
)
from dpframe.api.limit_order import falling_column, require_flag
from dpframe.api.named_spend import named_spend
from dpframe.api.no_raw_access import FRAME_HINTS, FRAME_REASONS, RAW, NoRawAccess
from dpframe.api.paying_session import PayingSession, payer_of
from dpframe.api.polars_verbs import PolarsVerbs
from dpframe.api.protected_keys import refuse_protected_keys
from dpframe.api.protected_rows import ProtectedRows
from dpframe.api.query import PrivateQuery
from dpframe.api.row_verbs import RowVerbs
from dpframe.api.source import Source, Sources
from dpframe.api.spend import Spend
from dpframe.api.suggest import suggest_for_frame
from dpframe.core.exact import Number
from dpframe.errors import UnsupportedOperation, require
from dpframe.frames.binary import Binary, Concat, chain_of
from dpframe.frames.explode import Explode
from dpframe.frames.group_by_individual import GroupByIndividual
from dpframe.frames.join_public import How
from dpframe.frames.limit_groups import LimitGroups
from dpframe.frames.limit_norm import LimitNorm, read_norm
from dpframe.frames.limit_rows import LimitRows
from dpframe.frames.relation import Relation
from dpframe.frames.step import Step
from dpframe.parse.grouping_sets import SetsAsked, nothing_else
from dpframe.report.notebook import frame_html, frame_words
from dpframe.sealed import all_sealed


@all_sealed
class PrivateFrame(NoRawAccess, RowVerbs, PolarsVerbs):
    """A frame of private rows. Nothing raw comes out of it.

    Row-wise verbs (`filter`, `with_columns`, `select`, `rename`, `drop`, `cast`, `fill_null`,
    `fill_nan`, `drop_nulls`) work as in Polars and give another private frame, as do `join`,
    `concat`, `explode` and limits; `agg` and the `dp_*` methods give a `PrivateQuery`. Made by
    `Session.protect`.

    Guarantee
    ---------
    Row-wise verbs are 1-stable: one individual's rows become at most as many rows, each computed
    from itself alone. After every other verb a row still belongs to one individual and depends
    only on that individual's rows and public values. The plan states into how many rows one row
    can turn.
    """

    __slots__ = ("_relation", "_session", "_source")
    _noun = "a private frame"
    _written = "frame"
    _hints = FRAME_HINTS
    _reasons = FRAME_REASONS
    _otherwise = RAW

    def __init__(
        self, relation: Relation, source: Source | Sources, session: PayingSession | None
    ) -> None:
        self._relation = relation
        self._source = source
        self._session = session

    # -- limits -----------------------------------------------------------------------------------

    def limit_rows(
        self, n: int, by: Any = None, *, order_by: str | None = None, descending: bool = False
    ) -> PrivateFrame:
        """Keep at most `n` rows of each individual, or of each individual and value of `by`.

        This is needed where one individual could have any number of rows. A secret hash of the rows
        decides which rows stay. Dropped rows bias results, so choose `n` such that few are dropped.

        Parameters
        ----------
        n
            A positive integer.
        by
            Column names; None limits all rows of an individual together, as the identifier does.
        order_by
            A column of dates, datetimes or whole numbers. Rows with the least values are kept
            first, and nulls last. Streams need it: their frames grow every night, and rows that the
            limit kept before must stay.
        descending
            Whether rows with the largest values of `order_by` are kept first instead, such as the
            last orders of each person. Nulls come last.

        Raises
        ------
        UnsupportedOperation
            When the frame's unit is `Rows`, or a column's type is not known.
        """
        columns = self._by(by, "limit_rows")
        who = self._relation.facts.identifier
        within = tuple(name for name in columns if name != who)
        if not require_flag(descending, "limit_rows(..., descending=...)"):
            return self._then(LimitRows(n, within, order_by))
        falling, name = falling_column(order_by, self._relation.facts.columns)
        return self.with_columns(falling)._then(LimitRows(n, within, name)).drop(name)

    def limit_groups(self, n: int, by: Any, *, order_by: str | None = None) -> PrivateFrame:
        """Keep each individual's rows in at most `n` of its values of the columns `by`.

        Parameters
        ----------
        n
            A positive integer.
        by
            Column names; those that a later group-by uses.
        order_by
            One of them, of dates, datetimes or whole numbers. Groups with the least values are kept
            first, and nulls last. Streams need it.

        Raises
        ------
        UnsupportedOperation
            When the frame's unit is `Rows`.
        """
        return self._then(LimitGroups(n, self._by(by, "limit_groups"), order_by))

    def limit_norm(self, n: Number) -> PrivateFrame:
        """Weight each individual's rows by one factor of at most 1, so that the norm of its rows in
        all groups is at most `n`.

        The norm is the root of the sum of squares of an individual's row counts over groups. For
        aggregates over individuals each group counts as 1, so an individual in 9 groups has a norm
        of 3. No row is dropped, so results have less bias than with `limit_groups` at the same
        noise. Counts, sums, means and variances support it; a mean is then a weighted mean of the
        rows. If groups are found privately, an individual counts in at most 256 of them, unless
        `limit_groups` sets another number.

        Parameters
        ----------
        n
            The largest norm, at least 1/64: the number of rows of an individual in one group, or
            the root of the number of groups with one row each.

        Raises
        ------
        UnsupportedOperation
            When the frame's unit is `Rows`, or `n` is not a positive number.
        """
        return self._then(LimitNorm(read_norm(n)))

    @named_spend(1)
    def suggest_limits(
        self,
        by: Any = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        coverage: Number = 0.95,
        details: bool = False,
    ) -> pl.DataFrame:
        """Find privately the limits that most individuals keep. This is a release and costs its
        spend.

        Earlier limits of the frame have no effect. `PrivateQuery.suggest_limits` also finds bounds,
        and compares the kinds of limits for a query.

        Parameters
        ----------
        by
            Columns or row-wise expressions that a later group-by uses; None for rows in all.
        epsilon, delta, rho
            The spend.
        coverage
            The share of individuals who should lose no rows.
        details
            As for `PrivateQuery.suggest_limits`.

        Returns
        -------
        polars.DataFrame
            One row per limit: `limit` as you write it, such as ``limit_rows(15)``, and its number
            `n`. `people` is the share of individuals who lose no row, and `rows` the share of rows
            that is kept, both up to noise.

        Raises
        ------
        UnsupportedOperation
            When the frame's unit is `Rows`.
        InvalidBudget
            When the spend is invalid, or in another measure than the session's.
        """
        spend = Spend(epsilon, delta, rho)
        columns = flat([] if by is None else [by])
        return suggest_for_frame(rows_of(self), columns, spend, coverage, details=details)

    # -- several frames ------------------------------------------------------------------------

    def join(
        self,
        other: Any,
        on: Any = None,
        how: How = "inner",
        *,
        left_on: Any = None,
        right_on: Any = None,
        suffix: str = "_right",
        validate: str = "m:m",
        nulls_equal: bool = False,
        coalesce: bool | None = None,
        maintain_order: str | None = None,
        allow_parallel: bool = True,
        force_parallel: bool = False,
    ) -> PrivateFrame:
        """Join with a public frame, or with another private frame on the identifier.

        Parameters
        ----------
        other
            A table of Polars, pandas or pyarrow, which is public and becomes part of the plan; or
            a private frame of the same session that protects the same individuals.
        on, left_on, right_on
            Names of key columns, as in Polars; a null matches nothing. Private frames join on
            their identifiers, which may stand among other keys.
        how
            ``"inner"``, ``"left"``, ``"semi"`` or ``"anti"``. Another join would reveal which keys
            are in the private frame.
        suffix
            Appended to the names of new columns whose name is taken.
        validate
            ``"m:1"`` checks that a public frame has each key once. Keys of private frames cannot be
            checked, because a check that fails would reveal them.
        nulls_equal, coalesce
            Only the defaults of Polars.
        maintain_order, allow_parallel, force_parallel
            Have no effect, because private rows have no order.

        Raises
        ------
        UnsupportedOperation
            For another kind of join, keys of unlike types, or frames of unlike units or sessions.
        """
        refuse_join_options(nulls_equal, coalesce)
        left = self._by(on if on is not None else left_on, "join")
        right = self._by(on if on is not None else right_on, "join")
        if not isinstance(other, PrivateFrame):
            table = public_table(other)
            require_validated(validate, table, right)
            return self._then(public_join(table, left, right, how, suffix))
        require_validated(validate, other, right)
        self._require_same_session_and_unit(other, "join")
        step = private_join(self._relation, other._relation, left, right, how, suffix)
        return self._and(other, step)

    def concat(self, other: PrivateFrame) -> PrivateFrame:
        """The rows of both frames, which must have the same columns. An individual's rows are those
        in both.

        Raises
        ------
        UnsupportedOperation
            For another kind of frame, or one of another session, unit or engine.
        """
        if not isinstance(other, PrivateFrame):
            raise UnsupportedOperation(
                "a private frame can only be concatenated with another private frame, not with a "
                f"{type(other).__name__}",
                where="concat(...)",
                remedy="protect the other one in the same session: session.protect(other, "
                "unit=...)",
            )
        self._require_same_session_and_unit(other, "concat")
        return self._and(other, Concat(other._relation, chain_of(other._relation)))

    def explode(
        self,
        column: Any,
        *,
        max_length: int | None = None,
        empty_as_null: bool = True,
        keep_nulls: bool = True,
    ) -> PrivateFrame:
        """One row for each element of a column of lists, up to `max_length` of each. A list without
        elements gives one row with a null: Polars 2 gives none unless ``empty_as_null=True``.

        Raises
        ------
        UnboundedSensitivity
            When the lists may have any length and no `max_length` is given.
        UnsupportedOperation
            For several columns, whose lists might differ in length.
        """
        if not (empty_as_null and keep_nulls):
            name = "empty_as_null" if not empty_as_null else "keep_nulls"
            before = (
                ".drop_nulls([column])"
                if empty_as_null
                else ".filter(pl.col(column).list.len().ne_missing(0))"
            )
            raise UnsupportedOperation(
                f"explode with {name}=False is not supported",
                where=f"explode(..., {name}=False)",
                remedy=f"leave {name} out, and write {before} before it",
            )
        names = self._by(column, "explode")
        if len(names) != 1:
            raise UnsupportedOperation(
                "explode takes one column",
                where=f"explode({list(names)})",
                why="lists of different lengths would make it fail, which depends on the data",
                remedy="write one explode for each column",
            )
        return self._then(Explode(names[0], max_length))

    def _require_same_session_and_unit(self, other: PrivateFrame, what: str) -> None:
        if other._session is not self._session:
            raise UnsupportedOperation(
                "the frames belong to different sessions",
                where=f"{what}(...)",
                remedy="protect both frames in one session",
            )
        mine, theirs = self._relation.facts.unit, other._relation.facts.unit
        require(mine.kind == theirs.kind, "frames of one session protect one kind of unit")

    def _and(self, other: PrivateFrame, step: Binary) -> PrivateFrame:
        tokens = self._relation.token, other._relation.token
        both = Sources((tokens[0], self._source), (tokens[1], other._source))
        return PrivateFrame(self._relation.then(step), both, self._session)

    # -- aggregates -----------------------------------------------------------------------------

    def group_by(
        self, *by: Any, keys: IntoKeys | None = None, maintain_order: bool = True, **named_by: Any
    ) -> GroupBy:
        """Group rows by public keys, by groups found in the data, or by the individual.

        With the identifier in `by`, ``agg`` takes Polars' own aggregates and returns a private
        frame with one row for each individual, and for each value of further keys.

        Parameters
        ----------
        by
            Columns or row-wise expressions; or `dpframe.rollup`, `dpframe.cube` or
            `dpframe.grouping_sets`, for several tables in one result. A column that is not in the
            set of a row is null there, and the column ``grouping`` distinguishes this from a null
            key.
        keys
            A list, Series, DataFrame, ``{column: values}`` (their product) or `dpframe.keys`. The
            result has every key, in this order, even if no row has it; rows with other keys are
            dropped. Without keys the categories of Enum, Boolean and declared columns are used.
            Otherwise the query finds groups with enough individuals privately when it runs, and
            returns them sorted. This needs a delta.
        maintain_order
            Has no effect: results are always in the order of the keys.

        Raises
        ------
        MissingKeys
            When keys would have to be read from private data.
        """
        if isinstance(named_by.get("other"), bool):
            raise UnsupportedOperation(
                "group_by has no argument 'other'",
                where="group_by(..., other=...)",
                why="rows with keys that are not listed are dropped",
                remedy="write dp_histogram(column, [...], other=True)",
            )
        given = flat(by)
        rows = rows_of(self)
        refuse_protected_keys(keys, self._source, "group_by(..., keys=...)")
        sets = [item for item in given if isinstance(item, SetsAsked)]
        if sets:
            nothing_else(named_by, given[1:])
            require_rows(sets[0].columns, "group_by")
            found = PrivateGroupBy(rows, pipeline.group_sets(rows.relation, sets[0], keys))
            return cast("GroupBy", found)
        require_rows([*given, *named_by.values()], "group_by")

        def grouped() -> PrivateGroupBy:
            discover = rows.payer is None or rows.payer.discovers
            return PrivateGroupBy(
                rows, pipeline.group(rows.relation, given, named_by, keys, discover)
            )

        own = None
        if keys is None:
            own = pipeline.individuals(rows.relation, given, named_by)
        if own is None:
            return cast("GroupBy", grouped())
        who, by = own

        def reduced(exprs: Sequence[Any], named: Mapping[str, Any]) -> PrivateFrame:
            return self._then(pipeline.one_row_each(rows.relation, who, by, exprs, named))

        written = GroupByIndividual(who, by, ()).words().removesuffix(".agg()")
        return cast("GroupBy", PrivateGroupByIndividual(reduced, grouped, written))

    def agg(self, *exprs: Any, **named: Any) -> PrivateQuery:
        """A query with one row: dp expressions over all rows. Nothing runs.

        Raises
        ------
        UnsupportedOperation
            For an expression that is not a dp expression; the message names the one to use.
        UnboundedSensitivity
            When one individual could change a result by any amount.
        """
        return query_of(rows_of(self), None, exprs, named)

    # -- what is public -------------------------------------------------------------------------

    @property
    def session(self) -> PayingSession | None:
        """The `Session` that pays for queries; for a part of a partition, the part's session."""
        return self._session

    @property
    def schema(self) -> pl.Schema:
        """Names and types of the columns, which are public."""
        return pl.Schema(pipeline.schema_of(self._relation))

    @property
    def columns(self) -> list[str]:
        """Names of the columns, which are public."""
        return list(self._relation.facts.columns)

    def explain_unit(self) -> str:
        """Whom the session protects in this frame, and the known facts about its columns."""
        return frame_words(self._relation)

    def __repr__(self) -> str:
        whom = self._relation.facts.unit.whom()
        return f"<PrivateFrame {self._relation.name!r}: {self.columns}; protects {whom}>"

    def _repr_html_(self) -> str:
        return frame_html(self._relation)

    def __contains__(self, column: object) -> bool:
        return column in self._relation.facts.columns

    # -- inside ---------------------------------------------------------------------------------

    def _then(self, step: Step) -> PrivateFrame:
        return PrivateFrame(self._relation.then(step), self._source, self._session)

    def _by(self, by: Any, what: str) -> tuple[str, ...]:
        given = [] if by is None else flat([by])
        return tuple(dict.fromkeys(column_name(item, what) for item in given))


def rows_of(frame: PrivateFrame) -> ProtectedRows:
    """What is known of a frame's rows, where they are, and who pays."""
    payer = None if frame._session is None else payer_of(frame._session)
    return ProtectedRows(frame._relation, frame._source, payer)


if TYPE_CHECKING:

    class QueryOrFrame(PrivateQuery, PrivateFrame):  # type: ignore[misc] # pyright: ignore
        """What `agg` of groups gives: a query; or a private frame with one row for each individual,
        where rows are grouped by the identifier. Type checkers do not see which it is.
        """

    class GroupBy(PrivateGroupBy):
        """Groups of a private frame."""

        def agg(self, *exprs: Any, **named: Any) -> QueryOrFrame: ...
        def len(self, name: str = "len") -> QueryOrFrame: ...
