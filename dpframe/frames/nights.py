"""What one individual adds to sums that are drawn night after night of a frame that grows.

Limits choose among the rows that an individual has. A frame that grows has other rows each night.
So a limit that chooses by a hash may keep one row tonight and another tomorrow, and all nights
together see more of an individual than any one of them. Only what is the same through all nights
may be relied on:

*Rows* (`dp.Rows`). The individual's rows are counted by the promise of the data owner, over all
nights. A row may come late, and be there on some nights only: what it moves on a night is never
more than its period's column has there.

*A limit of rows for each date* (``limit_rows(m, by="day")``). Whichever m rows of a date are kept,
all of them have the same column.

*The first n rows, or the first g dates* (``limit_rows(n, order_by="day")``,
``limit_groups(g, by="day", order_by="day")``), as long as no row vanishes or gets another date. A
row that does not pass a filter before the limit any more has vanished for it: so what steps before
it look at must not change either.

Guarantee
---------
With the coefficients w of the nights (`dpframe.workloads.prefix_sums`), all nights together move by
no more than if the individual had contributions in the first `run` periods, in `keys` keys and
with `rows` rows in each.

Proof
-----
Let the row of night t be drawn from the frame as it was read then, or later. Let j_1 <= j_2 <=
... be the dates of the individual's existing rows (or its different dates). As rows are only ever
added, the i-th least date never rises, so what is kept, the n least, changes on each place only
to an earlier date. A place counts on night t if its date is due, j_i <= t; once it is due it
stays so, for t rises and j_i does not.

*n rows.* Let s be the first night on which place i is due, with the date d <= s. On each later
night t its date is d or earlier, so its coefficient is at most w_{t-d}, for w falls. So place i
moves no night by more than the column of d does, and n places move all nights by no more than n
times the longest column (triangle inequality), for any keys on any night.

*g dates.* The places have different dates on each night. Let place k be due first on night s_k;
then s_1 <= s_2 <= ... and on each later night place i <= k has a date of at most s_k - (k - i). So
on night t it has one of at most D_i(t) = i + min(s_k - k), over all k from i on that are due, which
differ among places. Let D_i be the same over all k that are ever due. If D_i < D_i(t), the least is
that of a k with s_k > t, and then D_i, D_{i+1}, ..., D_k are all the days from D_i up to s_k, which
have all those that places from i on may have on night t. So the ages of the contributions on any
night are no less than those of the fixed dates D_1 < D_2 < ..., which are g at most. Dates before
the first period count nothing, here as there. In sums of a tree, each place is in one sum of a
level at most: the next sum of that level begins after this one has ended, and the place's date
has not risen since.

*Keys.* With m rows of a date in all, whichever keys they are in, norms are at most those of one
key. With m rows in each of K keys, the squares add up to K m^2 times those of one row a date.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from dpframe.core.tree import Column
from dpframe.core.units import Identifier, Unit
from dpframe.errors import UnboundedSensitivity, UnsupportedOperation
from dpframe.frames.contribution_limits import LimitGroups, LimitRows
from dpframe.frames.definition import type_words
from dpframe.frames.groups import Groups
from dpframe.frames.joins import JoinPublic
from dpframe.frames.relation import Relation, Step
from dpframe.frames.row_steps import Drop, DropNulls, Explode, Filter, Rename, Select, WithColumns
from dpframe.frames.schedule import Schedule
from dpframe.kernel import plan as kernel
from dpframe.kernel.frame import GroupLimit, RowLimit
from dpframe.kernel.moves import Through, through_all_nights

__all__ = [
    "before_first_limits",
    "first_limits",
    "no_limit_of_nights",
    "require_rowwise",
    "require_streamable",
    "through_nights",
]

_ROWWISE = (Filter, DropNulls, WithColumns, Select, Rename, Drop, JoinPublic, Explode)
_LIMITS = (LimitRows, LimitGroups)


def require_rowwise(relation: Relation) -> None:
    """Refuse steps that are not known to treat a row in the same way every night.

    Raises
    ------
    UnsupportedOperation
        Naming the step.
    """
    for step, _ in relation.steps:
        if not isinstance(step, (*_ROWWISE, *_LIMITS)):
            raise UnsupportedOperation(
                "a stream needs steps that treat each row alone",
                where=step.words(),
                why="the frame has more rows each night",
                remedy="use row-wise steps, joins with public frames, limit_rows and limit_groups",
            )


def through_nights(
    relation: Relation, groups: Groups | None, schedule: Schedule, per_unit: bool
) -> tuple[Through, ...]:
    """What an individual may have through all nights, in as many ways as limits say; each holds
    on its own.

    Parameters
    ----------
    relation
        With an identifier; its steps are those that `require_rowwise` lets pass.
    groups
        The public keys besides the periods.
    schedule
        The periods.
    per_unit
        Whether an individual counts once in each group, however many rows it has there.

    Raises
    ------
    UnboundedSensitivity
        When no limit holds through all nights.
    """
    facts, day = relation.facts, schedule.by
    first = first_limits(relation, day)
    limits = tuple(x if x in first else replace(x, first=None) for x in facts.limits)
    every, start = cast("kernel.Every", schedule.every), schedule.start.isoformat()
    about = day, type_words(facts.columns[day].dtype), every, start, schedule.periods
    nights = kernel.Nights(0, *about, kernel.Root(()))
    size, named = (1, ()) if groups is None else (groups.size, groups.by)
    columns = [n.tree.name for n in named if isinstance(n.tree, Column)]  # which limits may name
    by = tuple((name, kernel.Col(name)) for name in (*columns, day))
    keys = kernel.Listed(by, (size * schedule.periods,), "")
    table = kernel.Table(0, keys, None, kernel.People() if per_unit else kernel.One())
    found = through_all_nights(replace(facts, limits=limits).reach, table, nights, size)
    if not found:
        raise no_limit_of_nights(facts.identifier, day)
    return tuple(dict.fromkeys(found))


def first_limits(relation: Relation, by: str) -> list[RowLimit | GroupLimit]:
    """Limits that keep the first dates in a column that still exists. Only row-wise steps may be
    before them, because a limit by a hash keeps other rows each night.
    """
    found: list[RowLimit | GroupLimit] = []
    number = 0
    steady = True
    for step, before in relation.steps:
        if isinstance(step, _LIMITS):
            number = len(before.limits)
            if steady and step.order_by is not None:
                now = relation.facts.limits[number]
                if now.first == by:
                    found.append(now)
            steady = False
    return found


def before_first_limits(relation: Relation, by: str) -> list[Step]:
    """The row-wise steps before the last limit that keeps the first dates in a column: what they
    make of a row must stay the same, for a row that they drop one night has vanished.
    """
    if not first_limits(relation, by):
        return []
    steps = [step for step, _ in relation.steps]
    firsts = [n for n, step in enumerate(steps) if isinstance(step, _LIMITS) and step.order_by]
    last = max(firsts, default=0)
    return [step for step in steps[:last] if not isinstance(step, _LIMITS)]


def no_limit_of_nights(who: str | None, by: str) -> UnboundedSensitivity:
    """The refusal of a stream of a frame whose limits, if it has any, hold for one night alone.

    Parameters
    ----------
    who
        The identifier.
    by
        The column of dates.
    """
    return UnboundedSensitivity(
        f"no limit bounds how much one individual ({who!r}) adds in all nights of the "
        "stream together",
        where=f"stream(..., by={by!r})",
        why="a limit that chooses rows by a hash may choose others each night",
        remedy=(
            f"keep the first rows of each individual: .limit_rows(n, order_by={by!r}), "
            "before other limits",
            f"keep the first dates, and rows of each: .limit_groups(g, by={by!r}, "
            f"order_by={by!r}).limit_rows(n, by={by!r})",
        ),
    )


def require_streamable(unit: Unit, by: str) -> None:
    """Refuse units without a proof.

    Raises
    ------
    UnsupportedOperation
        For an identifier within windows of time.
    """
    if isinstance(unit, Identifier) and getattr(unit, "window", None) is not None:
        raise UnsupportedOperation(
            "a stream does not work with an identifier within windows of time",
            where=f"stream(..., by={by!r})",
            remedy=("protect the frame with the identifier alone", "protect it with dp.Rows()"),
        )
