"""Lists, fixed-size arrays and structs within a row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from dpframe.core.dtypes import (
    FLOAT64,
    INT64,
    INT128,
    NULL,
    STRING,
    Domain,
    DType,
    domain_of_dtype,
    list_type,
    struct_type,
)
from dpframe.core.interval import ZERO, Interval, interval
from dpframe.core.tree import Call, Constant, Literal, Tree
from dpframe.errors import InvalidBounds, UnknownColumn, UnsupportedOperation
from dpframe.rows.arithmetic import Sub
from dpframe.rows.layouts import followed_by_null, in_one_piece, spread
from dpframe.rows.operands import (
    as_type,
    boolean,
    convert,
    is_number,
    merged,
    whole_result,
    widened,
    widened_to_float,
    within_int64,
)
from dpframe.rows.operation import (
    Function,
    Namespace,
    Node,
    Operand,
    RowMethod,
    constant,
    on,
    operand,
    operation,
    quoted,
    spell_out,
)
from dpframe.rows.suggest import did_you_mean

# Methods of lists and fixed-size arrays within a row. An Array is read as a List.

LONGEST_LIST = 1_024
"""Elements after which a list that was put together is cut: a list that doubles again and again
would exhaust memory only if one row's is not empty."""
_LONGEST = 2**32 - 1
_MOST_ELEMENTS = 2**40
"""The most elements of a list; more do not fit in memory."""
_MOST_OPERANDS = 64


def elements(domain: Domain, what: str) -> Domain:
    """The facts about the elements of a List or Array."""
    inner = domain.dtype.inner
    if not _is_list(domain) or inner is None:
        raise UnsupportedOperation(
            f"{what} works on lists and arrays, not on {domain.dtype}",
            remedy="use .str for text and .struct for structs, and a list of constants in .is_in; "
            "other columns are one value a row",
        )
    return domain.inner or domain_of_dtype(inner)


def _is_list(domain: Domain) -> bool:
    return domain.dtype.name in ("List", "Array")


def _as_list(expression: pl.Expr, domain: Domain, element: DType | None = None) -> pl.Expr:
    """A list; of elements of a type, if one is given."""
    items = expression.arr.to_list() if domain.dtype.name == "Array" else expression
    return items if element in (None, domain.dtype.inner) else as_type(items, list_type(element))


class ListMethod(RowMethod):
    """A method of a list."""

    __slots__ = ()
    namespace = "list"
    groups = ("ListExpr", "ArrayExpr")

    @abstractmethod
    def result(self, items: Domain, element: Domain) -> Domain:
        """The domain of the result for a list with such elements."""

    def domain(self, args: Sequence[Domain]) -> Domain:
        return self.result(args[0], elements(args[0], self.verb))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return self.apply(ns, _as_list(args[0], domains[0]))

    @property
    def verb(self) -> str:
        """The method without its namespace."""
        return self.method.partition(".")[2]

    def refusal(self, element: DType) -> UnsupportedOperation:
        """The refusal of a list whose elements have another type."""
        return UnsupportedOperation(
            f"a list of {element} has no {self.verb}", remedy="take one element first: .list.get(0)"
        )


@operation
class ListLen(ListMethod):
    """Number of elements, null ones included, as Int64; null for a null list."""

    reads = ("ListExpr.Length", "ArrayExpr.Length")
    examples = (*on("li ls", "list.len()"), *on("arr", "arr.len()"))

    def result(self, items: Domain, element: Domain) -> Domain:
        width = items.dtype.width
        known = interval(0, _LONGEST) if width is None else interval(width, width)
        return Domain(INT64, nullable=items.nullable, interval=known)

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        return as_type(operand.list.len(), INT64)


@operation
class ListGet(ListMethod):
    """The element at a constant index, null where the list is too short.

    Negative ones count from the end.
    """

    examples = (*on("li", "list.get(0)"), *on("ls", "list.get(-1)"), *on("arr", "arr.get(1)"))
    index: int

    def check(self) -> None:
        if not -_LONGEST <= self.index <= _LONGEST:
            raise InvalidBounds(
                "the index is beyond the end of any list", remedy="use a smaller index"
            )

    def result(self, items: Domain, element: Domain) -> Domain:
        width = items.dtype.width
        inside = width is not None and -width <= self.index < width
        return element.with_null(element.nullable or items.nullable or not inside)

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        return operand.list.get(self.index, null_on_oob=True)


