"""torch.nn.modules: the layers of torch.nn."""

from typing import TYPE_CHECKING, Any

from kiln.torch.nn import _layers, _more_layers
from kiln.torch.nn._containers import (
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from kiln.torch.nn._module import Module

globals().update(_layers.LAYERS)
globals().update(_more_layers.MORE)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = [
    "Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential",
    *sorted({**_layers.LAYERS, **_more_layers.MORE}),
]  # fmt: skip
