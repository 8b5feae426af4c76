"""Columns in the names of folders, such as ``year=2026``, that DuckDB reads: text, or refused.

DuckDB guesses their types from all names, so one row with a folder of its own could change a type;
and with `hive_types` a name that is no value of the type makes a query fail. Neither plans nor
settings tell which files a relation reads, and how, but its own SQL does, with that of views.
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
    tree = _tree(sql, fetch)
    views: dict[str, str] = {}
    readers: set[str] = set()
    seen: set[str] = set()
    waiting = list(_sources(tree))
    while waiting:
        source = waiting.pop()
        if not readers:
            readers = {str(name).lower() for (name,) in fetch(_READERS)}
            views = {str(name).lower(): text for name, text in fetch(_VIEWS)}
        if source["type"] == "TABLE_FUNCTION":
            call = source["function"]
            if str(call.get("function_name")).lower() in readers:
                _require_text(call.get("arguments") or call.get("children") or [])
            continue
        name = str(source["table_name"])
        if name.lower() not in views:
            _require_text([{"literal": {"text": name}}])  # a path, or a table
        elif name.lower() not in seen:
            seen.add(name.lower())
            waiting += _sources(_tree_of_view(views[name.lower()], fetch))


def _tree(sql: str, fetch: Fetch) -> Any:
    """A query as DuckDB parses it; nothing for statements of other kinds."""
    text = sql.replace("'", "''")
    try:
        ((tree,),) = fetch(f"SELECT json_serialize_sql('{text}')")
    except duckdb.Error:  # a build without JSON
        return {"error": True}
    return json.loads(tree)


def _tree_of_view(sql: str, fetch: Fetch) -> Any:
    for place in re.finditer(r"\sAS\s", sql, re.IGNORECASE):
        tree = _tree(sql[place.end() :], fetch)
        if not tree.get("error"):
            return tree
    return {"error": True}


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
    raise UnsupportedOperation(
        "DuckDB guesses the types of columns in the names of folders from all of these names, or "
        "fails for a name that is no value of a type in hive_types, so one row could change them",
        where="session.protect(relation, ...)",
        remedy="write read_parquet(..., hive_partitioning = true, hive_types_autocast = false), "
        "which reads them as text, and TRY_CAST(year AS INTEGER) where you want another type; or "
        "hive_partitioning = false",
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
