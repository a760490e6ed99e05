"""Muon: momentum with orthogonalized matrices."""

from typing import Any, Dict, Mapping, Tuple

from kiln._basics.errors import InvalidArgument
from kiln.optim.optimizer import Optimizer, Params
from kiln.tensor import Tensor

# The quintic iteration's coefficients: steepest at 0, so that few steps suffice. Singular values
# end in about [0.7, 1.2] instead of at 1, which trains as well. (Jordan, 2024.)
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalize(matrix: Tensor, steps: int = 5, eps: float = 1e-7) -> Tensor:
    """Returns about U V^T of the matrix U S V^T, by the Newton-Schulz iteration."""
    a, b, c = _COEFFICIENTS
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.T
    x = x / (x.square().sum().sqrt() + eps)
    for _ in range(steps):
        gram = x @ x.T
        x = x * a + (gram * b + (gram @ gram) * c) @ x
    return x if wide else x.T


class Muon(Optimizer):
    """Muon, for the matrices between the layers of a network. (Jordan et al., 2024:
    https://kellerjordan.github.io/posts/muon.)

    Each step is the orthogonalized Nesterov momentum of the gradient times max(1, rows /
    columns)^(1/2). Parameters of more than two dimensions count as matrices (first dimension,
    others); fewer dimensions raise InvalidArgument. Use another optimizer, such as AdamW, for
    embeddings, biases and the last layer.

    >>> w = kiln.nn.Parameter(kiln.eye(2))
    >>> optimizer = kiln.optim.Muon([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.shape
    (2, 2)
    """

    def __init__(self, params: Params, lr: float = 2e-2, momentum: float = 0.95,
                 weight_decay: float = 0.0, nesterov: bool = True, ns_steps: int = 5) -> None:
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "weight_decay": weight_decay, "nesterov": nesterov,
            "ns_steps": ns_steps})
        for parameter in self.params:
            if parameter.ndim < 2:
                raise InvalidArgument(
                    f"Muon of a parameter of shape {parameter.shape}; it must be a matrix. Use "
                    "AdamW for the others")

    def slots(self, options: Mapping[str, Any]) -> Tuple[str, ...]:
        """Returns the velocity."""
        return ("momentum_buffer",)

    def update(self, parameter: Tensor, gradient: Tensor, state: Dict[str, Tensor], lr: Tensor,
               count: Tensor, options: Mapping[str, Any]) -> None:
        """Updates one parameter and its state."""
        velocity = state["momentum_buffer"]
        momentum = options["momentum"]
        velocity.assign(velocity * momentum + gradient * (1 - momentum))
        direction: Tensor = velocity
        if options["nesterov"]:
            direction = velocity * momentum + gradient * (1 - momentum)
        matrix = direction.reshape(direction.shape[0], -1)
        step = orthogonalize(matrix, options["ns_steps"])
        rows, columns = matrix.shape
        step = (step * max(1.0, rows / columns) ** 0.5).reshape(parameter.shape)
        rate = lr.cast(parameter.dtype)
        value: Tensor = parameter
        if options["weight_decay"]:
            value = value * (1.0 - rate * options["weight_decay"])
        parameter.assign(value - step * rate)
