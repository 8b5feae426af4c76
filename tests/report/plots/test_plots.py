"""Charts: valid, of the right numbers, small, readable on light and dark, and of public values."""

from __future__ import annotations

import io
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.report.plots import BAR, INK, MARK
from tests.simulate.frames import public, trapped

PUBLIC = public()
ANOTHER = public()
"""The same, but no row of it is protected."""
CITIES = ["a", "b", "c", "d"]


def query_of(people: dp.PrivateFrame) -> dp.PrivateQuery:
    return people.group_by("city", keys=CITIES).agg(
        dp.count().alias("n"),
        dp.sum("age", (0, 100)).alias("years"),
        dp.mean("x", (0, 100)).alias("mean"),
        dp.median("age", (0, 100)).alias("median"),
        (dp.sum("age", (0, 100)) / dp.count()).alias("ratio"),
    )


def numbers_of(people: dp.PrivateFrame) -> dp.PrivateQuery:
    """As `query_of`, without what is chosen, which has no interval."""
    return people.group_by("city", keys=CITIES).agg(
        dp.count().alias("n"),
        dp.sum("age", (0, 100)).alias("years"),
        dp.mean("x", (0, 100)).alias("mean"),
        (dp.sum("age", (0, 100)) / dp.count()).alias("ratio"),
    )


def people_of(frame: pl.DataFrame = PUBLIC, **budget: Any) -> dp.PrivateFrame:
    session = dp.Session(**(budget or {"epsilon": 10.0, "delta": 1e-6}))
    return session.protect(frame, dp.Rows(), name="people")


def spec_of(chart: Any) -> dict[str, Any]:
    """The chart as Vega-Lite, which Altair has validated against its schema."""
    found: dict[str, Any] = json.loads(json.dumps(chart.to_dict()))
    return found


