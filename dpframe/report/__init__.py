"""Plans as reviewers read them: in words, as charts, compared with others. What notebooks show."""

from dpframe.report.plan import Plan
from dpframe.report.render import Format
from dpframe.report.verification import Verification, verify

__all__ = ["Format", "Plan", "Verification", "verify"]
