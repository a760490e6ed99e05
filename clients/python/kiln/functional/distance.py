"""Norms, angles and distances of vectors along one dimension."""

from kiln.tensor import Tensor


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x over its p-norm along dim, at least eps.

    >>> F.normalize(kiln.tensor([[3.0, 4.0]]), p=1).tolist()
    [[0.4285714328289032, 0.5714285969734192]]
    """
    return input._op("normalize", p=float(p), axis=int(dim), epsilon=float(eps))


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along dim; norms are at least eps.

    >>> F.cosine_similarity(kiln.tensor([[1.0, 0.0]]), kiln.tensor([[1.0, 0.0]])).tolist()
    [1.0]
    """
    return x1._op("cosine_similarity", x2, axis=int(dim), epsilon=float(eps))


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension.

    >>> F.pairwise_distance(kiln.tensor([[3.0, 4.0]]), kiln.zeros(1, 2), eps=0.0).tolist()
    [5.0]
    """
    return x1._op("pairwise_distance", x2, p=float(p), epsilon=float(eps), keepdims=bool(keepdim))


__all__ = ["cosine_similarity", "normalize", "pairwise_distance"]
