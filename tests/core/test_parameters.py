"""Parameters: values as text, of which there is one form for each, by type."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.core.parameters import NotAValue, Parameter, ParameterType, read_type, zone_of

ZURICH = "Europe/Zurich"
TYPES = {
    "bool": st.booleans(),
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "decimal[3]": st.integers(-(10**30), 10**30).map(lambda n: Decimal(n).scaleb(-3)),
    "string": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    "date": st.dates(),
    "datetime": st.datetimes(),
    f"datetime[{ZURICH}]": st.datetimes(
        datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)
    ),
}


def test_a_list_has_ten_thousand_values_at_most() -> None:
    many = read_type("list[int]")
    assert many.of([7] * 10_000) == (7,) * 10_000
    with pytest.raises(NotAValue, match="a list has at most 10000 values"):
        many.of([7] * 10_001)


@given(st.data())
def test_a_value_is_what_its_text_says(data: st.DataObject) -> None:
    words = data.draw(st.sampled_from(sorted(TYPES)))
    kind = read_type(words)
    assert kind.words() == words
    value = kind.of(data.draw(TYPES[words]))
    text = kind.text(value)
    assert kind.text(kind.read(text)) == text
    assert kind.read(text) == value
    many = read_type(f"list[{words}]")
    values = many.of([value, value])
    assert many.read(many.text(values)) == values
    assert Parameter.of("x", many, values).typed_value == values


@pytest.mark.parametrize(
    ("words", "text", "value"),
    [
        ("int", " +07 ", 7),
        ("bool", "true", True),
        ("float", "1e3", 1000.0),
        ("decimal[2]", "-1.5", Decimal("-1.50")),
        ("date", "2026-11-22", date(2026, 11, 22)),
        ("datetime", "2026-11-22", datetime(2026, 11, 22)),
        ("datetime", "2026-11-22 06:30", datetime(2026, 11, 22, 6, 30)),
        ("string", " as it is ", " as it is "),
        ("list[int]", "1, 2,3", (1, 2, 3)),
        ("list[int]", "[1, 2]", (1, 2)),
        ("list[string]", '["a, b", "c"]', ("a, b", "c")),
        ("list[bool]", "[true, false]", (True, False)),
        ("list[date]", "", ()),
    ],
)
def test_what_people_write(words: str, text: str, value: object) -> None:
    assert read_type(words).read(text) == value


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("int", "1.0"),
        ("int", "1_000"),
        ("int", "9223372036854775808"),
        ("int", "٣"),
        ("float", "nan"),
        ("float", "1e999"),
        ("float", "0x1"),
        ("bool", "True"),
        ("bool", "1"),
        ("date", "22.11.2026"),
        ("date", "2026-11-22T00:00"),
        ("date", "2026-02-30"),
        ("date", "20261122"),
        ("datetime", "2026-11-22T06:00:00+01:00"),
        ("datetime", "2026-W47-7"),
        ("decimal[2]", "0.001"),
        ("decimal[2]", "1e5"),
        ("decimal[0]", "1" * 39),
        ("string", "a\x00"),
        ("string", "\udcff"),
        ("list[int]", "1,,2"),
        ("list[int]", "[[1]]"),
        ("list[int]", "[1"),
        ("list[date]", "2026-11-22, x"),
    ],
)
def test_what_is_no_value(words: str, text: str) -> None:
    with pytest.raises(NotAValue):
        read_type(words).read(text)


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("int", True),
        ("int", 1.0),
        ("int", "1"),
        ("float", True),
        ("string", 1),
        ("date", datetime(2026, 11, 22)),
        ("date", "2026-11-22"),
        ("datetime", date(2026, 11, 22)),
        ("bool", 1),
        ("list[int]", 1),
        ("list[string]", "ab"),
        ("list[int]", [1, "2"]),
        ("decimal[1]", float("nan")),
    ],
)
def test_what_python_has_that_is_no_value(words: str, value: Any) -> None:
    with pytest.raises(NotAValue):
        read_type(words).of(value)


def test_moments_are_in_their_zone() -> None:
    kind = ParameterType("datetime", ZURICH)
    assert kind.text(kind.read("2026-11-22")) == "2026-11-22T00:00:00+01:00"
    assert kind.text(kind.read("2026-07-01T00:00Z")) == "2026-07-01T02:00:00+02:00"
    for twice_or_never in ("2026-10-25T02:30", "2026-03-29T02:30"):
        with pytest.raises(NotAValue, match="twice or never"):
            kind.read(twice_or_never)
    second = kind.read("2026-10-25T02:30:00+01:00")
    assert isinstance(second, datetime)
    assert second.utcoffset() == timedelta(hours=1)
    assert kind.read(kind.text(second)) == second


@pytest.mark.parametrize(
    "words",
    [
        *("", "Date", "list", "list[]", "list[list[int]]", "decimal", "decimal[19]", "date[UTC]"),
        *("int ", "datetime[Mars/Olympus]", "datetime[]", "decimal[-1]"),
    ],
)
def test_what_is_no_type(words: str) -> None:
    with pytest.raises(NotAValue):
        read_type(words)


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        *(("1a", "int", "1"), ("a-b", "int", "1"), ("a" * 65, "int", "1"), ("é", "int", "1")),
        *(("a", "int", "01"), ("a", "float", "1"), ("a", "list[int]", "1,2"), ("a", "bool", "yes")),
    ],
)
def test_what_is_no_parameter(name: str, kind: str, value: str) -> None:
    with pytest.raises(NotAValue):
        Parameter(name, kind, value)


def test_zones_that_nobody_knows() -> None:
    for name in ("Mars/Olympus", "../UTC", "/etc/localtime", ""):
        with pytest.raises(NotAValue):
            zone_of(name)
