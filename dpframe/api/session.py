"""Sessions: one budget, one kind of unit, and the frames it protects."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Self, overload

import polars as pl

from dpframe import pipeline
from dpframe.aggregates.histogram import read_categories
from dpframe.aggregates.values import pair
from dpframe.api.expressions import IntoBounds, IntoKeys, flat, require_rows
from dpframe.api.frame import PrivateFrame, rows_of
from dpframe.api.limits import Limits
from dpframe.api.parameters import with_parameters
from dpframe.api.payer import Payer, ProtectedRows, SessionBudget, Spend, require_windows
from dpframe.api.query import (
    PrivateQuery,
    batch_of,
    change_result,
    limit_of,
    named_spend,
    parts,
    require_interval,
    require_query,
    require_unchanged,
)
from dpframe.api.release import Release, Releases
from dpframe.api.reuse import Reuse, ReusePolicy
from dpframe.api.source import Source, protected_source, refuse_protected_keys
from dpframe.api.stream import Stream, StreamRequest
from dpframe.charge import budget_of, resolve_composition
from dpframe.core.budget import Budget
from dpframe.core.dtypes import Domain, columns, domain_of_dtype
from dpframe.core.exact import Number, show_input
from dpframe.core.interval import Interval
from dpframe.core.units import Identifier, Unit, as_unit
from dpframe.core.windows import Every, as_every
from dpframe.errors import InvalidBounds, InvalidBudget, LedgerError, UnsupportedOperation
from dpframe.frames.facts import protected_facts
from dpframe.frames.joins import require_same_types
from dpframe.frames.nights import Delay, Schedule, Waits, no_limit_of_nights, require_streamable
from dpframe.frames.relation import Owners, Relation
from dpframe.ledger.parts import PartLedger, no_stream_of_part
from dpframe.ledger.place import open_ledger
from dpframe.ledger.record import short_text
from dpframe.ledger.scopes import Level
from dpframe.lower.engines.polars_engine import PolarsMode
from dpframe.optimise.mechanisms import Split
from dpframe.plan.data import owner_remark
from dpframe.release import Intervals, read_intervals
from dpframe.report import Plan
from dpframe.report.errors import typical_value
from dpframe.rows.polars_dtypes import schema_from_polars
from dpframe.rows.suggest import unknown_column
from dpframe.sealed import all_sealed
from dpframe.streaming import rehearse, with_rising_totals


def declare_columns(
    source: Source, bounds: Mapping[str, IntoBounds], categories: Mapping[str, Sequence[object]]
) -> Mapping[str, Domain]:
    """The domains of the source's columns, with what the data owner declared."""
    table = {n: domain_of_dtype(t) for n, t in schema_from_polars(source.schema).items()}
    for name, ends in _declarations(bounds, "bounds", "(low, high)"):
        found = _column(table, name, "bounds")
        where = f"protect(..., bounds={{{name!r}: {show_input(ends)}}})"
        if not found.dtype.is_ordered:
            raise InvalidBounds(
                f"a column of type {found.dtype} has no bounds",
                where=where,
                remedy="declare categories={...} for text",
            )
        lo, hi = pair(ends, found.dtype, where)
        if lo > hi:
            raise InvalidBounds(
                "the bounds are reversed", where=where, remedy="write the lower bound first"
            )
        narrowed = found.interval.intersect(Interval(lo, hi))
        if narrowed is None:
            raise InvalidBounds(
                f"no value of type {found.dtype} lies within the bounds",
                where=where,
                remedy="declare bounds that the type can hold",
            )
        table[name] = replace(found, interval=narrowed)
    for name, values in _declarations(categories, "categories", '["a", "b"]'):
        found = _column(table, name, "categories")
        where = f"protect(..., categories={{{name!r}: ...}})"
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise InvalidBounds(
                f"categories are a list of values, not {show_input(values)}",
                where=where,
                remedy=f'write categories={{{name!r}: ["a", "b"]}}',
            )
        listed = read_categories(list(values), found, where)
        table[name] = replace(found, categories=tuple(v for v in listed if v is not None))
    return columns(table)


def read_typical(
    given: Mapping[str, object], table: Mapping[str, Domain]
) -> tuple[tuple[str, Fraction], ...]:
    """What a data owner says that values of columns are like."""
    found = []
    for name, value in _declarations(given, "typical values", "3000"):
        known = _column(table, name, "typical")
        where = f"protect(..., typical={{{name!r}: {show_input(value)}}})"
        if not known.dtype.is_numeric:
            raise InvalidBounds(
                f"a column of type {known.dtype} has no typical number",
                where=where,
                remedy="leave it out of typical=",
            )
        found.append((name, typical_value(value, where)))
    return tuple(sorted(found))


