"""Repeated queries: results that were kept, are finished, or are begun in such a way that every
process sees it.

A kept result is returned unchanged, which is post-processing. Nothing that is looked at here
follows from private data. A charge whose result is lost is never repeated unless the caller
requests it. A lock held by the computing process shows that a charge is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Literal, TypeAlias, get_args
from uuid import uuid4

import polars as pl

from dpframe.aggregates.aggregate import Query
from dpframe.api.files import Content, NotKept, kept_blobs, pack, unpack
from dpframe.api.release import Answers, Releases
from dpframe.core.exact import show_input
from dpframe.errors import DPFrameError, LedgerError, PlanMismatch, UnsupportedOperation
from dpframe.frames.definition import definition
from dpframe.frames.relation import chain_words, frames_of
from dpframe.ledger.kept import (
    Attempt,
    Begun,
    Identity,
    Key,
    Overtaken,
    UnderWay,
    content_digest,
    run_key,
    same_key,
)
from dpframe.ledger.ledger import Beginning, Keeping
from dpframe.plan.document import earlier_fingerprint, job_digest
from dpframe.plan.types_read import digest_of_types, types_read
from dpframe.release import Intervals, Keep
from dpframe.release.results import Doubts
from dpframe.report import Plan
from dpframe.runner import Results


def releases_frame(keeping: Keeping) -> pl.DataFrame:
    """One row per result whose content was kept, in the order of charges."""
    found = [a for a in keeping.every() if a.content is not None and a.pruned is None]
    columns = {name: [words(attempt)[name] for attempt in found] for name in _TEXTS}
    return pl.DataFrame(
        {
            "fingerprint": pl.Series(
                [a.begun.identity.fingerprint for a in found], dtype=pl.String
            ),
            "time": pl.Series([a.time for a in found], dtype=pl.Datetime("us", "UTC")),
            **{name: pl.Series(values, dtype=pl.String) for name, values in columns.items()},
            "number": pl.Series([a.number for a in found], dtype=pl.Int64),
        }
    )


_TEXTS = ("frame", "cost", "query", "run", "periods", "parameters")


def standing(keeping: Keeping, attempt: Attempt) -> str:
    """The state of a result: ``kept``, ``under way``, ``lost``, ``pruned``, ``missing`` or
    ``CHANGED`` contents, or ``unfinished`` if it was never handed out; and whether it was paid
    for again.
    """
    found = _found(keeping, attempt)
    return f"{found}, paid anew" if attempt.is_replaced else found


def _found(keeping: Keeping, attempt: Attempt) -> str:
    if attempt.pruned is not None:
        return "pruned"
    try:
        blobs = kept_blobs(attempt, keeping)
    except LedgerError:
        return "unreadable"
    if attempt.content is not None:
        if blobs is None:
            return "missing"
        return "kept" if content_digest(blobs) == attempt.content else "CHANGED"
    if keeping.contents.is_present(attempt.begun.token):
        return "under way"
    return "lost" if blobs is None or not keeping.is_open(attempt.number) else "unfinished"


def words(attempt: Attempt) -> dict[str, str | None]:
    """The text that describes a result, except its time and plan."""
    begun, identity = attempt.begun, attempt.begun.identity
    given = ", ".join(f"{name}={value}" for name, value in identity.parameters)
    return {
        "frame": ", ".join(identity.frames),
        "cost": attempt.cost.words(),
        "query": begun.words,
        "run": begun.run,
        "periods": identity.period or begun.place,
        "parameters": given or None,
    }


Reuse: TypeAlias = Literal["never", "same"]

_LONGEST = 300
"""Characters that are kept of a query in words."""


@dataclass(frozen=True, slots=True)
class ReusePolicy:
    """What to do if the same query ran before."""

    reuse: Reuse = "never"  # ``"same"``: hand out the result of the same that is kept
    run: str | None = None  # The name of a run that is to be made once only
    again: bool = False  # Whether to pay again for a result that was paid for and lost
    period: str | None = None  # Of a stream, which of its results this is

    def __post_init__(self) -> None:
        if self.reuse not in get_args(Reuse):
            raise UnsupportedOperation(
                f"reuse={show_input(self.reuse)} is not known",
                where="collect(..., reuse=...)",
                remedy='write reuse="never" or reuse="same"',
            )

    def key(self, identity: Identity, job: str | None) -> Key | None:
        """The key under which it may begin only once."""
        if self.run is not None:
            return run_key(self.run, job)
        return same_key(identity) if self.reuse == "same" else None


ONCE_MORE = ReusePolicy()
"""Release it once more, regardless of earlier releases."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results and how they were obtained."""

    frames: list[pl.DataFrame]  # The results
    origin: str  # Equal for results of one charge only
    doubts: Doubts  # The doubts about each result that follow from its noisy numbers
    reused: bool = False  # Whether they were kept, and nothing was charged
    remark: str = ""  # A sentence for people, if there is anything to say
    content: Content | None = None  # What was kept of it
    place: int | None = None  # Which limit was found, where that is recorded
    # Whether they are by the plan that the edition before made, whose noise is another.
    is_before: bool = False

    def released(
        self,
        plan: Plan,
        answers: Sequence[Mapping[str, Answers]],
        plain: Sequence[frozenset[str]],
        warnings: Sequence[tuple[str, ...]],
    ) -> Releases:
        """The results as analysts get them, with what they answer; see `Releases`."""
        content = self.content
        return Releases(
            self.frames,
            plan
            if content is None or not self.reused
            else content.plan,  # differs in what was left
            answers,
            plain,
            reused=self.reused,
            remark=self.remark,
            origin=self.origin,
            released=None if content is None else content.released,
            warnings=warnings,
        )


