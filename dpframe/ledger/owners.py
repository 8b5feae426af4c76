"""What owners and reviewers do with a ledger: approve plans, move it, prune it, redraw streams."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from dpframe.core.budget import Budget
from dpframe.errors import LedgerError, require
from dpframe.ledger.account import Account, this_caller
from dpframe.ledger.approvals import (
    KEY_VARIABLE,
    Allowed,
    Approval,
    ApprovalKey,
    Bound,
    Requirement,
    allowed_fields,
)
from dpframe.ledger.budgets import require_open
from dpframe.ledger.chain import Chain, Charge, rekeying, require_here
from dpframe.ledger.head_file import Seen
from dpframe.ledger.kept import Attempt, content_digest
from dpframe.ledger.record import (
    Draft,
    Head,
    Record,
    Row,
    Seal,
    no_ledger,
    plain_text,
    sealed,
    short_text,
)
from dpframe.ledger.scopes import required
from dpframe.ledger.store import Store, Tables, rows_after
from dpframe.ledger.streaming import digest_of, stream_of
from dpframe.ledger.streams import Batch, OpenedStream

# What reviewers do: approve plans, and take approvals back, on record.


@dataclass(frozen=True, slots=True)
class Terms:
    """How often and until when a plan may run."""

    runs: int | None = None  # How often; None for as often as the budget allows
    until: date | None = None  # The last day, UTC; None for no end

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise LedgerError(
                "a plan must be approved for at least one run",
                where=f"--runs {self.runs}",
                remedy=(
                    "write for example --runs 1",
                    "leave --runs out for as many as the budget allows",
                ),
            )


NO_LIMITS = Terms()


def approve(
    store: Store,
    name: str,
    fingerprint: str,
    document: str,
    by: str,
    key: ApprovalKey | None,
    terms: Terms = NO_LIMITS,
    allowed: Allowed = (),
) -> None:
    """Record an approval for the current budget, signed if there is a key. If `allowed` is given it
    covers a range of parameters, and the fingerprint is that of the template. Raises `LedgerError`
    when it cannot be recorded, the budget does not exist, `by` is not on one line, or the key can
    only verify.
    """
    named, who = plain_text(name, "name"), approver(by, key)

    def approving(chain: Chain) -> Draft:
        bound = Bound.of(chain.account(named))
        plan = _Approved(named, fingerprint, document, allowed)
        return _drafted(chain, plan, who, key, terms, bound)

    store.append(approving)


def renewals(
    chain: Chain, bound: Bound, name: str, by: str, key: ApprovalKey | None
) -> list[Draft]:
    """The approvals of a budget that count now, again for another amount, with the runs that are
    left. They are recorded together with what changes the amount: between the two, what is left
    could be used once more, or renewed twice. Raises `LedgerError` when the budget does not exist,
    or they are signed and the key cannot sign.
    """
    who, needed = approver(by, key), Requirement(key)
    before = Bound.of(chain.account(name))
    found = [
        a
        for a in chain.approvals.get(name, ())
        if needed.why_not(a, chain.identities, before) is None
    ]
    if key is None and any(a.signature is not None for a in found):
        raise LedgerError(
            "the approvals of this budget are signed, and the renewed ones would not be",
            where="--keep-approvals",
            remedy=f"set {KEY_VARIABLE} to the key that signs them",
        )
    return [
        _drafted(
            chain,
            _Approved(name, a.fingerprint, a.document, a.allowed),
            who,
            key,
            Terms(a.left, a.until),
            bound,
        )
        for a in found
    ]


@dataclass(frozen=True, slots=True)
class _Approved:
    """What is approved: for the budget of a name, a plan with its document, or a range of plans."""

    name: str
    fingerprint: str
    document: str
    allowed: Allowed


def _drafted(
    chain: Chain,
    plan: _Approved,
    who: str,
    key: ApprovalKey | None,
    terms: Terms,
    bound: Bound,
) -> Draft:
    approval = Approval(
        plan.name,
        plan.fingerprint,
        who,
        datetime.now(UTC),
        plan.document,
        None,
        uuid.uuid4().hex,
        chain.identities[-1],
        bound,
        terms.runs,
        terms.until,
        allowed=plan.allowed,
    )
    signature = None if key is None else key.sign(*approval.signed_fields())
    why = _text(approval, signature)
    return Draft(plan.name, "approved", fingerprint=plan.fingerprint, who=who, why=why)


def approver(by: object, key: ApprovalKey | None) -> str:
    """Who approves. Raises `LedgerError` when that is not on one line, or the key can only
    verify.
    """
    who = short_text(by, "--by")
    if not who.isprintable():  # it is shown in lines of its own
        raise LedgerError(
            f"--by must be text on one line, not {who!r}",
            where="--by",
            remedy='write for example --by "Ada Lovelace"',
        )
    if key is not None:
        key.sign()  # nothing: raises where it cannot
    return who


def _text(made: Approval, signature: str | None) -> str:
    assert made.bound is not None
    fields: dict[str, object] = {
        "plan": made.document,
        "signature": signature,
        "id": made.id,
        "ledger": made.ledger,
        "budget": made.bound.fields(),
        "runs": made.runs,
        "until": None if made.until is None else made.until.isoformat(),
    }
    if made.allowed:
        fields["parameters"] = allowed_fields(made.allowed)
    return json.dumps(fields)


def revoke(store: Store, name: str, fingerprint: str, by: str, reason: str | None) -> str:
    """Take back all approvals of a plan that were recorded until now. Raises `LedgerError` when no
    approved plan matches, or several do.

    Parameters
    ----------
    store, name
        The budget.
    fingerprint
        The fingerprint of the plan; its first 8 digits are enough if they are unique.
    by, reason
        Recorded with it.

    Returns
    -------
    str
        The whole fingerprint.
    """
    who = short_text(by, "--by")
    why = None if reason is None else short_text(reason, "--reason")
    found: list[str] = []

    def revoking(chain: Chain) -> Draft:
        valid = {a.fingerprint for a in chain.approvals.get(name, ()) if a.revoked is None}
        meant = [f for f in valid if f.startswith(fingerprint) and len(fingerprint) >= 8]
        if len(meant) != 1:
            which = "several plans whose fingerprint begins" if meant else "no approved plan"
            raise LedgerError(
                f"the budget {name!r} has {which} with {fingerprint!r}",
                where="--revoke",
                remedy="run `dpframe ledger show`, which lists the approved plans of each budget",
            )
        found.append(meant[0])
        return Draft(name, "revoked", fingerprint=meant[0], who=who, why=why)

    store.append(revoking)
    return found[-1]


# Contents of kept results that owners give up: deleted on record, while their charges stay.
#
# A spend stays spent, whether the result still exists or not. So a record says first that a content
# is given up; then it is deleted. A later request for that result is refused with a note, and is
# charged again only on request. If a process dies between the two, it leaves a content that is
# never handed out, and that the next call deletes.


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was given up of one budget."""

    name: str  # The name of the budget
    attempts: tuple[Attempt, ...]  # The results, in the order of their charges


