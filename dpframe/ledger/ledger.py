"""One budget of a ledger, with its kept results, wherever it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from dpframe.core.budget import GDP, ApproxDP, Budget
from dpframe.core.windows import NAMES, Every
from dpframe.errors import LedgerError
from dpframe.ledger.account import Account, Entry, Settled, this_caller
from dpframe.ledger.amounts import decimals, exact_fields, exact_words
from dpframe.ledger.approvals import Approval, Bound, Requirement
from dpframe.ledger.budgets import open_budget, require_open
from dpframe.ledger.chain import Chain, Charge, broken
from dpframe.ledger.contents import Contents
from dpframe.ledger.kept import Attempt, Attempts, Begun, Identity, Key
from dpframe.ledger.record import Draft, no_budget, plain_text, require_distinct
from dpframe.ledger.scopes import InScope, Scope, in_scope, per_text, required
from dpframe.ledger.store import Store
from dpframe.ledger.streaming import StreamBook
from dpframe.ledger.streams import StreamOpening

# What happens to a budget while a command runs, for who watches it: charges, and how they ended.
#
# Events hold only amounts, names, numbers of records and fingerprints: nothing of the data.

Listener: TypeAlias = "Callable[[str, dict[str, object]], None]"

_listeners: list[Listener] = []


@contextmanager
def watched(listener: Listener) -> Iterator[None]:
    """Within this, the listener receives each event, by name and with its facts."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def happened(event: str, **facts: object) -> None:
    """Report an event to the listeners."""
    for listener in [*_listeners]:
        listener(event, facts)


def report_charge(name: str | None, number: int, fingerprint: str, cost: Budget) -> None:
    """Report that a plan was charged to a budget, by a record of this number."""
    amounts = {"cost": exact_fields(cost), "cost_decimal": decimals(cost, up=True)}
    happened("charge", budget=name, record=number, fingerprint=fingerprint, **amounts)


# What is kept of the results of one budget.


@dataclass(frozen=True, slots=True)
class Beginning:
    """A result that is about to be charged, and is to be kept."""

    begun: Begun  # The identity of the result
    cost: Budget  # The cost of the plan; for a part of a frame the whole may be charged less
    key: Key | None = None  # The key under which it may begin only once, if any
    # The charge of the attempt by that key which was lost, if there is one.
    after: int | None = None

    def at(self, scope: Scope | None) -> Beginning:
        """The same, which says where its charge falls."""
        place = None if scope is None else scope.place
        return replace(self, begun=replace(self.begun, place=place))

    def drafts(self, attempts: Attempts, account: Account) -> list[Draft]:
        """What is recorded directly before the charge. Raises `Overtaken` when another process has
        begun it meanwhile.
        """
        attempts.require_newest(self.key, self.begun.identity, self.after)
        result = [self.begun.draft(account.name, self.cost, self.after)]
        if self.after is not None and self.after in account.open:
            result = [Draft(account.name, "failed", refers=self.after), *result]
        return result


