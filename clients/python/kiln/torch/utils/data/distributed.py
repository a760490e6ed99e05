"""torch.utils.data.distributed: the part of the data that one of several processes reads."""

import math
from typing import Any, Iterator, Optional

from kiln.torch import _creation
from kiln.torch.utils.data.sampler import Sampler


class DistributedSampler(Sampler):
    """The part of a data set for one of several processes."""

    def __init__(self, dataset: Any, num_replicas: Optional[int] = None,
                 rank: Optional[int] = None, shuffle: bool = True, seed: int = 0,
                 drop_last: bool = False) -> None:
        self.dataset, self.shuffle, self.seed, self.drop_last = dataset, shuffle, seed, drop_last
        self.num_replicas, self.rank, self.epoch = num_replicas or 1, rank or 0, 0
        total = len(dataset)
        self.num_samples = total // self.num_replicas if drop_last else math.ceil(
            total / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            generator = _creation.Generator().manual_seed(self.seed + self.epoch)
            order = _creation.randperm(count, generator=generator).tolist()
        else:
            order = list(range(count))
        while len(order) < self.total_size:
            order += order[: self.total_size - len(order)]
        return iter(order[: self.total_size][self.rank:: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Chooses another order for the next epoch."""
        self.epoch = epoch


__all__ = [
    "DistributedSampler",
]  # fmt: skip
