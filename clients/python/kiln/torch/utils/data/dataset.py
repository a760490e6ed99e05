"""Data sets."""

import bisect
import itertools
import math
from typing import Any, Iterable, Iterator, List, Sequence

from kiln.torch import _creation


class Dataset:
    """Samples by index: subclasses define __getitem__() and __len__()."""

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("a subclass of Dataset must define __getitem__()")

    def __add__(self, other: "Dataset") -> "ConcatDataset":
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Samples in an order: subclasses define __iter__()."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("a subclass of IterableDataset must define __iter__()")

    def __add__(self, other: Any) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """The rows of tensors of one length."""

    def __init__(self, *tensors: Any) -> None:
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> Any:
        return tuple(tensor[index] for tensor in self.tensors)

    def __getitems__(self, indices: Sequence[int]) -> Any:
        return Rows(self.tensors, indices)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class Rows:
    """Several rows of tensors: a batch, which needs one operation for each tensor."""

    def __init__(self, tensors: Sequence[Any], indices: Sequence[int]) -> None:
        self._tensors = tensors
        self._indices = list(indices)

    def batch(self) -> List[Any]:
        """Returns the rows of each tensor."""
        place = _creation.tensor(self._indices, dtype="int64")
        return [tensor[place] for tensor in self._tensors]

    def __iter__(self) -> Iterator[Any]:
        return (tuple(tensor[index] for tensor in self._tensors) for index in self._indices)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: int) -> Any:
        return tuple(tensor[self._indices[index]] for tensor in self._tensors)


class StackDataset(Dataset):
    """Several data sets side by side: tuples, or with names dicts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.datasets: Any = args or kwargs
        parts = list(args or kwargs.values())
        if any(len(part) != len(parts[0]) for part in parts):
            raise ValueError("Size mismatch between datasets")
        self._length = len(parts[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset):
    """Data sets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        self.cumulative_sizes = list(itertools.accumulate(len(part) for part in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError("index out of range")
        number = bisect.bisect_right(self.cumulative_sizes, index)
        begin = self.cumulative_sizes[number - 1] if number else 0
        return self.datasets[number][index - begin]


class ChainDataset(IterableDataset):
    """Iterable data sets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(part) for part in self.datasets)


class Subset(Dataset):
    """Some samples of a data set."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> Any:
        wanted = [self.indices[index] for index in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(wanted)
        return [self.dataset[index] for index in wanted]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[Any], generator: Any = None) -> List[Subset]:
    """Splits a data set at random into parts of these lengths, or fractions that add up to 1."""
    total = len(dataset)
    sizes = list(lengths)
    if math.isclose(sum(sizes), 1) and sum(sizes) <= 1:
        sizes = [math.floor(total * share) for share in sizes]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = _creation.randperm(total, generator=generator).tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size: end]) for end, size in zip(ends, sizes)]


__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset",
    "TensorDataset", "random_split",
]  # fmt: skip
