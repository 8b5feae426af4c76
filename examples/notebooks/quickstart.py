# %% [markdown]
# # The first ten minutes
#
# 32,561 people of a public census extract, one row each, as if they were private. You will protect
# them, look at a plan, release a table, and run out of budget.

# %%
import polars as pl

import dpframe as dp

census = dp.examples.adult()

# %% [markdown]
# ## 1. Protect
#
# A session has a budget. `protect` puts a frame under it and states whom to protect: here each row
# is one person. From now on all results carry noise.

# %%
session = dp.Session(epsilon=1.0, name="census")
people = session.protect(census, unit=dp.Rows())
session

# %% [markdown]
# Write Polars as usual, as long as each row depends on itself only. dpframe refuses steps that mix
# rows at once, and shows what to write instead:

# %%
workers = people.drop_nulls("hours_per_week").with_columns(
    overtime=(pl.col("hours_per_week") - 40).clip(0, 40)
)
try:
    workers.with_columns(older=pl.col("age") - pl.col("age").mean())
except dp.UnsupportedOperation as refusal:
    print(refusal)

# %% [markdown]
# ## 2. Plan
#
# A query does nothing until it is collected. You list its keys, because the groups that appear
# would reveal something too. The bounds of `overtime` follow from the clip above.

# %%
levels = ["HS-grad", "Bachelors", "Masters", "Doctorate"]
query = workers.group_by("education", keys=levels).agg(
    dp.count().alias("n"),
    dp.mean("overtime"),
)
plan = query.plan(epsilon=0.5)
print("n is within", plan.accuracy("n"), "in 95 of 100 cases")
print("overtime is within", round(plan.accuracy("overtime", count=400), 2), "in a group of 400")

# %% [markdown]
# ## 3. Explain
#
# A reviewer decides by this page. dpframe read no data for it. (`plan`, alone in a cell, shows
# the same in tables.)

# %%
print(query.explain(epsilon=0.5))

# %% [markdown]
# ## 4. Collect
#
# Now dpframe checks and charges the budget, then reads the data. `interval=` adds the ends of an
# interval to each number, at no cost. If you run the cell again, the noise is new, and less of the
# budget is left.

# %%
query.collect(epsilon=0.5, interval=0.95)

# %% [markdown]
# Since these data are public, we may look at the exact numbers for once:

# %%
exact = census.with_columns(overtime=(pl.col("hours_per_week") - 40).clip(0, 40))
exact.group_by("education").agg(pl.len(), pl.col("overtime").mean()).filter(
    pl.col("education").is_in(levels)
).sort("len", descending=True).collect()

# %% [markdown]
# ## 5. Histograms, medians, winners

# %%
people.dp_histogram("age", bins=[0, 20, 30, 40, 50, 60, 70, 120]).collect(epsilon=0.1)

# %%
people.agg(
    dp.median("age", (17, 90)).alias("median_age"),
    dp.argmax("workclass", candidates=["Private", "State-gov", "Local-gov", "Self-emp-inc"]),
).collect(epsilon=0.2)

# %% [markdown]
# ## 6. The budget
#
# Every query was charged. dpframe refuses a query that does not fit, and reads no data for it.
# If you know which error you can accept, state it, and dpframe spends as little as possible.

# %%
print(session.remaining)
try:
    query.collect(epsilon=0.5)
except dp.BudgetExceeded as refusal:
    print(refusal)
print("a count within 100 costs", people.dp_count().plan(accuracy={"len": 100}).cost.words())
session.history.select("epsilon", "status")

# %% [markdown]
# If people have many rows, continue with `individuals.ipynb`.
