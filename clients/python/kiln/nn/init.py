"""Initial values for parameters, with PyTorch's names. Each function fills a tensor and returns it.

>>> layer = kiln.nn.Linear(64, 10)
>>> bound = kiln.nn.init.xavier_uniform_(layer.weight).abs().max().item()
>>> 0.25 < bound < 0.285
True
>>> kiln.nn.init.zeros_(layer.bias).tolist()[:2]
[0.0, 0.0]

The numbers come from the default generator, so `kiln.manual_seed` makes them reproducible. They are
drawn on the device when the tensor is first used.
"""

import math
from typing import Callable, Dict, Optional, Tuple

import numpy as np

from kiln._array_api.creation import eye
from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import no_grad
from kiln.random import default_generator, rand, randn
from kiln.tensor import Tensor


def _fill(tensor: Tensor, value: Tensor) -> Tensor:
    # A separate value: two users of a lazy draw must not compute it twice.
    with no_grad():
        return tensor.assign(value.cast(tensor.dtype).contiguous())


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills the tensor with one number.

    >>> kiln.nn.init.constant_(kiln.zeros(2), 3).tolist()
    [3.0, 3.0]
    """
    with no_grad():
        return tensor.assign(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills the tensor with zeros.

    >>> kiln.nn.init.zeros_(kiln.ones(2)).tolist()
    [0.0, 0.0]
    """
    return constant_(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """Fills the tensor with ones.

    >>> kiln.nn.init.ones_(kiln.zeros(2)).tolist()
    [1.0, 1.0]
    """
    return constant_(tensor, 1)


def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity; raises InvalidArgument for other tensors.

    >>> kiln.nn.init.eye_(kiln.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if tensor.ndim != 2:
        raise InvalidArgument(f"eye_ of a tensor of shape {tensor.shape}; it fills matrices")
    return _fill(tensor, eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills a convolution's weight (out, in, …) so that each group passes on its input channels.

    Raises InvalidArgument for other ranks, and unless `groups` divides the first dimension.

    >>> kiln.nn.init.dirac_(kiln.zeros(1, 1, 3)).tolist()
    [[[0.0, 1.0, 0.0]]]
    """
    if tensor.ndim not in (3, 4, 5) or tensor.shape[0] % groups:
        raise InvalidArgument(
            f"dirac_ of a tensor of shape {tensor.shape} in {groups} groups; it fills a "
            "convolution's weight, whose first dimension must be a multiple of groups")
    out, within, *kernel = tensor.shape
    per_group = out // groups
    identity = eye(per_group, within).reshape(1, per_group, within).expand(
        groups, per_group, within).reshape(out, within, *([1] * len(kernel)))
    pads = []
    for size in reversed(kernel):
        pads += [size // 2, size - 1 - size // 2]
    return _fill(tensor, identity.pad(pads))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Draws from the uniform distribution in [a, b).

    >>> bool(kiln.nn.init.uniform_(kiln.zeros(64, 64), -1, 1).abs().max() < 8)
    True
    """
    return _fill(tensor, rand(tensor.shape) * (b - a) + a)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Draws from the normal distribution with this mean and standard deviation.

    >>> bool(kiln.nn.init.normal_(kiln.zeros(64, 64)).abs().max() < 8)
    True
    """
    return _fill(tensor, randn(tensor.shape) * std + mean)


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0,
                  b: float = 2.0) -> Tensor:
    """Draws from the normal distribution in [a, b], by inverting its cumulative function.

    (The inverse error function is Giles, 2010: single precision.) Raises InvalidArgument unless a <
    b.

    >>> bool(kiln.nn.init.trunc_normal_(kiln.zeros(64, 64)).abs().max() < 8)
    True
    """
    if not a < b:
        raise InvalidArgument(f"trunc_normal_ between {a} and {b}; the first must be smaller")
    low, high = (math.erf((edge - mean) / (std * math.sqrt(2))) for edge in (a, b))
    # Strictly inside (-1, 1), where the inverse is finite.
    level = (rand(tensor.shape) * (high - low) + low).clamp(-1 + 1e-7, 1 - 1e-7)
    values = _inverse_erf(level) * (std * math.sqrt(2)) + mean
    return _fill(tensor, values.clamp(a, b))


_GILES_CENTRAL = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                  -0.00125372503, -0.00417768164, 0.246640727, 1.50140941)
_GILES_TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
               -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)


def _polynomial(x: Tensor, coefficients: Tuple[float, ...]) -> Tensor:
    result = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


def _inverse_erf(x: Tensor) -> Tensor:
    w = -((1 - x) * (1 + x)).log()
    central = _polynomial(w - 2.5, _GILES_CENTRAL)
    tail = _polynomial(w.maximum(5.0).sqrt() - 3.0, _GILES_TAIL)
    return central.where(w < 5.0, tail) * x


def fans(tensor: Tensor) -> Tuple[int, int]:
    """Returns (fan_in, fan_out) of a weight (out, in, …); raises InvalidArgument for vectors.

    >>> kiln.nn.init.fans(kiln.zeros(8, 4, 3, 3))
    (36, 72)
    """
    if tensor.ndim < 2:
        raise InvalidArgument(
            f"fan in and fan out of a tensor of shape {tensor.shape}; it needs two dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_GAINS: Dict[str, Callable[[float], float]] = {
    "linear": lambda _: 1.0, "conv1d": lambda _: 1.0, "conv2d": lambda _: 1.0,
    "conv3d": lambda _: 1.0, "conv_transpose1d": lambda _: 1.0, "conv_transpose2d": lambda _: 1.0,
    "conv_transpose3d": lambda _: 1.0, "sigmoid": lambda _: 1.0, "tanh": lambda _: 5.0 / 3,
    "relu": lambda _: math.sqrt(2.0), "selu": lambda _: 0.75,
    "leaky_relu": lambda slope: math.sqrt(2.0 / (1 + slope**2)),
}  # fmt: skip


def calculate_gain(nonlinearity: str, param: Optional[float] = None) -> float:
    """Returns the factor on weights that preserves variances across a nonlinearity; param: a slope.

    Raises InvalidArgument for an unknown nonlinearity.

    >>> round(kiln.nn.init.calculate_gain("relu"), 4)
    1.4142
    """
    gain = _GAINS.get(nonlinearity)
    if gain is None:
        raise InvalidArgument(
            f"unknown nonlinearity {nonlinearity!r}; use one of {', '.join(_GAINS)}")
    return gain(0.01 if param is None else param)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Draws uniform numbers of variance 2 gain^2 / (fan_in + fan_out). (Glorot and Bengio, 2010.)

    >>> bool(kiln.nn.init.xavier_uniform_(kiln.zeros(64, 64)).abs().max() < 8)
    True
    """
    bound = gain * math.sqrt(6.0 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Draws normal numbers of variance 2 gain^2 / (fan_in + fan_out). (Glorot and Bengio, 2010.)

    >>> bool(kiln.nn.init.xavier_normal_(kiln.zeros(64, 64)).abs().max() < 8)
    True
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))))


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise InvalidArgument(f'mode {mode!r}; it must be "fan_in" or "fan_out"')
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in",
                     nonlinearity: str = "leaky_relu") -> Tensor:
    """Draws uniform numbers of variance gain^2 / fan. `a` is leaky_relu's slope. (He et al., 2015.)

    >>> bool(kiln.nn.init.kaiming_uniform_(kiln.zeros(64, 64)).abs().max() < 8)
    True
    """
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in",
                    nonlinearity: str = "leaky_relu") -> Tensor:
    """Draws normal numbers of variance gain^2 / fan. `a` is leaky_relu's slope. (He et al., 2015.)

    >>> bool(kiln.nn.init.kaiming_normal_(kiln.zeros(64, 64)).abs().max() < 8)
    True
    """
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity))


