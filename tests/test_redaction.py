"""Addresses in what people see: none says what gives access to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.errors import location, redacted

_SAFE = st.text("abcz019-._~", min_size=1, max_size=8)
_SECRET = st.text("kq?#@/:&=%'\"", min_size=1, max_size=6).map(lambda text: f"SECRET{text}SECRET")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("https://b.example/f.parquet?X-Amz-Signature=s", "https://b.example/f.parquet?..."),
        ("https://b.example/f.parquet#s", "https://b.example/f.parquet#..."),
        ("s3://key:secret@bucket/a/*.parquet", "s3://...@bucket/a/*.parquet"),
        ("https://u:p?w@host/f", "https://..."),
        ("https://host/f?email=a@b", "https://..."),
        ("data/me@home/what?.csv", "data/me@home/what?.csv"),
        ("s3://bucket/a.parquet", "s3://bucket/a.parquet"),
        ("", ""),
    ],
)
def test_what_is_shown_of_a_location(given: str, shown: str) -> None:
    assert location(given) == shown
    assert redacted(f"there is no file {given!r} here") == f"there is no file {shown!r} here"


@given(host=_SAFE, path=_SAFE, secret=_SECRET, place=st.sampled_from(["user", "query", "fragment"]))
def test_a_secret_is_never_shown(host: str, path: str, secret: str, place: str) -> None:
    url = {
        "user": f"s3://{secret}@{host}/{path}",
        "query": f"s3://{host}/{path}?sig={secret}",
        "fragment": f"s3://{host}/{path}#{secret}",
    }[place]
    assert "SECRET" not in location(url)
    assert "SECRET" not in redacted(f"the path {url!r} cannot be read")
    assert location(location(url)) == location(url)


_URL = "https://Benedict:SECRET@host.example/people.%s?X-Amz-Signature=SECRET#SECRET"


def _protect(suffix: str, **options: Any) -> object:
    return dp.Session(epsilon=1).protect(_URL % suffix, unit=dp.Rows(), **options)


_PLACES: dict[str, Callable[[], object]] = {
    "protect": lambda: _protect("parquet"),
    "a text file": lambda: _protect("csv"),
    "an unknown suffix": lambda: _protect("xlsx"),
    "on DuckDB": lambda: _protect("parquet", engine="duckdb"),
    "as a unit": lambda: dp.Session(epsilon=1).protect(pl.DataFrame({"a": [1]}), unit=_URL % "x"),
    "as a frame's bounds": lambda: _protect("csv", bounds={_URL % "x": (0, 1)}),
    "a ledger": lambda: dp.Session(epsilon=1, ledger=_URL % "db"),
    "a ledger on a server": lambda: dp.Session(
        epsilon=1, ledger="postgresql://Benedict:SECRET@127.0.0.1:1/none?password=SECRET"
    ),
    "an engine": lambda: (
        dp.Session(epsilon=1)
        .protect(pl.DataFrame({"a": [1]}), unit=dp.Rows())
        .dp_count()
        .collect(epsilon=1, engine=_URL % "x")  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("act", _PLACES.values(), ids=_PLACES)
def test_no_message_quotes_what_gives_access(act: Callable[[], object]) -> None:
    with pytest.raises(dp.DPFrameError) as caught:
        act()
    error = caught.value
    assert "SECRET" not in f"{error}{error!r}{error.args}{error.__cause__}{error.__context__}"
    assert "Benedict" not in str(error)
