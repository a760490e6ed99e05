"""Averages of parameters over the steps."""

import contextlib
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Tuple

import numpy as np

from kiln._basics.errors import InvalidArgument, NotFound
from kiln._graph import realize
from kiln._graph.gradient_mode import no_grad
from kiln._graph.node import mode
from kiln._tensor.gradients import snapshot
from kiln.tensor import Tensor


class EMA:
    """Exponential moving averages of parameters, which often test better than the last values.

    (Polyak and Juditsky, 1992; Tarvainen and Valpola, 2017.) Average n is decay * average + (1 -
    decay) * parameter, with decay at most (1 + n) / (10 + n), so that the first values lose their
    weight soon. Raises InvalidArgument unless decay is in [0, 1).

        ema = kiln.optim.EMA(model.parameters(), decay=0.999)
        …
        optimizer.step()
        ema.update()  # inside the same kiln.jit function
        …
        with ema.applied():
            evaluate(model)

    >>> w = kiln.nn.Parameter(kiln.zeros(1))
    >>> average = kiln.optim.EMA([w], decay=0.5)
    >>> _ = w.fill_(4)
    >>> average.update()
    >>> with average.applied():
    ...     print(w.tolist())
    [3.2727272510528564]
    """

    _kiln_watched: Tuple[str, ...] = ("params", "averages", "_count", "decay")

    def __init__(self, params: Iterable[Tensor], decay: float = 0.999) -> None:
        if not 0 <= decay < 1:
            raise InvalidArgument(f"a decay of {decay}; it must be in [0, 1)")
        self.params: List[Tensor] = list(params)
        self.averages: List[Tensor] = [snapshot(parameter) for parameter in self.params]
        self.decay = decay
        self._count = Tensor(np.float32(0))

    def update(self) -> None:
        """Moves the averages towards the present parameters.

        >>> w = kiln.nn.Parameter(kiln.zeros(1))
        >>> average = kiln.optim.EMA([w], decay=0.5)
        >>> _ = w.fill_(4)
        >>> average.update()
        """
        with no_grad():
            self._count.assign(self._count + 1)
            decay = ((self._count + 1.0) / (self._count + 10.0)).minimum(self.decay)
            for parameter, average in zip(self.params, self.averages):
                share = (1.0 - decay).cast(average.dtype)
                average.assign(average + (parameter - average) * share)
        if mode.trace is None:
            realize.realize(self.averages)

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Within it, the parameters have the averages as values; afterwards their former values.

        >>> w = kiln.nn.Parameter(kiln.ones(1))
        >>> with kiln.optim.EMA([w]).applied():
        ...     print(w.tolist())
        [1.0]
        """
        before = [snapshot(parameter) for parameter in self.params]
        self.copy_to(self.params)
        try:
            yield
        finally:
            for parameter, value in zip(self.params, before):
                parameter.assign(value)

    def copy_to(self, params: Iterable[Tensor]) -> None:
        """Sets parameters, in the order of those given to this object, to the averages.

        >>> w = kiln.nn.Parameter(kiln.ones(1))
        >>> kiln.optim.EMA([w]).copy_to([w])
        >>> w.tolist()
        [1.0]
        """
        for parameter, average in zip(params, self.averages):
            parameter.assign(average.detach())

    def named_state(self) -> Iterator[Tuple[str, Tensor]]:
        """Yields the averages with their names in state_dict(); see kiln.shard.

        >>> [name for name, _ in kiln.optim.EMA([kiln.nn.Parameter(kiln.ones(1))]).named_state()]
        ['average.0']
        """
        for i, average in enumerate(self.averages):
            yield f"average.{i}", average

    def state_dict(self) -> Dict[str, Any]:
        """Returns the averages as a flat dict, which kiln.save accepts.

        >>> sorted(kiln.optim.EMA([kiln.nn.Parameter(kiln.ones(1))]).state_dict())
        ['average.0', 'count']
        """
        return {"count": self._count.detach(),
                **{name: average.detach() for name, average in self.named_state()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state_dict(). Raises NotFound if it was saved for other parameters.

        >>> average = kiln.optim.EMA([kiln.nn.Parameter(kiln.ones(1))])
        >>> average.load_state_dict(average.state_dict())
        """
        mine = {"count": self._count, **dict(self.named_state())}
        if set(mine) != set(state):
            raise NotFound("the state was saved for other parameters")
        for name, tensor in mine.items():
            value = state[name]
            tensor.assign(value.detach() if isinstance(value, Tensor) else Tensor(value))
