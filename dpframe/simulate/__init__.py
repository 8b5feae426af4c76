"""Running a plan many times on public data, to see its errors."""

from dpframe.simulate.runs import simulate
from dpframe.simulate.simulation import Simulation

__all__ = ["Simulation", "simulate"]
