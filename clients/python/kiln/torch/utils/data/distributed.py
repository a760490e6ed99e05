"""torch.utils.data.distributed."""

from kiln.torch.utils.data._samplers import (
    DistributedSampler,
)

__all__ = [
    "DistributedSampler",
]
