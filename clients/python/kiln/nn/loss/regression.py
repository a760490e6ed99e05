"""Losses of numbers."""

from kiln import functional
from kiln.nn.loss._base import Loss
from kiln.tensor import Tensor


class L1Loss(Loss):
    """|x - target|.

    >>> x, target = kiln.tensor([1.0, 2.0]), kiln.tensor([0.0, 4.0])
    >>> print(kiln.nn.L1Loss()(x, target))
    tensor(1.5, dtype=float32)
    """

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """Maps equal shapes to a scalar, or to that shape without reduction."""
        return functional.l1_loss(x, target, reduction=self.reduction)


class MSELoss(Loss):
    """The square of x - target.

    >>> x, target = kiln.tensor([1.0, 2.0]), kiln.tensor([0.0, 4.0])
    >>> print(kiln.nn.MSELoss()(x, target))
    tensor(2.5, dtype=float32)
    """

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """See L1Loss.forward."""
        return functional.mse_loss(x, target, reduction=self.reduction)


class SmoothL1Loss(Loss):
    """d² / (2 * beta) where d = |x - target| is below beta, d - beta / 2 elsewhere.

    >>> x, target = kiln.tensor([1.0, 2.0]), kiln.tensor([0.0, 4.0])
    >>> print(kiln.nn.SmoothL1Loss()(x, target))
    tensor(1., dtype=float32)
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """See L1Loss.forward."""
        return functional.smooth_l1_loss(x, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """d² / 2 where d = |x - target| is at most delta, delta * (d - delta / 2) elsewhere.

    >>> x, target = kiln.tensor([1.0, 2.0]), kiln.tensor([0.0, 4.0])
    >>> print(kiln.nn.HuberLoss()(x, target))
    tensor(1., dtype=float32)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """See L1Loss.forward."""
        return functional.huber_loss(x, target, reduction=self.reduction, delta=self.delta)


class GaussianNLLLoss(Loss):
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
        """Maps equal shapes to a scalar, or to that shape without reduction."""
        return functional.gaussian_nll_loss(
            x, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class PoissonNLLLoss(Loss):
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
        """See L1Loss.forward."""
        return functional.poisson_nll_loss(
            x, target, log_input=self.log_input, full=self.full, eps=self.eps,
            reduction=self.reduction)