class Keeping:
    """The kept results of the budget `name` of a store."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name

    @property
    def contents(self) -> Contents:
        """Where contents lie."""
        return self._store.contents

    @property
    def origin(self) -> str:
        """The identity of the ledger, which a move does not change."""
        return self._store.read().identities[0]

    def every(self) -> list[Attempt]:
        """All charges whose results were to be kept, as they are now, in order."""
        found = self._store.read(whole=True).results.of(self._name).by_number
        return [found[number] for number in sorted(found)]

    def newest(self, key: Key | None, identity: Identity) -> Attempt | None:
        """The current state of the last attempt by a key."""
        return self._store.look_up(lambda chain: chain.results.of(self._name).newest(key, identity))

    def attempt(self, number: int) -> Attempt | None:
        """The current state of the attempt for a charge."""
        return self._store.look_up(lambda chain: chain.results.of(self._name).attempt(number))

    def is_open(self, number: int) -> bool:
        """Whether it is not recorded how a charge ended."""
        return number in self._store.read().account(self._name).open

    def finish(self, number: int, content: str) -> None:
        """Record that a content exists whose own process could not record it."""
        self._store.append(lambda chain: kept(chain, self._name, number, content))

    def hash_of(self, number: int) -> str:
        """The hash of the record of a charge."""
        return self._store.hash_of(number)

    def seal(self, values: list[object]) -> str:
        """The seal of a content under the key of the ledger."""
        return self._store.seal.release(values)


def kept(chain: Chain, name: str, number: int, content: str) -> list[Draft] | None:
    """The records that a content is there, and its charge is done; None where they are there.
    Raises `LedgerError` when the charge has ended in another way.
    """
    attempt = chain.results.of(name).attempt(number)
    if attempt is not None and attempt.content == content:
        return None
    if attempt is None or attempt.content or number not in chain.account(name).open:
        raise LedgerError(
            f"the charge {number} ended before its result could be kept",
            remedy="run `dpframe ledger releases`, which lists the results that are kept",
        )
    fingerprint = attempt.begun.identity.fingerprint
    return [
        Draft(name, "kept", number, fingerprint, why=content),
        Draft(name, "released", refers=number),
    ]


_OTHER_FLOATS = Fraction(1, 10**6)
"""How far the rho that two machines compute may differ; it is rounded down by less than that."""


class Ledger:
    """One budget of a store and what was spent of it; safe between threads and processes, forked
    ones included. Entries are only ever added.

    It is a privacy filter for adaptively chosen plans: each plan is admitted only if the sum of all
    costs stays within the budget. Sums are valid filters for pure DP and (epsilon, delta) (Rogers,
    Roth, Ullman & Vadhan 2016, Theorem 3.6) and for zCDP (Feldman & Zrnic 2021).

    Parameters
    ----------
    store
        Where its records are.
    name
        The name of the budget.
    budget
        Created with this amount, or opened if it has it already. After grants either the first
        amount or that with any number of the grants may be given; what counts is all of them.
    within
        The (epsilon, delta) for which the budget is an amount of rho. Then it is compared instead
        of the budget, whose rho is fixed once, when it is created: it comes from floats, which
        another machine may round in another way.
    must_exist
        Whether to refuse to create it.
    per
        The windows of time that each have this budget.

    Raises
    ------
    LedgerError
        When the store cannot be used or does not verify, or holds another budget by that name; when
        the name of a new budget looks like another name.
    NoBudget
        When the budget would be new and must exist.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        budget: Budget,
        within: ApproxDP | None = None,
        *,
        must_exist: bool = False,
        per: Every | None = None,
    ) -> None:
        self._store = store
        self._name = plain_text(name, "name")
        chain = store.read()
        account = chain.accounts.get(self._name)
        if account is None:
            if must_exist:
                raise no_budget(self._name, chain.accounts, store.where)
            require_distinct(self._name, chain.accounts)
            why = per_text(per)
            open_budget(store, Draft(self._name, "opened", amount=budget, within=within, why=why))
            account = self._account()
        _require_same(account, budget, within)
        if account.per != per:
            raise LedgerError(
                f"the budget {account.name!r} was opened for {_period(account.per)}, and this "
                f"session opens it for {_period(per)}",
                remedy=(
                    "leave per= out" if account.per is None else f"write per={account.per!r}",
                    "use another budget: dp.Session(..., name=...)",
                ),
            )

    def _account(self) -> Account:
        return self._store.read().account(self._name)

    @property
    def name(self) -> str | None:
        """The name of the budget in its ledger; None for a budget in memory."""
        return self._name if self._store.is_shared else None

    @property
    def where(self) -> str:
        """Where the budget is kept, in words: ``kept in memory only``."""
        return f"kept in {self._store.where}"

    @property
    def budget(self) -> Budget:
        """All that may be spent, grants included."""
        return self._account().budget

    @property
    def within(self) -> ApproxDP | None:
        """The (epsilon, delta) for which the budget is an amount of rho, if it was opened so."""
        return self._account().within

    @property
    def per(self) -> Every | None:
        """The windows of time that each have this budget; None for one budget for all time."""
        return self._account().per

    @property
    def spent(self) -> Budget:
        """The exact sum of all charges."""
        return self._account().spent

    @property
    def remaining(self) -> Budget:
        """What may still be spent: nothing of a budget that was closed."""
        return self._account().remaining

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges, in order."""
        return tuple(self._store.read(whole=True).account(self._name).entries.values())

    @property
    def approvals(self) -> tuple[Approval, ...]:
        """The plans that were approved for this budget, in order."""
        return tuple(self._store.read().approvals.get(self._name, ()))

    @property
    def other_approvals(self) -> Mapping[str, Sequence[Approval]]:
        """The approvals for other budgets of the same ledger, by their names."""
        found = self._store.read().approvals
        return {name: tuple(of_it) for name, of_it in found.items() if name != self._name}

    @property
    def identities(self) -> tuple[str, ...]:
        """The identities of the ledger, here and at earlier places, the newest last; empty if it
        is in memory.
        """
        return tuple(self._store.read().identities) if self._store.is_shared else ()

    @property
    def bound(self) -> Bound:
        """The amount that approvals are for now: the budget of the whole frame."""
        return Bound.of(self._account())

    @property
    def keeping(self) -> Keeping:
        """What is kept of results. A part of a frame has what the whole frame has."""
        return Keeping(self._store, self._name)

    @property
    def streams(self) -> StreamBook:
        """The streams that it paid for."""
        self._store.require_own()  # a copy would draw other noise for the same rows
        return StreamBook(self._store, self._name)

    def require_unit(self, unit: str) -> None:
        """Refuse another kind of privacy unit than the one recorded at the first charge."""
        _require_unit(self._account(), unit)

    def charge(
        self,
        cost: Budget,
        fingerprint: str,
        unit: str | None = None,
        approval: Requirement | None = None,
        scope: Scope | None = None,
        beginning: Beginning | None = None,
        stream: StreamOpening | None = None,
    ) -> int:
        """Record a spend, durably, before any data is read.

        With a `scope` the whole budget is charged what the cost adds to its largest totals. Where
        it needs an `approval`, one that counts is found and used in the same transaction. A
        `beginning` describes the result to be kept, and a `stream` is one that is paid for; each
        is recorded directly before the charge.

        Returns
        -------
        int
            The entry's number, for `settle`.

        Raises
        ------
        BudgetExceeded
            When it does not fit; nothing is recorded then.
        LedgerError
            When it cannot be recorded, or the unit is another than before.
        PlanMismatch
            When no approval counts that it needs.
        Overtaken
            When another process has begun the same result meanwhile, and it may begin only once.
        StreamIsOpen
            When another process has opened the stream meanwhile.
        """
        caller = this_caller()

        def charging(chain: Chain) -> list[Draft]:
            account = chain.account(self._name)
            attempts = chain.results.of(self._name)
            before = [] if beginning is None else beginning.at(scope).drafts(attempts, account)
            require_open(account)
            if unit is not None:
                _require_unit(account, unit)
            left = account.remaining
            amounts = required(scope, account.scopes, cost, left, account.budget, account.within)
            by = None if approval is None else self._approved(chain, fingerprint, approval)
            covered = None if approval is None or by is None else approval.covered(by)
            who, why = caller.user, Charge(caller, cost, scope, covered).text()
            used = None if by is None else by.number
            if stream is not None:
                before.append(stream.draft(self._name, chain.streams, fingerprint, used))
            draft = Draft(self._name, "charged", used, fingerprint, unit, amounts[0], who, why)
            return [*before, draft]

        number = self._store.append(charging)
        report_charge(self.name, number, fingerprint, cost)
        return number

    def in_scope(self, scope: Scope, cost: Budget | None = None) -> InScope:
        """What a scope was charged, what may still be charged to it, and what a plan of this cost
        would add to the whole.
        """
        self._store.require_own()

        def reading(chain: Chain) -> InScope:
            account = chain.account(self._name)
            found = in_scope(scope, account.scopes, account.remaining, cost)
            return found if account.closed is None else replace(found, left=account.remaining)

        return self._store.look_up(reading)

    def _approved(self, chain: Chain, fingerprint: str, needed: Requirement) -> Approval:
        """The approval that a charge uses: asked and used in one transaction, so that
        two processes cannot use the same last run.
        """
        approvals, bound = chain.approvals.get(self._name, []), Bound.of(chain.account(self._name))
        return needed.chosen(approvals, fingerprint, chain.identities, bound)

    def settle(self, number: int, status: Settled, content: str | None = None) -> None:
        """Record how a charged release ended, and the digest of what is kept of it, if anything is.
        The charge stays in any case.
        """

        def settling(chain: Chain) -> Draft | list[Draft] | None:
            if content is not None:
                return kept(chain, self._name, number, content)
            return Draft(self._name, status, refers=number)

        self._store.append(settling)
        happened("release" if status == "released" else "failed", record=number)

    def verify(self) -> None:
        """Refuse a ledger in which anything was changed since it was written."""
        self._store.verify()


def _period(per: Every | None) -> str:
    return "all time" if per is None else f"each {NAMES[per]}"


def _require_same(account: Account, budget: Budget, within: ApproxDP | None) -> None:
    same = (account.within is None) == (within is None)
    same = same and (within is None or type(account.budget) is type(budget))
    if not same or (within or budget) not in account.totals:
        there = _opened(account.totals[0], account.budget)
        raise LedgerError(
            f"the budget {account.name!r} was opened with {there}, and this session opens it with "
            f"{_opened(within or budget, budget)}",
            remedy=("open it with the amount that it has", "raise it with `dpframe ledger grant`"),
        )
    if within is not None:
        given = account.grants[: account.totals.index(within) + 1]
        recorded = sum((record.amount.main for record in given), Fraction(0))
        if recorded > budget.main * (1 + _OTHER_FLOATS):
            raise broken(
                f"budget {account.name!r} has more {budget.currency} than "
                f"{exact_words(within)} implies"
            )


def _opened(given: Budget, counted: Budget) -> str:
    apart = "gdp" if isinstance(counted, GDP) else "zcdp"
    composed = "" if type(given) is type(counted) else f', composition="{apart}"'
    return f"{exact_words(given)} in {given.measure}{composed}"


def _require_unit(account: Account, unit: str) -> None:
    if account.unit not in (None, unit):
        raise LedgerError(
            f"the budget is for the unit {account.unit!r}, and the query for {unit!r}",
            why="costs for different units do not add up",
            remedy=(
                "protect the frame with the unit of the budget: protect(frame, unit=...)",
                "use another budget: dp.Session(..., name=...)",
            ),
        )
