"""Methods and functions that need parts of this package which other modules cannot import."""

import math
from typing import Any, Callable, Dict

import numpy as np

from kiln.tensor import Tensor as KilnTensor
from kiln.torch import _creation, _shaping, _views, linalg
from kiln.torch._tensor import Removable, Tensor, adopt, convert
from kiln.torch.nn import functional as F


def apply_(self: Any, callable: Callable[[Any], Any]) -> Any:
    """Applies a Python function to each element. Returns self."""
    array = self.numpy()
    found = [callable(value.item()) for value in array.reshape(-1)]
    return self.copy_(convert(np.asarray(found).reshape(array.shape)))


def map_(self: Any, tensor: Any, callable: Callable[[Any, Any], Any]) -> Any:
    """Applies a Python function to each element and another tensor's. Returns self."""
    one, other = np.broadcast_arrays(self.numpy(), convert(tensor).numpy())
    found = [callable(x.item(), y.item()) for x, y in zip(one.reshape(-1), other.reshape(-1))]
    return self.copy_(convert(np.asarray(found).reshape(one.shape)))


def as_strided_scatter(input: Any, src: Any, size: Any, stride: Any,
                       storage_offset: Any = None) -> Any:
    """Returns a copy with other elements at these distances."""
    made = convert(input).clone()
    made.as_strided(size, stride, storage_offset).copy_(src)
    return made


def cholesky_inverse(input: Any, upper: bool = False) -> Any:
    """Returns the inverse of the matrix that has this Cholesky factor."""
    x = convert(input)
    return linalg.inv(x.mT @ x if upper else x @ x.mT)


def cholesky_solve(input: Any, input2: Any, upper: bool = False) -> Any:
    """Solves equations by the Cholesky factor of their matrix."""
    b, factor = convert(input), convert(input2)
    lower = factor.mT if upper else factor
    half = linalg.solve_triangular(lower, b, upper=False)
    return linalg.solve_triangular(lower.mT, half, upper=True)


def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """Returns the pseudoinverse."""
    return linalg.pinv(input, rtol=rcond)


def matrix_exp(input: Any) -> Any:
    """Returns the exponential of a matrix."""
    return linalg.matrix_exp(input)