def prune(
    store: Store,  # The ledger
    name: str | None,  # The name of the budget; None for all budgets
    by: str,  # Who does it
    before: date,  # The day, UTC; what was kept on it stays
    last: int = 0,  # How many of the newest results of each budget stay whenever they were kept
) -> list[Pruned]:
    """Give up the contents of results that were kept before a day, and delete them.

    Returns
    -------
    list[Pruned]
        By budget, the results that were given up.

    Raises
    ------
    LedgerError
        When the ledger does not verify, does not have the budget, or contents may not be deleted;
        then nothing is given up. Or a content cannot be deleted: the same call goes on then.
    """
    who = short_text(by, "--by")
    if last < 0:
        raise LedgerError(
            f"the number of results to keep is {last}",
            where=f"--keep-last {last}",
            remedy="write for example --keep-last 10",
        )
    made: dict[str, tuple[Attempt, ...]] = {}

    known = store.read(whole=True)
    due = {
        budget: _due(known.results.of(budget).by_number.values(), before, last)
        for budget in _names(known, name)
    }

    def pruning(chain: Chain) -> list[Draft] | None:
        made.clear()
        for budget, attempts in due.items():
            now = (chain.results.of(budget).attempt(one.number) for one in attempts)
            if found := tuple(one for one in now if one is not None and one.pruned is None):
                made[budget] = found
        drafts = [_draft(budget, one, who) for budget, found in made.items() for one in found]
        return drafts or None

    store.contents.prepare_removal()
    store.append(pruning)
    chain = store.read(whole=True)
    for budget in _names(chain, name):
        for attempt in chain.results.of(budget).by_number.values():
            if attempt.pruned is not None:  # also by a call that was interrupted
                store.contents.remove(attempt.number, len(attempt.begun.identity.outputs))
    return [Pruned(budget, found) for budget, found in made.items()]


