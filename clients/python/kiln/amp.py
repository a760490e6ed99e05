"""Mixed precision: expensive products in half precision, operations that need range in float32.

(Micikevicius et al., 2018.) Parameters stay float32. Inside `autocast`, matrix products,
convolutions and attention cast their float32 operands to the half type, while norms, softmax, sums
and losses cast half operands to float32. All other operations take their operands as they are and
promote them as usual. With float16, whose small gradients underflow, a GradScaler multiplies the
loss.

    scaler = kiln.GradScaler()

    @kiln.jit
    def step(x, y):
        optimizer.zero_grad()
        with kiln.autocast(kiln.float16):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss
"""

import functools
from types import TracebackType
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Type, Union

import numpy as np

from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument, NotFound
from kiln._graph.gradient_mode import no_grad
from kiln._graph.node import Node, make, mode
from kiln._tensor.device_transfer import beside
from kiln.optim import GradientAccumulation, Optimizer
from kiln.tensor import Tensor

Steps = Union[Optimizer, GradientAccumulation]

# Ops whose float32 operands become the half type: their work grows faster than their data.
HALF_OPS = frozenset((
    "matmul", "linear", "einsum", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "scaled_dot_product_attention",
))  # fmt: skip
# Ops whose half operands become float32: half precision has too little range or, for sums of many
# terms, too little precision.
FLOAT32_OPS = frozenset((
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "reciprocal", "rsqrt", "sqrt",
    "tan", "sinh", "cosh", "acos", "asin", "erf", "erfinv", "lgamma", "digamma", "softplus",
    "logaddexp", "logaddexp2", "sum", "prod", "mean", "var", "std", "logsumexp", "vector_norm",
    "cumulative_sum", "cumulative_prod", "cumulative_logsumexp", "softmax", "log_softmax",
    "layer_norm", "batch_norm", "group_norm", "instance_norm", "rms_norm", "local_response_norm",
    "normalize", "cosine_similarity", "pairwise_distance", "cholesky", "det", "inv", "qr", "solve",
    "slogdet_logabs", "slogdet_sign", "triangular_solve", "cross_entropy", "nll_loss", "mse_loss",
    "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "hinge_embedding_loss", "cosine_embedding_loss",
    "margin_ranking_loss", "soft_margin_loss", "triplet_margin_loss", "gaussian_nll_loss",
    "poisson_nll_loss",
))  # fmt: skip


class _Policy:
    """The operand casts of `node.make` while autocast is active; one object for each dtype."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: dtypes.DType) -> None:
        self.dtype = dtype

    def operands(self, name: str, operands: Tuple[Node, ...]) -> Tuple[Node, ...]:
        """Returns an op's operands, cast as the op requires."""
        if name in HALF_OPS:
            return self._cast(operands, (dtypes.float32,), self.dtype)
        if name in FLOAT32_OPS:
            return self._cast(operands, _HALVES, dtypes.float32)
        return operands

    def _cast(self, operands: Tuple[Node, ...], given: Tuple[dtypes.DType, ...],
              wanted: dtypes.DType) -> Tuple[Node, ...]:
        return tuple([make("cast", (node,), (), wanted) if node.dtype in given else node
                      for node in operands])


_HALVES = (dtypes.float16, dtypes.bfloat16)
_POLICIES = {dtype: _Policy(dtype) for dtype in _HALVES}


class autocast:  # noqa: N801
    """Inside, heavy operations compute in `dtype`: float16 or bfloat16. Also a decorator.

    >>> x = kiln.ones(2, 3)
    >>> with kiln.autocast(kiln.bfloat16):
    ...     y = x @ x.T
    >>> y.dtype
    kiln.bfloat16

    Call backward() outside; gradients have the dtypes of their parameters. `enabled=False` switches
    an outer autocast off. Raises InvalidArgument for another dtype.
    """

    def __init__(self, dtype: Any = dtypes.bfloat16, enabled: bool = True) -> None:
        kind = dtypes.as_dtype(dtype)
        if kind not in _POLICIES:
            raise InvalidArgument(f"autocast to {kind.name}; use float16 or bfloat16")
        self.dtype = kind
        self.enabled = enabled
        self._before: List[Any] = []

    def __enter__(self) -> "autocast":
        self._before.append(mode.autocast)
        mode.autocast = _POLICIES[self.dtype] if self.enabled else None
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        mode.autocast = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function, which runs under autocast whenever it is called."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.dtype, self.enabled):
                return function(*args, **kwargs)

        return wrapped


def is_autocast_enabled() -> bool:
    """Returns whether autocast is active here.

    >>> with kiln.autocast():
    ...     print(kiln.amp.is_autocast_enabled())
    True
    """
    return mode.autocast is not None


