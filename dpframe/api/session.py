"""Sessions: one budget, one kind of unit, and the frames it protects."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from dpframe.api.arguments import IntoBounds, IntoKeys
from dpframe.api.declared import declared, stated_typical
from dpframe.api.divide import divide
from dpframe.api.frame import PrivateFrame, rows_of
from dpframe.api.payer import Payer, require_windows
from dpframe.api.source import protected_source
from dpframe.api.streaming_session import StreamingSession
from dpframe.api.through import Through
from dpframe.charge import budget_of, resolve_composition
from dpframe.core.budget import Budget
from dpframe.core.exact import Number, as_given
from dpframe.core.units import Unit, as_unit
from dpframe.core.windows import Every, as_every
from dpframe.errors import InvalidBudget, LedgerError, UnsupportedOperation
from dpframe.frames.facts import protected_facts
from dpframe.frames.relation import Relation
from dpframe.ledger.parts import PartLedger
from dpframe.ledger.place import open_ledger
from dpframe.sealed import all_sealed


@all_sealed
class Session(StreamingSession):
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
        categories: Mapping[str, Sequence[Any]] | None = None,
        schema: Mapping[str, Any] | None = None,
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
        _require_text(name)
        through = unit if isinstance(unit, Through) else None
        who = as_unit(unit) if through is None else through._unit_in(self)
        require_windows(who, payer.ledger.per)
        if payer.unit is not None and payer.unit.kind != who.kind:
            raise _other_kind(payer.unit, who, unit)
        source = protected_source(frame, engine, schema, storage_options)
        source = (source if through is None else through._owned(source)).within(memory, spill)
        facts = protected_facts(declared(source, bounds or {}, categories or {}), who)
        payer.unit = who
        label, named = name or payer.name or "data", payer.is_name(name, source)
        stated = stated_typical(typical or {}, facts.columns)
        relation = Relation.of(
            label, facts, source.remarks, named=named, by_place=not name, typical=stated
        )
        if through is not None:
            relation = through._in_relation(relation)
        return PrivateFrame(relation, source, self)

    def partition(
        self,
        frame: PrivateFrame,
        by: Any,
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


def _other_kind(known: Unit, who: Unit, given: object) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"the session protects {known.kind}, and this frame would be protected as {who.kind}",
        where=f"unit={as_given(given)}",
        why="their costs do not add up",
        remedy="open another session for this kind of unit",
    )


def _require_text(name: object) -> None:
    if not isinstance(name, str | None):
        raise UnsupportedOperation(
            f"the name of a frame is text, not a {type(name).__name__}",
            where="session.protect(..., name=...)",
            remedy='write for example name="people"',
        )


class _PartSession(Session):
    """The session of one part of a divided frame: it pays for that part, and protects no other."""

    def __init__(self, payer: Payer) -> None:
        StreamingSession.__init__(self, payer)
