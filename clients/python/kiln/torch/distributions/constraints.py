"""torch.distributions.constraints: the values that parameters and samples may have."""

from typing import Any, Callable, Optional


class Constraint:
    """A set of values."""

    is_discrete = False
    event_dim = 0

    def __init__(self, name: str, check: Callable[[Any], Any], is_discrete: bool = False,
                 event_dim: int = 0) -> None:
        self._name = name
        self._check = check
        self.is_discrete = is_discrete
        self.event_dim = event_dim

    def check(self, value: Any) -> Any:
        """Returns which values, or events of several, are in the set."""
        return self._check(value)

    def __repr__(self) -> str:
        return self._name


def _is_whole(value: Any) -> Any:
    return value % 1 == 0


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Returns the numbers from lower_bound to upper_bound."""
    return Constraint(f"interval({lower_bound}, {upper_bound})",
                      lambda value: (value >= lower_bound) & (value <= upper_bound))


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Returns the integers from lower_bound to upper_bound."""
    return Constraint(
        f"integer_interval({lower_bound}, {upper_bound})",
        lambda value: _is_whole(value) & (value >= lower_bound) & (value <= upper_bound), True)


def greater_than(lower_bound: Any) -> Constraint:
    """Returns the numbers above lower_bound."""
    return Constraint(f"greater_than({lower_bound})", lambda value: value > lower_bound)


def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """Returns the events all of whose values are in another set."""

    def check(value: Any) -> Any:
        found = base_constraint.check(value)
        for _ in range(reinterpreted_batch_ndims):
            found = found.all(-1)
        return found

    return Constraint(f"independent({base_constraint!r}, {reinterpreted_batch_ndims})", check,
                      base_constraint.is_discrete,
                      base_constraint.event_dim + reinterpreted_batch_ndims)


def _lower_triangular(value: Any) -> Any:
    return (value.tril() == value).all(-1).all(-1) & (value.diagonal(0, -2, -1) > 0).all(-1)


def _symmetric(value: Any) -> Any:
    return ((value - value.mT).abs() < 1e-4).all(-1).all(-1)


real = Constraint("real", lambda value: value == value)
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = Constraint("nonnegative", lambda value: value >= 0)
unit_interval = interval(0.0, 1.0)
boolean = Constraint("boolean", lambda value: (value == 0) | (value == 1), True)
nonnegative_integer = Constraint(
    "nonnegative_integer", lambda value: _is_whole(value) & (value >= 0), True)
positive_integer = Constraint(
    "positive_integer", lambda value: _is_whole(value) & (value >= 1), True)
simplex = Constraint(
    "simplex",
    lambda value: (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6), event_dim=1)
one_hot = Constraint(
    "one_hot",
    lambda value: ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1), True, 1)
lower_cholesky = Constraint("lower_cholesky", _lower_triangular, event_dim=2)
positive_definite = Constraint("positive_definite", _symmetric, event_dim=2)
positive_vector = independent(positive, 1)


def is_dependent(constraint: Optional[Constraint]) -> bool:
    """Returns False: constraints are made with their bounds."""
    return False


__all__ = [
    "Constraint", "boolean", "greater_than", "independent", "integer_interval", "interval",
    "is_dependent", "lower_cholesky", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_vector", "real", "real_vector", "simplex",
    "unit_interval",
]
