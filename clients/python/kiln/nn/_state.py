"""Saving and loading the state of a module."""

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Tuple

from kiln._basics.errors import InvalidArgument, NotFound
from kiln.nn._tree import Tree, joined
from kiln.tensor import Tensor


class Incompatible(NamedTuple):
    """The names that `load_state_dict` did not find, and those that it did not use."""

    missing_keys: List[str]
    unexpected_keys: List[str]


class State(Tree):
    """The part of a module that returns and loads its state."""

    def state_dict(self, prefix: str = "") -> Dict[str, Tensor]:
        """Returns all Parameters and persistent buffers by name; shared ones under all names.

        >>> list(kiln.nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        return {name: value.detach() for name, value in self._state(prefix)}

    def _state(self, prefix: str = "") -> Iterator[Tuple[str, Tensor]]:
        for path, module in self._walk(prefix):
            transient = vars(module).get("_transient", ())
            for name, value in module.own_tensors():
                if name not in transient:
                    yield joined(path, name), value

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Incompatible:
        """Sets Parameters and buffers to the values of `state` (tensors or arrays).

        Casts values to the module's dtypes. Raises NotFound if names are missing or unexpected
        (unless `strict` is False) and InvalidArgument if shapes differ; nothing is changed then.
        Returns the missing and unexpected names.

        >>> net = kiln.nn.Linear(2, 1)
        >>> net.load_state_dict({"weight": kiln.ones(1, 2), "bias": kiln.zeros(1)})
        Incompatible(missing_keys=[], unexpected_keys=[])
        >>> net.weight.tolist()
        [[1.0, 1.0]]
        """
        mine = dict(self._state())
        missing = [name for name in mine if name not in state]
        unexpected = [name for name in state if name not in mine]
        if strict and (missing or unexpected):
            raise NotFound(
                f"the state does not fit {type(self).__name__}: missing {missing}, unexpected "
                f"{unexpected}; strict=False ignores these")
        found = {name: state[name] for name in mine if name in state}
        values = {name: value.detach() if isinstance(value, Tensor) else Tensor(value)
                  for name, value in found.items()}
        wrong = [f"{name} has shape {mine[name].shape}, the state's has {value.shape}"
                 for name, value in values.items() if value.shape != mine[name].shape]
        if wrong:
            raise InvalidArgument(
                f"the state does not fit {type(self).__name__}: " + "; ".join(wrong))
        for name, value in values.items():
            mine[name].assign(value.cast(mine[name].dtype))
        return Incompatible(missing, unexpected)
