"""The kernel: it checks each plan before it is charged, and believes nothing that it can compute.

A *physical plan* (`plan.py`) says all that will happen: which rows are read, what is done to them,
which whole numbers are added up, and which noise they get. `verify` computes from such a plan
alone how far one individual can move each number, and what the noise costs then. It refuses the
plan where that is more than the plan states. So the planner need not be trusted.

The kernel imports nothing of dpframe. Read it in this order: `plan`, `frame`, `moves`, `laws`,
`verify`.
"""

from dpframe.kernel.plan import Plan, Refused
from dpframe.kernel.verify import Verified, verify

__all__ = ["Plan", "Refused", "Verified", "verify"]
