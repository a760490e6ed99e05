"""Making tensors. Lazy, as everything."""

from typing import Any, List, Optional, Sequence

import numpy as np

from kiln import _dtypes, _node
from kiln._errors import InvalidArgument
from kiln._movement import sizes
from kiln._node import make
from kiln.tensor import Tensor, apply, wrap


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of a number, nested lists or a NumPy array; the data is copied."""
    return Tensor(data, dtype, requires_grad)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor with a copy of an array."""
    return Tensor(array)


def full(shape: Any, value: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """One number everywhere."""
    kind = _dtypes.as_dtype(type(value) if dtype is None else dtype)
    number = value.item() if isinstance(value, np.generic) else value
    node = make("expand", (_node.scalar(number, kind),), (("shape", sizes((shape,))
                if not isinstance(shape, int) else (shape,)),))
    result = wrap(node)
    return result.requires_grad_() if requires_grad else result


def zeros(*shape: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros; float32 unless said otherwise."""
    return full(sizes(shape), 0, dtype or _dtypes.float32, requires_grad)


def ones(*shape: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones; float32 unless said otherwise."""
    return full(sizes(shape), 1, dtype or _dtypes.float32, requires_grad)


def zeros_like(other: Tensor, dtype: Any = None) -> Tensor:
    """Zeros of another tensor's shape and dtype."""
    return zeros(other.shape, dtype=dtype or other.dtype)


def ones_like(other: Tensor, dtype: Any = None) -> Tensor:
    """Ones of another tensor's shape and dtype."""
    return ones(other.shape, dtype=dtype or other.dtype)


def full_like(other: Tensor, value: Any, dtype: Any = None) -> Tensor:
    """One number in another tensor's shape and dtype."""
    return full(other.shape, value, dtype or other.dtype)


def iota(shape: Sequence[int], axis: int = 0, dtype: Any = None) -> Tensor:
    """Each element's index along an axis."""
    kind = _dtypes.as_dtype(dtype or _dtypes.int64)
    return wrap(make("iota", (), (("shape", tuple(shape)), ("axis", axis)), kind))


def arange(start: Any, end: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Numbers from start up to, not including, end."""
    if end is None:
        start, end = 0, start
    if step == 0:
        raise InvalidArgument("arange with a step of 0")
    count = max(0, int(np.ceil((end - start) / step)))
    exact = all(isinstance(value, (int, np.integer)) for value in (start, end, step))
    kind = _dtypes.as_dtype(dtype or (_dtypes.int64 if exact else _dtypes.float32))
    counted = iota((count,), 0, kind)
    if step != 1:
        counted = counted * step
    return counted + start if start != 0 else counted


def linspace(start: float, end: float, steps: int, dtype: Any = None) -> Tensor:
    """`steps` numbers from start to end, both included."""
    kind = _dtypes.as_dtype(dtype or _dtypes.float32)
    if steps == 1:
        return full((1,), float(start), kind)
    return iota((steps,), 0, kind) * ((end - start) / (steps - 1)) + start


def eye(rows: int, columns: Optional[int] = None, dtype: Any = None) -> Tensor:
    """Ones on the diagonal."""
    shape = (rows, rows if columns is None else columns)
    return (iota(shape, 0) == iota(shape, 1)).cast(dtype or _dtypes.float32)


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors joined along a dimension."""
    if not tensors:
        raise InvalidArgument("cat of no tensors")
    return apply("concat", list(tensors), axis=dim)


concat = cat


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors joined along a new dimension."""
    parts: List[Tensor] = [part.unsqueeze(dim) for part in tensors]
    return cat(parts, dim if dim >= 0 else dim + parts[0].ndim if parts else 0)
