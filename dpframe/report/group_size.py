"""What noise and delta mean for groups of a size that the reviewer guesses."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, Context
from fractions import Fraction

from dpframe.core.exact import as_given, show
from dpframe.errors import InvalidBounds
from dpframe.mechanisms import KeyMechanism, ReportMechanism
from dpframe.plan import NoisyAggregate, PlanData
from dpframe.report.numbers import separated, shown

_TOO_MUCH = Fraction(1, 10)


def size_of(size: object) -> int:
    """A guessed number of individuals.

    Raises
    ------
    InvalidBounds
        When it is not a positive integer.
    """
    if isinstance(size, int) and not isinstance(size, bool) and 0 < size < 2**63:
        return size
    raise InvalidBounds(
        f"size= is a positive integer below 2**63, and {as_given(size)} is not",
        where="explain(size=...)",
        remedy="write for example size=1000",
    )


def warnings_at(plan: PlanData, size: int) -> Iterator[str]:
    """The risks if each group, or all rows without groups, has this many individuals."""
    individuals = size * (plan.groups or 1)
    if plan.cost.slack > Fraction(1, individuals):
        yield (
            f"delta {shown(plan.cost.slack)} is above one over {shown(individuals)} individuals: "
            "it allows to publish one of them as they are"
        )
    for release in plan.releases:
        if release.mechanism != "none":
            yield from _large_error(release, size)


def _large_error(release: NoisyAggregate, size: int) -> Iterator[str]:
    what = f"{release.name} [{release.aggregate}]"
    law = release.law
    if isinstance(law, KeyMechanism):
        if release.accuracy() > size:
            yield (
                f"{what}: a group of {shown(size)} individuals may well be missing, because a "
                f"group needs {shown(release.accuracy())} to appear in 95% of cases"
            )
        return
    if isinstance(law, ReportMechanism):
        most, error = float(size), law.error(0.95, size)
    else:
        most, error = size * release.sensitivity.linf, release.accuracy()
    if error <= most * _TOO_MUCH:
        return
    found = f"the noise may be {separated(about(error))} (95%)"
    if release.candidates is not None:
        found = f"the chosen score may be {separated(about(error))} below the best (95%)"
        if "quantile" in release.aggregate:
            yield (
                f"{what}: if the rows of {shown(size)} individuals are sorted, the published value "
                f"may stand {separated(about(error))} places from the exact one (95%)"
            )
            return
    yield (
        f"{what}: {found}, more than a tenth of {shown(most)}, the most that {shown(size)} "
        "individuals can add"
    )


def about(value: float) -> str:
    """An error bound for people: four digits, rounded up so that it stays a bound."""
    if not 1e-4 <= value < 1e15:
        return show(value, 4)
    return f"{Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(value)).normalize():f}"
