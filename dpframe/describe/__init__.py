"""From choices to a plan that people read; and what is known of a frame."""

from dpframe.describe.describe import described, entries_of
from dpframe.describe.frame import frame_words, known_columns

__all__ = ["described", "entries_of", "frame_words", "known_columns"]
