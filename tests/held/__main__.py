"""Prints the table of what holds how often in `docs/benchmarks.md`: ``python -m tests.held``."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.audit.test_audit import seeded
from tests.held import CASES, KINDS
from tests.held.trial import ALL, INTERVAL, LEAST, NEAR, SPENDS, Promise, shares


def main() -> None:
    """The least and the largest share of the outputs of each kind."""
    print("| what is released | spend | `interval=` | `accuracy` | of all at once |")
    print("| --- | --- | ---: | ---: | ---: |")
    for name, spend in CASES:
        print(row(name, spend), flush=True)


def row(name: str, spend: str) -> str:
    """With what is not as it should be, if anything."""
    kind = KINDS[name]
    with pytest.MonkeyPatch.context() as patch:
        seeded(patch, 1)
        found = shares(kind.make(SPENDS[spend]), kind.runs)
    cells = [
        _between((p, share) for p, share in found.items() if p[0] == what)
        for what in (INTERVAL, NEAR, ALL)
    ]
    off = [p for p, share in found.items() if not LEAST <= share <= kind.most(p)]
    return f"| {name} | {spend} | {' | '.join(cells)} |{f' OFF: {off}' if off else ''}"


def _between(found: Iterable[tuple[Promise, float]]) -> str:
    each = sorted(f"{share:.3f}" for _, share in found)
    return " to ".join(dict.fromkeys([each[0], each[-1]])) if each else ""


if __name__ == "__main__":
    main()
