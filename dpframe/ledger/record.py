"""A line of a ledger: what happened, sealed together with the line before it.

The hash of a record is SHA-256 over the JSON array of its fields, which include the hash of the
record before it. With a key it is HMAC-SHA-256, so that only someone with the key can write a
chain that verifies.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache
from json import JSONEncoder
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dpframe.core.budget import GDP, ZCDP, ApproxDP, Budget, PureDP
from dpframe.errors import LedgerError, NoBudget

KEY_VARIABLE = "DPFRAME_LEDGER_KEY"
"""The environment variable with the key, if any."""

FORMAT = "dpframe ledger 1"

Act: TypeAlias = Literal[
    "opened",
    "granted",
    "approved",
    "revoked",
    "charged",
    "released",
    "failed",
    "closed",
    "begun",
    "kept",
    "pruned",
    "stream",
    "drawn",
    "typed",
    "redrawn",
    "ended",
    "identified",
    "checkpoint",
    "rekeyed",
    "moved",
    "adopted",
]

ABOUT_THE_LEDGER = frozenset({"identified", "checkpoint", "rekeyed", "moved", "adopted"})
"""Records of no budget; their name is empty."""

SHORTEST_KEY = 16
"""Bytes of a key: 128 bits, if they are random."""

MEASURES: dict[str, type[Budget]] = {m.measure: m for m in (PureDP, ApproxDP, ZCDP, GDP)}

LONGEST = 4000
"""Digits of an amount; Python refuses to read more than 4,300."""

LONGEST_TEXT = 2000
"""Characters of who and why."""

_WITHIN = re.compile(r"(?P<measure>[^(]+) within \((?P<epsilon>[^,()]+), (?P<delta>[^,()]+)\)")
"""The measure of a budget of rho or mu squared that was opened as (epsilon, delta): ``zCDP within
(1, 1/1000)``. It names the whole (epsilon, delta), after the grant where it is one; amounts are of
rho or mu squared."""

_json = JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be recorded, before it has a place in the chain."""

    name: str  # The name of the budget
    # What happened. Kinds of records about budgets: ``opened``, ``granted`` (raised), ``approved``
    # (a plan may be charged to it), ``revoked``, ``charged`` (a plan was paid for), ``released``
    # and ``failed`` (its end), and ``closed`` (nothing may be charged any more). ``begun``,
    # ``kept`` and ``pruned`` are about kept results (`ledger.kept`); ``stream``, ``drawn``,
    # ``typed``, ``redrawn`` and ``ended`` about streams (`ledger.streams`). Kinds of records about
    # the ledger: ``identified`` (begun, or moved here), ``checkpoint`` (the sums of all records),
    # ``rekeyed`` (later records have another key), ``moved`` (it continues elsewhere) and
    # ``adopted`` (its head file was given up).
    act: Act
    # In ``released``, ``failed``, ``kept`` and ``pruned`` it is the number of the charge. In
    # ``begun`` it is the charge whose result was lost, if it is paid for again. In ``charged`` and
    # ``stream`` it is the approval, where one was needed. In ``drawn``, ``typed``, ``redrawn`` and
    # ``ended`` it is the record of the stream.
    refers: int | None = None
    # `fingerprint`, `unit`: the plan's, and the kind of its privacy unit, of ``charged``. In
    # ``approved`` and ``revoked`` the former, in ``opened`` the latter where it is fixed from the
    # start.
    fingerprint: str | None = None
    unit: str | None = None
    amount: Budget | None = None  # Of ``opened``, ``granted`` and ``charged``
    # `who`, `why`: the person and reason in ``granted``, ``revoked``, ``closed``, ``redrawn`` and
    # ``ended``. In ``opened`` and ``pruned``: the person. In ``approved``: the person, and the
    # plan with its signature (`ledger.approvals`). In ``charged``: the caller (`ledger.account`).
    who: str | None = None
    why: str | None = None
    # Of ``opened`` and ``granted``, where amounts are the rho that implies an (epsilon, delta):
    # that, grants included.
    within: ApproxDP | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A draft with its place in the chain. Amounts are exact fractions in text, such as 1/10."""

    seq: int
    time: str
    name: str
    act: str
    refers: int | None
    fingerprint: str | None
    unit: str | None
    measure: str | None
    main: str | None
    slack: str | None
    who: str | None
    why: str | None
    previous: str
    hash: str

    @property
    def amount(self) -> Budget:
        """What was granted or charged."""
        match = _WITHIN.fullmatch(self.measure or "")
        measure = match["measure"] if match else self.measure or ""
        return _amount(measure, self.main or "", self.slack or "")

    @property
    def within(self) -> ApproxDP | None:
        """The whole (epsilon, delta) that a budget of rho stands for, where it was opened so."""
        match = _WITHIN.fullmatch(self.measure or "")
        return ApproxDP(Fraction(match["epsilon"]), Fraction(match["delta"])) if match else None


@lru_cache(maxsize=1024)
def _amount(measure: str, main: str, slack: str) -> Budget:
    return MEASURES[measure].of(Fraction(main), Fraction(slack))


COLUMNS = tuple(f.name for f in fields(Record))
Row: TypeAlias = tuple[Any, ...]
"""A record as the tables hold it: its values in the order of `COLUMNS`. It may be forged."""
Stored: TypeAlias = Any
"""JSON of a record. It may be forged."""


@dataclass(frozen=True, slots=True)
class Head:
    """The length of the chain, and the hash of its last record; sealed, and stored separately."""

    seq: int
    hash: str
    seal: str


class Seal:
    """Hashes records and heads, keyed where there is a key."""

    def __init__(self, key: str | None) -> None:
        self._key = None if key is None else key.encode("utf-8", "surrogateescape")

    @classmethod
    def from_environment(cls) -> Seal:
        """With the key in the environment, if there is one. Raises `LedgerError` when what is there
        is too short for a key.
        """
        key = os.environ.get(KEY_VARIABLE)
        return cls(None) if key is None else cls.of(key)

    @classmethod
    def of(cls, key: str, where: str = KEY_VARIABLE) -> Seal:
        """With a key whose length makes guessing impossible.

        Raises
        ------
        LedgerError
            When it is shorter than `SHORTEST_KEY` bytes; one that is empty was meant to be one.
        """
        if len(key.strip().encode("utf-8", "surrogateescape")) < SHORTEST_KEY:
            raise LedgerError(
                f"the key of the ledger is {'too short' if key.strip() else 'empty'}",
                where=where,
                remedy=(
                    f"use a random text of at least {SHORTEST_KEY} bytes, such as that "
                    "of `openssl rand -hex 32`",
                    "unset the variable, if the ledger has no key",
                ),
            )
        return cls(key)

    @property
    def is_keyed(self) -> bool:
        return self._key is not None

    @property
    def hint(self) -> str:
        """Another possible cause when a hash is wrong."""
        if self.is_keyed:
            return f" (or was sealed with another key than the one in {KEY_VARIABLE})"
        return f" (or was sealed with a key, and {KEY_VARIABLE} is not set)"

    def record(self, values: list[object]) -> str:
        """The hash of a record's fields, in the order of `COLUMNS`, the hash itself left out."""
        return self._digest(["record", *values])

    def head(self, seq: int, tip: str) -> Head:
        """The sealed head of a chain."""
        return Head(seq, tip, self._digest(["head", seq, tip]))

    def head_file(self, seq: int, tip: str, identity: str) -> str:
        """The seal of a head file."""
        return self._digest(["head file", seq, tip, identity])

    def release(self, values: list[object]) -> str:
        """The seal of a content that is kept, before a record names it."""
        return self._digest(["release", *values])

    def rows(self, values: list[object]) -> str:
        """The seal of rows of a stream, before a record names them."""
        return self._digest(["rows", *values])

    def kept(self, record: Record) -> str:
        """The seal of a record that a checkpoint refers to, hashed with any key."""
        return self._digest(["kept", *(getattr(record, column) for column in COLUMNS)])

    def _digest(self, values: list[object]) -> str:
        text = _json([FORMAT, *values]).encode("ascii")
        if self._key is None:
            return hashlib.sha256(text).hexdigest()
        return hmac.digest(self._key, text, "sha256").hex()


