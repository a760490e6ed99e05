"""torch.cuda: the accelerators of the session's daemon, whoever made them."""

import contextlib
from typing import Any, Iterator, List, NamedTuple, Tuple

from kiln._basics.errors import ResourceExhausted
from kiln._session import connection as connections
from kiln.torch import _creation, _device
from kiln.torch._creation import initial_seed, seed
from kiln.torch.cuda import amp

OutOfMemoryError = ResourceExhausted


class Properties(NamedTuple):
    """A device."""

    name: str
    total_memory: int
    major: int = 0
    minor: int = 0
    multi_processor_count: int = 0


def is_available() -> bool:
    """Returns whether the daemon has an accelerator."""
    return bool(_device.accelerators())


def device_count() -> int:
    """Returns the number of the daemon's accelerators."""
    return len(_device.accelerators())


def is_initialized() -> bool:
    """Returns whether there is an accelerator."""
    return is_available()


def init() -> None:
    """Does nothing: the daemon has its devices ready."""


def current_device() -> int:
    """Returns 0: "cuda" is the first accelerator."""
    return 0


def _chosen(device: Any) -> Any:
    index = (_device.device(device).index or 0) if device is not None else 0
    name = _device.kiln_name(_device.device("cuda", index))
    return next(entry for entry in connections.devices() if entry.name == name)


def get_device_name(device: Any = None) -> str:
    """Returns the vendor's name of an accelerator."""
    return str(_chosen(device).model)


def get_device_properties(device: Any = None) -> Properties:
    """Returns the name and memory of an accelerator."""
    found = _chosen(device)
    return Properties(found.model, found.memory)


def get_device_capability(device: Any = None) -> Tuple[int, int]:
    """Returns (8, 0): bfloat16 and float16 are computed on all devices."""
    return (8, 0)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Returns True: all devices compute bfloat16."""
    return True


def mem_get_info(device: Any = None) -> Tuple[int, int]:
    """Returns the free and the whole memory in bytes."""
    found = _chosen(device)
    return found.memory - found.memory_used, found.memory


def memory_allocated(device: Any = None) -> int:
    """Returns the bytes in use on an accelerator, by all of its users."""
    return int(_chosen(device).memory_used) if is_available() else 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Returns a line about the memory in use."""
    return f"{memory_allocated(device)} bytes in use"


def synchronize(device: Any = None) -> None:
    """Waits until everything sent before has finished."""
    connections.default_connection().synchronize()


def empty_cache() -> None:
    """Does nothing: the daemon manages the memory of its devices."""


def reset_peak_memory_stats(device: Any = None) -> None:
    """Does nothing: Kiln reports present use."""


reset_max_memory_allocated = ipc_collect = reset_peak_memory_stats


def set_device(device: Any) -> None:
    """Accepts the first accelerator; name others explicitly, as in "cuda:1"."""
    index = _device.device(device).index if not isinstance(device, int) else device
    if index and index > 0:
        raise NotImplementedError(f'set_device({device!r}); name the device, as in x.to("cuda:1")')


def manual_seed(seed: int) -> None:
    """Seeds the default generator, which all devices share."""
    _creation.manual_seed(seed)


manual_seed_all, seed_all = manual_seed, seed


def get_rng_state(device: Any = "cuda") -> Any:
    """Returns the state of the default generator."""
    return _creation.get_rng_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Restores a state of the default generator."""
    _creation.set_rng_state(new_state)


def get_rng_state_all() -> List[Any]:
    """Returns the state of the default generator, once for each accelerator."""
    return [get_rng_state() for _ in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Restores a state of the default generator."""
    for state in new_states[:1]:
        set_rng_state(state)


class Event:
    """A moment in the order of operations; elapsed_time() reads this process's clock."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False,
                 interprocess: bool = False) -> None:
        self._time = 0.0

    def record(self, stream: Any = None) -> None:
        """Waits for the operations sent before, and notes the time."""
        synchronize()
        self._time = amp.now()

    def synchronize(self) -> None:
        """Waits until everything sent before has finished."""
        synchronize()

    def query(self) -> bool:
        """Returns True: record() has waited."""
        return True

    def wait(self, stream: Any = None) -> None:
        """Does nothing: operations run in their order."""

    def elapsed_time(self, end_event: "Event") -> float:
        """Returns the milliseconds between two events."""
        return (end_event._time - self._time) * 1000


class Stream:
    """The order of operations: a session has one."""

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device = device

    def synchronize(self) -> None:
        """Waits until everything sent before has finished."""
        synchronize()

    def wait_stream(self, stream: Any) -> None:
        """Does nothing: operations run in their order."""

    wait_event = record_event = wait_stream

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        pass


def current_stream(device: Any = None) -> Stream:
    """Returns the order of operations."""
    return Stream()


default_stream = current_stream


@contextlib.contextmanager
def stream(stream: Any) -> Iterator[None]:
    """Does nothing: operations run in their order."""
    yield


@contextlib.contextmanager
def device(device: Any) -> Iterator[None]:
    """Accepts the first accelerator."""
    set_device(device)
    yield


__all__ = [
    "Event", "OutOfMemoryError", "Stream", "amp", "current_device", "current_stream",
    "default_stream", "device", "device_count", "empty_cache", "get_device_capability",
    "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all", "init",
    "initial_seed", "ipc_collect", "is_available", "is_bf16_supported", "is_initialized",
    "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info",
    "memory_allocated", "memory_reserved", "memory_summary", "reset_peak_memory_stats", "seed",
    "seed_all", "set_device", "set_rng_state", "set_rng_state_all", "stream", "synchronize",
]  # fmt: skip