def lu_solve(input: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """Solves equations by what torch.linalg.lu_factor returned."""
    return linalg.lu_solve(LU_data, LU_pivots, input)


def svd(input: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """Returns the singular value decomposition, with V itself."""
    left, sizes, right = linalg.svd(input, not some)
    return linalg.SVD(left, sizes, right.mT)


def triangular_solve(input: Any, A: Any, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> Any:
    """Solves equations with a triangular matrix; returns the solution and the matrix."""
    a = convert(A)
    x = linalg.solve_triangular(a.mT if transpose else a, convert(input),
                                upper=upper != transpose, unitriangular=unitriangular)
    return x, a.clone()


def nonzero_static(input: Any, *, size: int, fill_value: int = -1) -> Any:
    """Returns `size` rows of indices of elements that are not 0."""
    x = convert(input)
    places = np.argwhere(x.numpy())[:size]
    rows = np.full((size, x.ndim), fill_value, np.int64)
    rows[: len(places)] = places
    return convert(rows)


def resize_as_(self: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """Gives the tensor another one's shape. Returns self."""
    return self.resize_(*the_template.shape)


def orgqr(input: Any, input2: Any) -> Any:
    """Returns the product of Householder matrices."""
    return linalg.householder_product(input, input2)


def as_subclass(self: Any, cls: Any) -> Any:
    """Returns the tensor as an instance of a subclass."""
    made = self.view(self.shape)
    made.__class__ = cls
    return made


def data_ptr(self: Any) -> int:
    """Returns a number that is the same for tensors of one value, and views from its start."""
    if self._share is None:
        self._share = _views.Storage(self)
    return id(self._share) + int(self.storage_offset() * self.element_size())


def record_stream(self: Any, stream: Any) -> None:
    """Does nothing: operations run in their order."""


def register_post_accumulate_grad_hook(self: Any, hook: Any) -> Any:
    """Registers hook(tensor), called after backward() has added to its grad."""
    if not self.is_leaf or not self.requires_grad:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    hooks = vars(self).setdefault("_after_hooks", {})
    number = max(hooks, default=-1) + 1
    hooks[number] = hook
    return Removable(hooks, number)


def to_dense(self: Any, dtype: Any = None, *, masked_grad: Any = None) -> Any:
    """Returns the tensor itself, or cast: it is dense."""
    return self if dtype is None else self.to(dtype)


METHODS = (
    apply_, map_, as_strided_scatter, cholesky_inverse, cholesky_solve, pinverse, matrix_exp,
    lu_solve, svd, triangular_solve, nonzero_static, resize_as_, orgqr, as_subclass, data_ptr,
    record_stream, register_post_accumulate_grad_hook, to_dense,
)  # fmt: skip
for _method in METHODS:
    setattr(Tensor, _method.__name__, _method)
Tensor.real = property(lambda self: self)  # type: ignore[attr-defined]


# Functions.


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *,
                  dtype: Any = None, **_: Any) -> Any:
    """Returns a Kaiser window."""
    points = window_length + 1 if periodic else window_length
    made = np.kaiser(points, beta)[:window_length]
    return adopt(KilnTensor(made, dtype or "float32"))


def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True,
              unpack_pivots: bool = True) -> Any:
    """Returns the matrices of what torch.linalg.lu_factor returned."""
    both, exchanges = convert(LU_data), convert(LU_pivots).numpy()
    rows, columns = both.shape[-2:]
    order = np.arange(rows)
    for step, other in enumerate(exchanges):
        order[[step, other - 1]] = order[[other - 1, step]]
    size = min(rows, columns)
    lower = both[:, :size].tril(-1) + _creation.eye(rows, size, dtype=both.dtype)
    permutation = np.eye(rows)[:, order]
    return linalg.LU(convert(permutation, both.dtype), lower, both[:size].triu())


def nuclear_norm(input: Any, keepdim: bool = False) -> Any:
    """Returns the sum of the singular values."""
    return linalg.matrix_norm(input, "nuc", keepdim=keepdim)


def slice_copy(input: Any, dim: int = 0, start: Any = None, end: Any = None,
               step: int = 1) -> Any:
    """Returns a copy of a slice."""
    x = convert(input)
    return x[(*[slice(None)] * (dim % x.ndim), slice(start, end, step))].clone()


def alias_copy(input: Any) -> Any:
    """Returns a copy."""
    return convert(input).clone()


def grid_sampler(input: Any, grid: Any, interpolation_mode: int, padding_mode: int,
                 align_corners: bool) -> Any:
    """Samples images at positions."""
    return F.grid_sample(input, grid, ("bilinear", "nearest", "bicubic")[interpolation_mode],
                         ("zeros", "border", "reflection")[padding_mode], align_corners)


def affine_grid_generator(theta: Any, size: Any, align_corners: bool) -> Any:
    """Returns positions for grid_sampler."""
    return F.affine_grid(theta, size, align_corners)


def instance_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                  use_input_stats: bool, momentum: float, eps: float,
                  cudnn_enabled: bool = False) -> Any:
    """Normalizes each channel of each image."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats,
                           momentum, eps)


def kl_div(input: Any, target: Any, reduction: int = 1, *, log_target: bool = False) -> Any:
    """target * (log target - input); reduction 0 is "none", 1 "mean", 2 "sum"."""
    return F.kl_div(input, target, reduction=("none", "mean", "sum")[reduction],
                    log_target=log_target)


def poisson_nll_loss(input: Any, target: Any, log_input: bool, full: bool, eps: float,
                     reduction: int) -> Any:
    """-log of target's probability; reduction 0 is "none", 1 "mean", 2 "sum"."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps,
                              reduction=("none", "mean", "sum")[reduction])


def _cell(activation: Callable[[Any], Any]) -> Callable[..., Any]:
    def cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        return activation(F.linear(input, w_ih, b_ih) + F.linear(hx, w_hh, b_hh))

    cell.__doc__ = "One step of a recurrent layer."
    return cell


rnn_tanh_cell, rnn_relu_cell = _cell(F.tanh), _cell(F.relu)


def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """One step of a long short-term memory."""
    gates = F.linear(input, w_ih, b_ih) + F.linear(hx[0], w_hh, b_hh)
    first, forget, cell, last = gates.chunk(4, -1)
    memory = forget.sigmoid() * hx[1] + first.sigmoid() * cell.tanh()
    return last.sigmoid() * memory.tanh(), memory


