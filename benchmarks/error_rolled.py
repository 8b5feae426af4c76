"""The gain of joint noise for the outputs of a roll-up, margin by margin.

    python benchmarks/error_rolled.py

Standard deviations of noise by the distributions that plans state, for a roll-up of 4 x 2 groups.
"separate" has noise for each margin of each output, "joint" is what dpframe releases, and "plain"
is a group-by of the finest groups alone, with the whole spend for one table.
"""

from __future__ import annotations

from typing import Any

import polars as pl
from error_joint import SPENDS, apart, session

import dpframe as dp
from dpframe.aggregates.error import PartError
from dpframe.aggregates.noise import Independent
from dpframe.aggregates.reconstructed_error import RebuiltError

KEYS: dict[str, list[Any]] = {"country": ["A", "B", "C", "D"], "sex": ["f", "m"]}
SCHEMA: dict[str, Any] = {"country": pl.String, "sex": pl.String, "pay": pl.Int64}
OUTPUTS: dict[str, dict[str, Any]] = {
    "n, sum and mean": {
        "n": dp.count(),
        "sum": dp.sum("pay", (0, 10)),
        "mean": dp.mean("pay", (0, 10)),
    },
    "n and sum": {"n": dp.count(), "sum": dp.sum("pay", (0, 10))},
    "two sums": {"sum": dp.sum("pay", (0, 10)), "more": dp.sum("pay", (-5, 5))},
}


def frame(spend: dict[str, Any]) -> dp.PrivateFrame:
    """A frame of no rows, which plans do not look at."""
    return session(spend).protect(pl.LazyFrame(schema=SCHEMA), unit=dp.Rows())


def rolled_up(spend: dict[str, Any], outputs: dict[str, Any]) -> dp.PrivateQuery:
    """Some outputs by both columns, by the first, and of all rows."""
    return frame(spend).group_by(dp.rollup("country", "sex"), keys=KEYS).agg(**outputs)


def deviations_by_set(plan: dp.Plan) -> dict[tuple[str, str], float]:
    """Of each output that is a number with noise, and each set of columns."""
    found = {}
    for output in plan.outputs:
        rule, used = output.error, [plan.releases[number] for number in output.releases]
        if isinstance(rule, RebuiltError) and isinstance(rule.inner, PartError):
            for kept in rule.sets:
                law = rule.noises([(r.noise, r.step, r.draw) for r in used], kept)  # type: ignore[misc]
                assert isinstance(law, Independent)
                ((noise, step),) = law.parts
                by = " and ".join(list(KEYS)[i] for i in kept)
                said = f"by {by}" if kept else "of all"
                found[output.name, said] = noise.variance() ** 0.5 * float(step)
        elif isinstance(rule, PartError):
            (release,) = used
            found[output.name, "by country and sex"] = (
                release.noise.variance() ** 0.5 * float(release.step)  # type: ignore[attr-defined]
            )
    return found


def main() -> None:
    """Print the table."""
    head = f"{'outputs':18}{'spend':13}{'output':8}{'set':22}"
    print(f"{head}{'separate':>9}{'joint':>10}{'gain':>7}{'plain':>9}")
    for name, outputs in OUTPUTS.items():
        for label, spend in SPENDS.items():
            query = rolled_up(spend, outputs)
            with apart():
                before = deviations_by_set(query.plan(**spend))
            now = deviations_by_set(query.plan(**spend))
            plain = deviations_by_set(
                frame(spend).group_by("country", "sex", keys=KEYS).agg(**outputs).plan(**spend)
            )
            for (output, of), found in now.items():
                gain = before[output, of] / found
                alone = f"{plain[output, of]:9.3g}" if (output, of) in plain else ""
                said = f"{name:18}{label:13}{output:8}{of:22}"
                print(f"{said}{before[output, of]:9.3g}{found:10.3g}{gain:7.2f}{alone}")


if __name__ == "__main__":
    main()
