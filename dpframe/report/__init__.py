"""Plans as reviewers read them: in words, as charts, compared with others. What notebooks show."""

from dpframe.report.plan import Plan, Verification, verify
from dpframe.report.render import Format

__all__ = ["Format", "Plan", "Verification", "verify"]
