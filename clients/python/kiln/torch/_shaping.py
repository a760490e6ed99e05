"""Functions that split, join, select and reorder, which Kiln lacks or PyTorch defines otherwise."""

import itertools
import math
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from kiln._array_api import creation, linear_algebra, manipulation
from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._rules import broadcast, normalize_axis
from kiln._tensor import constructors
from kiln._tensor.shapes import sizes
from kiln.tensor import Tensor as KilnTensor
from kiln.torch import _defaults, _views
from kiln.torch._tensor import Tensor, adopt, convert


def _listed(tensors: Sequence[Any]) -> List[Any]:
    """Returns tensors that were given as one sequence or as several arguments."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    return [convert(tensor) for tensor in tensors]


def cat(tensors: Any, dim: int = 0, axis: Optional[int] = None) -> Any:
    """Concatenates tensors along a dimension; those of shape (0,) are left out."""
    parts = [convert(tensor) for tensor in tensors]
    kept = [part for part in parts if tuple(part.shape) != (0,)] or parts[:1]
    return constructors.concat(kept, axis=dim if axis is None else axis)


def stack(tensors: Any, dim: int = 0) -> Any:
    """Stacks tensors of one shape along a new dimension."""
    return constructors.stack([convert(tensor) for tensor in tensors], axis=dim)


def atleast_1d(*tensors: Any) -> Any:
    """Returns tensors with at least one dimension."""
    return _each(tensors, lambda x: x.reshape(1) if x.ndim == 0 else x)


def atleast_2d(*tensors: Any) -> Any:
    """Returns tensors with at least two dimensions; new ones come first."""
    return _each(tensors, lambda x: x.reshape(1, -1) if x.ndim < 2 else x)


def atleast_3d(*tensors: Any) -> Any:
    """Returns tensors with at least three dimensions."""

    def wide(x: Any) -> Any:
        if x.ndim < 2:
            return x.reshape(1, -1, 1)
        return x.unsqueeze(-1) if x.ndim == 2 else x

    return _each(tensors, wide)


def _each(tensors: Sequence[Any], change: Any) -> Any:
    if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
        return change(convert(tensors[0]))
    return tuple([change(tensor) for tensor in _listed(tensors)])


def hstack(tensors: Any) -> Any:
    """Joins tensors side by side: along dimension 1, or vectors along dimension 0."""
    parts = [atleast_1d(tensor) for tensor in tensors]
    return cat(parts, 0 if parts[0].ndim == 1 else 1)


def vstack(tensors: Any) -> Any:
    """Joins tensors one below the other."""
    return cat([atleast_2d(tensor) for tensor in tensors])


def dstack(tensors: Any) -> Any:
    """Joins tensors along dimension 2."""
    return cat([atleast_3d(tensor) for tensor in tensors], 2)


def column_stack(tensors: Any) -> Any:
    """Joins tensors as columns."""
    parts = [convert(tensor) for tensor in tensors]
    return cat([part.reshape(-1, 1) if part.ndim < 2 else part for part in parts], 1)


def hsplit(input: Any, indices_or_sections: Any) -> Any:
    """Splits along dimension 1, or a vector along dimension 0."""
    x = convert(input)
    return x.tensor_split(indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(input: Any, indices_or_sections: Any) -> Any:
    """Splits along dimension 0."""
    return convert(input).tensor_split(indices_or_sections, 0)


def dsplit(input: Any, indices_or_sections: Any) -> Any:
    """Splits along dimension 2."""
    return convert(input).tensor_split(indices_or_sections, 2)


def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> Any:
    """Returns that many parts of nearly equal size, or parts that end at these indices."""
    parts = indices_or_sections
    if isinstance(parts, KilnTensor):
        parts = parts.tolist()
    x = convert(input)
    if isinstance(parts, int):
        return _views.view(x, KilnTensor.tensor_split(x, parts, dim))
    axis = normalize_axis(dim, x.ndim)
    size = x.shape[axis]
    ends = [min(max(end + size if end < 0 else end, 0), size) for end in parts]
    found = []
    for begin, end in zip([0, *ends], [*ends, size]):
        found.append(x.narrow(axis, begin, max(0, end - begin)))
    return tuple(found)


def _copy_of(x: Any, result: Any) -> Any:
    """Returns a result that Kiln may have made by views of x, as a copy."""
    if result is x:
        return x.clone()
    _views.leave(result)
    return result


def _given(values: Any, named: Any, name: str) -> Any:
    return (named[name],) if name in named else values


def flip(input: Any, *dims: Any, **named: Any) -> Any:
    """Reverses the order of elements along dimensions."""
    return KilnTensor.flip(convert(input), *_given(dims, named, "dims"))


def fliplr(input: Any) -> Any:
    """Reverses dimension 1."""
    return KilnTensor.flip(convert(input), 1)


def flipud(input: Any) -> Any:
    """Reverses dimension 0."""
    return KilnTensor.flip(convert(input), 0)


def rot90(input: Any, k: int = 1, dims: Sequence[int] = (0, 1)) -> Any:
    """Rotates a plane by 90 degrees, k times."""
    x = convert(input)
    one, other = dims
    k %= 4
    if k == 2:
        return KilnTensor.flip(x, one, other)
    turned = x if k == 0 else KilnTensor.transpose(
        KilnTensor.flip(x, other), one, other) if k == 1 else KilnTensor.flip(
            KilnTensor.transpose(x, one, other), other)
    return turned.clone() if k == 0 else turned


def repeat(self: Any, *repeats: Any, **named: Any) -> Any:
    """Repeats the tensor repeats[i] times along dimension i."""
    return _copy_of(self, KilnTensor.repeat(self, *_given(repeats, named, "repeats")))


def tile(input: Any, *dims: Any, **named: Any) -> Any:
    """Repeats the tensor, as NumPy's tile."""
    x = convert(input)
    return _copy_of(x, KilnTensor.tile(x, *_given(dims, named, "dims")))


