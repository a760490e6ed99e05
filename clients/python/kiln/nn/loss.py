"""Losses as modules."""

from kiln import functional
from kiln.nn.module import Module
from kiln.tensor import Tensor


class CrossEntropyLoss(Module):
    """The mean of -log softmax(logits) at the labels."""

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """A scalar."""
        return functional.cross_entropy(logits, labels)


class MSELoss(Module):
    """The mean of the squared differences."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """A scalar."""
        return functional.mse_loss(x, target)
