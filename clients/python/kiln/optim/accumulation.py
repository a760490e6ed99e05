"""Steps over several batches."""

from typing import Tuple

import numpy as np

from kiln import _realize
from kiln._errors import InvalidArgument
from kiln._node import mode
from kiln.autograd import no_grad
from kiln.creation import zeros_like
from kiln.optim.optimizer import Optimizer
from kiln.tensor import Tensor


class GradientAccumulation:
    """Steps an optimizer by the mean gradient of `steps` calls, as one of a larger batch.

        accumulation = kiln.optim.GradientAccumulation(optimizer, steps=4)

        @kiln.jit
        def step(x, y):
            accumulation.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            accumulation.step()  # every fourth call changes the parameters
            return loss

    Sums and count are on the device, so that one program serves all calls.
    """

    _kiln_watched: Tuple[str, ...] = ("optimizer", "steps", "_sums", "_count")

    def __init__(self, optimizer: Optimizer, steps: int) -> None:
        if steps < 1:
            raise InvalidArgument(f"accumulation over {steps} steps; there must be one")
        self.optimizer = optimizer
        self.steps = steps
        self._sums = [zeros_like(parameter) for parameter in optimizer.params]
        self._count = Tensor(np.int32(0))

    def zero_grad(self) -> None:
        """Forgets the gradients of the last call, not the sums."""
        self.optimizer.zero_grad()

    def step(self) -> None:
        """Adds the gradients; every `steps` calls the optimizer steps by their mean."""
        with no_grad():
            self._count.assign((self._count + 1) % self.steps)
            whole = self._count == 0
            for parameter, total in zip(self.optimizer.params, self._sums):
                if parameter.grad is not None:
                    total.assign(total + parameter.grad * (1.0 / self.steps))
                parameter.grad = total.detach()
            self.optimizer.step(only_if=whole)
            for total in self._sums:
                total.assign(total.masked_fill(whole, 0.0))
        if mode.trace is None:
            _realize.realize(self._sums)
