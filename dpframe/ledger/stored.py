"""A budget kept in a file or on a server, with its kept results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from dpframe.core.budget import GDP, ApproxDP, Budget
from dpframe.core.windows import NAMES, Every
from dpframe.errors import LedgerError
from dpframe.ledger.account import Account, Entry, Settled, this_caller
from dpframe.ledger.amounts import exact_words
from dpframe.ledger.approvals import Approval, Bound, Requirement
from dpframe.ledger.budgets import open_budget, require_open
from dpframe.ledger.chain import Chain, Charge, broken
from dpframe.ledger.contents import Contents
from dpframe.ledger.kept import Attempt, Identity, Key
from dpframe.ledger.ledger import Beginning, happened, report_charge
from dpframe.ledger.memory import other_unit
from dpframe.ledger.record import Draft, no_budget, plain_text, require_distinct
from dpframe.ledger.scopes import InScope, Scope, in_scope, per_text, required
from dpframe.ledger.store import Store
from dpframe.ledger.streaming import StoredStreams
from dpframe.ledger.streams import StreamOpening


class StoredKeeping:
    """The kept results of the budget `name`, next to a ledger."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name

    @property
    def contents(self) -> Contents:
        return self._store.contents

    @property
    def origin(self) -> str:
        return self._store.read().identities[0]

    def every(self) -> list[Attempt]:
        found = self._store.read(whole=True).results.of(self._name).by_number
        return [found[number] for number in sorted(found)]

    def newest(self, key: Key | None, identity: Identity) -> Attempt | None:
        return self._store.look_up(lambda chain: chain.results.of(self._name).newest(key, identity))

    def attempt(self, number: int) -> Attempt | None:
        return self._store.look_up(lambda chain: chain.results.of(self._name).attempt(number))

    def is_open(self, number: int) -> bool:
        return number in self._store.read().account(self._name).open

    def finish(self, number: int, content: str) -> None:
        self._store.append(lambda chain: kept(chain, self._name, number, content))

    def hash_of(self, number: int) -> str:
        return self._store.hash_of(number)

    def seal(self, values: list[object]) -> str:
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


class StoredLedger:
    """One budget of a store; safe between threads and processes, forked ones included.

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
        the name of a new budget looks like that of another.
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
    def name(self) -> str:
        return self._name

    @property
    def where(self) -> str:
        return f"kept in {self._store.where}"

    @property
    def budget(self) -> Budget:
        return self._account().budget

    @property
    def within(self) -> ApproxDP | None:
        return self._account().within

    @property
    def per(self) -> Every | None:
        return self._account().per

    @property
    def spent(self) -> Budget:
        return self._account().spent

    @property
    def remaining(self) -> Budget:
        return self._account().remaining

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._store.read(whole=True).account(self._name).entries.values())

    @property
    def approvals(self) -> tuple[Approval, ...]:
        return tuple(self._store.read().approvals.get(self._name, ()))

    @property
    def other_approvals(self) -> Mapping[str, Sequence[Approval]]:
        found = self._store.read().approvals
        return {name: tuple(of_it) for name, of_it in found.items() if name != self._name}

    def require_unit(self, unit: str) -> None:
        _require_unit(self._account(), unit)

    @property
    def identities(self) -> tuple[str, ...]:
        return tuple(self._store.read().identities)

    @property
    def bound(self) -> Bound:
        return Bound.of(self._account())

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
        report_charge(self._name, number, fingerprint, cost)
        return number

    def in_scope(self, scope: Scope, cost: Budget | None = None) -> InScope:
        account = self._account()
        found = in_scope(scope, account.scopes, account.remaining, cost)
        return found if account.closed is None else replace(found, left=account.remaining)

    @property
    def streams(self) -> StoredStreams:
        return StoredStreams(self._store, self._name)

    def _approved(self, chain: Chain, fingerprint: str, needed: Requirement) -> Approval:
        """The approval that a charge uses: asked and used in one transaction, so that
        two processes cannot use the same last run.
        """
        approvals, bound = chain.approvals.get(self._name, []), Bound.of(chain.account(self._name))
        return needed.chosen(approvals, fingerprint, chain.identities, bound)

    def settle(self, number: int, status: Settled, content: str | None = None) -> None:
        def settling(chain: Chain) -> Draft | list[Draft] | None:
            if content is not None:
                return kept(chain, self._name, number, content)
            return Draft(self._name, status, refers=number)

        self._store.append(settling)
        happened("release" if status == "released" else "failed", record=number)

    @property
    def keeping(self) -> StoredKeeping:
        return StoredKeeping(self._store, self._name)

    def verify(self) -> None:
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
        raise other_unit(str(account.unit), unit)