def repeat_interleave(input: Any, repeats: Any = None, dim: Optional[int] = None, *,
                      output_size: Optional[int] = None) -> Any:
    """Repeats each element that many times; of one tensor, returns its indices repeated so."""
    x = convert(input)
    if repeats is None:
        counts = x.numpy()
        return convert(np.repeat(np.arange(len(counts)), counts))
    if isinstance(repeats, KilnTensor):
        repeats = repeats.numpy()
    return _copy_of(x, KilnTensor.repeat_interleave(x, repeats, dim))


def broadcast_tensors(*tensors: Any) -> Any:
    """Expands tensors to their common shape."""
    parts = _listed(tensors)
    shape = broadcast([tuple(part.shape) for part in parts])
    return tuple([part.expand(shape) for part in parts])


def meshgrid(*tensors: Any, indexing: str = "ij") -> Any:
    """Returns coordinates of a grid; tensor i runs along dimension i, with "xy" as in NumPy."""
    return tuple(creation.meshgrid(*_listed(tensors), indexing=indexing))


def cartesian_prod(*tensors: Any) -> Any:
    """Returns all combinations of the elements of vectors, a row for each."""
    parts = _listed(tensors)
    if len(parts) == 1:
        return parts[0]
    return stack([grid.reshape(-1) for grid in meshgrid(*parts)], 1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """Returns the combinations of r elements of a vector, a row for each."""
    x = convert(input)
    choose = itertools.combinations_with_replacement if with_replacement else (
        itertools.combinations)
    places = np.array(list(choose(range(x.numel()), r)), np.int64).reshape(-1, r)
    return x[convert(places)]


def block_diag(*tensors: Any) -> Any:
    """Returns a matrix with the tensors along its diagonal."""
    return linear_algebra.block_diag(*[atleast_2d(tensor) for tensor in tensors])


def diagflat(input: Any, offset: int = 0) -> Any:
    """Returns a matrix with all elements along a diagonal."""
    return linear_algebra.diag(convert(input).reshape(-1), offset)


def diag(input: Any, diagonal: int = 0) -> Any:
    """Returns the matrix with a vector as diagonal, or the diagonal of a matrix."""
    return linear_algebra.diag(convert(input), diagonal)


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Returns matrices with the last dimension as their diagonals."""
    made = linear_algebra.diag_embed(convert(input), offset)
    if (dim1 % made.ndim, dim2 % made.ndim) == (made.ndim - 2, made.ndim - 1):
        return made
    return made.movedim((-2, -1), (dim1, dim2))


def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Returns a copy with another diagonal."""
    result = convert(input).clone()
    result.diagonal(offset, dim1, dim2).copy_(src)
    return result


def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:
    """Returns a copy with another entry at one index of a dimension."""
    result = convert(input).clone()
    result.select(dim, index).copy_(src)
    return result


def slice_scatter(input: Any, src: Any, dim: int = 0, start: Optional[int] = None,
                  end: Optional[int] = None, step: int = 1) -> Any:
    """Returns a copy with other values at a slice of a dimension."""
    result = convert(input).clone()
    axis = normalize_axis(dim, result.ndim)
    result[(*[slice(None)] * axis, slice(start, end, step))].copy_(src)
    return result


def as_strided(input: Any, size: Sequence[int], stride: Sequence[int],
               storage_offset: Optional[int] = None) -> Any:
    """Returns the elements of the base at these distances from storage_offset on, as a view."""
    return _views.strided(convert(input), size, stride, storage_offset)


def narrow_copy(input: Any, dim: int, start: int, length: int) -> Any:
    """Returns a copy of `length` elements from `start` on along a dimension."""
    return convert(input).narrow(dim, start, length).clone()


def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """Returns a copy with `value` at indices along a dimension."""
    x = convert(input)
    axis = normalize_axis(dim, x.ndim)
    filled = x.clone()
    filled[(*[slice(None)] * axis, convert(index))] = value
    return filled


def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """Returns a copy in which the elements where the mask is true are those of source, in order."""
    x, mask = broadcast_tensors(input, _mask("masked_scatter", mask))
    flat, rows = mask.reshape(-1), convert(source).reshape(-1)
    place = (flat.long().cumsum(0) - 1).clamp(0, max(rows.numel() - 1, 0))
    chosen = rows[place].reshape(x.shape)
    return chosen.where(mask, x)


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """Returns `value` where the mask is true, else the tensor's elements."""
    x = convert(input)
    if isinstance(value, KilnTensor):
        if value.ndim:
            raise InvalidArgument(
                f"masked_fill with a value of shape {tuple(value.shape)}; it must have no "
                "dimensions. torch.where() takes any shape")
        value = convert(value)._cast(x.dtype)
    else:
        value = _defaults.number_for(value, x.dtype)
    return KilnTensor.masked_fill(x, _mask("masked_fill", mask), value)


def masked_select(input: Any, mask: Any) -> Any:
    """Returns the elements where the mask is true, in order."""
    return KilnTensor.masked_select(convert(input), _mask("masked_select", mask))


def _mask(name: str, mask: Any) -> Any:
    """Returns a mask as a tensor; raises InvalidArgument unless it is of bools."""
    chosen = convert(mask)
    if chosen.dtype is not dtypes.bool_:
        raise InvalidArgument(f"{name} with a mask of {chosen.dtype.name}; it must be bool")
    return chosen


def take(input: Any, index: Any) -> Any:
    """Returns elements of the flattened tensor."""
    return convert(input).reshape(-1)[convert(index)]


def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Returns a copy with other values at indices of the flattened tensor."""
    x = convert(input)
    flat = x.reshape(-1).index_put((convert(index).reshape(-1),), convert(source).reshape(-1),
                                   accumulate)
    return flat.reshape(x.shape)


def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Returns a copy after x[indices] = values, or += values with accumulate."""
    x = convert(input)
    keys = tuple(convert(index) for index in indices)
    rows = convert(values, x.dtype)
    if accumulate:
        return KilnTensor.index_put(x, keys, rows, True)
    copied = x.clone()
    copied[keys] = rows
    return copied


def nonzero(input: Any, as_tuple: bool = False) -> Any:
    """Returns the indices of elements that are not 0: rows, or a vector for each dimension."""
    x = convert(input)
    if x.ndim:
        return adopt(KilnTensor.nonzero(x, as_tuple))
    found = adopt(KilnTensor.nonzero(x.reshape(1), as_tuple))
    return found if as_tuple else found[:, :0]


def argwhere(input: Any) -> Any:
    """Returns the indices of elements that are not 0, a row for each."""
    return nonzero(input)


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Returns input where the condition is true, else other; alone, the condition's indices."""
    chosen = convert(condition)
    if input is None:
        return nonzero(chosen, as_tuple=True)
    _check_condition(chosen)
    if not isinstance(input, KilnTensor) and not isinstance(other, KilnTensor):
        one, two = convert(input), convert(other)
        dtype = dtypes.promote(one.dtype, two.dtype)
        return constructors.where(chosen, one._cast(dtype), two._cast(dtype))
    return constructors.where(chosen, input, other)


def where_method(self: Any, condition: Any, other: Any) -> Any:
    """Returns self where the condition is true, else other."""
    chosen = convert(condition)
    _check_condition(chosen)
    return constructors.where(chosen, self, other)


def _check_condition(chosen: Any) -> None:
    if chosen.dtype not in (dtypes.bool_, dtypes.BY_NAME["uint8"]):
        raise InvalidArgument(f"where with a condition of {chosen.dtype.name}; it must be bool")


def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """Shifts elements along dimensions, wrapping around."""
    return KilnTensor.roll(convert(input), shifts, dims if dims not in ((), []) else None)


def tril(input: Any, diagonal: int = 0) -> Any:
    """Returns the lower triangle of the last two dimensions, and zeros above it."""
    x = convert(input)
    return KilnTensor.tril(x, diagonal)


def triu(input: Any, diagonal: int = 0) -> Any:
    """Returns the upper triangle of the last two dimensions, and zeros below it."""
    return KilnTensor.triu(convert(input), diagonal)


def unravel_index(indices: Any, shape: Any) -> Any:
    """Returns the index in each dimension of indices of a flattened tensor."""
    x, found = convert(indices), []
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    for axis, size in enumerate(wanted):
        found.append(x // math.prod(wanted[axis + 1:]) % size)
    return tuple(found)


def sum_to_size(input: Any, *size: Any) -> Any:
    """Sums the dimensions along which a tensor of that size was expanded."""
    x, wanted = convert(input), sizes(size)
    lead = x.ndim - len(wanted)
    axes = [*range(lead), *[lead + i for i, one in enumerate(wanted)
                            if one == 1 and x.shape[lead + i] != 1]]
    return (x.sum(axes) if axes else x).reshape(wanted)


def renorm(input: Any, p: float, dim: int, maxnorm: float) -> Any:
    """Scales the entries along a dimension whose norm is above maxnorm down to it."""
    x = convert(input)
    if p <= 0 or maxnorm < 0:
        raise InvalidArgument(f"renorm of order {p} to {maxnorm}; the order must be above 0, and "
                              "maxnorm not negative")
    axis = normalize_axis(dim, x.ndim)
    norms = x.norm(p, tuple(i for i in range(x.ndim) if i != axis), True)
    return x * (maxnorm / (norms + 1e-7)).where(norms > maxnorm, 1.0)


def fill_diagonal_(self: Any, fill_value: Any, wrap: bool = False) -> Any:
    """Fills the main diagonal of a matrix with a number. Returns self."""
    rows, columns = self.shape[0], self.shape[-1]
    if self.ndim == 2 and wrap and rows > columns:
        flat = np.arange(0, rows * columns, columns + 1)
        self.reshape(-1)[convert(flat)] = fill_value
        self[tuple(convert(part) for part in np.unravel_index(flat, (rows, columns)))] = fill_value
        return self
    place = convert(np.arange(min(self.shape)))
    self[(place,) * self.ndim] = fill_value
    return self


def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Moves dimensions to other positions."""
    return convert(input).movedim(source, destination)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None,
                 layout: Any = None) -> Any:
    """Returns the rows and columns of the lower triangle."""
    return convert(np.stack(np.tril_indices(row, offset, col)).astype(np.int64))


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None,
                 layout: Any = None) -> Any:
    """Returns the rows and columns of the upper triangle."""
    return convert(np.stack(np.triu_indices(row, offset, col)).astype(np.int64))


def resize_(self: Any, *size: Any, memory_format: Any = None) -> Any:
    """Gives the tensor another shape; new elements are 0. Returns self."""
    wanted = sizes(size)
    flat = self.detach().reshape(-1)
    count = math.prod(wanted)
    if count > flat.numel():
        flat = KilnTensor.pad(flat, (0, count - flat.numel()))
    self.data = KilnTensor.reshape(flat[:count], wanted)
    return self


def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """Returns a copy with elements added at indices along a dimension."""
    x = convert(input)
    if x.dtype is dtypes.bool_:
        return scatter_add(x.byte(), dim, index, convert(src).byte()).bool()
    return KilnTensor.scatter_add(x, dim, convert(index), convert(src))


def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """Returns a copy with entries, times alpha, added to those at indices along a dimension."""
    x, added = convert(input), convert(source)
    if x.dtype is dtypes.bool_:
        return index_add(x.byte(), dim, index, added.byte()).bool()
    return KilnTensor.index_add(x, dim, convert(index), added if alpha == 1 else added * alpha)


def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None,
            reduce: Optional[str] = None) -> Any:
    """Returns a copy with x[index[i][j]][j] = src[i][j] for dim 0, and so on."""
    x = convert(input)
    rows = value if src is None else src
    if isinstance(rows, KilnTensor):
        rows = convert(rows)._cast(x.dtype)
    return KilnTensor.scatter(x, dim, convert(index), rows, reduce=reduce or "")


def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, *,
                   include_self: bool = True) -> Any:
    """As scatter, but combines: sum, prod, mean, amax or amin."""
    x = convert(input)
    if reduce != "mean":
        return KilnTensor.scatter_reduce(
            x, dim, convert(index), convert(src), reduce, include_self=include_self)
    total = KilnTensor.scatter_reduce(
        x, dim, convert(index), convert(src), "sum", include_self=include_self)
    count = KilnTensor.scatter_add(
        x * 0 + (1 if include_self else 0), dim, convert(index), convert(src) * 0 + 1)
    return x.where(count == 0, total / count.clamp(min=1))


def unique(input: Any, sorted: bool = True, return_inverse: bool = False,
           return_counts: bool = False, dim: Optional[int] = None) -> Any:
    """Returns the different elements, sorted, or different entries along a dimension."""
    return _uniques(convert(input), return_inverse, return_counts, dim)


def _uniques(x: Any, inverse: bool, counts: bool, dim: Optional[int]) -> Any:
    found: Any = np.unique(x.numpy(), return_inverse=True, return_counts=True, axis=dim)
    shape = x.shape if dim is None else (x.shape[dim],)
    results = [convert(found[0], x.dtype)]
    if inverse:
        results.append(convert(found[1].reshape(tuple(shape)).astype(np.int64)))
    if counts:
        results.append(convert(found[2].astype(np.int64)))
    return results[0] if len(results) == 1 else tuple(results)


def unique_consecutive(input: Any, return_inverse: bool = False, return_counts: bool = False,
                       dim: Optional[int] = None) -> Any:
    """Returns the elements, or entries along a dimension, that differ from the one before."""
    x = convert(input)
    array = x.numpy() if dim is not None else x.numpy().reshape(-1)
    rows = np.moveaxis(array, dim or 0, 0)
    flat = rows.reshape(len(rows), -1)
    new = np.ones(len(rows), bool)
    new[1:] = (flat[1:] != flat[:-1]).any(1)
    results = [convert(np.moveaxis(rows[new], 0, dim or 0), x.dtype)]
    place = np.cumsum(new) - 1
    if return_inverse:
        results.append(convert(place.reshape(tuple(x.shape) if dim is None else (-1,))))
    if return_counts:
        results.append(convert(np.bincount(place, minlength=int(new.sum())).astype(np.int64)))
    return results[0] if len(results) == 1 else tuple(results)


def unflatten(input: Any, dim: int, sizes: Sequence[int]) -> Any:
    """Splits one dimension into several; one size may be -1."""
    x = convert(input)
    axis = normalize_axis(dim, x.ndim)
    return x.reshape(*x.shape[:axis], *_with_rest(tuple(sizes), x.shape[axis]),
                     *x.shape[axis + 1:])


def _with_rest(sizes: Tuple[int, ...], total: int) -> Tuple[int, ...]:
    if -1 not in sizes:
        return sizes
    known = -math.prod(sizes)
    if known <= 0 or total % known:
        raise InvalidArgument(f"unflatten of {total} elements to {sizes}")
    return tuple(total // known if size == -1 else size for size in sizes)


def broadcast_to(input: Any, size: Any) -> Any:
    """Expands to a shape."""
    return convert(input).expand(size)


def transposed(self: Any) -> Any:
    """The matrix transposed."""
    return self.t()


METHODS = (
    hsplit, vsplit, dsplit, tensor_split, flip, fliplr, flipud, rot90, tile, repeat_interleave,
    diagflat, diag, diag_embed, diagonal_scatter, select_scatter, slice_scatter, as_strided,
    narrow_copy, index_fill, masked_scatter, masked_fill, masked_select, take, put, index_put,
    nonzero, argwhere, roll, tril, triu, renorm, scatter, scatter_add, index_add, scatter_reduce,
    unique, unique_consecutive, unflatten,
)  # fmt: skip
FUNCTIONS = (
    cat, stack, atleast_1d, atleast_2d, atleast_3d, hstack, vstack, dstack, column_stack,
    broadcast_tensors, meshgrid, cartesian_prod, combinations, block_diag, where, unravel_index,
    tril_indices, triu_indices, broadcast_to,
)  # fmt: skip
ONLY_METHODS = (repeat, sum_to_size, fill_diagonal_, resize_)

for _function in (*METHODS, *ONLY_METHODS):
    setattr(Tensor, _function.__name__, _function)
Tensor.where = where_method  # type: ignore[method-assign]
Tensor.H = property(transposed, doc=transposed.__doc__)  # type: ignore[attr-defined]
Tensor.mH = Tensor.mT  # type: ignore[attr-defined]
Tensor.adjoint = lambda self: self.mT  # type: ignore[attr-defined]
ALIASES = {"concat": cat, "concatenate": cat, "row_stack": vstack}
BROADCAST_SHAPES = manipulation.broadcast_shapes
