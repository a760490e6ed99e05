"""torch.amp: mixed precision."""

import warnings
from typing import Any, Callable, Optional

from kiln import amp as _amp
from kiln._basics import dtypes
from kiln._graph.gradient_mode import no_grad
from kiln.torch import _defaults, _device
from kiln.torch.optim.optimizer import Optimizer


def _can(device_type: str, what: str) -> bool:
    """Returns whether there is a device of the type; warns otherwise, as PyTorch does."""
    if device_type.startswith("cpu") or _device.accelerators():
        return True
    warnings.warn(f"{what} for {device_type!r}, but the daemon has no accelerator: it is disabled",
                  stacklevel=4)
    return False


class autocast(_amp.autocast):  # noqa: N801
    """Inside, heavy operations compute in `dtype`: by default bfloat16 on the CPU, else float16.

    >>> with torch.autocast("cpu", torch.bfloat16):
    ...     y = torch.ones(2, 2) @ torch.ones(2, 2)
    >>> y.dtype
    kiln.bfloat16
    """

    def __init__(self, device_type: Any = "cuda", dtype: Any = None, enabled: bool = True,
                 cache_enabled: Optional[bool] = None) -> None:
        usual = "bfloat16" if str(device_type).startswith("cpu") else "float16"
        wanted = dtypes.BY_NAME[usual] if dtype is None else _defaults.as_dtype(dtype)
        if wanted is dtypes.float32:
            wanted, enabled = dtypes.BY_NAME[usual], False
        enabled = enabled and _can(str(device_type), "autocast")
        super().__init__(wanted, enabled)
        self.device = str(device_type)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function, which runs under autocast."""
        return super().__call__(function)


def is_autocast_enabled(device_type: Any = None) -> bool:
    """Returns whether autocast is active here."""
    return _amp.is_autocast_enabled()


def is_autocast_available(device_type: str) -> bool:
    """Returns True."""
    return True


class GradScaler:
    """Scales the loss so that float16 gradients do not underflow, and adapts the scale."""

    def __init__(self, device: Any = "cuda", init_scale: float = 2.0**16,
                 growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:
        self._scale_now = float(init_scale)
        self._factors = (growth_factor, backoff_factor)
        self._interval = growth_interval
        self._good_steps = 0
        self._enabled = enabled and _can(str(device), "GradScaler")
        self._unscaled = False
        self._found: Optional[bool] = None

    def scale(self, outputs: Any) -> Any:
        """Returns the loss, or several, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(output) for output in outputs)
        return outputs * self._scale_now

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of an optimizer by the scale."""
        if not self._enabled or self._unscaled:
            return
        finite = True
        with no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad = parameter.grad / self._scale_now
                        finite = finite and bool(parameter.grad.isfinite().all())
        self._found = not finite or bool(self._found)
        self._unscaled = True

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Calls the optimizer's step() unless a gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        self.unscale_(optimizer)
        return None if self._found else optimizer.step(*args, **kwargs)

    def update(self, new_scale: Optional[float] = None) -> None:
        """Adapts the scale after a step."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale_now = float(new_scale)
        elif self._found:
            self._scale_now *= self._factors[1]
            self._good_steps = 0
        else:
            self._good_steps += 1
            if self._good_steps == self._interval:
                self._scale_now *= self._factors[0]
                self._good_steps = 0
        self._unscaled, self._found = False, None

    def get_scale(self) -> float:
        """Returns the scale."""
        return self._scale_now if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Returns whether it scales."""
        return self._enabled

    def state_dict(self) -> Any:
        """Returns the scale and its settings."""
        if not self._enabled:
            return {}
        return {"scale": self._scale_now, "growth_factor": self._factors[0],
                "backoff_factor": self._factors[1], "growth_interval": self._interval,
                "_growth_tracker": self._good_steps}

    def load_state_dict(self, state_dict: Any) -> None:
        """Restores a state_dict()."""
        if self._enabled and state_dict:
            self._scale_now = state_dict["scale"]
            self._factors = (state_dict["growth_factor"], state_dict["backoff_factor"])
            self._interval = state_dict["growth_interval"]
            self._good_steps = state_dict["_growth_tracker"]


def custom_fwd(fwd: Any = None, *, device_type: str = "", cast_inputs: Any = None) -> Any:
    """Returns the function itself, for autograd.Function."""
    return fwd if fwd is not None else lambda function: function


custom_bwd = custom_fwd

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
