"""Refusals: what an operation is called in Polars, why it is refused, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dpframe.errors import UnsupportedOperation
from dpframe.rows.operation import Node, snake

_AGGREGATE = "it combines many rows, and would carry no noise here"
_NEIGHBOURS = "its value in a row depends on other rows"
_LENGTH = "it changes the number of rows"
_PYTHON = "what a Python function does cannot be checked"
_UNKNOWN = "it is not on the list of operations whose effect on privacy is known"
NEVER = (_AGGREGATE, _NEIGHBOURS, _LENGTH, _PYTHON)
"""Reasons that no rule could remove, as messages give them."""
NOT_YET = _UNKNOWN
"""The reason of all others: there is no rule, so far."""

_ONE_ROW = (
    "the value of one row is one person's: use .dp_argmax() for the most frequent value, or "
    ".limit_rows(1) of the frame, which keeps one row of each individual, before the aggregates"
)
_COVARIANCE = (
    "make it of means, in one .agg(): (dp.col(a) * dp.col(b)).dp_mean(bounds) - "
    "dp.col(a).dp_mean(bounds) * dp.col(b).dp_mean(bounds)"
)
_LARGEST = (
    "use .dp_argmax(candidates=[...], k=n) for the most frequent values, and "
    ".dp_quantile([0.95, 0.99], bounds) for large and small ones, which are single people's"
)
_PER_AGGREGATE = {
    **{
        name: f"use {private} as an aggregate, in .agg() or .select()"
        for names, private in (
            ("len pl.len", "dp.count()"),
            ("sum", ".dp_sum(bounds)"),
            ("mean", ".dp_mean(bounds)"),
            ("median", ".dp_median(bounds)"),
            ("std", ".dp_std(bounds)"),
            ("var", ".dp_var(bounds)"),
            ("quantile approx_quantile", ".dp_quantile(q, bounds)"),
            ("count", ".dp_count()"),
            ("n_unique approx_n_unique", ".dp_n_unique()"),
            ("unique_counts", ".dp_histogram()"),
            ("hist", ".dp_histogram(bins)"),
            ("mode", ".dp_argmax()"),
        )
        for name in names.split()
    },
    "unique": "use .dp_histogram() or .dp_n_unique() as an aggregate",
    "value_counts": "use .value_counts(column) of the frame, or .dp_histogram() as an aggregate",
    "min": "use .dp_quantile(0.01, bounds) as an aggregate, or pl.min_horizontal across columns",
    "max": "use .dp_quantile(0.99, bounds) as an aggregate, or pl.max_horizontal across columns",
    "null_count": "filter the frame on .is_null(), then use dp.count()",
    "any": "use .dp_sum() of the Boolean, the number of rows for which it holds, or "
    "pl.any_horizontal across columns",
    "all": "use .dp_mean() of the Boolean, the share of rows for which it holds, or "
    "pl.all_horizontal across columns",
    "first": _ONE_ROW,
    "last": _ONE_ROW,
    "item": _ONE_ROW,
    "pl.corr": f"{_COVARIANCE}; divided by both .dp_std(bounds, ddof=0) it is a correlation",
    "pl.cov": _COVARIANCE,
    "top_k": _LARGEST,
    "bottom_k": _LARGEST,
    "arg_max": "use .dp_argmax() as an aggregate",
}
_AGGREGATES = {
    *_PER_AGGREGATE,
    *("implode", "product", "nan_min", "nan_max", "arg_min", "skew"),
    *("kurtosis", "entropy", "has_nulls", "is_empty", "agg_groups", "dot"),
    *("lower_bound", "upper_bound", "index_of", "min_by", "max_by", "str.join"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "search_sorted", "first_non_null"),
}
_NEIGHBOUR_NAMES = {
    *("over", "rolling", "shift", "diff", "pct_change", "rank", "sort", "sort_by", "reverse"),
    *("cum_sum", "cum_count", "cum_min", "cum_max", "cum_prod", "forward_fill", "backward_fill"),
    *("interpolate", "interpolate_by", "is_unique", "is_duplicated", "is_first_distinct", "rle"),
    *("is_last_distinct", "rle_id", "peak_max", "peak_min", "ewm_mean", "ewm_std", "ewm_var"),
    *("shuffle", "arg_sort", "arg_unique", "qcut", "set_sorted", "ewm_mean_by", "ewm_sum"),
    *("is_sorted", "ewm_sum_by"),
    *("rolling_map", "to_physical", "get_categories", "cumulative_eval"),
}
_LENGTH_NAMES = {
    *("filter", "drop_nulls", "drop_nans", "explode", "head, tail or slice", "gather or get"),
    *("sample", "gather_every", "append", "extend_constant", "top_k", "bottom_k", "top_k_by"),
    *("bottom_k_by", "reshape", "repeat_by", "pl.int_range", "pl.repeat", "pl.arg_where"),
    *("pl.date_range", "pl.datetime_range", "pl.time_range", "pl.linear_space", "unpivot"),
}
_PYTHON_NAMES = {
    *("map_elements or map_batches", "pl.fold", "pl.reduce", "a Python function", "rolling_map"),
    *("name.map", "name.map_fields", "pl.cum_fold", "pl.cum_reduce", "a plugin", "pl.map_groups"),
}
_REMEDIES = {
    **_PER_AGGREGATE,
    "over": 'compute it in with_columns or filter of a frame with unit="user_id": '
    'pl.col("x").max().over("user_id")\n'
    "aggregate each group with .group_by(...).agg(...), and join the released result afterwards",
    "rolling": "bin the time and group by it: .group_by(pl.col(...).dt.truncate(every))",
    "filter": "filter the frame: .filter(...) before the aggregate",
    "drop_nulls": "use the frame's .drop_nulls(...); dp aggregates skip nulls anyway",
    "drop_nans": "use .fill_nan(None); dp aggregates skip nulls anyway",
    "explode": "explode the frame: .explode(columns, max_length=...)",
    "sample": "sample before the frame is protected",
    "head, tail or slice": "take them from the released result, which is public; rows of each "
    "individual are limited by .limit_rows(n) of the frame",
    "sort": "sort the released result, which is public",
    "sort_by": "sort the released result, which is public",
    "rank": "use .dp_quantile(q, bounds), or rank the released result",
    "shift": "do it before the frame is protected, or put both values in one row",
    "diff": "do it before the frame is protected, or put both values in one row",
    "fill_null": "write the value to fill with: .fill_null(0)",
    "pl.fold": "use pl.sum_horizontal, pl.min_horizontal, pl.max_horizontal or pl.all_horizontal",
    "pl.reduce": "use pl.sum_horizontal, pl.min_horizontal, pl.max_horizontal or pl.all_horizontal",
    "name.map": "use .alias(), .name.prefix(), .name.suffix() or .name.to_lowercase()",
    "qcut": "use public breaks: .cut(breaks, labels=...)",
    "hash": "group by the column itself, or hash before the frame is protected",
    "str.split_regex": "split by a constant text, or use .str.extract(pattern)",
    "str.split_exact": "use .str.split(by).list.get(index)",
    "str.splitn": "use .str.split(by).list.get(index)",
    "pl.concat_arr": "use pl.concat_list(...)",
    "is_close": "use ((a - b).abs() <= tolerance)",
    "round_sig_figs": "use .round(decimals)",
    "truncate": "use .floor(), .ceil() or .round(decimals)",
    "dot": "multiply the columns, then use .dp_sum(bounds) as an aggregate",
    "eval": "explode the frame: .explode(columns, max_length=...)",
    "to_physical": "use .cast(...), or group by the column itself",
    "dt.epoch or a function of Rust": 'use .dt.timestamp("ms") // 1000',
}
_DEFAULT_REMEDY = {
    _AGGREGATE: "use a dp_ aggregate in .agg() or .select(), such as .dp_sum(bounds) or dp.count()",
    _NEIGHBOURS: "do it before the frame is protected",
    _LENGTH: "use the frame's own methods, or do it before the frame is protected",
    _PYTHON: "write it with expressions, or do it before the frame is protected",
    _UNKNOWN: "write it with supported expressions, or do it before the frame is protected",
}

FAMILIES: Mapping[str, str] = {
    "Boolean": "", "Pow": "", "Trigonometry": "", "StringExpr": "str.", "TemporalExpr": "dt.",
    "ListExpr": "list.", "ArrayExpr": "arr.", "MapExpr": "map.", "StructExpr": "struct.",
    "Categorical": "cat.", "BinaryExpr": "bin.", "Business": "dt.", "Extension": "ext.",
    "Range": "pl.", "Bitwise": "bitwise_",
}  # fmt: skip
"""Groups of functions as Polars writes them, and what the analyst writes before the name."""

_SPECIAL_NAMES = {
    "Boolean.HasNulls": "has_nulls", "RLEID": "rle_id", "RLE": "rle", "NUnique": "n_unique",
    "ApproxNUnique": "approx_n_unique", "QCut": "qcut", "SetSortedFlag": "set_sorted",
    "RoundSF": "round_sig_figs", "AsStruct": "pl.struct", "Atan2": "pl.arctan2",
    "ArgWhere": "pl.arg_where", "Repeat": "pl.repeat", "FfiPlugin": "a plugin",
    "PluginV2": "a plugin", "FoldHorizontal": "pl.fold", "ReduceHorizontal": "pl.reduce",
    "CumFoldHorizontal": "pl.cum_fold", "CumReduceHorizontal": "pl.cum_reduce",
    "DynamicPred": "a dynamic predicate", "Trigonometry.ArcTan": "arctan",
    "Trigonometry.ArcSin": "arcsin", "Trigonometry.ArcCos": "arccos",
    "Trigonometry.ArcSinh": "arcsinh", "Trigonometry.ArcCosh": "arccosh",
    "Trigonometry.ArcTanh": "arctanh", "StringExpr.ConcatVertical": "str.join",
    "StringExpr.ZFill": "str.zfill", "StringExpr.SplitN": "str.splitn",
    "StringExpr.HexEncode": "str.encode", "StringExpr.Base64Encode": "str.encode",
    "StringExpr.HexDecode": "str.decode", "StringExpr.Base64Decode": "str.decode",
    "TemporalExpr.ToString": "dt.to_string", "TemporalExpr.DSTOffset": "dt.dst_offset",
    "TemporalExpr.DatetimeFunction": "pl.datetime", "TemporalExpr.Duration": "pl.duration",
    "Business.AddBusinessDay": "dt.add_business_days",
    "Business.BusinessDayCount": "pl.business_day_count", "ListExpr.Concat": "pl.concat_list",
    "ArrayExpr.Concat": "pl.concat_arr", "StructExpr.WithFields": "struct.with_fields",
    "StructExpr.PrefixFields": "name.prefix_fields",
    "StructExpr.SuffixFields": "name.suffix_fields", "StructExpr.MapFieldNames": "name.map_fields",
    "Bin": "bin_intervals",
}  # fmt: skip
_NODE_NAMES = {
    "Over": "over", "Window": "over", "Rolling": "rolling", "Sort": "sort", "SortBy": "sort_by",
    "Slice": "head, tail or slice", "Gather": "gather or get", "Filter": "filter",
    "Explode": "explode", "Len": "pl.len", "Element": "pl.element", "Field": "pl.field",
    "Eval": "list.eval", "StructEval": "struct.with_fields",
    "AnonymousFunction": "map_elements or map_batches",
    "AnonymousAgg": "map_elements or map_batches", "SubPlan": "a nested frame",
    "DataTypeFunction": "an expression of types",
}  # fmt: skip


def refuse(name: str, remedy: str | None = None) -> UnsupportedOperation:
    """The refusal of an operation by its Polars name."""
    base = name.split(".")[-1] if name.startswith(("list.", "arr.")) else name
    if name.startswith(("rolling_", "fill_null(", "forward_fill", "backward_fill")):
        reason, base = _NEIGHBOURS, "rolling" if name.startswith("rolling_") else "fill_null"
    elif name in _PYTHON_NAMES:
        reason = _PYTHON
    elif name in _AGGREGATES:
        reason = _AGGREGATE
    elif name in _NEIGHBOUR_NAMES:
        reason = _NEIGHBOURS
    elif name in _LENGTH_NAMES:
        reason = _LENGTH
    else:
        reason, base = _UNKNOWN, name
    return UnsupportedOperation(
        f"{name} cannot be used in a private expression",
        why=reason,
        remedy=remedy or _REMEDIES.get(base) or _DEFAULT_REMEDY[reason],
    )


def function_key(function: Node) -> tuple[str, Node]:
    """A function's name, with its group, and its parameters."""
    if isinstance(function, str):
        return function, None
    [(name, body)] = function.items()
    if name not in FAMILIES:
        return name, body
    if isinstance(body, str):
        return f"{name}.{body}", None
    [(inner, params)] = body.items()
    return f"{name}.{inner}", params


