"""torch.optim.lr_scheduler: the schedules of kiln.optim with PyTorch's arguments and state."""

import math
from typing import Any, Callable, Dict, List, Optional

from kiln.optim import lr_scheduler as _kiln
from kiln.torch.optim.optimizer import Optimizer


class LRScheduler(_kiln.LRScheduler):
    """The base class of schedules. Own ones override get_lr().

    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
    >>> torch.optim.lr_scheduler.StepLR(optimizer, 2).get_last_lr()
    [0.1]
    """

    def __init__(self, optimizer: Any, last_epoch: int = -1, verbose: Any = None) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self._step_count = 1
        given: Any = optimizer
        _kiln.LRScheduler.__init__(self, given, last_epoch)

    @property
    def last_epoch(self) -> int:
        """The number of steps made."""
        return self._epoch

    @last_epoch.setter
    def last_epoch(self, value: int) -> None:
        self._epoch = value

    def get_lr(self) -> List[Any]:
        """Returns the learning rates of the present epoch."""
        return [self.rate(base, self._epoch, i) for i, base in enumerate(self.base_lrs)]

    def _set(self) -> None:
        for group, wanted in zip(self.optimizer.param_groups, self.get_lr()):
            group["lr"] = wanted
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: Optional[int] = None) -> None:
        """Sets the learning rates of the next step, or of `epoch`."""
        self._step_count += 1
        self._epoch = self._epoch + 1 if epoch is None else epoch
        self._set()

    def get_last_lr(self) -> List[Any]:
        """Returns the learning rates."""
        return self._last_lr

    def state_dict(self) -> Dict[str, Any]:
        """Returns the state of the schedule, functions and schedules left out."""
        state = {name: value for name, value in vars(self).items()
                 if name not in ("optimizer", "_epoch") and _is_plain(value)}
        return {**state, "last_epoch": self._epoch}

    def load_state_dict(self, state_dict: Any) -> None:
        """Restores a state_dict()."""
        values = dict(state_dict)
        self._epoch = values.pop("last_epoch")
        vars(self).update(values)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


_LRScheduler = LRScheduler


def _scheduler(name: str) -> Any:
    own = getattr(_kiln, name)

    def init(self: Any, optimizer: Any, *args: Any, verbose: Any = None, **kwargs: Any) -> None:
        self._step_count = 1
        own.__init__(self, optimizer, *args, **kwargs)

    doc = (own.__doc__ or "").partition("\n\n    >>>")[0].rstrip() + "\n"
    return type(name, (LRScheduler, own), {
        "__init__": init, "__module__": __name__, "__qualname__": name, "__doc__": doc})


StepLR, MultiStepLR, LambdaLR = _scheduler("StepLR"), _scheduler("MultiStepLR"), _scheduler(
    "LambdaLR")
ExponentialLR, ConstantLR, LinearLR = (
    _scheduler("ExponentialLR"), _scheduler("ConstantLR"), _scheduler("LinearLR"))
PolynomialLR, CosineAnnealingLR = _scheduler("PolynomialLR"), _scheduler("CosineAnnealingLR")
CosineAnnealingWarmRestarts = _scheduler("CosineAnnealingWarmRestarts")


class MultiplicativeLR(LRScheduler):
    """Multiplies the learning rates by the result of a function of the epoch."""

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1,
                 verbose: Any = None) -> None:
        given = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * len(
            optimizer.param_groups)
        self.lr_lambdas: List[Callable[[int], float]] = given
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> List[Any]:
        """Returns the learning rates of the present epoch."""
        groups = self.optimizer.param_groups
        if self._epoch == 0:
            return [group["lr"] for group in groups]
        return [group["lr"] * factor(self._epoch) for group, factor in zip(groups, self.lr_lambdas)]


