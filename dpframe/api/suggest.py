"""Contribution limits and bounds that fit the data, found privately."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from dpframe import pipeline
from dpframe.aggregates.query import Query
from dpframe.api.arguments import require_rows
from dpframe.api.expressions import output_of
from dpframe.api.functions import bounds, histogram
from dpframe.api.limit_of_rows import limits_of_rows, share_of_rows
from dpframe.api.limit_ways import (
    COMPARED,
    BIN_ENDS,
    NoisyGroups,
    compared,
    ends_up_to,
    individuals_of,
    keys_of,
    read_spend,
    unlimited_relation,
    ways_of,
)
from dpframe.api.payer import Payer
from dpframe.api.protected_rows import ProtectedRows
from dpframe.api.source import Source, Sources
from dpframe.api.spend import Spend
from dpframe.core.exact import Number, as_given, exact
from dpframe.core.units import Identifier
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.frames.groups import Groups
from dpframe.frames.per_individual import FULLEST, GROUPS, ROWS, Extremes, PerIndividual
from dpframe.frames.relation import Relation
from dpframe.mechanisms import AdditiveMechanism
from dpframe.report import Plan
from dpframe.rows.fold import domain


@dataclass(frozen=True, slots=True)
class SuggestionQuery:
    """What histograms of individuals are for.

    Parameters
    ----------
    query
        The histograms.
    numbers
        The numbers whose limits are sought: of rows, of groups, of rows in a group.
    names
        The outputs whose bounds are sought.
    ends
        The largest number in each bin of the histogram of a number.
    """

    query: Query
    numbers: tuple[str, ...]
    names: tuple[str, ...]
    ends: dict[str, tuple[int, ...]]


def suggest(
    asked: Query,
    source: Source | Sources,
    payer: Payer,
    spend: Spend,
    coverage: Number,
    for_spend: Mapping[str, Number] | None,
    *,
    details: bool,
) -> pl.DataFrame:
    """See `PrivateQuery.suggest_limits`; refusals come before anything is charged."""
    share = share_of(coverage)
    later = spend if for_spend is None else read_spend(for_spend)
    sought = build_suggestion_query(asked, with_bounds=source.engine.name == "polars")
    ways = ways_of(asked, lambda query: payer.prepare(query, later))
    by_row = None
    if individuals_of(asked) is None:
        by_row = limits_of_rows(asked, lambda query: payer.prepare(query, later))
    release = payer.release(sought.query, source, spend)
    laws = _laws(release.plan, sought)
    found = [read_suggestion(release.frame, asked.groups, sought, share, laws)]
    if asked.groups is not None:
        counts = _histogram(release.frame, GROUPS)[: len(sought.ends[GROUPS])]
        ends = sought.ends[GROUPS]
        groups = NoisyGroups(ends, counts, laws[GROUPS].variance())
        ways_found = compared(ways, groups, asked.groups.size)
        also = (ways_found, "limit_groups", ends, counts, laws[GROUPS])
        found.append(ways_found if details else _with_shares(*also))
    if by_row is not None:
        counts = _histogram(release.frame, ROWS)
        best = by_row.best(sought.ends[ROWS], counts.tolist(), laws[ROWS])
        frame = pl.DataFrame([best], schema_overrides=COMPARED)
        ends = sought.ends[ROWS]
        also = (frame, "limit_rows", ends, counts, laws[ROWS])
        found.append(frame if details else _with_shares(*also))
    table = pl.concat(found, how="diagonal")
    return table if details else brief(table)


def _laws(plan: Plan, sought: SuggestionQuery) -> dict[str, AdditiveMechanism]:
    """The noise of each histogram."""
    found = {}
    for number in sought.numbers:
        (noise,) = (r.noise for r in plan.releases if number in r.users)
        assert isinstance(noise, AdditiveMechanism)
        found[number] = noise
    return found


def _with_shares(
    found: pl.DataFrame,
    limit: str,
    ends: Sequence[int],
    counts: np.ndarray[Any, np.dtype[np.int64]],
    law: AdditiveMechanism,
) -> pl.DataFrame:
    """Rows of compared limits with the shares of individuals and of rows that a limit keeps."""
    shares: list[tuple[float | None, float | None]] = []
    for row in found.select("limit", "n").rows():
        if row[0] == limit and row[1] in ends:
            below = np.cumsum(counts)[ends.index(row[1])] / max(1.0, float(counts.sum()))
            people = float(np.clip(below, 0.0, 1.0))
            shares.append((people, share_of_rows(ends, counts.tolist(), law, row[1])))
        else:
            shares.append((None, None))
    schema = {"covered": pl.Float64, "covered_rows": pl.Float64}
    return found.hstack(pl.DataFrame(shares, schema=schema, orient="row"))


def brief(table: pl.DataFrame) -> pl.DataFrame:
    """Limits in the form that analysts write, with what decides between them; no row is about a
    limit that is not compared, and no column is empty.
    """
    rows = dict[str, dict[str, Any]]()
    for row in table.iter_rows(named=True):
        words = _limit_words(row)
        if words is None:
            continue
        cells = {
            "n": row["n"],
            "people": _in_digits(row["covered"], 3),
            "rows": _in_digits(row["covered_rows"], 3),
            "error": _in_digits(row.get("error"), None),
            "best": row.get("best"),
        }
        kept = rows.setdefault(words, dict.fromkeys(cells))
        rows[words] = {name: cells[name] if old is None else old for name, old in kept.items()}
    schema = {
        "limit": pl.String,
        "n": pl.Int64,
        "people": pl.Float64,
        "rows": pl.Float64,
        "error": pl.Float64,
        "best": pl.Boolean,
    }
    found = pl.DataFrame([{"limit": words, **cells} for words, cells in rows.items()], schema)
    if found["best"].is_null().all():
        return found.drop("error", "best")
    return found.with_columns(pl.col("best").fill_null(False))


def _limit_words(row: Mapping[str, Any]) -> str | None:
    """The limit as an analyst writes it; None where it is not compared."""
    by = row["by"] or []
    if row["limit"] == "bounds":
        (name,) = by
        ends = row["bounds"]
        return f"bounds of {name}: " + (
            "not found" if ends is None else f"({ends[0]:,.15g}, {ends[1]:,.15g})"
        )
    if row.get("norm") is not None:
        return f"limit_norm({row['norm']:g})"
    if row["n"] is None:
        return None
    columns = by[0] if len(by) == 1 else by
    beside = f", by={json.dumps(columns, ensure_ascii=False)}" if by else ""
    return f"{row['limit']}({row['n']}{beside})"


def _in_digits(value: float | None, decimals: int | None) -> float | None:
    """A noisy number rounded to decimals, or to three digits."""
    if value is None:
        return None
    return round(value, decimals) if decimals is not None else float(f"{value:.3g}")


def suggest_for_frame(
    rows: ProtectedRows, by: Sequence[Any], spend: Spend, coverage: Number, *, details: bool
) -> pl.DataFrame:
    """See `PrivateFrame.suggest_limits`."""
    share = share_of(coverage)
    assert rows.payer is not None  # frames that analysts hold belong to a session
    require_rows(by, "suggest_limits")
    groups = pipeline.group(rows.relation, by, {}, None, discover=True) if by else None
    sought = suggestion_of(rows.relation, groups, {})
    release = rows.payer.release(sought.query, rows.source, spend)
    laws = _laws(release.plan, sought)
    table = read_suggestion(release.frame, groups, sought, share, laws)
    return table if details else brief(table)


def _histogram(released: pl.DataFrame, number: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The noisy counts of a number; the last is of what is in no bin."""
    alone = released.width > 1 and "upper" in released.columns  # then it is a separate table
    found = released if alone else released[number].item().struct.unnest()
    return found["count"].to_numpy()