def function_name(key: str, params: Node) -> str:
    """What the analyst wrote for the function that Polars calls `key`, such as ``Boolean.IsIn``."""
    if key in _SPECIAL_NAMES:
        return _SPECIAL_NAMES[key]
    if key.startswith("Rolling") and isinstance(params, Mapping):
        inner = params.get("function", params.get("function_by", ""))
        inner = next(iter(inner)) if isinstance(inner, Mapping) else str(inner)
        return "rolling_" + snake(inner)
    if key == "FillNullWithStrategy":
        strategy = snake(next(iter(params)) if isinstance(params, Mapping) else str(params))
        shown = f"fill_null(strategy={strategy!r})"
        return f"{strategy}_fill or {shown}" if strategy in ("forward", "backward") else shown
    if key == "Correlation" and isinstance(params, Mapping):
        return "pl.cov" if "Covariance" in str(params.get("method")) else "pl.corr"
    if key == "Random" and isinstance(params, Mapping):
        method = params.get("method", "sample")
        return snake(next(iter(method)) if isinstance(method, Mapping) else str(method))
    family, _, name = key.partition(".")
    if not name:
        return snake(family)
    return FAMILIES.get(family, "") + snake(name)


def node_name(kind: str, body: Node) -> str:
    """What the analyst wrote for a node that is not a function."""
    if kind == "Agg" and isinstance(body, Mapping) and body:
        [name, *_] = body
        inner = body[name]
        if name == "Count":
            nulls = inner["include_nulls"] if isinstance(inner, Mapping) else inner[-1]
            return "len" if nulls else "count"
        if name in ("Min", "Max") and isinstance(inner, Mapping) and inner.get("propagate_nans"):
            return "nan_" + snake(name)
        return _SPECIAL_NAMES.get(name, snake(name))
    if kind == "Eval" and isinstance(body, Mapping):
        return _list_name(body)
    if kind == "Window" and isinstance(body, Mapping) and "Rolling" in str(body.get("options")):
        return "rolling"
    return _NODE_NAMES.get(kind, snake(kind))


