"""Saving and loading tensors: NumPy's .npz, or the safetensors format.

A safetensors file is the header's length (8 bytes, little-endian), a JSON header that gives dtype,
shape and place of each tensor, and the tensors' bytes.
(https://github.com/huggingface/safetensors#format)
"""

import json
import os
import struct
from typing import Any, Dict, Mapping

import numpy as np

from kiln import _dtypes
from kiln._convert import to_array
from kiln._errors import DataLoss, InvalidArgument
from kiln.tensor import Tensor

_NAMES = {
    "BOOL": _dtypes.bool_, "I8": _dtypes.int8, "I16": _dtypes.int16, "I32": _dtypes.int32,
    "I64": _dtypes.int64, "U8": _dtypes.uint8, "U16": _dtypes.uint16, "U32": _dtypes.uint32,
    "U64": _dtypes.uint64, "F16": _dtypes.float16, "BF16": _dtypes.bfloat16,
    "F32": _dtypes.float32, "F64": _dtypes.float64,
}  # fmt: skip
_NAME_OF = {dtype: name for name, dtype in _NAMES.items()}
_LARGEST_HEADER = 100 << 20


def save(tensors: Mapping[str, Any], path: Any) -> None:
    """Writes named tensors. The name's end chooses the format: .safetensors, else .npz.

    The file appears whole or not at all.
    """
    path = os.fspath(path)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            if path.endswith(".safetensors"):
                _write_safetensors(file, tensors)
            else:
                arrays: Dict[str, Any] = {
                    name: np.asarray(value) for name, value in tensors.items()}
                np.savez(file, **arrays)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def load(path: Any) -> Dict[str, Tensor]:
    """The tensors of a file that `save` (or another writer of the formats) wrote."""
    path = os.fspath(path)
    if path.endswith(".safetensors"):
        return _read_safetensors(path)
    with np.load(path, allow_pickle=False) as arrays:
        return {name: Tensor(arrays[name]) for name in arrays.files}


def _write_safetensors(file: Any, tensors: Mapping[str, Any]) -> None:
    header: Dict[str, Any] = {}
    blocks = []
    offset = 0
    for name, value in tensors.items():
        array, dtype = to_array(np.asarray(value), getattr(value, "dtype", None))
        data = array.tobytes()
        header[name] = {"dtype": _NAME_OF[dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + len(data)]}
        blocks.append(data)
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for data in blocks:
        file.write(data)


def _read_safetensors(path: str) -> Dict[str, Tensor]:
    with open(path, "rb") as file:
        start = file.read(8)
        size = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 0 < size <= _LARGEST_HEADER:
            raise DataLoss(f"{path} is no safetensors file: its header would have {size} bytes")
        try:
            header = json.loads(file.read(size))
        except ValueError as error:
            raise DataLoss(f"{path} is no safetensors file: {error}") from None
        data = file.read()
    return {
        name: _tensor(path, name, entry, data)
        for name, entry in header.items() if name != "__metadata__"
    }


def _tensor(path: str, name: str, entry: Mapping[str, Any], data: bytes) -> Tensor:
    dtype = _NAMES.get(entry["dtype"])
    if dtype is None:
        raise InvalidArgument(f"{path}: {name} is {entry['dtype']}; there is no such dtype here")
    begin, end = entry["data_offsets"]
    shape = tuple(entry["shape"])
    if not 0 <= begin <= end <= len(data) or end - begin != (
        int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    ):
        raise DataLoss(f"{path}: {name} of shape {shape} has bytes {begin} to {end} of {len(data)}")
    numpy = dtype.numpy if dtype.numpy is not None else np.dtype(np.uint16)
    array = np.frombuffer(data[begin:end], numpy).reshape(shape)
    if dtype is _dtypes.bfloat16:
        array = (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return Tensor(array, dtype)
