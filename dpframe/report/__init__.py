"""Plans as reviewers read them: in words, as charts, compared with others."""

from dpframe.report.plan import Plan

__all__ = ["Plan"]
