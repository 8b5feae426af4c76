"""Charts of plans, budgets, releases, simulations and audits, with Altair, an optional extra.

Charts are made of public values only: plans, ledgers, released results, simulations, audits.
"""

from dpframe.plots.audit import plot_audit
from dpframe.plots.budget import plot_budget
from dpframe.plots.plan import plot_plan
from dpframe.plots.release import plot_release
from dpframe.plots.simulation import plot_simulation

__all__ = ["plot_audit", "plot_budget", "plot_plan", "plot_release", "plot_simulation"]
