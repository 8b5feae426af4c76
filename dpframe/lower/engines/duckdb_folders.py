"""Columns in the names of folders, such as ``year=2026``, that DuckDB reads: text, or refused.

DuckDB guesses their types from all names, so one row with a folder of its own could change a type;
and with `hive_types` a name that is no value of the type makes a query fail. Neither plans nor
settings show which files a relation reads, and how. Its own SQL does, and so does the SQL of
views and of macros.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from glob import escape, iglob
from typing import Any, Final

import duckdb

from dpframe.errors import UnsupportedOperation

__all__ = ["require_text_of_folders"]

_READERS: Final = (
    "SELECT DISTINCT function_name FROM duckdb_functions() "
    "WHERE list_contains(parameters, 'hive_partitioning')"
)
_VIEWS: Final = "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal"
_MACROS: Final = (
    "SELECT function_name, macro_definition FROM duckdb_functions() "
    "WHERE function_type = 'table_macro' AND NOT internal"
)
_WILDCARD: Final = re.compile(r"[*?\[]")

Fetch = Callable[[str], list[tuple[Any, ...]]]


def require_text_of_folders(sql: str, fetch: Fetch) -> None:
    """Refuse a query that reads columns off the names of folders as anything but text.

    Parameters
    ----------
    fetch
        Gives the rows of a query on the same connection.

    Raises
    ------
    UnsupportedOperation
        Saying which options to write.
    """
    readers, bodies = set[str](), dict[str, list[str]]()
    seen, texts = {sql}, [sql]
    while texts:
        text = texts.pop()
        sources = _sources_in(text, fetch)
        if sources != [] and not readers:
            readers = {str(name).lower() for (name,) in fetch(_READERS)}
            for name, body in [*fetch(_VIEWS), *fetch(_MACROS)]:
                bodies.setdefault(str(name).lower(), []).append(body)
        if sources is None:
            if any(reader in text.lower() for reader in readers):
                raise _guess_refusal(
                    "DuckDB does not show how a part of the query reads its files, and "
                )
            continue
        for source in sources:
            is_call = source["type"] == "TABLE_FUNCTION"
            call = source["function"] if is_call else source
            name = str(call["function_name" if is_call else "table_name"])
            if is_call and name.lower() in readers:
                _require_text(call.get("arguments") or call.get("children") or [])
            elif not is_call and name.lower() not in bodies:
                _require_text([{"literal": {"text": name}}])  # a path, or a table
            new = [body for body in bodies.get(name.lower(), []) if body not in seen]
            seen.update(new)
            texts += new


def _sources_in(sql: str, fetch: Fetch) -> list[Any] | None:
    """What a query, or that of a view, reads from; None where DuckDB does not parse it, or has no
    JSON to say so.
    """
    starts = [0]
    if sql.lstrip().upper().startswith("CREATE"):
        starts = [place.end() for place in re.finditer(r"\sAS\s", sql, re.IGNORECASE)]
    for start in starts:
        text = sql[start:].replace("'", "''")
        try:
            ((tree,),) = fetch(f"SELECT json_serialize_sql('{text}')")
        except duckdb.Error:
            return None
        found = json.loads(tree)
        if not found.get("error"):
            return list(_sources(found))
    return None


def _sources(tree: Any) -> Iterator[Any]:
    """What a query reads from, in each of its parts."""
    if isinstance(tree, list):
        for part in tree:
            yield from _sources(part)
    if isinstance(tree, dict):
        if tree.get("type") in ("TABLE_FUNCTION", "BASE_TABLE"):
            yield tree
        for part in tree.values():
            yield from _sources(part)


def _require_text(arguments: list[Any]) -> None:
    positional: list[Any] = []
    options: dict[str, Any] = {}
    for argument in arguments:
        value = argument.get("expression", argument)
        name = argument.get("name") or value.get("alias")
        if value.get("class") == "COMPARISON" and "column_names" in value.get("left", {}):
            name, value = value["left"]["column_names"][-1], value["right"]
        if name:
            options[str(name).lower()] = value
        else:
            positional.append(value)
    if "hive_partitioning" in options and _is_false(options["hive_partitioning"]):
        return
    is_text = "hive_types_autocast" in options and _is_false(options["hive_types_autocast"])
    if is_text and "hive_types" not in options:
        return
    paths = list(_texts(positional[:1]))
    stated = "hive_partitioning" in options or "hive_types" in options
    if paths and not any(_names_columns(path, stated=stated) for path in paths):
        return
    raise _guess_refusal()


def _guess_refusal(but: str = "") -> UnsupportedOperation:
    """The refusal of columns whose types depend on the names of folders."""
    return UnsupportedOperation(
        f"{but}DuckDB guesses the types of columns in the names of folders, so one row "
        "could change them",
        where="session.protect(relation, ...)",
        remedy=(
            "in read_parquet write hive_partitioning = true, hive_types_autocast = false, and "
            "TRY_CAST a column to another type",
            "write hive_partitioning = false, which leaves these columns out",
        ),
    )


def _names_columns(path: str, *, stated: bool) -> bool:
    """Whether folders that a path leaves open name columns."""
    if os.path.isdir(path):
        path = os.path.join(escape(path), "**", "*")
    folder, _, _ = path.replace("\\", "/").rpartition("/")
    if _WILDCARD.search(folder) is None:
        return False
    if stated or "://" in path:
        return True
    # DuckDB reads columns off names only if all files have them
    files = (file for file in iglob(os.path.expanduser(path), recursive=True))
    first = next((file for file in files if os.path.isfile(file)), "")
    return "=" in os.path.dirname(first)


def _texts(tree: Any) -> Iterator[str]:
    """Constant texts in a part of a query, as DuckDB 1 and 2 write them."""
    if isinstance(tree, list):
        for part in tree:
            yield from _texts(part)
    if isinstance(tree, dict):
        text = _constant(tree)
        if isinstance(text, str):
            yield text
        for part in tree.values():
            yield from _texts(part)


def _is_false(value: Any) -> bool:
    return _constant(value.get("child", value)) in ("false", "f", False)


def _constant(value: Any) -> Any:
    for key, inner in (("literal", "text"), ("value", "value")):
        if isinstance(value.get(key), dict) and inner in value[key]:
            return value[key][inner]
    return None
