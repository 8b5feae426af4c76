"""What many runs of a plan on public data gave, and how far off they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import Output, Query
from dpframe.aggregates.shapes import Column
from dpframe.report import Plan
from dpframe.report.plots import Chart, plot_simulation

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
