# %% [markdown]
# # Many rows per person
#
# Purchases, visits, clicks: a person has several rows, and all of them together are to be
# protected. This notebook shows what that needs, what it costs, and how to choose it. The customers
# are made up: half of them buy once, and a few buy sixty times.

# %%
import polars as pl

import dpframe as dp

purchases = (
    pl.select(customer=pl.int_range(2000))
    .with_columns(n=(2000 // (1 + pl.col("customer") * 7919 % 2000)).clip(1, 60))
    .with_columns(purchase=pl.int_ranges(0, "n"))
    .explode("purchase")
    .select(
        "customer",
        shop=pl.lit("shop ") + ((pl.col("customer") + pl.col("purchase") * 7) % 40).cast(pl.String),
        spent=(pl.col("customer") * 31 + pl.col("purchase") * 17) % 50 + 1,
    )
)
purchases.group_by("customer").len().select(
    customers=pl.len(),
    rows=pl.col("len").sum(),
    median=pl.col("len").median(),
    most=pl.col("len").max(),
)

# %% [markdown]
# ## 1. Say whose rows they are
#
# With `unit="customer"` neighbouring frames differ in *all* rows of one customer. Somebody with any
# number of rows could move a sum by any amount, so such a query finds a limit when it runs. With
# `limits=None` it is refused, and the message names a limit:

# %%
session = dp.Session(epsilon=10, delta=1e-6, name="shops")
customers = session.protect(purchases, unit="customer")
try:
    customers.agg(dp.sum("spent", (0, 50))).plan(epsilon=1, limits=None)
except dp.UnboundedSensitivity as refusal:
    print(refusal)

# %% [markdown]
# Counting customers needs no limit: each is one, whatever they bought.

# %%
customers.agg(customers=dp.n_unique("customer")).collect(epsilon=0.5, interval=0.95)

# %% [markdown]
# ## 2. Two ways to limit
#
# Drop rows, so that nobody has more than ten; or add up what each customer spent and clamp that
# total (`per="unit"`). The second says what you know, and drops nothing of those who keep to it.

# %%
rows = customers.limit_rows(10).agg(spent=dp.sum("spent", (0, 50)))
totals = customers.agg(spent=dp.sum("spent", (0, 300), per="unit"))
for query in (rows, totals):
    release = query.plan(epsilon=1).releases[0]
    print(f"one customer moves it by {release.sensitivity.l1:g},", end=" ")
    print(f"and the noise is within {release.accuracy():.0f} with 95% confidence")

# %% [markdown]
# ## 3. Bias against noise
#
# A small clamp leaves out much of what large customers spent: that is bias, and no interval covers
# it. A large clamp needs much noise. Both can be drawn here, because the customers are made up;
# with private data bias cannot be seen, and limits come from public knowledge.

# %%
each = purchases.group_by("customer").agg(pl.col("spent").sum())["spent"]
rows = []
for clamp in [25, 50, 100, 200, 400, 800, 1200, 1600]:
    plan = customers.agg(spent=dp.sum("spent", (0, clamp), per="unit")).plan(epsilon=0.05)
    bias = each.sum() - each.clip(0, clamp).sum()
    rows.append({"clamp": clamp, "bias": bias, "noise, 95%": plan.accuracy("spent")})
compared = pl.DataFrame(rows).with_columns(both=pl.col("bias") + pl.col("noise, 95%"))
compared

# %%
try:
    import altair as alt
except ImportError:  # then the table above has to do
    chart = None
else:
    chart = (
        alt.Chart(compared.unpivot(index="clamp", variable_name="error", value_name="spent"))
        .mark_line(point=True)
        .encode(
            x=alt.X("clamp:Q", scale=alt.Scale(type="log"), title="clamp on a customer's total"),
            y=alt.Y("spent:Q", title="error of the sum"),
            color=alt.Color("error:N", title=None),
        )
        .properties(width=420, height=220)
    )
chart

# %% [markdown]
# ## 4. Ask for limits
#
# Where nothing is known, a part of the budget can be spent on it: limits that nine of ten customers
# keep, and bounds, found privately.

# %%
by_shop = customers.group_by("shop", keys=[f"shop {n}" for n in range(40)])
spent = by_shop.agg(dp.sum("spent", (0, 50), per="unit"))
spent.suggest_limits(epsilon=1, coverage=0.9)

# %% [markdown]
# ## 5. Shops that nobody listed
#
# Without `keys=`, groups with enough customers are found. That needs a delta, and a limit on the
# groups that a customer counts in. Groups with few customers are missing, and nobody can tell them
# from groups with none.

# %%
found = (
    customers.limit_groups(3, by="shop")
    .group_by("shop")
    .agg(customers=dp.n_unique("customer"), spent=dp.sum("spent", (0, 100), per="unit"))
)
print(found.explain(epsilon=2, delta=1e-6))
found.collect(epsilon=2, delta=1e-6).head(5)

# %%
print(session)
