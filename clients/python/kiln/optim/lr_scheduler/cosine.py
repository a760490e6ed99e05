"""Learning rates that follow cosines."""

import bisect
import math
from typing import Any, List, Optional, Sequence, Union

from kiln._basics.errors import InvalidArgument
from kiln.optim.lr_scheduler.scheduler import LRScheduler
from kiln.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """Falls to eta_min in T_max epochs by half a cosine, then rises. (Loshchilov, Hutter, 2017.)

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
        """Returns the value of the cosine."""
        return self.eta_min + (base_lr - self.eta_min) * (
            1 + math.cos(math.pi * epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that restarts after T_0 epochs.

    Each period is T_mult times as long as the one before. Raises InvalidArgument unless both are 1
    or more.

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
        """Returns the value of the cosine in the period of the epoch."""
        length, begin = self.T_0, 0
        while epoch >= begin + length:
            begin += length
            length *= self.T_mult
        share = (epoch - begin) / length
        return self.eta_min + (base_lr - self.eta_min) * (1 + math.cos(math.pi * share)) / 2


class OneCycleLR(LRScheduler):
    """Rises to max_lr and falls far below the start in total_steps. (Smith and Topin, 2018.)

    The number of steps may be given as epochs and steps_per_epoch. Unlike in PyTorch, the momentum
    does not cycle. A step after the last one raises InvalidArgument.

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
            raise InvalidArgument("OneCycleLR with cycle_momentum is not supported; set "
                                  "cycle_momentum=False")
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise InvalidArgument(
                    "OneCycleLR needs total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise InvalidArgument(
                f'anneal_strategy {anneal_strategy!r}; it must be "cos" or "linear"')
        groups = len(optimizer.param_groups)
        self.total_steps = total_steps
        self.linear = anneal_strategy == "linear"
        self.max_lrs = [max_lr] * groups if isinstance(max_lr, (int, float)) else list(max_lr)
        self._phases = self._made_phases(pct_start, div_factor, final_div_factor, three_phase)
        super().__init__(optimizer, last_epoch)

    def _made_phases(self, pct_start: float, div_factor: float, final_div_factor: float,
                     three_phase: bool) -> List[Any]:
        """Returns (last step, factor of max_lr there) of each phase, beginning with the start."""
        rise = pct_start * self.total_steps - 1
        end = (self.total_steps - 1, 1 / div_factor / final_div_factor)
        phases = [(0, 1 / div_factor), (rise, 1.0)]
        if three_phase:
            phases.append((2 * pct_start * self.total_steps - 2, 1 / div_factor))
        return [*phases, end]

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Interpolates between the factors at the ends of the epoch's phase."""
        if epoch > self.total_steps:
            raise InvalidArgument(
                f"OneCycleLR is at step {epoch} of {self.total_steps}; make a new scheduler to "
                "continue")
        ends = [step for step, _ in self._phases]
        number = min(bisect.bisect_left(ends[1:], epoch), len(ends) - 2)
        (begin, low), (end, high) = self._phases[number : number + 2]
        share = (epoch - begin) / (end - begin)
        if not self.linear:
            share = (1 - math.cos(math.pi * share)) / 2
        return float(self.max_lrs[group] * (low + (high - low) * share))