Run: TypeAlias = "Callable[[Keep | None], Results]"
"""Charges, computes, and keeps the result if requested."""


def identity_of(
    queries: Sequence[Query], plan: Plan, interval: Intervals | None, repeat: ReusePolicy
) -> Identity:
    """The identity of the results of queries."""
    names = (frame.name for query in queries for frame in frames_of(query.relation))
    return Identity(
        plan.fingerprint,
        tuple(dict.fromkeys(names)),
        tuple(
            (*(() if q.groups is None else q.groups.names), *(output.name for output in q.outputs))
            for q in queries
        ),
        None if interval is None else interval.words,
        tuple(sorted((one.name, one.value) for one in plan.parameters)),
        repeat.period,
        _types(queries, plan),
        earlier_fingerprint(plan),
    )


def _types(queries: Sequence[Query], plan: Plan) -> str:
    """The types of all columns that queries read, for each query separately; and the keys by
    which other frames determine the owners of rows.
    """
    asked = [output.definition for output in plan.outputs]
    by = [None if q.groups is None else definition(q.groups.by) for q in queries]
    each = zip(queries, by, strict=True)
    types = [types_read(q.relation, keys, *asked) for q, keys in each]
    frames = (frame for query in queries for frame in frames_of(query.relation))
    owners = [frame.owners.parts() for frame in frames if frame.owners is not None]
    return digest_of_types([*types, owners] if owners else types)


def is_named(queries: Sequence[Query]) -> bool:
    """Whether all their frames have distinct names."""
    return all(frame.named for query in queries for frame in frames_of(query.relation))


def words_of(queries: Sequence[Query]) -> str:
    """The queries, in words."""
    found = "; ".join(_words(query) for query in queries)
    return found if len(found) <= _LONGEST else f"{found[: _LONGEST - 4]} ..."


def _words(query: Query) -> str:
    by = "" if query.groups is None else f".group_by({', '.join(query.groups.names)})"
    outputs = ", ".join(f"{output.name}={output.words}" for output in query.outputs)
    return f"{chain_words(query.relation)}{by}.agg({outputs})"


