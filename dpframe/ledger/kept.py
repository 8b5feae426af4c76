"""Results that a ledger keeps: which were begun, by whom, and whose contents exist.

Two kinds of records say so. ``begun`` comes directly before a charge whose result is to be kept.
It has the identity of the result, the run that requested it, and the lock that shows whether its
process still lives. ``kept`` comes directly before the ``released`` of that charge, with the
digest of the content, which is next to the ledger. So a charge without ``kept`` is under way, or
its result was lost on the way; and a process that dies after the content was written leaves all
that is needed to finish without paying again. ``pruned`` says that a content was given up, before
it is deleted; its charge stays.

Nothing here follows from private data: names, plans, parameters and digests of what was released.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, TypeAlias

from dpframe.core.budget import Budget
from dpframe.errors import LedgerError
from dpframe.ledger.record import Draft, Record

RESULTS = frozenset({"begun", "kept", "pruned"})
"""Kinds of records of results."""

_ANY = 2**63 - 1
"""As many records as there are."""

_DIGEST = re.compile("[0-9a-f]{64}")
_TOKEN = re.compile("[0-9a-f]{32}")


class UnderWay(LedgerError):
    """The same is being computed by a process that lives; nothing was charged."""


class Overtaken(LedgerError):
    """Another process began the same result meanwhile; the caller looks it up again."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of one result of a budget. Two questions are the same where all of it is."""

    fingerprint: str  # The fingerprint of the plan: query, steps, keys, spend and noise
    frames: tuple[str, ...]  # Names of the frames, in order of their first use
    # Names of the outputs of each query in order, which no fingerprint has.
    outputs: tuple[tuple[str, ...], ...]
    interval: str | None = None  # The confidence of intervals in the result, exactly; None without
    # The parameters of the job, in the order of their names.
    parameters: tuple[tuple[str, str], ...] = ()
    # The stream or window, where the result is one of several by the same plan.
    period: str | None = None
    # The digest of the types of all columns that are read; None where an earlier version kept it.
    types: str | None = None
    # The digest of what is released, which is what the edition before called the fingerprint; None
    # where that edition kept it. What it leaves out of the plan, such as what is typical, changes
    # no result.
    release: str | None = None

    @property
    def digest(self) -> str:
        """Equal for equal ones only."""
        return hashlib.sha256(_canonical([self.released, self._fields()]).encode()).hexdigest()

    @property
    def released(self) -> str:
        """The digest of what is released."""
        return self.fingerprint if self.release is None else self.release

    def _fields(self) -> dict[str, object]:
        """All but the digests of the plan, as records keep it."""
        types = {} if self.types is None else {"types": self.types}
        return {
            "frames": list(self.frames),
            "outputs": [list(names) for names in self.outputs],
            "interval": self.interval,
            "parameters": dict(self.parameters),
            "period": self.period,
            **types,
        }

    def differences(self, other: Identity) -> list[str]:
        """The differences from another identity, in words; missing types count as equal."""
        called = {
            "outputs": "outputs or their order",
            "types": "type of a column",
        }
        names = [part.name for part in fields(self) if part.name not in ("fingerprint", "release")]
        if None in (self.types, other.types):
            names.remove("types")
        apart = [name for name in names if getattr(self, name) != getattr(other, name)]
        plan = ["plan"] if self.released != other.released else []
        return plan + [called.get(name, name) for name in apart]


