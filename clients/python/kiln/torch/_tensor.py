"""torch.Tensor: Kiln's tensor with PyTorch's semantics."""

# Within the class, the methods int, float and bool hide the types of these names.
import builtins
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from kiln._basics import dtypes
from kiln._basics.dtypes import DType
from kiln._basics.errors import InvalidArgument
from kiln._graph import live
from kiln._graph import node as _nodes
from kiln._graph.gradient_mode import no_grad
from kiln._graph.node import make, mode
from kiln._rules import normalize_axis
from kiln._tensor import gradients, reductions
from kiln._tensor.assignment import assigned
from kiln._tensor.base import TensorBase, wrap
from kiln._tensor.device_transfer import beside, moved
from kiln._tensor.indexing import index as read_index
from kiln.tensor import Tensor as KilnTensor
from kiln.torch import _defaults, _device, _flow, _views
from kiln.torch._dialect import TORCH, kind
from kiln.torch._size import Size, words


def adopt(result: Any) -> Any:
    """Returns tensors that a function of Kiln has just made as tensors of kiln.torch.

    `result` may be a tuple or a list of them. Nothing else may reference these tensors.
    """
    if isinstance(result, Tensor):
        return result
    if isinstance(result, KilnTensor):
        node = result._node
        if node.op == "const":  # constants are shared
            node = make("expand", (node,), (("shape", ()),))
        node.dialect = TORCH
        made = wrap(node)
        return made.requires_grad_() if result._requires_grad else made
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*map(adopt, result))
    if isinstance(result, (tuple, list)):
        return type(result)(map(adopt, result))
    return result


def convert(value: Any, dtype: Optional[DType] = None) -> Any:
    """Returns a value of any kind as a tensor of kiln.torch; a tensor of it is returned itself."""
    if isinstance(value, Tensor):
        return value if dtype is None else value._cast(dtype)
    if isinstance(value, KilnTensor):
        node = _nodes.alias(value._node) if value._node.is_value else make(
            "reshape", (value._node,), (("shape", value.shape),))
        node.dialect = TORCH
        made: Tensor = wrap(node)  # type: ignore[assignment]
        return made if dtype is None else made._cast(dtype)
    result: Tensor = adopt(KilnTensor(from_python(value), dtype or _dtype_of(value)))
    return result


def _dtype_of(value: Any) -> Optional[DType]:
    """Returns the default dtype for Python floats, None for data with a dtype."""
    while isinstance(value, (list, tuple)) and value:
        value = next((part for part in value if isinstance(part, (list, tuple))), value)
        if not isinstance(value[0], (list, tuple)):
            floats = [part for part in value if isinstance(part, builtins.float)]
            plain = not any(isinstance(part, (np.ndarray, np.generic, TensorBase))
                            for part in value)
            return _defaults.get_default_dtype() if floats and plain else None
        value = value[0] if isinstance(value[0], (list, tuple)) else value
    if isinstance(value, builtins.float) or (isinstance(value, (list, tuple)) and not value):
        return None if isinstance(value, np.generic) else _defaults.get_default_dtype()
    return None


def from_python(value: Any) -> Any:
    """Returns data in a form that Kiln takes: tensors of PyTorch itself become arrays."""
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], (np.ndarray, np.generic)) and all(
                isinstance(part, (np.ndarray, np.generic)) for part in value):
            return np.asarray(value)
        return [from_python(part) for part in value]
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            return np.asarray(value.float())
        return np.asarray(value)
    return value


class _GradFn:
    """The operation that made a tensor, as grad_fn shows it."""

    def __init__(self, op: str, is_function: bool = False) -> None:
        self._name = f"{op}Backward" if is_function else f"{op.title().replace('_', '')}Backward0"

    def name(self) -> str:
        """Returns a name such as "AddBackward0"."""
        return self._name

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class _ArgumentsOfTo:
    """The arguments of Tensor.to and Module.to: a device, a dtype, or another tensor's."""

    def __init__(self, args: Sequence[Any], device: Any, dtype: Any, other: Any = None) -> None:
        self.device, self.dtype = device, dtype
        for arg in ([*args, other] if other is not None else args):
            if isinstance(arg, KilnTensor):
                self.device, self.dtype = convert(arg).device, arg.dtype
            elif (isinstance(arg, (_device.device, builtins.int)) and not isinstance(
                    arg, builtins.bool)) or (
                        isinstance(arg, str) and arg.rpartition(".")[2] not in dtypes.BY_NAME):
                self.device = arg
            elif not isinstance(arg, (builtins.bool, type(None))) and not _is_format(arg):
                self.dtype = arg
        if self.dtype is not None:
            self.dtype = _defaults.as_dtype(self.dtype)


