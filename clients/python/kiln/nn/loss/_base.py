"""The base of losses."""

from kiln.nn.module import Module


class Loss(Module):
    """A loss with a reduction."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction
