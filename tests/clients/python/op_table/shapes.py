"""The shape classes: scalar, empty, size 1, odd, large; and views that are not contiguous."""

from typing import Any, Callable, Dict, List, Tuple

from op_table.row import Case, Shape

SAME: List[Shape] = [(), (0,), (2, 0, 3), (1,), (1, 1, 1), (7,), (3, 5), (2, 3, 17), (129, 67)]
_PAIRS: List[Tuple[Shape, Shape]] = [
    ((), ()), ((0,), (1,)), ((1,), (1, 1)), ((7,), (7,)), ((3, 5), (5,)), ((3, 1), (1, 5)),
    ((2, 3, 17), (3, 1)), ((129, 67), (129, 67)), ((), (4, 9)),
]  # fmt: skip
_REDUCED: List[Tuple[Shape, Dict[str, Any]]] = [
    ((1,), {"axes": (0,)}), ((7,), {}), ((3, 5), {"axes": (0,)}), ((3, 5), {"axes": (-1,)}),
    ((3, 5), {"axes": (0, 1), "keepdims": True}), ((2, 3, 17), {"axes": (0, 2)}),
    ((2, 3, 17), {"axes": (1,), "keepdims": True}), ((129, 67), {"axes": (0,)}),
    ((129, 67), {"axes": (1,)}), ((3, 0, 2), {"axes": (0,)}),
]  # fmt: skip

# By name, of a larger array of shape (9, 14): the same for kiln's tensors and NumPy's arrays.
BASE: Shape = (9, 14)
VIEWS: Dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.T,
    "strided": lambda x: x[1::2, 3:11:3],
    "reversed": lambda x: x[::-1, ::-2],
    "reshaped": lambda x: x.T.reshape(7, 18),
}


def cases_of(rule: str, operands: int) -> List[Case]:
    """Returns the cases of an op by its shape rule."""
    if rule == "same":
        return [Case((shape,) * operands) for shape in SAME]
    if rule == "broadcast":
        if operands == 2:
            return [Case(pair) for pair in _PAIRS]
        return [Case((a, b, a)[:operands]) for a, b in _PAIRS]
    if rule == "reduce":
        return [Case((shape,), attributes) for shape, attributes in _REDUCED]
    raise ValueError(f"the shape rule {rule} has no cases of its own: the row must give them")