def _is_format(value: Any) -> builtins.bool:
    return type(value).__name__ in ("memory_format", "layout")


arguments_of_to = _ArgumentsOfTo


class Tensor(KilnTensor):
    """A tensor with PyTorch's methods. Everything computed from it is one, too.

    torch.Tensor(data) makes float32 of data, torch.Tensor(2, 3) an uninitialized tensor of that
    shape (of zeros here); torch.tensor(data) keeps the kind of the data.

    >>> torch.Tensor([1, 2]).dtype
    kiln.float32
    """

    # No __slots__: PyTorch's tensors take attributes.

    # See _views.py; set on the instances that have views.
    _share: Optional[_views.Storage] = None
    _steps: Tuple[Any, ...] = ()
    _seen = 0
    _hooks: Any = None
    _after_hooks: Any = None

    def __init__(self, *data: Any, device: Any = None) -> None:
        value = data[0] if len(data) == 1 else data
        if not data:
            made = KilnTensor(np.zeros(0, np.float32))
        elif all(isinstance(size, builtins.int) for size in data) or isinstance(value, Size):
            shape = tuple(value) if isinstance(value, Size) else data
            made = KilnTensor(np.zeros(shape, np.float32))
        else:
            made = KilnTensor(from_python(value), _defaults.get_default_dtype())
        self._grad = None
        self._requires_grad = False
        self._selected = False
        made._node.dialect = TORCH
        self._node = made._node

    @property
    def _node(self) -> _nodes.Node:
        share = self._share
        if share is not None and share.version != self._seen:
            _views.refresh(self)
        node: _nodes.Node = _views.slot.__get__(self)
        return node

    @_node.setter
    def _node(self, node: _nodes.Node) -> None:
        node.dialect = TORCH
        _views.slot.__set__(self, node)

    # Shape, dtype, device.

    @property
    def shape(self) -> Size:
        """The sizes of the dimensions, as a torch.Size."""
        return Size(self._node.shape)

    def size(self, dim: Optional[builtins.int] = None) -> Any:
        """Returns the shape, or the size of one dimension."""
        return Size(self._node.shape) if dim is None else self._node.shape[dim]

    @property
    def device(self) -> _device.device:
        """The device of the tensor."""
        return _device.device_at(self._node.home)

    def get_device(self) -> builtins.int:
        """Returns the number of its accelerator, -1 for the CPU."""
        found = self.device
        return -1 if found.type == "cpu" else found.index or 0

    @property
    def is_cuda(self) -> builtins.bool:
        """Whether it is on an accelerator."""
        return self.device.type == "cuda"

    @property
    def is_cpu(self) -> builtins.bool:
        """Whether it is on the CPU."""
        return self.device.type == "cpu"

    is_sparse = is_quantized = is_mkldnn = is_meta = is_mps = is_xpu = is_nested = False
    is_sparse_csr = is_ipu = is_xla = is_vulkan = is_maia = is_mtia = False
    names: Any = property(lambda self: (None,) * self.ndim)
    itemsize = property(lambda self: self.dtype.itemsize)

    @property
    def layout(self) -> Any:
        """The layout of its values, torch.strided."""
        return strided

    def stride(self, dim: Optional[builtins.int] = None) -> Any:
        """Returns how many elements apart neighbours along each dimension are in PyTorch."""
        strides = _views.layout(self).strides
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> builtins.int:
        """Returns where in its base the first element is."""
        return _views.layout(self).offset

    def is_contiguous(self, memory_format: Any = None) -> builtins.bool:
        """Returns whether the elements follow each other in PyTorch."""
        shape = self._node.shape
        own = [(stride, usual) for stride, usual, size in zip(
            _views.layout(self).strides, _views.contiguous_strides(shape), shape) if size != 1]
        return all(stride == usual for stride, usual in own)

    def contiguous(self, memory_format: Any = None) -> "Tensor":
        """Returns the tensor itself, or a copy if it is a view of elements that are apart."""
        return self if self.is_contiguous() else self._copied()

    def clone(self, *, memory_format: Any = None) -> "Tensor":
        """Returns a copy, through which gradients flow."""
        return self._copied()

    def _copied(self) -> "Tensor":
        copied: Tensor = self._op("reshape", shape=self._node.shape)  # type: ignore[assignment]
        return copied

    def is_same_size(self, other: Any) -> builtins.bool:
        """Returns whether the shapes agree."""
        return builtins.bool(self._node.shape == other._node.shape)

    def is_set_to(self, other: "Tensor") -> builtins.bool:
        """Returns whether both are the same view of the same values."""
        return self is other or (self._share is not None and self._share is other._share
                                 and _views.layout(self) == _views.layout(other)
                                 and self.shape == other.shape)

    def is_inference(self) -> builtins.bool:
        """Returns False: tensors made in inference_mode() are usual ones."""
        return False

    def is_conj(self) -> builtins.bool:
        """Returns False: there are no complex dtypes."""
        return False

    is_neg = is_distributed = is_shared = is_conj

    def is_nonzero(self) -> builtins.bool:
        """Returns whether its only element is not 0."""
        return builtins.bool(self)

    def dim_order(self) -> Tuple[builtins.int, ...]:
        """Returns the dimensions, those with the largest strides first."""
        strides = self.stride()
        return tuple(sorted(range(self.ndim), key=lambda axis: -strides[axis]))

    # Casts and moves.

    def _cast(self, dtype: DType) -> "Tensor":
        cast: Tensor = KilnTensor.cast(self, dtype)  # type: ignore[assignment]
        return cast

    def to(self, *args: Any, device: Any = None, dtype: Any = None,
           non_blocking: builtins.bool = False, copy: builtins.bool = False,
           memory_format: Any = None, other: Any = None) -> "Tensor":
        """Returns the tensor with a dtype, on a device, or with another tensor's dtype and device.

        It is returned itself if it has both already, unless `copy`.
        """
        wanted = _ArgumentsOfTo(args, device, dtype, other)
        copies = copy or (len(args) > 3 and args[-1] is True)
        result = self if wanted.dtype is None else self._cast(wanted.dtype)
        if wanted.device is not None:
            result = result._on(wanted.device)
        return result._copied() if copies and result is self else result

    def _on(self, device: Any) -> "Tensor":
        name = _device.kiln_name(device)
        if name is None or self._node.home == name:
            return self
        there: Tensor = moved(self, name)  # type: ignore[assignment]
        return there

    def cpu(self, memory_format: Any = None) -> "Tensor":
        """Returns the tensor on the CPU."""
        return self._on("cpu")

    def cuda(self, device: Any = None, non_blocking: builtins.bool = False,
             memory_format: Any = None) -> "Tensor":
        """Returns the tensor on an accelerator, the first one by default."""
        return self._on(_device.cuda_device(device))

    def type(self, dtype: Any = None, non_blocking: builtins.bool = False) -> Any:
        """Returns the name of its type or, given a dtype, the same values in it."""
        if dtype is None:
            name = next(name for name, own in _defaults.CLASSES.items() if own is self.dtype)
            return f"torch.cuda.{name}" if self.is_cuda else f"torch.{name}"
        return self._cast(_defaults.as_dtype(dtype))

    def pin_memory(self, device: Any = None) -> "Tensor":
        """Returns the tensor itself: values of the client are sent from its own memory."""
        return self

    def share_memory_(self) -> "Tensor":
        """Returns the tensor itself."""
        return self

    def is_pinned(self, device: Any = None) -> builtins.bool:
        """Returns False."""
        return False

    def numpy(self, *, force: builtins.bool = False) -> "np.ndarray[Any, Any]":
        """Returns a copy of the values. Unlike in PyTorch, changes of the array do not reach the
        tensor.
        """
        return KilnTensor.numpy(self)

    def __array__(self, dtype: Any = None,
                  copy: Optional[builtins.bool] = None) -> "np.ndarray[Any, Any]":
        return KilnTensor.__array__(self, dtype, None)

    def __reduce__(self) -> Any:
        return _rebuilt, (self.numpy(), self.dtype.name, self._requires_grad)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    # Gradients.

    def requires_grad_(self, requires_grad: builtins.bool = True) -> "Tensor":
        """Sets whether backward() computes a gradient for this tensor. Returns self."""
        KilnTensor.requires_grad_(self, requires_grad)
        if self._share is not None and not self._steps:
            self._share.node = _views.slot.__get__(self)
        return self

    def backward(self, gradient: Any = None,
                 retain_graph: Optional[builtins.bool] = None,
                 create_graph: builtins.bool = False, inputs: Any = None) -> None:
        """Adds to the grad of every leaf under this tensor, or only of `inputs`. Lazy.

        A graph can always be differentiated again, so retain_graph has no effect.
        """
        backward([(self, gradient)], create_graph, inputs)

    def register_hook(self, hook: Callable[[Any], Any]) -> "Removable":
        """Registers hook(gradient), called by backward() with the gradient of this tensor. Its
        result, unless None, becomes the gradient, also of what the tensor was computed from.
        """
        if not self.requires_grad:
            raise InvalidArgument("a hook of a tensor that does not require a gradient")
        if not self.is_leaf:
            hooks = _flow.hooks_of(self._node)
        else:
            if self._hooks is None:
                self._hooks = {}
            hooks = self._hooks
        number = len(hooks)
        while number in hooks:
            number += 1
        hooks[number] = hook
        return Removable(hooks, number)

    @property
    def grad_fn(self) -> Any:
        """The operation that made the tensor; None for a leaf."""
        if self.is_leaf:
            return None
        function = self._node.function
        return _GradFn(self._node.op if function is None else function.name, function is not None)

    @property
    def output_nr(self) -> builtins.int:
        """0."""
        return 0

    @property
    def retains_grad(self) -> builtins.bool:
        """Whether retain_grad() was called on this result."""
        retained = self._node.retained
        return not self.is_leaf and retained is not None and retained() is self

    def detach(self) -> "Tensor":
        """Returns a view without gradient: a change of one changes the other."""
        alias: Tensor = _views.detached(self, gradients.snapshot(self))
        return alias

    def detach_(self) -> "Tensor":
        """Cuts the tensor from what it was computed from. Returns self."""
        self._node = _nodes.alias(self._node)
        self._requires_grad = False
        return self

    @property
    def data(self) -> "Tensor":
        """A view without gradient. Setting it replaces the value, of any shape and dtype."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        _views.leave(self)
        with no_grad():
            self._node = gradients.snapshot(convert(value))._node
        if self._requires_grad:
            self._node = _nodes.alias(self._node)
        self._mark_leaf()
        live.note_assigned(self)

    def __deepcopy__(self, memo: Any) -> "Tensor":
        if not self.is_leaf:
            raise InvalidArgument("a deep copy of a result that gradients flow through; detach() "
                                  "or clone() it")
        copied = gradients.snapshot(self)
        made: Tensor = wrap(_nodes.alias(copied._node))  # type: ignore[assignment]
        if self._requires_grad:
            made.requires_grad_()
        made.__dict__.update({name: value for name, value in vars(self).items()
                              if name not in ("_share", "_steps", "_seen", "_hooks")})
        memo[id(self)] = made
        return made

    # Keys.

    def __getitem__(self, key: Any) -> "Tensor":
        return select(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, KilnTensor):
            value = convert(value)._cast(self.dtype)
        elif isinstance(value, (np.ndarray, list, tuple)) or _is_foreign(value):
            value = convert(value, self.dtype)
        elif isinstance(value, (builtins.int, builtins.float)):
            value = _defaults.number_for(value, self.dtype)
        basic, indices = split_key(self, key)
        if indices is None:
            self._in_place(assigned(self, basic, value))
            return
        part = read_index(self, basic)
        self._in_place(assigned(self, basic, assigned(part, indices, value)))

    # Changes in place.

    def _in_place(self, result: Any) -> "Tensor":
        if result.dtype is not self.dtype:
            if kind(result.dtype) > kind(self.dtype):
                raise InvalidArgument(
                    f"in place: a result of {result.dtype.name} does not fit into "
                    f"{self.dtype.name}")
            result = KilnTensor.cast(result, self.dtype)
        if result._node.shape != self._node.shape:
            raise InvalidArgument(
                f"in place: a result of shape {tuple(result.shape)} does not fit into "
                f"{tuple(self.shape)}")
        if self._requires_grad and mode.gradients:
            raise InvalidArgument(
                "a leaf that requires a gradient changes in place; use torch.no_grad()")
        if self._requires_grad or not result._node.tracked:
            return self.assign(result)
        _views.allow(self, True)
        self._node = result._node
        live.note_assigned(self)
        _views.wrote(self)
        return self

    def assign(self, value: Any) -> "Tensor":
        """Replaces the value, as copy_() without gradient."""
        _views.allow(self, False)
        KilnTensor.assign(self, value)
        _views.wrote(self)
        return self

    def copy_(self, src: Any, non_blocking: builtins.bool = False) -> "Tensor":
        """Replaces the values by those of `src`, cast and expanded to this tensor's."""
        source = convert(src)._cast(self.dtype).expand(self._node.shape)
        if self._node.home is not None and isinstance(self._node.home, str) and (
                source._node.home != self._node.home):
            source = moved(source, self._node.home)
        return self._in_place(source)

    def set_(self, source: Any = None) -> "Tensor":
        """Makes the tensor another one's value."""
        self.data = source if source is not None else np.zeros(0, np.float32)
        return self

    def fill_(self, value: Any) -> "Tensor":
        """Fills the tensor with a number or a tensor's only element."""
        if isinstance(value, KilnTensor):
            return self.copy_(value)
        return self.assign(_defaults.number_for(value, self.dtype))

    def zero_(self) -> "Tensor":
        """Fills the tensor with zeros."""
        return self.assign(0)

    # Comparisons and reductions whose results differ from Kiln's.

    def _compared(self, name: str, other: Any) -> "KilnTensor":
        return self._op(name, other)

    def _summable(self, dtype: Any = None) -> "KilnTensor":
        if dtype is not None:
            return self._cast(_defaults.as_dtype(dtype))
        return self if self.dtype.is_float else self._cast(dtypes.int64)

    # Text.

    def __repr__(self) -> str:
        return representation(self)

    def __str__(self) -> str:
        return representation(self)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self._node.shape else str(self)

    def __hash__(self) -> builtins.int:
        return id(self)

    def __dir__(self) -> List[str]:
        return sorted({*dir(type(self)), *vars(self)})


