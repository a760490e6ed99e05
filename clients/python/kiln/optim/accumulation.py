"""Gradient accumulation: steps over several batches."""

from typing import Iterator, List, Optional, Tuple

import numpy as np

from kiln._array_api.creation import zeros_like
from kiln._basics.errors import InvalidArgument
from kiln._graph import realize
from kiln._graph.gradient_mode import no_grad
from kiln._graph.node import mode
from kiln._tensor.device_transfer import beside
from kiln.optim.optimizer import Optimizer
from kiln.tensor import Tensor


class GradientAccumulation:
    """Steps an optimizer with the mean gradient of `steps` calls, as one larger batch would.

        accumulation = kiln.optim.GradientAccumulation(optimizer, steps=4)

        @kiln.jit
        def step(x, y):
            accumulation.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            accumulation.step()  # every fourth call changes the parameters
            return loss

    Sums and count are on the device, so one program handles all calls. A GradScaler accepts it in
    place of the optimizer: a batch whose gradients are not finite is skipped. Raises
    InvalidArgument for fewer than 1 step.

    >>> w = kiln.nn.Parameter(kiln.ones(1))
    >>> optimizer = kiln.optim.SGD([w], lr=1.0)
    >>> accumulation = kiln.optim.GradientAccumulation(optimizer, steps=2)
    >>> for factor in (1.0, 3.0):
    ...     accumulation.zero_grad()
    ...     (w * factor).sum().backward()
    ...     accumulation.step()
    ...     print(w.tolist())
    [1.0]
    [-1.0]
    """

    _kiln_watched: Tuple[str, ...] = ("optimizer", "steps", "_sums", "_count")

    def __init__(self, optimizer: Optimizer, steps: int) -> None:
        if steps < 1:
            raise InvalidArgument(f"accumulation over {steps} steps; there must be at least one")
        self.optimizer = optimizer
        self.steps = steps
        self._sums = [zeros_like(parameter) for parameter in optimizer.params]
        self._count = Tensor(np.int32(0))

    def zero_grad(self) -> None:
        """Drops the gradients of the last call, but keeps the sums.

        >>> w = kiln.nn.Parameter(kiln.ones(1))
        >>> optimizer = kiln.optim.SGD([w], lr=1.0)
        >>> accumulation = kiln.optim.GradientAccumulation(optimizer, steps=2)
        >>> accumulation.zero_grad()
        >>> w.grad is None
        True
        """
        self.optimizer.zero_grad()

    @property
    def params(self) -> List[Tensor]:
        """The optimizer's parameters.

        >>> w = kiln.nn.Parameter(kiln.ones(1))
        >>> optimizer = kiln.optim.SGD([w], lr=1.0)
        >>> accumulation = kiln.optim.GradientAccumulation(optimizer, steps=2)
        >>> len(accumulation.params)
        1
        """
        return self.optimizer.params

    def named_state(self) -> Iterator[Tuple[str, Tensor]]:
        """Yields the sums of gradients with their names; see kiln.shard.

        >>> optimizer = kiln.optim.SGD([kiln.nn.Parameter(kiln.ones(1))], lr=1.0)
        >>> [name for name, _ in kiln.optim.GradientAccumulation(optimizer, 2).named_state()]
        ['sum.0']
        """
        for i, total in enumerate(self._sums):
            yield f"sum.{i}", total

    def step(self, only_if: Optional[Tensor] = None) -> None:
        """Adds the gradients; every `steps` calls, steps the optimizer with their mean.

        If `only_if`, a bool scalar on the device, is false, the call does not count.

        >>> w = kiln.nn.Parameter(kiln.ones(1))
        >>> optimizer = kiln.optim.SGD([w], lr=1.0)
        >>> accumulation = kiln.optim.GradientAccumulation(optimizer, steps=2)
        >>> for _ in range(2):
        ...     accumulation.zero_grad()
        ...     w.sum().backward()
        ...     accumulation.step()
        >>> w.tolist()
        [0.0]
        """
        with no_grad():
            counts = Tensor(True) if only_if is None else only_if
            self._count.assign((self._count + counts.cast(self._count.dtype)) % self.steps)
            whole = (self._count == 0).logical_and(counts)
            for parameter, total in zip(self.params, self._sums):
                if parameter.grad is not None:
                    added = total + parameter.grad * (1.0 / self.steps)
                    total.assign(
                        added if only_if is None else added.where(beside(only_if, total), total))
                # If the optimizer steps, it uses the sum as the gradient.
                parameter.grad = total.detach()
            self.optimizer.step(only_if=whole)
            for total in self._sums:
                total.assign(total.masked_fill(beside(whole, total), 0.0))
        if mode.trace is None:
            realize.realize(self._sums)
