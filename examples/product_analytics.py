"""Product analytics that protect users, who have any number of events each.

    python examples/product_analytics.py

The events are made up: 20,000 users over eight weeks, most with a few events and some with
hundreds. Neighbouring tables differ in all events of one user, so limits are needed: on the groups
that a user counts in, and on what a user adds to one. The script releases

1. users who are active in each week, and how many of the first week's users come back,
2. revenue per plan, where a user's payments are added up before they are clamped,
3. features without listed keys, with their users,

and then compares, for clamps of different sizes, what they leave out with the noise they need.
"""

from __future__ import annotations

import numpy as np
import polars as pl

import dpframe as dp

PLANS = ["free", "basic", "pro"]
WEEKS = range(8)
CLAMPS = [20, 50, 100, 200, 300, 500, 700, 1000]


def main() -> None:
    """Release and compare."""
    events = made_up_events()
    session = dp.Session(epsilon=4, delta=1e-7, name="product")
    users = session.protect(events, unit="user")
    print(f"{events.height:,} events of {events['user'].n_unique():,} users\n")
    print(users.explain_unit())

    show("Active users by week", active(users), epsilon=1)
    show("Of those who came in week 0", returning(users), epsilon=1)
    show("Revenue by plan, in euros", revenue(users), epsilon=1)
    show("Features that enough users share", features(users), epsilon=1, delta=1e-7)
    print(f"\n{session}")

    print("\nWhat a clamp on a user's payments leaves out, and the noise at epsilon 0.1, in euros")
    print("(from the table itself: possible because the users are made up)\n")
    print_table(bias_and_noise(events))


def active(users: dp.PrivateFrame) -> dp.PrivateQuery:
    """A user counts once a week: eight public weeks are limit enough."""
    return users.group_by("week", keys=WEEKS).agg(users=dp.n_unique("user"))


def returning(users: dp.PrivateFrame) -> dp.PrivateQuery:
    """Retention: users whose first row below is of week 0, in each week after it."""
    first = users.filter(pl.col("week") == 0).select("user").limit_rows(1)
    return users.join(first).group_by("week", keys=WEEKS).agg(back=dp.n_unique("user"))


def revenue(users: dp.PrivateFrame) -> dp.PrivateQuery:
    """A user has one plan; 300 euros in eight weeks are plenty for nearly all."""
    return (
        users.limit_groups(1, by="plan")
        .group_by("plan")  # an Enum: its categories are public
        .agg(
            users=dp.n_unique("user"),
            revenue=dp.sum("paid", (0, 300), per="unit"),
            each=dp.mean("paid", (0, 300), per="unit"),
        )
    )


def features(users: dp.PrivateFrame) -> dp.PrivateQuery:
    """There is no list of them, so those with enough users appear."""
    return users.limit_groups(3, by="feature").group_by("feature").agg(users=dp.n_unique("user"))


def bias_and_noise(events: pl.DataFrame, epsilon: float = 0.1) -> pl.DataFrame:
    """For revenue per plan, by clamp: bias and noise of all plans together, and their sum."""
    paid = events.group_by("plan", "user").agg(pl.col("paid").sum())["paid"]
    schema = dp.Session(epsilon=1e6).protect(events.clear(), unit="user")
    grouped = schema.limit_groups(1, by="plan").group_by("plan")
    rows = []
    for clamp in CLAMPS:
        plan = grouped.agg(paid=dp.sum("paid", (0, clamp), per="unit")).plan(epsilon=epsilon)
        noise = plan.accuracy("paid", simultaneous=True)
        bias = float((paid - paid.clip(0, clamp)).sum())
        rows.append({"clamp": clamp, "left out": bias, "noise": noise, "both": bias + noise})
    least = pl.when(pl.col("both") == pl.col("both").min()).then(pl.lit("<- least"))
    euros = pl.col("left out", "noise", "both").round(0).cast(pl.Int64)
    return pl.DataFrame(rows).with_columns(euros, least.otherwise(pl.lit("")).alias(""))


def made_up_events(users: int = 20_000) -> pl.DataFrame:
    """Activity of users is log-normal; payments go with the plan."""
    draw = np.random.default_rng(1)  # the same table each time: it is made up, and no noise
    events = np.ceil(draw.lognormal(1.6, 1.1, users)).astype(np.int64)
    user = np.repeat(np.arange(users), events)
    start = np.repeat(draw.integers(0, 6, users) * (draw.random(users) < 0.6), events)
    plan = np.repeat(draw.choice(3, users, p=[0.7, 0.2, 0.1]), events)
    week = start + draw.geometric(0.35, user.size) - 1
    feature = draw.zipf(1.6, user.size) % 5000
    price = np.round(draw.gamma(2.0, 1.5, user.size) * np.array([0, 1, 4])[plan], 2)
    return pl.DataFrame(
        {
            "user": user,
            "week": week,
            "plan": pl.Series(np.array(PLANS)[plan]).cast(pl.Enum(PLANS)),
            "feature": pl.Series(feature).cast(pl.String).str.zfill(4).str.replace("^", "f"),
            "paid": price,
        }
    ).filter(pl.col("week") < len(WEEKS))


def show(title: str, query: dp.PrivateQuery, epsilon: float, delta: float = 0) -> None:
    """Release, with intervals."""
    print(f"\n{title}\n")
    print_table(query.collect(epsilon=epsilon, delta=delta, interval=0.95))


def print_table(frame: pl.DataFrame) -> None:
    """Print at most 12 rows, without types."""
    with pl.Config(
        tbl_rows=12,
        tbl_cols=12,
        tbl_width_chars=120,
        tbl_formatting="NOTHING",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        float_precision=2,
    ):
        print(frame)


if __name__ == "__main__":
    main()
