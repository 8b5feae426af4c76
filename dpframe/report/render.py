"""Plans in the formats that people read."""

from __future__ import annotations

from typing import Literal, TypeAlias

from dpframe.errors import UnsupportedOperation
from dpframe.plan import PlanData
from dpframe.report.chapters import chapters
from dpframe.report.group_size import size_of
from dpframe.report.html import html
from dpframe.report.markdown import markdown
from dpframe.report.mermaid import mermaid
from dpframe.report.text import text

Format: TypeAlias = Literal["text", "markdown", "html", "mermaid"]


def render(plan: PlanData, format: str, size: int | None = None) -> str:
    """The plan in one of the formats.

    Parameters
    ----------
    size
        A guess of the individuals in each group, for warnings.

    Raises
    ------
    UnsupportedOperation
        For a format that does not exist.
    InvalidBounds
        For a guess that is not a positive integer.
    """
    found = chapters(plan, None if size is None else size_of(size))
    match format:
        case "text":
            return text(found)
        case "markdown":
            return markdown(found)
        case "html":
            return html(plan, found)
        case "mermaid":
            return mermaid(plan)
        case _:
            raise UnsupportedOperation(
                f"a plan cannot be explained as {format!r}",
                where="explain(format=...)",
                remedy='use "text", "markdown", "html" or "mermaid"',
            )
