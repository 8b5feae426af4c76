"""Which tests wait for the night."""

from __future__ import annotations

from pathlib import Path

from tests import tiers


def test_long_cases_wait_and_the_quickest_of_each_function_mostly_stays() -> None:
    durations = {f"c::many_{i}": 1.0 for i in range(15_000)}
    durations |= {"a::one[x]": 0.2, "a::one[y]": 0.15, "a::one[z]": 0.05}
    durations |= {"b::two": 2.0, "b::three": 4.0, "b::four[x]": 30.0, "b::four[y]": 0.15}
    durations |= {"tests.laws.c::five": 4.0, "tests.laws.c::six": 7.0, "tests.api.c::seven": 4.0}
    nightly = tiers.choose_nightly(durations, 1 / 150_000, 1 / 6_000, 1 / 3_000)
    elsewhere = {"a::one[x]", "a::one[y]", "b::three", "b::four[x]", "tests.api.c::seven"}
    assert nightly == elsewhere | {"tests.laws.c::six"}


def test_names_are_those_that_pytest_reports(tmp_path: Path) -> None:
    file = tmp_path / "durations.xml"
    case = '<testcase classname="tests.a.test_b" name="test_c[x/y]" time="{}"/>'
    file.write_text(f"<testsuite>{case.format(2)}{case.format('1.5')}</testsuite>")
    name = tiers.name_of("tests/a/test_b.py::test_c[x/y]")
    assert tiers.read_durations([file]) == {name: 1.5}


def test_each_test_is_in_one_shard() -> None:
    nodes = [f"tests/a.py::test_{i}" for i in range(1000)]
    parts = [{n for n in nodes if tiers.in_shard(n, f"{k}/4")} for k in range(1, 5)]
    assert sorted(n for part in parts for n in part) == sorted(nodes)
    assert min(map(len, parts)) > 200


def test_what_waits_for_the_night_is_there() -> None:
    """No list is kept of tests that are gone: their files still define them."""
    assert [name for name in tiers.nightly_names() if not tiers.is_defined(name)] == []
