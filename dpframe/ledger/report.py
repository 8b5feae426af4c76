"""What people and monitoring read of a ledger."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from dpframe.core.budget import Budget
from dpframe.core.windows import NAMES, Every, Windows, number_of, whole_person
from dpframe.ledger.account import Account, Entry, Status
from dpframe.ledger.amounts import decimals, exact_fields, exact_words, left_fields
from dpframe.ledger.approvals import Approval, ApprovalKey, signed
from dpframe.ledger.chain import Chain
from dpframe.ledger.record import COLUMNS, Record
from dpframe.ledger.scopes import WindowScope, scope_fields
from dpframe.ledger.store import Store
from dpframe.ledger.streams import OpenedStream


def show(store: Store, name: str | None) -> Iterator[str]:
    """Budgets, grants, approvals and charges, a line each, with names and reasons as they are.
    Raises `LedgerError` when the ledger does not verify, or has no budget of that name.
    """
    chain, key = store.read(whole=True), ApprovalKey.from_environment()
    yield from _of_the_ledger(chain)
    if not chain.accounts and not chain.approvals:
        yield "no budgets"
    for budget, approvals in _unopened(chain, name).items():
        yield f"{budget}: not opened yet"
        yield from _approved(approvals, key)
    for account in chosen(chain, name):
        yield f"{account.name}: {_measure(account)}, unit: {account.unit or 'none yet'}"
        yield f"  budget     {whole(account)}"
        for grant in account.grants:
            yield f"    {_granted(grant)}"
        yield from _protected(account)
        yield from _approved(chain.approvals.get(account.name, []), key)
        most = "" if account.per is None else f" in the {NAMES[account.per]} that spent most"
        yield f"  spent      {exact_words(account.spent)}{most}{_ends(account)}"
        yield f"  remaining  {exact_words(account.remaining)}{most and ' in that one'}"
        yield from (f"    {words}" for words in _windows(account))
        yield from (f"    {stream_words(stream)}" for stream in chain.streams.of(account.name))
        yield from (f"    {_charged(entry)}" for entry in account.entries.values())
        if account.closed is not None:
            yield f"    {_when(account.closed)}  closed    {_signed_by(account.closed)}"


def _of_the_ledger(chain: Chain) -> Iterator[str]:
    """What owners did with all of it."""
    for made in chain.kept:
        if made.act == "adopted":
            yield f"{_when(made)}  accepted without its head file {_signed_by(made)}"
        elif made.act == "moved":
            yield f"{_when(made)}  moved to {made.why} by {made.who}; it goes on there"
        elif _is_arrival(made):
            yield f"{_when(made)}  moved here from {_origin(made)} by {made.who}"


def _of_all(made: Record) -> dict[str, str | None] | None:
    """What owners did with all of a ledger, for programs; None for other records."""
    found: dict[str, str | None] = {"time": made.time, "act": made.act, "by": made.who}
    if made.act == "adopted":
        return found | {"reason": made.why}
    if made.act == "moved":
        return found | {"to": made.why}
    return found | {"act": "moved here", "from": _origin(made)} if _is_arrival(made) else None


def _is_arrival(made: Record) -> bool:
    """Whether it was moved here: only then an identity has a reason."""
    return made.act == "identified" and made.why is not None


def _origin(made: Record) -> str | None:
    """The place that a ledger came from; as it was written, where it is written in another way."""
    try:
        return str(json.loads(str(made.why))["place"])
    except (ValueError, TypeError, KeyError):
        return made.why


def _charged(entry: Entry) -> str:
    time, cost, by = f"{entry.time:%Y-%m-%d %H:%M:%S}", exact_words(entry.cost), entry.caller
    who = f"  by {words}" if (words := by.words()) else ""
    if entry.scope is not None:
        cost += f" ({exact_words(entry.amounts[-1])} for {entry.scope.place})"
    return f"{time}  {entry.status:8}  {cost}  plan {entry.fingerprint[:16]}{who}"


def _approved(approvals: list[Approval], key: ApprovalKey | None) -> Iterator[str]:
    for approval in approvals:
        yield (
            f"    {approval.time:%Y-%m-%d %H:%M:%S}  approved  plan {approval.fingerprint[:16]}  "
            f"{signed(approval, key)}, by {approval.by}{_for(approval)}"
        )


def _for(approval: Approval) -> str:
    """The amount, and the limits, of an approval."""
    amount = "" if approval.bound is None else f", for {exact_words(approval.bound.whole)}"
    limits = approval.limits()
    return f"{amount}, {limits}" if limits else amount


def record(store: Store, name: str | None) -> dict[str, dict[str, object]]:
    """What `show` shows, for programs; amounts are exact, as text such as ``"3/10"``. Raises
    `LedgerError` when the ledger does not verify, or has no budget of that name.
    """
    chain, key = store.read(whole=True), ApprovalKey.from_environment()
    of_all = [found for made in chain.kept if (found := _of_all(made)) is not None]
    unopened = {
        budget: {"opened": False, "ledger": of_all, "approvals": _approvals(approvals, key)}
        for budget, approvals in _unopened(chain, name).items()
    }
    return unopened | {
        account.name: {
            "opened": True,
            "ledger": of_all,
            "unit": account.unit,
            **amounts(account),
            "grants": [_grant(record) for record in account.grants],
            "approvals": _approvals(chain.approvals.get(account.name, []), key),
            "streams": streams_record(chain, account.name),
            "charges": [
                {
                    "time": entry.time.isoformat(),
                    "status": entry.status,
                    "fingerprint": entry.fingerprint,
                    "cost": exact_fields(entry.cost),
                    "cost_decimal": decimals(entry.cost, up=True),
                    "user": entry.caller.user,
                    "host": entry.caller.host,
                    "process": entry.caller.process,
                    "job": entry.caller.job,
                    "run": entry.caller.run,
                    **_scope(entry),
                }
                for entry in account.entries.values()
            ],
        }
        for account in chosen(chain, name)
    }


def _scope(entry: Entry) -> dict[str, object]:
    """Where a charge falls and what its plan costs; nothing of one for all of the frames."""
    if entry.scope is None:
        return {}
    return {"scope": scope_fields(entry.scope, entry.amounts[-1])}


def amounts(account: Account) -> dict[str, object]:
    """What a budget is, what was spent of it and what is left, exactly."""
    return {
        "budget": exact_fields(account.within or account.budget),
        "budget_decimal": decimals(account.within or account.budget),
        "spent": exact_fields(account.spent),
        "spent_decimal": decimals(account.spent, up=True),
        **left_fields(account.remaining),
        **_window_fields(account),
        "closed": None if account.closed is None else _closed(account.closed),
    }


def _unopened(chain: Chain, name: str | None) -> dict[str, list[Approval]]:
    """Approvals for budgets that no session has opened yet."""
    return {
        budget: approvals
        for budget, approvals in chain.approvals.items()
        if name in (None, budget) and budget not in chain.accounts
    }


def _parameters(approval: Approval) -> dict[str, object]:
    """What parameters may be; nothing where it is of one plan."""
    if not approval.allowed:
        return {}
    return {"parameters": {name: found.words for name, found in approval.allowed}}


def _approvals(approvals: list[Approval], key: ApprovalKey | None) -> list[dict[str, object]]:
    return [
        {
            "time": approval.time.isoformat(),
            "fingerprint": approval.fingerprint,
            "by": approval.by,
            "signature": signed(approval, key),
            "budget": None if approval.bound is None else exact_fields(approval.bound.whole),
            "runs": approval.runs,
            "used": approval.used,
            "until": None if approval.until is None else approval.until.isoformat(),
            "revoked": approval.revoked,
            **_parameters(approval),
        }
        for approval in approvals
    ]


def _grant(record: Record) -> dict[str, object]:
    by = {} if record.who is None else {"by": record.who, "reason": record.why}
    return {"time": record.time, "act": record.act, "amount": exact_fields(record.amount), **by}


def _closed(record: Record) -> dict[str, str | None]:
    return {"time": record.time, "by": record.who, "reason": record.why}


def _measure(account: Account) -> str:
    if account.within is None:
        return account.budget.measure
    return f"{account.within.measure} through {account.budget.measure}"


def whole(account: Account) -> str:
    """The budget as it was given, with the rho that it amounts to where rho is counted."""
    counted = exact_words(account.budget)
    each = "" if account.per is None else f" for each {NAMES[account.per]}"
    found = counted if account.within is None else f"{exact_words(account.within)}: {counted}"
    return found + each


def _windows(account: Account) -> Iterator[str]:
    """What windows of time have spent, of a budget that is for each of them."""
    timeline = account.scopes.windows
    for windows, total in () if timeline is None else timeline.charged():
        left = "" if account.closed else f", {exact_words(account.budget - total)} left"
        yield f"{windows.words()}: {exact_words(total)} spent{left}"


def _protected(account: Account) -> Iterator[str]:
    """Whom a budget for each window of time protects, and whom not."""
    if account.per is not None:
        yield f"  protects   {protected_words(account.per)}"
        for clock in sorted(account.scopes.clocks.values()):
            yield f"    windows are those of {clock.words()}"


def protected_words(per: Every) -> str:
    """The same in words."""
    return f"the rows of a person in one {NAMES[per]}; {whole_person(per)}"


def stream_words(stream: OpenedStream) -> str:
    """A stream, and how far it is."""
    doubted = ""
    if stream.closed is not None:
        doubted = f"; closed on {stream.closed.time[:10]} {_signed_by(stream.closed)}"
    elif stream.doubted is not None:
        doubted = "; it releases nothing new since the ledger was accepted without its head file: "
        doubted += "`dpframe ledger redraw`"
    return (
        f"stream {stream.name!r}: {stream.drawn} of {stream.periods} periods drawn, paid for by "
        f"the charge {stream.number + 1}{doubted}"
    )


def streams_record(chain: Chain, name: str) -> list[dict[str, object]]:
    """The streams of a budget, for programs."""
    return [
        {
            "name": stream.name,
            "charge": stream.number + 1,
            "drawn": stream.drawn,
            "periods": stream.periods,
            "draws": stream.doubted is None and not _is_closed(chain, name, stream),
            "closed": None if stream.closed is None else _closed(stream.closed),
        }
        for stream in chain.streams.of(name)
    ]


def _is_closed(chain: Chain, budget: str, stream: OpenedStream) -> bool:
    return stream.closed is not None or chain.account(budget).closed is not None


def _window_fields(account: Account) -> dict[str, object]:
    """The same for programs; nothing of a budget for all time."""
    timeline = account.scopes.windows
    if timeline is None:
        return {}
    spent = [
        {**windows.fields(), "words": windows.words(), "spent": exact_fields(total)}
        for windows, total in timeline.charged()
    ]
    return {"per": timeline.every, "protects": protected_words(timeline.every), "windows": spent}


def chosen(chain: Chain, name: str | None) -> list[Account]:
    """All budgets that were opened, or the one of a name. Raises `LedgerError` when neither a
    budget nor an approval has that name.
    """
    if name is None:
        return list(chain.accounts.values())
    return [] if _unopened(chain, name) else [chain.account(name)]


def _granted(record: Record) -> str:
    time, amount = _when(record), exact_words(record.amount)
    if record.act == "opened":
        given = "" if record.within is None else f"{exact_words(record.within)}: "
        return f"{time}  opened    {given}{amount}" + (f" by {record.who}" if record.who else "")
    now = "" if record.within is None else f" (now {exact_words(record.within)})"
    return f"{time}  granted   {amount}{now} {_signed_by(record)}"


def _when(record: Record) -> str:
    return record.time[:19].replace("T", " ")


def _signed_by(record: Record) -> str:
    return f"by {record.who}: {record.why}"


def _ends(account: Account) -> str:
    if not account.entries:
        return ""
    counted = Counter(entry.status for entry in account.entries.values())
    charges = f"{len(account.entries)} charge{'s' if len(account.entries) > 1 else ''}"
    return f" in {charges}: " + ", ".join(f"{n} {status}" for status, n in counted.items())


def verify(store: Store, name: str | None) -> Iterator[str]:
    """A line that the ledger verifies, and its head, which can be kept elsewhere and compared.

    Raises
    ------
    LedgerError
        When it does not, or has no budget of that name.
    """
    head = store.verify()
    budgets = len(chosen(store.read(), name))
    keyed = "keyed" if store.is_keyed else "not keyed: a user who can write to it can rewrite it"
    yield f"verified: {head.seq} records of {budgets} budget{'s' if budgets != 1 else ''}, {keyed}"
    yield f"head: {head.seq} {head.hash}"


def export(store: Store, name: str | None) -> Iterator[str]:
    """Every record as stored, one JSON object a line; then what `verify` raises, if anything."""
    for row in store.rows():
        record = dict(zip(COLUMNS, row, strict=True))
        if name in (None, record["name"]):
            yield json.dumps(record, default=repr)
    chosen(store.read(), name)


# What monitoring reads of a ledger: OpenMetrics text, as Prometheus and others understand it.
#
# https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md

STATUSES: tuple[Status, ...] = ("charged", "released", "failed")
"""How charges are; one that is only charged is open: its query runs, or its process died."""

Labels: TypeAlias = "Mapping[str, str]"
Sample: TypeAlias = "tuple[Labels, float]"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric."""

    # `name`, `help`: the name and the meaning.
    name: str
    help: str
    samples: Callable[[Account, datetime], Iterator[Sample]]  # Its values in a budget at a time
    unit: str | None = None  # The unit of the values, if they have one; the name ends with it