def read_suggestion(
    released: pl.DataFrame,
    groups: Groups | None,
    sought: SuggestionQuery,
    share: Fraction,
    laws: Mapping[str, AdditiveMechanism],
) -> pl.DataFrame:
    """Limits and bounds from noisy histograms: one row each, see `PrivateQuery.suggest_limits`."""
    by = [] if groups is None else list(groups.names)
    limits = {ROWS: ("limit_rows", []), GROUPS: ("limit_groups", by), FULLEST: ("limit_rows", by)}
    rows: list[tuple[Any, ...]] = []
    for number in sought.numbers:
        counts, limits_of = _histogram(released, number), sought.ends[number]
        n, covered = _least(counts, limits_of, share)
        kept = None
        if number != FULLEST:  # other groups of an individual may have as many rows
            kept = share_of_rows(limits_of, counts.tolist(), laws[number], n)
        rows.append((*limits[number], n, covered, kept, None))
    for place, name in enumerate(sought.names):
        least, largest = (released[f"{end} {place}"].item() for end in ("least", "largest"))
        ends = None if least is None or largest is None else _ends(least[0], largest[1])
        rows.append(("bounds", [name], None, None, None, ends))
    return pl.DataFrame(
        rows,
        schema={
            "limit": pl.String,
            "by": pl.List(pl.String),
            "n": pl.Int64,
            "covered": pl.Float64,
            "covered_rows": pl.Float64,
            "bounds": pl.List(pl.Float64),
        },
        orient="row",
    )


