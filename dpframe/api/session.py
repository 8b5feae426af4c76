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
from dpframe.errors import LedgerError, UnsupportedOperation
from dpframe.frames.facts import protected_facts
from dpframe.frames.relation import Relation
from dpframe.ledger.parts import PartLedger
from dpframe.ledger.place import open_ledger
from dpframe.ledger.windows import Every, as_every
from dpframe.sealed import all_sealed


@all_sealed
class Session(StreamingSession):
    """A privacy budget and the frames whose release it pays for.

    Parameters
    ----------
    budget
        `PureDP`, `ApproxDP` or `ZCDP`; its kind is the measure in which the session counts.
    epsilon, delta, rho
        Short for a budget: epsilon alone is `PureDP`, with delta `ApproxDP`, rho is `ZCDP`.
    ledger
        Where the budget is kept: None for memory, which forgets it with the process; a path or
        ``sqlite:///`` URL for a file, a ``postgresql://`` URL for a database. In it each `name` has
        one budget that is created once.
    name
        What plans call the session, and the name of its budget in the ledger, where it is
        ``"default"`` if left out.
    composition
        How an (epsilon, delta) is spent. ``"sum"``: costs add up as they are. ``"zcdp"``: it is
        turned into the largest rho that implies it, and plans are charged what they cost in rho.
        Noise is the same; many small plans then cost about the root of what they do in sums, and a
        few large ones more. Spends are (epsilon, delta), which each plan satisfies on its own, or
        `rho=`; `spent`, `remaining` and costs of plans are amounts of rho. ``"gdp"``: the same
        with the square of mu of Gaussian differential privacy, which has room for an eighth more
        Gaussian noise, and for less of any other.
    require_approval
        Whether a plan runs only if its fingerprint is approved in the ledger, under the session's
        `name`: see ``dpframe approve``. With a key in the environment (``DPFRAME_APPROVAL_KEY``)
        only approvals count that were signed with it.
    keep_releases
        Whether to keep results next to the ledger: in a folder that only the file's owner can
        read, in a table in PostgreSQL, or in memory without a ledger. Then ``collect(...,
        reuse="same")`` returns them again at no cost, and a lost one can be restored.
    per
        None for one budget; ``"1d"``, ``"1w"``, ``"1mo"``, ``"1q"`` or ``"1y"`` for a budget of
        this amount in each calendar window of the data's time. Frames are then protected with
        `Identifier` and the same window, and a plan is charged to each window whose rows it may
        read. A new month has a whole budget, at any time it is queried. `spent` is what the
        window has spent that has spent most, `remaining` what it has left, `remaining_in` that of
        another.
    must_exist
        Whether the budget must have been created before, by ``dpframe ledger create`` or an earlier
        session. Then a mistyped name or path is an error; otherwise it opens a new budget. In a
        job that ``dpframe run`` runs, it is always an error.
    create
        Whether the budget may be new in a job that ``dpframe run`` runs. Elsewhere a session opens
        a budget that is new unless it must exist.

    Raises
    ------
    InvalidBudget
        When there is no budget, or one that is not positive and finite, or it does not fit the
        composition; when the window length is not one of those listed.
    LedgerError
        When the ledger cannot be opened, does not verify, or has another budget by that name; when
        the name of a new budget looks like that of another.
    NoBudget
        When the budget does not exist, and it must or the session is one of a job that may not open
        it. Nothing is created then.

    Guarantee
    ---------
    All results of `collect` and `release` together are differentially private at `budget` for the
    unit of `protect`, even if each query is chosen after seeing earlier results. A plan runs only
    if the sum of all costs stays within the budget, which is a valid privacy filter (Rogers,
    Roth, Ullman & Vadhan 2016; for zCDP Feldman & Zrnic 2021). With a ledger this holds of all
    sessions together that use the same name in it, now or earlier, in this process or another.
    With ``composition="zcdp"`` all plans together are rho-zCDP by the filter for rho, and rho
    implies the budget (Canonne, Kamath & Steinke 2020, Prop. 12), rounded towards less. With
    ``composition="gdp"`` they are mu-GDP by the filter for mu (Smith & Thakurta 2022), and mu
    implies the budget (Balle & Wang 2018, Theorem 8), rounded towards less. With `per` all this
    holds of frames that differ in one person's rows in one window (`Timeline` has the proof), and
    n times over for the whole of a person with rows in n windows.

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
        every = None if per is None else as_every(per)
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
        """Put a frame under the session's protection: the trust boundary.

        Parameters
        ----------
        frame
            A Polars DataFrame or LazyFrame; the path of a Parquet, CSV, IPC or NDJSON file, or a
            pattern such as ``"visits/*.parquet"``. Also a folder of Parquet files, a Delta table
            or its folder, a pyarrow Table, batch reader or dataset. On a DuckDB relation or a
            Spark DataFrame queries run on that engine. The data owner is responsible for
            everything that was done to it before; dpframe checks everything after. Each line of a
            CSV or NDJSON file is a row, read as text and parsed by `schema`. A reader can be read
            only once, so its batches are written to a temporary file without a name as they come.
            A relation must yield the same rows each time.
        unit
            Whom to protect: `dpframe.Rows`, `dpframe.Identifier` or the name of its column, or
            `dpframe.Through` another frame that knows whose a row is.
        name
            What plans call the frame. Frames without one are called by their place in each plan,
            "data" and "data 2", or by the session's name if it has one. A name also stands for the
            frame where `partition` goes on with what its parts were charged before, so two frames
            have two names.
        bounds
            Declared bounds of columns, {column: (lo, hi)}. Used for tightness; aggregates clamp
            again.
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
            What a value of a numeric column is like, {column: value}, from what is public. Plans
            show it and warn about bounds and limits whose noise is too large for it. Privacy does
            not depend on it; fingerprints do, because risks follow from it.
        engine
            What runs queries of files: ``"polars"``, which is the default, ``"duckdb"`` or
            ``"spark"``. Other frames are on an engine already.
        storage_options
            For a path in an object store, such as ``"s3://bucket/visits/*.parquet"`` or the
            folder of a Delta table: the options of `polars.scan_parquet` and `polars.scan_delta`,
            for example ``{"aws_access_key_id": ..., "aws_secret_access_key": ...}``. They are in
            no plan, fingerprint, ledger, log, message or representation.
        memory
            About how much memory queries of individuals may take on Polars: ``"2GB"``, a number of
            bytes, or ``"auto"`` for three quarters of what the machine or its control group has.
            Where that is not enough by the sizes of files, which are taken as public, people are
            divided into buckets and counted a bucket at a time. Results are the same. None is
            ``"auto"`` where the sizes of all files are known, and as much as it takes elsewhere.
        spill
            Whether rows may be divided by temporary files for that, in the folder of ``TMPDIR``, if
            that is a disk with five times the files' bytes free, ten times if there is text. They
            have no names, so no other process can open them and none remains even after a kill.
            Without them each bucket is a scan of its own, and the frame must yield the same rows
            each time.

        Raises
        ------
        UnsupportedOperation
            For another kind of frame, or a unit unlike that of the session's other frames.
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
        """Divide a frame into disjoint parts; only the most expensive are paid for.

        Parameters
        ----------
        frame
            A frame of this session, or of one of its parts.
        by
            A column, a row-wise expression, or a list of them.
        keys
            As for `group_by`: a list, Series, DataFrame or ``{column: values}`` (their product);
            known categories where left out. Rows with other keys are in no part. A key in a list
            may be a parameter, ``keys=[day]``, and a list a parameter that is one: then one
            approval of a range of it covers the parts of all its values.
        delay
            Of parts by a date, how long after its end each may be released at the earliest, so that
            rows that come late count: as for `stream`. It changes nothing about cost or guarantee.
        every
            With a `delay`, how long the period is that has the date of a key: ``"1d"``, which it is
            where left out, ``"1w"``, ``"1mo"``, ``"1q"`` or ``"1y"``.

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
            When there are more than 10,000 parts, or two keys are equal in Python; and for a
            `delay` where keys have no date, or more than one, or `every` without one.
        InvalidBudget
            When the frame belongs to another session.
        UnboundedSensitivity
            When an individual may have rows in any number of parts.

        Guarantee
        ---------
        Neighbouring frames differ in at most g parts: `contributions` of them when rows are added
        or removed, twice as many when they change. With an identifier it is as many as
        ``limit_groups(g, by=...)`` allows, which then chooses the same groups for all parts. The
        session is charged the sum of the g largest totals of parts, before data is read, in any
        order of queries on parts (parallel composition; the argument is in
        `dpframe/ledger/parts.py`).

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
        all rows of one individual, at any time, are within its `contributions`. Nor may rows
        vanish where the first dates are kept, or fail a filter before that limit which they have
        passed.

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
