"""Losses as modules. `reduction` is "mean", "sum" or "none"."""

from typing import Optional

from kiln import functional
from kiln.nn.module import Module
from kiln.tensor import Tensor


class _Loss(Module):
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction


class L1Loss(_Loss):
    """|x - target|.

    >>> x, target = kiln.tensor([1.0, 2.0]), kiln.tensor([0.0, 4.0])
    >>> print(kiln.nn.L1Loss()(x, target))
    tensor(1.5, dtype=float32)
    """

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """Equal shapes to a scalar, or to that shape without reduction."""
        return functional.l1_loss(x, target, reduction=self.reduction)


class MSELoss(_Loss):
    """(x - target) squared.

    >>> x, target = kiln.tensor([1.0, 2.0]), kiln.tensor([0.0, 4.0])
    >>> print(kiln.nn.MSELoss()(x, target))
    tensor(2.5, dtype=float32)
    """

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """As L1Loss.forward."""
        return functional.mse_loss(x, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """The square over 2 beta within beta of the target, |x - target| - beta / 2 beyond.

    >>> x, target = kiln.tensor([1.0, 2.0]), kiln.tensor([0.0, 4.0])
    >>> print(kiln.nn.SmoothL1Loss()(x, target))
    tensor(1., dtype=float32)
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """As L1Loss.forward."""
        return functional.smooth_l1_loss(x, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Half the square within delta of the target, delta * (|x - target| - delta / 2) beyond.

    >>> x, target = kiln.tensor([1.0, 2.0]), kiln.tensor([0.0, 4.0])
    >>> print(kiln.nn.HuberLoss()(x, target))
    tensor(1., dtype=float32)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """As L1Loss.forward."""
        return functional.huber_loss(x, target, reduction=self.reduction, delta=self.delta)


class CrossEntropyLoss(_Loss):
    """-log softmax(logits) at the labels, or weighted by a target of probabilities.

    Classes are dimension 1. `weight` has one for each class; labels equal to ignore_index add
    nothing; label_smoothing is the share of the target that is spread over all classes.

    >>> x, target = kiln.tensor([[2.0, 0.5], [0.0, 1.0]]), kiln.tensor([0, 1])
    >>> print(kiln.nn.CrossEntropyLoss()(x, target))
    tensor(0.2573, dtype=float32)
    """

    def __init__(self, weight: Optional[Tensor] = None, ignore_index: int = -100,
                 reduction: str = "mean", label_smoothing: float = 0.0) -> None:
        super().__init__(reduction)
        self.weight = weight
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """(N, C, …) and integers (N, …) or floats (N, C, …) to a scalar, or (N, …)."""
        return functional.cross_entropy(
            logits, target, weight=self.weight, ignore_index=self.ignore_index,
            reduction=self.reduction, label_smoothing=self.label_smoothing)


class NLLLoss(_Loss):
    """-log_probabilities at the labels, classes in dimension 1.

    >>> x, target = kiln.tensor([[2.0, 0.5], [0.0, 1.0]]), kiln.tensor([0, 1])
    >>> print(kiln.nn.NLLLoss()(x, target))
    tensor(-1.5, dtype=float32)
    """

    def __init__(self, weight: Optional[Tensor] = None, ignore_index: int = -100,
                 reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight
        self.ignore_index = ignore_index

    def forward(self, log_probabilities: Tensor, target: Tensor) -> Tensor:
        """(N, C, …) and integers (N, …) to a scalar, or (N, …)."""
        return functional.nll_loss(log_probabilities, target, weight=self.weight,
                                   ignore_index=self.ignore_index, reduction=self.reduction)


class BCELoss(_Loss):
    """-(target log x + (1 - target) log(1 - x)); each logarithm is at least -100.

    >>> x, target = kiln.tensor([0.9, 0.2]), kiln.tensor([1.0, 0.0])
    >>> print(kiln.nn.BCELoss()(x, target))
    tensor(0.1643, dtype=float32)
    """

    def __init__(self, weight: Optional[Tensor] = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """As L1Loss.forward."""
        return functional.binary_cross_entropy(
            x, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """BCELoss of the sigmoid of logits, without overflow.

    >>> x, target = kiln.tensor([0.9, 0.2]), kiln.tensor([1.0, 0.0])
    >>> print(kiln.nn.BCEWithLogitsLoss()(x, target))
    tensor(0.5696, dtype=float32)
    """

    def __init__(self, weight: Optional[Tensor] = None, reduction: str = "mean",
                 pos_weight: Optional[Tensor] = None) -> None:
        super().__init__(reduction)
        self.weight = weight
        self.pos_weight = pos_weight

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """As L1Loss.forward."""
        return functional.binary_cross_entropy_with_logits(
            logits, target, weight=self.weight, reduction=self.reduction,
            pos_weight=self.pos_weight)


class KLDivLoss(_Loss):
    """target * (log target - x), x in log space; "batchmean" divides by the batch's size.

    >>> x, target = kiln.tensor([[-0.5, -1.0]]), kiln.tensor([[0.6, 0.4]])
    >>> print(kiln.nn.KLDivLoss(reduction="batchmean")(x, target))
    tensor(0.027, dtype=float32)
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """As L1Loss.forward."""
        return functional.kl_div(x, target, reduction=self.reduction, log_target=self.log_target)


class HingeEmbeddingLoss(_Loss):
    """x where target is 1, max(0, margin - x) where it is -1.

    >>> x, target = kiln.tensor([0.5, 2.0]), kiln.tensor([1.0, -1.0])
    >>> print(kiln.nn.HingeEmbeddingLoss()(x, target))
    tensor(0.25, dtype=float32)
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """As L1Loss.forward."""
        return functional.hinge_embedding_loss(
            x, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """max(0, -target * (x1 - x2) + margin).

    >>> a, b = kiln.tensor([0.5, 2.0]), kiln.tensor([1.0, 1.0])
    >>> print(kiln.nn.MarginRankingLoss()(a, b, kiln.tensor([1.0, 1.0])))
    tensor(0.25, dtype=float32)
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, x1: Tensor, x2: Tensor, target: Tensor) -> Tensor:
        """Equal shapes to a scalar, or to that shape without reduction."""
        return functional.margin_ranking_loss(
            x1, x2, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * x)).

    >>> x, target = kiln.tensor([0.5, 2.0]), kiln.tensor([1.0, -1.0])
    >>> print(kiln.nn.SoftMarginLoss()(x, target))
    tensor(1.3005, dtype=float32)
    """

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """As L1Loss.forward."""
        return functional.soft_margin_loss(x, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_Loss):
    """BCEWithLogitsLoss, averaged over the classes in the last dimension.

    >>> x, target = kiln.tensor([[2.0, 0.5]]), kiln.tensor([[1.0, 0.0]])
    >>> print(kiln.nn.MultiLabelSoftMarginLoss()(x, target))
    tensor(0.5505, dtype=float32)
    """

    def __init__(self, weight: Optional[Tensor] = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """(N, C) each to a scalar, or (N,)."""
        return functional.multilabel_soft_margin_loss(
            x, target, weight=self.weight, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """1 - cosine where target is 1, max(0, cosine - margin) where it is -1.

    >>> a, b = kiln.tensor([[1.0, 0.0]]), kiln.tensor([[1.0, 1.0]])
    >>> print(kiln.nn.CosineEmbeddingLoss()(a, b, kiln.tensor([1.0])))
    tensor(0.2929, dtype=float32)
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, x1: Tensor, x2: Tensor, target: Tensor) -> Tensor:
        """(N, D), (N, D) and (N,) to a scalar, or (N,)."""
        return functional.cosine_embedding_loss(
            x1, x2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
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
        """(N, D) each to a scalar, or (N,)."""
        return functional.triplet_margin_loss(
            anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps,
            swap=self.swap, reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """(log var + (x - target)^2 / var) / 2, with var at least eps.

    >>> x, target = kiln.tensor([1.0, 2.0]), kiln.tensor([0.0, 4.0])
    >>> print(kiln.nn.GaussianNLLLoss()(x, target, kiln.ones(2)))
    tensor(1.25, dtype=float32)
    """

    def __init__(self, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = full
        self.eps = eps

    def forward(self, x: Tensor, target: Tensor, var: Tensor) -> Tensor:
        """Equal shapes to a scalar, or to that shape without reduction."""
        return functional.gaussian_nll_loss(
            x, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class PoissonNLLLoss(_Loss):
    """exp(x) - target * x, or x - target * log(x + eps); full adds Stirling's approximation.

    >>> x, target = kiln.tensor([1.0, 2.0]), kiln.tensor([0.0, 4.0])
    >>> print(kiln.nn.PoissonNLLLoss()(x, target))
    tensor(1.0537, dtype=float32)
    """

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8,
                 reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """As L1Loss.forward."""
        return functional.poisson_nll_loss(
            x, target, log_input=self.log_input, full=self.full, eps=self.eps,
            reduction=self.reduction)


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
        """Without dimension dim."""
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
        """(…, D) each to (…,)."""
        return functional.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)
