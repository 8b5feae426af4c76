"""Text files: a line is a row, and no line changes what another is or whether a query runs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.lower import text_files as lines_module
from dpframe.lower.text_files import LONGEST, TextFiles, dtype_of, lines_of, text_files
from tests.api.exactly import ENOUGH, exactly

SCHEMA: dict[str, Any] = {
    "name": pl.String(),
    "age": pl.Int16(),
    "x": pl.Float64(),
    "big": pl.UInt64(),
    "yes": pl.Boolean(),
    "day": pl.Date(),
    "at": pl.Datetime("us"),
    "price": pl.Decimal(8, 2),
    "city": pl.Enum(["Oslo", "Moss"]),
    "t": pl.Time(),
}
GOOD: dict[str, str] = {
    "name": "Ann",
    "age": "31",
    "x": "2.5",
    "big": "18446744073709551615",
    "yes": "true",
    "day": "2024-02-29",
    "at": "2024-02-29T10:11:12.5",
    "price": "3.10",
    "city": "Oslo",
    "t": "10:11",
}
HEADER = ",".join(SCHEMA).encode()
LINE = ",".join(GOOD.values()).encode()

ODD_LINES: dict[str, bytes] = {
    "nothing": b"",
    "blanks": b"  \t ",
    "too few": b"Bob,3",
    "too many": LINE + b",more,and,more",
    "open quote": b'"Bob,3,1,1,true,2024-01-01,,,,',
    "quote that ends before": b'"Bob"by,3,1,1,true,2024-01-01,,,,',
    "quote inside": b'Bo"b,3,1,1,true,2024-01-01,,,,',
    "doubled quotes": b'"Bo ""b"", or so",3,1,1,true,2024-01-01,,,,',
    "quote at the end": LINE + b'"',
    "only a quote": b'"',
    "three quotes": b'"""',
    "not UTF-8": b"\xff\xfe\x80,3,1,1,true,2024-01-01,,,,",
    "half a character": LINE[:-1] + b"\xe2\x82",
    "UTF-16": LINE.decode().encode("utf-16"),
    "NUL": b"B\x00b,3\x00,1,1,true,2024-01-01,,,,",
    "only NUL": b"\x00",
    "carriage returns": b"Bob\r,3,1\r",
    "BOM": b"\xef\xbb\xbf" + LINE,
    "header again": HEADER,
    "comment": b"# " + LINE,
    "out of range": b"Bob,99999,1e999,-1,maybe,2023-02-29,9999-12-31,1e5,Rome,25:00",
    "other numbers": b"Bob,0x1F,1_000,1e3,1,20240101,now,1.005,oslo,noon",
    "huge number": b"Bob," + b"9" * 5000 + b"," + b"9" * 5000 + b",1,true,,,,,",
    "signs": b"Bob,+-3,--1,+1,TRUE,-2024-01-01,,-1.00,Oslo,",
    "first years": b"Bob,1,1,1,true,0000-01-01,0001-01-01T00:00,,,",
    "other digits": "Bob,٣,٣,٣,true,٢٠٢٤-01-01,,,,".encode(),
    "other line ends": "Bob\u2028,3\u0085,1,1,true,\x0b,\x0c,,,".encode(),
    "long field": b"B" * 200_000 + b",3,1,1,true,,,,,",
    "too long": b"B" * (LONGEST + 1),
    "many commas": b"," * 100_000,
    "tabs": LINE.replace(b",", b"\t"),
    "semicolons": LINE.replace(b",", b";"),
}
ODD_JSON: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"not json",
    "half": b'{"name": "Bob", "age"',
    "array": b"[1, 2]",
    "array of objects": b'[{"name": "Bob"}]',
    "text": b'"Bob"',
    "number": b"5",
    "null": b"null",
    "two objects": b'{"age": 1} {"age": 2}',
    "trailing comma": b'{"age": 1,}',
    "nested": b'{"name": {"first": ["Bob", {"a": 1}]}, "age": [1], "x": {"y": 1}}',
    "other types": b'{"name": 3, "age": "x", "x": true, "day": 20240101, "yes": "no", "city": 1}',
    "nulls": b'{"name": null, "age": null}',
    "missing": b'{"other": 1}',
    "twice": b'{"age": 1, "age": 2}',
    "huge": b'{"age": 1e999, "x": 1e308, "big": 123456789012345678901234567890}',
    "NaN": b'{"age": NaN}',
    "deep": b'{"name": ' + b"[" * 500 + b"]" * 500 + b"}",
    "surrogate": b'{"name": "\\ud800", "age": 3}',
    "NUL": b'{"name": "\\u0000", "age": 3}',
    "raw NUL": b'{"name": "\x00"}',
    "not UTF-8": b'{"name": "\xff\xfe", "age": 3}',
    "BOM": b'\xef\xbb\xbf{"age": 3}',
    "floats": b'{"age": 3.0, "x": 1, "big": 1e3}',
    "long": b'{"name": "' + b"B" * 200_000 + b'"}',
    "too long": b'{"name": "' + b"B" * LONGEST + b'"}',
    "single quotes": b"{'age': 3}",
    "blanks": b'  {"age" : 3 }  ',
}