def _names(chain: Chain, name: str | None) -> list[str]:
    return list(chain.accounts) if name is None else [chain.account(name).name]


def _due(attempts: Iterable[Attempt], before: date, last: int) -> tuple[Attempt, ...]:
    kept = sorted(
        (one for one in attempts if one.content is not None and one.pruned is None),
        key=lambda one: one.number,
    )
    end = datetime(before.year, before.month, before.day, tzinfo=UTC)
    old = kept[: max(0, len(kept) - last)]
    return tuple(one for one in old if one.time < end)


def _draft(budget: str, one: Attempt, who: str) -> Draft:
    return Draft(budget, "pruned", one.number, one.begun.identity.fingerprint, who=who)


# Streams of a ledger that was accepted without its head file.


@dataclass(frozen=True, slots=True)
class Redrawing:
    """A stream that draws nothing new."""

    budget: str  # Whose it is
    stream: OpenedStream  # As the ledger knows it
    cost: Budget  # What it was charged, and would be once more


def to_redraw(store: Store, budget: str, name: str) -> Redrawing:
    """What paying once more for a stream comes to; nothing is charged. Raises `LedgerError` when
    the stream does not exist, or draws as usual.
    """
    chain = store.read(whole=True)
    account = chain.account(budget)
    found = _doubted(chain, budget, name)
    return Redrawing(budget, found, account.entries[found.number + 1].cost)


def redraw(store: Store, one: Redrawing, by: str, reason: str) -> Account:
    """Pay for a stream once more, so that it draws again from where the ledger stands.

    A copy of a ledger does not know what was drawn since it was made. If streams continued from the
    copy, rows that were drawn and handed out before would be drawn again with other noise, and two
    draws of a row reveal more than one. Refused when the cost does not fit, the budget was closed,
    or the stream draws already.

    Guarantee
    ---------
    A stream may be charged k times: once when it is opened, and once more each time its ledger is
    accepted and it is to draw again. Then k times its cost covers everything that was drawn and
    handed out between.

    Proof
    -----
    Between two of these records each row is drawn once at most, as everywhere. So all that was ever
    drawn is k sets of rows, each of them a part of those of one whole stream, whose nights are
    those of the frame as it was read then. Each set costs no more than the stream, and they
    compose.
    """
    who, why = short_text(by, "--by"), short_text(reason, "--reason")
    caller = this_caller()

    def paying(chain: Chain) -> list[Draft]:
        account = chain.account(one.budget)
        require_open(account)
        found = _doubted(chain, one.budget, one.stream.name)
        plan = chain.streams.plan_of(found)
        left, within = account.remaining, account.within
        required(None, account.scopes, one.cost, left, account.budget, within)
        text = Charge(caller, one.cost).text()
        draft = Draft(one.budget, "redrawn", found.number, plan, who=who, why=why)
        paid = Draft(one.budget, "charged", None, plan, account.unit, one.cost, caller.user, text)
        return [draft, paid]

    number = store.append(paying)
    store.append(lambda chain: Draft(one.budget, "released", refers=number))
    return store.read().account(one.budget)


def _doubted(chain: Chain, budget: str, name: str) -> OpenedStream:
    stream = stream_of(chain, budget, name)
    if stream.closed is not None:
        raise LedgerError(
            f"the stream {name!r} was closed on {stream.closed.time[:10]}",
            remedy="leave it closed: it releases nothing new",
        )
    if stream.doubted is None:
        raise LedgerError(
            f"the stream {name!r} needs no second payment: all that it released is on record",
            remedy="release its periods again, which costs nothing",
        )
    return stream


