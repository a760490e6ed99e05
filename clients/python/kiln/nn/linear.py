"""Linear layers and changes of shape."""

import math
from typing import Any, Optional, Sequence, Tuple

from kiln import functional
from kiln.nn.module import Module
from kiln.nn.parameter import Parameter
from kiln.random import uniform
from kiln.tensor import Tensor


def uniform_parameter(shape: Tuple[int, ...], fan_in: int) -> Parameter:
    """Returns a Parameter from U(-1 / sqrt(fan_in), 1 / sqrt(fan_in)), PyTorch's default."""
    bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
    return Parameter(uniform(shape, low=-bound, high=bound).contiguous())


class Identity(Module):
    """Returns its argument.

    >>> print(kiln.nn.Identity()(kiln.tensor([-1.0, 0.5, 2.0])))
    tensor([-1. ,  0.5,  2. ], dtype=float32)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        """Returns the argument."""
        return x


class Linear(Module):
    """x @ weight.T + bias, with weight (out_features, in_features).

    >>> kiln.nn.Linear(4, 2)(kiln.ones(3, 4)).shape
    (3, 2)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = uniform_parameter((out_features, in_features), in_features)
        self.bias = uniform_parameter((out_features,), in_features) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Maps (…, in_features) to (…, out_features)."""
        return functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Returns the sizes for repr()."""
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """x1 weight[k] x2 + bias[k] for each k, with weight (out, in1, in2).

    >>> kiln.nn.Bilinear(3, 4, 2)(kiln.ones(5, 3), kiln.ones(5, 4)).shape
    (5, 2)
    """

    def __init__(self, in1_features: int, in2_features: int, out_features: int,
                 bias: bool = True) -> None:
        super().__init__()
        self.weight = uniform_parameter((out_features, in1_features, in2_features), in1_features)
        self.bias: Optional[Parameter] = (
            uniform_parameter((out_features,), in1_features) if bias else None)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Maps (…, in1) and (…, in2) to (…, out)."""
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Returns the sizes for repr()."""
        out, in1, in2 = self.weight.shape
        return f"{in1}, {in2}, {out}, bias={self.bias is not None}"


class Flatten(Module):
    """Merges dimensions start_dim to end_dim into one.

    >>> kiln.nn.Flatten()(kiln.ones(2, 3, 4)).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, x: Tensor) -> Tensor:
        """Returns the flattened tensor."""
        return x.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    """Splits one dimension into several.

    >>> kiln.nn.Unflatten(1, (3, 4))(kiln.ones(2, 12)).shape
    (2, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the tensor with the dimension split."""
        return x.unflatten(self.dim, self.unflattened_size)
