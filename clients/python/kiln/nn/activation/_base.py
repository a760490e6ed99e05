"""The base of activations."""

from kiln.nn.module import Module


class Activation(Module):
    """An elementwise activation without parameters."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