@operation
class ListSlice(ListMethod):
    """The elements from a constant offset; a negative one counts from the end. Also list.head and
    list.tail.
    """

    reads = ("ListExpr.Slice",)
    examples = spell_out(
        "li.list.slice(1, 2); ls.list.slice(-2); li.list.head(2); arr.arr.to_list().list.tail(2)"
    )
    offset: int
    length: int | None = None

    def check(self) -> None:
        length = self.length
        if abs(self.offset) >= 2**31 or (length is not None and not 0 <= length < 2**31):
            raise InvalidBounds(
                "an offset or length of a slice is out of range",
                remedy="use a length of 0 or more, and numbers below 2**31",
            )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
        source, offset, length = operands
        count = constant(length, cls._what("length"))  # first: in list.tail(n) both are made of n
        match operand(offset):
            case Call(Sub(), (Literal(int() as a), Literal(int() as b))):  # list.tail(n): 0 - n
                return cls(a - b, count).of(source)
        return cls(constant(offset, cls._what("offset")), count).of(source)

    def result(self, items: Domain, element: Domain) -> Domain:
        return Domain(list_type(element.dtype), nullable=items.nullable, inner=element)


class ListNumber(ListMethod):
    """A number that is made of those in a list, nulls left out."""

    __slots__ = ()

    def require_numbers(self, element: Domain) -> None:
        if not is_number(element.dtype):
            raise self.refusal(element.dtype)

    def numbers(self, expression: pl.Expr, domain: Domain, dtype: DType) -> pl.Expr:
        """The list as one of Int64, Int128 or Float64."""
        element = elements(domain, self.verb)
        if dtype == FLOAT64 and not element.dtype.is_float and element.dtype != INT64:
            expression = _as_list(expression, domain, widened(element).dtype)
            return as_type(expression, list_type(dtype))
        return _as_list(expression, domain, dtype)


@operation
class ListSum(ListNumber):
    """The sum of the numbers in a list, nulls left out, as Int64, Int128 or Float64; zero of
    none.
    """

    examples = spell_out(
        'li.list.sum(); lf.list.sum(); arr.arr.sum(); pl.concat_list("u64", "i8").list.sum()'
    )

    def result(self, items: Domain, element: Domain) -> Domain:
        self.require_numbers(element)
        wide, width = widened(element), items.dtype.width
        known = wide.interval.hull(ZERO)
        if width is not None:
            known = known * interval(width, width)
        else:
            known = Interval(ZERO.lo if known.lo == 0 else None, ZERO.hi if known.hi == 0 else None)
        if wide.dtype != FLOAT64:
            length = interval(0, _MOST_ELEMENTS if width is None else width)
            total = whole_result("sum of a list", [element], lambda x: x.hull(ZERO) * length)
            exact = total.interval if total.dtype == INT128 else within_int64(known)
            return Domain(total.dtype, nullable=items.nullable, interval=exact)
        rounded = known.as_float().widen(8 * (width or 1))
        lo, hi = ZERO.lo if known.lo == 0 else rounded.lo, ZERO.hi if known.hi == 0 else rounded.hi
        # NaN: finite numbers too can add up to both infinities.
        return Domain(FLOAT64, nullable=items.nullable, nan=True, interval=Interval(lo, hi))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = widened(elements(domains[0], "sum")).dtype
        items = self.numbers(args[0], domains[0], dtype)
        if dtype == FLOAT64:
            return followed_by_null(ns, items).list.sum()
        total = items.list.sum()
        return as_type(total, self.domain(domains).dtype) if dtype == INT128 else total