TORCH.tensor_class = Tensor


class Strided:
    """The type of torch.strided."""

    def __repr__(self) -> str:
        return "torch.strided"


strided = Strided()


class Removable:
    """A registered hook; remove() removes it."""

    def __init__(self, hooks: Any, number: builtins.int) -> None:
        self._hooks = hooks
        self._number = number

    def remove(self) -> None:
        """Removes the hook. May be called again."""
        self._hooks.pop(self._number, None)

    def __enter__(self) -> "Removable":
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


def _is_foreign(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")


def _rebuilt(array: Any, dtype: str, requires_grad: bool) -> Tensor:
    made: Tensor = adopt(KilnTensor(array, dtype))
    return made.requires_grad_() if requires_grad else made


# Keys: PyTorch applies ints, slices and new dimensions first, and then index tensors.


def select(tensor: Tensor, key: Any) -> Tensor:
    """Returns tensor[key]: a view of it unless the key has index tensors."""
    basic, indices = split_key(tensor, key)
    part: Tensor = _views.view(tensor, read_index(tensor, basic))
    if indices is None:
        return part
    result: Tensor = read_index(part, indices)  # type: ignore[assignment]
    return result


def split_key(tensor: Tensor, key: Any) -> Tuple[Any, Any]:
    """Returns a key without index tensors, and the key that applies them to its result, or None."""
    parts = [_part(part) for part in (key if isinstance(key, tuple) else (key,))]
    if not any(_is_index(part) for part in parts):
        return tuple(parts), None
    if not any(isinstance(part, int) for part in parts):
        return tuple(parts), None
    basic: List[Any] = []
    indices: List[Any] = []
    for part in parts:
        if not _is_index(part):
            basic.append(part)
            if not isinstance(part, int):
                indices.append(Ellipsis if part is Ellipsis else slice(None))
            continue
        is_mask = getattr(part, "dtype", None) in (dtypes.bool_, np.bool_)
        basic += [slice(None)] * (part.ndim if is_mask else 1)
        indices.append(part)
    return tuple(basic), tuple(indices)


def _is_index(part: Any) -> bool:
    return isinstance(part, (TensorBase, np.ndarray, list))


def _part(part: Any) -> Any:
    if isinstance(part, slice):
        if isinstance(part.step, int) and part.step < 1:
            raise ValueError("step must be greater than zero")
        return slice(*[_plain(end) for end in (part.start, part.stop, part.step)])
    if isinstance(part, KilnTensor):
        return part._cast(dtypes.bool_) if isinstance(
            part, Tensor) and part.dtype is dtypes.BY_NAME["uint8"] else part
    if _is_foreign(part):
        return convert(part)
    if isinstance(part, range):
        return list(part)
    if isinstance(part, (list, tuple)) and any(isinstance(item, KilnTensor) for item in part):
        return convert(list(part))
    return _plain(part)


def _plain(part: Any) -> Any:
    if isinstance(part, np.integer):
        return int(part)
    if isinstance(part, TensorBase) and not part._node.shape and part.dtype.is_integer:
        return int(part._tensor)
    return part


# Methods that return views in PyTorch.

_VIEWS = words(
    "broadcast_to diagonal expand expand_as flatten mT moveaxis movedim narrow permute ravel "
    "reshape reshape_as select split_with_sizes swapaxes swapdims t T tensor_split transpose "
    "unbind unflatten unfold unsqueeze view_as"
)


def _viewing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method whose results are views of the tensor."""

    def wrapped(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return _views.view(self, method(self, *args, **kwargs))

    wrapped.__name__ = method.__name__
    wrapped.__qualname__ = f"Tensor.{method.__name__}"
    wrapped.__doc__ = method.__doc__
    return wrapped


for _name in _VIEWS:
    _found = KilnTensor.__dict__.get(_name) or getattr(KilnTensor, _name)
    if isinstance(_found, property):
        setattr(Tensor, _name, property(_viewing(_found.fget), doc=_found.__doc__))  # type: ignore
    else:
        setattr(Tensor, _name, _viewing(_found))


def view(self: Tensor, *shape: Any) -> Tensor:
    """Returns the same elements in another shape or, given a dtype, the same bits in it."""
    if len(shape) == 1 and not isinstance(shape[0], (int, tuple, list)) and not hasattr(
            shape[0], "__index__"):
        bits: Tensor = self.bitcast(_defaults.as_dtype(shape[0]))  # type: ignore[assignment]
        return bits
    result: Tensor = self.reshape(*shape)  # type: ignore[assignment]
    is_view = result._share is not None and result._share is self._share
    if not is_view and all(isinstance(size, int) for size in result.shape):
        raise InvalidArgument(
            f"view({', '.join(map(repr, shape))}) of a tensor of shape {tuple(self.shape)} and "
            f"stride {self.stride()}, whose elements would have to be copied; use reshape()")
    return result


def squeeze(self: Tensor, dim: Any = None) -> Tensor:
    """Removes the dimensions of size 1, all of them or the given ones."""
    shape = self._node.shape
    given = range(len(shape)) if dim is None else (
        dim if isinstance(dim, (tuple, list)) else (dim,))
    axes = {normalize_axis(axis, max(len(shape), 1)) for axis in given}
    kept = tuple(size for axis, size in enumerate(shape) if axis not in axes or size != 1)
    result: Tensor = _views.view(self, KilnTensor.reshape(self, kept))
    return result


def chunk(self: Tensor, chunks: int, dim: int = 0) -> Tuple[Tensor, ...]:
    """Returns up to `chunks` parts along a dimension; the last one may be smaller."""
    parts: Tuple[Tensor, ...] = _views.view(self, KilnTensor.chunk(self, chunks, dim))
    return parts


def split(self: Tensor, split_size: Any, dim: int = 0) -> Tuple[Tensor, ...]:
    """Returns parts of a size along a dimension (the last may be smaller), or of given sizes."""
    parts: Tuple[Tensor, ...] = _views.view(self, KilnTensor.split(self, split_size, dim))
    return parts


for _method in (view, squeeze, chunk, split):
    setattr(Tensor, _method.__name__, _method)


def backward(outputs: Sequence[Tuple[Tensor, Any]], create_graph: bool = False,
             inputs: Any = None) -> None:
    """Implements Tensor.backward, for outputs with their gradients, or None."""
    chosen = None if inputs is None else {
        id(tensor) for tensor in (inputs if isinstance(inputs, (list, tuple)) else [inputs])}
    ends = ends_of(outputs)
    with GradientMode(create_graph):
        flow = _flow.Flow(ends)
        for node, tensor in flow.leaves():
            if chosen is not None and id(tensor) not in chosen:
                continue
            slope = hooked(tensor, flow.hooked(node))
            if slope is None:
                continue
            before = tensor._grad
            tensor._grad = slope if before is None else before + beside(slope, before)
            for hook in list((getattr(tensor, "_after_hooks", None) or {}).values()):
                hook(tensor)


def ends_of(outputs: Sequence[Tuple[Tensor, Any]]) -> List[_flow.End]:
    """Returns the ends that gradients flow from, of tensors with their gradients, or None."""
    ends = []
    for output, gradient in outputs:
        upstream = None if gradient is None else convert(gradient)
        if upstream is None and output.numel() == 1 and output._node.shape:
            # PyTorch needs no gradient of a tensor with one element.
            upstream = adopt(KilnTensor(np.ones(output._node.shape), output.dtype))
        gradients.check_output(output, upstream)
        ends.append(_flow.End(output._node, upstream))
    return ends


def hooked(tensor: Tensor, slope: Any) -> Any:
    """Returns the gradient of a tensor after the hooks that it has as a leaf."""
    for hook in list((getattr(tensor, "_hooks", None) or {}).values()) if slope is not None else ():
        instead = hook(slope)
        slope = slope if instead is None else instead
    return slope


class GradientMode:
    """Switches gradients on or off."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted

    def __enter__(self) -> None:
        self._before = mode.gradients
        mode.gradients = self._wanted

    def __exit__(self, *_: Any) -> None:
        mode.gradients = self._before


# Text, in PyTorch's form.

OPTIONS = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}


