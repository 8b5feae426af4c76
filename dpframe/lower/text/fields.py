"""The texts of a line's fields: each a total function of the line alone, null if none exists.

A line that is no record of its format has no fields at all.
"""

from __future__ import annotations

import polars as pl

_QUOTE, _COMMA, _MARK = '"', ",", "\n"  # which no line has in it
_FIELD = '(?:"(?:[^"]|"")*"|[^",]*)'
_RECORD = f"^{_FIELD}(?:,{_FIELD})*$"


def csv_parts(lines: pl.DataFrame, number: int) -> pl.DataFrame:
    """For each `line` a list `parts`: its fields between commas as they are written; null if they
    are not as many as `number`.

    After RFC 4180 but for line feeds in quotes: a field in quotes may have commas, and quotes that
    are doubled; another one has no quotes. In steps, so that no work is done twice.
    """
    line, odd, parts = pl.col("line"), pl.col("odd"), pl.col("parts")
    quoted = line.str.contains(_QUOTE, literal=True)
    apart = lines.select(
        pl.when(quoted).then(line).alias("odd"), pl.when(~quoted).then(line).alias("line")
    )
    # Each field is followed by a comma then, so that matches begin where fields do.
    records = apart.with_columns(
        pl.when(odd.str.contains(_RECORD)).then(pl.concat_str(odd, pl.lit(_COMMA)))
    )
    marked = odd.str.replace_all(f"({_FIELD}),", "${1}" + _MARK).str.strip_suffix(_MARK)
    plain = line.str.replace_all(_COMMA, _MARK, literal=True)
    split = records.select(pl.coalesce(plain, marked).str.split(_MARK).alias("parts"))
    return split.select(pl.when(parts.list.len() == number).then(parts))


def csv_field(parts: pl.Expr, place: int) -> pl.Expr:
    """The text of one field. An empty field is null, an empty one in quotes is empty text."""
    field = parts.list.get(place, null_on_oob=True)
    quoted = pl.when(field.str.starts_with(_QUOTE)).then(field)
    inside = quoted.str.strip_prefix(_QUOTE).str.strip_suffix(_QUOTE)
    bare = pl.when(~field.str.starts_with(_QUOTE) & (field != "")).then(field)
    return pl.coalesce(inside.str.replace_all(_QUOTE * 2, _QUOTE, literal=True), bare)


def json_field(line: pl.Expr, name: str) -> pl.Expr:
    """The value of an object's key as text: text without quotes, anything else as JSON. If a key
    occurs twice, the last counts.
    """
    escaped = name.replace('"', '\\"')
    return line.str.json_path_match(f'$["{escaped}"]')
