"""Learning rates over time, by PyTorch's names.

A scheduler's step() stands beside the call of the jitted step, not in it: it sets the groups'
learning rates, which are tensors that the next call reads.

>>> optimizer = kiln.optim.SGD([kiln.nn.Parameter([1.0])], lr=0.8)
>>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
>>> for _ in range(4):
...     print(optimizer.lr)  # optimizer.step() stands here
...     scheduler.step()
0.8
0.8
0.4
0.4
"""

import bisect
import math
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from kiln._errors import InvalidArgument
from kiln.optim.optimizer import Optimizer
from kiln.optim.plateau import ReduceLROnPlateau, refuse_in_trace


class LRScheduler:
    """Base: `rate(base_lr, epoch, group)` is a group's learning rate after `epoch` steps.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
    >>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    >>> isinstance(scheduler, kiln.optim.lr_scheduler.LRScheduler)
    True
    """

    # What step() changes cannot be read in a traced function, so it need not be watched.
    _kiln_watched: Tuple[str, ...] = ("optimizer",)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if group.initial_lr is None:
                group.initial_lr = group.lr
        self.base_lrs: List[float] = [float(group.initial_lr or 0.0)
                                      for group in optimizer.param_groups]
        self._epoch = last_epoch + 1
        self._set()

    @property
    def last_epoch(self) -> int:
        """How many steps have been made.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> scheduler.last_epoch
        0
        """
        refuse_in_trace()
        return self._epoch

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """The learning rate of a group, from what it started with."""
        raise NotImplementedError

    def step(self, epoch: Optional[int] = None) -> None:
        """Sets the learning rates of the next step, or of `epoch`.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> scheduler.step()
        >>> scheduler.last_epoch
        1
        """
        self._epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set()

    def _set(self) -> None:
        for i, group in enumerate(self.optimizer.param_groups):
            wanted = self.rate(self.base_lrs[i], self.last_epoch, i)
            if wanted != group.lr:
                group.lr = wanted

    def get_last_lr(self) -> List[float]:
        """The groups' learning rates.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> scheduler.get_last_lr()
        [0.1]
        """
        return [group.lr for group in self.optimizer.param_groups]

    def state_dict(self) -> Dict[str, Any]:
        """Where it stands; its arguments are not part of it.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> sorted(scheduler.state_dict())
        ['base_lrs', 'last_epoch']
        """
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state_dict().

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> scheduler.load_state_dict(scheduler.state_dict())
        """
        self.base_lrs = list(state["base_lrs"])
        self._epoch = int(state["last_epoch"])
        self._set()


class LambdaLR(LRScheduler):
    """The first learning rate times a function of the epoch, one for all groups or one for each.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.2
    """

    def __init__(self, optimizer: Optimizer,
                 lr_lambda: Union[Callable[[int], float], Sequence[Callable[[int], float]]],
                 last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise InvalidArgument(f"{len(self.lr_lambdas)} functions for {count} groups")
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """By the function."""
        return base_lr * self.lr_lambdas[group](epoch)


class StepLR(LRScheduler):
    """Times gamma every step_size epochs.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.01
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """A staircase."""
        return base_lr * self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Times gamma at each milestone.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 3])
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.01
    """

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1,
                 last_epoch: int = -1) -> None:
        self.milestones = sorted(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """A staircase."""
        return base_lr * self.gamma ** bisect.bisect_right(self.milestones, epoch)


class ExponentialLR(LRScheduler):
    """Times gamma every epoch.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.0625
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """A power."""
        return float(base_lr * self.gamma**epoch)


class ConstantLR(LRScheduler):
    """Times factor for total_iters epochs.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=10)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.5
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
                 last_epoch: int = -1) -> None:
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Two numbers."""
        return base_lr * (self.factor if epoch < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """From start_factor to end_factor in total_iters epochs: a warmup.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.LinearLR(optimizer, total_iters=8)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.6667
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3,
                 end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """A line, then constant."""
        share = min(epoch, self.total_iters) / self.total_iters
        return base_lr * (self.start_factor + (self.end_factor - self.start_factor) * share)


class PolynomialLR(LRScheduler):
    """To 0 in total_iters epochs, by a power of what is left.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=8)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.5
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0,
                 last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """A power."""
        left = 1 - min(epoch, self.total_iters) / self.total_iters
        return float(base_lr * left**self.power)


