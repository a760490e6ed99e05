"""The safetensors format (https://github.com/huggingface/safetensors#format).

A file is the header's length (8 bytes, little-endian), a JSON header with dtype, shape and place of
each tensor, and the tensors' bytes, without holes. Writing streams one tensor at a time. Reading
maps the file, so a tensor's bytes go from the page cache to the daemon when it is first used, and
an unused tensor is not read.
"""

import json
import math
import mmap
import struct
from typing import Any, BinaryIO, Dict, List, Mapping, NamedTuple, Tuple

import numpy as np

from kiln._basics.conversion import to_array
from kiln._basics.dtype import DType
from kiln._basics.dtype_table import SAFETENSORS
from kiln._basics.errors import DataLoss, InvalidArgument
from kiln._graph import node
from kiln._graph import realize as _realize
from kiln.tensor import Tensor, realize, wrap

_NAME_OF = {dtype: name for name, dtype in SAFETENSORS.items()}
_BITS = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16)}  # for dtypes that NumPy lacks
_LARGEST_HEADER = 100 << 20
_METADATA = "__metadata__"


def write(file: BinaryIO, tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Writes tensors, or values that become tensors, by name; one tensor's bytes at a time."""
    values = {name: value if isinstance(value, Tensor) else _as_tensor(name, value)
              for name, value in tensors.items()}
    header: Dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    offset = 0
    for name, tensor in values.items():
        if not isinstance(name, str) or name == _METADATA:
            raise InvalidArgument(f"a tensor cannot be named {name!r}")
        header[name] = {"dtype": _NAME_OF[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    # The tensors begin at a multiple of 8, for readers that map the file.
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    # Computes all lazy tensors in one program; values in host memory stay there.
    realize(*[tensor for tensor in values.values() if not tensor.is_realized])
    for tensor in values.values():
        file.write(_realize.read_bytes(tensor))


def _as_tensor(name: str, value: Any) -> Tensor:
    array, dtype = to_array(value)
    if not isinstance(value, (np.ndarray, np.generic, bool, int, float, list, tuple)):
        raise InvalidArgument(f"{name} is {type(value).__name__}; it must be a tensor or an array")
    return wrap(node.host_value(array, dtype))


class Entry(NamedTuple):
    """The place of a tensor, in bytes after the header."""

    dtype: DType
    shape: Tuple[int, ...]
    begin: int
    end: int


def read(path: str) -> Tuple[Dict[str, Tensor], Dict[str, str]]:
    """Returns the tensors by name, in the header's order, and the metadata.

    Raises DataLoss for a damaged file and InvalidArgument for a dtype that Kiln lacks.
    """
    with open(path, "rb") as file:
        entries, metadata, start = _read_header(path, file)
        size = file.seek(0, 2)
        # The map stays valid after the file is closed.
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _check_places(path, entries, size - start)
    return {name: _mapped(data, start, entry) for name, entry in entries.items()}, metadata


def _mapped(data: mmap.mmap, start: int, entry: Entry) -> Tensor:
    kind: Any = entry.dtype.numpy or _BITS[entry.dtype.itemsize]
    array = np.frombuffer(data, kind, math.prod(entry.shape), start + entry.begin)
    return wrap(node.host_value(array.reshape(entry.shape), entry.dtype))


def _read_header(path: str, file: BinaryIO) -> Tuple[Dict[str, Entry], Dict[str, str], int]:
    first = file.read(8)
    size = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
    if not 0 < size <= _LARGEST_HEADER:
        raise DataLoss(f"{path} is not a safetensors file: its header would have {size} bytes")
    text = file.read(size)
    try:
        header = json.loads(text, object_pairs_hook=_without_repeats)
        metadata = header.pop(_METADATA, {})
        entries = {name: _entry(path, name, entry) for name, entry in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise DataLoss(
            f"{path} is not a safetensors file: its header is damaged: {error}") from None
    return entries, metadata, 8 + size


def _without_repeats(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name is used twice")
    return result


def _entry(path: str, name: str, entry: Mapping[str, Any]) -> Entry:
    dtype = SAFETENSORS.get(entry["dtype"])
    if dtype is None:
        raise InvalidArgument(f"{path}: {name} is {entry['dtype']}, which is not a dtype of Kiln")
    begin, end = entry["data_offsets"]
    shape = tuple(entry["shape"])
    if not all(type(number) is int and number >= 0 for number in (*shape, begin, end)):
        raise ValueError(f"{name} has shape {shape} and place {begin} to {end}")
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name} of shape {shape} of {dtype.name} has {end - begin} bytes")
    return Entry(dtype, shape, begin, end)


def _check_places(path: str, entries: Mapping[str, Entry], size: int) -> None:
    """Raises DataLoss unless the tensors fill the file without holes, as the format requires."""
    place = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != place:
            raise DataLoss(f"{path}: {name} begins at byte {entry.begin} instead of {place}")
        place = entry.end
    if place != size:
        raise DataLoss(f"{path}: the tensors have {place} bytes, but the file has {size}; it may "
                       "be truncated")
