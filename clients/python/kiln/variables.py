"""Named variables in shapes: one program for all their values.

A `Variable` is an integer between two bounds that a program leaves open. It can be used as a size
or as the end of a slice, and so can sums and products of variables. Each run binds it:

    pos = kiln.Variable("pos", 1, 256)

    @kiln.jit
    def attend(query, cache, pos):
        keys = cache[:, :pos]
        return (query @ keys.mT).softmax() @ keys

    for i in range(1, 257):
        attend(query, cache, pos.bind(i))    # traced once, compiled once
"""

from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Sequence, Tuple, Union

from kiln._basics.bindings import Bindings, Symbol, checked, merged, unbound
from kiln._basics.errors import InvalidArgument

# Whether a variable was ever made: programs without variables pay no cost.
in_use = False

_Product = Tuple[Symbol, ...]
Number = Union[int, "Dim"]


class Dim:
    """An integer that depends on variables: a sum of products of them.

    Immutable. Equal if the sums are equal, whatever the variables are bound to. Comparisons are
    decided by the bounds, and raise InvalidArgument if the bounds do not decide them.
    """

    __slots__ = ("_terms", "values")

    def __init__(self, terms: Mapping[_Product, int], values: Optional[Bindings] = None) -> None:
        self._terms: Dict[_Product, int] = {p: f for p, f in terms.items() if f}
        # The known values of the variables; not part of the number's identity.
        self.values: Bindings = values or {}

    # Properties.

    @property
    def symbols(self) -> Tuple[Symbol, ...]:
        """Returns the variables in it."""
        return tuple(sorted({symbol for product in self._terms for symbol in product}))

    @property
    def terms(self) -> Dict[Symbol, int]:
        """Returns the factors by variable; raises InvalidArgument for a product of variables."""
        for product in self._terms:
            if len(product) > 1:
                raise InvalidArgument(
                    f"{self!r} has a product of variables; a size or an index can only be a sum of "
                    "variables with factors")
        return {product[0]: factor for product, factor in self._terms.items() if product}

    @property
    def constant(self) -> int:
        """Returns the constant term."""
        return self._terms.get((), 0)

    @property
    def low(self) -> int:
        """Returns the least possible value."""
        return self._bounds()[0]

    @property
    def high(self) -> int:
        """Returns the greatest possible value."""
        return self._bounds()[1]

    def _bounds(self) -> Tuple[int, int]:
        low = high = 0
        for product, factor in self._terms.items():
            term_low = term_high = factor
            for symbol in product:  # bounds of variables are positive
                term_low *= symbol.low if factor > 0 else symbol.high
                term_high *= symbol.high if factor > 0 else symbol.low
            low += term_low
            high += term_high
        return low, high

    def at(self, values: Bindings) -> int:
        """Returns the number for these values; raises InvalidArgument if one is missing."""
        total = 0
        for product, factor in self._terms.items():
            for symbol in product:
                if symbol not in values:
                    raise InvalidArgument(unbound(symbol))
                factor *= values[symbol]
            total += factor
        return total

    def unbound(self) -> "Dim":
        """Returns the number without known values."""
        return Dim(self._terms) if self.values else self

    # Arithmetic.

    def _make(self, terms: Mapping[_Product, int], other: Any) -> Number:
        values = self.values
        if isinstance(other, Dim) and other.values:
            values = merged(values, other.values)
        # If all variables cancel out, a plain int remains.
        if not any(product for product, factor in terms.items() if factor):
            return terms.get((), 0)
        return Dim(terms, values)

    def __add__(self, other: Any) -> Number:
        terms = _terms_of(other)
        if terms is None:
            return NotImplemented
        total = dict(self._terms)
        for product, factor in terms.items():
            total[product] = total.get(product, 0) + factor
        return self._make(total, other)

    def __neg__(self) -> Number:
        return self * -1

    def __pos__(self) -> Number:
        return self

    def __sub__(self, other: Any) -> Number:
        return NotImplemented if _terms_of(other) is None else self + -other

    def __rsub__(self, other: Any) -> Number:
        return NotImplemented if _terms_of(other) is None else -self + other

    def __mul__(self, other: Any) -> Number:
        terms = _terms_of(other)
        if terms is None:
            return NotImplemented
        total: Dict[_Product, int] = {}
        for mine, factor in self._terms.items():
            for theirs, times in terms.items():
                product = tuple(sorted(mine + theirs))
                total[product] = total.get(product, 0) + factor * times
        return self._make(total, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Number:
        quotient = self._quotient(other)
        if quotient is None:
            raise InvalidArgument(
                f"{self!r} // {other!r}: it is not a multiple, so the quotient is not a sum of "
                "variables. Make it a multiple, or use a separate variable for the size")
        return quotient

    def __mod__(self, other: Any) -> Number:
        if self._quotient(other) is None:
            raise InvalidArgument(
                f"{self!r} % {other!r} depends on {_names(self)}; only multiples have a remainder "
                "(0) that is the same for all values")
        return 0

    def _quotient(self, other: Any) -> Optional[Number]:
        """Returns self / other if that is a sum of products, else None."""
        divisor = _terms_of(other)
        if divisor is None or len(divisor) != 1:
            return 1 if self == other else None
        ((symbols, times),) = divisor.items()
        total: Dict[_Product, int] = {}
        for product, factor in self._terms.items():
            left = list(product)
            for symbol in symbols:
                if symbol not in left:
                    return None
                left.remove(symbol)
            if not times or factor % times:
                return None
            total[tuple(left)] = factor // times
        return self._make(total, other)

    # Comparison.

    def __eq__(self, other: Any) -> bool:
        terms = _terms_of(other)
        return terms is not None and {p: f for p, f in terms.items() if f} == self._terms

    def __hash__(self) -> int:
        return hash(frozenset(self._terms.items()))

    def __lt__(self, other: Any) -> bool:
        return self._decide(other, "<", lambda low, high: high < 0, lambda low, high: low >= 0)

    def __le__(self, other: Any) -> bool:
        return self._decide(other, "<=", lambda low, high: high <= 0, lambda low, high: low > 0)

    def __gt__(self, other: Any) -> bool:
        return self._decide(other, ">", lambda low, high: low > 0, lambda low, high: high <= 0)

    def __ge__(self, other: Any) -> bool:
        return self._decide(other, ">=", lambda low, high: low >= 0, lambda low, high: high < 0)

    def _decide(self, other: Any, sign: str, is_true: Any, is_false: Any) -> bool:
        if _terms_of(other) is None:
            return NotImplemented  # type: ignore[no-any-return]
        low, high = bounds(self - other)
        if is_true(low, high):
            return True
        if is_false(low, high):
            return False
        raise InvalidArgument(
            f"whether {self!r} {sign} {other!r} depends on {_names(self, other)}; a program for "
            "all values cannot branch on it. Tighten the bounds, or choose with kiln.where")

    def __bool__(self) -> bool:
        return True  # a Dim is never the number 0, which would be an int

    # Conversion to Python's numbers.

    def __int__(self) -> int:
        raise InvalidArgument(
            f"{self!r} has no single value, because it depends on {_names(self)}. Use it as a "
            "size, in a "
            "slice, or in arithmetic with tensors")

    __index__ = __int__

    def __float__(self) -> float:
        return float(int(self))

    def __repr__(self) -> str:
        text = ""
        for product, factor in sorted(self._terms.items(), key=lambda term: term[0], reverse=True):
            size = abs(factor)
            names = [symbol.name for symbol in product]
            part = "*".join([str(size)] * (size != 1 or not names) + names)
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {part}" if text else (f"-{part}" if factor < 0 else part)
        return text or "0"


class Variable(Dim):
    """An integer in [low, high] that each run binds.

    `name` identifies it within a program; variables of one name must have the same bounds. Raises
    InvalidArgument for an empty name, and unless 1 <= low <= high.

    >>> n = kiln.Variable("n", 1, 8)
    >>> 2 * n - 1
    2*n - 1
    >>> kiln.arange(n.bind(3)).tolist()
    [0, 1, 2]
    """

    __slots__ = ("symbol",)

    def __init__(self, name: str, low: int, high: int) -> None:
        global in_use
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"a variable named {name!r}; its name must be a string")
        if not 1 <= low <= high:
            raise InvalidArgument(
                f'variable "{name}": its bounds are {low} to {high}; 1 <= low <= high must hold')
        self.symbol = Symbol(name, int(low), int(high))
        super().__init__({(self.symbol,): 1})
        in_use = True

    @property
    def name(self) -> str:
        """Returns its name.

        >>> kiln.Variable("position", 1, 9).name
        'position'
        """
        return self.symbol.name

    def bind(self, value: int) -> Dim:
        """Returns the variable with a value, for the runs of everything made with it.

        Raises InvalidArgument if the value is outside of the bounds.

        >>> kiln.Variable("position", 1, 9).bind(3)
        position
        """
        return Dim(self._terms, {self.symbol: checked(self.symbol, value)})


