"""torch.nn.modules.utils: arguments with one number for each dimension."""

from typing import Any, Callable, Tuple


def _ntuple(count: int) -> Callable[[Any], Tuple[Any, ...]]:
    """Returns the function that repeats one number `count` times."""

    def parse(value: Any) -> Tuple[Any, ...]:
        return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count

    return parse


_single, _pair, _triple, _quadruple = _ntuple(1), _ntuple(2), _ntuple(3), _ntuple(4)
