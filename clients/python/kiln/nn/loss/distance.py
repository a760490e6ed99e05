"""Losses of the distance between vectors, and the distances themselves."""

from kiln import functional
from kiln.nn.loss._base import Loss
from kiln.nn.module import Module
from kiln.tensor import Tensor


class HingeEmbeddingLoss(Loss):
    """x where target is 1, max(0, margin - x) where it is -1.

    >>> x, target = kiln.tensor([0.5, 2.0]), kiln.tensor([1.0, -1.0])
    >>> print(kiln.nn.HingeEmbeddingLoss()(x, target))
    tensor(0.25, dtype=float32)
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """See L1Loss.forward."""
        return functional.hinge_embedding_loss(
            x, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(Loss):
    """max(0, -target * (x1 - x2) + margin).

    >>> a, b = kiln.tensor([0.5, 2.0]), kiln.tensor([1.0, 1.0])
    >>> print(kiln.nn.MarginRankingLoss()(a, b, kiln.tensor([1.0, 1.0])))
    tensor(0.25, dtype=float32)
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, x1: Tensor, x2: Tensor, target: Tensor) -> Tensor:
        """Maps equal shapes to a scalar, or to that shape without reduction."""
        return functional.margin_ranking_loss(
            x1, x2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(Loss):
    """1 - cosine where target is 1, max(0, cosine - margin) where it is -1.

    >>> a, b = kiln.tensor([[1.0, 0.0]]), kiln.tensor([[1.0, 1.0]])
    >>> print(kiln.nn.CosineEmbeddingLoss()(a, b, kiln.tensor([1.0])))
    tensor(0.2929, dtype=float32)
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, x1: Tensor, x2: Tensor, target: Tensor) -> Tensor:
        """Maps (N, D), (N, D) and (N,) to a scalar, or (N,)."""
        return functional.cosine_embedding_loss(
            x1, x2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(Loss):
    """max(0, distance to the positive - distance to the negative + margin).

    >>> a, b = kiln.tensor([[1.0, 0.0]]), kiln.tensor([[1.0, 1.0]])
    >>> print(kiln.nn.TripletMarginLoss()(a, b, a + 3))
    tensor(0., dtype=float32)
    """

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                 reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Maps (N, D) each to a scalar, or (N,)."""
        return functional.triplet_margin_loss(
            anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps,
            swap=self.swap, reduction=self.reduction)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along dim.

    >>> a, b = kiln.tensor([[1.0, 0.0]]), kiln.tensor([[1.0, 1.0]])
    >>> print(kiln.nn.CosineSimilarity()(a, b))
    tensor([0.7071], dtype=float32)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Removes dimension dim."""
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps over the last dimension.

    >>> a, b = kiln.tensor([[1.0, 0.0]]), kiln.tensor([[1.0, 1.0]])
    >>> print(kiln.nn.PairwiseDistance()(a, b))
    tensor([1.], dtype=float32)
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.p = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Maps (…, D) each to (…,)."""
        return functional.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)