def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Fills the tensor, as a matrix (first dimension, others), with orthonormal rows or columns.

    Computed in this process from a key that the generator draws, which is read. (Saxe et al.,
    2014.) Raises InvalidArgument for vectors.

    >>> q = kiln.nn.init.orthogonal_(kiln.zeros(3, 3))
    >>> (q @ q.T).allclose(kiln.eye(3), atol=1e-5)
    True
    """
    if tensor.ndim < 2:
        raise InvalidArgument(
            f"orthogonal_ of a tensor of shape {tensor.shape}; it needs two dimensions")
    rows = tensor.shape[0]
    columns = math.prod(tensor.shape[1:])
    key = default_generator.key().numpy()
    draws = np.random.Generator(np.random.Philox(key=key.astype(np.uint64)))
    flat = draws.standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(flat)
    q = q * np.sign(np.diag(r))  # uniform over all such matrices (Mezzadri, 2007)
    matrix = q if rows >= columns else q.T
    return _fill(tensor, Tensor((gain * matrix).astype(np.float32).reshape(tensor.shape)))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01) -> Tensor:
    """Draws normal numbers; in each column of the matrix a fraction `sparsity` of the rows is zero.

    Raises InvalidArgument for tensors other than matrices.

    >>> int((kiln.nn.init.sparse_(kiln.zeros(10, 4), 0.5) == 0).sum())
    20
    """
    if tensor.ndim != 2:
        raise InvalidArgument(f"sparse_ of a tensor of shape {tensor.shape}; it fills matrices")
    rows, columns = tensor.shape
    key = default_generator.key().numpy()
    draws = np.random.Generator(np.random.Philox(key=key.astype(np.uint64)))
    values = draws.normal(0.0, std, (rows, columns)).astype(np.float32)
    zeros = math.ceil(sparsity * rows)
    for column in range(columns):
        values[draws.permutation(rows)[:zeros], column] = 0
    return _fill(tensor, Tensor(values))


__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "fans", "kaiming_normal_", "kaiming_uniform_",
    "normal_", "ones_", "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_",
    "xavier_uniform_", "zeros_",
]  # fmt: skip
