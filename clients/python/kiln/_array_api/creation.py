"""Functions that make tensors. Lazy, like all others."""

from math import ceil
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._graph import places
from kiln._rules import whole
from kiln._tensor.constructors import filled, iota
from kiln._tensor.shapes import sizes
from kiln.tensor import Tensor, wrap
from kiln.variables import Dim, has_dims

ShapeLike = Union[int, Sequence[int]]


def on(device: Any, result: Tensor) -> Tensor:
    """Returns `result` on a device, or as it is for None or a tuple (of a tensor on a mesh)."""
    if device is None or isinstance(device, tuple):
        return result
    return result.to_device(device)


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Returns a tensor of a number, nested lists or a NumPy array; the data is copied.

    Python floats become float32, ints int64; NumPy arrays keep their dtype.

    >>> kiln.tensor([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    return Tensor(data, dtype, requires_grad)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None,
            copy: Optional[bool] = None) -> Tensor:
    """Returns a tensor of a tensor, number, nested lists, or an object with DLPack or a buffer.

    A tensor of that dtype and device is returned itself unless copy is True. Everything else is
    copied to the device, so copy=False raises ValueError for it.

    >>> kiln.asarray([1.5, 2.5], dtype=kiln.float64).dtype
    kiln.float64
    """
    if isinstance(obj, Tensor):
        cast = on(device, obj if dtype is None else obj.cast(dtype))
        if cast is not obj and copy is False:
            raise ValueError(
                f"{cast.dtype.name} on {cast.device} is a copy, which copy=False forbids")
        return obj.__copy__() if cast is obj and copy else cast
    if copy is False:
        raise ValueError("data is copied to the device, which copy=False forbids")
    if not hasattr(obj, "__array__") and hasattr(obj, "__dlpack__"):
        obj = np.from_dlpack(obj)
    elif hasattr(obj, "__array__") and not isinstance(obj, (np.ndarray, np.generic)):
        obj = np.asarray(obj)
    return on(device, Tensor(obj, dtype))


def from_dlpack(x: Any, /, *, device: Any = None, copy: Optional[bool] = None) -> Tensor:
    """Returns a tensor with a copy of another library's array on the CPU.

    For a tensor of Kiln it returns another tensor of the same value. copy=False raises BufferError
    for everything else.

    >>> kiln.from_dlpack(np.arange(3)).tolist()
    [0, 1, 2]
    """
    if isinstance(x, Tensor):
        there = on(device, x)
        return x.__copy__() if there is x else there
    if copy is False:
        raise BufferError("data is copied to the device, which copy=False forbids")
    return on(device, Tensor(np.from_dlpack(x)))


def from_numpy(array: "np.ndarray[Any, Any]") -> Tensor:
    """Returns a tensor with a copy of an array.

    >>> kiln.from_numpy(np.zeros(3)).dtype
    kiln.float64
    """
    return Tensor(array)


def full(shape: ShapeLike, fill_value: Any, dtype: Any = None, requires_grad: bool = False, *,
         device: Any = None) -> Tensor:
    """Returns a tensor filled with one number; without a dtype it is float32, int64 or bool.

    >>> kiln.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """
    result = on(device, filled(sizes((shape,)), fill_value, dtype))
    if not requires_grad:
        return result
    return (result if result.is_leaf else result.detach()).requires_grad_()


def zeros(shape: ShapeLike, *more: int, dtype: Any = None, device: Any = None,
          requires_grad: bool = False) -> Tensor:
    """Returns zeros; float32 by default. The shape may be given as several numbers.

    >>> kiln.zeros(2, 3).shape, kiln.zeros((2, 3), dtype=kiln.int8).dtype
    ((2, 3), kiln.int8)
    """
    return full(sizes((shape, *more)), 0, dtype or dtypes.float32, requires_grad, device=device)


def ones(shape: ShapeLike, *more: int, dtype: Any = None, device: Any = None,
         requires_grad: bool = False) -> Tensor:
    """Returns ones; float32 by default. The shape may be given as several numbers.

    >>> kiln.ones(3).tolist()
    [1.0, 1.0, 1.0]
    """
    return full(sizes((shape, *more)), 1, dtype or dtypes.float32, requires_grad, device=device)


def empty(shape: ShapeLike, *more: int, dtype: Any = None, device: Any = None,
          requires_grad: bool = False) -> Tensor:
    """Returns zeros, like zeros(): no tensor exposes previous contents of memory.

    >>> kiln.empty(2, 3).shape
    (2, 3)
    """
    return zeros(shape, *more, dtype=dtype, device=device, requires_grad=requires_grad)


def zeros_like(x: Tensor, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns zeros of another tensor's shape and dtype.

    >>> kiln.zeros_like(kiln.tensor([1, 2])).tolist()
    [0, 0]
    """
    return full_like(x, 0, dtype, device=device)


def ones_like(x: Tensor, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns ones of another tensor's shape and dtype.

    >>> kiln.ones_like(kiln.tensor([1, 2])).tolist()
    [1, 1]
    """
    return full_like(x, 1, dtype, device=device)


def empty_like(x: Tensor, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns zeros, like zeros_like().

    >>> kiln.empty_like(kiln.tensor([1, 2])).shape
    (2,)
    """
    return zeros_like(x, dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns a tensor filled with one number, with another tensor's shape, dtype and placement.

    >>> kiln.full_like(kiln.tensor([1, 2]), 5).tolist()
    [5, 5]
    """
    result = full(x.shape, fill_value, dtype or x.dtype, device=device)
    return result if device is not None else wrap(places.like(x._node, result._node))


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None,
           device: Any = None) -> Tensor:
    """Returns numbers from start up to, not including, stop; int64 of integers, else float32.

    Raises InvalidArgument for a step of 0, and for an integer dtype with other numbers.

    >>> kiln.arange(5).tolist(), kiln.arange(1, 2, 0.25).tolist()
    ([0, 1, 2, 3, 4], [1.0, 1.25, 1.5, 1.75])
    """
    if device is not None:
        return on(device, arange(start, stop, step, dtype=dtype))
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise InvalidArgument("arange with a step of 0; the step must not be 0")
    if has_dims((start, stop)):
        if step != 1:
            raise InvalidArgument(f"arange from {start} to {stop} by {step}; with variables the "
                                  "step must be 1")
        counted = iota((stop - start,), 0, dtype)
        return counted + start if isinstance(start, Dim) or start else counted
    count = max(0, ceil((stop - start) / step))
    exact = all(isinstance(value, (int, np.integer)) for value in (start, stop, step))
    kind = dtypes.as_dtype(dtype or (dtypes.int64 if exact else dtypes.float32))
    if kind.is_integer and not exact:
        raise InvalidArgument(
            f"arange from {start} to {stop} by {step} as {kind.name}; start, stop and step must be "
            "integers, or the dtype a float")
    counted = iota((count,), 0, kind)
    if step != 1 and count > 1:
        counted = counted * step
    return counted + start if start != 0 and count else counted


def linspace(start: float, stop: float, /, num: int, *, dtype: Any = None, device: Any = None,
             endpoint: bool = True) -> Tensor:
    """Returns `num` numbers from start to stop, which is the last one unless endpoint is False.

    >>> kiln.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if device is not None:
        return on(device, linspace(start, stop, num, dtype=dtype, endpoint=endpoint))
    kind = dtypes.as_dtype(dtype or dtypes.float32)
    if whole(num, "num") < 0:
        raise InvalidArgument(f"linspace with {num} numbers")
    parts = num - 1 if endpoint else num
    if num == 0 or parts == 0:
        return full((num,), float(start), kind)
    exact = kind if kind in (dtypes.float32, dtypes.float64) else dtypes.float64
    place = iota((num,), 0, exact)
    # Computed from the nearer end, so that both ends are exact.
    step = (stop - start) / parts
    rising = place * step + start
    falling = (place - parts) * step + stop
    return falling.where(place * 2 > parts, rising).cast(kind)


def eye(n_rows: int, n_cols: Optional[int] = None, /, *, k: int = 0, dtype: Any = None,
        device: Any = None) -> Tensor:
    """Returns ones on the k-th diagonal, zeros elsewhere; float32 by default.

    >>> kiln.eye(2, 3, k=1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if device is not None:
        return on(device, eye(n_rows, n_cols, k=k, dtype=dtype))
    shape = sizes((n_rows, n_rows if n_cols is None else n_cols))
    k = whole(k, "k")
    if not has_dims(shape):
        k = max(-shape[0], min(k, shape[1]))  # there are no diagonals beyond
    return (iota(shape, 0) + k).eq(iota(shape, 1)).cast(dtype or dtypes.float32)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> Tuple[Tensor, ...]:
    """Returns coordinates of a grid: each vector along its own dimension, all of one shape.

    With "ij" vector i runs along dimension i; with "xy" the first two are exchanged. Raises
    InvalidArgument for another indexing, and for tensors other than vectors.

    >>> [part.tolist() for part in kiln.meshgrid(kiln.arange(2), kiln.arange(2))]
    [[[0, 1], [0, 1]], [[0, 0], [1, 1]]]
    """
    if indexing not in ("xy", "ij"):
        raise InvalidArgument(f'meshgrid with indexing {indexing!r}; it must be "xy" or "ij"')
    for array in arrays:
        if array.ndim > 1:
            raise InvalidArgument(f"meshgrid of shape {array.shape}; it takes vectors")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[:2] = [1, 0]
    shape = [1] * len(arrays)
    for axis, array in zip(order, arrays):
        shape[axis] = array.numel()
    result: List[Tensor] = []
    for axis, array in zip(order, arrays):
        own = [1] * len(arrays)
        own[axis] = array.numel()
        result.append(array.reshape(own).expand(shape))
    return tuple(result)


def tril(x: Tensor, /, k: int = 0) -> Tensor:
    """Returns x on and below the k-th diagonal of the last two dimensions, zero above it.

    >>> kiln.tril(kiln.ones(2, 2)).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return x.tril(k)


def triu(x: Tensor, /, k: int = 0) -> Tensor:
    """Returns x on and above the k-th diagonal of the last two dimensions, zero below it.

    >>> kiln.triu(kiln.ones(2, 2), k=1).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    return x.triu(k)