def _list_name(body: Mapping[str, object]) -> str:
    """Newer Polars writes some functions of lists, such as ``list.unique``, as ``list.eval``."""
    if "Cumulative" in str(body.get("variant")):
        return "cumulative_eval"
    prefix = "arr." if str(body.get("variant")).startswith("Arr") else "list."
    evaluated = body.get("evaluation")
    if isinstance(evaluated, Mapping) and evaluated.get("Agg"):
        return prefix + node_name("Agg", evaluated["Agg"])
    function = evaluated.get("Function") if isinstance(evaluated, Mapping) else None
    if isinstance(function, Mapping) and function.get("input") == ["Element"]:
        name, params = function_key(function["function"])
        return f"{prefix}{function_name(name, params)} or {prefix}eval"
    return prefix + "eval"


_QUOTED = re.compile(r'"[^"]*"')
_OPAQUE = (
    ("python_udf(", "map_elements or map_batches"),
    ("map_elements(", "map_elements or map_batches"),
    ("map_batches(", "map_elements or map_batches"),
    ("cum_fold(", "pl.cum_fold"),
    ("cum_reduce(", "pl.cum_reduce"),
    ("fold(", "pl.fold"),
    ("reduce(", "pl.reduce"),
    ("rolling_map(", "rolling_map"),
    ("rename_alias(", "name.map"),
    ("name.map(", "name.map"),
    ("map_field_names(", "name.map_fields"),
    (".map(", "dt.epoch or a function of Rust"),
)


