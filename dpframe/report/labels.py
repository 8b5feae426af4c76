"""Facts about a plan in a few characters, for tables and diagrams."""

from __future__ import annotations

from dpframe.mechanisms import KeyMechanism, ReportMechanism
from dpframe.plan import NoisyAggregate, PlanData
from dpframe.report.group_size import about


def outputs(plan: PlanData) -> tuple[tuple[str, str], ...]:
    """Name and formula of each output."""
    return tuple((output.name, output.words) for output in plan.outputs)


def mechanism(release: NoisyAggregate) -> str:
    """Its mechanism as people write it."""
    return release.law.label


def error(release: NoisyAggregate) -> str:
    """How far off it may be, with 95% confidence."""
    if release.mechanism == "none":
        return ""
    if isinstance(release.law, ReportMechanism):
        return f"± {about(release.law.error_per_root(0.95))} √rows"
    found = about(release.accuracy())
    if isinstance(release.law, KeyMechanism):
        return f"groups of {found}"
    return f"{found} below best" if release.candidates is not None else f"± {found}"
