"""How often intervals hold what is exact, and errors stay within what plans say."""

from tests.held import choices, tables, vectors
from tests.held.trial import Kind

KINDS: dict[str, Kind] = {**vectors.KINDS, **tables.KINDS, **choices.KINDS}
CASES = [(name, spend) for name, kind in KINDS.items() for spend in kind.spends]
