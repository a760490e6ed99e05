"""Dropout: zeroes random elements in training."""

from typing import Tuple

from kiln._array_api.creation import ones_like
from kiln._basics.errors import InvalidArgument
from kiln.random import default_generator
from kiln.tensor import Tensor


def _drop(x: Tensor, p: float, training: bool, shared: Tuple[int, ...] = ()) -> Tensor:
    if not 0 <= p <= 1:
        raise InvalidArgument(f"a dropout probability of {p}; it must be in [0, 1]")
    if not training or p == 0:
        return x
    return x._op("dropout", default_generator.key(), p=float(p), shared_axes=shared)


def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Zeroes elements with probability p and scales the rest by 1 / (1 - p).

    Returns the input itself if not training. Raises InvalidArgument unless p is in [0, 1].

    >>> F.dropout(kiln.ones(3), 0.5, training=False).tolist()
    [1.0, 1.0, 1.0]
    """
    return _drop(input, p, training)


def _drop_channels(x: Tensor, p: float, training: bool, rank: int) -> Tensor:
    if x.ndim not in (rank + 1, rank + 2):
        raise InvalidArgument(
            f"dropout{rank}d of shape {x.shape}; it must have {rank + 2} dimensions, batch, "
            f"channels and {rank} spatial ones, or {rank + 1} without the batch")
    return _drop(x, p, training, tuple(range(x.ndim - rank, x.ndim)))


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Dropout of whole channels of (N, C, L) or (C, L).

    >>> F.dropout1d(kiln.ones(1, 2, 3), 1.0).sum().item()
    0.0
    """
    return _drop_channels(input, p, training, 1)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Dropout of whole channels of (N, C, H, W) or (C, H, W).

    >>> F.dropout2d(kiln.ones(1, 2, 3, 3), 1.0).sum().item()
    0.0
    """
    return _drop_channels(input, p, training, 2)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).

    >>> F.dropout3d(kiln.ones(1, 2, 3, 3, 3), 1.0).sum().item()
    0.0
    """
    return _drop_channels(input, p, training, 3)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False) -> Tensor:
    """Dropout that keeps the mean 0 and variance 1 of selu's results (Klambauer et al., 2017).

    Raises InvalidArgument unless p is in [0, 1).

    >>> F.alpha_dropout(kiln.ones(3), 0.5).tolist()
    [1.0, 1.0, 1.0]
    """
    if not 0 <= p < 1:
        raise InvalidArgument(f"an alpha_dropout probability of {p}; it must be in [0, 1)")
    if not training or p == 0:
        return input
    low = -1.7580993408473766  # the limit of selu for negative inputs
    scale = ((1 - p) * (1 + p * low**2)) ** -0.5
    kept = _drop(ones_like(input), p, True) * (1 - p)
    mixed: Tensor = (input * kept + (1 - kept) * low) * scale - low * p * scale
    return mixed
