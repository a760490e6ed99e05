"""Products of matrices and vectors that Kiln lacks or PyTorch defines otherwise."""

import functools
from typing import Any

from kiln._array_api import factorization, linear_algebra
from kiln._basics.errors import InvalidArgument
from kiln._rules import broadcast
from kiln.functional import distance
from kiln.tensor import Tensor as KilnTensor
from kiln.torch._tensor import Tensor, convert


def _scaled(x: Any, beta: Any, product: Any, alpha: Any) -> Any:
    """beta * x + alpha * product; NaN and infinities of x are ignored if beta is 0."""
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        return scaled.expand(broadcast([tuple(x.shape), tuple(scaled.shape)]))
    return (x if beta == 1 else x * beta) + scaled


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat1 @ mat2)."""
    return _scaled(convert(input), beta, convert(mat1) @ convert(mat2), alpha)


def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat @ vec)."""
    return _scaled(convert(input), beta, convert(mat) @ convert(vec), alpha)


def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (the outer product of vec1 and vec2)."""
    return _scaled(convert(input), beta, outer(vec1, vec2), alpha)


def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (batch1 @ batch2)."""
    return _scaled(convert(input), beta, convert(batch1) @ convert(batch2), alpha)


def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (the sum of batch1 @ batch2 over the batch)."""
    return _scaled(convert(input), beta, (convert(batch1) @ convert(batch2)).sum(0), alpha)


def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """input + value * tensor1 * tensor2."""
    return KilnTensor.addcmul(convert(input), convert(tensor1), convert(tensor2), value)


def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """input + value * tensor1 / tensor2."""
    return KilnTensor.addcdiv(convert(input), convert(tensor1), convert(tensor2), value)


def outer(input: Any, vec2: Any) -> Any:
    """Returns the products of all pairs of two vectors' elements."""
    return linear_algebra.outer(convert(input), convert(vec2))


def inner(input: Any, other: Any) -> Any:
    """Returns the sums of products over the last dimensions."""
    return linear_algebra.inner(convert(input), convert(other))


def vdot(input: Any, other: Any) -> Any:
    """Returns the inner product of two vectors."""
    return linear_algebra.vdot(convert(input), convert(other))


def mv(input: Any, vec: Any) -> Any:
    """Returns the product of a matrix and a vector."""
    return convert(input) @ convert(vec)


def mm(input: Any, mat2: Any) -> Any:
    """Returns the product of two matrices."""
    x, y = convert(input), convert(mat2)
    if x.ndim != 2 or y.ndim != 2:
        raise InvalidArgument(f"mm of shapes {x.shape} and {y.shape}; both must be matrices")
    return x @ y


def bmm(input: Any, mat2: Any) -> Any:
    """Returns the products of two batches of matrices."""
    x, y = convert(input), convert(mat2)
    if x.ndim != 3 or y.ndim != 3:
        raise InvalidArgument(
            f"bmm of shapes {x.shape} and {y.shape}; both must be batches of matrices")
    return x @ y


def cross(input: Any, other: Any, dim: Any = None) -> Any:
    """Returns the cross products along a dimension of size 3, the first one by default."""
    x, y = convert(input), convert(other)
    if dim is None:
        dim = next((axis for axis, size in enumerate(x.shape) if size == 3), -1)
    return linear_algebra.cross(x, y, axis=dim)


def kron(input: Any, other: Any) -> Any:
    """Returns the Kronecker product."""
    return linear_algebra.kron(convert(input), convert(other))


def trace(input: Any) -> Any:
    """Returns the sum of a matrix's diagonal."""
    return linear_algebra.trace(convert(input))


def chain_matmul(*matrices: Any) -> Any:
    """Returns the product of several matrices."""
    given = matrices[0] if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)) else (
        matrices)
    return functools.reduce(lambda x, y: x @ y, map(convert, given))


def einsum(equation: str, *operands: Any) -> Any:
    """Returns the sums of products that the equation describes."""
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else (
        operands)
    return linear_algebra.einsum(equation.replace(" ", ""), *map(convert, given))


def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """Returns the sums of products over several dimensions."""
    if isinstance(dims, KilnTensor):
        dims = dims.tolist()
    x, y = convert(a), convert(b)
    wanted: Any = dims if isinstance(dims, int) else tuple(
        tuple(part) if isinstance(part, (list, tuple)) else (part,) for part in dims)
    return linear_algebra.tensordot(x, y, axes=wanted)


def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "") -> Any:
    """Returns the distances of the rows of x1 to those of x2."""
    return distance.cdist(convert(x1), convert(x2), p)


def logdet(input: Any) -> Any:
    """Returns the logarithm of the determinant; NaN if that is below 0."""
    sign, size = factorization.slogdet(convert(input))
    return size.where(sign >= 0, float("nan"))


def dot(input: Any, tensor: Any) -> Any:
    """Returns the inner product of two vectors."""
    return KilnTensor.dot(convert(input), convert(tensor))


def det(input: Any) -> Any:
    """Returns the determinant."""
    return factorization.det(convert(input))


def slogdet(input: Any) -> Any:
    """Returns the sign of the determinant and the logarithm of its magnitude."""
    return factorization.slogdet(convert(input))


def inverse(input: Any) -> Any:
    """Returns the inverse matrix."""
    return factorization.inv(convert(input))


def matrix_power(input: Any, n: int) -> Any:
    """Returns the n-th power of a matrix."""
    return factorization.matrix_power(convert(input), n)


def cholesky(input: Any, upper: bool = False) -> Any:
    """Returns the Cholesky factor."""
    return factorization.cholesky(convert(input), upper=upper)


def qr(input: Any, some: bool = True) -> Any:
    """Returns the factors Q and R."""
    return factorization.qr(convert(input), mode="reduced" if some else "complete")


METHODS = (
    addmm, addmv, addr, baddbmm, addbmm, addcmul, addcdiv, outer, inner, vdot, mv, mm, bmm, cross,
    kron, trace, logdet, dot, det, slogdet, inverse, matrix_power, cholesky, qr,
)  # fmt: skip
FUNCTIONS = (chain_matmul, einsum, tensordot, cdist)

for _function in METHODS:
    setattr(Tensor, _function.__name__, _function)
Tensor.ger = Tensor.outer  # type: ignore[attr-defined]