def nodes(spec: Any) -> Iterator[dict[str, Any]]:
    """All objects in a specification."""
    if isinstance(spec, dict):
        yield spec
        for value in spec.values():
            yield from nodes(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from nodes(value)


def rows_of(spec: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    """The rows inside a chart that have such columns."""
    rows = [row for node in nodes(spec) for row in _values(node)]
    return [row for row in rows if set(names) <= set(row)]


def _values(node: dict[str, Any]) -> list[dict[str, Any]]:
    values = node.get("values", [])
    return [row for row in values if isinstance(row, dict)] if isinstance(values, list) else []


def notes_of(spec: dict[str, Any]) -> list[str]:
    return list(spec["title"]["subtitle"])


def distinct(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json.loads(text) for text in dict.fromkeys(json.dumps(row) for row in rows)]


DAYS = [date(2026, 1, 1) + timedelta(days=i) for i in range(60)]


def dated() -> dp.PrivateFrame:
    """A row or more on each day, in a city."""
    number = pl.int_range(600, eager=True).alias("i")
    return people_of(
        number.to_frame().select(
            day=date(2026, 1, 1) + pl.duration(days=pl.col("i") * 7 % 60),
            city=(pl.col("i") % 4).replace_strict(dict(enumerate(CITIES)), return_dtype=pl.String),
            size=pl.col("i") % 2 + 1,
        )
    )


CHARTS: dict[str, Callable[[], Any]] = {
    "plan": lambda: query_of(trapped()[0]).plan(epsilon=0.5).plot({"n": 800}),
    "session": lambda: _spent().plot(),
    "empty session": lambda: dp.Session(rho=0.1).plot(),
    "release": lambda: query_of(people_of()).release(epsilon=1).plot(),
    "release with intervals": lambda: (
        numbers_of(people_of()).release(epsilon=1, interval=0.9).plot()
    ),
    "bins": lambda: people_of().dp_histogram("age", [0, 50, 100]).release(epsilon=1).plot(),
    "bins with others": lambda: (
        people_of().dp_histogram("age", [0, 50, 60], other=True).release(epsilon=1).plot()
    ),
    "distribution function": lambda: people_of().dp_cdf("age", [50, 100]).release(epsilon=1).plot(),
    "categories": lambda: people_of().dp_histogram("city", CITIES).release(epsilon=1).plot(),
    "bins by group": lambda: (
        people_of()
        .group_by("city", keys=CITIES)
        .dp_histogram("age", [0, 50, 100])
        .release(epsilon=1)
        .plot()
    ),
    "histogram beside a count": lambda: (
        people_of()
        .group_by("city", keys=CITIES)
        .agg(dp.count(), dp.histogram("age", [0, 50, 100]))
        .release(epsilon=1)
        .plot()
    ),
    "days": lambda: dated().group_by("day", keys=DAYS[::-1]).dp_count().release(epsilon=1).plot(),
    "days and cities": lambda: (
        dated()
        .group_by("day", "city", keys={"day": DAYS, "city": CITIES})
        .dp_count()
        .release(epsilon=1, interval=0.9)
        .plot()
    ),
    "cities and sizes": lambda: (
        dated()
        .group_by("city", "size", keys={"city": CITIES, "size": [1, 2]})
        .dp_count()
        .release(epsilon=1)
        .plot()
    ),
    "before and after": lambda: (
        query_of(people_of()).simulate(ANOTHER.head(500), epsilon=1).plot(values=True)
    ),
    "distribution functions": lambda: (
        people_of().group_by("city", keys=CITIES).dp_cdf("age", [50, 100]).release(epsilon=1).plot()
    ),
    "simulation": lambda: query_of(people_of()).simulate(ANOTHER.head(500), epsilon=1).plot(),
    "simulation, absolute": lambda: (
        query_of(people_of()).simulate(ANOTHER.head(500), epsilon=1).plot(relative=False)
    ),
    "simulated histogram": lambda: (
        people_of()
        .dp_histogram("age", [0, 50, 100])
        .simulate(ANOTHER.head(500), epsilon=1, runs=20)
        .plot()
    ),
}


def _spent() -> dp.Session:
    people = people_of()
    for epsilon in (0.5, 1, 0.25):
        people.dp_count().collect(epsilon=epsilon)
    assert people.session is not None
    return people.session


@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_charts_are_drawn_with_titles_and_named_axes(chart: Callable[[], Any]) -> None:
    image = pytest.importorskip("vl_convert")
    spec = spec_of(chart())
    assert spec["title"]["text"]
    quantitative = [
        node
        for name, node in _channels(spec)
        if node.get("type") in ("quantitative", "temporal") and name in ("x", "y")
    ]
    titled = [node for node in quantitative if node.get("title")]
    assert titled or not quantitative
    png = image.vegalite_to_png(json.dumps(spec))
    assert png.startswith(b"\x89PNG")
    assert len(png) > 5000  # an empty chart is smaller


def _channels(spec: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for node in nodes(spec):
        for name, channel in node.get("encoding", {}).items():
            if isinstance(channel, dict):
                yield name, channel


@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_charts_are_readable_on_light_and_dark(chart: Callable[[], Any]) -> None:
    spec = spec_of(chart())
    assert spec["background"] == "transparent"
    for part in ("axis", "legend", "header"):
        assert spec["config"][part]["labelColor"] == INK
    assert spec["title"]["color"] == spec["title"]["subtitleColor"] == INK


@pytest.mark.parametrize("colour", [INK, BAR, MARK])
@pytest.mark.parametrize("behind", ["#ffffff", "#1e1e1e", "#111111"])
def test_colours_stand_out(colour: str, behind: str) -> None:
    light, dark = sorted((_luminance(colour), _luminance(behind)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) > (3.9 if colour == INK else 2.6)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# -- plans --------------------------------------------------------------------------------------


def test_a_plan_shows_the_errors_that_it_states() -> None:
    people, trap = trapped()
    plan = query_of(people).plan(epsilon=0.5)
    spec = spec_of(plan.plot({"n": 800, "years": 40_000}))
    rows = {row["output"]: row for row in rows_of(spec, "output", "low", "high")}
    assert list(rows) == ["n", "years", "mean"]
    assert rows["n"]["error"] == plan.accuracy("n")
    assert (rows["n"]["low"], rows["n"]["high"]) == (
        800 - rows["n"]["error"],
        800 + rows["n"]["error"],
    )
    assert rows["mean"]["error"] == plan.accuracy("mean", count=800)
    assert rows["mean"]["guess"] == 0
    notes = notes_of(spec)
    assert any(note.startswith("median: the score") for note in notes)
    assert any(note.startswith("ratio: the error") for note in notes)
    assert any("95% confidence" in note for note in notes)
    assert not trap.sprung


def test_a_plan_takes_a_confidence_and_a_count() -> None:
    plan = query_of(trapped()[0]).plan(epsilon=0.5)
    rows = rows_of(spec_of(plan.plot(count=5000, confidence=0.5)), "output", "error")
    errors = {row["output"]: row["error"] for row in rows}
    assert errors["n"] == plan.accuracy("n", 0.5)
    assert errors["mean"] == plan.accuracy("mean", 0.5, count=5000)


@pytest.mark.parametrize(
    ("guess", "error"),
    [
        ({"nn": 3}, dp.UnknownColumn),
        ({"n": "many"}, dp.InvalidBounds),
        ({"n": float("nan")}, dp.InvalidBounds),
        ({"n": float("inf")}, dp.InvalidBounds),
        ({"n": True}, dp.InvalidBounds),
    ],
)
def test_guesses_that_make_no_sense(guess: Any, error: type[dp.DPFrameError]) -> None:
    with pytest.raises(error):
        query_of(trapped()[0]).plan(epsilon=0.5).plot(guess)


def test_a_plan_of_choices_alone_has_no_error_bars() -> None:
    plan = trapped()[0].dp_argmax("city", candidates=CITIES).plan(epsilon=0.5)
    with pytest.raises(dp.UnsupportedOperation, match="no output of the plan has an error"):
        plan.plot()


# -- sessions -----------------------------------------------------------------------------------


def test_a_session_shows_what_was_spent_in_all() -> None:
    spec = spec_of(_spent().plot())
    rows = distinct(rows_of(spec, "charge", "spent"))
    assert [row["spent"] for row in rows] == [0.5, 1.5, 1.75]
    assert {row["status"] for row in rows} == {"released"}
    assert rows_of(spec, "budget")[0]["budget"] == 10
    assert notes_of(spec)[0] == "1.75 of 10 spent in 3 charges"


def test_a_session_of_rho_is_shown_in_rho() -> None:
    people = people_of(rho=0.5)
    people.dp_count().collect(rho=0.2)
    assert people.session is not None
    spec = spec_of(people.session.plot())
    assert [row["spent"] for row in distinct(rows_of(spec, "charge", "spent"))] == [0.2]
    titles = [channel.get("title") for _, channel in _channels(spec)]
    assert "rho spent in all" in titles


def test_thousands_of_charges_are_thinned() -> None:
    from dpframe.report.plots import plot_budget

    size = 20_000
    history = pl.DataFrame(
        {
            "time": pl.Series([0] * size, dtype=pl.Datetime("us", "UTC")),
            "fingerprint": ["0" * 64] * size,
            "epsilon": [0.5] * size,
            "delta": [0.0] * size,
            "rho": pl.Series([None] * size, dtype=pl.Float64),
            "status": ["released"] * size,
        }
    )
    rows = distinct(rows_of(spec_of(plot_budget(history, "epsilon", 2e4, None)), "charge"))
    assert len(rows) < 1200
    assert rows[-1]["spent"] == size / 2


# -- releases -----------------------------------------------------------------------------------


def test_a_release_shows_its_numbers_with_the_errors_of_the_plan() -> None:
    release = query_of(people_of()).release(epsilon=1)
    rows = distinct(rows_of(spec_of(release.plot()), "bar", "value", "low"))
    counts = rows[:4]
    by_size = release.frame.sort("n", descending=True, maintain_order=True)
    assert [row["bar"] for row in counts] == by_size.to_series(0).to_list()
    assert [row["value"] for row in counts] == by_size["n"].to_list()
    reach = release.plan.accuracy("n")
    assert all(row["high"] - row["value"] == row["value"] - row["low"] == reach for row in counts)
    means = rows[8:12]
    assert [row["value"] for row in means] == sorted(release.frame["mean"], reverse=True)
    assert all(row["low"] is None for row in means)
    assert any("interval=0.95" in note for note in notes_of(spec_of(release.plot())))


def test_a_release_shows_the_intervals_that_it_was_made_with() -> None:
    release = numbers_of(people_of()).release(epsilon=1, interval=0.9)
    rows = distinct(rows_of(spec_of(release.plot()), "bar", "value", "low"))
    for i, name in enumerate(["n", "years", "mean"]):
        found = rows[4 * i : 4 * i + 4]
        by_size = release.frame.sort(name, descending=True, maintain_order=True)
        assert [row["low"] for row in found] == by_size[f"{name}_low"].to_list()
        assert [row["high"] for row in found] == by_size[f"{name}_high"].to_list()


def test_a_saved_chart_loads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vl_convert")
    chart = people_of().dp_count().release(epsilon=1).plot()
    chart.properties(width=300).save(tmp_path / "chart.html")
    page = (tmp_path / "chart.html").read_text()
    assert "<script src=" not in page
    assert len(page) > 100_000, "Vega is in the page"
    chart.save(tmp_path / "chart.svg")
    assert "<svg" in (tmp_path / "chart.svg").read_text()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setattr("dpframe.report.plots.find_spec", lambda name: None)
    with pytest.raises(dp.UnsupportedOperation, match="vl-convert"):
        chart.save(tmp_path / "chart.html")


def test_bins_are_shown_where_they_lie() -> None:
    release = people_of().dp_histogram("age", [0, 25, 100], other=True).release(epsilon=1)
    spec = spec_of(release.plot())
    rows = distinct(rows_of(spec, "lower", "upper"))
    assert [(row["lower"], row["upper"]) for row in rows] == [(0, 25), (25, 100)]
    assert [row["value"] for row in rows] == release.frame["count"].to_list()[:2]
    assert "values outside the bins are not shown" in notes_of(spec)


def test_of_many_groups_the_largest_are_shown() -> None:
    frame = pl.DataFrame({"g": list(itertools.chain(*([i] * (i % 1000) for i in range(6000))))})
    release = (
        people_of(frame, epsilon=10)
        .group_by("g", keys=list(range(6000)))
        .dp_count()
        .release(epsilon=9)
    )
    spec = spec_of(release.plot(most=10))
    rows = distinct(rows_of(spec, "bar", "value"))
    assert len(rows) == 10
    assert min(row["value"] for row in rows) >= release.frame["len"].sort()[-10]
    assert "the largest 10 of 6,000 groups" in notes_of(spec)


ESCAPE = "</script><script>alert(1)</script><!--"


def test_names_and_keys_end_no_script() -> None:
    """Altair writes charts into the script of a page, and anybody may be in the data."""
    rows = {ESCAPE: [ESCAPE, "b"] * 2000, "x": [1.0, 2.0] * 2000}
    frame = pl.DataFrame(rows)
    session = dp.Session(epsilon=100, delta=1e-3, name=ESCAPE)
    people = session.protect(frame, dp.Rows(), name=ESCAPE)
    sums = people.group_by(ESCAPE).agg(dp.sum("x", (0, 2)).alias(f"s{ESCAPE}"), n=dp.count())
    release = sums.release(epsilon=9, delta=1e-4)
    assert ESCAPE in release.frame[ESCAPE].to_list()
    table = people.dp_histogram(ESCAPE, [ESCAPE, "b"]).release(epsilon=1)
    bins = people.agg(dp.histogram("x", [0, 1, 2]).alias(f"b{ESCAPE}")).release(epsilon=1)
    simulated = sums.simulate(pl.DataFrame(rows), epsilon=9, delta=1e-4, runs=2)
    charts = [release, release.plan, table, table.plan, bins, session, simulated]
    for chart in charts:
        page = chart.plot().to_html()
        assert "alert(1)" in page or chart is simulated
        assert "<script>alert" not in page
        assert "</script><" not in page.replace("</script>\n", "")
        assert "<!--" not in page


def test_a_release_without_numbers_has_no_chart() -> None:
    release = people_of().dp_argmax("city", candidates=CITIES).release(epsilon=1)
    with pytest.raises(dp.UnsupportedOperation, match="is a number"):
        release.plot()


# -- simulations --------------------------------------------------------------------------------


def test_a_simulation_shows_quantiles_of_its_errors() -> None:
    query = people_of().group_by("city", keys=CITIES).agg(dp.count(), dp.sum("age", (0, 50)))
    simulation = query.simulate(ANOTHER.clone(), epsilon=0.1, runs=60)
    rows = distinct(rows_of(spec_of(simulation.plot()), "group", "p50"))
    assert [row["group"] for row in rows] == CITIES * 2
    first = simulation.results.filter(city="a", output="len")
    error = (first["noisy"] - first["plain"]) / first["plain"]
    assert rows[0]["p50"] == pytest.approx(error.median())
    assert rows[0]["p95"] == pytest.approx(error.quantile(0.95, "linear"))
    assert rows[0]["limits"] == 0
    assert rows[4]["limits"] < 0
    absolute = distinct(rows_of(spec_of(simulation.plot(relative=False)), "group", "p50"))
    assert absolute[0]["p50"] == pytest.approx((first["noisy"] - first["plain"]).median())
    short = spec_of(simulation.plot(most=2))
    assert len(distinct(rows_of(short, "group", "p50"))) == 4
    assert "the largest 2 of 4 groups" in notes_of(short)


def test_a_simulation_of_choices_has_no_errors_to_show() -> None:
    simulation = (
        people_of().dp_argmax("city", candidates=CITIES).simulate(ANOTHER.head(9), epsilon=1)
    )
    with pytest.raises(dp.UnsupportedOperation, match="no output of the simulation"):
        simulation.plot()


def test_without_altair_every_chart_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    people = people_of()
    drawn: list[Callable[[], Any]] = [
        people.dp_count().plan(epsilon=1).plot,
        people.dp_count().release(epsilon=1).plot,
        people.dp_count().simulate(ANOTHER.head(5), epsilon=1, runs=2).plot,
        _spent().plot,
    ]
    monkeypatch.setitem(sys.modules, "altair", None)
    for draw in drawn:
        with pytest.raises(dp.UnsupportedOperation, match=r"pip install \"dpframe\[plot\]\""):
            draw()


def test_importing_dpframe_does_not_import_altair() -> None:
    import subprocess

    code = "import sys, dpframe; print('altair' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_charts_can_be_saved(tmp_path: Any) -> None:
    page = io.StringIO()
    people_of().dp_count().release(epsilon=1).plot().save(page, format="json")
    assert "vega-lite" in page.getvalue()
