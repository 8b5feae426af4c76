"""Plans as Mermaid: every line has one of few forms, and names cannot leave their labels."""

from __future__ import annotations

import re

import polars as pl
import pytest

import dpframe as dp
from dpframe.core.tree import shorten, visible
from tests.golden.queries import QUERIES, SECRET, Golden

each = pytest.mark.parametrize("golden", QUERIES, ids=lambda golden: golden.name)
LABEL = r'"(?:[A-Za-z0-9 .,:=+/\'()\[\]_]|#\d+;|<br/>)*"'
RISK = rf">{LABEL}\]"
NODE = rf"(?:\[\({LABEL}\)\]|\[{LABEL}\]|\{{\{{{LABEL}\}}\}}|\(\[{LABEL}\]\))"
FORMS = (
    r"---",
    r'title: "[a-z0-9 .+-]+"',
    r"flowchart TD",
    r'  subgraph private\["private rows, which never come out"\]',
    r'  subgraph risks\["risks, to be decided on"\]',
    rf"    risk\d+{RISK}",
    r"  end",
    rf" +\w+{NODE}",
    r" +\w+ (?:-->|==>) \w+",
)
HOSTILE = [
    '"]; click source "javascript:alert(1)"',
    "x\n  end\n  y --> z",
    "%%{init: {}}%%",
    "#quot;#35;&lt;<b>",
    "1. a\n- b",
    "`_a_ **b**`",
    "\u202egnp",
    "𝕏 אבג",
    "end",
]


def nodes(diagram: str) -> dict[str, str]:
    """The label of each node, as Mermaid shows it."""
    found = re.findall(rf"^ +(\w+)\W+?({LABEL})\W+$", diagram, re.MULTILINE)
    return {name: shown(label) for name, label in found}


def shown(label: str) -> str:
    text = re.sub(r"#(\d+);", lambda number: chr(int(number[1])), label.replace("<br/>", "\n"))
    return text[1:-1].replace("\u200b", "")


def edges(diagram: str) -> list[tuple[str, str]]:
    return re.findall(r"^ +(\w+) (?:-->|==>) (\w+)$", diagram, re.MULTILINE)


def named(name: str) -> dp.Plan:
    rows = pl.LazyFrame(schema={name: pl.Int64, "s": pl.String})
    people = dp.Session(epsilon=1).protect(rows, dp.Rows(), name=name)
    kept = people.filter(pl.col("s") == name).group_by("s", keys=[name])
    return kept.agg(pl.col(name).dp_sum((0, 1)).alias(name)).plan(epsilon=1)


@each
def test_every_line_has_one_of_few_forms(golden: Golden) -> None:
    for line in golden.plan().explain("mermaid").split("\n"):
        assert any(re.fullmatch(form, line) for form in FORMS), line
        assert SECRET not in line


@each
def test_only_releases_leave_the_private_part(golden: Golden) -> None:
    plan = golden.plan()
    diagram = plan.explain("mermaid")
    risks = {f"risk{i + 1}" for i in range(len(plan.risks))}
    inside = set(nodes(diagram.split("  subgraph private")[1].split("\n  end\n")[0]))
    outside = set(nodes(diagram)) - inside - risks
    releases = {f"release{i + 1}" for i in range(len(plan.releases))}
    outputs = {f"output{i + 1}" for i in range(len(plan.outputs))}
    assert outside == releases | outputs
    assert len(inside) == 1 + len(plan.steps) + (plan.grouping is not None)
    assert [nodes(diagram)[f"risk{i + 1}"] for i in range(len(plan.risks))] == [
        shorten(visible(risk), 120) for risk in plan.risks
    ]
    links = edges(diagram)
    assert not risks & {name for link in links for name in link}
    assert {b for a, b in links if a in inside and b in outside} == releases
    assert {b for a, b in links if a in releases} == outputs
    assert all(a in inside or a in releases for a, _ in links)


@each
def test_releases_lead_to_the_outputs_that_use_them(golden: Golden) -> None:
    plan = golden.plan()
    diagram = plan.explain("mermaid")
    labels, links = nodes(diagram), edges(diagram)
    for number, release in enumerate(plan.releases, start=1):
        used = {labels[b].partition(" = ")[0] for a, b in links if a == f"release{number}"}
        assert used == set(release.users)
        assert labels[f"release{number}"].startswith(f"{release.name}: {release.aggregate}\n")


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_in_their_labels(name: str) -> None:
    honest, diagram = named("plain").explain("mermaid"), named(name).explain("mermaid")
    assert len(diagram.split("\n")) == len(honest.split("\n"))
    for line in diagram.split("\n"):
        assert any(re.fullmatch(form, line) for form in FORMS), line
    assert edges(diagram) == edges(honest)
    found = nodes(diagram)
    assert found["source"].startswith(visible(name) + "\n")
    assert found["release1"].startswith(visible(name) + ": sum\n")
    assert diagram.isascii()


@pytest.mark.parametrize("name", ["$$x^2$$", "ﬂ°°34¶ß", "$°$"])
def test_what_mermaid_would_take_for_its_own_is_parted(name: str) -> None:
    diagram = named(name).explain("mermaid")
    decoded = re.sub(r"#(\d+);", lambda number: chr(int(number[1])), diagram)
    assert not re.search(r"\$\$|ﬂ°|°°|¶ß", decoded)
    assert nodes(diagram)["source"].startswith(name + "\n")


def test_long_operations_are_shortened() -> None:
    people = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"a": pl.Int64}), dp.Rows())
    listed = people.filter(pl.col("a").is_in(list(range(1000, 2000))))
    label = nodes(listed.dp_count().explain(epsilon=1, format="mermaid"))["step1"]
    assert len(label) <= 120
    words = listed.dp_count().plan(epsilon=1).steps[0].words
    assert label == words or label.endswith("...")


def test_a_release_says_its_noise_and_its_cost() -> None:
    people = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"a": pl.Int64}), dp.Rows())
    found = nodes(people.dp_count().explain(epsilon="0.5", format="mermaid"))
    assert found["release1"].split("\n") == [
        "len: count",
        "discrete Laplace",
        "scale 2",
        "95%: ± 6",
        "epsilon 0.5",
    ]


def test_what_is_drawn_together_says_its_cost_once() -> None:
    people = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"a": pl.Int64}), dp.Rows())
    asked = people.agg(n=dp.count(), s=pl.col("a").dp_sum((0, 9)))
    found = nodes(asked.explain(epsilon="0.5", format="mermaid"))
    said = [found[f"release{number}"].split("\n")[-1] for number in (1, 2)]
    assert said == [
        "epsilon 0.5 for the whole vector",
        "part of the same vector, already paid",
    ]
