"""Operands with which each op's documentation shows it: shapes by shape rule or by op."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from kiln import _rules
from kiln._basics.errors import InvalidArgument
from kiln._ops.definition import Op

Shape = Tuple[int, ...]

_MATRIX: Shape = (2, 3)


def _windowed(rank: int) -> Dict[str, Tuple[List[Shape], Dict[str, Any]]]:
    """Rules whose operands have `rank` spatial dimensions."""
    x, taps = (1, 4, *(8,) * rank), (3,) * rank
    return {
        "conv": ([x, (6, 4, *taps), (6,)], {}),
        "conv_transpose": ([x, (4, 6, *taps), (6,)], {}),
        "pool": ([x], {"kernel": (2,) * rank}),
    }


# The operands' shapes, the last one for all further ones, and the attributes without a default.
_BY_RULE: Dict[str, Tuple[List[Shape], Dict[str, Any]]] = {
    "attribute": ([_MATRIX], {"shape": (2, 3)}),
    "same": ([_MATRIX], {}),
    "broadcast": ([_MATRIX, (3,)], {}),
    "reduce": ([_MATRIX], {"axes": (1,)}),
    "reshape": ([_MATRIX], {"shape": (3, 2)}),
    "permute": ([_MATRIX], {"axes": (1, 0)}),
    "expand": ([(1, 3)], {"shape": (2, 3)}),
    "pad": ([_MATRIX], {"padding": (0, 0, 1, 2)}),
    "shrink": ([_MATRIX], {"bounds": (0, 2, 1, 3)}),
    "flip": ([_MATRIX], {}),
    "window": ([(2, 5)], {"axis": 1, "size": 3}),
    "unwindow": ([(2, 3, 3)], {"axis": 1, "length": 5}),
    "gather": ([_MATRIX, (4,)], {}),
    "scatter": ([_MATRIX, (4,), (4, 3)], {}),
    "gather_elements": ([_MATRIX, (4, 3)], {}),
    "scatter_elements": ([_MATRIX, (4, 3), (4, 3)], {}),
    "take_along_axis": ([_MATRIX, (4, 1)], {}),
    "put_along_axis": ([_MATRIX, (4, 1), (4, 3)], {}),
    "index": ([_MATRIX, (4,)], {}),
    "index_put": ([_MATRIX, (), (4,)], {}),
    "one_hot": ([_MATRIX], {"classes": 4}),
    "concat": ([_MATRIX], {}),
    "matmul": ([_MATRIX, (3, 4)], {}),
    "linear": ([_MATRIX, (4, 3), (4,)], {}),
    "attention": ([(2, 5, 4), (2, 6, 4), (2, 6, 3), (5, 6)], {}),
    "resize": ([(1, 4, 8, 8)], {"size": (4, 4)}),
    "unfold": ([(1, 4, 8, 8)], {"kernel": (2, 2)}),
    "fold": ([(1, 16, 49)], {"size": (8, 8), "kernel": (2, 2)}),
    "pixel_shuffle": ([(1, 8, 2, 3)], {"factor": 2}),
    "pixel_unshuffle": ([(1, 2, 4, 6)], {"factor": 2}),
    "loss": ([_MATRIX], {}),
    "label_loss": ([_MATRIX, (2,)], {}),
    "row_loss": ([_MATRIX], {}),
    "pairwise": ([_MATRIX], {}),
    "half": ([(2, 4)], {}),
    "topk": ([_MATRIX], {"k": 2}),
    "einsum": ([_MATRIX, (3, 4)], {"equation": "ij,jk->ik"}),
    "diagonal": ([_MATRIX], {}),
    "diag_embed": ([_MATRIX], {}),
    "solve": ([(3, 3), (3, 2)], {}),
    "determinant": ([(3, 3)], {}),
    "qr": ([(3, 2)], {"part": "q"}),
    **{f"{kind}_{rank}": call for rank in (1, 2, 3) for kind, call in _windowed(rank).items()},
}
_BY_OP: Dict[str, Tuple[List[Shape], Dict[str, Any]]] = {
    "batch_norm": ([_MATRIX, (3,)], {}),
    "cross_entropy": ([_MATRIX], {}),
    "dropout": ([_MATRIX, (2,)], {}),
    "rotary_embedding": ([(2, 5, 4), (5, 2)], {}),
    "prelu": ([_MATRIX, (3,)], {}),
    "group_norm": ([_MATRIX], {"groups": 3}),
    "instance_norm": ([(2, 3, 4)], {}),
    "local_response_norm": ([_MATRIX], {"size": 2}),
    "cosine_embedding_loss": ([_MATRIX, _MATRIX, (2,)], {}),
    "cumulative_sum": ([_MATRIX], {"axis": 1}),
    "cumulative_prod": ([_MATRIX], {"axis": 1}),
    "cumulative_max": ([_MATRIX], {"axis": 1}),
    "cumulative_min": ([_MATRIX], {"axis": 1}),
    "cumulative_logsumexp": ([_MATRIX], {"axis": 1}),
    "roll": ([_MATRIX], {"shifts": (1,), "axes": (0,)}),
    "searchsorted": ([_MATRIX, (4,)], {}),
    "cholesky": ([(3, 3)], {}),
    "inv": ([(3, 3)], {}),
    "cross": ([_MATRIX, (3,)], {}),
    "random_bits": ([(2,)], {"shape": (2, 3)}),
    "random_uniform": ([(2,)], {"shape": (2, 3)}),
    "random_normal": ([(2,)], {"shape": (2, 3)}),
}
_DTYPE_OF_CLASS = {"integer": "int64", "integer_or_bool": "int64", "bool": "bool",
                   "uint32": "uint32"}  # fmt: skip


class Example(NamedTuple):
    """A call's arguments as text, and the shape of what it gives."""

    text: str
    shape: Shape


def _rule_of(op: Op) -> str:
    """The shape rule, with the number of spatial dimensions where several ops share it."""
    rank = _rules.spatial_rank(op) if op.shape_rule in ("conv", "conv_transpose", "pool") else 0
    return f"{op.shape_rule}_{rank}" if rank else op.shape_rule


def example_of(op: Op) -> Optional[Example]:
    """Arguments for an op; None if there is no example for its rule."""
    shapes, known = _BY_OP.get(op.name) or _BY_RULE.get(_rule_of(op), ([], {}))
    if not shapes:
        return None
    least = [name for name in op.operands if not name.endswith("?")]
    count = 2 if any(name.endswith("*") for name in least) and len(least) == 1 else len(least)
    given = [shapes[min(i, len(shapes) - 1)] for i in range(count)]
    attributes = {attribute.name: known[attribute.name] for attribute in op.attributes
                  if attribute.name in known}  # fmt: skip
    try:
        complete = _rules.complete_attributes(op, attributes)
        result = _rules.infer_shape(op, given, complete)
    except InvalidArgument:
        return None
    parts = [_operand(op, i, shape) for i, shape in enumerate(given)]
    parts += [f"{name}={value!r}" for name, value in attributes.items()]
    if op.dtype_rule == "attribute":
        parts.append("dtype=kiln.int32")
    return Example(", ".join(parts), result)


def _operand(op: Op, number: int, shape: Shape) -> str:
    wanted = op.special_class if op.is_special(number) else op.operand_class
    dtype = _DTYPE_OF_CLASS.get(wanted)
    return f"kiln.ones({shape})" if dtype is None else f"kiln.ones({shape}, dtype=kiln.{dtype})"