@dataclass(frozen=True, slots=True)
class Begun:
    """A result that a process began to compute."""

    identity: Identity  # The identity of the result
    words: str  # The query, for people
    token: str  # The name of the lock that its process holds
    run: str | None = None  # The name of the run that is to be made once, if it is one
    is_named: bool = True  # Whether all frames have names that were given to them
    place: str | None = None  # On which part or windows of the budget its charge falls, in words
    # For a run: the digest that identifies its job; None where an earlier version began it.
    job: str | None = None

    def draft(self, name: str, cost: Budget, after: int | None = None) -> Draft:
        """The record of it, for a budget; `after` is the charge of the attempt that was lost."""
        said = self.identity._fields() | {
            "query": self.words,
            "token": self.token,
            "run": self.run,
            "named": self.is_named,
            "place": self.place,
        }
        if self.job is not None:
            said["job"] = self.job
        if self.identity.release is not None:
            said["release"] = self.identity.release
        fingerprint = self.identity.fingerprint
        return Draft(name, "begun", after, fingerprint, amount=cost, why=json.dumps(said))

    @classmethod
    def read(cls, record: Record) -> Begun:
        """What a record says. Raises `ValueError, TypeError, KeyError` when it makes no sense."""
        said = json.loads(record.why or "")
        kinds = {
            **dict.fromkeys(("frames", "outputs"), list),
            **dict.fromkeys(("interval", "period", "run", "place"), str | None),
            **dict.fromkeys(("query", "token"), str),
            "parameters": dict,
            "named": bool,
        }
        job, types, release = (said.pop(name, None) for name in ("job", "types", "release"))
        if not isinstance(said, dict) or said.keys() != kinds.keys():
            raise ValueError
        if job is not None and not (said["run"] and _DIGEST.fullmatch(job)):
            raise ValueError
        if any(found is not None and not _DIGEST.fullmatch(found) for found in (types, release)):
            raise ValueError
        if not all(isinstance(said[name], kind) for name, kind in kinds.items()):
            raise TypeError
        texts = [*said["frames"], *said["parameters"].values()]
        texts += [name for names in said["outputs"] for name in names]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError
        if not _DIGEST.fullmatch(record.fingerprint or "") or not _TOKEN.fullmatch(said["token"]):
            raise ValueError
        identity = Identity(
            str(record.fingerprint),
            tuple(said["frames"]),
            tuple(map(tuple, said["outputs"])),
            said["interval"],
            tuple(sorted(said["parameters"].items())),
            said["period"],
            types,
            release,
        )
        others = said["run"], said["named"], said["place"], job
        return cls(identity, said["query"], said["token"], *others)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One charge for a result that was to be kept."""

    number: int  # The number of the charge
    time: datetime  # When it was begun; once it is kept, when that was recorded
    begun: Begun  # What was begun
    cost: Budget  # The fingerprint of the plan
    content: str | None = None  # The digest of what is kept; None where nothing is
    is_replaced: bool = False  # Whether it was paid for again, because its result was lost
    pruned: str | None = None  # When its content was given up, and by whom, in words


Key = tuple[str, ...]
"""A run by its name and its job, or a result by its identity."""


def run_key(run: str, job: str | None = None) -> Key:
    """By the name of a run of a job; those of earlier versions have no job, and are of all jobs."""
    return ("run", run) if job is None else ("run", run, job)


def same_key(identity: Identity) -> Key:
    """The identity of a result as a key; results of earlier versions have no types, and are found
    if no typed one exists.
    """
    if identity.types is None:
        return "same", identity.digest
    return "same", replace(identity, types=None).digest, identity.types


Archive: TypeAlias = Callable[..., list[Record]]
"""Records before a checkpoint that does not name them, in the transaction that is under way. Each
is verified by its own hash; arguments are those of `dpframe.ledger.store.Tables.rows`.
"""


@dataclass(slots=True)
class Older:
    """Results whose records a checkpoint does not name, since all was over with them then."""

    until: int = 0  # The number of the checkpoint; 0 where all results are in memory
    # The number of the record that gave the ledger its key. Results before it are in memory,
    # because their records have hashes of another key.
    since: int = 0
    archive: Archive | None = None  # Where they are looked up, while a transaction is under way

    def has(self, number: int | None) -> bool:
        """Whether the result of a charge may be one of them."""
        return number is not None and self.since < number <= self.until

    def newest(self, name: str, key: Key, fingerprint: str) -> Attempt | None:
        """The last one by a key."""
        if not self.until:
            return None
        assert self.archive is not None
        wanted: dict[str, Any] = {"act": ["begun"], "name": [name], "after": self.since}
        if key[0] == "run":
            wanted["part"] = f'"run": {json.dumps(key[1])}'
        else:
            wanted["fingerprint"] = [fingerprint]
        last = self.until
        while found := self.archive(1, until=last, newest=True, **wanted):
            if key in keys_of(Begun.read(found[0])):
                return self.attempt(name, found[0].seq + 1)
            last = found[0].seq - 1
        return None

    def attempt(self, name: str, number: int) -> Attempt | None:
        """The attempt of a charge."""
        if not self.has(number):
            return None
        assert self.archive is not None
        begun = self.archive(1, seq=[number - 1], act=["begun"], name=[name])
        if not begun:
            return None
        later = self.archive(_ANY, after=number, refers=[number], act=sorted(RESULTS))
        attempts = Attempts(name)
        for one in (*begun, *later):
            attempts.take(one)
        return attempts.by_number[number]


def keys_of(begun: Begun) -> Iterator[Key]:
    """By what a result may be found."""
    if begun.run is not None:
        yield run_key(begun.run, begun.job)
    if begun.is_named:
        yield same_key(begun.identity)


@dataclass(slots=True)
class Attempts:
    """The attempts of one budget, by the numbers of their charges: those in memory, and others by
    look-up.
    """

    name: str = ""  # The name of the budget
    by_number: dict[int, Attempt] = field(default_factory=dict)  # The attempts in memory
    older: Older = field(default_factory=Older)  # The others
    _newest: dict[Key, int] = field(default_factory=dict)

    def begin(
        self, number: int, time: datetime, begun: Begun, cost: Budget, after: int | None
    ) -> None:
        """Remember a charge whose result is to be kept, `after` one whose result was lost."""
        self.by_number[number] = Attempt(number, time, begun, cost)
        if after in self.by_number:
            self.by_number[after] = replace(self.by_number[after], is_replaced=True)
        for key in keys_of(begun):
            self._newest[key] = number

    def keep(self, number: int, time: datetime, content: str) -> None:
        """Remember that its content is there."""
        self.by_number[number] = replace(self.by_number[number], time=time, content=content)

    def prune(self, number: int, words: str) -> None:
        """Remember that its content was given up."""
        if number in self.by_number:
            self.by_number[number] = replace(self.by_number[number], pruned=words)

    def take(self, record: Record) -> None:
        """Take a record of a result in."""
        time = datetime.fromisoformat(record.time)
        if record.act == "begun":
            begun = Begun.read(record)
            self.begin(record.seq + 1, time, begun, record.amount, record.refers)
        elif record.act == "pruned":
            self.prune(record.refers or 0, f"on {time:%Y-%m-%d} by {record.who}")
        else:
            self.keep(record.refers or 0, time, str(record.why))

    def attempt(self, number: int) -> Attempt | None:
        """The attempt of a charge."""
        return self.by_number.get(number) or self.older.attempt(self.name, number)

    def newest(self, key: Key | None, identity: Identity) -> Attempt | None:
        """The last one by a key of a result; a run of a job is also one that has no job, and a
        result of some types one that has none.
        """
        if key is None:
            return None
        result = self._newest_by(key, identity)
        if result is None and len(key) > 2:
            result = self._newest_by(key[:2], identity)
        return result

    def _newest_by(self, key: Key, identity: Identity) -> Attempt | None:
        number = self._newest.get(key, 0)
        result = self.by_number.get(number)
        # the edition before recorded what is `release` now as the fingerprint
        for fingerprint in dict.fromkeys((identity.fingerprint, identity.released)):
            older = self.older.newest(self.name, key, fingerprint)
            if older is not None and older.number > number:
                number, result = older.number, older
        return result

    def require_newest(self, key: Key | None, identity: Identity, number: int | None) -> None:
        """Refuse to begin a result again that another process has begun meanwhile. Raises
        `Overtaken` when the last attempt by that key is another one.
        """
        found = self.newest(key, identity)
        if key is not None and (None if found is None else found.number) != number:
            raise Overtaken(
                "another process began the same release at the same time", remedy="run it again"
            )


class Results:
    """The attempts of all budgets of a chain."""

    def __init__(self) -> None:
        self._budgets: dict[str, Attempts] = {}
        self.older = Older()

    def of(self, name: str) -> Attempts:
        """The attempts of one budget."""
        return self._budgets.get(name) or Attempts(name, older=self.older)

    def check(self, record: Record, measure: str) -> None:
        """Refuse a record of a result that no ledger writes, even with a valid seal. Raises
        `ValueError, TypeError, KeyError` when it makes no sense.
        """
        known = self.of(record.name).by_number
        if record.act == "begun":
            Begun.read(record)
            right = record.amount.measure == measure
            there = record.refers in known or self.older.has(record.refers)
            right = right and (record.refers is None or there)
        elif record.act == "pruned" and self.older.has(record.refers):
            right = bool(record.who)  # a full check knows more
        elif record.act == "pruned":
            found = known[record.refers or 0]
            right = found.content is not None and found.pruned is None and bool(record.who)
        else:
            found = known[record.refers or 0]
            right = found.content is None and bool(_DIGEST.fullmatch(record.why or ""))
            right = right and record.fingerprint == found.begun.identity.fingerprint
        if not right:
            raise ValueError

    def apply(self, record: Record) -> None:
        """Take a record in."""
        if record.act not in RESULTS:
            return
        self._budgets.setdefault(record.name, Attempts(record.name, older=self.older)).take(record)


def content_digest(blobs: Iterable[bytes]) -> str:
    """The digest of the files of one content."""
    whole = hashlib.sha256()
    for blob in blobs:
        whole.update(hashlib.sha256(blob).digest())
    return whole.hexdigest()


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
