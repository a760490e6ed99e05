"""The base of learning rate schedulers."""

from typing import Any, Dict, List, Mapping, Optional, Tuple

from kiln.optim.optimizer import Optimizer
from kiln.optim.plateau import refuse_in_trace


class LRScheduler:
    """The base class: `rate(base_lr, epoch, group)` is a group's learning rate after `epoch` steps.

    >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
    >>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    >>> isinstance(scheduler, kiln.optim.lr_scheduler.LRScheduler)
    True
    """

    # Not watched: the state that step() changes cannot be read in a traced function.
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
        """The number of steps made.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> scheduler.last_epoch
        0
        """
        refuse_in_trace()
        return self._epoch

    def rate(self, base_lr: float, epoch: int, group: int) -> float:
        """Returns the learning rate of a group, from its initial one."""
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
        """Returns the groups' learning rates.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> scheduler.get_last_lr()
        [0.1]
        """
        return [group.lr for group in self.optimizer.param_groups]

    def state_dict(self) -> Dict[str, Any]:
        """Returns the state of the schedule, without its arguments.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> sorted(scheduler.state_dict())
        ['base_lrs', 'last_epoch']
        """
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state_dict().

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(2))], lr=0.1)
        >>> scheduler = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> scheduler.load_state_dict(scheduler.state_dict())
        """
        self.base_lrs = list(state["base_lrs"])
        self._epoch = int(state["last_epoch"])
        self._set()
