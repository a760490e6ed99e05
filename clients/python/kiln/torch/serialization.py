"""torch.save and torch.load: PyTorch's files of tensors, lists, dicts, numbers and strings.

A file is a zip archive with a pickle and the bytes of each storage, as PyTorch writes it. Loading
runs no code of the file: the pickle may name only what tensors and containers are made of.
"""

import collections
import io
import os
import pickle
import zipfile
from typing import Any, Dict, List, Tuple

import numpy as np

from kiln import serialization as _kiln
from kiln._basics import dtypes, short_floats
from kiln._basics.dtypes import DType
from kiln._graph import realize
from kiln.tensor import Tensor as KilnTensor
from kiln.torch import _device, _views
from kiln.torch._size import Size
from kiln.torch._tensor import adopt, convert
from kiln.torch.nn.parameter import Parameter

_STORAGES: Dict[str, DType] = {
    "FloatStorage": dtypes.float32, "DoubleStorage": dtypes.float64,
    "HalfStorage": dtypes.BY_NAME["float16"], "BFloat16Storage": dtypes.BY_NAME["bfloat16"],
    "ByteStorage": dtypes.BY_NAME["uint8"], "CharStorage": dtypes.BY_NAME["int8"],
    "ShortStorage": dtypes.BY_NAME["int16"], "IntStorage": dtypes.BY_NAME["int32"],
    "LongStorage": dtypes.int64, "BoolStorage": dtypes.bool_,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _STORAGES.items()}


class _Storage:
    """The bytes of a storage in a file."""

    def __init__(self, dtype: DType, data: bytes) -> None:
        self.dtype = dtype
        self.data = data


def _tensor(storage: _Storage, offset: int, size: Tuple[int, ...], stride: Tuple[int, ...],
            requires_grad: bool = False, *_: Any) -> Any:
    dtype = storage.dtype
    carrier = dtype.numpy if dtype.numpy is not None else short_floats.carrier(dtype)
    flat = np.frombuffer(storage.data, carrier)[offset:]
    step = [count * flat.itemsize for count in stride]
    array = np.lib.stride_tricks.as_strided(flat, tuple(size), step).copy() if 0 not in size else (
        np.zeros(tuple(size), carrier))
    if dtype.numpy is None:
        array = short_floats.widen(array, dtype).reshape(tuple(size))
    made = adopt(KilnTensor(array, dtype))
    return made.requires_grad_() if requires_grad else made


def _parameter(data: Any, requires_grad: bool = True, *_: Any) -> Any:
    return Parameter(data, requires_grad)


def _dtype_of(name: str) -> DType:
    return dtypes.BY_NAME[name]


# All that a file's pickle may name.
_ALLOWED: Dict[Tuple[str, str], Any] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "defaultdict"): collections.defaultdict,
    ("collections", "Counter"): collections.Counter,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch", "Size"): Size, ("torch", "device"): _device.device,
    ("builtins", "set"): set, ("builtins", "slice"): slice, ("builtins", "complex"): complex,
    **{("torch", name): dtype for name, dtype in dtypes.BY_NAME.items()},
    **{("torch", name): name for name in _STORAGES},
}  # fmt: skip


class _Unpickler(pickle.Unpickler):
    """Builds only tensors, containers, numbers and strings."""

    def __init__(self, file: Any, read: Any) -> None:
        super().__init__(file, encoding="utf-8")
        self._read = read
        self._storages: Dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Returns what a name in the file stands for."""
        found = _ALLOWED.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(
                f"the file names {module}.{name}, which torch.load does not run: it loads tensors, "
                "containers, numbers and strings. Save a state_dict() instead of whole objects")
        return found

    def persistent_load(self, pid: Any) -> Any:
        """Returns a storage."""
        kind, name, key, _, _ = pid
        if kind != "storage":
            raise pickle.UnpicklingError(f"the file refers to a {kind!r}")
        if key not in self._storages:
            dtype = _STORAGES[name] if isinstance(name, str) else dtypes.BY_NAME["uint8"]
            self._storages[key] = _Storage(dtype, self._read(key))
        return self._storages[key]


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *,
         weights_only: Any = None, mmap: Any = None, **_: Any) -> Any:
    """Returns what torch.save wrote, of this package or of PyTorch; see weights_only of PyTorch.

    `map_location` is a device, a dict of them or a function of (storage, location), of which only
    the choice of a device has an effect. weights_only=False is not possible: no code of a file is
    run. A path that ends in .safetensors or .npz is loaded by kiln.load.
    """
    path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else ""
    if str(path).endswith((".safetensors", ".npz")):
        loaded = _converted(_kiln.load(path))
    else:
        with (open(path, "rb") if path else _Kept(f)) as file:
            if not zipfile.is_zipfile(file):
                raise RuntimeError(
                    f"{path or 'the file'} is not an archive of torch.save; files of PyTorch "
                    "before 1.6 can be saved again by a newer PyTorch")
            with zipfile.ZipFile(file) as archive:
                pickled = next(name for name in archive.namelist() if name.endswith("data.pkl"))
                root = pickled[: -len("data.pkl")]
                loaded = _Unpickler(io.BytesIO(archive.read(pickled)), lambda key: archive.read(
                    f"{root}data/{key}")).load()
    wanted = map_location
    if callable(wanted):
        wanted = None
    if isinstance(wanted, dict):
        wanted = next(iter(wanted.values()), None)
    return loaded if wanted is None else _moved(loaded, wanted)


class _Kept:
    """A context for a file that stays open."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __enter__(self) -> Any:
        return self._file

    def __exit__(self, *_: Any) -> None:
        pass


