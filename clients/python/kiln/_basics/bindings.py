"""The names and bounds of variables, and the values that a run gives them."""

from typing import Any, Iterable, Mapping, Tuple

from kiln._basics.errors import InvalidArgument

Bindings = Mapping["Symbol", int]


class Symbol:
    """A variable within a dimension or number; equal by name and bounds."""

    __slots__ = ("high", "low", "name")

    def __init__(self, name: str, low: int, high: int) -> None:
        self.name = name
        self.low = low
        self.high = high

    def _key(self) -> Tuple[str, int, int]:
        return self.name, self.low, self.high

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Symbol) and self._key() == other._key()

    def __lt__(self, other: "Symbol") -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{self.name} in [{self.low}, {self.high}]"


def checked(symbol: Symbol, value: Any) -> int:
    """Returns `value` as an integer; raises InvalidArgument outside of the variable's bounds."""
    number = int(value)
    if not symbol.low <= number <= symbol.high:
        raise InvalidArgument(
            f'variable "{symbol.name}" is bound to {number}, outside its bounds '
            f"{symbol.low} to {symbol.high}")
    return number


def unbound(symbol: Symbol) -> str:
    """Returns the message for a variable that has no value in a run."""
    return (f'variable "{symbol.name}" has no value in this run; give it one with '
            f"{symbol.name}.bind(value)")


def require(declared: Iterable[Any], values: Bindings) -> None:
    """Raises InvalidArgument unless each of a graph's variables has a value."""
    if declared:
        names = {symbol.name for symbol in values}
        for variable in declared:
            if variable.name not in names:
                raise InvalidArgument(unbound(Symbol(variable.name, variable.min, variable.max)))


def merged(values: Bindings, others: Bindings) -> Bindings:
    """Returns the union; raises InvalidArgument if a variable has two values."""
    if not values or values is others:
        return others
    result = dict(values)
    for symbol, value in others.items():
        if result.setdefault(symbol, value) != value:
            raise InvalidArgument(
                f'variable "{symbol.name}" is bound to {result[symbol]} and to {value} in one '
                "run; use one value for each variable")
    return result
