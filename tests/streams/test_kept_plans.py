"""Streams that another version opened: they go on with the noise that was paid for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.draw import law_of
from dpframe.api import payer
from dpframe.api import session as sessions
from dpframe.ledger.record import Draft
from dpframe.ledger.streams import StreamOpening
from dpframe.mechanisms import noise
from dpframe.optimise.prepared import Prepared
from tests.ledger.ledgers import sql, verify
from tests.streams.nights import START, day

ROWS = pl.DataFrame(
    {
        "day": [day(n) for n in (0, 1, 1, 2, 5)],
        "key": ["a", "b", "a", "b", "a"],
        "x": [1.0, 2.0, 3.0, 4.0, 5.0],
    }
)
SPENDS: list[dict[str, Any]] = [{"rho": "0.1"}, {"epsilon": 1}, {"epsilon": 1, "delta": "1e-6"}]


def session_of(spend: dict[str, Any], place: Path | None = None) -> dp.Session:
    budget: dict[str, Any] = {"rho": 1} if "rho" in spend else {"epsilon": 2, "delta": "1e-5"}
    return dp.Session(**budget, ledger=place)


def opened(place: Path, spend: dict[str, Any], **options: Any) -> dp.Stream:
    session = session_of(spend, place)
    frame = session.protect(
        ROWS, unit=dp.Rows(), name="visits", bounds={"x": options.pop("x", (0, 16))}
    )
    aggregates = options.pop("asks", [dp.count().alias("n"), pl.col("x").dp_sum().alias("s")])
    query = frame.group_by("key", keys=["a", "b"]).agg(*aggregates)
    given = {"by": "day", "start": START, "periods": 12, **spend, **options}
    return session.stream("visits", query, **given)


def scales(stream: dp.Stream) -> list[Fraction]:
    laws = [law_of(one) for one in stream._asked.prepared.draws]
    return [getattr(law, "sigma_squared", None) or law.scale for law in laws]


def another_version(
    monkeypatch: pytest.MonkeyPatch,
    factor: int,
    change: Callable[[Prepared], Prepared] | None = None,
) -> None:
    """From now on plans have so many times as much noise, and other fingerprints."""
    real = payer.plan_stream

    def planned(*given: Any, **options: Any) -> Prepared:
        made = real(*given, **options)
        if change is not None:
            return change(made)
        draws = []
        for one in made.draws:
            law: Any = one.law
            name = "scale" if hasattr(law, "scale") else "sigma_squared"
            draws.append(replace(one, law=replace(law, **{name: factor * getattr(law, name)})))
        releases = tuple(replace(r, scale=factor * r.scale) for r in made.plan.releases)
        return replace(made, plan=replace(made.plan, releases=releases), draws=tuple(draws))

    monkeypatch.setattr(payer, "plan_stream", planned)
    # The made-up plan does not state its noise, so the checks before a charge would refuse it.
    monkeypatch.setattr(payer.pipeline, "require_sound", lambda _: None)
    monkeypatch.setattr(sessions, "rehearse", lambda *_: None)


@pytest.mark.parametrize("spend", SPENDS, ids=str)
@pytest.mark.parametrize("factor", [3, Fraction(1, 3)])
def test_a_stream_goes_on_with_its_own_noise(
    spend: dict[str, Any], factor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "b.db"
    first = opened(place, spend)
    before = [first.release(day(n)) for n in range(3)]
    another_version(monkeypatch, factor)
    session = session_of(spend)
    frame = session.protect(ROWS, unit=dp.Rows(), name="visits", bounds={"x": (0, 16)})
    fresh = session.stream("n", frame.agg(n=dp.count()), by="day", start=START, periods=12, **spend)
    again = opened(place, spend)
    assert scales(again) == scales(first)
    assert scales(fresh)[0] not in scales(first)
    assert again.plan.fingerprint == first.plan.fingerprint
    assert again.plan.explain(details=True) == first.plan.explain(details=True)
    assert all(again.release(day(n)).equals(found) for n, found in enumerate(before))
    assert again.accuracy(day(11)) == first.accuracy(day(11))
    assert again.release(day(11)).height == 2
    assert session_of(spend, place).spent == first.cost
    verify(place)


def test_what_is_drawn_has_the_noise_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only what is said: a law that is asked for noise is the one that is kept."""
    place = tmp_path / "b.db"
    first = opened(place, SPENDS[0])
    another_version(monkeypatch, 7)
    again = opened(place, SPENDS[0])
    asked = []
    real = noise.discrete_gaussian

    def draw(sigma_squared: Any, *given: Any) -> Any:
        asked.append(sigma_squared)
        return real(sigma_squared, *given)

    monkeypatch.setattr(noise, "discrete_gaussian", draw)
    again.release(day(0))
    assert asked == scales(first)


