"""The records of a ledger read in order: each link checked, and what they add up to."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import get_args

from dpframe.core.budget import Budget
from dpframe.core.parameters import Parameter
from dpframe.errors import InvalidBudget, LedgerError
from dpframe.ledger.account import NOBODY, Account, Caller, Entry, caller_of
from dpframe.ledger.amounts import add_up, from_hex, hex_text
from dpframe.ledger.approvals import Approval, Bound, Covered, read_approval
from dpframe.ledger.kept import RESULTS, Results
from dpframe.ledger.record import (
    ABOUT_THE_LEDGER,
    COLUMNS,
    Act,
    Draft,
    Head,
    Record,
    Row,
    Seal,
    Stored,
    no_budget,
    sealed,
)
from dpframe.ledger.scopes import (
    Scope,
    amounts_due,
    amounts_of,
    opened_scopes,
    read_scope,
    scope_fields,
)
from dpframe.ledger.streams import STREAMED, Streams

# Whether a ledger may still be used where it is.


def require_here(moved: Record | None) -> None:
    """Refuse to write to a ledger that goes on elsewhere, as a record of it says. Raises
    `LedgerError` with where it went.
    """
    if moved is not None:
        raise LedgerError(
            f"the ledger was moved to {moved.why} on {moved.time[:10]}",
            why="a ledger that was moved can only be read",
            remedy=f"use it there: ledger={moved.why!r}",
        )


def unwitnessed(records: int, name: str) -> LedgerError:
    """The refusal of a ledger without its head file: a copy has none."""
    return LedgerError(
        f"the ledger does not verify: it has {records} records, but its head file {name!r} is "
        "missing, as after copying one file alone",
        remedy=(
            "put the head file back next to the ledger",
            "if it is lost and this is not a copy, accept the ledger: `dpframe ledger adopt`",
        ),
    )


def promised(seal: Seal, identity: str, origin: str) -> Head:
    """The head of an empty destination that is reserved for a ledger: a head without records,
    with the identity that the ledger will have there and, in place of a hash, the one that it has
    now.
    """
    return seal.head(0, identity + origin)


def kept_for_another() -> LedgerError:
    """The refusal of a place that is kept for a ledger."""
    return LedgerError(
        "a move of a ledger to this place was started and not finished",
        remedy=(
            "finish it: run the same `dpframe ledger move` again",
            "empty this place, if the ledger stays where it is",
        ),
    )


# The facts in a record of a charge as well its amount: the charged process, and the scope.


@dataclass(frozen=True, slots=True)
class Charge:
    """A charge, as its record keeps it."""

    caller: Caller  # Who is charged
    cost: Budget  # The fingerprint of the plan
    # Where it falls; None for all of the budget's frames, and then it is charged its cost.
    scope: Scope | None = None
    # How an approval of a range covers it; None where none does that it uses.
    covered: Covered | None = None

    def text(self) -> str:
        """All but the user, as records keep it."""
        found = self.caller.fields()
        if self.scope is not None:
            found["scope"] = scope_fields(self.scope, self.cost)
        if self.covered is not None:
            given = {p.name: {"type": p.type, "value": p.value} for p in self.covered.parameters}
            found["covered"] = {"template": self.covered.template, "parameters": given}
        return json.dumps(found)


def read_charge(record: Record) -> Charge:
    """What the record of a charge says. Raises `ValueError, TypeError, KeyError, ArithmeticError`
    when it does so in another form.
    """
    amount = record.amount
    if record.why is None:
        return Charge(NOBODY if record.who is None else Caller(record.who), amount)
    fields = json.loads(record.why)
    if not isinstance(fields, dict):
        raise ValueError
    scope, cost = None, amount
    if "scope" in fields:
        scope, cost = read_scope(fields.pop("scope"), amount)
    covered = _read_covered(fields.pop("covered")) if "covered" in fields else None
    return Charge(caller_of(record.who, fields), cost, scope, covered)


def _read_covered(found: object) -> Covered:
    if not isinstance(found, dict) or found.keys() != {"template", "parameters"}:
        raise ValueError
    template, given = found["template"], found["parameters"]
    if not isinstance(template, str) or not isinstance(given, dict):
        raise TypeError
    if any(one.keys() != {"type", "value"} for one in given.values()):
        raise ValueError
    made = (Parameter(name, one["type"], one["value"]) for name, one in sorted(given.items()))
    return Covered(template, tuple(made))


# What all records of a ledger add up to, as a record of its chain.
#
# Who opens a long ledger begins at its last checkpoint: the head vouches for the last record, each
# record for the one before it, down to the checkpoint, whose hash covers what it says. A full check
# replays everything, and refuses a checkpoint that says anything else.
#
# Charges are in it as sums. Finished results that are kept are not in it: there may be any number,
# and each is looked up on request and verified by its own hash. Everything else (openings, grants,
# approvals, results under way and other rare records) is named by number with a seal over the whole
# record. So it can be read again and verified separately, even after the ledger was given another
# key. For that reason results that were over before it was given that key are named as well.
# Checkpoints of earlier versions name all results.

EVERY = 1024
"""Records between two checkpoints, at least."""

SUMMED = frozenset({"charged", "released", "failed", "checkpoint", "rekeyed"})
"""Kinds of records whose sums a checkpoint holds."""


def is_due(chain: Chain) -> bool:
    """Whether to write one; less often where it is long, so that they take little room."""
    since = chain.length - chain.checkpoint
    parts = sum(account.scopes.size for account in chain.accounts.values())
    if since < EVERY:
        return False
    named = len(_named(chain, chain.results.older.since))
    return since >= named + len(chain.accounts) + parts


def _named(chain: Chain, since: int | None) -> list[Record]:
    """The records that a checkpoint names. Records of results are named only if the result is under
    way or was begun before the ledger got its key. With `since=None` all are named, as in earlier
    versions.
    """

    def is_named(record: Record) -> bool:
        if since is None or record.act not in RESULTS:
            return True
        if record.act == "begun":
            is_open = record.seq + 1 in chain.accounts[record.name].open
            return is_open or record.seq < since
        return (record.refers or 0) <= since

    return [record for record in chain.kept if is_named(record)]


def state_of(
    chain: Chain,  # The records
    seal: Seal,  # The state of the named records
    # The number of the record that gave the ledger its key, 0 for none; None for the form that
    # earlier versions wrote.
    since: int | None,
) -> str:
    """What the records so far add up to, in one form only."""
    spent = {
        account.name: [
            hex_text(account.spent.main),
            hex_text(account.spent.slack),
            account.unit,
            account.charges,
            sorted(account.open),
        ]
        for account in chain.accounts.values()
    }
    kept = [[record.seq, seal.kept(record)] for record in _named(chain, since)]
    used = [
        [approval.number, approval.used]
        for approvals in chain.approvals.values()
        for approval in approvals
        if approval.used
    ]
    state: dict[str, object] = {"kept": kept, "spent": spent, "used": used}
    scopes = {a.name: found for a in chain.accounts.values() if (found := a.scopes.state())}
    if since is not None:
        state["results"] = since
    if scopes:  # left out where nothing has any, as it always was
        state["scopes"] = scopes
    return json.dumps(state, separators=(",", ":"))


def kept_numbers(checkpoint: Record) -> list[int]:
    """The numbers of the records that a checkpoint refers to. Raises `ValueError, TypeError,
    KeyError` when the record is not a checkpoint.
    """
    return [int(number) for number, _ in _state(checkpoint)["kept"]]


def restore(chain: Chain, checkpoint: Record, rows: Iterable[Row]) -> None:
    """Bring an empty chain to a checkpoint whose hash is right, with the rows that it refers to.
    Raises `ValueError, TypeError, KeyError` when it makes no sense, or the rows are not those.
    """
    state = _state(checkpoint)
    if "results" in state:
        older = chain.results.older
        older.until, older.since = checkpoint.seq, int(state["results"])
    records = [Record(*row) for row in rows]
    seals = [[record.seq, chain.seal.kept(record)] for record in records]
    if seals != state["kept"]:
        raise ValueError
    for record in records:
        chain.extend(record)
    if list(state["spent"]) != list(chain.accounts):
        raise ValueError
    for name, (main, slack, unit, charges, unsettled) in state["spent"].items():
        account = chain.accounts[name]
        account.spent = account.budget.of(from_hex(main), from_hex(slack))
        account.unit, account.charges, account.open = unit, charges, set(unsettled)
    for name, found in state.get("scopes", {}).items():
        chain.accounts[name].scopes.restore(found)
    used = dict(state["used"])
    for name, approvals in chain.approvals.items():
        chain.approvals[name] = [replace(a, used=used.pop(a.number, 0)) for a in approvals]
    if used:
        raise ValueError
    chain.whole = False


def _state(checkpoint: Record) -> dict[str, Stored]:
    fields = json.loads(checkpoint.why or "")
    if checkpoint.act == "rekeyed":
        fields = json.loads(fields["state"])
    if not isinstance(fields, dict) or fields.keys() - {"scopes", "results"} != {
        "kept",
        "spent",
        "used",
    }:
        raise ValueError
    return fields


_IDENTITY = re.compile("[0-9a-f]{32}")

ANNOUNCING = frozenset({"begun", "kept", "stream", "redrawn"})
"""Kinds of records that stand directly before another one, in one transaction with it."""

RESTORE = (
    "restore a copy that has every release, and check it with `dpframe ledger verify`",
    "ask the data owner who changed it; until it verifies nothing can be spent",
)


def broken(what: str) -> LedgerError:
    """The refusal of a ledger that does not verify."""
    return LedgerError(f"the ledger does not verify: {what}", remedy=RESTORE)


class Chain:
    """Records from the first one on, or from a checkpoint, verified; `accounts` is what they add up
    to, `approvals` who approved which plans, by the name of the budget.
    """

    def __init__(
        self,
        seal: Seal,  # With the key that the ledger has now
        *,
        whole: bool = True,  # Whether to keep each charge, and not only their sum
        # The number of the record that gave the ledger its key. What is before has hashes of an
        # earlier one; that record vouches for their content.
        rekeyed: int = 0,
        hashes: bool = False,  # Whether to hash the content of all rows, which such a record needs
    ) -> None:
        self.seal = seal
        self.whole = whole
        self.length = 0
        self.tip = ""
        self.identity: str | None = None
        self.moved: Record | None = None
        self.checkpoint = 0
        """The number of the last record that holds the sums of all before it."""
        self.kept: list[Record] = []
        """Records that are no charges, settlements or checkpoints."""
        self.accounts: dict[str, Account] = {}
        self.approvals: dict[str, list[Approval]] = {}
        self.results = Results()
        """Which results were begun, and which are kept."""
        self.streams = Streams()
        """Which were opened, and what was drawn for them."""
        self.identities: list[str] = []
        """The identities of this ledger; empty while it is empty."""
        self.content = hashlib.sha256()
        """The hash of all rows, where they are hashed."""
        self.hashed = 0
        """How many rows that is."""
        self._hashes = hashes
        self._rekeyed = rekeyed
        self._last: Record | None = None  # The last record, if it announces the next one

    def next(self, draft: Draft) -> Record:
        """A draft as the next record; the chain itself is not changed."""
        return self.following([draft])[0]

    def following(self, drafts: Iterable[Draft]) -> list[Record]:
        """Drafts as the next records, which do not build on each other; nothing is appended."""
        time = datetime.now(UTC).isoformat(timespec="microseconds")
        result: list[Record] = []
        seq, tip = self.length, self.tip
        for draft in drafts:
            record = sealed(draft, seq + 1, time, tip, self.seal)
            self._check(record)
            result.append(record)
            seq, tip = record.seq, record.hash
        return result

    def begin(self, row: Row, rows: Iterable[Row]) -> None:
        """Begin at a checkpoint, with the rows of the records that it refers to."""
        checkpoint = self._verified(row)
        try:
            restore(self, checkpoint, rows)
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
            raise broken(
                f"record {row[0]} cannot be read, or what it refers to was changed"
            ) from None
        self.length, self.tip = checkpoint.seq, checkpoint.hash
        self.checkpoint = checkpoint.seq

    def needed(self, row: Row) -> list[int]:
        """The numbers of the rows that `begin` needs for a checkpoint."""
        try:
            return kept_numbers(self._verified(row))
        except (KeyError, TypeError, ValueError):
            raise broken(f"record {row[0]} cannot be read") from None

    def read(self, rows: Iterable[Row], anchors: dict[int, str]) -> None:
        """Append stored rows, in the order of `COLUMNS`; rows at anchors must have those hashes.
        Raises `LedgerError` at the first row that is not what was once written there.
        """
        for row in rows:
            if row[0] != self.length + 1:
                raise broken(f"record {self.length + 1} is missing")
            if row[-2] != self.tip:
                raise broken(f"record {row[0]} does not follow the one before it")
            record = Record(*row) if row[0] < self._rekeyed else self._verified(row)
            if anchors.get(row[0], row[-1]) != row[-1]:
                raise broken(f"record {row[0]} is not the one that was there before")
            self._read(record)
            if self._hashes:
                self.content.update(_line(row))
                self.hashed += 1

    def _verified(self, row: Row) -> Record:
        return verified(row, self.seal)

    def _read(self, record: Record) -> None:
        try:
            self.extend(record)
        except (ArithmeticError, InvalidBudget, KeyError, RecursionError, TypeError, ValueError):
            # Without a key anyone can write a record whose hash is right.
            raise broken(f"record {record.seq} cannot be read") from None

    def extend(self, record: Record) -> None:
        """Append a record whose hash is known to be right."""
        self._check(record)
        self._apply(record)
        self.length, self.tip = record.seq, record.hash
        self.identities = self.identities or [record.hash]

    def require_head(self, head: Head | None) -> None:
        """Refuse a chain that does not end where its head says."""
        if head is None:
            raise broken("its head is missing")
        if head != self.seal.head(head.seq, head.hash):
            raise broken(f"its head was changed{self.seal.hint}")
        if not (head.seq or self.length):
            raise kept_for_another()
        if head.seq != self.length:
            raise broken(f"it ends at record {self.length}, but its head names record {head.seq}")
        if head.hash != self.tip:
            raise broken(f"its head names another record {self.length}")

    def head(self) -> Head:
        return self.seal.head(self.length, self.tip)

    def account(self, name: str) -> Account:
        """A budget by name. Raises `NoBudget` when the ledger has none of that name."""
        if name not in self.accounts:
            raise no_budget(name, self.accounts)
        return self.accounts[name]

    def _check(self, record: Record) -> None:
        """Refuse a record that no ledger writes, even with a valid seal."""
        where = f"record {record.seq}"
        self._require_follows(record, where)
        self.streams.require(record)
        if record.act not in get_args(Act):
            raise broken(f"{where} has the unknown kind {record.act!r}")
        if self.moved is not None:
            raise broken(f"{where} was written after the ledger had been moved")
        if record.act in ABOUT_THE_LEDGER:
            self._check_ledger(record)
            return
        if record.act == "approved":  # also before its budget is opened
            self._check_approval(record, where)
            return
        if record.act == "revoked":
            if not any(a.fingerprint == record.fingerprint for a in self._approvals(record)):
                raise broken(f"{where} revokes an approval that does not exist")
            return
        account = self.accounts.get(record.name)
        if (account is None) != (record.act == "opened"):
            raise broken(
                f"{where} opens budget {record.name!r} twice, or uses it before it is opened"
            )
        if account is None or record.act in STREAMED:
            return
        if record.act in RESULTS:  # the record that follows is about an open budget, or charge
            self.results.check(record, account.budget.measure)
        elif record.act in ("released", "failed"):
            if (record.refers or 0) not in account.open:
                raise broken(f"{where} ends a charge that is not open")
        elif account.closed is not None:
            raise broken(f"{where} was written after its budget was closed")
        elif record.act == "closed":
            return
        elif record.amount.measure != account.budget.measure:
            raise broken(f"{where} has an amount in another measure than its budget")
        elif not _same_composition(record, account):
            raise broken(f"{where} adds up costs in another way than its budget")
        elif record.act == "charged":
            self._check_charge(record, account, where)

    def _require_follows(self, record: Record, where: str) -> None:
        """Refuse a record directly after one that announces another: a stream or a result, which is
        paid for next, or a content, whose charge ends next.
        """
        last = self._last
        if last is None or record.seq != last.seq + 1:  # a checkpoint names no charges
            return
        if last.act == "kept":
            right = (record.act, record.refers) == ("released", last.refers)
        else:
            right = (record.act, record.fingerprint) == ("charged", last.fingerprint)
        if last.act == "stream":  # the same approval pays for both
            right = right and last.refers in (None, record.refers)
        if not right or record.name != last.name:
            raise broken(f"{where} is not the one that the record before it announces")

    def _check_charge(self, record: Record, account: Account, where: str) -> None:
        if not account.budget.covers(add_up(account.spent, record.amount)):
            raise broken(f"{where} spends more than was left")
        charge = read_charge(record)
        if amounts_due(charge.scope, account.scopes, charge.cost)[0] != record.amount:
            raise broken(f"{where} charges another amount than its cost adds")
        if record.refers is not None or charge.covered is not None:
            self._check_use(record, charge.covered, where)

    def _check_approval(self, record: Record, where: str) -> None:
        """Refuse a copy: it would allow as many runs again."""
        found = read_approval(record)
        if found.id is not None and any(a.id == found.id for a in self._approvals(record)):
            raise broken(f"{where} repeats an approval")

    def _check_use(self, record: Record, covered: Covered | None, where: str) -> None:
        found = next((a for a in self._approvals(record) if a.number == record.refers), None)
        allowed = found is not None and found.allows(record.fingerprint, covered)
        if found is None or not allowed or found.revoked is not None:
            raise broken(f"{where} names an approval that does not allow it")
        if found.left is not None and found.left < 1:
            raise broken(f"{where} exceeds the number of approved runs")

    def _approvals(self, record: Record) -> list[Approval]:
        return self.approvals.get(record.name, [])

    def _check_ledger(self, record: Record) -> None:
        """Refuse what is not so of the ledger as a whole."""
        where = f"record {record.seq}"
        if record.name:
            raise broken(f"{where} names a budget, which its kind cannot")
        if record.seq < self._rekeyed:  # sealed with another key
            return
        match record.act:
            case "checkpoint":
                since = self.results.older.since
                right = any(record.why == state_of(self, self.seal, s) for s in (since, None))
            case "rekeyed":
                sinces = (record.seq, None)
                right = any(record.why == rekeying(self, self.seal, s) for s in sinces)
                right = self._hashes and right
            case "identified" | "moved":
                named = record.fingerprint or ""
                first = self.identity is None or record.why is not None
                right = bool(_IDENTITY.fullmatch(named)) and named != self.identity and first
            case _:
                right = bool(record.who)
        if not right:
            raise broken(f"{where} states other totals than the records before it")

    def _open(self, record: Record) -> None:
        amount, within = record.amount, record.within
        zero = amount.of(amount.main * 0)
        self.accounts[record.name] = Account(
            record.name,
            amount,
            [within or amount],
            [record],
            zero,
            opened_scopes(record, zero),
            within,
            record.unit,
        )

    def _charge(self, account: Account, record: Record) -> None:
        cost, time = record.amount, datetime.fromisoformat(record.time)
        charge = read_charge(record)
        amounts = amounts_of(charge.scope, account.scopes, charge.cost)
        if self.whole:
            fingerprint, scope = record.fingerprint or "", charge.scope
            account.entries[record.seq] = Entry(
                record.seq, time, fingerprint, cost, "charged", charge.caller, scope, amounts
            )
        if charge.scope is not None:
            charge.scope.add(account.scopes, amounts)
        account.charges += 1
        account.open.add(record.seq)
        account.spent = add_up(account.spent, cost)
        account.unit = account.unit or record.unit
        self._use(record)

    def _apply(self, record: Record) -> None:
        if record.act not in SUMMED:
            self.kept.append(record)
        self._last = record if record.act in ANNOUNCING else None
        self.results.apply(record)
        self.streams.apply(record)
        if record.act in ABOUT_THE_LEDGER:
            self._apply_ledger(record)
            return
        if record.act == "opened":
            self._open(record)
            return
        if record.act == "approved":
            self._approve(read_approval(record))
            return
        if record.act == "revoked":
            self.approvals[record.name] = [
                replace(a, revoked=record.who) if a.fingerprint == record.fingerprint else a
                for a in self._approvals(record)
            ]
            return
        account = self.accounts[record.name]
        match record.act:
            case "granted":
                account.budget = account.budget + record.amount
                account.within = record.within
                account.totals.append(record.within or account.budget)
                account.grants.append(record)
            case "charged":
                self._charge(account, record)
            case "closed":
                account.closed = record
            case "released" | "failed":
                account.open.remove(record.refers or 0)
                if self.whole:
                    entry = account.entries[record.refers or 0]
                    account.entries[entry.number] = replace(entry, status=record.act)

    def _apply_ledger(self, record: Record) -> None:
        match record.act:
            case "checkpoint":
                self.checkpoint = record.seq
            case "rekeyed":
                self.checkpoint = self.results.older.since = record.seq
            case "identified":
                if record.why is not None:  # moved here
                    self.identities.append(str(record.fingerprint))
                self.identity = record.fingerprint
            case "moved":
                self.moved = record

    def _use(self, record: Record) -> None:
        for place, found in enumerate(self._approvals(record)):
            if record.refers == found.number:
                self.approvals[record.name][place] = replace(found, used=found.used + 1)

    def _approve(self, found: Approval) -> None:
        account = self.accounts.get(found.name)
        if found.is_old and account is not None:  # it names no amount: then it is that of its time
            found = replace(found, bound=Bound.of(account))
        self.approvals.setdefault(found.name, []).append(found)


def verified(row: Row, seal: Seal) -> Record:
    """The record of a stored row, which must have the hash that it was written with."""
    try:
        right = seal.record(list(row[:-1])) == row[-1]
    except (TypeError, ValueError):  # a value that cannot have been written
        right = False
    if not right:
        raise broken(f"record {row[0]} was changed{seal.hint}")
    return Record(*row)


def _same_composition(record: Record, account: Account) -> bool:
    """Grants name the (epsilon, delta) that is now the whole, charges never; it never shrinks."""
    if record.act == "charged" or account.within is None:
        return record.within is None
    return record.within is not None and record.within.covers(account.within)


def rekeying(chain: Chain, seal: Seal, since: int | None) -> str:
    """What the record of a number says that gives a ledger another key: with that key, what there
    was; None for the form that earlier versions wrote.
    """
    state = {"content": chain.content.hexdigest(), "state": state_of(chain, seal, since)}
    return json.dumps(state, separators=(",", ":"))


def _line(row: Row) -> bytes:
    return json.dumps(list(row), default=repr).encode() + b"\n"


def row_of(record: Record) -> Row:
    """A record's values in the order of `COLUMNS`."""
    return tuple(getattr(record, column) for column in COLUMNS)