def _json(values: dict[str, str]) -> bytes:
    return json.dumps(values).encode()


def _read(files: TextFiles, how: str) -> pl.DataFrame:
    if how == "duckdb":
        found = duckdb.connect().from_arrow(files).to_arrow_table()
        frame = pl.from_arrow(found)
        assert isinstance(frame, pl.DataFrame)
        return frame.cast(dict(files.schema))  # type: ignore[arg-type]
    if how == "small blocks":
        return pl.concat(list(files.parts(block=7)))
    return files.lazy().collect(engine=how)  # type: ignore[call-overload]


WAYS = ["in-memory", "streaming", "duckdb", "small blocks"]


def _write(folder: Path, kind: str, rows: list[bytes], end: bytes = b"\n") -> Path:
    path = folder / f"people.{kind}"
    path.write_bytes(b"".join(row + end for row in ([HEADER] if kind == "csv" else []) + rows))
    return path


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("kind", ["csv", "ndjson"])
@pytest.mark.slow
def test_one_odd_line_is_one_row_and_leaves_others_alone(
    tmp_path: Path, kind: str, end: bytes, how: str
) -> None:
    for place in (0, 2, 4):
        _require_others_alone(tmp_path, kind, end, how, place)


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_one_odd_line_among_others(tmp_path: Path, kind: str) -> None:
    _require_others_alone(tmp_path, kind, b"\n", "in-memory", 2)


def _require_others_alone(folder: Path, kind: str, end: bytes, how: str, place: int) -> None:
    good = LINE if kind == "csv" else _json(GOOD)
    files = text_files(_write(folder, kind, [good] * 4, end), SCHEMA)
    (expected,) = _read(files, how).unique().rows()
    assert None not in expected
    for what, odd in (ODD_LINES if kind == "csv" else ODD_JSON).items():
        if how == "small blocks" and len(odd) > 1000:
            continue
        rows = [good] * 4
        rows.insert(place, odd)
        files = text_files(_write(folder, kind, rows, end), SCHEMA)
        found = _read(files, how)
        assert found.schema == pl.Schema(SCHEMA), what
        others = [row for i, row in enumerate(found.rows()) if i != place]
        assert others == [expected] * 4, (what, place)


_BYTES = st.binary(max_size=30) | st.text('",\n\r\\{}[]:a1.-\x00é\ufeff', max_size=20).map(
    lambda text: text.encode()
)


@given(before=st.lists(_BYTES, max_size=4), odd=_BYTES, after=st.lists(_BYTES, max_size=4))
@example(before=[], odd=b'"', after=[b'"'])
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_a_row_is_a_function_of_its_line(
    tmp_path: Path, kind: str, before: list[bytes], odd: bytes, after: list[bytes]
) -> None:
    """Whatever the bytes, in whatever company: the amplifier is the line in a file of its own."""
    lines = [line for part in (*before, odd, *after) for line in part.split(b"\n")]
    schema = {"a": pl.Int64(), "b": pl.String()}

    def rows(some: list[bytes], how: str) -> list[tuple[Any, ...]]:
        header = [b"a,b"] if kind == "csv" else [b"{}"]
        path = tmp_path / f"x.{kind}"
        path.write_bytes(b"\n".join([*header, *some]) + b"\n")
        return _read(text_files(path, schema), how).rows()[0 if kind == "csv" else 1 :]

    alone = [rows([line], "in-memory") for line in lines]
    assert all(len(found) == 1 for found in alone)
    for how in ("in-memory", "small blocks", "streaming"):
        assert rows(lines, how) == [found[0] for found in alone]


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])),
            st.integers(-(2**63), 2**63 - 1),
        )
    )
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_others_write_is_read(tmp_path: Path, rows: list[tuple[str, int]]) -> None:
    schema = {"a": pl.String(), "b": pl.Int64()}
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        text = io.StringIO()
        csv.writer(text, quoting=quoting).writerows([("a", "b"), *rows])
        (tmp_path / "x.csv").write_bytes(text.getvalue().encode())
        found = _read(text_files(tmp_path / "x.csv", schema), "in-memory").rows()
        empty = None if quoting == csv.QUOTE_MINIMAL else ""
        assert found == [(a or empty, b) for a, b in rows]
    pl.DataFrame(rows, schema=schema, orient="row").write_ndjson(tmp_path / "x.ndjson")
    assert _read(text_files(tmp_path / "x.ndjson", schema), "in-memory").rows() == rows


