"""From choices to a plan that people read."""

from dpframe.describe.describe import contents_of, described, entries_of
from dpframe.describe.forced import cost_of_forcing, is_forced, unforced
from dpframe.describe.several import PAYS, described_together, gain_words

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