# Moves the contents next to a ledger with it: kept results, and rows of streams.
#
# It is copied twice, before the old place is closed and after that, what is there already left
# alone. So users of the new place find everything recorded by then, and the same call finishes a
# move that was interrupted. Only contents with the digest in a record are copied, and results
# without a record yet, which have their own seal.


def bring(
    chain: Chain,  # The ledger at the source
    # `source`, `destination`: its places; the second is kept for it, or has it.
    source: Store,
    destination: Store,
) -> int:
    """Copy what records of a ledger name, and is not there; how much that was. Raises `LedgerError`
    when it cannot be copied, or rows of other streams lie there.
    """
    copied = 0
    for name in chain.accounts:
        for attempt in chain.results.of(name).by_number.values():
            copied += _bring_result(attempt, source, destination)
    for stream in chain.streams.all():
        for batch in stream.batches:
            copied += _bring_rows(stream, batch, source, destination)
    return copied


def bring_rest(chain: Chain, source: Store, destination: Store) -> int:
    """The same to where a ledger was moved; nothing where that is somewhere else."""
    if chain.moved is None or destination.where != chain.moved.why:
        return 0
    if destination.read().identity != chain.moved.fingerprint:
        return 0
    return bring(chain, source, destination)


def _bring_result(attempt: Attempt, source: Store, destination: Store) -> int:
    number, count = attempt.number, len(attempt.begun.identity.outputs)
    if attempt.pruned is not None:
        return 0

    def is_right(blobs: list[bytes]) -> bool:
        return attempt.content in (None, content_digest(blobs))

    there = destination.contents.read(number, count, is_right)
    if there is not None and is_right(there):
        return 0
    blobs = source.contents.read(number, count, is_right)
    if blobs is None or not is_right(blobs):
        return 0
    destination.contents.write(number, blobs)
    return 1


def _bring_rows(stream: OpenedStream, batch: Batch, source: Store, destination: Store) -> int:
    (there,) = destination.contents.rows(stream.number, [batch.first])
    copied = 0
    if there is None:
        (content,) = source.contents.rows(stream.number, [batch.first])
        if content is None or digest_of(content) != batch.digest:
            return 0  # it was lost before
        there, copied = destination.contents.keep_rows(stream.number, batch.first, content), 1
    if digest_of(there) != batch.digest:
        raise LedgerError(
            f"{destination.where!r} has other rows where those of the stream {stream.name!r} "
            "belong",
            remedy="move those rows to another place, and run the same command again: it continues",
        )
    return copied


# What owners do with a whole ledger: give it another key, move it, or give up its head file.


def adopt(store: Store, by: str, reason: str) -> Head:
    """Accept a ledger whose head file is lost, on record, and write the file again.

    A person who can do that can also replace a ledger by an old copy. So the record says who it was
    and why, and the head that `verify` printed can be compared with what is there. Raises
    `LedgerError` when the head file is there, or the ledger does not verify.
    """
    who, why = short_text(by, "--by"), short_text(reason, "--reason")

    def adopting(chain: Chain) -> Draft:
        if not chain.length:
            raise no_ledger(store.where)
        return Draft("", "adopted", who=who, why=why)

    store.adopt(adopting)
    return store.read().head()


def rekey(
    store: Store,  # Opened with the key that it has now, if it has any
    key: Seal,  # The new one
    by: str,  # Who does it
) -> Head:
    """Seal what follows with another key, and vouch for what was before with it.

    The record that says so is the first one under the new key. It has a hash of the content of all
    records before it, and what they add up to; so the new key alone verifies all of them. The old
    key alone is then not enough to add to the ledger. Other head files than the one next to the
    ledger are sealed with the old key, and must be removed. Raises `LedgerError` when the ledger
    does not verify with the old key, or does not exist.
    """
    who = short_text(by, "--by")
    store.reseal(lambda chain: _rekeyed(chain, key, who), key)
    return store.verify()


