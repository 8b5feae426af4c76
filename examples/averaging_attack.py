"""Try to average the noise away, by running the same query again and again.

    python examples/averaging_attack.py

Noise has mean zero, so the average of 10,000 noisy counts is the exact count. That works only
if the same budget can be spent 10,000 times. The script tries it

1. with a new budget for each answer, which a session exists to prevent,
2. against a budget that is added up in epsilon,
3. against a budget of the same strength that is added up in rho (zCDP), where more answers fit,

and then computes the best that averaging could ever do within the budget.
"""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import polars as pl

import dpframe as dp

DATA = Path(__file__).parent / "data" / "adult.parquet"
ATTEMPTS = 10_000
BUDGET = dp.ApproxDP(1, 1e-8)
EACH = 0.01
"""Epsilon of each answer from one budget: noise of scale 100."""
CARELESS, QUESTIONS = 0.1, 1_000
"""Epsilon of each answer with a new budget, and the number of such answers."""


def main() -> None:
    """Attack three times, then compute."""
    people = pl.read_parquet(DATA)
    exact = people.filter(education="Doctorate", sex="Female").height
    print(f"The secret: {exact} women with a doctorate.")

    print(f"\n1. Epsilon {CARELESS} each, from a new budget each time")
    careless = dp.Session(epsilon=QUESTIONS * CARELESS)  # stands for as many sessions
    answers = attack(careless, people, QUESTIONS, CARELESS)
    for n in (1, 10, 100, QUESTIONS):
        average = sum(answers[:n]) / n
        print(f"   average of {n:>5,}: {average:6.1f}   off by {abs(average - exact):4.1f}")
    print(f"   spent: {careless.spent.words()}, which is no protection")

    print(f"\n2. Epsilon {EACH} each, from one budget of {BUDGET.words()}, added up")
    report(attack(dp.Session(BUDGET), people, ATTEMPTS, EACH), exact)

    print("\n3. The same, added up in rho")
    report(attack(dp.Session(BUDGET, composition="zcdp"), people, ATTEMPTS, EACH), exact)

    print(f"\nWhat {ATTEMPTS:,} answers within the budget would give, from plans alone")
    print("   divided among         one answer, 95% error      average of all, 95% error")
    for n in (1, 100, ATTEMPTS):
        for name in ("epsilon", "rho"):
            one, average = best(n, in_rho=name == "rho")
            print(f"   {n:>6,} in {name:<8} {one:>23,.0f} {average:>27,.1f}")
    print("Averaging gains nothing. In sums of epsilon it loses: run the query once. In rho, with")
    print("Gaussian noise, the number of runs makes no difference: all answers are worth one.")


def attack(session: dp.Session, people: pl.DataFrame, attempts: int, epsilon: float) -> list[int]:
    """Run the query until the budget refuses, and keep every answer."""
    secret = session.protect(people, unit=dp.Rows())
    women = secret.filter(pl.col("education") == "Doctorate", pl.col("sex") == "Female")
    answers: list[int] = []
    for _ in range(attempts):
        try:
            answers.append(women.dp_count().collect(epsilon=epsilon).item())
        except dp.BudgetExceeded as refusal:
            print(f"   question {len(answers) + 1:,} is refused: {refusal.what.partition(':')[0]}")
            break
    return answers


def report(answers: list[int], exact: int) -> None:
    """Print the average of the answers and its error."""
    n, average = len(answers), sum(answers) / len(answers)
    print(f"   {n} answers, average {average:.1f}, off by {abs(average - exact):.1f};", end=" ")
    print(f"of 20 such attacks 19 are off by {1.96 * 100 * sqrt(2 / n):.0f} at most")


def best(n: int, in_rho: bool) -> tuple[float, float]:
    """The 95% errors of one of `n` equal answers, and of their average.

    This uses plans only, so it needs no data.
    """
    session = dp.Session(BUDGET, composition="zcdp" if in_rho else "sum")
    count = session.protect(pl.LazyFrame(schema={"x": pl.Int64}), unit=dp.Rows()).dp_count()
    share = session.remaining.main / n
    answer = (count.plan(rho=share) if in_rho else count.plan(epsilon=share)).releases[0]
    gaussian = answer.mechanism == "discrete_gaussian"
    deviation = answer.scale * (1 if gaussian else sqrt(2))
    one = answer.accuracy(0.95)
    return one, one if n == 1 else 1.96 * deviation / sqrt(n)


if __name__ == "__main__":
    main()
