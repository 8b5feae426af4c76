"""How rows of one individual may lie among groups, against all ways that they can."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import pytest

from dpframe.core.sensitivity import ContributionBounds
from dpframe.core.units import Rows

BOUNDS = [None, 0, 1, 2, 3, 5]
MOST = 5
"""No more groups and rows in each are tried."""


def ways(rows: int | None, groups: int | None, per_group: int | None) -> list[tuple[int, ...]]:
    return [
        way
        for way in combinations_with_replacement(range(MOST + 1), MOST)
        if (rows is None or sum(way) <= rows)
        and (groups is None or sum(n > 0 for n in way) <= groups)
        and (per_group is None or max(way) <= per_group)
    ]


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("rows", BOUNDS)
def test_bounds_are_as_tight_as_others_make_them(rows: int | None, changes: bool) -> None:
    for groups, per_group in product(BOUNDS, repeat=2):
        spread = ContributionBounds(rows, groups, per_group, changes)
        assert spread.is_bounded == (
            rows is not None or (groups is not None and per_group is not None)
        )
        if not spread.is_bounded:
            with pytest.raises(ValueError, match="any number"):
                _ = spread.tight
            continue
        found = ways(rows, groups, per_group)
        most = max(map(sum, found))
        touched = max(sum(n > 0 for n in way) for way in found)
        assert spread.tight == (most, touched, max(max(way) for way in found))
        assert spread.changed_groups == (2 * touched if changes else touched)
        assert spread.l2_squared == max(sum(n * n for n in way) for way in found)


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
def test_rows_may_be_anywhere(adjacency: str, copies: int) -> None:
    spread = ContributionBounds.of_rows(Rows(adjacency, contributions=3), copies)  # type: ignore[arg-type]
    assert spread == ContributionBounds(
        3 * copies, 3 * copies, 3 * copies, adjacency == "change-one"
    )
