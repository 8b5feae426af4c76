"""How each public method of Polars' expressions is called, so that its refusal or rule can be seen.

A method that is not here is called without arguments on a column of a type that suits its
namespace. Columns are named as in `SCHEMA`.
"""

from __future__ import annotations

from datetime import date, time, timedelta
from typing import Any

import polars as pl

SCHEMA: dict[str, Any] = {
    "a": pl.Int64(),
    "b": pl.Int64(),
    "x": pl.Float64(),
    "p": pl.Boolean(),
    "q": pl.Boolean(),
    "s": pl.String(),
    "d": pl.Datetime("us"),
    "z": pl.Datetime("us", "UTC"),
    "day": pl.Date(),
    "u": pl.Duration("us"),
    "l": pl.List(pl.Int64()),
    "ls": pl.List(pl.String()),
    "lb": pl.List(pl.Boolean()),
    "r": pl.Array(pl.Int64(), 3),
    "rs": pl.Array(pl.String(), 3),
    "rb": pl.Array(pl.Boolean(), 3),
    "st": pl.Struct({"f": pl.Int64(), "g": pl.String()}),
    "c": pl.Categorical(),
    "y": pl.Binary(),
}
NAMES: dict[str, Any] = {
    **{name: pl.col(name) for name in SCHEMA},
    "pl": pl,
    "date": date,
    "time": time,
    "timedelta": timedelta,
}

RECEIVERS = {
    "": "x",
    "str": "s.str",
    "dt": "d.dt",
    "list": "l.list",
    "arr": "r.arr",
    "struct": "st.struct",
    "cat": "c.cat",
    "bin": "y.bin",
    "name": "a.name",
}
"""The namespaces of `pl.Expr`, and what a call in them begins with."""

