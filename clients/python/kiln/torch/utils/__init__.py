"""torch.utils: data sets, checkpoints of activations."""

from kiln.torch.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