def metrics(store: Store, name: str | None, now: datetime | None = None) -> Iterator[str]:
    """The lines of all metrics, of all budgets or of one. Raises `LedgerError` when the ledger does
    not verify, or has no budget of that name.
    """
    chain, time = store.read(whole=True), datetime.now(UTC) if now is None else now
    accounts = chosen(chain, name)
    for family in FAMILIES:
        yield from _described(family)
        for account in accounts:
            for labels, value in family.samples(account, time):
                yield _line(family.name, {"name": account.name, **labels}, value)
    records = Family("dpframe_ledger_records", "Records of the ledger, which verifies.", _none)
    yield from _described(records)
    yield _line(records.name, {}, chain.length)
    yield "# EOF"


def _described(family: Family) -> Iterator[str]:
    yield f"# TYPE {family.name} gauge"
    if family.unit is not None:
        yield f"# UNIT {family.name} {family.unit}"
    yield f"# HELP {family.name} {family.help}"


def _line(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _amounts(budget: Budget, *, up: bool = False) -> Iterator[Sample]:
    for amount, value in decimals(budget, up=up).items():
        yield {"amount": amount}, value


def _budget(account: Account, now: datetime) -> Iterator[Sample]:
    return _amounts(account.budget)


def _spent(account: Account, now: datetime) -> Iterator[Sample]:
    return _amounts(account.spent, up=True)


def _remaining(account: Account, now: datetime) -> Iterator[Sample]:
    return _amounts(account.remaining)


def _window_spent(account: Account, now: datetime) -> Iterator[Sample]:
    window = _window(account, now)
    if window is not None:
        yield from _in_window(window, window.spent(account.scopes), up=True)


def _window_remaining(account: Account, now: datetime) -> Iterator[Sample]:
    window = _window(account, now)
    if window is not None:
        closed = account.closed is not None
        left = account.remaining if closed else window.room(account.scopes, account.remaining)
        yield from _in_window(window, left)


def _window(account: Account, now: datetime) -> WindowScope | None:
    """The current window, by the date in UTC, of a budget that is for each of them."""
    if account.per is None:
        return None
    number = number_of(account.per, now.astimezone(UTC).date())
    return WindowScope(Windows(account.per, number, number, without=False))


def _in_window(window: WindowScope, amount: Budget, *, up: bool = False) -> Iterator[Sample]:
    for labels, value in _amounts(amount, up=up):
        yield {"window": window.place, **labels}, value


def _closed_samples(account: Account, now: datetime) -> Iterator[Sample]:
    yield {}, int(account.closed is not None)


def _charges(account: Account, now: datetime) -> Iterator[Sample]:
    counted = Counter(entry.status for entry in account.entries.values())
    for status in STATUSES:
        yield {"status": status}, counted[status]


def _last_release(account: Account, now: datetime) -> Iterator[Sample]:
    released = [e.time for e in account.entries.values() if e.status == "released"]
    if released:
        yield {}, round(max(released).timestamp(), 3)


def _open_charges(account: Account, now: datetime) -> Iterator[Sample]:
    for entry in account.entries.values():
        if entry.status == "charged":
            age = max(0.0, (now - entry.time).total_seconds())
            yield {"record": str(entry.number)}, round(age, 3)


def _none(account: Account, now: datetime) -> Iterator[Sample]:
    return iter(())


FAMILIES: Sequence[Family] = (
    Family("dpframe_budget", "The budget in all or for each window, by amount.", _budget),
    Family("dpframe_spent", "The amount spent, in the fullest window, rounded up.", _spent),
    Family("dpframe_remaining", "The amount that may still be spent, rounded down.", _remaining),
    Family(
        "dpframe_window_spent",
        "The amount spent in the current window, rounded up, for budgets per window.",
        _window_spent,
    ),
    Family(
        "dpframe_window_remaining",
        "The amount that may still be spent in the current window, rounded down.",
        _window_remaining,
    ),
    Family("dpframe_budget_closed", "Whether the budget was ended: 1 or 0.", _closed_samples),
    Family("dpframe_charges", "Charges by how they ended; 'charged' if they have not.", _charges),
    Family(
        "dpframe_last_release_timestamp_seconds",
        "When the newest charge was made that was released.",
        _last_release,
        "seconds",
    ),
    Family(
        "dpframe_open_charge_age_seconds",
        "The age of each charge that has not ended, by the number of its record.",
        _open_charges,
        "seconds",
    ),
)
