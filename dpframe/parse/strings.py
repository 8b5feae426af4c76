"""Functions of the `str` namespace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from dpframe.core.dtypes import INT64, STRING, DType
from dpframe.core.tree import Literal, Tree
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.parse import checks
from dpframe.parse.build import (
    Handler,
    Operand,
    integer,
    integer_or_none,
    make,
    simple,
    text,
    text_or_none,
)
from dpframe.parse.dtypes import read_dtype, read_dtype_expression

_OFFSET_DIRECTIVES = ("%z", "%:z", "%#z", "%+")


def _contains(operands: Sequence[Operand], params: Any) -> Tree:
    source, given = operands
    literal = bool(params["literal"])
    pattern = text(given, "the pattern of str.contains")
    if not literal:
        checks.regex(pattern)
    return make("str_contains", source, pattern=pattern, literal=literal)


def _find(operands: Sequence[Operand], params: Any) -> Tree:
    source, given = operands
    return _search("str_find", source, given, literal=bool(params["literal"]))


def _count_matches(operands: Sequence[Operand], params: Any) -> Tree:
    source, given = operands
    return _search("str_count_matches", source, given, literal=bool(params))


def _search(op: str, source: Operand, given: Operand, *, literal: bool) -> Tree:
    pattern = text(given, f"the pattern of {op.replace('str_', 'str.', 1)}")
    if not literal:
        checks.regex(pattern)
    return make(op, source, pattern=pattern, literal=literal)


def _pad(op: str) -> Handler:
    what = f"the length of {op.replace('str_', 'str.', 1)}"

    def handle(operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        fill = {} if params is None else {"fill": str(params["fill_char"])}
        return make(op, source, length=integer(given, what), **fill)

    return handle


def _split(operands: Sequence[Operand], params: Any) -> Tree:
    source, given = operands
    by = text(given, "the separator of str.split")
    return make("str_split", source, by=by, inclusive=bool(params))


def _replace(operands: Sequence[Operand], params: Any) -> Tree:
    source, given, new = operands
    literal, n = bool(params["literal"]), int(params["n"])
    pattern = text(given, "the pattern of str.replace")
    value = text(new, "the replacement of str.replace")
    if not literal:
        checks.regex(pattern)
    if n < 0:
        n = -1
    elif n != 1 and not literal:
        raise UnsupportedOperation(
            f"str.replace of a pattern with n={n} does not exist in Polars",
            remedy="use n=1, .str.replace_all(...), or literal=True",
        )
    return make("str_replace", source, pattern=pattern, value=value, literal=literal, n=n)


def _extract(operands: Sequence[Operand], params: Any) -> Tree:
    source, given = operands
    pattern = checks.regex(text(given, "the pattern of str.extract"))
    return make("str_extract", source, pattern=pattern, group=int(params))


def _with_text(op: str, option: str) -> Handler:
    what = f"the argument of {op.replace('str_', 'str.', 1)}"

    def handle(operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        return make(op, source, **{option: text(given, what)})

    return handle


def _strip(op: str) -> Handler:
    what = f"the characters of {op.replace('str_', 'str.', 1)}"

    def handle(operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        return make(op, source, characters=text_or_none(given, what))

    return handle


def _with_count(op: str) -> Handler:
    what = f"the length of {op.replace('str_', 'str.', 1)}"

    def handle(operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        return make(op, source, n=integer(given, what))

    return handle


def _slice(operands: Sequence[Operand], params: Any) -> Tree:
    source, offset, length = operands
    count = integer_or_none(length, "the length of str.slice")
    if count is not None and count < 0:
        raise InvalidBounds("the length of str.slice is negative", remedy="use 0 or more")
    return make(
        "str_slice", source, offset=integer(offset, "the offset of str.slice"), length=count
    )


def _concat(operands: Sequence[Operand], params: Any) -> Tree:
    return make(
        "concat_str",
        *operands,
        separator=str(params["delimiter"]),
        ignore_nulls=bool(params["ignore_nulls"]),
    )


def _format(operands: Sequence[Operand], params: Any) -> Tree:
    """`pl.format`: Polars keeps the text without its ``{}``, and the byte where each one was."""
    raw = params["format"].encode()
    pieces: list[Operand] = []
    start = 0
    for insertion, value in zip(params["insertions"], operands, strict=True):
        if insertion > start:
            pieces.append(Literal(raw[start:insertion].decode(), STRING))
        pieces.append(value)
        start = insertion
    if start < len(raw):
        pieces.append(Literal(raw[start:].decode(), STRING))
    return make("concat_str", *pieces, separator="", ignore_nulls=False)


def ambiguity(value: Operand, what: str) -> None:
    """Refuses a choice for ambiguous times that would differ from null, which they become."""
    if text(value, f"ambiguous= of {what}") not in ("raise", "null"):
        raise UnsupportedOperation(
            f"ambiguous='earliest' or 'latest' in {what} is not supported",
            remedy="leave it out: ambiguous and non-existent times become null",
        )


def _strptime(operands: Sequence[Operand], params: Any) -> Tree:
    source, ambiguous = operands[0], operands[1]
    dtype, options = read_dtype_expression(params[0]), params[1]
    name = {"Date": "str.to_date", "Time": "str.to_time"}.get(dtype.name, "str.to_datetime")
    ambiguity(ambiguous, name)
    if not options.get("exact", True):
        raise UnsupportedOperation(
            f"exact=False in {name} is not supported",
            remedy="use .str.extract(pattern) first, and leave exact out",
        )
    form = options["format"]
    if form is not None:
        checks.format_string(form, dtype.name)
    return _parse(source, form, dtype)


def _parse(source: Operand, form: str | None, dtype: DType) -> Tree:
    match dtype.name:
        case "Date":
            return make("str_to_date", source, format=form)
        case "Time":
            return make("str_to_time", source, format=form)
        case "Datetime":
            zone = dtype.zone
            if zone is None and form is not None and any(d in form for d in _OFFSET_DIRECTIVES):
                zone = "UTC"  # what Polars makes of texts that carry an offset
            return make("str_to_datetime", source, format=form, unit=dtype.unit, zone=zone)
        case _:
            raise UnsupportedOperation(
                f"str.strptime to {dtype} is not supported",
                remedy="parse to pl.Date, pl.Datetime or pl.Time",
            )


def _to_integer(operands: Sequence[Operand], params: Any) -> Tree:
    source, given = operands
    base = integer(given, "the base of str.to_integer")
    if not 2 <= base <= 36:
        raise InvalidBounds(
            f"str.to_integer has no base {base}", remedy="use a base between 2 and 36"
        )
    return make("str_to_integer", source, base=base, dtype=_integer_type(params))


def _integer_type(params: Any) -> DType:
    node = params.get("dtype")
    if node is None:
        return INT64
    dtype = read_dtype_expression(node) if isinstance(node, dict) else read_dtype(node)
    if not dtype.is_integer:
        raise UnsupportedOperation(
            f"str.to_integer to {dtype} is not supported", remedy="use an integer type"
        )
    return dtype


STRINGS: Mapping[str, Handler] = MappingProxyType(
    {
        "StringExpr.LenChars": simple("str_len_chars"),
        "StringExpr.LenBytes": simple("str_len_bytes"),
        "StringExpr.Lowercase": simple("str_to_lowercase"),
        "StringExpr.Uppercase": simple("str_to_uppercase"),
        "StringExpr.Titlecase": simple("str_to_titlecase"),
        "StringExpr.Contains": _contains,
        "StringExpr.StartsWith": _with_text("str_starts_with", "prefix"),
        "StringExpr.EndsWith": _with_text("str_ends_with", "suffix"),
        "StringExpr.Slice": _slice,
        "StringExpr.Head": _with_count("str_head"),
        "StringExpr.Tail": _with_count("str_tail"),
        "StringExpr.StripChars": _strip("str_strip_chars"),
        "StringExpr.StripCharsStart": _strip("str_strip_chars_start"),
        "StringExpr.StripCharsEnd": _strip("str_strip_chars_end"),
        "StringExpr.StripPrefix": _with_text("str_strip_prefix", "prefix"),
        "StringExpr.StripSuffix": _with_text("str_strip_suffix", "suffix"),
        "StringExpr.Find": _find,
        "StringExpr.CountMatches": _count_matches,
        "StringExpr.PadStart": _pad("str_pad_start"),
        "StringExpr.PadEnd": _pad("str_pad_end"),
        "StringExpr.ZFill": _pad("str_zfill"),
        "StringExpr.Split": _split,
        "StringExpr.Replace": _replace,
        "StringExpr.Extract": _extract,
        "StringExpr.ConcatHorizontal": _concat,
        "StringExpr.Format": _format,
        "StringExpr.Strptime": _strptime,
        "StringExpr.ToInteger": _to_integer,
    }
)
"""Polars' functions of texts, and what reads them."""
