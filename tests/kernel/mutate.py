"""Random single changes of plans that hold.

`python -m tests.kernel.mutate --number 100000 --seed 1` changes plans of `generate`, and prints how
many changed plans the kernel refuses, how many it accepts, and each accepted plan in which the
second judge finds more lost than stated. An exception other than `Refused` is a failure, too.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any, Literal, get_args, get_origin, get_type_hints

from dpframe.kernel import Plan, Refused, verify
from dpframe.kernel import plan as p
from tests.kernel.generate import PLENTY, highest, plans, with_costs
from tests.kernel.oracle import Meaningless, judge, nodes

KINDS = (
    {p.Map, p.Filter, p.Part, p.Without, p.KeepRows, p.KeepGroups, p.Weigh, p.OneEach, p.Gather},
    {p.One, p.Valued, p.Placed, p.Squared, p.Paired, p.Distinct, p.People, p.PersonRows},
    {p.DistinctPersons, p.Distinct, p.People, p.One},
    {p.PersonTotal, p.One, p.People, p.PersonRows, p.Placed},
    {p.Progression, p.Ratios},
    {p.Edges, p.Values, p.Points, p.Between, p.UpTo, p.Whole, p.OfPeople},
    {p.Exact, p.Laplace, p.Gaussian, p.Box, p.Staircase, p.Geometric, p.Threshold, p.Response},
    {p.Geometric, p.Threshold, p.WeighedThreshold},
    {p.Listed, p.Found},
    {p.Exponential, p.PermuteAndFlip, p.NoisyMax, p.Laplace, p.Gaussian},
    {p.Choice, p.Rank, p.Ranks, p.Levels, p.Running, p.Vector, p.Appear, p.Reports, p.Nights},
    {p.Root, p.Tree},
    {p.Union, p.Meet},
)
"""Kinds of node that stand in the same places."""


def mutants(plan: Plan, rng: random.Random) -> Iterator[Plan]:
    """The same plan after one change, again and again."""
    places = [place for place in paths(plan) if place]
    known = {type(node): node for node in nodes(plan)}
    while True:
        path = rng.choice(places)
        old = at(plan, path)
        new = change(old, plan, known, rng)
        if new is None or new == old:
            continue
        yield put(plan, path, new)


def paths(value: object, here: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all parts of a value."""
    yield here
    if isinstance(value, tuple):
        for place, item in enumerate(value):
            yield from paths(item, (*here, place))
    elif is_dataclass(value):
        for part in fields(value):
            yield from paths(getattr(value, part.name), (*here, part.name))


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    """The part in a place."""
    for step in path:
        value = value[step] if isinstance(step, int) else getattr(value, step)
    return value