def _declarations(given: object, what: str, example: str) -> Iterable[tuple[str, object]]:
    if not isinstance(given, Mapping):
        raise InvalidBounds(
            f"{what} are declared by column, not as a {type(given).__name__}",
            where=f"protect(..., {what}=...)",
            remedy=f'write {what}={{"column": {example}}}',
        )
    return given.items()


def _column(table: Mapping[str, Domain], name: str, what: str) -> Domain:
    if name not in table:
        raise unknown_column(name, table, f"protect(..., {what}={{{name!r}: ...}})")
    return table[name]


# -- Parts ----------------------------------------------------------------------------------------


def divide(
    rows: ProtectedRows,
    by: object,
    keys: object,
    every: str | None,
    delay: str | dt.timedelta | None,
) -> dict[Any, tuple[Relation, Level]]:
    """Disjoint parts of a frame, by public key, and their names in ledgers."""
    where = "partition(..., every=...)"
    period = as_every("1d" if every is None else every, where)
    if every is not None and delay is None:
        raise UnsupportedOperation(
            "every= needs a delay: parts without one wait for nothing",
            where=where,
            remedy=("leave every= out", 'write how long parts wait: delay="2d"'),
        )
    waits = None if delay is None else Waits(period, Delay.of(delay))
    given = flat([by])
    require_rows(given, "partition")
    refuse_protected_keys(keys, rows.source, "partition(..., keys=...)")
    public = with_parameters(keys)
    return pipeline.divide(rows.relation, given, public, waits, rows.source.is_fixed)


# -- Owners in another frame ----------------------------------------------------------------------


_WHERE = "dp.Through(...)"


@all_sealed
@dataclass(frozen=True, slots=True, eq=False)
class Through:
    """A unit for frames without an identifier: another private frame identifies the owners of rows.
    An item, for example, belongs to the customer who has its order.

    The protected frame gets the identifier as a column, as if the data owner had joined it before.
    If several individuals have a row's key, each of them gets a copy of the row. If none has it,
    the row is dropped.

    Parameters
    ----------
    frame
        The private frame with the owners, unchanged since `Session.protect`. Its unit is an
        identifier.
    on
        The common key column, of text, integers, dates or categories; a null matches nothing.
    left_on, right_on
        The key column in the protected frame and in `frame`, if their names differ.

    Raises
    ------
    UnsupportedOperation
        When `frame` has no identifier, or was changed since it was protected.

    Guarantee
    ---------
    Neighbouring frames differ in all rows of one individual in `frame`, and in any rows of the
    protected frame whose keys no other individual in `frame` has. An individual comes and goes
    with the rows that only they own. Protected rows then differ in that individual's only.

    Proof
    -----
    A protected row is a pair of a row r and an individual who has the key of r in `frame`, each
    pair once. Let individual c be added or removed, and let d be another individual. The rows of d
    in `frame` stay the same, so d has the same keys. Rows that come or go with c do not have keys
    of d, so the rows with the keys of d stay the same, and so do the pairs of d. All other pairs
    have the identifier of c. This is the meaning of protection by an identifier, so every rule for
    such frames applies.

    Examples
    --------
    >>> import polars as pl
    >>> import dpframe as dp
    >>> session = dp.Session(epsilon=1)
    >>> orders = session.protect(pl.LazyFrame({"order": [1, 2], "who": ["a", "b"]}), unit="who")
    >>> items = pl.LazyFrame({"order": [1, 1, 2], "price": [5, 7, 9]})
    >>> session.protect(items, unit=dp.Through(orders, on="order")).columns
    ['order', 'price', 'who']
    """

    frame: PrivateFrame
    on: str | None = None
    left_on: str | None = None
    right_on: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.frame, PrivateFrame):
            raise UnsupportedOperation(
                "dp.Through needs a private frame with an identifier, not a "
                f"{type(self.frame).__name__}",
                where=_WHERE,
                remedy='write orders = session.protect(..., unit="customer"), and pass orders',
            )
        facts = self.frame._relation.facts
        if not isinstance(facts.unit, Identifier) or facts.unit.window is not None:
            raise UnsupportedOperation(
                "dp.Through needs a frame that is protected by an identifier, and this "
                f"one protects {facts.unit.kind}",
                where=_WHERE,
                remedy=(
                    'protect it with unit="customer"',
                    "join the tables before session.protect(...)",
                ),
            )
        if self.frame._relation.steps:
            raise UnsupportedOperation(
                "the frame has been changed since protect(), so its keys may no longer match",
                where=_WHERE,
                remedy="pass the frame that session.protect(...) returned",
            )
        self._require_names()

    def _require_names(self) -> None:
        both = self.on is not None and self.left_on is None and self.right_on is None
        apart = self.on is None and self.left_on is not None and self.right_on is not None
        if not (both or apart) or not all(isinstance(name, str) for name in self._names):
            raise UnsupportedOperation(
                f"the key is one column, not on={show_input(self.on)}, "
                f"left_on={show_input(self.left_on)}, right_on={show_input(self.right_on)}",
                where=_WHERE,
                remedy='write dp.Through(orders, on="order"), or left_on= and right_on=',
            )

    @property
    def _names(self) -> tuple[str, str]:
        """The key in the frame that is protected, and in the one that knows."""
        here = self.left_on if self.on is None else self.on
        there = self.right_on if self.on is None else self.on
        return str(here), str(there)

    def _unit_in(self, session: object) -> Identifier:
        """Whom the frame protects that knows."""
        if self.frame._session is not session:
            raise UnsupportedOperation(
                "the frame with the identifier belongs to another session",
                where=_WHERE,
                remedy="protect both frames in one session",
            )
        unit = self.frame._relation.facts.unit
        assert isinstance(unit, Identifier)
        return unit

    def _owned(self, source: Source) -> Source:
        """The rows with whose they are."""
        (here, there), relation, owners = self._names, self.frame._relation, self.frame._source
        who = relation.facts.identifier
        assert who is not None
        assert isinstance(owners, Source)
        if who in source.schema:
            raise UnsupportedOperation(
                f"the frame already has a column {who!r}",
                where=_WHERE,
                remedy=(
                    f'write unit="{who}"',
                    "rename that column first, if it means something else",
                ),
            )
        if there == who:
            raise UnsupportedOperation(
                f"the key {there!r} is the identifier itself",
                where=_WHERE,
                remedy=f'rename {here!r} to {who!r} first, and write unit="{who}"',
            )
        types = schema_from_polars(source.schema)
        for name, known in ((here, types), (there, relation.facts.columns)):
            if name not in known:
                raise unknown_column(name, known, _WHERE)
        dtype = relation.facts.columns[there].dtype
        require_same_types([domain_of_dtype(types[here])], [dtype], [here], _WHERE)
        remark = owner_remark(here, there, None if relation.by_place else relation.name)
        return source.owned_by(owners, (here, there), who, remark)

    def _in_relation(self, relation: Relation) -> Relation:
        """The protected frame, where it is known by which frame and keys; its name stands for it in
        other processes only where the ledger of the other one does, too.
        """
        other = self.frame._relation
        owners = Owners(other.token, other.name, *self._names)
        return replace(relation, named=relation.named and other.named, owners=owners)


