"""DataLoader: batches of samples, loaded ahead by threads.

Workers are threads of this process, not processes: a process forked from one with a session cannot
use it, and samples need not be pickled. They overlap reading files and NumPy's work with training.
"""

import collections.abc
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Deque, Iterator, List, Optional

import numpy as np

from kiln.tensor import Tensor as KilnTensor
from kiln.torch import _creation, _shaping
from kiln.torch._tensor import convert, from_python
from kiln.torch.utils.data.dataset import IterableDataset, Rows
from kiln.torch.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

_PREFETCH = 2


class WorkerInfo:
    """The result of get_worker_info() in a worker."""

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.id, self.num_workers, self.seed, self.dataset = id, num_workers, seed, dataset


_worker = threading.local()


def get_worker_info() -> Optional[WorkerInfo]:
    """Returns which worker calls; None in the main thread."""
    return getattr(_worker, "info", None)


def default_convert(data: Any) -> Any:
    """Returns nested data with arrays as tensors."""
    if isinstance(data, KilnTensor):
        return convert(data)
    if isinstance(data, np.ndarray) and data.dtype.kind in "biuf":
        return convert(data)
    if isinstance(data, collections.abc.Mapping):
        return {name: default_convert(value) for name, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, (list, tuple)):
        return [default_convert(value) for value in data]
    return data


def default_collate(batch: Any) -> Any:
    """Joins samples to a batch: tensors and arrays are stacked, numbers become tensors."""
    if isinstance(batch, Rows):
        return batch.batch()
    first = batch[0]
    if isinstance(first, KilnTensor):
        return _shaping.stack([convert(sample) for sample in batch])
    if _is_foreign(first):
        return convert(np.stack([from_python(sample) for sample in batch]))
    if isinstance(first, (np.ndarray, np.generic)):
        return convert(np.stack(batch))
    if isinstance(first, bool):
        return _creation.tensor(batch)
    if isinstance(first, float):
        return _creation.tensor(batch, dtype="float64")
    if isinstance(first, int):
        return _creation.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, collections.abc.Mapping):
        return {name: default_collate([sample[name] for sample in batch]) for name in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(list(part)) for part in zip(*batch)))
    if isinstance(first, (list, tuple)):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(list(part)) for part in zip(*batch)]
    raise TypeError(f"default_collate: batch must contain tensors, arrays, numbers, dicts or "
                    f"lists; found {type(first).__name__}")


def _is_foreign(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")


class DataLoader:
    """Batches of a data set, as PyTorch's. `num_workers` threads load them ahead, in order."""

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    def __init__(self, dataset: Any, batch_size: Optional[int] = 1, shuffle: Optional[bool] = None,
                 sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
                 collate_fn: Optional[Callable[[Any], Any]] = None, pin_memory: bool = False,
                 drop_last: bool = False, timeout: float = 0,
                 worker_init_fn: Optional[Callable[[int], None]] = None,
                 multiprocessing_context: Any = None, generator: Any = None, *,
                 prefetch_factor: Optional[int] = None, persistent_workers: bool = False,
                 pin_memory_device: str = "", in_order: bool = True) -> None:
        self.dataset, self.num_workers, self.drop_last = dataset, num_workers, drop_last
        self.pin_memory, self.timeout, self.generator = pin_memory, timeout, generator
        self.worker_init_fn, self.persistent_workers = worker_init_fn, persistent_workers
        self.prefetch_factor = prefetch_factor
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to "
                             "disable multiprocessing.")
        self._iterates = isinstance(dataset, IterableDataset) or not hasattr(
            dataset, "__getitem__")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, "
                                 "shuffle, sampler, and drop_last")
            batch_size = None
        if self._iterates and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader with IterableDataset: expected unspecified shuffle, "
                             "sampler and batch_sampler options")
        if sampler is None and not self._iterates:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else (
                SequentialSampler(dataset))
        if batch_size is not None and batch_sampler is None and not self._iterates:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.sampler, self.batch_sampler = batch_size, sampler, batch_sampler
        batched = batch_sampler is not None or (self._iterates and batch_size is not None)
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)

    def __len__(self) -> int:
        if not self._iterates:
            return len(self.batch_sampler if self.batch_sampler is not None else self.sampler)
        total = len(self.dataset)
        if self.batch_size is None:
            return total
        return total // self.batch_size if self.drop_last else -(-total // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        if self._iterates:
            return self._streamed() if not self.num_workers else self._several_streams()
        return self._in_order() if not self.num_workers else self._ahead()

    def _indices(self) -> Iterator[Any]:
        return iter(self.batch_sampler if self.batch_sampler is not None else self.sampler)

    def _load(self, index: Any) -> Any:
        if self.batch_sampler is None:
            return self.collate_fn(self.dataset[index])
        many = getattr(self.dataset, "__getitems__", None)
        if callable(many):
            rows = many(index)
            if isinstance(rows, Rows) and self.collate_fn is not default_collate:
                rows = list(rows)
            return self.collate_fn(rows)
        return self.collate_fn([self.dataset[place] for place in index])

    def _in_order(self) -> Iterator[Any]:
        return (self._load(index) for index in self._indices())

    def _batches(self, samples: Iterator[Any]) -> Iterator[Any]:
        if self.batch_size is None:
            yield from (self.collate_fn(sample) for sample in samples)
            return
        batch: List[Any] = []
        for sample in samples:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.collate_fn(batch)

    def _streamed(self) -> Iterator[Any]:
        return self._batches(iter(self.dataset))

    def _seed(self) -> int:
        return int(_creation.randint(0, 1 << 31, (), generator=self.generator).item())

    def _ahead(self) -> Iterator[Any]:
        seed, numbers, lock = self._seed(), iter(range(self.num_workers)), threading.Lock()

        def begin() -> None:
            with lock:
                number = next(numbers)
            _worker.info = WorkerInfo(number, self.num_workers, seed + number, self.dataset)
            if self.worker_init_fn is not None:
                self.worker_init_fn(number)

        with ThreadPoolExecutor(self.num_workers, "kiln-data", begin) as pool:
            waiting: Deque[Future[Any]] = collections.deque()
            indices = self._indices()
            ahead = self.num_workers * (self.prefetch_factor or _PREFETCH)
            try:
                for index in indices:
                    waiting.append(pool.submit(self._load, index))
                    if len(waiting) >= ahead:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _several_streams(self) -> Iterator[Any]:
        """Each worker iterates over the data set by itself; batches come from them in turn."""
        seed = self._seed()
        streams: List[Any] = []
        for number in range(self.num_workers):
            info = WorkerInfo(number, self.num_workers, seed + number, self.dataset)
            streams.append((info, self._stream_of(info)))
        while streams:
            for entry in list(streams):
                batch = next(entry[1], _END)
                if batch is _END:
                    streams.remove(entry)
                else:
                    yield batch

    def _stream_of(self, info: WorkerInfo) -> Iterator[Any]:
        _worker.info = info
        try:
            if self.worker_init_fn is not None:
                self.worker_init_fn(info.id)
            batches = self._batches(iter(self.dataset))
        finally:
            _worker.info = None
        while True:
            _worker.info = info
            try:
                batch = next(batches, _END)
            finally:
                _worker.info = None
            if batch is _END:
                return
            yield batch


_END = object()


__all__ = [
    "DataLoader", "default_collate", "default_convert", "get_worker_info",
]  # fmt: skip
