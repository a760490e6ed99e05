"""A learning rate that depends on a metric."""

import math
from typing import Any, Dict, List, Mapping

from kiln._basics.errors import InvalidArgument, TraceError
from kiln._graph.node import mode
from kiln.optim.optimizer import Optimizer


def refuse_in_trace() -> None:
    """Raises TraceError while kiln.jit traces: schedulers are used between the calls."""
    if mode.trace is not None:
        raise TraceError(
            "a scheduler is used inside a function that kiln.jit traces; later calls would not "
            "repeat it. Call its step() between calls")


class ReduceLROnPlateau:
    """Multiplies by `factor` when a metric has not improved for more than `patience` steps.

        scheduler = ReduceLROnPlateau(optimizer, patience=5)
        scheduler.step(validation_loss)

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (1.0, 1.0, 1.0):
    ...     scheduler.step(loss)
    >>> optimizer.lr
    0.1
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1,
                 patience: int = 10, threshold: float = 1e-4, threshold_mode: str = "rel",
                 cooldown: int = 0, min_lr: float = 0.0, eps: float = 1e-8) -> None:
        if not factor < 1 or mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise InvalidArgument(
                f"factor {factor}, mode {mode!r}, threshold_mode {threshold_mode!r}; the factor "
                'must be below 1, the mode "min" or "max", the threshold\'s "rel" or "abs"')
        self.optimizer = optimizer
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.min_lr = min_lr
        self.eps = eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = 0
        self.cooldown_counter = 0
        self.last_epoch = 0

    def _is_better(self, value: float) -> bool:
        if self.threshold_mode == "abs":
            margin = self.threshold
        else:
            margin = abs(self.best) * self.threshold if math.isfinite(self.best) else 0.0
        return value < self.best - margin if self.mode == "min" else value > self.best + margin

    def step(self, metrics: Any) -> None:
        """Takes the metric, a number or a scalar tensor, which is read; adapts the learning rates.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> scheduler = kiln.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        >>> scheduler.step(0.5)
        >>> scheduler.get_last_lr()
        [0.1]
        """
        refuse_in_trace()
        value = float(metrics)
        self.last_epoch += 1
        if self._is_better(value):
            self.best = value
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
            for group in self.optimizer.param_groups:
                wanted = max(group.lr * self.factor, self.min_lr)
                if group.lr - wanted > self.eps:
                    group.lr = wanted

    def get_last_lr(self) -> List[float]:
        """Returns the groups' learning rates.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> scheduler = kiln.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        >>> scheduler.get_last_lr()
        [0.1]
        """
        return [group.lr for group in self.optimizer.param_groups]

    def state_dict(self) -> Dict[str, Any]:
        """Returns the state of the schedule.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> scheduler = kiln.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        >>> sorted(scheduler.state_dict())
        ['best', 'cooldown_counter', 'last_epoch', 'num_bad_epochs']
        """
        return {name: getattr(self, name) for name in
                ("best", "num_bad_epochs", "cooldown_counter", "last_epoch")}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state_dict().

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> scheduler = kiln.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        >>> scheduler.load_state_dict(scheduler.state_dict())
        """
        for name in self.state_dict():
            setattr(self, name, state[name])