def refuse_unserialisable(shown: str) -> UnsupportedOperation:
    """The refusal of an expression that Polars cannot write down, from how it prints."""
    bare = _QUOTED.sub('""', shown)
    name = next((name for sign, name in _OPAQUE if sign in bare), "a Python function")
    return refuse(name)


# How Polars writes aggregates down, in old and new versions: which node holds what.


_HELD = ("input", "expr")
_FUNCTIONS = ("Quantile", "NullCount")
"""Functions of one column that give one value, which newer Polars writes as functions."""


def held(body: Node) -> tuple[str, Node, Node]:
    """The name of an aggregate, its operand, and its other arguments."""
    [(name, inner)] = body.items()
    if isinstance(inner, list):
        return name, inner[0], inner[1:]
    key = _held_at(inner)
    if key is None:
        return name, inner, None
    return name, inner[key], {k: v for k, v in inner.items() if k != key}


def _held_at(inner: Node) -> str | None:
    return next((key for key in _HELD if isinstance(inner, Mapping) and key in inner), None)


def holding(body: Node, node: Node) -> Node:
    """The same aggregate of something else."""
    [(name, inner)] = body.items()
    if isinstance(inner, list):
        return {name: [node, *inner[1:]]}
    key = _held_at(inner)
    return {name: node if key is None else {**inner, key: node}}


