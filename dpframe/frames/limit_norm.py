"""Rows of each individual weigh so little that their norm over groups is bounded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import polars as pl

from dpframe.core.engines import EVERYWHERE
from dpframe.core.exact import as_given, exact, show
from dpframe.core.exprs import Change
from dpframe.core.weights import LARGEST_NORM, LEAST_NORM, PARTS
from dpframe.errors import UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.frames.sampling import require_identifier
from dpframe.frames.step import Step
from dpframe.rows.operation import Namespace

__all__ = ["LimitNorm", "read_norm"]


@dataclass(frozen=True, slots=True)
class LimitNorm(Step):
    """Let the rows of each individual count less, all by one factor, so that the norm of what it
    has in the groups asked for is at most `n`; never more than they are.

    With m_g rows of an individual in group g the norm is sqrt(sum(m_g**2)), and for what counts an
    individual once in each group the root of the number of its groups. The rows themselves stay:
    what is added up over them later is weighed, see `dpframe.lower.weighed`.

    Guarantee
    ---------
    Adding or removing an individual moves all groups of a weighed sum together by its own weighed
    rows alone: with b what one row moves it by, L2 = Linf = n b, and L1 = sqrt(g) n b for g listed
    groups. So it is for several sums that are drawn jointly, and b the widths of one row.

    Proof
    -----
    The weight of an individual is computed from its own numbers of rows per group, so no other
    individual's rows change with it. It is k / 2**12, with k whole and k**2 sum(m_g**2) <=
    floor(2**12 n)**2, which integers decide. In group g its rows add k m_g b / 2**12 at most to a
    sum, and the squares of these make (n b)**2 at most; by Cauchy and Schwarz they add up to
    sqrt(g) n b at most.

    Parameters
    ----------
    n
        The norm, in rows.
    """

    engines = EVERYWHERE

    n: Fraction

    def map_exprs(self, change: Change) -> Self:
        return self

    def facts(self, before: FrameFacts) -> FrameFacts:
        require_identifier(before.identifier, self.words())
        return replace(before, norm=self.n if before.norm is None else min(self.n, before.norm))

    def lower(
        self, frame: pl.LazyFrame, before: FrameFacts, ns: Namespace, salt: int
    ) -> pl.LazyFrame:
        return frame

    def words(self) -> str:
        return f"limit_norm({show(self.n)})"

    @property
    def stability(self) -> str:
        return (
            "how much an individual's rows count depends on these rows alone, in whole parts of "
            f"1/{PARTS}, rounded down; those of individuals with more count less, which biases "
            "results"
        )


def read_norm(n: object) -> Fraction:
    """A norm as it was given.

    Raises
    ------
    UnsupportedOperation
        When limits cannot have that value.
    """
    try:
        norm = exact(n)
    except (TypeError, ValueError, ZeroDivisionError):
        norm = Fraction(0)
    if not LEAST_NORM <= norm < LARGEST_NORM:
        raise UnsupportedOperation(
            f"a norm is a number from {show(LEAST_NORM)} to below {LARGEST_NORM}, not "
            f"{as_given(n)}",
            where="limit_norm(...)",
            remedy="write for example 3: the number of rows that an individual may have in "
            "one group",
        )
    return norm