@operation
class ListMean(ListNumber):
    """The mean of the numbers in a list, nulls left out, as Float64; null of none."""

    examples = (*on("li lf", "list.mean()"), *on("arr", "arr.mean()"))

    def result(self, items: Domain, element: Domain) -> Domain:
        self.require_numbers(element)
        lo, hi = widened_to_float(element).interval.lo, widened_to_float(element).interval.hi
        least = ZERO.lo if lo is not None and lo >= 0 else None
        sides = Interval(least, ZERO.hi if hi is not None and hi <= 0 else None)
        nan = widened(element).dtype.is_float
        return Domain(FLOAT64, nullable=True, nan=nan, interval=sides)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return followed_by_null(ns, self.numbers(args[0], domains[0], FLOAT64)).list.mean()


class ListExtreme(ListMethod):
    """NaN is left out too, where there are other numbers."""

    __slots__ = ()

    def result(self, items: Domain, element: Domain) -> Domain:
        if not (element.dtype.is_integer or element.dtype.is_float or element.dtype.is_temporal):
            raise self.refusal(element.dtype)
        is_empty = not items.dtype.width
        return element.with_null(items.nullable or element.nullable or is_empty)


@operation
class ListMin(ListExtreme):
    """The smallest number, date or time in a list; null and NaN are skipped."""

    examples = spell_out(
        'li.list.min(); lf.list.min(); arr.arr.min(); pl.concat_list("dt", "dtb").list.min()'
    )


@operation
class ListMax(ListExtreme):
    """The largest number, date or time in a list; null and NaN are skipped."""

    examples = spell_out(
        'li.list.max(); lf.list.max(); arr.arr.max(); pl.concat_list("f32", "f32").list.max()'
    )


@operation
class ToList(ListMethod):
    """A fixed-size Array as a List."""

    name = "list_of_array"
    method = "arr.to_list"
    reads = ("ArrayExpr.ToList",)
    examples = on("arr", "arr.to_list()")

    def result(self, items: Domain, element: Domain) -> Domain:
        return replace(items, dtype=list_type(element.dtype), inner=element)

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        return operand


