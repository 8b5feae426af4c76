"""A physical plan in plain English: a sentence for each step, table and draw, and for the cost.

All words follow from the plan alone, so a reviewer reads what the kernel verifies. Plans that
differ have different texts. A text shortens only long lists and long constants, and shows their
SHA-256 digest then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from fractions import Fraction

from dpframe.kernel.plan import (
    Appear,
    Between,
    Box,
    Call,
    Cells,
    Choice,
    Col,
    Distinct,
    DistinctPersons,
    Draw,
    Edges,
    Ends,
    Exact,
    Explode,
    Exponential,
    Filter,
    Found,
    Frame,
    Gather,
    Gaussian,
    Geometric,
    Grid,
    KeepGroups,
    KeepRows,
    Keys,
    Laplace,
    Law,
    Levels,
    Listed,
    Lit,
    Lookup,
    Map,
    Meet,
    Nights,
    NoisyMax,
    Numbers,
    OfPeople,
    One,
    OneEach,
    Paired,
    Part,
    People,
    PermuteAndFlip,
    Person,
    PersonRows,
    PersonTotal,
    Placed,
    Plan,
    Points,
    Progression,
    Rank,
    Ranks,
    Ratios,
    Refused,
    Reports,
    Response,
    Root,
    Row,
    Rows,
    Running,
    Scan,
    Squared,
    Staircase,
    Table,
    Threshold,
    Tree,
    Union,
    Unit,
    UpTo,
    Valued,
    Values,
    Vector,
    Weigh,
    WeighedThreshold,
    What,
    Whole,
    Without,
)

_FEW = 12
"""A longer list is shown by its size, its ends and its digest."""
_LONG = 300
"""Characters of the longest text that is shown in full."""
_WINDOWS = {"1d": "day", "1w": "week", "1mo": "month", "1q": "quarter", "1y": "year"}


def render(plan: Plan) -> str:
    """The plan in plain English, a line for each statement.

    Raises
    ------
    Refused
        When an expression is nested too deeply.
    """
    try:
        return "\n".join(_lines(plan))
    except RecursionError:
        raise Refused("an expression is nested too deeply") from None


def _lines(plan: Plan) -> Iterator[str]:
    match plan.neighbours:
        case "add-remove":
            yield "Protected: one individual, whose rows may be there or missing."
        case "change-one":
            yield "Protected: one individual, whose rows may have any other values."
    for number, frame in enumerate(plan.frames):
        yield f"frame {number}: {_frame(frame)}"
    for number, table in enumerate(plan.tables):
        yield f"table {number}: {_table(table)}"
    for number, draw in enumerate(plan.draws):
        yield f"draw {number}: {_draw(draw, plan.measure)}"
    for number, option in enumerate(plan.options):
        if not number:
            yield "Afterwards one of these options runs; the draws above decide which one."
        yield f"option {number}:"
        yield from (f"  {line}" for line in _lines(option))
    yield f"cost: {_cost(plan)}"


def _cost(plan: Plan) -> str:
    match plan.composition:
        case "sum":
            most = ", with the most expensive option" if plan.options else ""
            spent = _amount(plan.measure, plan.cost, plan.delta)
            return f"The whole plan costs {spent}: the sum of its draws{most}."
        case "zcdp":
            spent = _amount("epsilon", plan.cost, plan.delta)
            return f"The whole plan costs {spent}, which follows from the sum of {plan.measure}."
        case "numerical":
            spent = _amount("epsilon", plan.cost, plan.delta)
            losses = "the sum of the privacy losses of its draws"
            return f"The whole plan costs {spent}, which follows from {losses} ({plan.measure})."


def _amount(measure: str, cost: Fraction, delta: Fraction) -> str:
    failing = f" and delta {_number(delta)}" if delta else ""
    return f"{measure.replace('_', ' ')} {_number(cost)}{failing}"


# Frames


def _frame(frame: Frame) -> str:
    match frame:
        case Scan(name, columns, unit, owners):
            listed = _list([f"{_name(column)} ({_plain(kind)})" for column, kind in columns])
            owner = ""
            if owners is not None:
                source, here, there = map(_name, (owners.source, owners.here, owners.there))
                owner = f" Each belongs to the owner of the row of {source} with {there} = {here}."
            return f"All rows of {_name(name)} with an owner: {listed}. {_unit(unit)}{owner}"
        case Map(input, columns):
            made = [
                _name(name) if row == Col(name) else f"{_name(name)} = {_row(row)}"
                for name, row in columns
            ]
            return f"Each row of frame {input} becomes one row with the columns {_list(made)}."
        case Filter(input, conditions):
            true = _list([_row(row) for row in conditions])
            return f"The rows of frame {input} for which each of these is true: {true}."
        case Part(input, by, key):
            rows = _list([_row(row) for row in by])
            values = _list([_row(value) for value in key])
            return f"The rows of frame {input} in one of disjoint parts: {rows} has {values}."
        case Without(input, by):
            rows = _list([_row(row) for row in by])
            return f"The rows of frame {input} in no group that was found before, by {rows}."
        case Explode(input, column, most):
            return (
                f"The rows of frame {input}, with one row for each of the first {most} elements of "
                f"{_name(column)}, and at least one row."
            )
        case Lookup(input, public, on, how, new, most):
            keys = _list([f"{_name(here)} = {_name(there)}" for here, there in on])
            added = _list(list(map(_name, new)))
            return (
                f"The rows of frame {input}, after the {how} join with the public table of digest "
                f"{_plain(public)}, where {keys}. New columns: {added}. One row becomes at most "
                f"{most} rows."
            )
        case Union(left, right):
            return f"The rows of frame {left} and the rows of frame {right}."
        case Meet(left, right, on, how, new):
            keys = _list([f"{_name(here)} = {_name(there)}" for here, there in on])
            added = _list([f"{_name(name)} from {_name(old)}" for old, name in new])
            return (
                f"The rows of frame {left}, after the {how} join with the rows of frame {right} of "
                f"the same individual, where {keys}. New columns: {added}."
            )
        case KeepRows(input, n, by, first, of):
            chosen = "" if of is None else f", chosen by {_list(list(map(_name, of)))}"
            each = f" for each value of {_list(list(map(_name, by)))}" if by else ""
            number = "1 row" if n == 1 else f"{n} rows"
            each += _first(first) + chosen
            return f"At most {number} of each individual of frame {input}{each}."
        case KeepGroups(input, n, by, first):
            values = _list(list(map(_name, by)))
            return (
                f"The rows of each individual of frame {input} in at most {n} different values of "
                f"{values}{_first(first)}."
            )
        case Weigh(input, norm):
            return (
                f"The rows of frame {input}, where rows of an individual in many groups count "
                f"less: the norm over all groups is at most {_number(norm)}."
            )
        case OneEach(input, by, listed, rows, groups, fullest, ends):
            only = "" if listed is None else f" that have a public key of digest {_plain(listed)}"
            values = _list([_ends(end) for end in ends])
            return (
                f"One row for each individual of frame {input}, from its rows{only}: {_name(rows)} "
                f"is their number, {_name(groups)} is the number of groups by "
                f"{_list([_row(row) for row in by])}, {_name(fullest)} is the most rows in a "
                f"group. Ends of values: {values}."
            )
        case Gather(input, by, new, bounds, beside):
            keys = _list_named(by)
            clamps = _list(["none" if b is None else f"[{_numbers(b)}]" for b in bounds])
            aggregates = _list([f"{_name(name)} = {_row(what)}" for name, what in new])
            where = "in all rows" if beside else "in one row"
            return (
                f"Aggregates of the rows that one individual of frame {input} has for each value "
                f"of {keys}, {where}: {aggregates}. Values that are added up have bounds: {clamps}."
            )


def _ends(ends: Ends) -> str:
    of = "totals in groups of " if ends.total else ""
    return f"{_name(ends.least)} and {_name(ends.largest)} of {of}{_row(ends.row)}"


def _first(column: str | None) -> str:
    return "" if column is None else f", the first ones in the order of {_name(column)}"


def _unit(unit: Unit) -> str:
    match unit:
        case Rows(contributions):
            return f"One individual has at most {contributions} of these rows."
        case Person(column, every, time):
            window = "" if every is None else f" in one calendar {_WINDOWS[every]}"
            of = "" if time is None else f" by {_name(time)}"
            return f"One individual is one value of {_name(column)}{window}{of}."


def _row(row: Row) -> str:
    match row:
        case Col(name):
            return _name(name)
        case Lit(dtype, value, parameter):
            of = "" if parameter is None else f" of parameter {_name(parameter)}"
            return f"{_plain(value)}{of} ({_plain(dtype)})"
        case Call(operation, operands, constants):
            inner = ", ".join(map(_row, operands))
            options = "" if constants == "[]" else f"; {_plain(constants)}"
            return (
                f"{operation if operation.isidentifier() else _name(operation)}({inner}{options})"
            )


# Tables


def _table(table: Table) -> str:
    groups = "" if table.keys is None else f", in each group by {_keys(table.keys)}"
    cells = "" if table.cells is None else f", in each cell by {_cells(table.cells)}"
    return f"Over the rows of frame {table.frame}{groups}{cells}: {_adds(table)}."


def _keys(keys: Keys) -> str:
    match keys:
        case Listed(by, sizes, digest):
            number = " x ".join(map(str, sizes))
            return f"{_list_named(by)} ({number} public keys, digest {_plain(digest)})"
        case Found(by, draw):
            return f"{_list_named(by)} (groups that draw {draw} finds)"


def _list_named(by: Sequence[tuple[str, Row]]) -> str:
    return _list(
        [_name(name) if row == Col(name) else f"{_name(name)} = {_row(row)}" for name, row in by]
    )


def _cells(cells: Cells) -> str:
    match cells:
        case Edges(row, edges, other):
            return f"the bin of {_row(row)} between {_numbers(edges)}{_other(other)}"
        case Values(row, listed, other):
            return f"{_row(row)}, one of {_list(list(map(_plain, listed)))}{_other(other)}"
        case Points(row, low, step, count):
            return (
                f"the nearest to {_row(row)} of {count} points from {_number(low)} in steps of "
                f"{_number(step)}"
            )
        case Between(row, candidates):
            return f"the place of {_row(row)} among the candidates {_numbers(candidates)}"
        case UpTo(row, edges, above):
            more = ", and one more above" if above else ""
            return f"the least edge that {_row(row)} does not exceed, of {_numbers(edges)}{more}"
        case Whole(inner):
            return f"{_cells(inner)}, and one more for all rows in none of them"
        case OfPeople(inner, grid):
            return f"the individual's total, added up on {_grid(grid)}, and that is {_cells(inner)}"


def _other(other: bool) -> str:
    return ", and one more for all others" if other else ""


def _adds(table: Table) -> str:
    match table.adds:
        case One():
            return "the number of rows"
        case Valued(row):
            return f"the number of rows with a value of {_row(row)}"
        case Placed() | Squared() | Paired() as of:
            return f"the sum of {_place(of)}"
        case Distinct(row):
            return f"the number of different values of {_row(row)}"
        case People():
            return "the number of individuals"
        case DistinctPersons():
            return "the number of different persons, in all windows"
        case PersonRows(row, most):
            what = "rows" if row is None else f"values of {_row(row)}"
            return f"the sum over individuals of their number of {what}, at most {most} for each"
        case PersonTotal(of):
            return f"the sum over individuals, each with its total as one row, of {_place(of)}"


def _place(of: Placed | Squared | Paired) -> str:
    match of:
        case Placed(row, grid):
            return f"{_row(row)} on {_grid(grid)}"
        case Squared(row, grid, shift):
            return f"the square of {_row(row)} on {_grid(grid)}, shortened by {shift} bits"
        case Paired(row, grid, other, other_grid):
            return (
                f"{_row(row)} on {_grid(grid)}, scaled together with {_row(other)} on "
                f"{_grid(other_grid)}"
            )


def _grid(grid: Grid) -> str:
    ends = [grid.centre + end * grid.step for end in (grid.lo, grid.hi)]
    return (
        f"[{_number(ends[0])}, {_number(ends[1])}] (numbers {grid.lo} to {grid.hi} of "
        f"{_number(grid.step)} from {_number(grid.centre)})"
    )


# Draws


def _draw(draw: Draw, measure: str) -> str:
    spent = _amount(measure, draw.cost, draw.delta)
    return f"{_what(draw.what)}, {_law(draw.law)}. It costs {spent}."


def _what(what: What) -> str:
    match what:
        case Vector(tables, matrix, kept, run, total):
            if matrix == ((1,),) and len(tables) == 1:
                numbers = f"The numbers of table {tables[0]}"
            else:
                combined = _list([_combination(tables, row) for row in matrix])
                numbers = f"These combinations of the tables {_integers(tables)}: {combined}"
            width = {0: "all cells together", 1: "cell by cell"}.get(run, f"{run} cells together")
            by = f"by the key columns {_integers(kept)}" if kept else "over all groups"
            more = ", and then the sum of all numbers" if total else ""
            return f"{numbers}; {by}, {width}{more}"
        case Running(table, column):
            return f"Running sums of the cells of table {table} times {_integers(column)}"
        case Nights(table, by, dtype, every, start, periods, sums):
            match sums:
                case Root(column):
                    drawn = f"all periods so far times {_integers(column)}"
                case Tree(branching, levels):
                    drawn = f"{levels} widths of periods, each {branching} times the one before"
            return (
                f"Each night, once, of table {table} the sums over {drawn}, for {periods} periods "
                f"of one {_WINDOWS[every]} each, by {_name(by)} ({_plain(dtype)}) from "
                f"{_plain(start)} on"
            )
        case Choice(tables, among, rounds):
            listed = ", ".join(map(str, tables))
            winners = "One winner" if rounds == 1 else f"{rounds} winners, one after another,"
            return f"{winners} among the {among} of table {listed}, by their numbers"
        case Rank(table, quantile):
            return f"The cell of table {table} at the quantile {_number(quantile)} of each group"
        case Ranks(table, quantiles):
            return f"Cells of table {table} at the quantiles {_numbers(quantiles)}, at once"
        case Levels(table, quantiles, levels):
            order = _list([_integers(level) for level in levels])
            return (
                f"Cells of table {table} at the quantiles {_numbers(quantiles)}, in levels of the "
                f"quantiles {order}"
            )
        case Appear(table, rows):
            most = "1 row" if rows == 1 else f"{rows} rows"
            return f"Which groups of table {table} appear, with at most {most} for one individual"
        case Reports(table):
            return f"How many rows report each cell of table {table}"


def _combination(tables: Sequence[int], row: Sequence[int]) -> str:
    if len(row) != len(tables):
        return f"the factors {_integers(row)}"
    pairs = zip(tables, row, strict=True)
    parts = (
        f"table {table}" if factor == 1 else f"{factor} x table {table}"
        for table, factor in pairs
        if factor
    )
    return _short(" + ".join(parts) or "0")


def _law(law: Law) -> str:
    match law:
        case Exact():
            return "without noise"
        case Laplace(scale, fine):
            return f"with Laplace noise of scale {_number(scale)}{_fine(fine)}"
        case Gaussian(sigma_squared):
            return f"with Gaussian noise of variance {_number(sigma_squared)}"
        case Box(epsilon, widths, fineness, arches):
            hull = f", in hulls of {_list([_integers(arch) for arch in arches])}" if arches else ""
            return (
                f"with joint noise of epsilon {_number(epsilon)} in a box of the widths "
                f"{_integers(widths)}{hull}, in steps of 1/{fineness}"
            )
        case Staircase(rate, width, inner):
            return (
                f"with staircase noise of rate {_number(rate)}, steps of {width} and a first step "
                f"of {inner}"
            )
        case Response(epsilon):
            return f"each row at random, its own cell e^{_number(epsilon)} times as likely"
        case Exponential(scale):
            return f"chosen with chances that grow as exp(score / s), where s is {_number(scale)}"
        case PermuteAndFlip(scale):
            return f"chosen by permute and flip with scale {_number(scale)}"
        case NoisyMax(scale):
            return f"chosen by the largest score with Laplace noise of scale {_number(scale)}"
        case Geometric(epsilon, delta):
            return (
                f"with the largest probability that has epsilon {_number(epsilon)} and delta "
                f"{_number(delta)} in one group"
            )
        case Threshold(least, draw):
            return f"where the number of draw {draw} is at least {least}"
        case WeighedThreshold(rounds):
            each = [
                f"at least {least} in round {number}, whose variance is {_number(variance)}"
                for number, (least, variance) in enumerate(rounds, 1)
            ]
            return f"where the number with Gaussian noise is {_list(each)}"


def _fine(fine: int) -> str:
    return "" if fine == 1 else f", drawn in steps of 1/{fine} and rounded"


# Words


def _name(text: str) -> str:
    return _short(repr(text))


def _plain(text: str) -> str:
    """A text, escaped where it has characters that do not print and could mislead a reader."""
    if text.isprintable() and not text.startswith("'"):
        return _short(text)
    return _short("'" + text.encode("unicode_escape").decode() + "'")


def _short(text: str) -> str:
    if len(text) <= _LONG:
        return text
    return f"{text[:_FEW]} ... ({len(text)} characters, {_digest(text)})"


def _digest(text: str) -> str:
    whole = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"SHA-256 {whole[:32]}"


def _list(items: Sequence[str]) -> str:
    if len(items) <= _FEW:
        return ", ".join(items) if items else "none"
    about = _digest("\n".join(items))
    return f"{items[0]}, {items[1]}, ..., {items[-1]} ({len(items)} in all, {about})"


def _integers(numbers: Sequence[int]) -> str:
    return f"({_list(list(map(str, numbers)))})"


def _numbers(numbers: Numbers) -> str:
    match numbers:
        case Progression(first, step, count):
            return f"{count} numbers from {_number(first)} in steps of {_number(step)}"
        case Ratios(numerators, denominator):
            return f"{_integers(numerators)}, each divided by {_digits(denominator)}"
        case _:
            return _list([_number(number) for number in numbers])


def _number(number: Fraction) -> str:
    """A number exactly: as a decimal, or as a fraction with a decimal near it."""
    if number.denominator == 1:
        return _short(_digits(number.numerator))
    shown = Context(prec=24).divide(Decimal(number.numerator), Decimal(number.denominator))
    text = f"{_digits(number.numerator)}/{_digits(number.denominator)}"
    if len(text) <= _LONG and Fraction(shown) == number:
        small = abs(number) < Fraction(1, 1000)
        return str(shown).lower() if small else format(shown, "f")
    near = Context(prec=6).divide(Decimal(number.numerator), Decimal(number.denominator))
    return f"{_short(text)} (about {str(near).lower()})"


def _digits(number: int) -> str:
    """A whole number; of more digits than Python writes, in hexadecimal ones."""
    return str(number) if number.bit_length() < 1 << 13 else hex(number)
