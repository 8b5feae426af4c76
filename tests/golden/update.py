"""Rewrites the kept plans and their fingerprints: ``python -m tests.golden.update``.

Read the difference before you commit: every changed line is one that a reviewer will read.
"""

from __future__ import annotations

from tests.golden.queries import FINGERPRINTS, PLANS, QUERIES, fingerprints


def main() -> None:
    """Write each plan, and remove those of queries that are no more."""
    wanted = {golden.path for golden in QUERIES}
    for path in set(PLANS.iterdir()) - wanted:
        path.unlink()
        print(f"removed {path.name}")
    for golden in QUERIES:
        text = golden.plan().explain() + "\n"
        if not golden.path.exists() or golden.path.read_text() != text:
            golden.path.write_text(text)
            print(f"updated {golden.path.name}")
    if not FINGERPRINTS.exists() or FINGERPRINTS.read_text() != fingerprints():
        FINGERPRINTS.write_text(fingerprints())
        print(f"updated {FINGERPRINTS.name}")


if __name__ == "__main__":
    main()
