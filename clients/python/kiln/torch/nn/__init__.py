"""torch.nn: layers and models with PyTorch's registration, arguments and state."""

from typing import TYPE_CHECKING, Any

from kiln.torch.nn import (
    _packed,  # noqa: F401, which lets recurrent layers take packed sequences
    functional,
    init,
    modules,
    parameter,
    utils,
)
from kiln.torch.nn.modules import *  # noqa: F403
from kiln.torch.nn.parameter import Buffer, Parameter

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = [
    "Buffer", "Parameter", "functional", "init", "modules", "parameter", "utils",
    *modules.__all__,
]  # fmt: skip