def sealed(draft: Draft, seq: int, time: str, previous: str, seal: Seal) -> Record:
    """A draft in its place at the end of the chain."""
    amount = draft.amount
    values: list[Any] = [
        seq,
        time,
        draft.name,
        draft.act,
        draft.refers,
        draft.fingerprint,
        draft.unit,
        None if amount is None else _measure(amount, draft.within),
        None if amount is None else _text(amount.main),
        None if amount is None else _text(amount.slack),
        draft.who,
        draft.why,
        previous,
    ]
    return Record(*[*values, seal.record(values)])


def _measure(amount: Budget, within: ApproxDP | None) -> str:
    if within is None:
        return amount.measure
    return f"{amount.measure} within ({_text(within.main)}, {_text(within.slack)})"


def _text(value: Fraction) -> str:
    try:
        text = str(value)
    except ValueError:  # beyond Python's own limit
        text = ""
    if not 0 < len(text) <= LONGEST:
        raise LedgerError(
            f"an amount with more than {LONGEST} digits cannot be recorded",
            remedy="write it as a decimal with fewer digits",
        )
    return text


def plain_text(value: object, what: str) -> str:
    """Text that can be stored, for names and reasons. Raises `LedgerError` when it is empty, not
    text, or not valid Unicode.
    """
    if not isinstance(value, str) or not value.strip():
        raise LedgerError(
            f"{what} must be text that is not empty, not {value!r}",
            where=what,
            remedy=f'write for example {what} "Ada Lovelace"'
            if what.startswith("--")
            else f'write for example {what}="census 2026"',
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise LedgerError(
            f"{what} is not valid Unicode: {value!r}",
            where=what,
            remedy="remove the broken characters",
        ) from None
    return value


def short_text(value: object, what: str) -> str:
    """Text that can be stored, and is not too long to be read, for who and why. Raises
    `LedgerError` as `plain_text`, and when it is too long.
    """
    text = plain_text(value, what)
    if len(text) > LONGEST_TEXT:
        raise LedgerError(
            f"{what} has more than {LONGEST_TEXT} characters",
            where=what,
            remedy="write a shorter text",
        )
    return text


# Names of budgets: what a new one may be, and which ones people take for each other.
#
# A name that is mistyped opens a fresh budget for people whose budget is spent. So all characters
# of a new name must be visible, and it must not look like an existing name. Names that a ledger has
# already are used as they are, and shown with what cannot be seen escaped.

LONGEST_NAME = 200
"""Characters of a new name."""

_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | {
    chr(c) for c in (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}
"""Letters and marks that show nothing: fillers, joiners and variation selectors."""


def require_distinct(name: str, known: Iterable[str]) -> None:
    """Refuse a new name that people would take for one that is there. Raises `LedgerError` with the
    name that is there.
    """
    for other in known:
        if other != name and _look(other) == _look(name):
            raise LedgerError(
                f"the ledger has no budget {name!r}, but {other!r}, which looks nearly the same",
                where=f"name={name!r}",
                remedy=(f"write name={other!r}", "choose a name that differs more"),
            )


def require_new(name: str, known: Iterable[str]) -> None:
    """Refuse a name for a new budget that looks like an existing one. Raises `LedgerError` when it
    looks like one of those, or has characters that cannot be seen.
    """
    require_distinct(plain_text(name, "name"), known)
    seen = name.isprintable() and name == name.strip() and _UNSEEN.isdisjoint(name)
    if not seen or len(name) > LONGEST_NAME:
        raise LedgerError(
            f"the name of a new budget has 1 to {LONGEST_NAME} visible characters on one line, and "
            "no space at either end",
            where=f"name={name[: LONGEST_NAME + 1]!r}",
            remedy='write for example name="census 2026"',
        )


def no_budget(name: str, known: Iterable[str], where: str | None = None) -> NoBudget:
    """The refusal of a budget that a ledger does not have; `where` is its place."""
    names = tuple(known)
    close = close_names(name, names)
    ledger = "the ledger" if where is None else f"the ledger {where!r}"
    create = f"open it first: {create_command(shlex.quote(name))}"
    return NoBudget(
        f"{ledger} has no budget {name!r}",
        where=f"name={name!r}",
        why=f"its budgets are {name_list(names)}" if names else "it has no budget yet",
        remedy=(f"write name={' or '.join(map(repr, close))}", create) if close else create,
    )


def no_ledger(where: str | Path) -> NoBudget:
    """The refusal of a ledger that does not exist."""
    is_file = "://" not in str(where)
    start = f"dpframe looked in the folder {str(Path(os.path.abspath(where)).parent)!r}"
    return NoBudget(
        f"there is no ledger {str(where)!r}",
        where="ledger",
        why=start if is_file else None,
        remedy=(
            f"write the {'path' if is_file else 'URL'} of a ledger that exists",
            f"open a budget in a new ledger: {create_command()}",
        ),
    )


def create_command(name: str = "NAME") -> str:
    """The command that opens a budget."""
    return f"`dpframe ledger create --ledger WHERE --name {name} --epsilon AMOUNT --by WHO`"


def name_list(names: Sequence[str]) -> str:
    """Some names of a ledger's budgets in words; empty if there are no names."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(map(repr, names[:5])) + more


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """At most three known names that people may have meant, the closest first."""
    looks: dict[str, list[str]] = {}
    for other in known:
        looks.setdefault(_look(other), []).append(other)
    closest = get_close_matches(_look(name), looks, n=3, cutoff=0.6)
    return [other for look in closest for other in looks[look]][:3]


def _look(name: str) -> str:
    """What is the same for names that differ in case, spaces, ways to write a character, or what
    cannot be seen.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    words = " ".join(folded.split())
    shown = (c for c in words if c not in _UNSEEN and unicodedata.category(c)[0] != "C")
    return " ".join("".join(shown).split())
