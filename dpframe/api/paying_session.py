"""Sessions as those see them whom they pay for: what there is to spend, and what was spent."""

from __future__ import annotations

from datetime import date
from typing import Any, NoReturn

import polars as pl

from dpframe.api.history import history_of
from dpframe.api.kept_frame import kept_frame
from dpframe.api.payer import Payer
from dpframe.core.budget import Budget
from dpframe.core.exact import as_given, nearest
from dpframe.core.windows import NAMES, Windows, number_of
from dpframe.errors import InvalidBudget, LedgerError, UnsupportedOperation
from dpframe.report.notebook import session_html
from dpframe.report.plots import plot_budget
from dpframe.sealed import all_sealed


@all_sealed
class PayingSession:
    """The budget of a `Session`: what is left of it, and what it was spent on."""

    def __init__(self, payer: Payer) -> None:
        self._payer = payer

    @property
    def budget(self) -> Budget:
        """The whole budget, with all amounts that were granted later.

        For a part: the amount that it was charged plus the amount that it can still be charged,
        which other parts change.
        """
        return self._payer.budget

    @property
    def spent(self) -> Budget:
        """The exact sum of all charges, those of other processes included.

        With ``composition="zcdp"`` it is in rho, with ``"gdp"`` in mu squared, as is `remaining`.
        """
        return self._payer.ledger.spent

    @property
    def remaining(self) -> Budget:
        """The remaining budget; 0 once the budget was closed."""
        return self._payer.ledger.remaining

    def remaining_in(self, day: date | None) -> Budget:
        """The remaining budget of the window that contains a day, where the session has one
        budget per window; None is the window of rows without a time.

        Parameters
        ----------
        day
            A date, or a datetime as the clocks of the data's zone show it.

        Raises
        ------
        InvalidBudget
            When the session has one budget for all time.
        """
        every = self._payer.ledger.per
        if every is None:
            raise InvalidBudget(
                "the session has one budget for all time",
                where="session.remaining_in(...)",
                remedy=(
                    "use session.remaining",
                    'open the session with dp.Session(..., per="1mo")',
                ),
            )
        if day is None:
            return self._payer.remaining_in(Windows(every, 0, -1))
        if not isinstance(day, date):
            raise InvalidBudget(
                f"{as_given(day)} is not a day",
                where="session.remaining_in(...)",
                remedy="give a datetime.date",
            )
        number = number_of(every, day)
        return self._payer.remaining_in(Windows(every, number, number, without=False))

    @property
    def history(self) -> pl.DataFrame:
        """One row per charge: `time`, `fingerprint`, `epsilon`, `delta`, `rho`, `status`. If
        known, the columns `user`, `host`, `process`, `job` and `run` state who was charged.

        Charges of other processes that use the ledger are included. Amounts are in the measure of
        the charge: with ``composition="zcdp"`` rho and no epsilon, with ``"gdp"`` only a last
        column `mu_squared`.

        For a budget per time window, an amount is the increase of the largest amount spent in any
        window. Two more columns, `windows` and `in_each`, list the charged windows and the amount
        for each. These amounts are for a person's rows in one window; for a person with rows in n
        of them epsilon is n times as large.
        """
        return history_of(self._payer.ledger.entries, self._payer.measure)

    def releases(self) -> pl.DataFrame:
        """One row per kept result of the budget, including those of other processes:
        `fingerprint` of the plan, `time` in UTC, `frame`, `cost` and `query` in words. `run`,
        `periods` (of a stream, or the part or windows that were charged) and `parameters` are set
        where the result has them, and `number` is the number of its charge.

        The same query with ``reuse="same"`` returns a stored result again, and ``dpframe ledger
        restore`` writes it to a file.
        """
        return kept_frame(self._payer.ledger.keeping)

    def plot(self) -> Any:
        """The spent budget over time, as an Altair chart: `history` added up, below the budget.

        Raises
        ------
        UnsupportedOperation
            When Altair is not installed.
        """
        payer = self._payer
        most = nearest(payer.ledger.budget.main)
        return plot_budget(self.history, payer.measure.currency, most, payer.name)

    def __reduce__(self) -> NoReturn:
        raise UnsupportedOperation(
            "a session cannot be pickled or copied: a copy would spend the same budget again",
            where="session",
            remedy="pass the session itself",
        )

    def __repr__(self) -> str:
        payer = self._payer
        label = "" if payer.name is None else f" {payer.name!r}"
        where = payer.ledger.where
        try:
            left, whole = self.remaining.words(), payer.ledger.budget.words()
            if payer.ledger.per is not None:
                whole += f" in the {NAMES[payer.ledger.per]} with the least left"
            if payer.counts_apart and payer.whole is None:
                whole += f" (for {self.budget.words()}, added up in {payer.measure.currency})"
        except LedgerError as error:
            return f"<Session{label}: {where}; {error.what}>"
        return f"<Session{label}: {left} of {whole} remains, {where}>"

    def _repr_html_(self) -> str:
        return session_html(self, self._payer.name, self._payer.ledger.where)


def payer_of(session: PayingSession) -> Payer:
    """Who pays for what belongs to a session."""
    return session._payer
