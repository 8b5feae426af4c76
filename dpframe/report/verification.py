"""`verify`: what the kernel computes from a plan, without data, ledger or network."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from fractions import Fraction

from dpframe.core.budget import GDP, ZCDP, ApproxDP, Budget, PureDP
from dpframe.errors import Unsound
from dpframe.kernel import Plan as PhysicalPlan
from dpframe.kernel.plan import write
from dpframe.kernel.render import render as render_physical
from dpframe.plan import document
from dpframe.plan.agreement import disagreement
from dpframe.plan.verified import require_verified
from dpframe.report.plan import Plan

_EARLIER = """\
NOT VERIFIED: the document has schema version 1, which does not state what happens to rows.
Checked: the costs cover the noise, if one individual changes numbers as much as the plan states.
Not checked: whether one individual can change them more. Plan the query again with this version."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was verified about a plan; `verify` returns it, and ``print`` shows it.

    Parameters
    ----------
    is_complete
        Whether the kernel verified the physical plan. False for documents of version 1, which have
        none: there only the stated costs were compared with the stated sensitivities.
    cost
        What the plan costs.
    fingerprint
        The fingerprint of the plan, which approvals name.
    digest
        The SHA-256 of the physical plan; None for documents of version 1.
    statements
        What happens, a sentence for each step, table and draw, and for the cost. All of it follows
        from the physical plan alone.
    """

    is_complete: bool
    cost: Budget
    fingerprint: str
    digest: str | None
    statements: tuple[str, ...]

    def __str__(self) -> str:
        if self.digest is None:
            return "\n".join((_EARLIER, f"fingerprint {self.fingerprint}"))
        return "\n".join(
            (
                "VERIFIED: the draws below cost what the plan states, or less.",
                *self.statements,
                f"physical plan {self.digest}",
                f"fingerprint   {self.fingerprint}",
            )
        )


def verify(plan: Plan | str | bytes | os.PathLike[str]) -> Verification:
    """Verify a plan by the kernel alone: it reads neither data nor ledgers, and trusts no number
    that it can compute from the plan's steps, tables and noise.

    Guarantee
    ---------
    If a plan is verified, and a release does what its statements say, then the release has the
    plan's cost. `dpframe.kernel.verify` has the proof.

    Parameters
    ----------
    plan
        A plan, the JSON that `Plan.to_json` returns, or the path of a file with it.

    Returns
    -------
    Verification
        What was verified. For a document of version 1 `is_complete` is False.

    Raises
    ------
    Unsound
        With the first statement that does not follow, such as a cost below what the noise costs.
    PlanMismatch
        When the document was edited, or when what people read in it contradicts what the kernel
        verifies.
    UnsupportedOperation
        When it is not the document of a plan.

    Examples
    --------
    >>> import polars as pl, dpframe as dp
    >>> session = dp.Session(epsilon=1)
    >>> people = session.protect(pl.DataFrame({"age": [31, 64]}), unit=dp.Rows(), name="people")
    >>> found = dp.verify(people.dp_count().plan(epsilon="0.1"))
    >>> print(found.statements[-3])
    table 0: Over the rows of frame 0: the number of rows.
    >>> print(found.statements[-1])
    cost: The whole plan costs epsilon 0.1: the sum of its draws.
    """
    if not isinstance(plan, Plan):
        text = document.content_of(plan)
        # before any digest is compared, so that an edited number is named
        physical = document.physical_in(text)
        if physical is not None:
            require_verified(physical)
        plan = Plan.from_json(text)
    physical = plan.physical
    if physical is None:
        return Verification(False, plan.cost, plan.fingerprint, None, ())
    require_verified(physical)
    wrong = disagreement(plan, physical)
    if wrong is not None:
        raise Unsound(
            f"the plan does not hold: {wrong} contradicts the physical plan",
            remedy="plan the query again",
        )
    whole = write(physical)
    statements = tuple(render_physical(physical).splitlines())
    digest = hashlib.sha256(whole.encode()).hexdigest()
    return Verification(True, _cost(physical), plan.fingerprint, digest, statements)


def _cost(physical: PhysicalPlan) -> Budget:
    """What a physical plan costs."""
    measure = physical.measure if physical.composition == "sum" else "epsilon"
    main, delta = physical.cost, physical.delta
    match measure:
        case "rho":
            return ZCDP.of(main, delta)
        case "mu_squared":
            return GDP.of(main, Fraction(0))
        case "epsilon":
            return ApproxDP.of(main, delta) if delta else PureDP.of(main, delta)
