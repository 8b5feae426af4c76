"""Notes of plans about ratios of clamped totals."""

from __future__ import annotations

from collections.abc import Iterator

from dpframe.aggregates.query import Output, Query
from dpframe.core.tree import Call, Tree, column_names


def ratio_warnings(query: Query) -> Iterator[str]:
    """Warnings for outputs that divide two clamped totals of individuals. If they are clamped
    separately, the two lose different shares, and the ratio is that of neither all nor some
    individuals.
    """
    biased = [output.name for output in query.outputs if _divides_totals(output)]
    if biased:
        verb = "is a ratio" if len(biased) == 1 else "are ratios"
        yield (
            f"{' and '.join(biased)} {verb} of totals of individuals that are clamped each by "
            "itself, which biases it where one of the two is clamped more than the other; use "
            "dp_ratio, which clamps both by one factor, or bounds that nearly nobody exceeds"
        )


def _divides_totals(output: Output) -> bool:
    """Whether totals that are clamped stand above and below a line."""
    if output.post_tree is None:
        return False
    clamped = {
        place
        for place, aggregate in output.aggregates.items()
        if any(clamp.per_unit and clamp.biases for clamp in aggregate.clamps)
    }
    return any(
        all(clamped & {*column_names(arg)} for arg in call.args)
        for call in _calls(output.post_tree)
        if call.operation.name == "truediv"
    )


def _calls(tree: Tree) -> Iterator[Call]:
    if isinstance(tree, Call):
        yield tree
        for arg in tree.args:
            yield from _calls(arg)