def put(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """The value with another part in a place."""
    if not path:
        return new
    step, *rest = path
    if isinstance(step, int):
        return (*value[:step], put(value[step], tuple(rest), new), *value[step + 1 :])
    return replace(value, **{step: put(getattr(value, step), tuple(rest), new)})


def require_types(value: Any, kind: Any) -> None:
    """Refuse values of other types, as `read` does."""
    origin, options = get_origin(kind), get_args(kind)
    if origin is Literal:
        right = value in options
    elif origin is tuple and isinstance(value, tuple):
        each = [options[0]] * len(value) if options[-1] is ... else options
        right = len(each) == len(value)
        for item, option in zip(value, each, strict=False):
            require_types(item, option)
    elif options:
        fits = [
            o
            for o in options
            if type(value) in (o, get_origin(o)) or (get_origin(o) and isinstance(value, str))
        ]
        right = bool(fits)
        if fits:
            require_types(value, fits[0])
    else:
        right = type(value) is kind
        if right and is_dataclass(value):
            for name, hint in hints_of(kind).items():
                require_types(getattr(value, name), hint)
    if not right:
        raise Refused("a value of another type")


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """The types of the fields of a node."""
    return get_type_hints(kind)


def change(old: Any, plan: Plan, known: dict[type, Any], rng: random.Random) -> Any:
    """Another value in place of one; None where there is none."""
    match old:
        case bool():
            return not old
        case int():
            others = (0, 1, 2, rng.randrange(6), old + 1, old - 1, old * 2, old // 2, -old)
            return rng.choice((*others, old * 1000))
        case Fraction():
            near = (old / 2, old * 2, old * Fraction(99, 100), old + 1, -old, old / 1000)
            return rng.choice((Fraction(), Fraction(1), old * Fraction(101, 100), *near))
        case str():
            return change_text(old, plan, rng)
        case None:
            return rng.choice([v for v in ("x", "g", "t", *known.values()) if v is not None])
        case tuple():
            return change_list(old, plan, rng)
    return change_node(old, plan, known, rng)


def change_text(old: str, plan: Plan, rng: random.Random) -> str:
    """Another word of the same plan, or of the grammar."""
    words = {w for n in nodes(plan) for w in vars(n).values() if isinstance(w, str)}
    names = {n for f in plan.frames if isinstance(f, p.Scan) for n, _ in f.columns}
    for frame in plan.frames:
        if isinstance(frame, (p.Map, p.Gather)):
            names |= {
                name for name, _ in (*getattr(frame, "columns", ()), *getattr(frame, "by", ()))
            }
    how = {"inner", "left", "semi", "anti"}
    lists = (
        {"add-remove", "change-one"},
        {"epsilon", "rho", "mu_squared"},
        {"sum", "zcdp", "numerical"},
        {"1d", "1w", "1mo", "1q", "1y"},
        how,
    )
    for others in (*lists, {"cells", "groups", "tables"}):
        if old in others:
            return rng.choice(sorted(others))
    return rng.choice(sorted(names if names and rng.random() < 0.7 else words))


def change_list(old: tuple[Any, ...], plan: Plan, rng: random.Random) -> Any:
    """One item left out, doubled, exchanged or moved; of steps, those later look further back."""
    if not old or (len(old) == 2 and isinstance(old[0], str) and not isinstance(old[1], int)):
        return None
    place, other = rng.randrange(len(old)), rng.randrange(len(old))
    match rng.randrange(4):
        case 0:
            return old[:place] + old[place + 1 :]
        case 1:
            return (*old, old[place])
        case 2:
            swapped = [*old]
            swapped[place], swapped[other] = old[other], old[place]
            return tuple(swapped)
    return (*old[:place], old[other], *old[place + 1 :])


def change_node(old: Any, plan: Plan, known: dict[type, Any], rng: random.Random) -> Any:
    """Another node, of the same plan or of another kind with the same fields; a step left out."""
    if hasattr(old, "input") and rng.random() < 0.4:
        return drop_step(old)
    alike = {kind for kinds in KINDS if type(old) in kinds for kind in kinds}
    if isinstance(old, (p.Col, p.Lit, p.Call)):
        rows = [node for node in nodes(plan) if isinstance(node, (p.Col, p.Lit, p.Call))]
        return rng.choice([*rows, p.Call("other", (p.Col("x"),), "[]")])
    there = [known[kind] for kind in alike if kind in known and kind is not type(old)]
    made = [new for kind in alike if (new := of_kind(kind, old, rng)) is not None]
    if isinstance(old, (p.Table, p.Draw, p.Scan, p.Listed, p.Grid, p.Rows, p.Person)):
        there = [node for node in nodes(plan) if type(node) is type(old)]
    choices = [*there, *made]
    return rng.choice(choices) if choices else None


def of_kind(kind: type, old: Any, rng: random.Random) -> Any:
    """A node of a kind with the fields of another one, where these suffice."""
    defaults = {
        "norm": Fraction(2),
        "n": 1,
        "first": None,
        "by": "t" if kind is p.Nights else (),
        "most": 2,
        "cells": old if isinstance(old, (p.Edges, p.Values, p.Points, p.Between, p.UpTo)) else None,
        "of": old if isinstance(old, (p.Placed, p.Squared, p.Paired)) else None,
        "scale": Fraction(2),
        "sigma_squared": Fraction(2),
        "fine": 1,
        "shift": 1,
        "epsilon": Fraction(1, 2),
        "rate": Fraction(1, 2),
        "width": 2,
        "inner": 1,
        "rows": "x" if kind is p.OneEach else 1,
        "listed": None,
        "groups": "g",
        "fullest": "h",
        "ends": (),
        "draw": 0,
        "least": 5,
        "row": None,
        "rounds": ((9000, Fraction(4096**2)),) if kind is p.WeighedThreshold else 1,
        "among": rng.choice(("cells", "groups", "tables")),
        "tables": (getattr(old, "table", 0),),
        "table": getattr(old, "tables", (0,))[0] if getattr(old, "tables", (0,)) else 0,
        "quantile": Fraction(1, 2),
        "quantiles": (Fraction(1, 3), Fraction(1, 2)),
        "column": (1, 1),
        "branching": 2,
        "levels": 2,
        "every": rng.choice(("1d", "1w")),
        "start": "2024-12-30",
        "periods": 3,
        "dtype": "Date",
        "sums": p.Tree(2, 1),
    }
    values: dict[str, Any] = {}
    for part in fields(kind):
        if hasattr(old, part.name):
            values[part.name] = getattr(old, part.name)
        elif part.name in defaults:
            values[part.name] = defaults[part.name]
        else:
            return None
    if "cells" in values and values["cells"] is None:
        return None
    if "of" in values and values["of"] is None:
        return None
    if kind is not p.PersonRows and values.get("row", 0) is None:
        return None
    return None if kind is type(old) else kind(**values)


def drop_step(old: Any) -> Any:
    """A step that keeps all rows and columns in place of this one."""
    return p.Filter(old.input, ()) if not isinstance(old, p.Filter) else None


@dataclass
class Outcome:
    """What came of many changed plans."""

    refused: int = 0
    accepted: int = 0
    restated: int = 0
    meaningless: Counter[str] = field(default_factory=Counter)
    unsafe: list[tuple[Plan, str]] = field(default_factory=list)
    crashed: list[tuple[Plan, str]] = field(default_factory=list)

    def judge(self, plan: Plan, worlds: int, changes: int, seed: int) -> None:
        """Let the second judge look at a plan that was accepted."""
        try:
            verdict = judge(plan, worlds, changes, seed)
        except Meaningless as why:
            self.meaningless[str(why)] += 1
            return
        if verdict.unsafe:
            self.unsafe.append((plan, f"{verdict.share:.4g} of {verdict.why}"))


def run(
    number: int,
    seed: int,
    worlds: int,
    changes: int,
    each: int = 10,
    only: frozenset[str] = frozenset(),
) -> Outcome:
    """Change plans and judge what is accepted. Plans that are refused as they cost more than they
    state are judged, too, when they state it. With `only` all plans have one of these kinds of
    node, or law of a choice.
    """
    outcome = Outcome()
    rng = random.Random(seed)
    done = 0
    for plan in plans(seed):
        if only and not only & named(plan):
            continue
        for mutant in islice(mutants(plan, rng), each):
            if done == number:
                return outcome
            done += 1
            try:
                require_types(mutant, Plan)
                verify(mutant)
            except Refused as refused:
                outcome.refused += 1
                if "more than the plan states" not in str(refused):
                    continue
                higher = restated(mutant)
                if higher is not None:
                    outcome.restated += 1
                    outcome.judge(higher, worlds, changes, seed * 1000 + done)
                continue
            except Exception as error:
                outcome.crashed.append((mutant, repr(error)))
                continue
            outcome.accepted += 1
            outcome.judge(mutant, worlds, changes, seed * 1000 + done)
    return outcome


def named(plan: Plan) -> set[str]:
    """The names of the nodes of a plan, and of its draws with their laws."""
    names = {type(node).__name__ for node in nodes(plan)}
    draws = [draw for draw in nodes(plan) if isinstance(draw, p.Draw)]
    return names | {f"{type(draw.what).__name__}-{type(draw.law).__name__}" for draw in draws}


def restated(plan: Plan) -> Plan | None:
    """The plan with the costs that its draws have, None where it is refused for other reasons."""
    draws = tuple(highest(draw, plan.measure) for draw in plan.draws)
    cost, delta = PLENTY * len(draws), Fraction(len(draws) + 1)
    try:
        return with_costs(replace(plan, draws=draws, cost=cost, delta=delta, options=()))
    except Refused:
        return None


def show(plan: Plan) -> str:
    """A plan, one item a line."""
    lines = [f"{plan.neighbours}, {plan.measure} {plan.cost}"]
    for letter, items in (("F", plan.frames), ("T", plan.tables), ("D", plan.draws)):
        lines += [f"  {letter}{place} {item}" for place, item in enumerate(items)]
    lines += [f"  O{place} {show(option)}" for place, option in enumerate(plan.options)]
    return "\n".join(lines)


def shrink(plan: Plan, worlds: int = 60, changes: int = 60, tries: int = 300) -> Plan:
    """A smaller plan that is accepted, too, and unsafe."""
    rng = random.Random(1)
    for _ in range(tries):
        path = rng.choice([place for place in paths(plan) if place])
        old = at(plan, path)
        if isinstance(old, tuple) and old:
            cut = rng.randrange(len(old))
            new: Any = old[:cut] + old[cut + 1 :]
        elif isinstance(old, (p.Listed, p.Edges, p.Values, p.Points, p.Between, p.UpTo, p.Whole)):
            new = None
        elif path[0] == "frames" and len(path) == 2 and hasattr(old, "input"):
            new = p.Filter(old.input, ())
        else:
            continue
        smaller = put(plan, path, new)
        try:
            verify(smaller)
            if judge(smaller, worlds, changes, 7).unsafe:
                plan = smaller
        except Exception:
            continue
    return plan


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.kernel.mutate", description=__doc__)
    parser.add_argument("--number", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", type=int, default=15)
    parser.add_argument("--changes", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=[], help="such as Nights, or Rank-Laplace")
    chosen = parser.parse_args()
    only = frozenset(chosen.only)
    outcome = run(chosen.number, chosen.seed, chosen.worlds, chosen.changes, only=only)
    for why, found in (("unsafe", outcome.unsafe), ("crashed", outcome.crashed)):
        for plan, how in found[:40]:
            print(f"{why}: {how}\n{show(plan)}\n")
    print(f"refused {outcome.refused}, {outcome.restated} of them judged with higher costs")
    print(f"accepted {outcome.accepted}")
    print(f"unsafe {len(outcome.unsafe)}, crashed {len(outcome.crashed)}")
    print("accepted, and nobody can do what they say:", dict(outcome.meaningless.most_common(20)))


if __name__ == "__main__":
    main()
