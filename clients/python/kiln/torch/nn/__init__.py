"""torch.nn: layers and models with PyTorch's registration, arguments and state."""

from typing import TYPE_CHECKING, Any

from kiln.torch.nn import (
    _layers,
    _more_layers,
    _packed,  # noqa: F401, which lets recurrent layers take packed sequences
    functional,
    init,
    parameter,
    utils,
)
from kiln.torch.nn._containers import (
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from kiln.torch.nn._module import Module
from kiln.torch.nn.parameter import Buffer, Parameter

globals().update(_layers.LAYERS)
globals().update(_more_layers.MORE)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = [
    "Buffer", "Module", "ModuleDict", "ModuleList", "Parameter", "ParameterDict", "ParameterList",
    "Sequential", "functional", "init", "parameter", "utils",
    *sorted({**_layers.LAYERS, **_more_layers.MORE}),
]  # fmt: skip
