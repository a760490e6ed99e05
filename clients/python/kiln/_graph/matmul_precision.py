"""How precisely the float32 factors of matrix products and convolutions are taken."""

from typing import Any

from kiln._basics.errors import InvalidArgument, TraceError
from kiln._graph.node import mode
from kiln._proto.kiln.v1 import graph_pb2

# What graphs say. "highest" is what they mean when they say nothing, so that they have the bytes
# that they had before there was a choice.
_CODES = {
    "highest": graph_pb2.MATMUL_PRECISION_UNSPECIFIED,
    "high": graph_pb2.MATMUL_PRECISION_HIGH,
    "medium": graph_pb2.MATMUL_PRECISION_HIGH,
}


class _Chosen:
    """Of the process, for all of its threads; assigning and reading it are one step each."""

    precision = "highest"


_chosen = _Chosen()


def set_float32_matmul_precision(precision: str) -> None:
    """Says how precisely float32 matrix products and convolutions are computed.

    - "highest", the default: factors are taken as they are.
    - "high": factors are rounded to tf32, which has float32's range and 10 bits behind the point
      instead of 23, and multiplied and added up in float32. NVIDIA's matrix units do that many
      times faster. Other devices round as well, so that all give the same numbers up to the order
      of sums; they gain nothing by it.
    - "medium": the same as "high". PyTorch may take bfloat16 then, but is free to use what is more
      precise.

    This holds for matmul, linear, einsum, convolutions, attention and the gradients of all of
    them, for all threads, and for what is computed from now on: lazy tensors that were made before
    have no values yet. Functions of `kiln.jit` are traced again. float64, float16 and bfloat16
    stay as they are.

    >>> kiln.set_float32_matmul_precision("high")
    >>> x = kiln.tensor([[1.0001, 0.0], [0.0, 1.0]])
    >>> (x @ x).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> kiln.set_float32_matmul_precision("highest")
    """
    if not isinstance(precision, str) or precision not in _CODES:
        raise InvalidArgument(
            f"no such precision of float32 matrix products: {precision!r}; there are "
            + ", ".join(f'"{name}"' for name in _CODES))
    if mode.trace is not None:
        raise TraceError(
            "set_float32_matmul_precision() within a function that kiln.jit traces, whose later "
            "calls would not set it; call it outside")
    _chosen.precision = precision


def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision() was last given.

    >>> kiln.get_float32_matmul_precision()
    'highest'
    """
    return _chosen.precision


def current_code() -> Any:
    """What a graph that is built now says."""
    return _CODES[_chosen.precision]
