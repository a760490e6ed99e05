"""Saving and loading: tensors and nested checkpoints as safetensors, or tensors as NumPy's .npz.

>>> import os, tempfile
>>> path = os.path.join(tempfile.mkdtemp(), "checkpoint.safetensors")
>>> model = kiln.nn.Linear(3, 2)
>>> kiln.save({"model": model.state_dict(), "epoch": 3}, path)
>>> loaded = kiln.load(path)
>>> loaded["epoch"]
3
>>> model.load_state_dict(loaded["model"])
Incompatible(missing_keys=[], unexpected_keys=[])
"""

import json
import os
from typing import Any, Dict, Mapping, Optional

import numpy as np

from kiln._basics.errors import DataLoss, InvalidArgument
from kiln.serialization import _safetensors
from kiln.tensor import Tensor

_STRUCTURE = "kiln.structure"
_VALUES = (bool, int, float, str, type(None))


def save(values: Mapping[str, Any], path: Any,
         metadata: Optional[Mapping[str, str]] = None) -> None:
    """Writes named tensors. The file name's suffix selects the format: .safetensors, else .npz.

    A safetensors file takes every dtype, metadata (strings by name), and nested dicts and lists of
    tensors, arrays, numbers, strings and None. Then the tensors' names are their paths
    ("model.0.weight"), so that other readers find them, too. An .npz file takes only tensors and
    numbers; bfloat16 is float32 there. Other values raise InvalidArgument. The file is replaced
    atomically, and at most one tensor is in this process's memory at a time.

    >>> import os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> kiln.save({"weight": kiln.ones(2)}, file)
    >>> kiln.load(file)["weight"].tolist()
    [1.0, 1.0]
    """
    path = os.fspath(path)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            if path.endswith(".safetensors"):
                tensors, found = _flattened(values)
                _safetensors.write(file, tensors, {**found, **(metadata or {})})
            else:
                arrays: Dict[str, Any] = {
                    name: _array(name, value) for name, value in values.items()}
                np.savez(file, **arrays)
        # Atomic: readers find the old file or the new one, and maps of the old one stay intact.
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def load(path: Any) -> Dict[str, Any]:
    """Returns the tensors of a file by name, or its nested values.

    Reads files of `save` and of other writers of these formats. The tensors of a safetensors file
    are read when they are first used; until then the file must not be overwritten in place (`save`
    never does that). Raises DataLoss for a damaged file, and InvalidArgument for another format or
    an unknown dtype.

    >>> import os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> kiln.save({"weight": kiln.ones(2)}, file)
    >>> list(kiln.load(file))
    ['weight']
    """
    path = os.fspath(path)
    if path.endswith(".safetensors"):
        tensors, metadata = _safetensors.read(path)
        if _STRUCTURE not in metadata:
            return tensors
        try:
            restored: Dict[str, Any] = _restored(json.loads(metadata[_STRUCTURE]), tensors)
            return restored
        except (ValueError, KeyError, TypeError) as error:
            raise DataLoss(f"{path}: its structure is damaged: {error}") from None
    try:
        arrays = np.load(path, allow_pickle=False)
    except (ValueError, EOFError):
        arrays = None
    if not isinstance(arrays, np.lib.npyio.NpzFile):
        raise InvalidArgument(
            f"{path} is not a file of tensors; kiln.load reads .safetensors and NumPy's .npz. "
            "Write files of torch.save again with safetensors.torch.save_file")
    with arrays:
        return {name: Tensor(arrays[name]) for name in arrays.files}


def load_metadata(path: Any) -> Dict[str, str]:
    """Returns the metadata of a safetensors file.

    >>> import os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> kiln.save({"weight": kiln.ones(2)}, file, {"epoch": "3"})
    >>> kiln.serialization.load_metadata(file)
    {'epoch': '3'}
    """
    found = _safetensors.read(os.fspath(path))[1]
    return {name: value for name, value in found.items() if name != _STRUCTURE}


def _array(name: str, value: Any) -> np.ndarray:
    # NumPy would pickle a value that is not a tensor, and then refuse to read it.
    array = None if isinstance(value, str) else np.asarray(value)
    if array is None or array.dtype.kind not in "biufc":
        raise InvalidArgument(
            f"{name} is {type(value).__name__}; an .npz file can hold only tensors and numbers. "
            "Use a .safetensors file for nested values, strings and None")
    return array


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray, np.generic))


def _flattened(values: Mapping[str, Any]) -> Any:
    """Returns tensors by their path, and the metadata that restores the other values."""
    if all(_is_tensor(value) for value in values.values()):
        return values, {}
    tensors: Dict[str, Any] = {}
    structure = _described(values, "", tensors)
    return tensors, {_STRUCTURE: json.dumps(structure, separators=(",", ":"))}


def _described(value: Any, path: str, tensors: Dict[str, Any]) -> Any:
    """Returns JSON for a value: dicts of one entry with its kind; tensors by their name."""
    if _is_tensor(value):
        name = path
        while name in tensors:  # {"a": {"b": x}, "a.b": y}
            name += "'"
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, (str, int)) or isinstance(key, bool):
                raise InvalidArgument(
                    f"the key {key!r} cannot be saved; it must be a string or an int")
        return {"dict": [[key, _described(item, f"{path}.{key}" if path else str(key), tensors)]
                         for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_described(item, f"{path}.{i}", tensors) for i, item in enumerate(value)]}
    if isinstance(value, _VALUES):
        return {"value": value}
    raise InvalidArgument(
        f"{path} is {type(value).__name__}; only dicts, lists, tensors, arrays, numbers, strings "
        "and None can be saved")


def _restored(described: Any, tensors: Mapping[str, Tensor]) -> Any:
    ((kind, content),) = described.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {key: _restored(item, tensors) for key, item in content}
    if kind in ("list", "tuple"):
        items = [_restored(item, tensors) for item in content]
        return items if kind == "list" else tuple(items)
    if kind == "value":
        return content
    raise ValueError(f"it has a {kind}")


__all__ = ["load", "load_metadata", "save"]
