"""Sentences of plans in plainer words.

The sentences that a plan stores are part of its fingerprint, which approvals refer to, so they stay
unchanged. `reword` replaces them when a plan is shown. This also works for old documents, and no
approval is lost.
"""

from __future__ import annotations

import re
from typing import Final

_BETTER: Final = tuple(
    (re.compile(pattern), better)
    for pattern, better in (
        (
            r"drawn together with ([^:]+?): ([\d.]+) times less noise than by itself",
            r"shares its noise with \1: \2 times less noise than if released alone",
        ),
        (
            r"drawn together with ([^:]+?), which err less for it: ([\d.]+) times more noise than "
            r"by itself",
            r"shares its noise with \1, which get less noise: \2 times more noise than if "
            r"released alone",
        ),
        (
            r"([\d.]+) times more noise than if the others, which err less for it, were not drawn "
            r"together",
            r"\1 times more noise than if the others did not share theirs, which gives them less",
        ),
        (
            r"([\d.]+) times (less|more) error than by itself",
            r"\1 times \2 error than if released alone",
        ),
        (r", so that others err less", ", so that other outputs have smaller errors"),
        (
            r"errs less than (\d+) choices that share the cost",
            r"has a smaller error than \1 choices that share the cost",
        ),
        (r"than (\d+ )?choices apart", r"than \1separate choices"),
        (
            r"one number by itself, of individuals that are weighed",
            "one number, of weighed individuals",
        ),
        (r"pure DP knows no Gaussian noise", "Gaussian noise needs a delta"),
        (
            r"by L2, less noise here than Laplace by L1",
            "Gaussian noise by L2 is smaller here than Laplace noise by L1",
        ),
        (
            r"nothing tells how many do\b",
            "the result does not show how many values are clamped",
        ),
        (
            r"nothing tells how many rows are dropped",
            "the result does not show how many rows are dropped",
        ),
        (r"nothing tells (by )?how much( does)?\b", r"the result does not show \1how much"),
        (r"dropped tells the noisy share", "the column dropped is the noisy share"),
        (
            r"decides nothing here: what holds without it is as tight",
            "changes nothing here: another limit is as tight",
        ),
        (r"decides that in the end one individual has", "so one individual has"),
        (r"sums of (\d+) neighbours each", r"added up in runs of \1 neighbours"),
        (
            r"; for each of them a sum of it and all before, of which the k-th last counts "
            r"binom\(2k, k\) / 4\^k, in whole parts of 2\^16 \(square root factorisation\)",
            "; running sums with falling weights (square root factorisation)",
        ),
        (
            r"one sum of all periods so far, of which the k-th last counts binom\(2k, k\) / 4\^k, "
            r"in whole parts of 2\^16 \(square root factorisation\)",
            "one sum of all periods so far with falling weights (square root factorisation)",
        ),
        (r"; each by itself\b", "; each separately"),
        (r"each group by itself is made to rise", "each group is made to rise separately"),
        (r"clamped each by itself", "clamped separately"),
        (r"\bby itself\b", "separately"),
        (
            r"its running total is sums of what periods are said to have",
            "the running total adds the published numbers of the periods",
        ),
        (
            r"moved towards the mean of all groups by as much as its noise is above their spread, "
            r"and so biased: groups come out more alike than they are, most of all small ones, and "
            r"one whose noisy count is below 1 gets the mean of all",
            "moved towards the mean of all groups where its noise is above their spread, and so "
            "biased: groups, small ones most of all, look more alike than they are. A group with "
            "a noisy count below 1 gets the mean of all",
        ),
        (
            r"; null where the total below the line is within",
            ". It is null where the denominator is within",
        ),
        (
            r", of which one individual is in its first ones: its rows must",
            ": one individual is in the first of its parts. Its rows must",
        ),
        (
            r"; use dp_ratio, which clamps both by one factor, or bounds that nearly nobody "
            r"exceeds",
            ". Use dp_ratio, which clamps both by one factor, or bounds that few people exceed",
        ),
        (r"; so many of these as limits allow", ", as many as limits allow"),
        (r"rows of nobody are dropped", "rows without an individual are dropped"),
        (
            r"text file, where one record can make a query fail after it was charged, change how "
            r"others are read, or have changed a type that was inferred; protect the path itself "
            r"with a schema: session",
            "text file. One record can make a query fail after the charge, change how others are "
            "read, or have changed an inferred type. Protect the path with a schema: session",
        ),
        (
            r"leave out groups(.*) that rounds before found",
            r"leave out groups\1 found in earlier rounds",
        ),
        (r"\bpublic frame of 1 rows\b", "public frame of 1 row"),
        (
            r"rows meet rows of the same individual only, whose numbers multiply",
            "a person's rows meet only rows of the same person: their numbers are multiplied",
        ),
        (
            r"a promise of the data owner\b",
            "promised where protect was called",
        ),
        (r"null too unless it is a key", "and null unless it is a key"),
        (r"whatever is added up later", "all later totals"),
        (r"also from all later totals", "and missing from later totals"),
    )
)
_UNBIASED: Final = re.compile(r"\bunbiased\b(; )?")


def reword(sentence: str, *, biased: bool = False) -> str:
    """A sentence of a plan in plainer words, without the word "unbiased" for `biased` results."""
    for pattern, better in _BETTER:
        sentence = pattern.sub(better, sentence)
    return _UNBIASED.sub("", sentence).strip() if biased else sentence