class GradScaler:
    """Scales the loss so that float16 gradients do not underflow, and adapts the scale.

    When a gradient is infinite or NaN, the optimizer's step changes nothing and the scale is
    multiplied by `backoff_factor`. After `growth_interval` steps without that, it is multiplied by
    `growth_factor`. Everything is computed on the device and nothing is read back, so it works
    inside kiln.jit. With `enabled=False` it does nothing. Raises InvalidArgument unless
    growth_factor > 1, 0 < backoff_factor < 1 and init_scale > 0.

    >>> scaler = kiln.GradScaler(init_scale=8.0)
    >>> w = kiln.nn.Parameter(kiln.ones(2))
    >>> optimizer = kiln.optim.SGD([w], lr=0.1)
    >>> scaler.scale((w * w).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> print(w)
    tensor([0.8, 0.8], dtype=float32, requires_grad=True)
    """

    _kiln_watched: Tuple[str, ...] = (
        "_scale", "_good_steps", "growth_factor", "backoff_factor", "growth_interval", "enabled")

    def __init__(self, init_scale: float = 65536.0, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000,
                 enabled: bool = True) -> None:
        if not (growth_factor > 1 and 0 < backoff_factor < 1 and init_scale > 0):
            raise InvalidArgument(
                f"a GradScaler from {init_scale} by {growth_factor} and {backoff_factor}; "
                "growth_factor must be above 1 and backoff_factor below 1")
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self._scale = Tensor(np.float32(init_scale))
        self._good_steps = Tensor(np.int32(0))
        # For each optimizer, whether this step's gradients are finite; in this trace or eager step.
        self._finite: Dict[int, Tensor] = {}
        self._trace: Any = None

    def scale(self, loss: Tensor) -> Tensor:
        """Returns the loss times the scale, in float32, for backward().

        >>> kiln.GradScaler(init_scale=8.0).scale(kiln.tensor(2.0)).item()
        16.0
        """
        return loss.float() * self._scale if self.enabled else loss

    def unscale_(self, optimizer: Steps) -> None:
        """Divides an optimizer's gradients by the scale, so that they may be clipped before step().

        Raises InvalidArgument if called twice for one optimizer before update().

        >>> scaler = kiln.GradScaler(init_scale=8.0)
        >>> w = kiln.nn.Parameter(kiln.ones(2))
        >>> optimizer = kiln.optim.SGD([w], lr=0.1)
        >>> scaler.scale(w.sum()).backward()
        >>> scaler.unscale_(optimizer)
        >>> w.grad.tolist()
        [1.0, 1.0]
        """
        if not self.enabled:
            return
        found = self._found()
        if id(optimizer) in found:
            raise InvalidArgument(
                "unscale_() is called twice for an optimizer; call update() first")
        with no_grad():
            share = 1.0 / self._scale
            finite = Tensor(True)
            for parameter in optimizer.params:
                if parameter.grad is not None:
                    gradient = parameter.grad.float() * share
                    finite = finite.logical_and(beside(gradient.isfinite().all(), finite))
                    parameter.grad = gradient.cast(parameter.grad.dtype)
        found[id(optimizer)] = finite

    def step(self, optimizer: Steps) -> None:
        """Takes the optimizer's step with unscaled gradients; changes nothing if one is not finite.

        >>> scaler = kiln.GradScaler(init_scale=8.0)
        >>> w = kiln.nn.Parameter(kiln.ones(2))
        >>> optimizer = kiln.optim.SGD([w], lr=0.1)
        >>> scaler.scale(w.sum()).backward()
        >>> _ = scaler.step(optimizer)
        >>> print(w)
        tensor([0.9, 0.9], dtype=float32, requires_grad=True)
        """
        if not self.enabled:
            optimizer.step()
            return
        if id(optimizer) not in self._found():
            self.unscale_(optimizer)
        optimizer.step(only_if=self._found()[id(optimizer)])

    def update(self) -> None:
        """Adapts the scale. Call it after the steps of all optimizers.

        >>> scaler = kiln.GradScaler(init_scale=8.0)
        >>> scaler.update()
        >>> scaler.get_scale()
        8.0
        """
        found = list(self._found().values())
        self._finite, self._trace = {}, None
        if not self.enabled or not found:
            return
        with no_grad():
            finite = functools.reduce(Tensor.logical_and, found)
            steps = self._good_steps + 1
            grows = steps >= self.growth_interval
            grown = (self._scale * self.growth_factor).where(grows, self._scale)
            self._good_steps.assign(steps.masked_fill(grows.logical_or(~finite), 0))
            self._scale.assign(grown.where(finite, self._scale * self.backoff_factor))

    def _found(self) -> Dict[int, Tensor]:
        if self._trace is not mode.trace:
            self._trace, self._finite = mode.trace, {}
        return self._finite

    def get_scale(self) -> float:
        """Returns the scale. Reads it from the device, so it cannot be used inside kiln.jit.

        >>> kiln.GradScaler(init_scale=8.0).get_scale()
        8.0
        """
        return float(self._scale.item()) if self.enabled else 1.0

    def state_dict(self) -> Dict[str, Tensor]:
        """Returns the scale and the count of good steps as a flat dict, which kiln.save accepts.

        >>> sorted(kiln.GradScaler().state_dict())
        ['good_steps', 'scale']
        """
        return {"scale": self._scale.detach(), "good_steps": self._good_steps.detach()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state_dict(). Raises NotFound if an entry is missing.

        >>> scaler = kiln.GradScaler(init_scale=8.0)
        >>> scaler.load_state_dict(kiln.GradScaler(init_scale=4.0).state_dict())
        >>> scaler.get_scale()
        4.0
        """
        for name, tensor in (("scale", self._scale), ("good_steps", self._good_steps)):
            if name not in state:
                raise NotFound(f"the state has no {name}; it is not the state of a GradScaler")
            value = state[name]
            tensor.assign(value.detach() if isinstance(value, Tensor) else Tensor(value))


__all__ = ["GradScaler", "autocast", "is_autocast_enabled"]
