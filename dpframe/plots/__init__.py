"""Charts of plans, budgets, releases and simulations, with Altair, which is an optional extra.

Charts are made of public values only: plans, ledgers, released results and simulations.
"""

from dpframe.plots.budget import plot_budget
from dpframe.plots.plan import plot_plan
from dpframe.plots.release import plot_release
from dpframe.plots.simulation import plot_simulation

__all__ = ["plot_budget", "plot_plan", "plot_release", "plot_simulation"]
