"""Norms, angles and distances of vectors along one dimension."""

from kiln._basics.errors import InvalidArgument
from kiln._rules import flag, whole
from kiln.tensor import Tensor


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x divided by its p-norm along dim, or by eps if that is larger.

    >>> F.normalize(kiln.tensor([[3.0, 4.0]]), p=1).tolist()
    [[0.4285714328289032, 0.5714285969734192]]
    """
    return input._op("normalize", p=float(p), axis=whole(dim, "dim"), epsilon=float(eps))


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along dim; norms below eps count as eps.

    >>> F.cosine_similarity(kiln.tensor([[1.0, 0.0]]), kiln.tensor([[1.0, 0.0]])).tolist()
    [1.0]
    """
    return x1._op("cosine_similarity", x2, axis=whole(dim, "dim"), epsilon=float(eps))


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension.

    >>> F.pairwise_distance(kiln.tensor([[3.0, 4.0]]), kiln.zeros(1, 2), eps=0.0).tolist()
    [5.0]
    """
    return x1._op("pairwise_distance", x2, p=float(p), epsilon=float(eps),
                  keepdims=flag(keepdim, "keepdim"))


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """Returns the p-norm of each row of x1 (…, P, M) minus each row of x2 (…, R, M), as (…, P, R).

    The dtype is a float. p is 0 or more: 0 counts the entries that differ, inf gives the largest
    difference; for p = 2 the gradient is 0 where two rows are equal. Raises InvalidArgument for
    another p, and for rows of different lengths.

    >>> F.cdist(kiln.tensor([[0.0, 0.0], [3.0, 0.0]]), kiln.tensor([[0.0, 4.0]])).tolist()
    [[4.0], [5.0]]
    """
    if not p >= 0:
        raise InvalidArgument(f"cdist with p = {p}; it must be 0 or above, or kiln.inf")
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise InvalidArgument(
            f"cdist of x1 {x1.shape} and x2 {x2.shape}; they must be (…, P, M) and (…, R, M)")
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return difference._op("vector_norm", axes=(-1,), ord=float(p))
