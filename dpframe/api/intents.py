"""Names from other libraries and likely guesses, with the dpframe code to use instead. Names that
are near by their letters often mean something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from dpframe.rows.suggest import did_you_mean

_MOST = "use .dp_quantile(column, {}, bounds) with wide bounds"
_AGGREGATES = {
    "max maximum": _MOST.format("0.99")
    + "\nfind the most frequent value: .dp_argmax(column, candidates=[...])",
    "min minimum": _MOST.format("0.01"),
    "avg average": "use .dp_mean(column, bounds)",
    "len size rows n number": "use .dp_count()",
    "total": "use .dp_sum(column, bounds)",
    "nunique unique distinct count_distinct approx_n_unique": "use .dp_n_unique(column)",
    "stddev stdev sd": "use .dp_std(column, bounds)",
    "variance": "use .dp_var(column, bounds)",
    "percentile percentiles quantiles quartiles": "use .dp_quantile(column, [0.25, 0.5, "
    "0.75], bounds)",
    "mode top top_k topk most_common": "use .dp_argmax(column, candidates=[...], k=5)",
    "hist value_counts counts frequencies": "use .dp_histogram(column, bins)\n"
    "use .value_counts(column)",
    "describe summary": "use .describe(columns)",
    "share proportion rate percent": "use .dp_mean(condition) for a share of rows\n"
    "divide two totals: .dp_ratio(column, denominator, bounds, denominator_bounds=bounds)",
    "corr cov covariance correlation": "compute the covariance from means, in one .agg(): "
    "(dp.col(a) * dp.col(b)).dp_mean(bounds) - dp.col(a).dp_mean(bounds) * "
    "dp.col(b).dp_mean(bounds); divide it by both .dp_std(bounds, ddof=0) for the correlation",
    "any all": "use .dp_mean(condition), the share of rows for which it holds",
    "null_count nulls": "use .dp_count(pl.when(pl.col(...).is_null()).then(1))",
}
_OF_COLUMN = re.compile(r"(\.dp_\w+\()(?:column|condition)(?:, )?")
"""Methods of frames name the column first; those of expressions begin with it."""
_OF_EXPRESSIONS = {
    "dp_describe": "use .describe(columns) of the frame",
    "dp_null_count": "use pl.when(pl.col(...).is_null()).then(1), and .dp_count() of it",
}
_VERBS = {
    "assign mutate withColumn with_column transform": "use .with_columns(...)",
    "where query": "use .filter(...)",
    "groupby groupBy": "use .group_by(...)",
    "aggregate summarise summarize": "use .agg(...)",
    "astype": "use .cast({column: dtype})",
    "dropna": "use .drop_nulls(...)",
    "fillna": "use .fill_null(value)",
    "merge": "use .join(...)",
    "append union union_all vstack": "use .concat(other), with another private frame",
    "sort_values sort_index order_by orderBy": "sort the released result, which is public",
    "nlargest nsmallest": "sort the released result\n"
    "choose the largest groups: .group_by(column, keys=[...]).dp_argmax(k=n)",
    "drop_duplicates distinct": "use .limit_rows(1) for one row of each individual\n"
    "count distinct values with .dp_n_unique(column)",
    "nunique": "use .dp_n_unique(column)",
    "apply applymap map": "write it with Polars expressions, in .with_columns(...)",
    "size": "use .dp_count()",
    "iloc loc iat at sample_n": "aggregate with dp expressions, such as .dp_count()",
    "pivot pivot_table crosstab": "group by both columns, .group_by(a, b).agg(...), and "
    "pivot the released result",
    "resample": 'use .group_by_dynamic(column, every="1w")',
    "info": "use .schema and .explain_unit(), which are public",
}


def _by_name() -> Mapping[str, str]:
    found = {
        f"dp_{name}": remedy for names, remedy in _AGGREGATES.items() for name in names.split()
    }
    found |= {name: remedy for names, remedy in _VERBS.items() for name in names.split()}
    return MappingProxyType(found)


INTENTS = _by_name()
"""What to write instead, by the name that a frame, its groups or a query does not have."""


def meant_by_method(name: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown ``dp_`` method of expressions."""
    remedy = _OF_EXPRESSIONS.get(name, INTENTS.get(name))
    if remedy is not None:
        return _OF_COLUMN.sub(r"\1", remedy)
    methods = [f"dp_{each}" for each in known]
    near = did_you_mean(name, methods)
    return near if near.startswith("did you mean") else f"use one of {', '.join(methods)}"


def meant_by(name: str) -> str | None:
    """What to write instead of an unknown function of the module."""
    remedy = INTENTS.get(f"dp_{name}")
    if remedy is None or "dp.col" in remedy:
        return remedy
    return remedy.replace(".dp_", "dp.")
