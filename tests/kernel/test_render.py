"""The kernel says in plain English what a plan does: each node, and nothing that is not there."""

from __future__ import annotations

import ast
import inspect
import random
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.kernel import Refused, verify
from dpframe.kernel import plan as p
from dpframe.kernel import render as rendering
from dpframe.kernel.plan import read, write
from dpframe.kernel.render import render
from tests.kernel.generate import plans as generated
from tests.kernel.mutate import mutants
from tests.kernel.plans import plans

TEXTS = Path(__file__).parent / "texts"
GOLDEN = (
    "hull person epsilon",
    "cube rows rho",
    "noisy winners changed delta",
    "many draws person zcdp",
    "rounds person rho",
    "found limit person epsilon",
    "first days person rho",
)


@pytest.mark.parametrize("name", GOLDEN)
def test_texts_are_as_kept(name: str) -> None:
    path = TEXTS / f"{name.replace(' ', '_')}.txt"
    assert render(plans()[name]) + "\n" == path.read_text(encoding="utf-8"), (
        "a text changed; if that is meant: python -m tests.kernel.test_render"
    )


def test_every_node_is_rendered() -> None:
    """Each member of each closed set stands in a `match` of the renderer."""
    matched = {
        name.id
        for node in ast.walk(ast.parse(inspect.getsource(rendering)))
        if isinstance(node, ast.MatchClass)
        for name in ast.walk(node.cls)
        if isinstance(name, ast.Name)
    }
    unions = (p.Unit, p.Row, p.Frame, p.Keys, p.Cells, p.Adds, p.What, p.Law, p.Root | p.Tree)
    members = {member.__name__ for union in unions for member in get_args(union)}
    assert len(members) > 60
    assert members <= matched


def test_each_plan_has_a_sentence_for_each_item() -> None:
    for plan in plans().values():
        lines = [
            line for line in render(plan).splitlines() if not line.startswith(("  ", "option"))
        ]
        items = [*plan.frames, *plan.tables, *plan.draws]
        assert len(lines) == len(items) + 2 + bool(plan.options)
        assert all(line.endswith(".") for line in lines)


def _numbers_of(plan: p.Plan) -> p.Plan:
    """The plan where vectors name each table once: of one that is named twice, several matrices
    give the same numbers.
    """
    draws = []
    for draw in plan.draws:
        if isinstance(what := draw.what, p.Vector):
            places = dict.fromkeys(what.tables)
            matrix = tuple(
                tuple(
                    sum(n for n, one in zip(row, what.tables, strict=True) if one == place)
                    for place in places
                )
                for row in what.matrix
            )
            draw = replace(draw, what=replace(what, tables=tuple(places), matrix=matrix))
        draws.append(draw)
    return replace(plan, draws=tuple(draws))


def test_other_plans_have_other_texts() -> None:
    """What a reviewer reads is what is verified: no change of a plan leaves its text as it was."""
    rng, seen = random.Random(3), 0
    sources = [*plans().values(), *islice(generated(5), 150)]
    for plan in sources:
        text = render(plan)
        for mutant in islice(mutants(plan, rng), 10):
            with suppress(Refused):
                read(write(mutant))  # refuses values of other types
                assert render(mutant) != text or _numbers_of(mutant) == _numbers_of(plan)
                seen += 1
    assert seen > 500


@given(st.text(max_size=20), st.text(max_size=20))
def test_names_cannot_look_like_something_else(name: str, other: str) -> None:
    def named(column: str, value: str) -> str:
        row: p.Row = p.Call("eq", (p.Col(column), p.Lit("String", value)), "[]")
        scan = p.Scan("s", ((column, "String"),), p.Rows(1), None)
        table = p.Table(1, None, None, p.One())
        what = p.Vector((0,), ((1,),), (), 1, total=False)
        draw = p.Draw(what, p.Laplace(Fraction(1), 1), Fraction(1), Fraction(0))
        frames = scan, p.Filter(0, (row,))
        rest = (table,), (draw,), "epsilon", Fraction(1), Fraction(0), ()
        return render(p.Plan("add-remove", frames, *rest))

    text = named(name, other)
    assert len(text.splitlines()) == 6
    assert text.isprintable() or "\n" in text
    assert (named(other, name) == text) == (name == other)
    assert named(name, other + "x") != text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(12), "12"),
        (Fraction(-1, 8), "-0.125"),
        (Fraction(1, 10**7), "1e-7"),
        (Fraction(1, 3), "1/3 (about 0.333333)"),
        (Fraction(10**30 + 1), "1000000000000000000000000000001"),
    ],
)
def test_numbers_are_exact(number: Fraction, text: str) -> None:
    assert rendering._number(number) == text


def test_a_number_of_any_length_has_a_short_text() -> None:
    one, other = Fraction(10**4000 + 1), Fraction(10**4000 + 3)
    assert len(rendering._number(one)) < 150
    assert rendering._number(one) != rendering._number(other)
    assert rendering._number(1 / one) != rendering._number(1 / other)


def test_an_expression_that_is_nested_too_deeply_is_refused() -> None:
    row: p.Row = p.Col("x")
    for _ in range(100_000):
        row = p.Call("abs", (row,), "[]")
    plan = plans()["sum rows epsilon"]
    deep = replace(plan, frames=(*plan.frames, p.Filter(0, (row,))))
    for look in (verify, render):
        with pytest.raises(Refused, match="nested too deeply"):
            look(deep)


def main() -> None:
    """Write the texts that are kept."""
    TEXTS.mkdir(exist_ok=True)
    for name in GOLDEN:
        path = TEXTS / f"{name.replace(' ', '_')}.txt"
        path.write_text(render(plans()[name]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
