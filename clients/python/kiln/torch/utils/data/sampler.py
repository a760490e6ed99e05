"""Orders of samples."""

from typing import Any, Iterator, List, Optional, Sequence

from kiln.torch import _creation


class Sampler:
    """An order of indices: subclasses define __iter__()."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


class SequentialSampler(Sampler):
    """0, 1, 2, …"""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """A random order, with or without repetitions."""

    def __init__(self, data_source: Any, replacement: bool = False,
                 num_samples: Optional[int] = None, generator: Any = None) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._count = num_samples

    @property
    def num_samples(self) -> int:
        """The number of samples drawn."""
        return len(self.data_source) if self._count is None else self._count

    def __iter__(self) -> Iterator[int]:
        total = len(self.data_source)
        if self.replacement:
            drawn = _creation.randint(0, total, (self.num_samples,), generator=self.generator)
            yield from drawn.tolist()
            return
        left = self.num_samples
        while left > 0:
            order = _creation.randperm(total, generator=self.generator).tolist()
            yield from order[:left]
            left -= total

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for place in _creation.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Indices drawn by weights."""

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True,
                 generator: Any = None) -> None:
        self.weights = _creation.as_tensor(weights, dtype="float64")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = _creation.multinomial(self.weights, self.num_samples, self.replacement,
                                      generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Batches of another sampler's indices."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[List[int]]:
        batch: List[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


__all__ = [
    "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
    "WeightedRandomSampler",
]  # fmt: skip