def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """One step of a gated recurrent unit."""
    x, h = F.linear(input, w_ih, b_ih).chunk(3, -1), F.linear(hx, w_hh, b_hh).chunk(3, -1)
    reset, update = (x[0] + h[0]).sigmoid(), (x[1] + h[1]).sigmoid()
    new = (x[2] + reset * h[2]).tanh()
    return new + update * (hx - new)


def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """Calls one of two functions; reads the condition."""
    return true_fn(*operands) if bool(pred) else false_fn(*operands)


def while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> Any:
    """Calls a function while a condition is true; reads the condition."""
    state = carried_inputs
    while bool(cond_fn(*state)):
        state = body_fn(*state)
    return state


def svd_lowrank(A: Any, q: int = 6, niter: int = 2, M: Any = None) -> Any:
    """Returns the q largest singular values and their vectors."""
    x = convert(A) if M is None else convert(A) - convert(M)
    left, sizes, right = linalg.svd(x, False)
    return left[..., :q], sizes[..., :q], right.mT[..., :q]


def pca_lowrank(A: Any, q: Any = None, center: bool = True, niter: int = 2) -> Any:
    """Returns the principal components: svd_lowrank of the centred rows."""
    x = convert(A)
    if q is None:
        q = min(6, *x.shape[-2:])
    return svd_lowrank(x - x.mean(-2, keepdim=True) if center else x, q)


def segment_reduce(data: Any, reduce: str, *, lengths: Any = None, indices: Any = None,
                   offsets: Any = None, axis: int = 0, unsafe: bool = False,
                   initial: Any = None) -> Any:
    """Reduces consecutive segments of dimension 0: sum, mean, max, min or prod."""
    x = convert(data)
    sizes = np.diff(convert(offsets).numpy()) if lengths is None else convert(lengths).numpy()
    start, found = 0, []
    for size in sizes.tolist():
        rows = x[start: start + size]
        empty = {"sum": 0.0, "prod": 1.0, "mean": math.nan, "max": -math.inf, "min": math.inf}
        if size == 0:
            found.append(x.sum(0) * 0 + (empty[reduce] if initial is None else initial))
        else:
            found.append({"sum": rows.sum, "mean": rows.mean, "max": rows.amax, "min": rows.amin,
                          "prod": rows.prod}[reduce](0))
        start += size
    return _shaping.stack(found)


def embedding_bag(weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False,
                  mode: int = 0, sparse: bool = False, per_sample_weights: Any = None,
                  include_last_offset: bool = False, padding_idx: Any = None) -> Any:
    """Returns the sum (0), mean (1) or maximum (2) of the rows of each bag, in a tuple."""
    return (F.embedding_bag(indices, weight, offsets, mode=("sum", "mean", "max")[mode],
                            per_sample_weights=per_sample_weights,
                            include_last_offset=include_last_offset, padding_idx=padding_idx),)


def dropout_(input: Any, p: float, train: bool) -> Any:
    """As dropout(), but changes its argument."""
    return F.dropout(input, p, train, True)


def alpha_dropout_(input: Any, p: float, train: bool) -> Any:
    """As alpha_dropout(), but changes its argument."""
    return F.alpha_dropout(input, p, train, True)


def feature_dropout(input: Any, p: float, train: bool) -> Any:
    """Drops whole channels."""
    kept = (_creation.rand(*input.shape[:2], *[1] * (input.ndim - 2)) >= p)._cast(input.dtype)
    return input * kept / (1 - p) if train else input * 1


def resize_as_function(input: Any, the_template: Any) -> Any:
    """Gives a tensor another one's shape."""
    return input.resize_as_(the_template)


FUNCTIONS: Dict[str, Any] = {function.__name__: function for function in (
    as_strided_scatter, cholesky_inverse, cholesky_solve, pinverse, matrix_exp, lu_solve, svd,
    triangular_solve, nonzero_static, orgqr, kaiser_window, lu_unpack, nuclear_norm, slice_copy,
    alias_copy, grid_sampler, affine_grid_generator, instance_norm, kl_div, poisson_nll_loss,
    lstm_cell, gru_cell, cond, while_loop, svd_lowrank, pca_lowrank, segment_reduce, embedding_bag,
    dropout_, alpha_dropout_, feature_dropout)}
FUNCTIONS.update(rnn_tanh_cell=rnn_tanh_cell, rnn_relu_cell=rnn_relu_cell,
                 grid_sampler_2d=grid_sampler, resize_as_=resize_as_function)
