"""From choices to a plan that people read."""

from dpframe.describe.describe import described, entries_of
from dpframe.describe.several import PAYS, described_together, gain_words

__all__ = ["PAYS", "described", "described_together", "entries_of", "gain_words"]
