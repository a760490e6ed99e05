"""The precision of float32 factors in matrix products and convolutions."""

from typing import Any

from kiln._basics.errors import InvalidArgument, TraceError
from kiln._graph.node import mode
from kiln._proto.kiln.v1 import graph_pb2

# The graph's codes. "highest" is the unset field, so such graphs have the same bytes as before the
# field existed.
_CODES = {
    "highest": graph_pb2.MATMUL_PRECISION_UNSPECIFIED,
    "high": graph_pb2.MATMUL_PRECISION_HIGH,
    "medium": graph_pb2.MATMUL_PRECISION_HIGH,
}


class _Chosen:
    """The setting of the process, for all threads; assigning and reading it are one step each."""

    precision = "highest"


_chosen = _Chosen()


def set_float32_matmul_precision(precision: str) -> None:
    """Sets the precision of float32 matrix products and convolutions.

    - "highest", the default: factors are not rounded.
    - "high": factors are rounded to tf32, which has float32's range and 10 bits of fraction instead
      of 23, and multiplied and added up in float32. NVIDIA's matrix units do that many times
      faster. Other devices round as well, so that all give the same numbers up to the order of
      sums; they gain no speed.
    - "medium": the same as "high". PyTorch may use bfloat16 here, but allows more precise formats.

    This holds for matmul, linear, einsum, convolutions, attention and the gradients of all of them,
    for all threads, and for everything computed from now on, including lazy tensors that were made
    before. Functions of `kiln.jit` are traced again. float64, float16 and bfloat16 are not
    affected.

    Raises InvalidArgument for another precision, and TraceError within a function that kiln.jit
    traces.

    >>> kiln.set_float32_matmul_precision("high")
    >>> x = kiln.tensor([[1.0001, 0.0], [0.0, 1.0]])
    >>> (x @ x).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> kiln.set_float32_matmul_precision("highest")
    """
    if not isinstance(precision, str) or precision not in _CODES:
        raise InvalidArgument(
            f"unknown precision of float32 matrix products: {precision!r}; use one of "
            + ", ".join(f'"{name}"' for name in _CODES))
    if mode.trace is not None:
        raise TraceError(
            "set_float32_matmul_precision() inside a function that kiln.jit traces; later calls "
            "would not set it. Call it outside")
    _chosen.precision = precision


def get_float32_matmul_precision() -> str:
    """Returns the precision that set_float32_matmul_precision() was last given.

    >>> kiln.get_float32_matmul_precision()
    'highest'
    """
    return _chosen.precision


def current_code() -> Any:
    """Returns the code for a graph that is built now."""
    return _CODES[_chosen.precision]