def values_in(value: Any) -> Bindings:
    """Returns the known values of variables in an attribute: a number or a tuple of them."""
    if isinstance(value, Dim):
        return value.values
    known: Bindings = {}
    if isinstance(value, (tuple, list)):
        for item in value:
            if isinstance(item, Dim) and item.values:
                known = merged(known, item.values)
    return known


def has_dims(numbers: Iterable[Any]) -> bool:
    """Returns whether one of the numbers depends on variables."""
    return any(isinstance(number, Dim) for number in numbers)


def shape_at(shape: Sequence[Any], values: Bindings) -> Tuple[int, ...]:
    """Returns a shape's sizes for these values of the variables."""
    return tuple(size.at(values) if isinstance(size, Dim) else size for size in shape)


def without_values(shape: Sequence[Any]) -> Tuple[Any, ...]:
    """Returns a shape without known values."""
    return tuple(size.unbound() if isinstance(size, Dim) else size for size in shape)


def bounds(number: Number) -> Tuple[int, int]:
    """Returns the least and the greatest possible value."""
    return (number.low, number.high) if isinstance(number, Dim) else (number, number)


def _terms_of(value: Any) -> Optional[Mapping[_Product, int]]:
    if isinstance(value, Dim):
        return value._terms
    if hasattr(value, "__index__"):
        return {(): value.__index__()}
    return None


def _names(*numbers: Any) -> str:
    def symbols() -> Iterator[Symbol]:
        for number in numbers:
            if isinstance(number, Dim):
                yield from number.symbols

    return ", ".join(repr(symbol) for symbol in dict.fromkeys(symbols()))


__all__ = ["Variable"]