def _rekeyed(chain: Chain, key: Seal, who: str) -> Draft:
    if chain.identity is None:
        raise LedgerError(
            "the ledger has no identity yet, because an earlier version wrote it",
            remedy="add to a budget first: `dpframe ledger grant`",
        )
    return Draft("", "rekeyed", who=who, why=rekeying(chain, key, chain.length + 1))


def move(
    # Where it is. A head file of it that lies elsewhere follows the ledger.
    source: Store,
    # An empty destination, without a head file elsewhere. It has the same key.
    destination: Store,
    by: str,  # Who does it
) -> Head:
    """Move a ledger to another place, a file or a database, and close the one that there was.

    The copy has all records, and one more with an identity of its own. The source ends with a
    record that names that identity and the place. It is written before the copy can be used, so at
    no time both can be spent. Before that the empty destination is reserved for the ledger: an
    interrupted call is continued only where the reservation is found. Kept results and rows of
    streams are copied before the source is closed, and what came meanwhile after that; calling it
    again brings what is missing. Raises `LedgerError` when the source does not verify or was moved
    before, the destination is not empty, or it has rows of other streams.

    Returns
    -------
    Head
        The head of the ledger at the destination.
    """
    who = short_text(by, "--by")
    same = source.is_keyed == destination.is_keyed
    require(same, "a ledger moves only to a place with the same key")
    source.verify()
    known = source.read(whole=True)
    arrived = known.moved is not None and destination.promised_to(str(known.identity)) is None
    if arrived and bring_rest(known, source, destination):  # after a move that was interrupted
        return destination.verify()

    def moving() -> Chain:
        identity = _promised(source.read(), destination)
        bring(source.read(whole=True), source, destination)
        _move(source, destination, identity, who)
        moved = destination.read()
        left = source.read(whole=True)  # while its head files are still its own
        source.hand_over(Seen(moved.length, moved.tip, moved.identity))
        return left

    # In the order in which forks wait for them.
    first, second = sorted((source.turn, destination.turn), key=lambda turn: turn.number)
    chain = first.run(lambda: second.run(moving))
    bring_rest(chain, source, destination)
    return destination.verify()


def _promised(chain: Chain, destination: Store) -> str:
    """The identity that a ledger will have at the place that is kept for it."""
    if not chain.length or chain.identity is None:
        raise LedgerError(
            "there is no ledger to move, or an earlier version wrote it",
            remedy=(
                "write the path or URL of a ledger",
                "add to a budget first: `dpframe ledger grant`",
            ),
        )
    if chain.moved is not None and chain.moved.why != destination.where:
        require_here(chain.moved)
    found = destination.promised_to(chain.identity)
    if chain.moved is None:
        return found or destination.promise(chain.identity)
    if found is None or found != chain.moved.fingerprint:
        require_here(chain.moved)  # all of it was moved
    return str(found)


def _move(source: Store, destination: Store, identity: str, who: str) -> None:
    """The source is committed first, because its transaction ends first."""

    def arriving(to: Tables, kept: Chain, begun: list[Record]) -> None:
        def leaving(tables: Tables, chain: Chain, added: list[Record]) -> None:
            if kept.length or (chain.moved is not None and chain.moved.fingerprint != identity):
                raise LedgerError(
                    "another process is moving the ledger, or moving one to this place",
                    remedy="wait until it is done, and run the command again",
                )
            records = chain.length if chain.moved is None else chain.length - 1
            last = _copied(tables, to, records)
            origin = json.dumps({"from": chain.identity, "place": source.where})
            draft = Draft("", "identified", fingerprint=identity, who=who, why=origin)
            begun.append(sealed(draft, records + 1, last.time, last.hash, source.seal))
            if chain.moved is None:
                moved = Draft("", "moved", fingerprint=identity, who=who, why=destination.where)
                added += chain.following([moved])

        source.write(leaving)

    destination.write(arriving)
    destination.forget()


def _copied(tables: Tables, to: Tables, records: int) -> Record:
    """The last of the records."""
    last: Row = ()
    for rows in rows_after(tables, 0):
        taken = [row for row in rows if row[0] <= records]
        to.append(taken, None)
        last = taken[-1] if taken else last
    return Record(*last)
