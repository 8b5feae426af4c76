"""Plans in the formats that people read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from dpframe.errors import UnsupportedOperation
from dpframe.plan import PlanData
from dpframe.report.chapters import chapters
from dpframe.report.difference import differences
from dpframe.report.first_page import first_page
from dpframe.report.group_size import size_of
from dpframe.report.html import html
from dpframe.report.markdown import markdown
from dpframe.report.mermaid import mermaid
from dpframe.report.text import text
from dpframe.report.too_wide import typical_of

Format: TypeAlias = Literal["text", "markdown", "html", "mermaid"]


def render(
    plan: PlanData,
    format: str,
    size: int | None = None,
    typical: Mapping[str, object] | None = None,
    *,
    details: bool = False,
    since: PlanData | None = None,
    fingerprint: str = "",
) -> str:
    """The plan in one of the formats.

    Parameters
    ----------
    size, typical
        Guesses of the individuals in each group, and of values of columns, for risks.
    details
        Whether all that is behind the first page follows.
    since
        A plan that was approved before, to compare with.
    fingerprint
        Shown on a page of HTML; without it HTML is a fragment.

    Raises
    ------
    UnsupportedOperation
        For a format that does not exist.
    InvalidBounds
        For a guess that is not a positive integer, or no number.
    """
    number = None if size is None else size_of(size)
    changes = None if since is None else tuple(differences(since, plan))
    page = first_page(plan, number, typical_of(typical or {}), changes)
    match format:
        case "text":
            return text(page, chapters(plan) if details else ())
        case "markdown":
            return markdown(page, chapters(plan) if details else ())
        case "html":
            return html(plan, page, chapters(plan), fingerprint=fingerprint, is_open=details)
        case "mermaid":
            return mermaid(plan)
        case _:
            raise UnsupportedOperation(
                f"a plan cannot be printed as {format!r}",
                where="explain(format=...)",
                remedy='write format="text", "markdown", "html" or "mermaid"',
            )