_MARK = b"\xef\xbb\xbf"
_MARKED = st.lists(st.sampled_from([_MARK, _MARK[:2], b"\n", b"a"]) | st.binary(max_size=20))


@given(_MARKED.map(b"".join), st.integers(3, 70), st.integers(1, 9))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lines_do_not_depend_on_where_blocks_end(
    tmp_path: Path, content: bytes, block: int, longest: int
) -> None:
    (tmp_path / "x").write_bytes(content)
    lines = content.removeprefix(_MARK).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "LONGEST", longest)
        found = [line for part in lines_of(tmp_path / "x", block=block) for line in part]
    decoded = [line.decode("utf-8", "replace") for line in lines]
    assert found == [
        line.removesuffix("\r") if len(line.encode()) <= longest else None for line in decoded
    ]


def _neighbours(tmp_path: Path, kind: str) -> Iterator[tuple[str, Path, Path]]:
    good = LINE if kind == "csv" else _json(GOOD)
    for what, odd in (ODD_LINES if kind == "csv" else ODD_JSON).items():
        folders = tmp_path / f"{abs(hash(what))}", tmp_path / f"{abs(hash(what))}-with"
        for folder in folders:
            folder.mkdir()
        yield (
            what,
            _write(folders[0], kind, [good] * 3),
            _write(folders[1], kind, [good, odd, good, good]),
        )


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("kind", ["csv", "ndjson"])
@pytest.mark.slow
def test_neighbouring_files_differ_by_one_row_for_each_odd_line(
    tmp_path: Path, kind: str, engine: str
) -> None:
    for pair in _neighbours(tmp_path, kind):
        _require_neighbours(pair, engine)


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_neighbouring_files_differ_by_one_row(tmp_path: Path, kind: str) -> None:
    for pair in list(_neighbours(tmp_path, kind))[3:18:6]:
        for engine in ("polars", "duckdb"):
            _require_neighbours(pair, engine)


def _require_neighbours(pair: tuple[str, Path, Path], engine: Any) -> None:
    """The whole pipeline: plan, schema and cost are the same, and the exact numbers change by at
    most what the plan says of one row.
    """
    schema = {name: SCHEMA[name] for name in ("name", "age", "x", "yes", "day", "city")}
    what, *paths = pair
    found, plans = [], []
    for path in paths:
        session = dp.Session(epsilon=ENOUGH)
        people = session.protect(path, unit=dp.Rows(), schema=schema, engine=engine)
        query = people.group_by("city", keys=["Oslo", "Moss", None]).agg(
            dp.count().alias("n"), dp.sum("age", (0, 99)), dp.sum("x", (0, 8))
        )
        plans.append((people.schema, query.plan(epsilon=1).fingerprint))
        found.append(exactly(query))
    assert plans[0] == plans[1], what
    for column, most in (("n", 1), ("age", 99), ("x", 8)):
        differences = [b - a for a, b in zip(found[0][column], found[1][column], strict=True)]
        assert min(differences) >= 0, (what, column)
        assert sum(differences) <= most, (what, column)


# -- headers and schemas ----------------------------------------------------------------------


def _protect(path: Path, **options: Any) -> dp.PrivateFrame:
    return dp.Session(epsilon=10).protect(path, unit=dp.Rows(), **options)


def test_without_a_schema_all_is_text_and_the_plan_says_so(tmp_path: Path) -> None:
    people = _protect(_write(tmp_path, "csv", [LINE]))
    assert people.schema == pl.Schema(dict.fromkeys(SCHEMA, pl.String()))
    (warning,) = people.dp_count().plan(epsilon=1).warnings
    assert "all columns of the text file are text" in warning
    assert "schema={column: dtype}" in people.dp_count().explain(details=True, epsilon=1)
    declared = _protect(tmp_path / "people.csv", schema={"age": pl.Int64})
    assert declared.schema == pl.Schema({"age": pl.Int64})
    assert declared.dp_count().plan(epsilon=1).warnings == ()


