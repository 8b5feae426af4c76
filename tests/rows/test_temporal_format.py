"""Formats of dates and times: every directive that is accepted has a text for every value."""

from __future__ import annotations

import polars as pl
import pytest

from dpframe.core.dtypes import STRING
from dpframe.core.tree import Column
from dpframe.errors import DPFrameError
from dpframe.rows.fold import domain, lower
from dpframe.rows.polars_dtypes import from_polars
from dpframe.rows.temporal import _NUMBERS, _allowed
from tests.calls import call
from tests.laws.frames import CLOCKS, DAYS, MICROSECONDS, wide_columns

COLUMNS = {
    "date": pl.Series("x", DAYS, dtype=pl.Int32).cast(pl.Date),
    "moment": pl.Series("x", MICROSECONDS).cast(pl.Datetime("us")),
    "coarse": pl.Series("x", MICROSECONDS).cast(pl.Datetime("ms")),
    "fine": pl.Series("x", MICROSECONDS).cast(pl.Datetime("ns")),
    "zoned": pl.Series("x", MICROSECONDS).cast(pl.Datetime("us", "Europe/Amsterdam")),
    "clock": pl.Series("x", CLOCKS).cast(pl.Time),
}
REFUSED = {
    "date": "%H %.f %c %s %z %Z %+ %Q % 100% %E %- %_ polars",
    "moment": "%z %Z %:z %+ %#z %4f %-A %-% %é %-.3f polars",
    "zoned": "%::z %+ %Q",
    "clock": "%Y %F %d %c %s %z %A",
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_directive_has_a_text_for_every_value(kind: str) -> None:
    frame = COLUMNS[kind].to_frame()
    columns = wide_columns(frame)
    dtype = from_polars(frame.dtypes[0])
    forms = [f"%{d}" for d in sorted(_allowed(dtype))] + ["iso", "iso:strict", "", "plain", "%%%%"]
    forms += [f"%{pad}{d}" for d in sorted(_allowed(dtype) & _NUMBERS) for pad in "-_0"]
    texts = [lower(call("dt_to_string", Column("x"), format=f), columns).alias(f) for f in forms]
    inside = lower(call("dt_day" if kind != "clock" else "dt_hour", Column("x")), columns)
    known = frame.select(inside).to_series().is_not_null().to_list()
    assert any(known)
    found = frame.select(texts)
    for form in forms:
        assert found[form].is_not_null().to_list() == known, form
    for i in range(0, frame.height, 7):
        assert frame[i].select(texts).row(0) == found.row(i)


@pytest.mark.parametrize(
    ("kind", "form"), [(k, f) for k, forms in REFUSED.items() for f in forms.split()]
)
def test_other_directives_are_refused(kind: str, form: str) -> None:
    with pytest.raises(DPFrameError) as caught:
        domain(
            call("dt_to_string", Column("x"), format=form), wide_columns(COLUMNS[kind].to_frame())
        )
    assert caught.value.remedy


def test_a_format_has_a_length() -> None:
    columns = wide_columns(COLUMNS["date"].to_frame())
    with pytest.raises(DPFrameError, match="longer than"):
        domain(call("dt_to_string", Column("x"), format="x" * 257), columns)
    assert domain(call("dt_to_string", Column("x"), format="x" * 256), columns).dtype == STRING
    with pytest.raises(DPFrameError, match="not on Duration"):
        domain(
            call("dt_to_string", Column("x"), format="iso"),
            wide_columns(pl.DataFrame({"x": [1]}).select(pl.col("x").cast(pl.Duration("us")))),
        )