def aggregates(node: Node) -> bool:
    """Whether an expression has one value for all rows, or is computed from such values."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node == "Len":
            return True
        if not isinstance(node, dict):
            continue
        [(kind, body)] = node.items()
        if kind == "Agg":
            return True
        if kind == "Function" and function_key(body["function"])[0] in _FUNCTIONS:
            return True
        waiting.extend(operands(kind, body))
    return False


_PARTS: Mapping[str, tuple[str, ...]] = {
    "Cast": ("expr",),
    "RenameAlias": ("expr",),
    "BinaryExpr": ("left", "right"),
    "Ternary": ("predicate", "truthy", "falsy"),
    "Filter": ("input", "by"),
}


def parts(kind: str, body: Node) -> list[Node]:
    """The nodes that a node is made of."""
    match kind:
        case "Alias":
            return [body[0]]
        case "KeepName":
            return [body]
        case "Function":
            return list(body["input"])
        case "Agg":
            return [held(body)[1]]
        case _:
            return [body[name] for name in _PARTS.get(kind, ())]


def with_parts(kind: str, body: Node, others: Sequence[Node]) -> Node:
    """The same node, made of others."""
    match kind:
        case "Alias":
            return {kind: [others[0], body[1]]}
        case "KeepName":
            return {kind: others[0]}
        case "Function":
            return {kind: {**body, "input": list(others)}}
        case "Agg":
            return {kind: holding(body, others[0])}
        case _:
            return {kind: {**body, **dict(zip(_PARTS[kind], others, strict=True))}}


def operands(kind: str, body: Node) -> list[Node]:
    """The parts of a node that its values are computed from, row by row."""
    if kind == "Agg":
        return []
    return parts(kind, body)[:1] if kind == "Filter" else parts(kind, body)
