"""Dialects: tensors whose ops follow the rules of another library, such as those of kiln.torch.

A node has the dialect of its first operand that has one, so every function and method, also those
that know nothing of dialects, returns tensors of the dialect when it is given some.
"""

from typing import Any, Tuple


class Dialect:
    """The rules of a dialect. A process has one object of each."""

    # The class of its tensors, derived from Tensor.
    tensor_class: Any = None

    def operands(self, name: str, operands: Tuple[Any, ...]) -> Tuple[Any, ...]:
        """Returns the nodes that an op takes in place of `operands`."""
        raise NotImplementedError

    def number(self, value: Any, dtype: Any, op: str) -> Any:
        """Returns the value that stands for a Python number, an operand of an op, in a dtype."""
        raise NotImplementedError


# Whether there can be nodes with a dialect.
in_use = False


def use() -> None:
    """Makes `make` look for dialects. Called once by a package that has one."""
    global in_use
    in_use = True
