"""Losses of labels and of probabilities."""

from typing import Optional

from kiln import functional
from kiln.nn.loss._base import Loss
from kiln.tensor import Tensor


class CrossEntropyLoss(Loss):
    """-log softmax(logits) at the labels, or weighted by a target of probabilities.

    Classes are dimension 1. `weight` has one factor for each class; labels equal to ignore_index
    add nothing; label_smoothing is the fraction of the target that is spread over all classes.

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
        """Maps (N, C, …) and integers (N, …) or floats (N, C, …) to a scalar, or (N, …)."""
        return functional.cross_entropy(
            logits, target, weight=self.weight, ignore_index=self.ignore_index,
            reduction=self.reduction, label_smoothing=self.label_smoothing)


class NLLLoss(Loss):
    """-log_probabilities at the labels; classes are dimension 1.

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
        """Maps (N, C, …) and integers (N, …) to a scalar, or (N, …)."""
        return functional.nll_loss(log_probabilities, target, weight=self.weight,
                                   ignore_index=self.ignore_index, reduction=self.reduction)


class BCELoss(Loss):
    """-(target log x + (1 - target) log(1 - x)); each logarithm is at least -100.

    >>> x, target = kiln.tensor([0.9, 0.2]), kiln.tensor([1.0, 0.0])
    >>> print(kiln.nn.BCELoss()(x, target))
    tensor(0.1643, dtype=float32)
    """

    def __init__(self, weight: Optional[Tensor] = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """See L1Loss.forward."""
        return functional.binary_cross_entropy(
            x, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(Loss):
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
        """See L1Loss.forward."""
        return functional.binary_cross_entropy_with_logits(
            logits, target, weight=self.weight, reduction=self.reduction,
            pos_weight=self.pos_weight)


class KLDivLoss(Loss):
    """target * (log target - x), with x in log space; "batchmean" divides by the batch size.

    >>> x, target = kiln.tensor([[-0.5, -1.0]]), kiln.tensor([[0.6, 0.4]])
    >>> print(kiln.nn.KLDivLoss(reduction="batchmean")(x, target))
    tensor(0.027, dtype=float32)
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """See L1Loss.forward."""
        return functional.kl_div(x, target, reduction=self.reduction, log_target=self.log_target)


class SoftMarginLoss(Loss):
    """log(1 + exp(-target * x)).

    >>> x, target = kiln.tensor([0.5, 2.0]), kiln.tensor([1.0, -1.0])
    >>> print(kiln.nn.SoftMarginLoss()(x, target))
    tensor(1.3005, dtype=float32)
    """

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """See L1Loss.forward."""
        return functional.soft_margin_loss(x, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(Loss):
    """BCEWithLogitsLoss, averaged over the classes in the last dimension.

    >>> x, target = kiln.tensor([[2.0, 0.5]]), kiln.tensor([[1.0, 0.0]])
    >>> print(kiln.nn.MultiLabelSoftMarginLoss()(x, target))
    tensor(0.5505, dtype=float32)
    """

    def __init__(self, weight: Optional[Tensor] = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """Maps (N, C) each to a scalar, or (N,)."""
        return functional.multilabel_soft_margin_loss(
            x, target, weight=self.weight, reduction=self.reduction)
