"""Plan documents of earlier versions: the fields that they lack follow from the rest.

Documents of the first edition lack

- the budget to charge, which becomes None;
- for a private choice, the range of an individual's score changes in one group. It becomes what
  the rows of one group can change, or more where the sums do not show that;
- for a mean or a variance, the middle of the bounds, at which values are centred. It becomes the
  middle as a float.

The fingerprint of a completed plan includes these fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isqrt
from typing import Any

from dpframe.core.sensitivity import ContributionBounds
from dpframe.plan.codec import decode
from dpframe.plan.draws import with_norm

_CENTRED = {"MeanError": ("GridSum", "grid"), "VarianceError": ("SquareSum", "inner")}
"""Which statistic of an output centres its values, and where that says the point."""


def complete_session(session: Mapping[str, Any]) -> dict[str, Any]:
    """The session of a document, with the budget."""
    return {"budget": None, **session}


def complete(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan of a document, with its missing fields; equal to it if nothing is missing. Raises
    `Malformed` when that cannot follow because numbers are invalid.
    """
    result = dict(plan)
    for name, fill in (("releases", _with_largest), ("outputs", _with_middle)):
        if isinstance(result.get(name), list):
            result[name] = [fill(i) if isinstance(i, dict) else i for i in result[name]]
    return result


def _with_largest(release: dict[str, Any]) -> dict[str, Any]:
    scores = release.get("scores")
    if not isinstance(scores, dict) or scores.keys() != {"l1", "l2_squared"}:
        return release
    total = decode(Fraction, scores["l1"], "scores.l1")
    squared = decode(Fraction, scores["l2_squared"], "scores.l2_squared")
    spread = decode(ContributionBounds, with_norm(release.get("spread")), "spread")
    # the range in one group, whose sum and the sum of squares over groups are known
    root = Fraction(isqrt(max(0, squared.numerator * squared.denominator)), squared.denominator)
    largest = min(total, root)
    if spread.is_bounded and spread.tight[0]:
        rows, _, per_group = spread.tight
        if squared == spread.l2_squared * (total / rows) ** 2:
            largest = per_group * (total / rows)
    return {**release, "scores": {**scores, "linf": str(largest)}}


def _with_middle(output: dict[str, Any]) -> dict[str, Any]:
    error = output.get("error")
    if not isinstance(error, dict) or "middle" in error:
        return output
    for kind, (statistic, grid) in _CENTRED.items():
        if error.get("kind") == kind:
            centre = _centre(output.get("definition"), statistic, grid)
            return output if centre is None else {**output, "error": {**error, "middle": centre}}
    return output


def _centre(definition: object, statistic: str, grid: str) -> object:
    """The first point that such a statistic centres values at; None if none exists."""
    if isinstance(definition, list):
        parts = (_centre(part, statistic, grid) for part in definition)
        return next((centre for centre in parts if centre is not None), None)
    if not isinstance(definition, dict):
        return None
    if definition.get("type") != statistic:
        return _centre([*definition.values()], statistic, grid)
    try:
        return definition[grid]["centre"]["fraction"]
    except (KeyError, TypeError):
        return None
