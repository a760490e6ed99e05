"""torch.nn.modules.module."""

from kiln.torch.nn._module import Module

__all__ = ["Module"]