# -- The session ----------------------------------------------------------------------------------


@all_sealed
class Session(SessionBudget):
    """A privacy budget, and the private frames whose releases it pays for.

    Parameters
    ----------
    budget
        `PureDP`, `ApproxDP` or `ZCDP`. Its class is the measure of the session.
    epsilon, delta, rho
        Short for a budget: epsilon alone is `PureDP`, with delta `ApproxDP`, rho is `ZCDP`.
    ledger
        Where the budget is recorded. None is memory, which ends with the process. A path or
        ``sqlite:///`` URL is a file, a ``postgresql://`` URL a database. A ledger has one budget
        for each `name`, which is created once.
    name
        The name of the session in plans, and of its budget in the ledger: ``"default"`` if left
        out.
    composition
        How plans use up an (epsilon, delta). ``"sum"`` adds up their costs. ``"zcdp"`` converts the
        budget to the largest rho that implies it, and charges each plan its cost in rho. Many small
        plans then cost about the root of their sum, and a few large ones cost more. Noise is the
        same. A spend is an (epsilon, delta), which each plan satisfies separately, or `rho=`, and
        `spent`, `remaining` and costs of plans are amounts of rho. ``"gdp"`` does the same with the
        square of mu of Gaussian differential privacy: it pays for an eighth more plans with
        Gaussian noise, and for fewer with other noise.
    require_approval
        Whether a plan runs only if the ledger has an approval of its fingerprint for the session's
        `name`: see ``dpframe approve``. With a key in the environment (``DPFRAME_APPROVAL_KEY``)
        only approvals signed with it count.
    keep_releases
        Whether to store results next to the ledger: in a folder that only the file's owner can
        read, in a table in PostgreSQL, or in memory without a ledger. Then ``collect(...,
        reuse="same")`` returns them again at no cost, and a lost result can be restored.
    per
        None for one budget; ``"1d"``, ``"1w"``, ``"1mo"``, ``"1q"`` or ``"1y"`` for a budget of
        this amount in each calendar window of the data's time. Frames are then protected with
        `Identifier` and the same window, and a plan is charged to each window whose rows it may
        read. Each window has a full budget, at any time it is queried. `spent` is the largest
        amount spent in any window, `remaining` is what is left in that window, and `remaining_in`
        is for a window that you name.
    must_exist
        Whether the budget must have been created before, by ``dpframe ledger create`` or an earlier
        session. Then a mistyped name or path is an error; otherwise it opens a new budget. In a
        job that ``dpframe run`` runs, a mistyped name or path is always an error.
    create
        Whether a job that ``dpframe run`` runs may open a new budget. In other programs a session
        opens a new budget unless `must_exist` is set.

    Raises
    ------
    InvalidBudget
        When the budget is missing, not positive and finite, or does not fit the composition. Also
        when `per` is not one of the listed windows.
    LedgerError
        When the ledger cannot be opened, does not verify, or has another budget with this name.
        Also when the name of a new budget looks like that of another.
    NoBudget
        When the budget does not exist, and `must_exist` or a job forbids to create it. Nothing is
        created then.

    Guarantee
    ---------
    All results of `collect` and `release` together are differentially private at `budget` for the
    unit of `protect`, even if each query is chosen after seeing earlier results. A plan runs only
    if the sum of all costs stays within the budget, which is a valid privacy filter (Rogers,
    Roth, Ullman & Vadhan 2016; for zCDP Feldman & Zrnic 2021). With a ledger this holds for all
    sessions together that use the same name in it, now or earlier, in this process or another.
    With ``composition="zcdp"`` all plans together are rho-zCDP by the filter for rho, and rho
    implies the budget (Canonne, Kamath & Steinke 2020, Prop. 12), rounded towards less. With
    ``composition="gdp"`` they are mu-GDP by the filter for mu (Smith & Thakurta 2022), and mu
    implies the budget (Balle & Wang 2018, Theorem 8), rounded towards less. With `per` all this
    holds for frames that differ in one person's rows in one window (`Timeline` has the proof). A
    whole person with rows in n windows has n times this loss (see `Identifier`).

    Examples
    --------
    >>> import dpframe as dp
    >>> session = dp.Session(epsilon=1.0)
    >>> session.remaining
    PureDP(epsilon=1)
    """

    def __init__(
        self,
        budget: Budget | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        ledger: str | os.PathLike[str] | None = None,
        name: str | None = None,
        composition: Literal["sum", "zcdp", "gdp"] = "sum",
        require_approval: bool = False,
        must_exist: bool = False,
        create: bool = False,
        keep_releases: bool = False,
        per: Every | None = None,
    ) -> None:
        if not isinstance(name, str | None):
            raise LedgerError(
                f"name must be text, not a {type(name).__name__}",
                where="name",
                remedy='write for example name="census"',
            )
        opened, within = resolve_composition(budget_of(budget, epsilon, delta, rho), composition)
        if require_approval and ledger is None:
            raise LedgerError(
                "approvals are kept in a ledger, and this session has none",
                where="Session(require_approval=True)",
                remedy='write Session(..., ledger="budget.db", require_approval=True)',
            )
        if must_exist and ledger is None:
            raise LedgerError(
                "must_exist=True needs a ledger: a budget in memory is new each time",
                where="Session(must_exist=True)",
                remedy='write Session(..., ledger="budget.db", must_exist=True)',
            )
        if must_exist and create:
            raise LedgerError(
                "must_exist=True and create=True contradict each other",
                where="Session(must_exist=True, create=True)",
                remedy="leave one of the two out",
            )
        every = None if per is None else as_every(per, "per", InvalidBudget)
        charged = open_ledger(
            ledger, name, opened, within, must_exist=must_exist, create=create, per=every
        )
        counts_apart = within is not None
        keeps = bool(keep_releases)
        super().__init__(Payer(charged, type(opened), counts_apart, name, require_approval, keeps))

    def __enter__(self) -> Self:
        """The session, for ``with``: leaving that closes nothing, as nothing stays open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing: each charge is written when it is made."""

    # -- frames ---------------------------------------------------------------------------------

    def protect(
        self,
        frame: object,
        unit: Unit | str | Through,
        *,
        name: str | None = None,
        bounds: Mapping[str, IntoBounds] | None = None,
        categories: Mapping[str, Sequence[object]] | None = None,
        schema: Mapping[str, object] | None = None,
        typical: Mapping[str, Number] | None = None,
        engine: Literal["polars", "duckdb", "spark"] | None = None,
        storage_options: Mapping[str, str] | None = None,
        memory: str | int | None = None,
        spill: bool = True,
    ) -> PrivateFrame:
        """A private frame, whose releases this session pays for: the trust boundary.

        Parameters
        ----------
        frame
            A Polars DataFrame or LazyFrame; the path of a Parquet, CSV, IPC or NDJSON file, or a
            pattern such as ``"visits/*.parquet"``. Also a folder of Parquet files, a Delta table
            or its folder, a pyarrow Table, batch reader or dataset. On a DuckDB relation or a
            Spark DataFrame queries run on that engine. The data owner is responsible for all
            earlier steps on the frame; dpframe checks all later ones. Each line of a CSV or NDJSON
            file is a row, read as text and parsed by `schema`. A batch reader can be read only
            once, so its batches are written to a temporary file without a name. A relation must
            yield the same rows each time.
        unit
            Whom to protect: `dpframe.Rows`, `dpframe.Identifier` or the name of its column, or
            `dpframe.Through` another frame that identifies the owners of rows.
        name
            The name of the frame in plans. By default it is the session's name if it has one, or
            "data", "data 2" and so on, by the frame's place in the plan. `partition` recognises a
            frame by this name and continues the charges of its parts, so give each frame its own.
        bounds
            Declared bounds of columns, {column: (lo, hi)}. They make plans tighter. Aggregates
            clamp values anyway.
        categories
            Declared values of columns, {column: [values]}; public.
        schema
            For a path: a dict of the columns to read and their types, in this order. Other
            columns are not read. With a schema, planning reads nothing, not even whether the file
            exists: people who may not read the data can plan, explain and approve a query. When
            the query runs, and before it is charged, the files must have these columns with these
            types. Types may be written as in jobs, ``"List(Decimal(10, 2))"``. In text files a
            value that does not fit its type is null, and so is each value of a line that is not a
            record. Without a schema, all columns of a CSV file are text, and so are columns whose
            values are in the names of folders, such as ``year=2026``. A pattern of Parquet files
            has such columns only if a schema states them; on DuckDB and Spark they are text.
        typical
            Publicly known typical values of numeric columns, {column: value}. Plans show them, and
            warn about bounds and limits whose noise is too large for them. They do not affect
            privacy, but they are part of the fingerprint, because risks depend on them.
        engine
            The engine for queries of files: ``"polars"`` (the default), ``"duckdb"`` or
            ``"spark"``. Other frames have an engine already.
        storage_options
            For a path in an object store, such as ``"s3://bucket/visits/*.parquet"`` or the
            folder of a Delta table: the options of `polars.scan_parquet` and `polars.scan_delta`,
            for example ``{"aws_access_key_id": ..., "aws_secret_access_key": ...}``. They are in
            no plan, fingerprint, ledger, log, message or representation.
        memory
            Roughly the memory that queries of individuals may use on Polars: ``"2GB"``, a number of
            bytes, or ``"auto"`` for three quarters of the memory of the machine or its control
            group. If this is too little for the sizes of the files, which count as public, dpframe
            divides people into buckets and counts one bucket at a time, with the same results.
            None is ``"auto"`` if the sizes of all files are known, and no limit otherwise.
        spill
            Whether to divide rows into buckets by temporary files, in the folder of ``TMPDIR``, if
            that is a disk with five times the files' bytes free, ten times if there is text. The
            files have no names, so no other process can open them and none remains, even after a
            kill. Otherwise each bucket is a separate scan, and the frame must yield the same rows
            each time.

        Raises
        ------
        UnsupportedOperation
            For another kind of frame, or a unit that differs from that of the session's other
            frames.
        UnknownColumn, InvalidBounds
            When a declaration is wrong.
        """
        payer = self._payer
        if payer.whole is not None:
            raise UnsupportedOperation(
                "the session of a part pays for that part only",
                where="session.protect(...)",
                remedy="protect the frame in the session that divided its frame",
            )
        if not isinstance(name, str | None):
            raise UnsupportedOperation(
                f"the name of a frame is text, not a {type(name).__name__}",
                where="session.protect(..., name=...)",
                remedy='write for example name="people"',
            )
        through = unit if isinstance(unit, Through) else None
        who = as_unit(unit) if through is None else through._unit_in(self)
        require_windows(who, payer.ledger.per)
        if payer.unit is not None and payer.unit.kind != who.kind:
            raise UnsupportedOperation(
                f"the session protects {payer.unit.kind}, and this frame would be protected as "
                f"{who.kind}",
                where=f"unit={show_input(unit)}",
                why="their costs do not add up",
                remedy="open another session for this kind of unit",
            )
        source = protected_source(frame, engine, schema, storage_options)
        source = (source if through is None else through._owned(source)).within(memory, spill)
        facts = protected_facts(declare_columns(source, bounds or {}, categories or {}), who)
        payer.unit = who
        label, named = name or payer.name or "data", payer.is_name(name, source)
        stated = read_typical(typical or {}, facts.columns)
        relation = Relation.of(
            label, facts, source.remarks, named=named, by_place=not name, typical=stated
        )
        if through is not None:
            relation = through._in_relation(relation)
        return PrivateFrame(relation, source, self)

    def partition(
        self,
        frame: PrivateFrame,
        by: object,
        keys: IntoKeys | None = None,
        *,
        delay: str | dt.timedelta | None = None,
        every: str | None = None,
    ) -> dict[Any, PrivateFrame]:
        """Divide a frame into disjoint parts. The session pays only for the most expensive ones.

        Parameters
        ----------
        frame
            A frame of this session, or of one of its parts.
        by
            A column, a row-wise expression, or a list of them.
        keys
            As for `group_by`: a list, Series, DataFrame or ``{column: values}`` (their product), or
            the known categories by default. Rows with other keys are in no part. A key may be a
            parameter, ``keys=[day]``, and so may the whole list. An approval of a range of the
            parameter then covers the parts of all its values.
        delay
            For parts by a date: how long each part waits after its end before it may be released,
            so that late rows count, as for `stream`. It does not change cost or guarantee.
        every
            With a `delay`: the length of the period that a key stands for, ``"1d"`` by default, or
            ``"1w"``, ``"1mo"``, ``"1q"`` or ``"1y"``.

        Returns
        -------
        dict[Any, PrivateFrame]
            A private frame for each key, in the order of the keys: by value for one column, by
            tuple for several.

        Raises
        ------
        MissingKeys
            When keys would have to be read from private data, or are not values of their columns.
        UnsupportedOperation
            When there are more than 10,000 parts, or two keys are equal in Python. Also for a
            `delay` if keys do not have exactly one date, and for `every` without a `delay`.
        InvalidBudget
            When the frame belongs to another session.
        UnboundedSensitivity
            When an individual may have rows in any number of parts.

        Guarantee
        ---------
        Neighbouring frames differ in at most g parts: `contributions` of them when rows are added
        or removed, twice as many when they change. With an identifier it is as many as
        ``limit_groups(g, by=...)`` allows, which then chooses the same groups for all parts, if the
        rows are in memory. Rows may be added to files and to tables of engines, and could bring an
        individual into other parts: then g is the number of parts. To pay less, read the rows
        into memory, or keep the first dates of each individual (see below). The
        session is charged the sum of the g largest totals of parts, for queries in any order, and
        before data is read (parallel composition; the proof is in `dpframe/ledger/parts.py`).

        A part has its own session, `part.session`. There `spent` is the amount charged to this
        part, and `remaining` is the most that can still be charged to it. Spending up to the total
        of the most expensive parts is free. Beyond that the whole budget pays.

        The ledger keeps the totals of parts. The total of a part continues, also in another process
        or next year, if the frame has a name in `protect`, its unit is `Rows`, and it is divided by
        the same `by` after the same steps. Keys that did not exist
        before are new parts. Parts by `Identifier` continue in the same way if a limit keeps the
        first dates, ``limit_groups(g, by="day", order_by="day")``. They must then be charged in
        the order of these dates; earlier ones are refused. All other calls make new parts with
        totals of zero: frames without a name, a second frame of the same name in one session, and
        individuals with other limits.

        Rows may be added to the frame while its parts are in use. A row must never change its
        key, because it would then be in two parts. A name must always mean one frame, in which
        all rows of one individual, at any time, are within its `contributions`. If a limit keeps
        the first dates, rows must not vanish, or fail a filter before the limit that they passed.

        Examples
        --------
        >>> import polars as pl, dpframe as dp
        >>> session = dp.Session(epsilon=1.0)
        >>> people = session.protect(pl.DataFrame({"sex": ["f", "m", "f"]}), unit=dp.Rows())
        >>> parts = session.partition(people, "sex", keys=["f", "m"])
        >>> for part in parts.values():
        ...     _ = part.dp_count().collect(epsilon=0.4)
        >>> session.spent
        PureDP(epsilon=0.4)
        """
        if self._payer.ledger.per is not None:
            raise UnsupportedOperation(
                "a budget for each window of time cannot be divided into parts",
                where="session.partition(...)",
                remedy=(
                    "group by the column that divides the frame",
                    "filter the frame by time: each window has its own budget",
                ),
            )
        if not isinstance(frame, PrivateFrame):
            raise UnsupportedOperation(
                f"a session divides private frames, not a {type(frame).__name__}",
                where="session.partition(...)",
                remedy="protect the frame first: session.protect(frame, unit=dp.Rows())",
            )
        rows = rows_of(frame)
        payer = self._payer.responsible_for(rows.payer)
        parts = divide(rows, by, keys, every, delay)
        made = {}
        for key, (relation, level) in parts.items():
            session = _PartSession(payer.of_part(PartLedger(payer.ledger, level, len(parts))))
            made[key] = PrivateFrame(relation, rows.source, session)
        return made

    # -- queries ---------------------------------------------------------------------------------

    @named_spend(1)
    def plan(
        self,
        query: PrivateQuery | Sequence[PrivateQuery],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: Sequence[Number] | None = None,
        limits: Limits = "auto",
    ) -> Plan:
        """The plan of a query at a spend, or one plan of several queries that share the spend.
        Reads no data and charges nothing.

        See `PrivateQuery.plan` for parameters and errors. The query belongs to this session or to
        none: raises `InvalidBudget` if it belongs to another.

        Parameters
        ----------
        query
            A query, or a list of queries, also of different frames of the session. Outputs with the
            same frame, filters and groups share noise, as those of one query do. The order of the
            queries is part of the plan.
        accuracy
            By the names of outputs. If several queries have the name, write ``"n of query 2"``.
        weights
            The weight of each query in the spend; its share is divided among its outputs by their
            own `weight=`. By default the outputs of all queries share as those of one query do.
        limits
            As for `PrivateQuery.plan`. All queries of a list that lack a limit get the same limit
            on rows, which is found on their common frame.

        Raises
        ------
        UnsupportedOperation
            When the list is empty, or has an item that is not a query. Also when several queries
            lack a limit and are of different frames.
        InvalidBudget
            When several budgets would pay for the queries, or a weight is not positive.
        """
        spend = Spend(epsilon, delta, rho, accuracy, split)
        batch, _, payer = batch_of(query, weights, limits, spend, self._payer)
        return payer.prepare(batch, spend).plan

    @overload
    def collect(
        self,
        query: PrivateQuery,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: None = None,
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
    ) -> pl.DataFrame: ...
    @overload
    def collect(
        self,
        query: Sequence[PrivateQuery],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: Sequence[Number] | None = None,
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
    ) -> list[pl.DataFrame]: ...
    @named_spend(1)
    def collect(
        self,
        query: PrivateQuery | Sequence[PrivateQuery],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: Sequence[Number] | None = None,
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
    ) -> pl.DataFrame | list[pl.DataFrame]:
        """Charge, run and release a query of this session, or one that was built without a session.
        Several queries make one charge and return a list of frames.

        See `PrivateQuery.collect` and `Session.plan` for parameters and errors. Raises
        `InvalidBudget` if a query belongs to another session.

        Examples
        --------
        >>> import polars as pl, dpframe as dp
        >>> session = dp.Session(epsilon=1.0)
        >>> people = session.protect(pl.DataFrame({"age": [31, 64]}), unit=dp.Rows())
        >>> old = people.filter(pl.col("age") >= 60)
        >>> everybody, elders = session.collect([people.dp_count(), old.dp_count()], epsilon=0.5)
        >>> session.spent
        PureDP(epsilon=0.5)
        """
        spend, asked = (
            Spend(epsilon, delta, rho, accuracy, split),
            read_intervals(interval, sampling),
        )
        require_interval(query, asked)
        found = self._release(query, weights, spend, asked, engine, reuse, limits)
        if isinstance(query, PrivateQuery):
            return change_result(query, found[0].frame)
        return [change_result(*pair) for pair in zip(query, found.frames, strict=True)]

    @overload
    def release(
        self,
        query: PrivateQuery,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: None = None,
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
    ) -> Release: ...
    @overload
    def release(
        self,
        query: Sequence[PrivateQuery],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: Sequence[Number] | None = None,
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
    ) -> Releases: ...
    @named_spend(1)
    def release(
        self,
        query: PrivateQuery | Sequence[PrivateQuery],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
        weights: Sequence[Number] | None = None,
        interval: Number | None = None,
        sampling: bool = False,
        engine: PolarsMode = "auto",
        reuse: Reuse = "never",
        limits: Limits = "auto",
    ) -> Release | Releases:
        """As `collect`, but with the plan and the cost. For several queries, a sequence of
        releases that all state the cost of the whole batch.

        Raises
        ------
        PlanMismatch
            When the session requires approval and this plan has none; nothing is charged.
        """
        spend, asked = (
            Spend(epsilon, delta, rho, accuracy, split),
            read_intervals(interval, sampling),
        )
        require_unchanged(query)
        found = self._release(query, weights, spend, asked, engine, reuse, limits)
        return found[0] if isinstance(query, PrivateQuery) else found

    def _release(
        self,
        query: PrivateQuery | Sequence[PrivateQuery],
        weights: Sequence[Number] | None,
        spend: Spend,
        interval: Intervals | None,
        engine: PolarsMode,
        reuse: Reuse,
        limits: Limits,
    ) -> Releases:
        batch, sources, payer = batch_of(query, weights, limits, spend, self._payer)
        return payer.release(batch, sources, spend, interval, engine, ReusePolicy(reuse))

    # -- streams ---------------------------------------------------------------------------------

    def stream(
        self,
        name: str,
        query: PrivateQuery,
        *,
        by: str,
        every: str = "1d",
        start: dt.date,
        periods: int,
        delay: str | dt.timedelta | None = None,
        monotone: bool = False,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
    ) -> Stream:
        """Running totals of a query, published period after period for one charge.

        The first call with a name charges the spend for all periods at once. Later calls, also in
        other processes, open the stream again and charge nothing. `Stream.release` publishes a
        period.

        Parameters
        ----------
        name
            The name of the stream, within a budget of the ledger.
        query
            A query of this session with counts and sums, of all rows or by public keys.
        by
            The column of dates or datetimes that decides the period of a row. A datetime with a
            zone counts by the date there. Rows in no period, and rows without a date, are not
            counted.
        every
            How long a period is: ``"1d"``, ``"1w"`` from Monday on, ``"1mo"``, ``"1q"`` or
            ``"1y"``.
        start, periods
            The first day of the first period, and the number of periods.
        delay
            How long a period waits after its end before it may be released, so that late rows
            count: a duration as Polars writes it (``"2d"``, ``"36h"``, ``"1mo"``) or a timedelta.
            Periods end at midnight in the time zone of the column, or in UTC if it has none, by the
            machine's clock. It does not change cost or guarantee. None releases periods at any
            time.
        monotone
            Whether totals never fall: a total below the one before is replaced by it. This is
            post-processing, which biases totals slightly upwards.
        epsilon, delta, rho, accuracy, split
            As for `PrivateQuery.plan`. An accuracy is of the total with the largest error.

        Raises
        ------
        UnsupportedOperation
            When the query has a step, aggregate or unit without a known proof for streams; the
            message names it.
        UnboundedSensitivity
            When no limit bounds how much one individual adds over all nights.
        LedgerError
            When a stream of this name was opened with another query, schedule or spend.
        BudgetExceeded
            When the cost exceeds the remaining budget.
        PlanMismatch
            When the session requires approval and the plan has none: `plan_stream` returns the
            plan.

        Examples
        --------
        >>> import datetime as dt
        >>> import polars as pl, dpframe as dp
        >>> days = pl.DataFrame({"day": [dt.date(2027, 1, d) for d in (1, 1, 2, 3)]})
        >>> session = dp.Session(rho=0.1)
        >>> signups = session.protect(days, unit=dp.Rows()).agg(dp.count().alias("n"))
        >>> first = dt.date(2027, 1, 1)
        >>> stream = session.stream("signups", signups, by="day", start=first, periods=3, rho=0.1)
        >>> stream.release(first).columns
        ['period', 'n', 'n_total']
        >>> session.spent
        ZCDP(rho=0.1)
        """
        spend = Spend(epsilon, delta, rho, accuracy, split)
        schedule = _schedule(by, every, start, periods, delay)
        asked, payer = self._asked_stream(name, query, schedule, monotone, spend)
        relation = asked.prepared.query.relation
        if payer.streamed.setdefault(name, relation.token) != relation.token and not relation.named:
            raise _of_any_frame(name)
        if (
            payer.ledger.streams.find(name) is None
        ):  # a failure would otherwise come after the charge
            rehearse(asked.prepared, schedule, asked.source.opened(relation.token, "auto"))
        return Stream(asked, payer, payer.open_stream(asked.prepared, asked.opening))

    def plan_stream(
        self,
        query: PrivateQuery,
        *,
        by: str,
        every: str = "1d",
        start: dt.date,
        periods: int,
        delay: str | dt.timedelta | None = None,
        monotone: bool = False,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accuracy: Mapping[str, Number] | None = None,
        split: Split = "least error",
    ) -> Plan:
        """The plan that `stream` charges. Reads no data and charges nothing. See `stream` for
        parameters and errors.
        """
        spend = Spend(epsilon, delta, rho, accuracy, split)
        schedule = _schedule(by, every, start, periods, delay)
        return self._asked_stream("plan", query, schedule, monotone, spend)[0].prepared.plan

    def _asked_stream(
        self, name: str, query: PrivateQuery, schedule: Schedule, monotone: bool, spend: Spend
    ) -> tuple[StreamRequest, Payer]:
        require_query(query)
        lacking = limit_of(query)
        if lacking is not None:  # name the limits of streams: those of one night are refused next
            facts = lacking.rows.relation.facts
            require_streamable(facts.unit, schedule.by)
            raise no_limit_of_nights(facts.identifier, schedule.by)
        asked, source, owner = parts(query)
        payer = self._payer.responsible_for(owner)
        if payer.whole is not None:
            raise no_stream_of_part()
        if payer.ledger.identities and not asked.relation.named:
            raise _of_any_frame(name)
        prepared = payer.prepare_stream(asked, schedule, spend)
        if monotone:
            prepared = with_rising_totals(prepared)
        made = StreamRequest(
            short_text(name, "name"), prepared, schedule, bool(monotone), source, spend
        )
        return made, payer


def _schedule(
    by: str, every: str, start: dt.date, periods: int, delay: str | dt.timedelta | None
) -> Schedule:
    return Schedule(by, every, start, periods, None if delay is None else Delay.of(delay))


def _of_any_frame(name: str) -> UnsupportedOperation:
    """The refusal of a frame without a name. The same individuals could be in two such frames,
    and each would move the sums of one stream.
    """
    return UnsupportedOperation(
        "a stream reads one frame, and this frame has no name of its own",
        where=f"stream({name!r}, ...)",
        remedy='name it: session.protect(..., name="visits"), and give no other frame this name',
    )


class _PartSession(Session):
    """The session of one part of a divided frame: it pays for that part, and protects no other."""

    def __init__(self, payer: Payer) -> None:
        SessionBudget.__init__(self, payer)