class CosineAnnealingLR(LRScheduler):
    """To eta_min in T_max epochs by half a cosine, and back. (Loshchilov and Hutter, 2017.)

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.5
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """A cosine."""
        return self.eta_min + (base_lr - self.eta_min) * (
            1 + math.cos(math.pi * epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that starts again after T_0 epochs, each time T_mult times as long.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=8)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.5
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
                 last_epoch: int = -1) -> None:
        if T_0 < 1 or T_mult < 1:
            raise InvalidArgument(f"T_0 = {T_0} and T_mult = {T_mult}; both must be 1 or more")
        self.T_0 = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """A cosine within the period that epoch falls into."""
        length, begin = self.T_0, 0
        while epoch >= begin + length:
            begin += length
            length *= self.T_mult
        share = (epoch - begin) / length
        return self.eta_min + (base_lr - self.eta_min) * (1 + math.cos(math.pi * share)) / 2


class OneCycleLR(LRScheduler):
    """Up to max_lr and down far below the start in total_steps. (Smith and Topin, 2018.)

    Unlike PyTorch's, the momentum does not cycle. A step after the last one is an error.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> scheduler = kiln.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=8)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.556
    """

    def __init__(self, optimizer: Optimizer, max_lr: Union[float, Sequence[float]],
                 total_steps: Optional[int] = None, epochs: Optional[int] = None,
                 steps_per_epoch: Optional[int] = None, pct_start: float = 0.3,
                 anneal_strategy: str = "cos", div_factor: float = 25.0,
                 final_div_factor: float = 1e4, three_phase: bool = False,
                 last_epoch: int = -1, cycle_momentum: bool = False) -> None:
        if cycle_momentum:
            raise InvalidArgument("OneCycleLR with cycle_momentum; the momentum cannot cycle here")
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise InvalidArgument(
                    "OneCycleLR needs total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise InvalidArgument(f'anneal_strategy {anneal_strategy!r}; it is "cos" or "linear"')
        groups = len(optimizer.param_groups)
        self.total_steps = total_steps
        self.linear = anneal_strategy == "linear"
        self.max_lrs = [max_lr] * groups if isinstance(max_lr, (int, float)) else list(max_lr)
        self._phases = self._made_phases(pct_start, div_factor, final_div_factor, three_phase)
        super().__init__(optimizer, last_epoch)

    def _made_phases(self, pct_start: float, div_factor: float, final_div_factor: float,
                     three_phase: bool) -> List[Any]:
        """(last step, factor of max_lr there), from the start on."""
        rise = pct_start * self.total_steps - 1
        end = (self.total_steps - 1, 1 / div_factor / final_div_factor)
        phases = [(0, 1 / div_factor), (rise, 1.0)]
        if three_phase:
            phases.append((2 * pct_start * self.total_steps - 2, 1 / div_factor))
        return [*phases, end]

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Between the factors at the ends of the phase that epoch falls into."""
        if epoch > self.total_steps:
            raise InvalidArgument(
                f"OneCycleLR is at step {epoch} of {self.total_steps}; make a new one to go on")
        ends = [step for step, _ in self._phases]
        number = min(bisect.bisect_left(ends[1:], epoch), len(ends) - 2)
        (begin, low), (end, high) = self._phases[number : number + 2]
        share = (epoch - begin) / (end - begin)
        if not self.linear:
            share = (1 - math.cos(math.pi * share)) / 2
        return float(self.max_lrs[group] * (low + (high - low) * share))


class SequentialLR(LRScheduler):
    """One scheduler after another: the next one begins, from 0, at each milestone.

        warmup = LinearLR(optimizer, 0.01, total_iters=100)
        decay = CosineAnnealingLR(optimizer, 900)
        scheduler = SequentialLR(optimizer, [warmup, decay], [100])

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=1.0)
    >>> warm = kiln.optim.lr_scheduler.LinearLR(optimizer, total_iters=2)
    >>> rest = kiln.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = kiln.optim.lr_scheduler.SequentialLR(optimizer, [warm, rest], milestones=[2])
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> round(optimizer.lr, 4)
    0.25
    """

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler],
                 milestones: Sequence[int], last_epoch: int = -1) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise InvalidArgument(
                f"{len(schedulers)} schedulers and {len(milestones)} milestones; there must be one "
                "milestone between each two")
        self.schedulers = list(schedulers)
        self.milestones = list(milestones)
        super().__init__(optimizer, last_epoch)

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """By the scheduler that epoch falls to."""
        number = bisect.bisect_right(self.milestones, epoch)
        begin = self.milestones[number - 1] if number else 0
        return self.schedulers[number].rate(base_lr, epoch - begin, group)


__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