class ReleaseCache:
    """Finds results that are kept, and keeps those that are made.

    Parameters
    ----------
    keeping
        What is kept of the budget's results.
    queries
        The queries.
    plan
        Of it.
    interval
        The intervals of its results.
    repeat
        What to do if the same query ran before.
    plan_before
        Makes the plan that the edition before made of the same at the same spend.
    """

    def __init__(
        self,
        keeping: Keeping,
        queries: Sequence[Query],
        plan: Plan,
        interval: Intervals | None,
        repeat: ReusePolicy,
        plan_before: Callable[[], Plan],
    ) -> None:
        self._plan_before = plan_before
        self._keeping = keeping
        self._plan = plan
        self._repeat = repeat
        self._is_named = is_named(queries)
        self._words = words_of(queries)
        self._identity = identity_of(queries, plan, interval, repeat)
        self._job = None if repeat.run is None else job_digest(plan)
        self._key = repeat.key(self._identity, self._job)
        self._remark = ""
        self._content: Content | None = None
        self._number = 0
        if repeat.reuse == "same" and not self._is_named:
            raise _unnamed()

    def done(self, run: Run) -> Outcome:
        """The results: those that are kept, or else those of `run`, which are kept then."""
        while True:
            found = self._keeping.newest(self._key, self._identity)
            if found is not None:
                self._require_same(found)
            attempt = found or self._newest_before()
            answer = None if attempt is None else self._answer(attempt)
            if attempt is not None and isinstance(answer, Outcome):
                apart = attempt.begun.identity.differences(self._identity)
                return replace(answer, is_before=bool(apart))
            try:
                return self._made(run, None if found is None else found.number)
            except Overtaken:
                continue

    def _newest_before(self) -> Attempt | None:
        """The last result by the plan that the edition before made of the same."""
        identity = self._identity_before
        if identity is None or self._repeat.run is not None:
            return None
        return self._keeping.newest(self._repeat.key(identity, self._job), identity)

    @cached_property
    def _identity_before(self) -> Identity | None:
        """The identity of the same query in the previous edition, whose noise was different."""
        if self._key is None:
            return None
        try:
            plan = self._plan_before()
        except DPFrameError:  # the previous edition did not have this plan
            return None
        release = earlier_fingerprint(plan)
        if release == self._identity.release:
            return None
        return replace(self._identity, fingerprint=plan.fingerprint, release=release)

    def _made(self, run: Run, lost: int | None) -> Outcome:
        self._keeping.contents.prepare()
        token = uuid4().hex
        run_name = self._repeat.run
        about = run_name, self._is_named, None, self._job
        begun = Begun(self._identity, self._words, token, *about)
        beginning = Beginning(begun, self._plan.cost, self._key, lost)
        made = self._keeping.contents.present(token, lambda: run(Keep(beginning, self._write)))
        origin = self._origin(self._number)
        remark, content = self._remark, self._content
        return Outcome(made.frames, origin, made.doubts, False, remark, content, made.place)

    def _write(
        self, number: int, frames: Sequence[pl.DataFrame], doubts: Doubts, place: int | None
    ) -> str | None:
        """Keep results. If that fails they are still returned, because they are paid for."""
        self._number = number
        content = Content([*frames], self._plan, datetime.now(UTC), doubts, place)
        try:
            blobs = pack(content, self._identity, number, self._keeping)
            self._keeping.contents.write(number, blobs)
        except (LedgerError, NotKept) as error:
            why = error.what if isinstance(error, LedgerError) else str(error)
            self._remark = f"the result is NOT kept, so it is lost if you lose it: {why}"
            return None
        self._content = content
        return content_digest(blobs)

    def _require_same(self, found: Attempt) -> None:
        """Refuse a run that was one of something else."""
        identity = found.begun.identity
        apart = identity.differences(self._identity)
        if apart and self._identity_before is not None:
            apart = identity.differences(self._identity_before) and apart
        if apart:
            raise PlanMismatch(
                f"the run {self._repeat.run!r} was begun on {found.time:%Y-%m-%d %H:%M} UTC with "
                f"another {' and '.join(apart)}: {found.begun.words}",
                where="--run-id",
                remedy="give each run of a job its own name, such as the day",
            )

    def _answer(self, found: Attempt) -> Outcome | Attempt:
        """The results of an attempt, or the attempt if they are lost and may be paid for
        again."""
        if found.content is None and self._keeping.contents.is_present(found.begun.token):
            raise under_way(found)
        if found.content is None:  # who computed it may have been done just now
            found = self._keeping.attempt(found.number) or found
        try:
            content = content_of(self._keeping, found)
        except NotKept as why:
            if self._repeat.again:
                return found
            raise lost(found, str(why)) from None
        said = f"{content.released:%Y-%m-%d %H:%M} UTC"
        if found.begun.run is not None:
            said += f" in the run {found.begun.run!r}"
        remark = f"this is the result that was released on {said}, and nothing was charged for it"
        if found.content is None:
            digest = content_digest(kept_blobs(found, self._keeping) or [])
            self._keeping.finish(found.number, digest)
            remark += "; who computed it had ended before it could be handed out"
        origin = self._origin(found.number)
        return Outcome(content.frames, origin, content.doubts, True, remark, content, content.place)

    def _origin(self, number: int) -> str:
        return f"{self._keeping.origin} {number}"


def content_of(keeping: Keeping, attempt: Attempt) -> Content:
    """What is kept of an attempt."""
    if attempt.pruned is not None:
        raise NotKept(f"it was pruned {attempt.pruned}")
    blobs = kept_blobs(attempt, keeping)
    if blobs is None and attempt.content is not None:
        raise NotKept("the stored result is missing")
    if blobs is None and keeping.is_open(attempt.number):
        raise NotKept("who computed it ended before it was kept")
    if blobs is None:
        raise NotKept("it failed, or could not be kept when it was released")
    return unpack(blobs, attempt, keeping)


def under_way(found: Attempt) -> UnderWay:
    """The refusal of a query that another process is computing."""
    run = "" if found.begun.run is None else f" in the run {found.begun.run!r}"
    return UnderWay(
        f"the same is being computed{run} since {found.time:%Y-%m-%d %H:%M:%S} UTC, and was "
        "charged then",
        remedy="wait until it is done, and ask again: you then get its result",
    )


def lost(found: Attempt, why: str) -> LedgerError:
    """The refusal of what was paid and is not there."""
    run = found.begun.run
    what = "the same" if run is None else f"the run {run!r}"
    again = "`dpframe run JOB --again`"
    again = f'collect(..., reuse="never"), or {again}' if run is None else again
    return LedgerError(
        f"{what} was charged {found.cost.words()} on {found.time:%Y-%m-%d %H:%M} UTC, and its "
        f"result cannot be handed out: {why}",
        remedy=(
            "put the result back from a backup, and ask again",
            f"pay again: {again}",
        ),
    )


def _unnamed() -> UnsupportedOperation:
    return UnsupportedOperation(
        "reuse= needs frames with names that no other frame of the session has",
        where='reuse="same"',
        why="two frames could otherwise be taken for one",
        remedy=(
            'name the frame: session.protect(frame, unit=..., name="people")',
            'in a job in TOML, write name = "people" in [source]',
        ),
    )


def new_outcome(made: Results) -> Outcome:
    """Results that are not kept."""
    return Outcome(made.frames, uuid4().hex, made.doubts, place=made.place)
