"""What activations share."""

from kiln.nn.module import Module


class Activation(Module):
    """Elementwise, without parameters."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