def test_types_by_name_as_jobs_have_them(tmp_path: Path) -> None:
    path = _write(tmp_path, "csv", [LINE])
    given: dict[str, Any] = {
        "name": "String",
        "age": "UInt8",
        "x": float,
        "at": "Datetime(ms)",
        "price": "Decimal(8, 2)",
        "city": ["Oslo", "Moss"],
        "day": "Date",
    }
    assert dict(_protect(path, schema=given).schema) == {
        "name": pl.String(),
        "age": pl.UInt8(),
        "x": pl.Float64(),
        "at": pl.Datetime("ms"),
        "price": pl.Decimal(8, 2),
        "city": pl.Enum(["Oslo", "Moss"]),
        "day": pl.Date(),
    }


@pytest.mark.parametrize(
    "schema",
    [
        {},
        [],
        "age",
        {"age": "Integer"},
        {"age": "Decimal(99, 1)"},
        {"age": "Datetime(day)"},
        {"age": 3},
        {"age": None},
        {3: pl.Int64},
        {"age": ["a", "a"]},
        {"age": [1, 2]},
        {"age": pl.List(pl.Int64)},
        {"age": pl.Datetime("us", "UTC")},
        {"age": pl.Categorical},
        {"age": pl.Object},
        {"age": pl.Struct({"a": pl.Int64})},
        {"none": pl.Int64},
    ],
)
def test_schemas_that_make_no_sense(tmp_path: Path, schema: Any) -> None:
    with pytest.raises((dp.UnsupportedOperation, dp.UnknownColumn)):
        _protect(_write(tmp_path, "csv", [LINE]), schema=schema).dp_count().collect(epsilon=1)


@pytest.mark.parametrize(
    "header",
    [b"", b"\n", b'"a', b"a,a", b"a,", b"\xff", b"a\rb", b"a\x00,b", b"x" * (LONGEST + 1)],
)
def test_headers_that_name_no_columns(tmp_path: Path, header: bytes) -> None:
    (tmp_path / "x.csv").write_bytes(header + (b"\n1,2\n" if header.strip() else b""))
    with pytest.raises(dp.UnsupportedOperation):
        _protect(tmp_path / "x.csv")


def test_a_first_line_that_is_a_row_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"Hidden,47\nAnn,3\n")
    with pytest.raises(dp.UnknownColumn) as caught:
        _protect(tmp_path / "x.csv", schema={"Hiddn": pl.String}).dp_count().collect(epsilon=1)
    assert "Hidden" not in str(caught.value)
    (tmp_path / "y.csv").write_bytes(b'Hidden,"47\nAnn,3\n')
    with pytest.raises(dp.UnsupportedOperation) as refused:
        _protect(tmp_path / "y.csv")
    assert "Hidden" not in str(refused.value)


