"""What reviewers approve: a plan, or all that differ from it in values of parameters alone."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from dpframe.api.parameters import not_of
from dpframe.cli.input import BadInput, plan_in
from dpframe.cli.job import is_job, read_job
from dpframe.cli.output import Announced
from dpframe.cli.pins import given_parameters
from dpframe.core.parameters import NotAValue
from dpframe.errors import UnsupportedOperation
from dpframe.ledger.approvals import ANY, Allowed, read_range
from dpframe.plan.document import lacks_types, template_fingerprint
from dpframe.report import Plan


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A plan, and what its parameters may be.

    Parameters
    ----------
    plan
        With one value of each parameter.
    allowed
        The values that they may have; those that are not here are as they are in the plan.
    """

    plan: Plan
    allowed: Allowed

    @property
    def fingerprint(self) -> str:
        """What is approved: the plan's, or that of all plans with other values."""
        if not self.allowed:
            return self.plan.fingerprint
        words = {name: found.words for name, found in self.allowed}
        return template_fingerprint(self.plan, words)

    def ranges(self) -> dict[str, str]:
        """What parameters may be, by name, in words."""
        return {name: found.words for name, found in self.allowed}


def reviewed(parsed: argparse.Namespace) -> Reviewed:
    """What the arguments of ``dpframe approve`` name: a job is planned, and charged nothing.

    Raises
    ------
    BadInput
        When the file is neither a job nor a plan.
    UnsupportedOperation
        When the plan does not have the parameter, or its values are invalid.
    """
    path: Path = parsed.plan
    given = given_parameters(parsed)
    if is_job(path):
        with Announced(parsed, parsed.ledger, parsed.name, new="plan"):
            job = read_job(path, given, ranged=True)
            return Reviewed(job.plan(), job.allowed)
    plan = plan_in(path)
    if lacks_types(plan):
        refusal = UnsupportedOperation(
            "an earlier version of dpframe wrote the plan",
            why="its fingerprint does not cover the types of columns",
            remedy="plan the query again with this version, and approve that plan",
        )
        raise BadInput(refusal, path)
    return Reviewed(plan, _allowed(plan, given, path))


def _allowed(plan: Plan, given: dict[str, str], path: Path) -> Allowed:
    known = {parameter.name: parameter for parameter in plan.parameters}
    result = []
    for name, text in sorted(given.items()):
        if name not in known:
            refusal = UnsupportedOperation(
                f"the plan has no parameter {name!r}",
                remedy=f"use its parameters: {', '.join(known)}" if known else "leave --param out",
            )
            raise BadInput(refusal, path)
        kind = known[name].kind
        try:
            found = read_range(text, kind)
            same = found is not None or kind.text(kind.read(text)) == known[name].value
        except NotAValue:
            raise not_of(name, kind, text) from None
        if not same:
            refusal = UnsupportedOperation(
                f"the plan was made for {known[name].words()}",
                remedy=(f"leave --param {name} out", f"give a range: --param {name}={ANY}"),
            )
            raise BadInput(refusal, path)
        if found is not None:
            result.append((name, found))
    return tuple(result)