def _set_momentum(group: Any, momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


class OneCycleLR(LRScheduler, _kiln.OneCycleLR):
    """One cycle of the learning rate up and down, and of the momentum down and up (Smith, 2018)."""

    def __init__(self, optimizer: Any, max_lr: Any, total_steps: Optional[int] = None,
                 epochs: Optional[int] = None, steps_per_epoch: Optional[int] = None,
                 pct_start: float = 0.3, anneal_strategy: str = "cos",
                 cycle_momentum: bool = True, base_momentum: Any = 0.85,
                 max_momentum: Any = 0.95, div_factor: float = 25.0,
                 final_div_factor: float = 1e4, three_phase: bool = False,
                 last_epoch: int = -1, verbose: Any = None) -> None:
        self._step_count = 1
        self._momenta = (base_momentum, max_momentum) if cycle_momentum else None
        steps: Any = total_steps if total_steps is not None else (epochs or 0) * (
            steps_per_epoch or 0)
        self._ends = [pct_start * steps - 1, 2 * pct_start * steps - 2, steps - 1] if (
            three_phase) else [pct_start * steps - 1, steps - 1]
        self._is_cosine = anneal_strategy == "cos"
        _kiln.OneCycleLR.__init__(
            self, optimizer, max_lr, total_steps, epochs, steps_per_epoch, pct_start,
            anneal_strategy, div_factor, final_div_factor, three_phase, last_epoch)

    def _set(self) -> None:
        super()._set()
        if self._momenta is None:
            return
        low, high = self._momenta
        places = [high, low, high, high]
        begin = 0.0
        for i, end in enumerate(self._ends):
            if self._epoch <= end or i == len(self._ends) - 1:
                share = (self._epoch - begin) / (end - begin)
                if self._is_cosine:
                    share = (1 - math.cos(math.pi * share)) / 2
                for group in self.optimizer.param_groups:
                    _set_momentum(group, places[i] + (places[i + 1] - places[i]) * share)
                return
            begin = end


class CyclicLR(LRScheduler, _kiln.CyclicLR):
    """Cycles of the learning rate up and down, and of the momentum down and up (Smith, 2015)."""

    def __init__(self, optimizer: Any, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
                 step_size_down: Optional[int] = None, mode: str = "triangular",
                 gamma: float = 1.0, scale_fn: Any = None, scale_mode: str = "cycle",
                 cycle_momentum: bool = True, base_momentum: float = 0.8,
                 max_momentum: float = 0.9, last_epoch: int = -1, verbose: Any = None) -> None:
        self._step_count = 1
        self._momenta = (base_momentum, max_momentum) if cycle_momentum else None
        self._rates = (base_lr, max_lr)
        if cycle_momentum and any("momentum" not in group and "betas" not in group
                                  for group in optimizer.param_groups):
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` "
                             "option enabled")
        _kiln.CyclicLR.__init__(self, optimizer, base_lr, max_lr, step_size_up, step_size_down,
                                mode, gamma, scale_fn, scale_mode, False, last_epoch)

    def _set(self) -> None:
        super()._set()
        if self._momenta is None:
            return
        low, high = self._momenta
        for i, group in enumerate(self.optimizer.param_groups):
            base, top = (rate[i] if isinstance(rate, (list, tuple)) else rate
                         for rate in self._rates)
            share = (group["lr"] - base) / (top - base)
            _set_momentum(group, high - (high - low) * share)


class SequentialLR(LRScheduler, _kiln.SequentialLR):
    """Uses one schedule after the other: at each milestone the next one begins, from epoch 0."""

    def __init__(self, optimizer: Any, schedulers: Any, milestones: Any, last_epoch: int = -1,
                 verbose: Any = None) -> None:
        self._step_count = 1
        _kiln.SequentialLR.__init__(self, optimizer, schedulers, milestones, last_epoch)


class ChainedScheduler(LRScheduler, _kiln.ChainedScheduler):
    """Applies several schedules at once: their factors are multiplied."""

    def __init__(self, schedulers: Any, optimizer: Any = None) -> None:
        self._step_count = 1
        _kiln.ChainedScheduler.__init__(self, schedulers)


class ReduceLROnPlateau(_kiln.ReduceLROnPlateau):
    """Multiplies by `factor` when a metric has not improved for more than `patience` steps."""

    def __init__(self, optimizer: Any, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
                 min_lr: Any = 0.0, eps: float = 1e-8, verbose: Any = None) -> None:
        super().__init__(optimizer, mode, factor, patience, threshold, threshold_mode, cooldown,
                         min_lr, eps)

    def step(self, metrics: Any, epoch: Optional[int] = None) -> None:
        """Reports a metric, a number or a tensor."""
        super().step(float(metrics))

    def get_last_lr(self) -> List[Any]:
        """Returns the learning rates."""
        return [group["lr"] for group in self.optimizer.param_groups]


__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