@operation
class ListContains(RowMethod):
    """Whether the list holds the item, which may be a constant or differ from row to row. Also
    .is_in(list column), which is null for a null item.

    A null item is found where the list holds a null; the result is null only for a null list.
    """

    namespace = "list"
    groups = ("ListExpr", "ArrayExpr")
    arity = 2
    examples = spell_out(
        'li.list.contains(1); li.list.contains(i64); ls.list.contains("a"); arr.arr.contains(2); '
        "i64.is_in(li); i8.is_in(arr, nulls_equal=True)"
    )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
        source, item = operands[0], operand(operands[1])
        equal = params["nulls_equal"] if isinstance(params, Mapping) else True
        if not equal and not (isinstance(item, Literal) and item.value is not None):
            raise UnsupportedOperation(
                "list.contains with nulls_equal=False is not supported",
                remedy="leave nulls_equal out, and use .is_null() for nulls",
            )
        return cls().of(source, item)

    def domain(self, args: Sequence[Domain]) -> Domain:
        _common(elements(args[0], "contains").dtype, args[1].dtype)
        return boolean(args[0].nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        common = _common(elements(domains[0], "contains").dtype, domains[1].dtype)
        item = args[1] if domains[1].dtype == common else as_type(args[1], common)
        items = in_one_piece(ns, _as_list(args[0], domains[0], common))
        return items.list.contains(item, nulls_equal=True)


def _common(element: DType, item: DType) -> DType:
    """The type in which elements and item are compared; no value changes on the way there."""
    if element.is_text and (item.is_text or item == NULL):
        return STRING
    if (element == item or item == NULL) and not element.is_nested:
        return element
    if _fits_int64(element) and _fits_int64(item):
        return INT64
    if element.is_float and (item.is_float or _fits_int64(item)):
        return FLOAT64
    raise UnsupportedOperation(
        f"a list of {element} cannot be searched for a value of type {item}",
        remedy="cast the item to the type of the elements",
    )


def _fits_int64(dtype: DType) -> bool:
    return dtype.is_integer and dtype.name not in ("UInt64", "Int128")


@operation
class ConcatList(Function):
    """A list of values, of the elements of lists, or of both, in one type; cut before and after to
    1024 elements.

    Null where a list is; a null value is an element. An Array is read as a List.
    """

    reads = ("ListExpr.Concat",)
    examples = spell_out(
        'pl.concat_list("i64", "i8", pl.lit(7)); pl.concat_list("li", "i32"); '
        'pl.concat_list("ls", "s", "e"); pl.concat_list("arr", "li", "arr"); '
        'pl.concat_list("f64", "f32", "i32"); pl.concat_list("d", "d"); li.list.concat("i64b")'
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        if len(args) > _MOST_OPERANDS:
            raise UnsupportedOperation(
                f"concat_list joins at most {_MOST_OPERANDS} expressions, not {len(args)}",
                remedy="join fewer, or in several steps",
            )
        element = _element(args)
        nullable = any(d.nullable for d in args if _is_list(d))
        return Domain(list_type(element.dtype), nullable=nullable, inner=element)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = _element(domains).dtype
        parts = [
            _as_list(arg, domain, dtype).list.head(LONGEST_LIST)
            if _is_list(domain)
            else convert(arg, domain, dtype)
            for arg, domain in zip(args, domains, strict=True)
        ]
        joined: pl.Expr = ns.concat_list(spread(ns, parts))
        return joined.list.head(LONGEST_LIST)


def _element(args: Sequence[Domain]) -> Domain:
    """The facts about the elements of all operands."""
    parts = [elements(d, "concat_list") if _is_list(d) else d for d in args]
    for part in parts:
        if part.dtype.is_nested:
            raise UnsupportedOperation(
                f"a list of {part.dtype} is not supported",
                remedy="take fields or elements first, with .struct.field(name) or .list.get(0)",
            )
    element = merged(parts)
    if element.dtype.name == "Null":
        raise UnsupportedOperation(
            "a list of nulls alone has no type",
            remedy="cast one of them, for example with .cast(pl.Int64)",
        )
    return element


# Several columns as one, and back.


@operation
class StructOf(RowMethod):
    """One column of named fields.

    Never null itself, even where all fields are.
    """

    name = "struct"
    reads = ("AsStruct",)
    examples = spell_out('pl.struct("i8", "s"); pl.struct(a=f64, b=d); pl.struct("st", "li")')
    names: tuple[str, ...]

    def check(self) -> None:
        if not self.names or len(set(self.names)) != len(self.names):
            raise UnsupportedOperation(
                "pl.struct needs at least one field, and a name of its own for each",
                remedy="name the fields: pl.struct(a=..., b=...)",
            )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
        """The parameters are the names of the fields."""
        return cls(tuple(params)).of(*operands)

    def domain(self, args: Sequence[Domain]) -> Domain:
        fields = tuple(zip(self.names, args, strict=True))
        dtype = struct_type(tuple((name, domain.dtype) for name, domain in fields))
        return Domain(dtype, nullable=False, fields=fields)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        fields = [arg.alias(name) for name, arg in zip(self.names, args, strict=True)]
        struct: pl.Expr = ns.struct(fields)
        return struct

    def words(self, args: Sequence[str]) -> str:
        shown = (
            arg if arg == f'col("{name}")' else f"{arg}.alias({quoted(name)})"
            for name, arg in zip(self.names, args, strict=True)
        )
        return f"struct({', '.join(shown)})"


@operation
class Field(RowMethod):
    """One field of a struct; null where the struct is."""

    reads = ("StructExpr.FieldByName",)
    method = "struct.field"
    examples = spell_out('st.struct.field("x"); pl.struct("i8", "s").struct.field("s")')
    field: str

    @property
    def constants(self) -> tuple[tuple[str, Constant], ...]:
        return (("name", self.field),)

    def domain(self, args: Sequence[Domain]) -> Domain:
        operand, name = args[0], self.field
        if operand.dtype.fields is None or operand.fields is None:
            raise UnsupportedOperation(
                f"struct.field works on structs, not on {operand.dtype}",
                remedy="write the column itself",
            )
        fields = dict(operand.fields)
        if name not in fields:
            raise UnknownColumn(
                f"the struct has no field {name!r}", remedy=did_you_mean(name, fields)
            )
        return fields[name].with_null(fields[name].nullable or operand.nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return args[0].struct.field(self.field)


OPERATIONS = (
    *(ListLen, ListGet, ListSlice, ListSum, ListMean, ListMin, ListMax, ToList),
    *(ListContains, ConcatList, StructOf, Field),
)
