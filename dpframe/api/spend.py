"""What an analyst asks to spend on a query, as it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpframe.aggregates.aggregate import Query
from dpframe.charge import accuracy_within, slack_beside_accuracy, spend_in, spend_within
from dpframe.choose import Split
from dpframe.core.budget import Budget
from dpframe.core.exact import Number, exact
from dpframe.errors import InvalidBudget
from dpframe.infer import Queries
from dpframe.minimum_spend import minimum_spend


@dataclass(frozen=True, slots=True)
class Spend:
    """Amounts, or the accuracy that they should buy.

    Parameters
    ----------
    epsilon, delta, rho, accuracy, split
        As for `PrivateQuery.plan`.

    Raises
    ------
    InvalidBudget
        For an unknown way to divide costs.
    """

    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None
    accuracy: Mapping[str, Number] | None = None
    split: Split = "least error"

    def __post_init__(self) -> None:
        if self.split not in ("least error", "equal"):
            raise InvalidBudget(
                f"split={self.split!r} is not known",
                where=f"split={self.split!r}",
                remedy=(
                    'write split="least error" or split="equal"',
                    "write weight= in dp expressions",
                ),
            )

    def fields(self) -> tuple[object, ...]:
        """All of it, exactly, as JSON has it."""
        amounts = [
            None if a is None else str(exact(a)) for a in (self.epsilon, self.delta, self.rho)
        ]
        wanted = self.accuracy
        by_name = None if wanted is None else [[n, str(exact(wanted[n]))] for n in sorted(wanted)]
        return (*amounts, by_name, self.split)

    def within(
        self,
        query: Query | Queries,
        measure: type[Budget],
        remaining: Budget | None = None,
        *,
        counted_apart: bool = False,
    ) -> Budget:
        """The spend in a measure.

        Parameters
        ----------
        query
            The query or queries to spend on, which determine what an accuracy costs.
        measure
            The measure of the session.
        remaining
            What the session has left, for messages.
        counted_apart
            Whether the session adds up rho or mu squared for plans that satisfy (epsilon, delta).

        Raises
        ------
        InvalidBudget
            When it is empty, not positive, or in another measure, or no spend is accurate enough.
        """
        amounts = self.epsilon, self.delta, self.rho
        if self.accuracy is None:
            if counted_apart:
                assert remaining is not None
                return spend_within(*amounts, remaining)
            return spend_in(measure, *amounts, remaining)
        if counted_apart:
            measure, slack = accuracy_within(*amounts)
        else:
            slack = slack_beside_accuracy(measure, *amounts)
        return minimum_spend(query, measure, slack, self.accuracy, self.split)