def representation(tensor: Tensor) -> str:
    """Returns the text of a tensor."""
    ending = _ending(tensor)
    if mode.trace is not None:
        return f"tensor(..., size={tuple(tensor.shape)}{ending})"
    with no_grad():
        array = KilnTensor.numpy(tensor)
    return f"tensor({_text(array)}{ending})"


def _ending(tensor: Tensor) -> str:
    parts = []
    usual = (_defaults.get_default_dtype(), dtypes.int64, dtypes.bool_)
    if 0 in tensor._node.shape and len(tensor._node.shape) > 1:
        parts.append(f"size={tuple(tensor._node.shape)}")
    if tensor._node.home is not None and tensor.is_cuda:
        parts.append(f"device='{tensor.device}'")
    if tensor.dtype not in usual:
        parts.append(f"dtype=torch.{tensor.dtype.name}")
    if tensor._requires_grad:
        parts.append("requires_grad=True")
    elif tensor._node.tracked:
        parts.append(f"grad_fn={tensor.grad_fn!r}")
    return "".join(f", {part}" for part in parts)


def _text(array: "np.ndarray[Any, Any]") -> str:
    if not array.size:
        return "[]"
    edge: Any = OPTIONS["edgeitems"]
    large = array.size > (OPTIONS["threshold"] or 0)
    return np.array2string(
        array, separator=", ", prefix="tensor(", threshold=0 if large else array.size,
        edgeitems=edge, max_line_width=OPTIONS["linewidth"], formatter=_formatter(array))


