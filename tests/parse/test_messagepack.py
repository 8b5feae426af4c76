"""The decoder gives what JSON would, with NaN and infinities."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import polars as pl
import pytest

from dpframe.parse.reader import decode

from .spellings import SPELLINGS, evaluate


def _comparable(value: Any) -> Any:
    """Byte strings and arrays of bytes alike; floats that JSON does not have as None."""
    match value:
        case bytes():
            number = int.from_bytes(value, "big", signed=True)
            return number if len(value) == 16 else list(value)
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {k: _comparable(v) for k, v in value.items()}
        case list():
            return [_comparable(v) for v in value]
        case _:
            return value


@pytest.mark.parametrize("spelling", [s for s, _ in SPELLINGS if "Float32" not in s])
def test_both_forms_agree(spelling: str) -> None:
    expression = evaluate(spelling)
    if expression is None:
        pytest.skip("this Polars does not have it")
    binary = _comparable(decode(expression.meta.serialize(format="binary")))
    text = json.loads(expression.meta.serialize(format="json"))
    assert binary == text


@pytest.mark.parametrize("value", [math.inf, -math.inf, 2**100, -(2**100), "é" * 300])
def test_long_and_special_constants(value: Any) -> None:
    node = decode(pl.lit(value).meta.serialize(format="binary"))
    assert "Literal" in node


@pytest.mark.parametrize(
    "data", [b"", b"\x81", b"\xd9", b"\xc7\x01\x00\x00", b"\x01\x01", b"\xa5x"]
)
def test_broken_input_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="MessagePack"):
        decode(data)


def test_all_sizes() -> None:
    assert decode(b"\xde\x00\x01\xa1k\xdc\x00\x02\xc3\xc0") == {"k": [True, None]}
    assert decode(b"\xdf\x00\x00\x00\x01\xa1k\xdd\x00\x00\x00\x01\xe0") == {"k": [-32]}
    assert decode(b"\xc5\x00\x02ab") == b"ab"
    assert decode(b"\xda\x00\x02ab") == "ab"
    assert decode(b"\xca\x7f\x80\x00\x00") == math.inf
    assert decode(b"\xd3" + b"\xff" * 8) == -1


@pytest.mark.parametrize("size", range(16))
def test_short_maps_and_lists_of_each_size(size: int) -> None:
    keys = [bytes((0xA1, ord("a") + i)) for i in range(size)]
    assert decode(bytes((0x90 + size,)) + bytes(range(size))) == list(range(size))
    written = bytes((0x80 + size,)) + b"".join(key + b"\x07" for key in keys)
    assert decode(written) == {key[1:].decode(): 7 for key in keys}


def test_numbers_of_each_width() -> None:
    """The formats that the specification of MessagePack gives these bytes."""
    formats = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q"}
    formats |= {0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q", 0xCA: ">f", 0xCB: ">d"}
    for tag, layout in formats.items():
        for number in (0, 100) if tag in range(0xCC, 0xD0) else (0, 100, -100):
            assert decode(bytes((tag,)) + struct.pack(layout, number)) == number
    for number in (*range(128), *range(-32, 0)):
        assert decode(struct.pack(">b", number)) == number