def _converted(value: Any) -> Any:
    if isinstance(value, KilnTensor):
        return convert(value)
    if isinstance(value, dict):
        return {name: _converted(item) for name, item in value.items()}
    return [_converted(item) for item in value] if isinstance(value, list) else value


def _moved(value: Any, device: Any) -> Any:
    if isinstance(value, KilnTensor):
        return convert(value)._on(device)
    if isinstance(value, dict):
        for name in value:
            value[name] = _moved(value[name], device)
        return value
    if isinstance(value, (list, tuple)) and not isinstance(value, Size):
        return type(value)(_moved(item, device) for item in value)
    return value


class _Global:
    """A name of PyTorch, which need not be installed."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class _Call:
    """An object that a name of PyTorch makes of arguments."""

    def __init__(self, made_by: _Global, arguments: Tuple[Any, ...]) -> None:
        self.made_by, self.arguments = made_by, arguments


class _StorageOf:
    """The storage of a tensor to be written."""

    def __init__(self, dtype: DType, key: str, count: int) -> None:
        self.dtype, self.key, self.count = dtype, key, count


# Python's own class in Python: C's writes no names of what is not there.
_Python: Any = getattr(pickle, "_Pickler")  # noqa: B009


class _Pickler(_Python):  # type: ignore[misc]
    """Writes tensors as PyTorch does, and collects their values."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, 2)
        self.values: List[Any] = []
        self._keys: Dict[int, str] = {}

    def persistent_id(self, value: Any) -> Any:
        """Returns what stands for a storage."""
        if isinstance(value, _StorageOf):
            return ("storage", _Global("torch", _NAMES[value.dtype]), value.key, "cpu",
                    value.count)
        return None

    def save(self, obj: Any, save_persistent_id: bool = True) -> Any:
        """Writes an object."""
        if isinstance(obj, _Global):
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
            return None
        if isinstance(obj, _Call):
            self.save(obj.made_by)
            self.save(obj.arguments)
            self.write(pickle.REDUCE)
            return None
        if isinstance(obj, KilnTensor):
            return self.save(self._of_tensor(obj))
        if isinstance(obj, DType):
            return self.save(_Global("torch", obj.name))
        if isinstance(obj, Size):
            return self.save(_Call(_Global("torch", "Size"), (tuple(obj),)))
        if isinstance(obj, _device.device):
            arguments = (obj.type,) if obj.index is None else (obj.type, obj.index)
            return self.save(_Call(_Global("torch", "device"), arguments))
        return super().save(obj, save_persistent_id)

    def _of_tensor(self, tensor: Any) -> _Call:
        base, layout = tensor, _views.Layout(_views.contiguous_strides(tuple(tensor.shape)), 0)
        key = self._keys.get(id(tensor))
        if key is None:
            key = self._keys[id(tensor)] = str(len(self.values))
            self.values.append(base)
        storage = _StorageOf(tensor.dtype, key, int(tensor.numel()))
        made = _Call(_Global("torch._utils", "_rebuild_tensor_v2"), (
            storage, 0, tuple(tensor.shape), layout.strides,
            bool(tensor._requires_grad and not isinstance(tensor, Parameter)),
            collections.OrderedDict()))
        if isinstance(tensor, Parameter):
            return _Call(_Global("torch._utils", "_rebuild_parameter"), (
                made, bool(tensor._requires_grad), collections.OrderedDict()))
        return made


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2,
         _use_new_zipfile_serialization: bool = True) -> None:
    """Writes tensors, numbers, strings and containers of them, in a form that PyTorch loads, too.

    Whole modules and optimizers are not written: save their state_dict().
    """
    body = io.BytesIO()
    pickler = _Pickler(body)
    pickler.dump(obj)
    path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else ""
    root = os.path.splitext(os.path.basename(path))[0] or "archive"
    temporary = f"{path}.{os.getpid()}.tmp"
    target: Any = temporary if path else f
    realize.realize([value for value in pickler.values if not value.is_realized])
    try:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(f"{root}/data.pkl", body.getvalue())
            archive.writestr(f"{root}/byteorder", "little")
            for i, value in enumerate(pickler.values):
                archive.writestr(f"{root}/data/{i}", bytes(realize.read_bytes(value)))
            archive.writestr(f"{root}/version", "3\n")
        if path:
            os.replace(temporary, path)
    finally:
        if path and os.path.exists(temporary):
            os.unlink(temporary)