def _ends(lo: float, hi: float) -> list[float]:
    """Bounds; a lower one far below the upper is 0, which costs nothing and raises no value."""
    return [0.0 if 0 < lo <= hi / 64 else lo, hi]


def share_of(coverage: Number) -> Fraction:
    """A share as a fraction.

    Raises
    ------
    InvalidBounds
        When it does not lie between 0 and 1.
    """
    try:
        share = exact(coverage)
    except (TypeError, ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share < 1:
        raise InvalidBounds(
            f"coverage={as_given(coverage)} does not lie between 0 and 1",
            where="coverage",
            remedy="write for example coverage=0.95",
        )
    return share


def build_suggestion_query(asked: Query, *, with_bounds: bool = True) -> SuggestionQuery:
    """How many individuals have which numbers of rows and groups, and between which bounds their
    values lie if that is wanted, on the frame without its limits.
    """
    return suggestion_of(asked.relation, asked.groups, _clamped(asked) if with_bounds else {})


def suggestion_of(
    asked: Relation, groups: Groups | None, clamped: Mapping[Extremes, str]
) -> SuggestionQuery:
    """The histograms for a frame in groups, and for numbers that are clamped there."""
    facts = asked.facts
    if not isinstance(facts.unit, Identifier) or facts.identifier is None:
        raise UnsupportedOperation(
            "limits need an identifier of individuals, and unit=dp.Rows() has none",
            where="suggest_limits(...)",
            remedy='protect the frame with unit="user_id"',
        )
    relation = unlimited_relation(asked)
    by = () if groups is None else groups.by
    keys = keys_of(groups)
    relation = relation.then(
        PerIndividual(by, tuple(clamped))
        if keys is None
        else PerIndividual.within(by, tuple(clamped), keys)
    )
    numbers = (ROWS,) if groups is None else (ROWS, GROUPS, FULLEST)
    ends: dict[str, tuple[int, ...]] = dict.fromkeys(numbers, BIN_ENDS)
    if keys is not None:
        ends[GROUPS] = ends_up_to(keys.height)
    outputs = []
    for number, largest in ends.items():
        edges = [1, *(end + 1 for end in largest)]
        column = PerIndividual.name_of(number, relation.facts)
        outputs.append(output_of(histogram(column, edges, other=True), number))
    for place in range(len(clamped)):
        for end in (f"least {place}", f"largest {place}"):
            outputs.append(output_of(bounds(PerIndividual.name_of(end, relation.facts)), end))
    query = pipeline.ask(relation, None, outputs)
    return SuggestionQuery(query, numbers, tuple(clamped.values()), ends)


def _clamped(asked: Query) -> dict[Extremes, str]:
    """The numbers that outputs clamp, each with the first output that does."""
    found: dict[Extremes, str] = {}
    columns = asked.relation.facts.columns
    for aggregate in asked.aggregates:
        for clamp in aggregate.clamps:
            is_number = domain(clamp.tree, columns).dtype.is_numeric
            if is_number and not aggregate.shape.is_choice:
                found.setdefault(Extremes(clamp.tree, clamp.per_unit), aggregate.name)
    return found


def _least(
    counts: np.ndarray[Any, np.dtype[np.int64]], ends: tuple[int, ...], share: Fraction
) -> tuple[int, float]:
    """The least limit under which so large a share of individuals stays, and their share."""
    total = max(1.0, float(counts.sum()))
    below = np.clip(np.cumsum(counts) / total, 0.0, 1.0)
    tried = [place for place, end in enumerate(ends) if end in BIN_ENDS or end == ends[-1]]
    enough = (place for place in tried if below[place] >= float(share))
    place = next(enough, tried[-1])
    return ends[place], float(below[place])
