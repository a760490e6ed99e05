"""torch.utils.data.dataloader."""

from kiln.torch.utils.data._loader import (
    DataLoader,
    default_collate,
    default_convert,
    get_worker_info,
)

__all__ = [
    "DataLoader",
    "default_collate",
    "default_convert",
    "get_worker_info",
]
