"""Plans as reviewers read them: in words, as charts, compared with others. What notebooks show."""

from dpframe.report.plan import Plan
from dpframe.report.render import Format

__all__ = ["Format", "Plan"]