def test_several_files_each_with_its_own_header(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_bytes(b"a,b\n1,x\n")
    (tmp_path / "2.csv").write_bytes(b'c,b,"a"\n9,y,2\n')
    files = text_files(tmp_path / "*.csv", {"b": pl.String, "a": pl.Int8})
    for how in WAYS:
        assert _read(files, how).rows() == [("x", 1), ("y", 2)]
    with pytest.raises(dp.UnsupportedOperation, match="differ between files"):
        text_files(tmp_path / "*.csv", None)


def test_ndjson_needs_a_schema_and_keys_are_looked_for_as_they_are(tmp_path: Path) -> None:
    names = ["a b", "a'b", 'a"b', "a.b", "$", "", "*", "é", "0", "@", "a]b", "..", "?(@.a)"]
    path = _write(tmp_path, "ndjson", [_json({name: str(i) for i, name in enumerate(names)})])
    with pytest.raises(dp.UnsupportedOperation, match="declared"):
        _protect(path)
    found = _read(text_files(path, dict.fromkeys(names, pl.Int64)), "in-memory")
    assert found.rows() == [tuple(range(len(names)))]
    with pytest.raises(dp.UnsupportedOperation, match="cannot be read"):
        text_files(path, {"a\\b": pl.Int64})


def test_a_schema_is_of_paths_only() -> None:
    for frame in (pl.DataFrame({"a": [1]}), pl.LazyFrame({"a": [1]})):
        with pytest.raises(dp.UnsupportedOperation, match="is for files"):
            dp.Session(epsilon=1).protect(frame, unit=dp.Rows(), schema={"a": pl.Int64})


@pytest.mark.parametrize("place", ["s3://bucket/x.csv", "https://host.invalid/x.ndjson?sig=SECRET"])
def test_text_files_elsewhere_are_refused_with_what_to_do(place: str) -> None:
    with pytest.raises(dp.UnsupportedOperation, match="elsewhere") as caught:
        dp.Session(epsilon=1).protect(place, unit=dp.Rows(), schema={"a": pl.Int64})
    assert "SECRET" not in str(caught.value)


def test_a_query_reads_the_columns_and_rows_that_it_needs(tmp_path: Path) -> None:
    frame = text_files(_write(tmp_path, "csv", [LINE] * 5), SCHEMA).lazy()
    assert frame.select(pl.len()).collect().item() == 5
    assert frame.head(2).collect().height == 2
    assert frame.filter(pl.col("age") > 31).select("name").collect().height == 0
    assert frame.filter(pl.col("age") == 31).select("name").collect(engine="streaming").height == 5


# -- frames that owners scan ------------------------------------------------------------------


SCANS: dict[str, Callable[[Path], Any]] = {
    "csv": lambda at: pl.scan_csv(at / "people.csv"),
    "csv with a schema": lambda at: pl.scan_csv(at / "people.csv", infer_schema=False),
    "ndjson": lambda at: pl.scan_ndjson(at / "people.ndjson"),
    "steps": lambda at: pl.scan_csv(at / "people.csv").filter(pl.col("age") > 1).select("age"),
    "joined": lambda at: pl.LazyFrame({"age": [1]}).join(pl.scan_csv(at / "people.csv"), on="age"),
    "concat": lambda at: pl.concat(
        [pl.LazyFrame({"age": [1]}), pl.scan_ndjson(at / "people.ndjson", schema={"age": pl.Int64})]
    ),
    "DuckDB csv": lambda at: duckdb.connect().read_csv(str(at / "people.csv")),
    "DuckDB json": lambda at: duckdb.connect().read_json(str(at / "people.ndjson")),
    "DuckDB sql": lambda at: duckdb.connect().sql(f"SELECT age FROM '{at}/people.csv'"),
}
OTHERS: dict[str, Callable[[Path], Any]] = {
    "memory": lambda at: pl.LazyFrame({"age": [1], "csv SCAN": ["Csv SCAN [x]"]}),
    "parquet": lambda at: pl.scan_parquet(at / "people.parquet"),
    "literal": lambda at: pl.LazyFrame({"age": [1]}).filter(pl.lit("Csv SCAN [x]") == "a"),
    "DuckDB parquet": lambda at: duckdb.connect().read_parquet(str(at / "people.parquet")),
}


@pytest.mark.parametrize(
    ("scan", "warned"),
    [*((scan, True) for scan in SCANS.values()), *((scan, False) for scan in OTHERS.values())],
    ids=[*SCANS, *OTHERS],
)
def test_reviewers_are_warned_of_scanned_text(
    tmp_path: Path, scan: Callable[[Path], Any], warned: bool
) -> None:
    _write(tmp_path, "csv", [LINE])
    (tmp_path / "people.ndjson").write_bytes(b'{"age": 31}\n')
    pl.DataFrame({"age": [1]}).write_parquet(tmp_path / "people.parquet")
    people = dp.Session(epsilon=1).protect(scan(tmp_path), unit=dp.Rows(), name="people")
    plan = people.dp_count().plan(epsilon=1)
    found = [w for w in plan.warnings if "scanned from a text file" in w]
    assert bool(found) == warned
    assert ("scanned from a text file" in plan.explain(details=True)) == warned
    assert all(w.startswith("people: ") for w in found)


def test_decimals_have_from_1_to_38_digits() -> None:
    for digits, scale in ((1, 0), (1, 1), (38, 38), (38, 0)):
        assert dtype_of("x", f"Decimal({digits}, {scale})") == pl.Decimal(digits, scale)
    for digits, scale in ((0, 0), (39, 0), (2, 3)):
        with pytest.raises(dp.UnsupportedOperation, match="not the type of a column"):
            dtype_of("x", f"Decimal({digits}, {scale})")
