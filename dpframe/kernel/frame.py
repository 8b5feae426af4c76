"""How far one individual reaches in a frame: the rules of stability, one for each step.

Facts follow from the steps alone. A plan cannot state them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, isqrt, prod
from typing import TypeAlias

from dpframe.kernel.plan import (
    Call,
    Col,
    DistinctPersons,
    Explode,
    Filter,
    Found,
    Frame,
    Gather,
    KeepGroups,
    KeepRows,
    Keys,
    Listed,
    Lit,
    Lookup,
    Map,
    Meet,
    OfPeople,
    OneEach,
    Part,
    People,
    Person,
    PersonRows,
    PersonTotal,
    Refused,
    Row,
    Rows,
    Scan,
    Table,
    Union,
    Values,
    Weigh,
    Without,
)

PARTS = 1 << 12
"""The parts of one row where rows are weighed."""

Term: TypeAlias = "str | int"
"""A column of a limit by name, or a number for one that is gone or has other values now."""


@dataclass(frozen=True)
class RowLimit:
    """An individual has at most `n` rows for each value of the columns `by`."""

    n: int
    by: frozenset[Term] = frozenset()
    first: Term | None = None
    """They are the first ones in the order of this column, and only steps that look at one row
    alone come before the limit.
    """


@dataclass(frozen=True)
class GroupLimit:
    """The rows of an individual have at most `n` different values of the columns `by`."""

    n: int
    by: frozenset[Term]
    first: Term | None = None
    """As for `RowLimit`."""


Limit: TypeAlias = RowLimit | GroupLimit


@dataclass(frozen=True)
class Facts:
    """What is known of a frame.

    With rows as the unit, `person` is None and an individual has at most `rows` rows. `complete`
    says that each row of the source is one row here. With persons, `limits` and `norm` bound what
    an individual has; `time` and `every` are those of `Person`. `alone` says that each step looks
    at one row alone, or limits what an individual has.
    """

    columns: tuple[str, ...]
    rows: int
    complete: bool
    person: str | None = None
    time: str | None = None
    every: str | None = None
    limits: tuple[Limit, ...] = ()
    norm: Fraction | None = None
    alone: bool = True
    types: tuple[tuple[str, str], ...] = ()
    """The types of columns that are those of the source."""


def facts_of(frames: Sequence[Frame]) -> tuple[Facts, ...]:
    """The facts of each frame, from those of the frames before it."""
    found: list[Facts] = []
    for frame in frames:
        facts = _facts(frame, found)
        facts = replace(facts, limits=_strictest(facts.limits))
        if max([facts.rows, *(limit.n for limit in facts.limits)]) > _MOST_ROWS:
            raise Refused("an individual with more rows than can be counted")
        found.append(facts)
    return tuple(found)


_MOST_ROWS = 1 << 128
_MOST_LIMITS = 256
"""More do not occur: a few joins of a frame with itself would make as many as there are atoms."""


def _strictest(limits: Sequence[Limit]) -> tuple[Limit, ...]:
    """Of limits by the same columns, the one that leaves the fewest."""
    found: dict[object, Limit] = {}
    for limit in limits:
        same = type(limit), limit.by, limit.first
        if same not in found or limit.n < found[same].n:
            found[same] = limit
    if len(found) > _MOST_LIMITS:
        raise Refused("too many limits")
    return tuple(found.values())


def _facts(frame: Frame, before: Sequence[Facts]) -> Facts:
    match frame:
        case Scan(_, columns, unit, owners):
            names = tuple(name for name, _ in columns)
            _require_names(names)
            if owners is not None and (isinstance(unit, Rows) or owners.here not in names):
                raise Refused("the owners of rows")
            return replace(_of_source(names, unit), types=columns)
        case Map(input, columns):
            return _map(_input(before, input), columns)
        case Filter(input, conditions):
            return _keep(_input(before, input), conditions)
        case Part(input, by, key):
            if len(by) != len(key):
                raise Refused("a key of a part has another number of values")
            return _keep(_input(before, input), by)
        case Without(input, by):
            return replace(_keep(_input(before, input), by), alone=False)
        case Explode(input, column, most):
            facts = _input(before, input)
            if column not in facts.columns or most < 1 or column in (facts.person, facts.time):
                raise Refused("an exploded column")
            limits = rename_limits(facts.limits, {c: c for c in facts.columns if c != column})
            return replace(
                facts,
                rows=facts.rows * most,
                complete=False,
                limits=copy_limits(limits, most),
                types=tuple(pair for pair in facts.types if pair[0] != column),
            )
        case Lookup(input, _, on, how, new, most):
            return _look_up(_input(before, input), on, how, new, most)
        case Union(left, right):
            return _unite(_input(before, left), _input(before, right))
        case Meet(left, right):
            return _meet(frame, _input(before, left), _input(before, right))
        case KeepRows(input, n, by, first) | KeepGroups(input, n, by, first):
            facts = _input(before, input)
            if isinstance(frame, KeepRows) and not {*(frame.of or ())} <= {*facts.columns}:
                raise Refused("a limit by columns that are not there")
            return _limit(facts, n, by, first, isinstance(frame, KeepGroups))
        case Weigh(input, norm):
            facts = _input(before, input)
            if facts.person is None or not Fraction(1, 64) <= norm < 1 << 16:
                raise Refused("a norm")
            return replace(facts, norm=norm if facts.norm is None else min(norm, facts.norm))
        case OneEach(input, by):
            facts = _input(before, input)
            if facts.person is None:
                raise Refused("one row for each individual, where rows have no owner")
            _require_columns(facts, (*by, *(end.row for end in frame.ends)))
            owner = (facts.person,) if facts.time is None else (facts.person, facts.time)
            ends = (name for end in frame.ends for name in (end.least, end.largest))
            names = (*owner, frame.rows, frame.groups, frame.fullest, *ends)
            _require_names(names)
            return replace(
                facts,
                columns=names,
                complete=False,
                limits=(RowLimit(1, frozenset()),),
                norm=None,
                alone=False,
                types=(),
            )
        case Gather(input, by, new, bounds, beside):
            if len(bounds) != len(new) or any(b is not None and b[0] > b[1] for b in bounds):
                raise Refused("bounds of aggregates")
            return _gather(_input(before, input), by, new, beside)


def _input(before: Sequence[Facts], place: int) -> Facts:
    if not 0 <= place < len(before):
        raise Refused("a step on a frame that does not come before it")
    return before[place]


def _require_names(names: Sequence[str]) -> None:
    if len({*names}) != len(names):
        raise Refused("two columns of one name")


def _require_columns(facts: Facts, rows: Iterable[Row]) -> None:
    """Refuse expressions of columns that are not there."""
    for row in rows:
        if not columns_of(row) <= {*facts.columns}:
            raise Refused("an expression of a column that is not there")


def columns_of(row: Row) -> frozenset[str]:
    """The columns that an expression reads."""
    match row:
        case Col(name):
            return frozenset((name,))
        case Lit():
            return frozenset()
        case Call(_, operands):
            return frozenset().union(*map(columns_of, operands))


def _of_source(names: tuple[str, ...], unit: Rows | Person) -> Facts:
    match unit:
        case Rows(contributions):
            if contributions < 1:
                raise Refused("an individual without rows")
            return Facts(names, contributions, complete=True)
        case Person(column, every, time):
            windowed = every is not None
            if column not in names or windowed != (time is not None) or time == column:
                raise Refused("the owner of rows")
            if time is not None and time not in names:
                raise Refused("the owner of rows")
            return Facts(names, 0, complete=False, person=column, time=time, every=every)


def _keep(facts: Facts, conditions: Sequence[Row]) -> Facts:
    """Some of the rows, each kept or dropped by its own values."""
    _require_columns(facts, conditions)
    return replace(facts, complete=False)


def _map(facts: Facts, columns: Sequence[tuple[str, Row]]) -> Facts:
    """Each row becomes one row, by its own values. Limits follow the columns that stay."""
    names = tuple(name for name, _ in columns)
    _require_names(names)
    _require_columns(facts, (row for _, row in columns))
    same: dict[str, str] = {}
    for name, row in columns:
        if isinstance(row, Col) and (row.name not in same or row.name == name):
            same[row.name] = name
    return _with_columns(facts, names, same)


def _with_columns(facts: Facts, names: tuple[str, ...], same: Mapping[str, str]) -> Facts:
    """The same rows with other columns. `same` has the new names of columns that stay."""
    for name in (facts.person, facts.time):
        if name is not None and name not in same:
            raise Refused("the column of the owner is gone")
    return replace(
        facts,
        columns=names,
        person=None if facts.person is None else same[facts.person],
        time=None if facts.time is None else same[facts.time],
        limits=rename_limits(facts.limits, same),
        types=tuple((same[name], kind) for name, kind in facts.types if name in same),
    )


def rename_limits(limits: Sequence[Limit], same: Mapping[str, str]) -> tuple[Limit, ...]:
    """Limits after columns got new names. A column that is gone becomes a number, the same in all
    limits: it still holds that they are about the same values.
    """
    terms = [t for limit in limits for t in (*limit.by, limit.first) if t is not None]
    free = max((term for term in terms if isinstance(term, int)), default=0) + 1
    now: dict[Term, Term] = {term: term for term in terms if isinstance(term, int)}
    for term in sorted({term for term in terms if isinstance(term, str)}):
        now[term] = same.get(term, free)
        free += term not in same
    return tuple(
        replace(
            x,
            by=frozenset(now[term] for term in x.by),
            first=None if x.first is None else now[x.first],
        )
        for x in limits
    )


def copy_limits(limits: Sequence[Limit], times: int | None) -> tuple[Limit, ...]:
    """Limits after each row became at most this many rows (None: any number)."""
    return tuple(
        x if isinstance(x, GroupLimit) else replace(x, n=x.n * (times or 0))
        for x in limits
        if isinstance(x, GroupLimit) or times is not None
    )


def _look_up(
    facts: Facts,
    on: Sequence[tuple[str, str]],
    how: str,
    new: tuple[str, ...],
    most: int,
) -> Facts:
    """What a row meets follows from its keys and from the public frame."""
    if not on or not {here for here, _ in on} <= {*facts.columns} or most < 0:
        raise Refused("keys of a join")
    if how in ("semi", "anti"):
        if new:
            raise Refused("a join that only keeps rows has no new columns")
        return replace(facts, complete=False)
    names, times = (*facts.columns, *new), max(1, most)
    _require_names(names)
    return replace(
        facts,
        columns=names,
        rows=facts.rows * times,
        complete=facts.complete and how == "left" and times == 1,
        limits=copy_limits(facts.limits, times),
    )


def _unite(left: Facts, right: Facts) -> Facts:
    """An individual has the rows of both frames: what bounds them adds up."""
    if {*left.columns} != {*right.columns} or right.norm is not None:
        raise Refused("frames that do not fit together")
    if (left.person, left.time, left.every) != (right.person, right.time, right.every):
        raise Refused("frames with other owners")
    return replace(
        left,
        rows=left.rows + right.rows,
        complete=False,
        limits=unite_limits(left, right),
        alone=False,
        types=tuple(pair for pair in left.types if pair in right.types),
    )


def unite_limits(left: Facts, right: Facts) -> tuple[Limit, ...]:
    """Limits of the rows of both frames: those that both have add up, and so do all rows."""
    limits = [
        replace(mine, n=mine.n + other.n, first=None)
        for mine in left.limits
        for other in right.limits
        if type(mine) is type(other) and mine.by == other.by and is_present(mine)
    ]
    one, many = rows_of(left), rows_of(right)
    if left.person is not None and one is not None and many is not None:
        limits.append(RowLimit(one + many))
    return tuple(limits)


def is_present(limit: Limit) -> bool:
    """Whether all columns of a limit are still there. A number means another column elsewhere."""
    return all(isinstance(term, str) for term in limit.by)


def _meet(frame: Meet, left: Facts, right: Facts) -> Facts:
    """Rows meet rows of the same individual only. Each of n rows meets m rows at most, where m
    bounds the rows with its keys, and so the limits of one frame hold m times over; a left join
    keeps a row that meets none.
    """
    mine, theirs = {a for a, _ in frame.on}, {b for _, b in frame.on}
    if left.person is None or right.person is None or left.every != right.every:
        raise Refused("rows meet by their owner")
    if right.norm is not None or not mine <= {*left.columns} or not theirs <= {*right.columns}:
        raise Refused("keys of a join")
    if frame.how in ("semi", "anti"):
        if frame.new:
            raise Refused("a join that only keeps rows has no new columns")
        return replace(left, complete=False, alone=False)
    names = dict(frame.new)
    if len(names) != len(frame.new) or not {*names} <= {*right.columns} - {right.person} - theirs:
        raise Refused("columns of a join")
    columns = (*left.columns, *names.values())
    _require_names(columns)
    limits = meet_limits(left, right, frame.on, frame.how, names)
    return replace(left, columns=columns, complete=False, limits=limits, alone=False)


def meet_limits(
    left: Facts,
    right: Facts,
    on: Sequence[tuple[str, str]],
    how: str,
    names: Mapping[str, str],
) -> tuple[Limit, ...]:
    """Limits where each row meets the rows of the same individual with the same keys. `names` has
    the new names of columns of the right frame.
    """
    many = _rows_with(right, {b for _, b in on})
    factor = None if many is None else max(1, many)
    if on and how == "inner":
        same = {**names, **{b: a for a, b in on}}
        others = copy_limits(
            rename_limits(right.limits, same), _rows_with(left, {a for a, _ in on})
        )
    else:
        others = copy_limits(rename_limits(right.limits, names), rows_of(left))
        if on:  # a row that meets none has null there, one more value
            others = tuple(
                replace(x, n=x.n + 1) if isinstance(x, GroupLimit) else x for x in others
            )
    return (*copy_limits(left.limits, factor), *filter(is_present, others))


def _rows_with(facts: Facts, names: set[str]) -> int | None:
    """How many rows an individual has at most with one value of some columns."""
    limits = [x.n for x in facts.limits if isinstance(x, RowLimit) and x.by <= names]
    return _least([*limits, rows_of(facts)])


def _limit(facts: Facts, n: int, by: tuple[str, ...], first: str | None, of_groups: bool) -> Facts:
    """One more limit, which holds for the rows of each person."""
    if facts.person is None or n < 1 or not {*by} <= {*facts.columns}:
        raise Refused("a limit")
    if first is not None and first not in facts.columns:
        raise Refused("a limit in the order of a column that is not there")
    if of_groups and (not by or (first is not None and first not in by)):
        raise Refused("a limit of groups")
    steady = first if facts.alone and not facts.limits else None
    if of_groups:
        return replace(facts, limits=(*facts.limits, GroupLimit(n, frozenset(by), steady)))
    # a person has one value of the column that names it
    limit = RowLimit(n, frozenset(by) - {facts.person}, steady)
    return replace(facts, limits=(*facts.limits, limit))


def _gather(
    facts: Facts, by: Sequence[tuple[str, Row]], made: Sequence[tuple[str, Row]], beside: bool
) -> Facts:
    """Aggregates of one individual's rows. A row of the result stands for one of the rows that it
    was made of, with the same keys: so limits hold as before.
    """
    _require_columns(facts, (row for _, row in (*by, *made)))
    new = tuple(name for name, _ in made)
    _require_names(new)
    if facts.person is None:
        raise Refused("aggregates of an individual's rows, where rows have no owner")
    if facts.time is not None and Col(facts.time) not in (row for _, row in by):
        raise Refused("aggregates of a person's rows of several windows")
    if beside:
        names = (*facts.columns, *(name for name in new if name not in facts.columns))
        same = {c: c for c in facts.columns if c not in new}
        return replace(_with_columns(facts, names, same), alone=False)
    names = (facts.person, *(name for name, _ in by), *new)
    _require_names(names)
    if facts.norm is not None:
        raise Refused("rows that are weighed become other rows")
    same = {facts.person: facts.person}
    for name, row in by:
        if isinstance(row, Col):
            same.setdefault(row.name, name)
    facts = _with_columns(facts, names, same)
    limit = RowLimit(1, frozenset(name for name, _ in by))
    return replace(facts, complete=False, limits=(*facts.limits, limit), alone=False)


def rows_of(facts: Facts) -> int | None:
    """How many rows one individual has at most. A limit without columns bounds them, or a limit for
    each value of some columns together with a limit on the number of these values.
    """
    if facts.person is None:
        return facts.rows
    groups = [x for x in facts.limits if isinstance(x, GroupLimit)]
    found: list[int | None] = []
    for limit in facts.limits:
        if isinstance(limit, RowLimit):
            values = _least(x.n for x in groups if limit.by <= x.by) if limit.by else 1
            found.append(None if values is None else limit.n * values)
    return _least(found)


def _least(numbers: Iterable[int | None]) -> int | None:
    return min((n for n in numbers if n is not None), default=None)


@dataclass(frozen=True)
class Reach:
    """One individual moves numbers at most `rows` times, in at most `groups` groups, at most `most`
    times in each, and at most `cell` times in each cell. `changes`: its rows are there in both
    neighbours, with other values. Where rows are weighed the first four count parts of rows, and
    `norm` bounds the root of the sum of squares over groups.
    """

    rows: int
    groups: int
    most: int
    cell: int
    changes: bool = False
    norm: int | None = None

    def squares(self, cells: int) -> int:
        """The largest sum over entries of squares of how often each is moved, with this many cells
        in a group.

        Proof: no j entries are moved more often than the j fullest are here, so this majorises all
        others. Where `cell` is less than `most`, as many cells as possible have `cell` rows. The
        rest is in one more cell; or, if all groups have as many full cells as they may, in as
        few groups as possible with `most` mod `cell` each.
        """
        if not self.rows:
            return 0
        if self.cell >= self.most:
            full, left = divmod(self.rows, self.most)
            found = full * self.most**2 + left**2
        else:
            most = min(self.most, cells * self.cell)
            rows = min(self.rows, self.groups * most)
            of_group, rest = divmod(most, self.cell)
            full = min(rows // self.cell, self.groups * of_group)
            left = rows - full * self.cell
            parts, last = (
                divmod(left, rest) if full == self.groups * of_group and rest else (0, left)
            )
            found = full * self.cell**2 + parts * rest**2 + last**2
        return found if self.norm is None else min(found, self.norm**2)


def reach_of(
    facts: Facts, table: Table, kept: tuple[int, ...], by_cell: bool, changes: bool
) -> Reach:
    """The reach in a table that was added up over all key columns but some (`by_cell`: and not over
    its cells).
    """
    keys = table.keys
    require_keys(facts, keys, kept)
    counts_people = is_of_people(table)
    if facts.person is None:
        if counts_people:
            raise Refused("individuals are counted, where rows have no owner")
        return Reach(facts.rows, facts.rows, facts.rows, facts.rows, changes)
    if changes:
        raise Refused("persons come and go")
    every = tuple(range(0 if keys is None else len(keys.by)))
    finest = bounds_of(facts, keys, every)
    if counts_people:
        finest = replace(finest, per_group=1)
        _, once, _ = finest.tight()
        finest = Bounds(once, once, 1)
    if facts.norm is not None:
        finest = finest.weigh(facts.norm)
    rows, groups, most = finest.tight()
    norm = finest.norm
    if kept != every:
        if norm is not None:
            raise Refused("weights are for the finest groups")
        here = bounds_of(facts, keys, kept)
        merged: int | None = None
        if counts_people and isinstance(keys, Listed):
            merged = prod(n for i, n in enumerate(keys.sizes) if i not in kept)
        margin = Bounds(
            _least([rows, here.rows]),
            _least([groups, here.groups]),
            _least([here.per_group, merged]),
        )
        rows, groups, most = margin.tight()
    cell = most
    if by_cell and norm is None and isinstance(table.cells, Values) and not table.cells.other:
        cell = min(most, _rows_in_cell(facts, keys, kept, table.cells.row) or most)
    return Reach(rows, groups, most, cell, changes=False, norm=norm)


def is_of_people(table: Table) -> bool:
    """Whether an individual adds once to each of the finest groups, however many rows it has."""
    if isinstance(table.cells, OfPeople) and not isinstance(table.adds, People):
        raise Refused("individuals are in cells, and rows are counted")
    return isinstance(table.adds, People | DistinctPersons | PersonRows | PersonTotal)


def require_keys(facts: Facts, keys: Keys | None, kept: tuple[int, ...]) -> None:
    """Refuse malformed keys."""
    if keys is None:
        if kept:
            raise Refused("kept columns of keys that are not there")
        return
    _require_columns(facts, (row for _, row in keys.by))
    _require_names([name for name, _ in keys.by])
    if not keys.by or [*kept] != sorted({*kept}) or not {*kept} <= {*range(len(keys.by))}:
        raise Refused("kept columns of keys")
    if not is_product(keys) and len(kept) != len(keys.by):
        raise Refused("combinations that are no product are added up over some of their columns")
    if isinstance(keys, Listed):
        sizes = len(keys.sizes)
        if sizes not in (1, len(keys.by)) or min(keys.sizes) < 0:
            raise Refused("sizes of keys")


def is_product(keys: Keys) -> bool:
    """Whether keys are all combinations of the listed values of their columns."""
    return isinstance(keys, Listed) and len(keys.sizes) == len(keys.by)


def entries_of(keys: Keys | None, kept: tuple[int, ...]) -> int | None:
    """How many groups there are by some of the key columns; None where they are found."""
    if keys is None or not kept:
        return 1
    if isinstance(keys, Found):
        return None
    return prod(keys.sizes[i] for i in kept) if is_product(keys) else keys.sizes[0]


@dataclass(frozen=True)
class Bounds:
    """Bounds on rows, groups, and rows in each group; None where no bound exists."""

    rows: int | None
    groups: int | None
    per_group: int | None
    norm: int | None = None

    def tight(self) -> tuple[int, int, int]:
        """The bounds where each is no more than the others allow."""
        groups = self.rows if self.groups is None else self.groups
        per_group = self.rows if self.per_group is None else self.per_group
        if groups is None or per_group is None:
            raise Refused("one individual may have any number of rows")
        rows = groups * per_group if self.rows is None else min(self.rows, groups * per_group)
        return rows, min(groups, rows), min(per_group, rows)

    def weigh(self, norm: Fraction) -> Bounds:
        """In parts of rows, where the norm over groups is at most N = floor(4096 norm) parts: an
        individual has at most N in a group, and sqrt(groups) N in all (Cauchy and Schwarz).
        """
        most = floor(norm * PARTS)
        rows = None if self.rows is None else self.rows * PARTS
        per_group = most if self.per_group is None else min(most, self.per_group * PARTS)
        groups = self.groups if self.groups is not None else self.rows
        if groups is not None:
            rows = _least([rows, isqrt(most * most * groups)])
        return Bounds(rows, groups, per_group, most)


def bounds_of(facts: Facts, keys: Keys | None, kept: tuple[int, ...]) -> Bounds:
    """How the rows of one person may lie among the groups by some of the key columns.

    The groups are bounded by the number of keys, by a limit on groups of columns that determine
    the key, and by 1 where all key expressions have one value within an individual's window. The
    rows in each group are bounded by a limit of rows for each value of columns that the key has.
    """
    rows = rows_of(facts)
    if keys is None or not kept:
        return Bounds(rows, 1, rows)
    used = [keys.by[i][1] for i in kept]
    plain = {row.name for row in used if isinstance(row, Col)}
    free = [row for row in used if not follows_from_window(row, facts)]
    columns = frozenset().union(*map(columns_of, free))
    known = [x.n for x in facts.limits if isinstance(x, GroupLimit) and columns <= x.by]
    known += [1] * (not free)
    each = [x.n for x in facts.limits if isinstance(x, RowLimit) and x.by <= plain]
    return Bounds(rows, _least([entries_of(keys, kept), *known]), _least(each))


def _rows_in_cell(facts: Facts, keys: Keys | None, kept: tuple[int, ...], value: Row) -> int | None:
    """How many rows a person has in a group with one value of an expression, by a limit for each
    value of columns that both determine.
    """
    used = [value, *(() if keys is None else (keys.by[i][1] for i in kept))]
    plain = {row.name for row in used if isinstance(row, Col)}
    return _least(x.n for x in facts.limits if isinstance(x, RowLimit) and x.by <= plain)


_IN_WINDOW: Mapping[str, frozenset[str]] = {
    "dt_date": frozenset({"1d"}),
    "dt_day": frozenset({"1d"}),
    "dt_weekday": frozenset({"1d"}),
    "dt_ordinal_day": frozenset({"1d"}),
    "dt_month": frozenset({"1d", "1mo"}),
    "dt_quarter": frozenset({"1d", "1mo", "1q"}),
    "dt_year": frozenset({"1d", "1mo", "1q", "1y"}),
}
"""Operations on a time, and the windows in which all times give one value. Weeks cross months."""


_TRUNCATED: Mapping[str, frozenset[str]] = {
    f'[["every","{every}"]]': windows
    for every, windows in (
        ("1d", frozenset({"1d"})),
        ("1w", frozenset({"1d", "1w"})),
        ("1mo", frozenset({"1d", "1mo"})),
        ("1q", frozenset({"1d", "1mo", "1q"})),
        ("3mo", frozenset({"1d", "1mo", "1q"})),
        ("1y", frozenset({"1d", "1mo", "1q", "1y"})),
        ("12mo", frozenset({"1d", "1mo", "1q", "1y"})),
    )
}
"""The same of truncating a time."""


def follows_from_window(row: Row, facts: Facts) -> bool:
    """Whether an expression of the time has one value, or is null, in each window.

    Proof: clocks of the time's zone distinguish windows, and these parts of a time as well. Times
    outside the years 1 to 9999 have no parts, and are in windows of their own. So are rows without
    a time. A date is its own day, wherever it is. Where a time has a zone, clocks may show
    the beginning of a window twice, so that it is truncated to two times.
    """
    dtype = dict(facts.types).get(facts.time or "", ",")
    match row:
        case Col(name):
            return name == facts.time and facts.every == "1d" and dtype == "Date"
        case Call("dt_truncate", (Col(name),), constants):
            in_windows = _TRUNCATED.get(constants, frozenset())
            return name == facts.time and facts.every in in_windows and "," not in dtype
        case Call(operation, (Col(name),), "[]") if operation in _IN_WINDOW:
            return name == facts.time and facts.every in _IN_WINDOW[operation]
        case Call(operation, (Call() as inner,)) if operation in _IN_WINDOW:
            return follows_from_window(inner, facts)
        case _:
            return False
