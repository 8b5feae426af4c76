# %% [markdown]
# # Many rows per person
#
# Purchases, visits, clicks: a person has several rows, and you want to protect all of them
# together. This notebook shows what that needs, what it costs, and how to choose limits. The
# customers are invented: half of them buy once, and a few buy sixty times.

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
# ## 1. Name the person of each row
#
# With `unit="customer"` neighbouring frames differ in *all* rows of one customer. A customer with
# any number of rows could change a sum by any amount, so such a query finds a limit when it runs.
# With `limits=None` dpframe refuses it, and the message names a limit:

# %%
session = dp.Session(epsilon=10, delta=1e-6, name="shops")
customers = session.protect(purchases, unit="customer")
try:
    customers.agg(dp.sum("spent", (0, 50))).plan(epsilon=1, limits=None)
except dp.UnboundedSensitivity as refusal:
    print(refusal)

# %% [markdown]
# Counting customers needs no limit: each counts once, for any number of purchases.

# %%
customers.agg(customers=dp.n_unique("customer")).collect(epsilon=0.5, interval=0.95)

# %% [markdown]
# ## 2. Two ways to limit
#
# Drop rows, so that each customer has at most ten. Or add up what each customer spent and clamp
# that total (`per="unit"`). The second uses what you know, and drops nothing from customers within
# it.

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
# it. A large clamp needs much noise. We can plot both here, because the customers are invented.
# With private data you cannot see the bias, and limits come from public knowledge.

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
# ## 4. Suggest limits
#
# If you know nothing, spend a part of the budget on it: `suggest_limits` finds limits that nine of
# ten customers keep, and bounds.

# %%
by_shop = customers.group_by("shop", keys=[f"shop {n}" for n in range(40)])
spent = by_shop.agg(dp.sum("spent", (0, 50), per="unit"))
spent.suggest_limits(epsilon=1, coverage=0.9)

# %% [markdown]
# ## 5. Shops that you did not list
#
# Without `keys=`, groups with enough customers appear. That needs a delta, and a limit on the
# groups of a customer. Groups with few customers are missing, and look like groups with none.

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
