"""Running a plan many times on public data, to see its errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import MeasurementKey, Noisy, Output, Query
from dpframe.aggregates.draw import Draw, Places
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import (
    CellCounts,
    Integers,
    Measurement,
    Rebuilt,
    Responses,
    Selection,
)
from dpframe.aggregates.shapes import Column
from dpframe.errors import UnsupportedOperation
from dpframe.frames.contribution_limits import has_limits, without_limits
from dpframe.frames.relation import Relation
from dpframe.kernel import plan as kernel
from dpframe.lower import (
    Execution,
    Frames,
    PartWanted,
    PlanTables,
    find_keys,
    has_plain,
    run_plain,
    tables_of_plan,
)
from dpframe.optimise.physical import Lists, alone, translate
from dpframe.optimise.prepared import Prepared
from dpframe.progress import Progress, progress
from dpframe.release import aggregate_column, in_order, output_column, shown_groups
from dpframe.release.draws import CandidateScores, chooser_of, draw, draw_node, numbers_of_groups
from dpframe.release.numbers import PointRuns, exact_numbers, first_choice, scores_of
from dpframe.report import Plan
from dpframe.report.plots import Chart, plot_simulation

# What many runs of a plan on public data gave, and how far off they were.

# Results as arrays: one number, or one choice, for each group and entry of an output.

Floats = NDArray[np.float64]
_SECONDS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """What one output releases."""

    name: str  # The output
    # The label of each entry in one group: categories, bins, ranks or quantiles; None for one
    # number.
    labels: tuple[str, ...] | None
    choices: bool  # Whether they are choices among candidates, and no numbers

    @property
    def size(self) -> int:
        return 1 if self.labels is None else len(self.labels)


def entries_of(output: Output, column: Column) -> Entries:
    """What an output releases, from one result of it."""
    dtype, shape = column.values.dtype, column.shape
    inner = dtype.inner if isinstance(dtype, pl.List) else dtype
    numeric = inner.is_numeric() or inner.is_temporal() or inner == pl.Boolean
    choices, labels = shape.is_choice or not numeric, shape.labels
    if labels is None and isinstance(dtype, pl.List):
        most = column.values.list.len().max()
        labels = tuple(str(i) for i in range(int(str(most or 0))))
    return Entries(output.name, labels, choices)


def numbers_in(column: Column, entries: Entries) -> Floats:
    """Numbers, one per group and entry; NaN for none. Dates are days, times seconds."""
    return np.stack([_physical(s) for s in _series(column, entries)], axis=1)


def choices_in(column: Column, entries: Entries, query: Query) -> NDArray[np.object_]:
    """Choices as text, one per group and entry; None for none."""
    if column.shape.chooses_groups:
        assert query.groups is not None
        chosen = [_key(query.groups.keys.row(code)) for code in column.values.to_list()]
        return np.array([chosen], dtype=np.object_)
    found = [_text(s) for s in _series(column, entries)]
    return np.array(found, dtype=np.object_).T


def _series(column: Column, entries: Entries) -> Sequence[pl.Series]:
    """One column per entry."""
    if entries.labels is None:
        return [column.values]
    if column.shape.is_table:
        rows = len(entries.labels)
        return [column.values.gather_every(rows, i) for i in range(rows)]
    return [column.values.list.get(i, null_on_oob=True) for i in range(len(entries.labels))]


def _physical(series: pl.Series) -> Floats:
    dtype = series.dtype
    scale = 1.0
    if dtype.is_temporal() and dtype != pl.Date:
        scale = 1e-9 if dtype == pl.Time else _SECONDS[getattr(dtype, "time_unit", None) or "us"]
    physical = series.to_physical() if dtype.is_temporal() else series
    found: Floats = physical.cast(pl.Float64).fill_null(float("nan")).to_numpy().astype(np.float64)
    return found * scale


def _text(series: pl.Series) -> list[str | None]:
    return [None if value is None else str(value) for value in series.to_list()]


def _key(row: tuple[object, ...]) -> str:
    return ", ".join("null" if value is None else str(value) for value in row)


_RESULTS = (
    *("run", "output", "entry", "plain", "exact", "noisy"),
    *("plain_choice", "exact_choice", "choice"),
)
_ERRORS = (
    *("bias", "limits_bias", "rmse", "noise_rmse"),
    *("relative_error", "error_95", "missing", "wrong"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """The errors of a plan on public data, made by `PrivateQuery.simulate`.

    It reveals the public data without privacy: never simulate on private data.

    Parameters
    ----------
    plan
        The simulated plan.
    runs
        The number of draws of noise.
    results
        One row for each run, output, group and entry: `run`, the keys, `output`, `entry` where an
        output has several numbers (categories, bins, quantiles, ranks), and three numbers.
        `plain` is the result of Polars without bounds and limits, `exact` the released result
        without noise, and `noisy` the released result, null if it has none. Dates are days, times
        and durations seconds. Choices have `plain_choice`, `exact_choice` and `choice` instead. A
        key with the name of one of these columns gets an underscore.
    errors
        One row for each output, group and entry: the keys, `output`, `entry`, `plain`, `exact`,
        and over all runs that have a result

        - `bias`: the mean of noisy - plain, with limits and noise,
        - `limits_bias`: exact - plain, the effect of clamping, limits and the grid of values,
        - `rmse`: the root of the mean square of noisy - plain,
        - `noise_rmse`: the root of the mean square of noisy - exact, the effect of noise,
        - `relative_error`: the median of |noisy - plain| / |plain|, null where plain is 0,
        - `error_95`: the 95% quantile of |noisy - plain|,
        - `missing`: the share of runs without a result,
        - `wrong`: for choices, the share of runs with another choice than plain Polars.
    """

    plan: Plan = field(repr=False)
    runs: int
    results: pl.DataFrame = field(repr=False)
    errors: pl.DataFrame = field(repr=False)

    def plot(self, *, relative: bool = True, most: int = 30, values: bool = False) -> Chart:
        """The distribution of errors, as an Altair chart. For each output and group it shows the
        median, the middle half and the middle 90% of runs, and the bias by limits.

        Parameters
        ----------
        relative
            Whether errors are shares of the plain results, or in the output's units.
        most
            The number of groups to show for each output, the largest first.
        values
            Whether to show, instead of errors, the plain result of each group (before) and the
            range of 90% of released results (after), in the output's units.

        Raises
        ------
        UnsupportedOperation
            When Altair is not installed, or no output is a number.
        """
        keys = [n for n in self.results.columns if n not in _RESULTS or n == "entry"]
        return plot_simulation(
            self.results, keys, self.runs, relative=relative, most=most, values=values
        )

    def __repr__(self) -> str:
        return f"<Simulation of {self.runs} runs on public data>\n{self.errors}"

    def _repr_html_(self) -> str:
        return f"<p>Simulation of {self.runs} runs on public data</p>{self.errors._repr_html_()}"


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """All results of one output."""

    entries: Entries  # What it releases
    # `plain`, `exact`: of shape (groups, entries).
    plain: NDArray[np.generic]
    exact: NDArray[np.generic]
    noisy: NDArray[np.generic]  # Of shape (runs, groups, entries)


def simulation_of(
    plan: Plan, runs: int, keys: pl.DataFrame | None, outcomes: Sequence[Outcome]
) -> Simulation:
    """The frames of a simulation."""
    if keys is not None:
        taken = {*_RESULTS, *_ERRORS}
        keys = keys.rename({name: f"{name}_" for name in keys.columns if name in taken})
    results, errors = [], []
    for outcome in outcomes:
        labels = _labels(keys, outcome)
        results.append(_results(labels, outcome))
        errors.append(_errors(labels, outcome))
    return Simulation(plan, runs, _shaped(results), _shaped(errors))


def _labels(keys: pl.DataFrame | None, outcome: Outcome) -> pl.DataFrame:
    """The keys, output and entry of each number of one run."""
    groups, entries = outcome.plain.shape
    cell = pl.int_range(groups * entries, eager=True)
    made = [] if keys is None else keys[(cell // entries).to_list()].get_columns()
    listed = outcome.entries.labels
    names = [None] * len(cell) if listed is None else [*listed] * groups
    return pl.DataFrame(
        [
            *made,
            pl.Series("output", [outcome.entries.name] * len(cell), dtype=pl.String),
            pl.Series("entry", names, dtype=pl.String),
        ]
    )


def _results(labels: pl.DataFrame, outcome: Outcome) -> pl.DataFrame:
    runs, size = len(outcome.noisy), labels.height
    number = pl.Series("run", np.repeat(np.arange(runs), size), dtype=pl.Int64)
    repeated = pl.concat([labels] * runs) if runs else labels.clear()
    plain, exact = (np.tile(a.reshape(-1), runs) for a in (outcome.plain, outcome.exact))
    return pl.DataFrame([number, *repeated]).with_columns(
        *_values(outcome.entries.choices, plain, exact, outcome.noisy.reshape(-1))
    )


def _values(choices: bool, *arrays: NDArray[np.generic]) -> list[pl.Series]:
    names = ("plain_choice", "exact_choice", "choice") if choices else ("plain", "exact", "noisy")
    pairs = zip(names, arrays, strict=True)
    if choices:
        return [pl.Series(name, values.tolist(), dtype=pl.String) for name, values in pairs]
    return [pl.Series(name, values, dtype=pl.Float64).fill_nan(None) for name, values in pairs]


def _errors(labels: pl.DataFrame, outcome: Outcome) -> pl.DataFrame:
    runs, size = len(outcome.noisy), labels.height
    plain, exact = (np.tile(a.reshape(-1), runs) for a in (outcome.plain, outcome.exact))
    noisy = outcome.noisy.reshape(-1)
    long = pl.DataFrame(
        [
            pl.Series("cell", np.tile(np.arange(size), runs)),
            *_values(outcome.entries.choices, plain, exact, noisy),
        ]
    )
    made = _of_choices() if outcome.entries.choices else _of_numbers()
    summary = long.group_by("cell", maintain_order=True).agg(*made)
    return pl.concat([labels, summary.drop("cell")], how="horizontal")


def _of_choices() -> list[pl.Expr]:
    choice, plain = pl.col("choice"), pl.col("plain_choice")
    return [
        plain.first(),
        pl.col("exact_choice").first(),
        choice.is_null().mean().alias("missing"),
        (choice != plain).mean().alias("wrong"),
    ]


def _of_numbers() -> list[pl.Expr]:
    plain, exact, noisy = pl.col("plain"), pl.col("exact"), pl.col("noisy")
    error = noisy - plain
    share = pl.when(plain != 0).then(error.abs() / plain.abs())
    return [
        plain.first(),
        exact.first(),
        error.mean().alias("bias"),
        (exact - plain).first().alias("limits_bias"),
        (error * error).mean().sqrt().alias("rmse"),
        ((noisy - exact) ** 2).mean().sqrt().alias("noise_rmse"),
        share.median().alias("relative_error"),
        error.abs().quantile(0.95, "higher").alias("error_95"),
        noisy.is_null().mean().alias("missing"),
    ]


def _shaped(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """All outputs below each other, without columns that none of them needs."""
    made = pl.concat(frames, how="diagonal")
    unused = "entry" if made["entry"].null_count() == made.height else None
    ordered = [name for name in made.columns if name != unused]
    return made.select(ordered)


# Many runs of one plan on public data, which are aggregated once.

# Vectors without noise, from exact tables of public frames: for simulations and audits


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """Vectors of a plan without noise: those that are drawn, and those that follow from them. The
    kernel does not check the plan: an audit may be of one that is wrong.

    Parameters
    ----------
    places
        The physical plan, and the places of draws and tables in it.
    nodes
        What each vector is in it.
    tables
        The tables, read from the plan.
    """

    places: Places
    nodes: Mapping[Measurement, kernel.What]
    tables: tuple[PlanTables, ...]

    @classmethod
    def of(cls, prepared: Prepared, salt: int | None = None) -> Exact:
        """All that a plan draws, and what follows from that.

        Parameters
        ----------
        prepared
            The plan.
        salt
            By which limits choose among an individual's rows, the same for all frames; None for a
            choice of each run.
        """
        lists, query = Lists(), prepared.query
        translation = translate(alone(prepared), lists)
        plan, (places,) = translation.plan, translation.parts
        keys = [key for one in prepared.draws for key in one.keys]
        parts = [*(one.measurement for one in prepared.draws), *(part for part, _ in keys)]
        parts += [part.first for part in parts if isinstance(part, Selection)]
        nodes = {part: lists.what(part, query) for part in dict.fromkeys(parts)}
        assert len(lists.tables) == len(plan.tables)  # all parts are of tables that are drawn
        salt = query.relation.salt if salt is None else salt
        (read,) = tables_of_plan(plan, lists.handles, [(places.draw_tables, salt)])
        by_place = {place: table for one in read for place, table in one.tables.items()}
        return cls(replace(places, tables=by_place), nodes, tuple(read))

    def without_limits(self) -> Exact:
        """The same of frames that no limit drops rows of."""
        return replace(
            self,
            tables=tuple(replace(t, relation=without_limits(t.relation)) for t in self.tables),
        )

    def count(self, frames: Frames, keys: pl.DataFrame | None = None) -> ExactTables:
        """The exact tables of public frames, by their tokens.

        Parameters
        ----------
        frames
            These.
        keys
            The groups, where the plan is to find them.

        Raises
        ------
        EngineError
            When the engine fails.
        """
        listed = [
            one
            if one.groups is None or not one.groups.discovered or keys is None
            else replace(one, groups=one.groups.with_keys(keys))
            for one in self.tables
        ]
        (counted,) = Execution.of_public(frames).run_parts([PartWanted(listed)])
        return ExactTables(self, counted.tables)


@dataclass(frozen=True, slots=True, eq=False)
class ExactTables:
    """The exact tables of public frames.

    Parameters
    ----------
    exact
        What they are of.
    tables
        These, by their places in its plan.
    """

    exact: Exact
    tables: Mapping[int, CellCounts] = field(repr=False)

    def of(self, part: Measurement) -> list[CellCounts]:
        """The tables of a vector."""
        return [self.tables[place] for place in kernel.tables_of(self.exact.nodes[part])]

    def numbers(self, part: Measurement) -> Integers:
        """What a vector is without noise; of choices the best candidates."""
        plan, node = self.exact.places.plan, self.exact.nodes[part]
        if isinstance(node, kernel.Reports):
            return exact_numbers(plan, node, self.of(part))
        numbers = draw_node(plan, node, kernel.Exact(), self.of(part))
        flat = isinstance(part, Margin) and part.is_by_sets
        return numbers.reshape(-1, 1) if flat else numbers

    def scores(self, part: Selection, first: int, end: int) -> Integers | PointRuns:
        """The scores of a choice in groups `first` to `end` - 1, which depend on no other one."""
        node = self.exact.nodes[part]
        assert isinstance(node, kernel.Choice | kernel.Rank | kernel.Ranks | kernel.Levels)
        return scores_of(self.exact.places.plan, first_choice(node), self.of(part), first, end)


# Noise, again and again, for exact tables that anybody may see.

NoisyParts = dict[tuple[Measurement, str], Noisy]


def with_all_groups(query: Query, free: Relation, frames: Frames) -> Query:
    """The query with every group of the public frame, where groups are to be found."""
    if query.groups is None or not query.groups.discovered:
        return query
    return replace(query, groups=query.groups.with_keys(find_keys(free, query.groups, frames)))


def noiseless(query: Query, draws: Sequence[Draw], counted: ExactTables) -> NoisyParts:
    """The exact integers of all parts."""
    keys = [key for one in draws for key in one.keys]
    return exact_parts(query, [k for k in keys if not isinstance(k[0], KeySelection)], counted)


def exact_parts(query: Query, keys: Sequence[MeasurementKey], counted: ExactTables) -> NoisyParts:
    """What some parts of a query would be without noise."""
    found = {key: counted.numbers(key[0]) for key in keys}
    if query.scope.parts == 1:
        return found
    return {
        key: found[key]
        if isinstance(key[0], Responses)
        else _whole(Rebuilt((1,), query.scope.parts).of(found[key]))
        for key in keys
    }


def _whole(rounded: tuple[Noisy, Noisy]) -> Noisy:
    """The nearest integers, the upper of two."""
    whole, half = rounded
    return (whole + half).reshape(-1, 1)


def draw_parts(
    places: Places,
    draws: Sequence[Draw],
    counted: Mapping[int, CellCounts],
    ballots: CandidateScores,
) -> tuple[NoisyParts, NDArray[np.bool_] | None]:
    """Noisy integers of all parts, and which groups appear where they are to be found. Exact tables
    are given by their places.
    """
    noisy: NoisyParts = {}
    kept = None
    chooser = chooser_of(draws, places)
    if chooser is not None:
        (table,) = (place for place, one in places.tables.items() if one is chooser.table)
        numbers = counted[table].dense(1).reshape(-1)
        kept, chosen = chooser.keep(numbers)
        kept = kept & (numbers > 0)  # a release never sees a group without rows
        noisy = numbers_of_groups(draws, places, chosen)
    for one in draws:
        if not isinstance(one.measurement, KeySelection) and one.keys[0] not in noisy:
            noisy |= draw(one, places, counted, ballots)
    return noisy, kept


def columns_of(query: Query, noisy: NoisyParts) -> list[Column]:
    noisy = in_order(noisy)
    return [
        output_column(
            output,
            {p: aggregate_column(a, noisy) for p, a in output.aggregates.items()},
        )
        for output in query.outputs
    ]


# Many runs of one plan on public data. The data are aggregated once; noise is drawn each time.

MOST_RUNS = 100_000
"""More are probably a mistake."""
MOST_RESULTS = 20_000_000
"""This many results of all runs together fit in memory."""


def simulate(prepared: Prepared, frames: Frames, runs: int) -> Simulation:
    """Draw the results of a plan on public data, again and again.

    Parameters
    ----------
    prepared
        The plan and what is needed to run it.
    frames
        Public frames of the schemas that the plan was made for.
    runs
        How often noise is drawn.

    Raises
    ------
    UnsupportedOperation
        When there would be more results than fit in memory.
    EngineError
        When the engine fails.
    """
    with progress() as shown:
        shown.stage("reading public data")
        return _simulated(prepared, frames, runs, shown)


def _simulated(prepared: Prepared, frames: Frames, runs: int, shown: Progress) -> Simulation:
    free = without_limits(prepared.query.relation)
    query = with_all_groups(prepared.query, free, frames)
    plan, keys = Exact.of(prepared), None if query.groups is None else query.groups.keys
    counted = plan.count(frames, keys)
    exact = columns_of(query.knowing(None), noiseless(query, prepared.draws, counted))
    entries = [entries_of(o, c) for o, c in zip(query.outputs, exact, strict=True)]
    _require_room(sum(e.size for e in entries) * _size(query), runs)
    plain = _arrays(_plain(query, free, frames, counted), entries, query)
    drawn, ballots = [], CandidateScores()
    for run in range(runs):
        shown.stage(f"simulating, run {run + 1} of {runs}")
        noisy, kept = draw_parts(plan.places, prepared.draws, counted.tables, ballots)
        arrays = _arrays(columns_of(query, noisy), entries, query)
        drawn.append(arrays if kept is None else [_where(kept, array) for array in arrays])
    outcomes = [
        Outcome(e, plain[i], array, np.stack([arrays[i] for arrays in drawn]))
        for i, (e, array) in enumerate(zip(entries, _arrays(exact, entries, query), strict=True))
    ]
    groups = shown_groups(query.groups)
    shown_keys = None if groups is None or query.chooses_groups else groups.keys
    return simulation_of(prepared.plan, runs, shown_keys, outcomes)


def _plain(query: Query, free: Relation, frames: Frames, counted: ExactTables) -> list[Column]:
    """The results of plain Polars: without bounds and limits, and without noise."""
    bounded = [a for a in query.aggregates if has_plain(a)]
    parts = {key for a in query.aggregates if not has_plain(a) for key in a.keys}
    if parts and has_limits(query.relation):
        keys = None if query.groups is None else query.groups.keys
        counted = counted.exact.without_limits().count(frames, keys)
    noisy = exact_parts(replace(query, relation=free), list(parts), counted)
    numbers = run_plain(free, query.groups, bounded, frames) if bounded else []
    found = {
        id(a): Column(a.of_plain(made), a.shape) for a, made in zip(bounded, numbers, strict=True)
    }
    return [
        output_column(
            output,
            {
                placeholder: found.get(id(a)) or aggregate_column(a, noisy)
                for placeholder, a in output.aggregates.items()
            },
        )
        for output in query.outputs
    ]


def _arrays(
    columns: Sequence[Column], entries: Sequence[Entries], query: Query
) -> list[NDArray[np.generic]]:
    return [
        choices_in(column, e, query) if e.choices else numbers_in(column, e)
        for column, e in zip(columns, entries, strict=True)
    ]


def _where(kept: NDArray[np.bool_], array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Results of the groups that appear; none for the others."""
    nothing = None if array.dtype == np.object_ else np.nan
    return np.where(kept[:, None], array, np.array(nothing, dtype=array.dtype))


def _size(query: Query) -> int:
    groups = shown_groups(query.groups)
    return 1 if groups is None or query.chooses_groups else groups.size


def _require_room(results: int, runs: int) -> None:
    if runs * results > MOST_RESULTS:
        raise UnsupportedOperation(
            f"{runs} runs of {results} results are more than fit in memory",
            where=f"simulate(..., runs={runs})",
            remedy=(f"ask for at most {max(1, MOST_RESULTS // results)} runs", "use fewer keys"),
        )
