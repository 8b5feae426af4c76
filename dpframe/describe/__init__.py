"""From choices to a plan that people read."""

from dpframe.describe.describe import (
    PAYS,
    build_plan,
    cost_of_forcing,
    described_together,
    entries_of,
    gain_words,
    is_forced,
    unforced,
)

__all__ = [
    "PAYS",
    "build_plan",
    "cost_of_forcing",
    "described_together",
    "entries_of",
    "gain_words",
    "is_forced",
    "unforced",
]
