"""From choices to a plan that people read."""

from dpframe.describe.describe import (
    PAYS,
    contents_of,
    cost_of_forcing,
    described,
    described_together,
    entries_of,
    gain_words,
    is_forced,
    unforced,
)

__all__ = [
    "PAYS",
    "contents_of",
    "cost_of_forcing",
    "described",
    "described_together",
    "entries_of",
    "gain_words",
    "is_forced",
    "unforced",
]
