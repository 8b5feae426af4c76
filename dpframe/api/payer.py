"""Who pays for queries: a budget in a ledger, and the conditions on which it is spent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NoReturn

from dpframe import pipeline
from dpframe.aggregates.query import Query
from dpframe.api.answers import answers_of
from dpframe.api.approval import require_approved
from dpframe.api.release import Release
from dpframe.api.source import Source, Sources
from dpframe.api.spend import Spend
from dpframe.core.budget import Budget, PureDP
from dpframe.core.exact import Number
from dpframe.core.units import Unit
from dpframe.errors import InvalidBudget, UnsupportedOperation
from dpframe.ledger.approvals import Requirement
from dpframe.ledger.bound import StatedBudget
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.parts import PartLedger
from dpframe.ledger.place import DEFAULT_NAME
from dpframe.ledger.signatures import ApprovalKey
from dpframe.lower.engines.polars_engine import PolarsMode


@dataclass(slots=True, eq=False)
class Payer:
    """A budget in a ledger, and the conditions on which it is spent: what a session is inside.

    Parameters
    ----------
    ledger
        What plans are charged to.
    measure
        In which it counts.
    counts_apart
        Whether it adds up rho or mu squared for plans that satisfy (epsilon, delta).
    name
        The session's name, which plans show and approvals are kept under.
    needs_approval
        Whether it pays only for plans that somebody approved.
    unit
        Whom it protects; None while it protects nobody.
    whole
        Of a part of a divided frame: who pays for the whole.
    """

    ledger: Ledger
    measure: type[Budget]
    counts_apart: bool
    name: str | None = None
    needs_approval: bool = False
    unit: Unit | None = None
    whole: Payer | None = field(default=None, repr=False)

    @property
    def budget(self) -> Budget:
        """The budget as it was given, with what was granted later; of a part, what it could use."""
        within = self.ledger.within if self.whole is None else None
        return within or self.ledger.budget

    @property
    def discovers(self) -> bool:
        """Whether groups that nobody listed can be found: not in pure DP."""
        return self.measure is not PureDP

    def of_part(self, ledger: PartLedger) -> Payer:
        """Who pays for one part of a frame: it charges this payer in turn."""
        return replace(self, ledger=ledger, whole=self)

    def responsible_for(self, owner: Payer | None) -> Payer:
        """Who pays for a query or frame of `owner`: this one, or one of a part of it.

        Raises
        ------
        InvalidBudget
            When it belongs to another session, or to none and this pays for a part only.
        """
        at = owner
        while at is not None and at is not self:
            at = at.whole
        if owner is not None and at is self:
            return owner
        if owner is None and self.whole is None:
            return self
        raise InvalidBudget(
            "the query belongs to no session, and the session of a part pays for that part only"
            if owner is None
            else "the query or frame belongs to another session",
            remedy="use it in the session that protects its frame",
        )

    def prepare(self, query: Query, spend: Spend) -> pipeline.Prepared:
        """The plan of a query at a spend, and what is needed to run it; nothing is charged.

        Raises
        ------
        UnsupportedOperation
            When the query protects another kind of unit than the session.
        InvalidBudget
            When the spend is none, or not in the session's measure.
        """
        unit = query.relation.facts.unit
        if self.unit is not None and self.unit.kind != unit.kind:
            raise UnsupportedOperation(
                f"the session protects {self.unit.kind}, and the query {unit.kind}: their costs "
                "do not add up",
                remedy="open another session for another kind of unit",
            )
        self.ledger.require_unit(unit.kind)
        remaining = self.ledger.remaining
        budget = spend.within(query, self.measure, remaining, counted_apart=self.counts_apart)
        charged_in = self.measure if self.counts_apart else None
        prepared = pipeline.plan(query, budget, remaining, spend.split, charged_in=charged_in)
        prepared = pipeline.stating(prepared, self._stated())
        if isinstance(self.ledger, PartLedger):
            return pipeline.on_part(prepared, self.ledger.share(prepared.plan.cost))
        return prepared

    def release(
        self,
        query: Query,
        source: Source | Sources,
        spend: Spend,
        interval: Number | None = None,
        engine: PolarsMode = "auto",
    ) -> Release:
        """Check the budget, charge it, run the query and add noise.

        Raises
        ------
        PlanMismatch
            When the plan needs approval and has none; nothing is charged then.
        DPFrameError
            As for `PrivateQuery.collect`.
        """
        prepared = self.prepare(query, spend)
        execution = source.opened(query.relation.token, engine)
        needed = None
        if self.needs_approval:
            needed = Requirement(ApprovalKey.from_environment())
            require_approved(prepared.plan, self.ledger, self.name or DEFAULT_NAME, needed)
        result = pipeline.run(prepared, execution, self.ledger, interval, needed)
        self.unit = query.relation.facts.unit
        return Release(result, prepared.plan, prepared.plan.cost, answers_of(prepared))

    def __reduce__(self) -> NoReturn:
        raise UnsupportedOperation(
            "a session cannot be pickled or copied: a copy would spend the same budget again",
            where="session",
            remedy="pass the session itself",
        )

    def _stated(self) -> StatedBudget:
        """The budget that plans are to be charged to, as reviewers read it."""
        identity = next(reversed(self.ledger.identities), None)
        bound = self.ledger.bound
        name = None if identity is None else self.name or DEFAULT_NAME
        return StatedBudget(name, identity, bound.whole, bound.counted)