OTHERS: dict[str, dict[str, Any]] = {
    "the query": {"asks": [dp.count().alias("n"), pl.col("x").dp_sum((0, 15)).alias("s")]},
    "its outputs": {"asks": [dp.count().alias("n")]},
    "their order": {"asks": [pl.col("x").dp_sum().alias("s"), dp.count().alias("n")]},
    "their names": {"asks": [dp.count().alias("m"), pl.col("x").dp_sum().alias("s")]},
    "declared bounds": {"x": (0, 15)},
    "the start": {"start": day(1)},
    "the periods": {"periods": 13},
    "the length of periods": {"every": "1mo"},
    "monotone": {"monotone": True},
    "the spend": {"rho": "0.11"},
    "the split": {"split": "equal"},
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("later", [False, True])
def test_what_else_is_asked_is_refused(
    name: str, later: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "b.db"
    opened(place, SPENDS[0])
    if later:
        another_version(monkeypatch, 3)
    with pytest.raises(dp.LedgerError, match=r"opened (with|by) another"):
        opened(place, SPENDS[0], **OTHERS[name])
    opened(place, SPENDS[0])
    verify(place)


def halved(name: str) -> Callable[[dict[str, Any]], None]:
    def change(details: dict[str, Any]) -> None:
        for one in details["draws"]:
            value = Fraction(one["moved"][name])
            one["moved"][name] = str(value / 2 if name != "l0" else int(value) - 1)

    return change


def set_to(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(details: dict[str, Any]) -> None:
        details["draws"][0][name] = value

    return change


CHANGES: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    *((halved(name), "move it by more") for name in ("l0", "l1", "l2_squared", "linf")),
    (set_to("mechanism", "discrete_laplace"), "of another kind"),
    (set_to("step", "1/7"), "of another kind"),
    (set_to("form", [12, 3, 2]), "of another kind"),
    (set_to("adds", ["0", "2"]), "of another kind"),
    (set_to("law", {}), "of another kind"),
    (set_to("law", {"sigma_squared": "x"}), "of another kind"),
    (set_to("moved", {}), "of another kind"),
    (lambda details: details["draws"].pop(), "of another kind"),
    (lambda details: details.pop("draws"), "of another kind"),
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_a_stream_that_cannot_go_on_says_so(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above all one that an individual is now known to move by more than was paid for."""
    change, why = CHANGES[number]
    place = tmp_path / "b.db"
    first = opened(place, SPENDS[0])
    another_version(monkeypatch, 3)
    again = opened(place, SPENDS[0])
    kept = first._opened.kept
    assert kept is not None
    details = json.loads(kept.details)
    change(details)
    changed = replace(first._opened, kept=replace(kept, details=json.dumps(details)))
    asked = replace(again._asked, prepared=prepared_now(place))
    asked.as_opened(first._opened)
    with pytest.raises(dp.LedgerError, match=why):
        asked.as_opened(changed)


def prepared_now(place: Path) -> Prepared:
    """As this version plans it, whatever was kept."""
    session = dp.Session(rho=1)
    frame = session.protect(ROWS, unit=dp.Rows(), name="visits", bounds={"x": (0, 16)})
    query = frame.group_by("key", keys=["a", "b"]).agg(
        dp.count().alias("n"), pl.col("x").dp_sum().alias("s")
    )
    stream = session.stream("visits", query, by="day", start=START, periods=12, rho="0.1")
    return stream._asked.prepared


def test_streams_of_earlier_versions_have_one_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They kept nothing: the same plan opens them, and no other."""
    place = tmp_path / "b.db"
    real = StreamOpening.draft

    def without(self: StreamOpening, *given: Any) -> Draft:
        return real(replace(self, kept=None, types=None), *given)

    with monkeypatch.context() as patched:
        patched.setattr(StreamOpening, "draft", without)
        opened(place, SPENDS[0]).release(day(0))
    ((why,),) = sql(place, "SELECT why FROM records WHERE act = 'stream'")
    assert json.loads(why).keys() == {"stream", "definition", "periods"}
    opened(place, SPENDS[0]).release(day(1))
    another_version(monkeypatch, 3)
    with pytest.raises(dp.LedgerError, match="opened with another"):
        opened(place, SPENDS[0])
    verify(place)