_CALLS = """
a.add(b) a.sub(b) a.mul(b) a.truediv(b) a.floordiv(b) a.mod(b) a.pow(2) a.truncdiv(b) a.neg()
a.eq(b) a.ne(b) a.lt(b) a.le(b) a.gt(b) a.ge(b) a.eq_missing(b) a.ne_missing(b)
p.and_(q) p.or_(q) p.xor(q) p.not_() p.all() p.any() p.arg_true() a.dot(b) a.alias("n")
a.append(b) x.approx_quantile(0.5) x.quantile(0.5) x.bin_intervals([1],labels=["i","j"])
x.bin_quantiles([0.5],labels=["i","j"]) x.bin_ranks(2,labels=["i","j"]) x.cut([1])
x.qcut(2) x.hist([1,2]) a.bitwise_and() a.bitwise_or() a.bitwise_xor() a.bitwise_count_ones()
a.bitwise_count_zeros() a.bitwise_leading_ones() a.bitwise_leading_zeros()
a.bitwise_trailing_ones() a.bitwise_trailing_zeros() x.bottom_k_by(b,2) x.top_k_by(b,2)
a.cast(pl.Int8) x.clip(0,1) x.cumulative_eval(pl.element().sum()) x.ewm_mean(alpha=0.5)
x.ewm_mean_by(d,half_life="1d") x.ewm_std(alpha=0.5) x.ewm_var(alpha=0.5)
x.ewm_sum(alpha=0.5) x.ewm_sum_by(d,half_life="1d") l.explode() x.extend_constant(0,1)
x.fill_nan(0) x.fill_null(0) x.filter(p) a.gather([0]) a.gather_every(2) a.get(0)
a.index_of(1) x.interpolate_by(b) a.is_between(1,2) x.is_close(1) a.is_in([1,2])
x.map_batches(len) x.map_elements(len,return_dtype=pl.Int64) x.max_by(b) x.min_by(b)
x.over(b) x.pipe_with_dtype(len) x.rank() a.reinterpret(signed=False) a.repeat_by(2)
a.replace(1,2) a.replace_strict({1:2},default=0) a.reshape((1,1)) x.rolling("d",period="1d")
x.rolling_kurtosis(2) x.rolling_map(sum,2) x.rolling_max(2) x.rolling_max_by(d,"1d")
x.rolling_mean(2) x.rolling_mean_by(d,"1d") x.rolling_median(2) x.rolling_median_by(d,"1d")
x.rolling_min(2) x.rolling_min_by(d,"1d") x.rolling_quantile(0.5,window_size=2)
x.rolling_quantile_by(d,"1d",quantile=0.5) x.rolling_rank(2) x.rolling_rank_by(d,"1d")
x.rolling_skew(2) x.rolling_std(2) x.rolling_std_by(d,"1d") x.rolling_sum(2)
x.rolling_sum_by(d,"1d") x.rolling_var(2) x.rolling_var_by(d,"1d") x.round_sig_figs(2)
x.search_sorted(1) x.slice(0,1) x.sort_by(b) x.sample(1) c.to_physical() x.map(len)
a.lower_bound() a.upper_bound() pl.all().exclude("a")
s.str.contains("x") s.str.contains_any(["x"]) s.str.count_matches("x") s.str.decode("hex")
s.str.encode("hex") s.str.ends_with("x") s.str.extract("(x)") s.str.extract_all("x")
s.str.extract_groups("(x)") s.str.extract_many(["x"]) s.str.find("x") s.str.find_many(["x"])
s.str.head(1) s.str.tail(1) s.str.join() s.str.json_decode(pl.Int64) s.str.json_path_match("$")
s.str.normalize() s.str.pad_end(2) s.str.pad_start(2) s.str.replace("x","y")
s.str.replace_all("x","y") s.str.replace_many(["x"],["y"]) s.str.slice(0,1) s.str.split("x")
s.str.split_exact("x",1) s.str.splitn("x",2) s.str.starts_with("x") s.str.strip_prefix("x")
s.str.strip_suffix("x") s.str.strptime(pl.Date,"%F") s.str.to_date("%F")
s.str.to_datetime("%F") s.str.to_time("%T") s.str.to_decimal(scale=2) s.str.zfill(2)
day.dt.add_business_days(1) day.dt.is_business_day() z.dt.base_utc_offset() z.dt.dst_offset()
d.dt.cast_time_unit("ms") d.dt.combine(time(1)) d.dt.convert_time_zone("UTC")
d.dt.offset_by("1d") d.dt.replace(year=2020) d.dt.replace_time_zone("UTC") d.dt.round("1d")
d.dt.strftime("%F") d.dt.to_string("%F") d.dt.truncate("1d") u.dt.total_days()
u.dt.total_hours() u.dt.total_minutes() u.dt.total_seconds() u.dt.total_milliseconds()
u.dt.total_microseconds() u.dt.total_nanoseconds()
lb.list.all() lb.list.any() l.list.agg(pl.element().sum()) l.list.concat(l) l.list.contains(1)
l.list.count_matches(1) l.list.eval(pl.element()) l.list.filter(pl.element()>1)
l.list.gather([0]) l.list.gather_every(2) l.list.get(0) l.list.item() ls.list.join(",")
l.list.sample(1) l.list.set_difference(l) l.list.set_intersection(l)
l.list.set_symmetric_difference(l) l.list.set_union(l) l.list.slice(0,1) l.list.to_array(1)
l.list.to_struct(fields=["f"]) l.list.to_map()
rb.arr.all() rb.arr.any() r.arr.agg(pl.element().sum()) r.arr.contains(1)
r.arr.count_matches(1) r.arr.dot(r) r.arr.eval(pl.element()) r.arr.get(0) rs.arr.join(",")
r.arr.slice(0,1) r.arr.to_struct(fields=["f","g","h"])
st.struct.drop(["f"]) st.struct.eval(pl.element()) st.struct.field("f")
st.struct.rename_fields(["h","i"]) st.struct.with_fields(h=1)
c.cat.slice(0,1) c.cat.ends_with("x") c.cat.starts_with("x") c.cat.to(pl.Enum(["x"]))
y.bin.contains(b"x") y.bin.decode("hex") y.bin.encode("hex") y.bin.ends_with(b"x") y.bin.get(0)
y.bin.reinterpret(dtype=pl.Int64) y.bin.slice(0,1) y.bin.starts_with(b"x")
a.name.map(str.upper) a.name.map_fields(str.upper) st.name.prefix_fields("n")
st.name.suffix_fields("n") a.name.prefix("n") a.name.suffix("n") a.name.replace("a","n")
a.name.strip_prefix("n") a.name.strip_suffix("n")
pl.all() pl.all_horizontal("p") pl.any("p") pl.any_horizontal("p") pl.approx_n_unique("a")
pl.arange(3) pl.arctan2("x","a") pl.arg_sort_by("a") pl.arg_where(p)
pl.business_day_count("day","day") pl.coalesce("a","b") pl.concat_arr("a","b")
pl.concat_list("a","b") pl.concat_str("s","c") pl.corr("a","b") pl.count("a") pl.cov("a","b")
pl.cum_count("a") pl.cum_fold(pl.lit(0),max,["a"]) pl.cum_reduce(max,["a"]) pl.cum_sum("a")
pl.cum_sum_horizontal("a","b") pl.date(2020,1,1) pl.date_range(date(2020,1,1),date(2020,1,2))
pl.date_ranges(day,day) pl.datetime(2020,1,1) pl.datetime_range(date(2020,1,1),date(2020,1,2))
pl.datetime_ranges(d,d) pl.duration(days=1) pl.element() pl.escape_regex(s) pl.exclude("a")
pl.field("f") pl.first("a") pl.fold(pl.lit(0),max,["a"]) pl.format("{}!",s) pl.from_epoch("a")
pl.groups("a") pl.head("a") pl.implode("a") pl.int_range(3) pl.int_ranges(a,b) pl.last("a")
pl.len() pl.linear_space(0,1,3) pl.linear_spaces(a,b,3) pl.list("a") pl.lit(1)
pl.map_batches(["a"],len) pl.map_groups(["a"],len) pl.max("a") pl.max_horizontal("a","b")
pl.mean("a") pl.mean_horizontal("a","b") pl.median("a") pl.min("a") pl.min_horizontal("a","b")
pl.n_unique("a") pl.nth(0) pl.ones(3) pl.quantile("a",0.5) pl.reduce(max,["a"]) pl.repeat(1,3)
pl.rolling_corr("a","b",window_size=2) pl.rolling_cov("a","b",window_size=2) pl.row_index()
pl.sql_expr("a+1") pl.std("a") pl.struct("a","b") pl.sum("a")
pl.sum_horizontal("a","b") pl.tail("a") pl.time(1) pl.time_range() pl.time_ranges("t","t")
pl.var("a") pl.zeros(3) pl.pipe_with_dtype(a,len) pl.when(p).then(1) pl.col("a")
"""


def _method(call: str) -> str:
    """``"str.contains"`` from ``'s.str.contains("x")'``, ``"pl.when"`` from ``"pl.when(p)"``."""
    receiver, _, rest = call.partition(".")
    if call.startswith("pl.all().exclude"):
        return "exclude"
    return ("pl." if receiver == "pl" else "") + rest.partition("(")[0]


CALLS = {_method(call): call for call in _CALLS.split()}
"""By method, such as ``str.contains``."""