def _formatter(array: "np.ndarray[Any, Any]") -> Any:
    if array.dtype.kind == "b":
        return {"bool": lambda value: f"{value!s:>5}" if array.ndim else str(value)}
    if array.dtype.kind != "f":
        width = max(len(str(int(array.min()))), len(str(int(array.max()))))
        return {"int": lambda value: f"{value:>{width if array.ndim else 1}d}"}
    digits: Any = OPTIONS["precision"]
    finite = np.abs(array[np.isfinite(array) & (array != 0)]).astype(np.float64)
    whole = bool((array[np.isfinite(array)] == np.ceil(array[np.isfinite(array)])).all())
    if finite.size:
        high, low = finite.max(), finite.min()
        scientific = high / low > 1000 or high > 1e8 or (not whole and low < 1e-4)
        if whole:
            scientific = high > 1e8
        if OPTIONS["sci_mode"] is not None:
            scientific = bool(OPTIONS["sci_mode"])
    else:
        scientific = False

    def text(value: Any) -> str:
        if not np.isfinite(value):
            return str(float(value))
        if scientific:
            return f"{value:.{digits}e}"
        return f"{value:.0f}." if whole else f"{value:.{digits}f}"

    width = max(len(text(value)) for value in array.reshape(-1)) if array.ndim else 0
    return {"float": lambda value: f"{text(value):>{width}}"}


ValuesAndIndices = reductions.ValuesAndIndices
