"""Charts of plans, budgets, releases, simulations and audits, with Altair, an optional extra.

Charts are made of public values only: plans, ledgers, released results, simulations, audits.
"""

from dpframe.report.plots.audit import plot_audit
from dpframe.report.plots.budget import plot_budget
from dpframe.report.plots.plan import plot_plan
from dpframe.report.plots.release import plot_release
from dpframe.report.plots.simulation import plot_simulation

__all__ = ["plot_audit", "plot_budget", "plot_plan", "plot_release", "plot_simulation"]
