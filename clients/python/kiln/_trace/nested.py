"""Nested lists, tuples and dicts of tensors: the arguments and results of traced functions."""

from typing import Any, List, Sequence

import numpy as np

from kiln._basics.errors import TraceError
from kiln._graph.node import Node
from kiln.tensor import Tensor


class _Output:
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"<tensor {self.number}>"


def pack(value: Any, roots: List[Node]) -> Any:
    """Returns the structure of a value, with its tensors replaced by places in `roots`."""
    if isinstance(value, Tensor):
        if value._node not in roots:
            roots.append(value._node)
        return _Output(roots.index(value._node))
    if isinstance(value, dict):
        return {key: pack(item, roots) for key, item in value.items()}
    if isinstance(value, tuple):
        items = [pack(item, roots) for item in value]
        # A namedtuple takes its items one by one, and has `_fields`.
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [pack(item, roots) for item in value]
    if value is None or isinstance(value, (bool, int, float, str, bytes, complex)):
        return value
    raise TraceError(
        f"a kiln.jit function returns {type(value).__name__}; it can return tensors, numbers, "
        "strings, None, and lists, tuples and dicts of them")


def unpack(structure: Any, results: Sequence[Tensor]) -> Any:
    """Returns the value of a structure, with results in the places of its tensors."""
    if isinstance(structure, _Output):
        return results[structure.number]
    if isinstance(structure, dict):
        return {key: unpack(item, results) for key, item in structure.items()}
    if isinstance(structure, tuple):
        items = [unpack(item, results) for item in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)
    if isinstance(structure, list):
        return [unpack(item, results) for item in structure]
    return structure


def with_tensors(value: Any) -> Any:
    """Returns arguments with NumPy arrays turned into tensors."""
    if isinstance(value, np.ndarray):
        return Tensor(value)
    if type(value) is dict:
        return {key: with_tensors(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([with_tensors(item) for item in value])
    return value
