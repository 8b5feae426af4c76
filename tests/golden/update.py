"""Rewrites the kept plans: ``python -m tests.golden.update``.

Read the difference before you commit: every changed line is one that a reviewer will read.
"""

from __future__ import annotations

from tests.golden.queries import PLANS, QUERIES


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


if __name__ == "__main__":
    main()
