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
# A session is a budget. `protect` puts a frame under it and says whom to protect: here each row is
# one person. What comes out of it from now on carries noise.

# %%
session = dp.Session(epsilon=1.0, name="census")
people = session.protect(census, unit=dp.Rows())
session

# %% [markdown]
# Write Polars as ever, as long as each row stays on its own. What would mix rows is refused when it
# is written, with what to write instead:

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
# A query does nothing until it is collected. Its keys are written down, because which groups appear
# would tell something too. The bounds of `overtime` follow from the clip above.

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
# This is what a reviewer decides by. No data was read for it. (`plan` by itself, in a cell, shows
# the same in tables.)

# %%
print(query.explain(epsilon=0.5))

# %% [markdown]
# ## 4. Collect
#
# Now the budget is checked and charged, then the data are read. With `interval=` each number has
# the ends of an interval beside it, at no cost. Run the cell again and the noise is another, and
# there is less of the budget left.

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
# Everything was counted. What does not fit is refused, and then no data are read. If you know which
# error you can live with, ask for that, and the least that it costs is taken.

# %%
print(session.remaining)
try:
    query.collect(epsilon=0.5)
except dp.BudgetExceeded as refusal:
    print(refusal)
print("a count within 100 costs", people.dp_count().plan(accuracy={"len": 100}).cost.words())
session.history.select("epsilon", "status")

# %% [markdown]
# Where people have many rows, go on with `individuals.ipynb`.
