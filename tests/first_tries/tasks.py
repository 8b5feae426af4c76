"""Fifty tasks as somebody wrote them who had read the README and the quickstart alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """One task.

    Parameters
    ----------
    title
        What is wanted.
    first
        The code that was written first; it sets `out`.
    exact
        The same in plain Polars; it sets `truth`.
    within
        How far each number of `out` may be from `truth`, by column.
    by
        The columns of groups.
    says, then
        Where the first code is refused: what the message says, and the code that follows it.
    slow
        Whether it takes seconds to plan.
    """

    title: str
    first: str
    exact: str
    within: dict[str, float]
    by: tuple[str, ...] = ()
    says: str = ""
    then: str = ""
    slow: bool = False


TASKS: tuple[Task, ...] = (
    Task(
        "Requests per path",
        """
out = p_logs.group_by("path").agg(pl.len().alias("requests")).collect(epsilon=4, delta=1e-7)
""",
        """
truth = logs.group_by("path").agg(pl.len().alias("requests"))
""",
        {"requests": 400},
        by=("path",),
        slow=True,
    ),
    Task(
        "Distinct users per country",
        """
out = (
    p_logs.group_by("country")
    .agg(pl.col("user_id").n_unique().alias("users"))
    .sort("users", descending=True)
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = logs.group_by("country").agg(pl.col("user_id").n_unique().alias("users"))
""",
        {"users": 10},
        by=("country",),
        slow=True,
    ),
    Task(
        "Daily active users in March",
        """
days = pl.date_range(date(2025, 3, 1), date(2025, 3, 31), eager=True)
out = (
    p_logs.with_columns(day=pl.col("at").dt.date())
    .group_by("day", keys=days)
    .agg(pl.col("user_id").n_unique().alias("users"))
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = logs.group_by(pl.col("at").dt.date().alias("day")).agg(
    pl.col("user_id").n_unique().alias("users")
)
""",
        {"users": 200},
        by=("day",),
    ),
    Task(
        "Share of server errors per path",
        """
out = (
    p_logs.group_by("path")
    .agg((pl.col("status") >= 500).mean().alias("error_rate"))
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = logs.group_by("path").agg((pl.col("status") >= 500).mean().alias("error_rate"))
""",
        {"error_rate": 0.2},
        by=("path",),
        slow=True,
    ),
    Task(
        "Megabytes sent per hour of the day",
        """
out = (
    p_logs.limit_rows(20)
    .group_by(pl.col("at").dt.hour().alias("hour"), keys=range(24))
    .agg((pl.col("bytes").clip(0, 200_000).sum() / 1e6).alias("mb"))
    .collect(epsilon=4)
)
""",
        """
truth = logs.group_by(pl.col("at").dt.hour().alias("hour")).agg(
    (pl.col("bytes").sum() / 1e6).alias("mb")
)
""",
        {"mb": 70},
        by=("hour",),
    ),
    Task(
        "Mean response time by device, nulls left out",
        """
out = (
    p_logs.drop_nulls(["ms", "device"])
    .group_by("device", keys=["mobile", "desktop", "tablet"])
    .agg(pl.col("ms").clip(0, 2000).mean())
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = logs.drop_nulls(["ms", "device"]).group_by("device").agg(pl.col("ms").mean())
""",
        {"ms": 100},
        by=("device",),
        slow=True,
    ),
    Task(
        "95th percentile of the response time",
        """
out = p_logs.select(pl.col("ms").clip(0, 5000).quantile(0.95).alias("p95")).collect(
    epsilon=4, delta=1e-7
)
""",
        """
truth = logs.select(pl.col("ms").quantile(0.95).alias("p95"))
""",
        {"p95": 70},
    ),
    Task(
        "Median response time of product and search pages",
        """
out = (
    p_logs.filter(pl.col("path").is_in(["/product", "/search"]))
    .group_by("path", keys=["/product", "/search"])
    .agg(pl.col("ms").clip(0, 3000).median())
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = (
    logs.filter(pl.col("path").is_in(["/product", "/search"]))
    .group_by("path")
    .agg(pl.col("ms").median())
)
""",
        {"ms": 10},
        by=("path",),
    ),
    Task(
        "A/B test: difference of the conversion rates with an interval",
        """
conv = pl.col("converted")
out = p_accounts.select(
    lift=conv.filter(pl.col("arm") == "B").mean() - conv.filter(pl.col("arm") == "A").mean()
).collect(epsilon=4, delta=1e-7, interval=0.95, sampling=True)
""",
        """
conv = pl.col("converted")
truth = accounts.select(
    lift=conv.filter(pl.col("arm") == "B").mean() - conv.filter(pl.col("arm") == "A").mean()
)
""",
        {"lift": 0.05},
        slow=True,
    ),
    Task(
        "Patients by sex",
        """
out = p_patients.group_by("sex", keys=["F", "M"]).len().collect(epsilon=4)
""",
        """
truth = patients.group_by("sex").len()
""",
        {"len": 10},
        by=("sex",),
    ),
    Task(
        "Mean age by sex, from the date of birth",
        """
age = (pl.lit(date(2025, 1, 1)) - pl.col("birth_date")).dt.total_days() / 365.25
out = (
    p_patients.with_columns(age=age)
    .group_by("sex", keys=["F", "M"])
    .agg(pl.col("age").clip(0, 110).mean())
    .collect(epsilon=4)
)
""",
        """
age = (pl.lit(date(2025, 1, 1)) - pl.col("birth_date")).dt.total_days() / 365.25
truth = patients.with_columns(age=age).group_by("sex").agg(pl.col("age").mean())
""",
        {"age": 0.5},
        by=("sex",),
        slow=True,
    ),
    Task(
        "Mean BMI of smokers and others",
        """
out = (
    p_patients.with_columns(bmi=pl.col("weight_kg") / (pl.col("height_cm") / 100) ** 2)
    .drop_nulls(["bmi", "smoker"])
    .group_by("smoker")
    .agg(pl.len().alias("n"), pl.col("bmi").clip(12, 60).mean())
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = (
    patients.with_columns(bmi=pl.col("weight_kg") / (pl.col("height_cm") / 100) ** 2)
    .drop_nulls(["bmi", "smoker"])
    .group_by("smoker")
    .agg(pl.len().alias("n"), pl.col("bmi").mean())
)
""",
        {"n": 20, "bmi": 0.2},
        by=("smoker",),
        slow=True,
    ),
    Task(
        "Histogram of ages by decade",
        """
out = (
    p_patients.with_columns(age=2025 - pl.col("birth_date").dt.year())
    .dp_histogram("age", bins=list(range(0, 101, 10)))
    .collect(epsilon=4)
)
""",
        """
truth = (
    patients.select(lower=((2025 - pl.col("birth_date").dt.year()) // 10 * 10).cast(pl.Int64))
    .group_by("lower")
    .agg(pl.len().alias("count"))
)
""",
        {"count": 10},
        by=("lower",),
    ),
    Task(
        "How many patients have high blood pressure",
        """
out = p_patients.filter(pl.col("sbp") >= 140).select(pl.len().alias("n")).collect(epsilon=4)
""",
        """
truth = patients.filter(pl.col("sbp") >= 140).select(pl.len().alias("n"))
""",
        {"n": 10},
    ),
    Task(
        "Visits and patients per department",
        """
out = (
    p_visits.group_by("department")
    .agg(visits=pl.len(), patients=pl.col("patient_id").n_unique())
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = visits.group_by("department").agg(
    visits=pl.len(), patients=pl.col("patient_id").n_unique()
)
""",
        {"visits": 200, "patients": 200},
        by=("department",),
        slow=True,
    ),
    Task(
        "No-show rate per department",
        """
out = (
    p_visits.limit_rows(8)
    .group_by("department", keys=["cardiology", "orthopedics", "general", "pediatrics", "eye"])
    .agg(pl.col("no_show").mean().alias("rate"))
    .collect(epsilon=4, interval=0.95)
)
""",
        """
truth = visits.group_by("department").agg(pl.col("no_show").mean().alias("rate"))
""",
        {"rate": 0.03},
        by=("department",),
    ),
    Task(
        "Total cost per diagnosis",
        """
out = (
    p_visits.filter(pl.col("diagnosis").is_not_null())
    .group_by("diagnosis")
    .agg(pl.col("cost").clip(0, 1500).sum())
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = (
    visits.filter(pl.col("diagnosis").is_not_null()).group_by("diagnosis").agg(pl.sum("cost"))
)
""",
        {"cost": 200000},
        by=("diagnosis",),
        slow=True,
    ),
    Task(
        "Patients seen each month",
        """
out = (
    p_visits.group_by(pl.col("date").dt.truncate("1mo").alias("month"))
    .agg(pl.col("patient_id").n_unique().alias("patients"))
    .sort("month")
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = visits.group_by(pl.col("date").dt.truncate("1mo").alias("month")).agg(
    pl.col("patient_id").n_unique().alias("patients")
)
""",
        {"patients": 60},
        by=("month",),
        slow=True,
    ),
    Task(
        "Mean and standard deviation of the length of a visit",
        """
minutes = pl.col("minutes").clip(0, 90)
out = p_visits.select(minutes.mean().alias("mean"), minutes.std().alias("std")).collect(
    epsilon=4, delta=1e-7
)
""",
        """
truth = visits.select(
    pl.col("minutes").mean().alias("mean"), pl.col("minutes").std().alias("std")
)
""",
        {"mean": 0.3, "std": 0.9},
        slow=True,
    ),
    Task(
        "Cost per visit that took place, by quarter",
        """
out = (
    p_visits.filter(~pl.col("no_show"))
    .group_by(pl.col("date").dt.quarter().alias("quarter"), keys=[1, 2, 3, 4])
    .agg((pl.col("cost").clip(0, 1000).sum() / pl.len()).alias("cost_each"))
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = (
    visits.filter(~pl.col("no_show"))
    .group_by(pl.col("date").dt.quarter().alias("quarter"))
    .agg((pl.col("cost").sum() / pl.len()).alias("cost_each"))
)
""",
        {"cost_each": 20},
        by=("quarter",),
        slow=True,
    ),
    Task(
        "Mean salary by department",
        """
depts = ["Sales", "Engineering", "Support", "Finance", "HR"]
out = (
    p_payroll.group_by("dept", keys=depts)
    .agg(pl.len().alias("n"), pl.col("salary").clip(20_000, 200_000).mean())
    .collect(epsilon=4, interval=0.95)
)
""",
        """
truth = payroll.group_by("dept").agg(pl.len().alias("n"), pl.col("salary").mean())
""",
        {"n": 20, "salary": 7000},
        by=("dept",),
        slow=True,
    ),
    Task(
        "Pay gap: women's mean salary over men's",
        """
pay = pl.col("salary").clip(20_000, 200_000)
out = p_payroll.select(
    gap=pay.filter(pl.col("gender") == "female").mean()
    / pay.filter(pl.col("gender") == "male").mean()
).collect(epsilon=4)
""",
        """
pay = pl.col("salary")
truth = payroll.select(
    gap=pay.filter(pl.col("gender") == "female").mean()
    / pay.filter(pl.col("gender") == "male").mean()
)
""",
        {"gap": 0.01},
        slow=True,
    ),
    Task(
        "Deciles of the salary",
        """
out = p_payroll.select(
    pl.col("salary").clip(20_000, 200_000).quantile(q / 10).alias(f"d{q}") for q in range(1, 10)
).collect(epsilon=4)
""",
        """
truth = payroll.select(pl.col("salary").quantile(q / 10).alias(f"d{q}") for q in range(1, 10))
""",
        {
            "d1": 100,
            "d2": 90,
            "d3": 400,
            "d4": 300,
            "d5": 500,
            "d6": 200,
            "d7": 100,
            "d8": 400,
            "d9": 300,
        },
        slow=True,
    ),
    Task(
        "Headcount by department and gender",
        """
keys = {
    "dept": ["Sales", "Engineering", "Support", "Finance", "HR"],
    "gender": ["female", "male"],
}
out = (
    p_payroll.group_by("dept", "gender", keys=keys)
    .agg(pl.count("employee_id").alias("n"))
    .collect(epsilon=4)
)
""",
        """
truth = payroll.group_by("dept", "gender").agg(pl.count("employee_id").alias("n"))
""",
        {"n": 10},
        by=("dept", "gender"),
        slow=True,
    ),
    Task(
        "Hires per year",
        """
out = (
    p_payroll.group_by(year=pl.col("hired").dt.year())
    .agg(hires=pl.len())
    .sort("year")
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = payroll.group_by(year=pl.col("hired").dt.year()).agg(hires=pl.len())
""",
        {"hires": 10},
        by=("year",),
        slow=True,
    ),
    Task(
        "Employees and total bonus per salary band",
        """
band = (
    pl.when(pl.col("salary") < 45_000)
    .then(pl.lit("low"))
    .when(pl.col("salary") < 75_000)
    .then(pl.lit("middle"))
    .otherwise(pl.lit("high"))
    .alias("band")
)
out = (
    p_payroll.with_columns(band)
    .group_by("band", keys=["low", "middle", "high"])
    .agg(pl.len().alias("n"), pl.col("bonus").fill_null(0).clip(0, 15_000).sum())
    .collect(epsilon=4)
)
""",
        """
band = (
    pl.when(pl.col("salary") < 45_000)
    .then(pl.lit("low"))
    .when(pl.col("salary") < 75_000)
    .then(pl.lit("middle"))
    .otherwise(pl.lit("high"))
    .alias("band")
)
truth = (
    payroll.with_columns(band).group_by("band").agg(pl.len().alias("n"), pl.col("bonus").sum())
)
""",
        {"n": 10, "bonus": 30000},
        by=("band",),
        slow=True,
    ),
    Task(
        "Orders per channel",
        """
out = (
    p_orders.group_by("channel", keys=["web", "app", "store"])
    .agg(dp.count().alias("orders"))
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = orders.group_by("channel").agg(pl.len().alias("orders"))
""",
        {"orders": 60},
        by=("channel",),
    ),
    Task(
        "Mean shipping fee of paid orders by channel",
        """
out = (
    p_orders.filter(pl.col("status") == "paid")
    .group_by("channel", keys=["web", "app", "store"])
    .agg(dp.mean("shipping", (0, 20)))
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = orders.filter(pl.col("status") == "paid").group_by("channel").agg(pl.mean("shipping"))
""",
        {"shipping": 1},
        by=("channel",),
        slow=True,
    ),
    Task(
        "Orders per weekday",
        """
out = (
    p_orders.group_by(pl.col("ordered_at").dt.weekday().alias("weekday"), keys=range(1, 8))
    .len(name="orders")
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = orders.group_by(pl.col("ordered_at").dt.weekday().alias("weekday")).len(name="orders")
""",
        {"orders": 100},
        by=("weekday",),
    ),
    Task(
        "Return rate per channel",
        """
returned = pl.col("status").eq("returned")
out = (
    p_orders.group_by("channel")
    .agg((returned.sum() / pl.len()).alias("return_rate"))
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = orders.group_by("channel").agg(
    ((pl.col("status") == "returned").sum() / pl.len()).alias("return_rate")
)
""",
        {"return_rate": 0.3},
        by=("channel",),
        slow=True,
    ),
    Task(
        "Customers who ordered in December",
        """
out = (
    p_orders.filter(
        pl.col("ordered_at").is_between(
            datetime(2024, 12, 1), datetime(2025, 1, 1), closed="left"
        )
    )
    .select(pl.col("customer_id").n_unique())
    .collect(epsilon=4)
)
""",
        """
truth = orders.filter(
    pl.col("ordered_at").is_between(datetime(2024, 12, 1), datetime(2025, 1, 1), closed="left")
).select(pl.col("customer_id").n_unique())
""",
        {"customer_id": 10},
    ),
    Task(
        "Mean temperature and number of readings per site",
        """
out = (
    p_readings.group_by("site")
    .agg(pl.col("temperature").clip(-20, 60).mean(), pl.len().alias("readings"))
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = readings.group_by("site").agg(pl.col("temperature").mean(), pl.len().alias("readings"))
""",
        {"temperature": 4, "readings": 500},
        by=("site",),
        says="List the groups with keys=",
        then="""
out = (
    p_readings.group_by("site", keys=["north", "south", "harbour"])
    .agg(pl.col("temperature").clip(-20, 60).mean(), pl.len().alias("readings"))
    .collect(epsilon=4, delta=1e-7)
)
""",
        slow=True,
    ),
    Task(
        "Share of readings above 30 degrees per firmware",
        """
out = (
    p_readings.drop_nulls("temperature")
    .with_columns(hot=pl.col("temperature") > 30)
    .group_by("firmware", keys=["1.9", "2.0", "2.1"])
    .agg(pl.col("hot").mean())
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = (
    readings.drop_nulls("temperature")
    .with_columns(hot=pl.col("temperature") > 30)
    .group_by("firmware")
    .agg(pl.col("hot").mean())
)
""",
        {"hot": 0.2},
        by=("firmware",),
        slow=True,
    ),
    Task(
        "Devices that ever had less than 10 percent battery, per site",
        """
out = (
    p_readings.filter(pl.col("battery") < 10)
    .group_by("site", keys=["north", "south", "harbour"])
    .agg(devices=pl.n_unique("device_id"))
    .collect(epsilon=4)
)
""",
        """
truth = (
    readings.filter(pl.col("battery") < 10)
    .group_by("site")
    .agg(devices=pl.n_unique("device_id"))
)
""",
        {"devices": 10},
        by=("site",),
        slow=True,
    ),
    Task(
        "Mean humidity per day",
        """
out = (
    p_readings.sort("at")
    .group_by_dynamic("at", every="1d")
    .agg(pl.col("humidity").clip(0, 100).mean())
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = readings.sort("at").group_by_dynamic("at", every="1d").agg(pl.col("humidity").mean())
""",
        {"humidity": 30},
        by=("at",),
        slow=True,
    ),
    Task(
        "How often each answer was given",
        """
out = (
    p_survey.group_by("satisfaction", keys=[1, 2, 3, 4, 5, None])
    .agg(pl.len().alias("answers"))
    .collect(epsilon=4)
)
""",
        """
truth = survey.group_by("satisfaction").agg(pl.len().alias("answers"))
""",
        {"answers": 10},
        by=("satisfaction",),
    ),
    Task(
        "Net promoter score per region",
        """
r = pl.col("recommend")
out = (
    p_survey.drop_nulls("recommend")
    .group_by("region", keys=["North", "South", "East", "West"])
    .agg((100 * ((r >= 9).mean() - (r <= 6).mean())).alias("nps"))
    .collect(epsilon=4)
)
""",
        """
r = pl.col("recommend")
truth = (
    survey.drop_nulls("recommend")
    .group_by("region")
    .agg((100 * ((r >= 9).mean() - (r <= 6).mean())).alias("nps"))
)
""",
        {"nps": 2},
        by=("region",),
    ),
    Task(
        "Weighted mean of the satisfaction",
        """
w = pl.col("weight").clip(0, 3)
s = pl.col("satisfaction").clip(1, 5)
out = (
    p_survey.drop_nulls("satisfaction")
    .select(((s * w).sum() / w.sum()).alias("satisfaction"))
    .collect(epsilon=4)
)
""",
        """
truth = survey.drop_nulls("satisfaction").select(
    ((pl.col("satisfaction") * pl.col("weight")).sum() / pl.col("weight").sum()).alias(
        "satisfaction"
    )
)
""",
        {"satisfaction": 0.1},
    ),
    Task(
        "Satisfaction by region and age group",
        """
out = (
    p_survey.group_by(["region", "age_group"])
    .agg(
        pl.col("satisfaction").clip(1, 5).mean(),
        pl.col("satisfaction").count().alias("answers"),
    )
    .sort("region", "age_group")
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = survey.group_by(["region", "age_group"]).agg(
    pl.col("satisfaction").mean(), pl.col("satisfaction").count().alias("answers")
)
""",
        {"satisfaction": 0.2, "answers": 20},
        by=("region", "age_group"),
    ),
    Task(
        "Share of comments that mention the price",
        """
out = (
    p_survey.filter(pl.col("comment").is_not_null())
    .select(pl.col("comment").str.to_lowercase().str.contains("price").mean().alias("share"))
    .collect(epsilon=4)
)
""",
        """
truth = survey.filter(pl.col("comment").is_not_null()).select(
    pl.col("comment").str.to_lowercase().str.contains("price").mean().alias("share")
)
""",
        {"share": 0.02},
    ),
    Task(
        "One number per person, then its distribution: how many patients had 1, 2, 3 ... visits",
        """
out = (
    p_visits.group_by("patient_id")
    .agg(pl.len().alias("visits"))
    .group_by("visits")
    .agg(pl.len().alias("patients"))
    .sort("visits")
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = (
    visits.group_by("patient_id")
    .agg(pl.len().alias("visits"))
    .group_by("visits")
    .agg(pl.len().alias("patients"))
    .sort("visits")
)
""",
        {"patients": 20},
        by=("visits",),
        slow=True,
    ),
    Task(
        "Top 10 products by revenue, with their names from the public table",
        """
out = (
    p_items.join(products, on="product_id")
    .group_by("name", keys=products["name"])
    .agg(revenue=(pl.col("quantity") * pl.col("price")).clip(0, 500).sum())
    .sort("revenue", descending=True)
    .head(10)
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = (
    items.join(products, on="product_id")
    .group_by("name")
    .agg(revenue=(pl.col("quantity") * pl.col("price")).sum())
    .sort("revenue", descending=True)
    .head(10)
)
""",
        {"revenue": 60000},
        by=("name",),
        slow=True,
    ),
    Task(
        "Funnel: users who saw a product, then used the cart, then the checkout",
        """
out = (
    p_logs.group_by("user_id")
    .agg(
        product=(pl.col("path") == "/product").any(),
        cart=(pl.col("path") == "/cart").any(),
        checkout=(pl.col("path") == "/checkout").any(),
    )
    .select(
        pl.col("product").sum(),
        (pl.col("product") & pl.col("cart")).sum().alias("cart"),
        (pl.col("product") & pl.col("cart") & pl.col("checkout")).sum().alias("checkout"),
    )
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = (
    logs.group_by("user_id")
    .agg(
        product=(pl.col("path") == "/product").any(),
        cart=(pl.col("path") == "/cart").any(),
        checkout=(pl.col("path") == "/checkout").any(),
    )
    .select(
        pl.col("product").sum(),
        (pl.col("product") & pl.col("cart")).sum().alias("cart"),
        (pl.col("product") & pl.col("cart") & pl.col("checkout")).sum().alias("checkout"),
    )
)
""",
        {"product": 10, "cart": 10, "checkout": 10},
    ),
    Task(
        "Correlation of weight and blood pressure",
        """
out = p_patients.select(
    pl.corr(pl.col("weight_kg").clip(40, 150), pl.col("sbp").clip(80, 220)).alias("r")
).collect(epsilon=4)
""",
        """
truth = patients.drop_nulls(["weight_kg", "sbp"]).select(pl.corr("weight_kg", "sbp").alias("r"))
""",
        {"r": 0.1},
        says="make it of means",
        then="""
a, b, both = pl.col("weight_kg"), pl.col("sbp"), p_patients.drop_nulls(["weight_kg", "sbp"])
out = both.agg(
    (
        ((a * b).dp_mean((3200, 33000)) - a.dp_mean((40, 150)) * b.dp_mean((80, 220)))
        / (a.dp_std((40, 150)) * b.dp_std((80, 220)))
    ).alias("r")
).collect(epsilon=40)
""",
        slow=True,
    ),
    Task(
        "Share of each department in all salaries",
        """
out = (
    p_payroll.group_by("dept", keys=["Sales", "Engineering", "Support", "Finance", "HR"])
    .agg(pl.col("salary").clip(0, 200_000).sum().alias("total"))
    .with_columns(share=pl.col("total") / pl.col("total").sum())
    .collect(epsilon=4)
)
""",
        """
truth = (
    payroll.group_by("dept")
    .agg(pl.col("salary").sum().alias("total"))
    .with_columns(share=pl.col("total") / pl.col("total").sum())
)
""",
        {"total": 2000000, "share": 0.02},
        by=("dept",),
    ),
    Task(
        "Money in Decimal: revenue and mean order value per month",
        """
total = pl.col("total").clip(0, 300)
out = (
    p_orders.filter(pl.col("status") != "cancelled")
    .group_by(pl.col("ordered_at").dt.month().alias("month"), keys=list(range(1, 13)))
    .agg(total.sum().alias("revenue"), total.mean().alias("mean_order"))
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = (
    orders.filter(pl.col("status") != "cancelled")
    .group_by(pl.col("ordered_at").dt.month().alias("month"))
    .agg(pl.col("total").sum().alias("revenue"), pl.col("total").mean().alias("mean_order"))
)
""",
        {"revenue": 30000, "mean_order": 90},
        by=("month",),
        slow=True,
    ),
    Task(
        "Time zones: requests per local hour in Oslo of Norwegian users",
        """
out = (
    p_logs.filter(pl.col("country") == "NO")
    .with_columns(hour=pl.col("at").dt.convert_time_zone("Europe/Oslo").dt.hour())
    .group_by("hour", keys=range(24))
    .agg(pl.len().alias("requests"))
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
truth = (
    logs.filter(pl.col("country") == "NO")
    .with_columns(hour=pl.col("at").dt.convert_time_zone("Europe/Oslo").dt.hour())
    .group_by("hour")
    .agg(pl.len().alias("requests"))
)
""",
        {"requests": 1000},
        by=("hour",),
    ),
    Task(
        "Semi-join with another private table: requests of users on the pro plan, per device",
        """
pro = p_accounts.filter(pl.col("plan") == "pro")
out = (
    p_logs.join(pro, on="user_id", how="semi")
    .group_by("device", keys=["mobile", "desktop", "tablet"])
    .agg(pl.len().alias("requests"), pl.col("user_id").n_unique().alias("users"))
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
pro = accounts.filter(pl.col("plan") == "pro")
truth = (
    logs.join(pro, on="user_id", how="semi")
    .filter(pl.col("device").is_not_null())
    .group_by("device")
    .agg(pl.len().alias("requests"), pl.col("user_id").n_unique().alias("users"))
)
""",
        {"requests": 100, "users": 20},
        by=("device",),
    ),
    Task(
        "pandas input: members and mean fee per town",
        """
import pandas as pd

rng = np.random.default_rng(11)
df = pd.DataFrame(
    {
        "member": np.arange(3000),
        "town": rng.choice(["Oslo", "Bergen", "Moss"], 3000, p=[0.5, 0.3, 0.2]),
        "fee": rng.gamma(4, 60, 3000).round(2),
    }
)
members = dp.Session(epsilon=1000, delta=1e-6).protect(df, unit="member")
out = (
    members.group_by("town")
    .agg(pl.len().alias("members"), pl.col("fee").clip(0, 1000).mean())
    .collect(epsilon=4, delta=1e-7)
)
""",
        """
rng = np.random.default_rng(11)
df = pl.DataFrame(
    {
        "member": np.arange(3000),
        "town": rng.choice(["Oslo", "Bergen", "Moss"], 3000, p=[0.5, 0.3, 0.2]),
        "fee": rng.gamma(4, 60, 3000).round(2),
    }
)
truth = df.group_by("town").agg(pl.len().alias("members"), pl.col("fee").mean())
""",
        {"members": 20, "fee": 6},
        by=("town",),
        slow=True,
    ),
    Task(
        "Cumulative result: sign-ups so far at the end of each month",
        """
out = (
    p_accounts.group_by(pl.col("signup").dt.month().alias("month"), keys=range(1, 13))
    .agg(pl.len().alias("signups"))
    .sort("month")
    .with_columns(so_far=pl.col("signups").cum_sum())
    .collect(epsilon=4)
)
""",
        """
truth = (
    accounts.group_by(pl.col("signup").dt.month().alias("month"))
    .agg(pl.len().alias("signups"))
    .sort("month")
    .with_columns(so_far=pl.col("signups").cum_sum())
)
""",
        {"signups": 10, "so_far": 10},
        by=("month",),
    ),
)
