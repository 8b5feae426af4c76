"""Errors leave no rows in the local variables that debuggers, test runners and trackers show."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import dpframe as dp

MARK = "Hidden-4711"
FRAME = pl.DataFrame({"name": [MARK, "b"], "age": [47110815, 2]})
OURS = str(Path(dp.__file__).parent)

RAW: dict[str, Callable[[], Any]] = {
    "DataFrame": FRAME.clone,
    "LazyFrame": FRAME.lazy,
    "Series": lambda: FRAME["name"],
    "Table": FRAME.to_arrow,
    "list": FRAME.to_dicts,
    "dict": lambda: FRAME.to_dict(as_series=False),
}

FRAMES = ("DataFrame", "LazyFrame", "Series", "Table")


def private() -> dp.PrivateFrame:
    return dp.Session(epsilon=1).protect(FRAME, unit=dp.Rows())


OWNERS: dict[str, Callable[[], Any]] = {
    "Session": lambda: dp.Session(epsilon=1),
    "PrivateFrame": private,
    "PrivateGroupBy": lambda: private().group_by("name", keys=["b"]),
    "PrivateQuery": lambda: private().dp_count(),
    "DPExpr": dp.count,
    "Keys": lambda: dp.keys(["a"]),
}


def _calls() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Every public function and method, with a raw frame for each argument in turn."""
    for name in dp.__all__:
        if callable(getattr(dp, name)) and not _is_error(getattr(dp, name)):
            yield from _arguments(name, lambda name=name: getattr(dp, name))
    for owner, make in OWNERS.items():
        cls = type(make())
        for name in sorted(set(dir(cls)) - {"gather"}):  # Polars builds what no traceback can show
            found = inspect.getattr_static(cls, name)
            operator = name.startswith("__") and str(getattr(found, "__module__", "")).startswith(
                "dp"
            )
            if name != "__getattr__" and callable(found) and (operator or not name.startswith("_")):
                yield from _arguments(
                    f"{owner}.{name}", lambda make=make, name=name: getattr(make(), name)
                )
    for kind in (pl.DataFrame, pl.LazyFrame):
        for name in ("dp_protect", "dp_count", "dp_sum", "dp_histogram", "dp_argmax"):
            yield (
                f"{kind.__name__}.{name}",
                lambda raw, name=name: getattr(raw, name)(raw, unit=raw),
            )
            yield f"{kind.__name__}.{name} none", lambda raw, name=name: getattr(raw, name)()


def _is_error(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, BaseException)


def _arguments(
    name: str, function: Callable[[], Any]
) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    yield f"{name}(raw)", lambda raw: function()(raw)
    yield f"{name}(raw, raw)", lambda raw: function()(raw, raw)
    try:
        parameters = inspect.signature(function()).parameters.values()
    except (TypeError, ValueError):
        return
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            yield (
                f"{name}({parameter.name}=raw)",
                lambda raw, key=parameter.name: function()(**{key: raw}),
            )


CALLS = dict(_calls())
QUICK = {name: call for name, call in CALLS.items() if "protect" in name or "Frame.dp_" in name}
QUICK |= {
    "Identifier(raw)": dp.Identifier,
    "combine": dp.combine,
    "describe": lambda raw: private().describe(raw),
    "describe bounds": lambda raw: private().describe(bounds=raw),
    "PrivateQuery.simulate": lambda raw: private().dp_count().simulate(raw, epsilon=1, runs=-1),
}


def _shown(error: BaseException) -> Iterator[tuple[str, str]]:
    """The local variables of dpframe's frames, of the error and of those behind it."""
    seen = [traceback.TracebackException.from_exception(error, capture_locals=True)]
    while seen:
        found = seen.pop()
        seen += [e for e in (found.__cause__, found.__context__) if e is not None]
        for frame in found.stack:
            if frame.filename.startswith(OURS):
                for name, value in (frame.locals or {}).items():
                    yield f"{frame.name}.{name}", value


def test_no_frame_of_ours_shows_rows() -> None:
    for name, call in QUICK.items():
        _require_nothing_shown(name, call)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "call"), CALLS.items(), ids=CALLS)
def test_no_frame_of_ours_shows_rows_at_all(name: str, call: Callable[[Any], Any]) -> None:
    _require_nothing_shown(name, call)


def _require_nothing_shown(name: str, call: Callable[[Any], Any]) -> None:
    public = "candidates" in name or "keys" in name  # which are quoted
    for kind, make in RAW.items():
        try:
            call(make())
        except BaseException as error:
            for place, value in _shown(error):
                assert MARK not in value, (name, kind, place)
                assert "47110815" not in value, (name, kind, place)
            if isinstance(error, dp.DPFrameError) and kind in FRAMES and not public:
                assert MARK not in str(error), (name, kind)  # noqa: PT017


def test_what_the_review_of_a_failure_needs_is_kept() -> None:
    """The message, the caller's own frames, and of bugs the lines that they came from."""
    with pytest.raises(dp.UnknownColumn) as caught:
        private().filter(pl.col("none") > 1)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_what_the_review_of_a_failure_needs_is_kept", "called"]
    with pytest.raises(ValueError, match="a bug") as other:
        private().pipe(_fails)
    assert "It came from:" in "".join(other.value.__notes__)


def _fails(frame: object) -> None:
    raise ValueError("a bug")


def test_an_error_that_was_being_handled_is_left_as_it_was() -> None:
    try:
        raise ValueError("own")
    except ValueError as own:
        with pytest.raises(dp.UnknownColumn) as caught:
            private().filter(pl.col("none") > 1)
        assert caught.value.__context__ is own  # noqa: PT017
        assert own.__traceback__ is not None  # noqa: PT017


def test_batches_that_fail_show_nothing() -> None:
    def some() -> Iterator[Any]:
        yield pa.record_batch({"x": [MARK]})
        raise ValueError(MARK)

    reader = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.string()}), some())
    with pytest.raises(dp.EngineError) as caught:
        dp.Session(epsilon=1).protect(reader, unit=dp.Rows())
    assert not [place for place, value in _shown(caught.value) if MARK in value]
