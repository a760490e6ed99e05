"""PyTorch's names and semantics on Kiln: `python -m kiln.torch train.py` runs a PyTorch script.

    import kiln.torch as torch

Everything that a tensor of this package takes part in gives tensors of this package. README.md in
this folder explains how, and docs/guides/from-pytorch.md lists the differences from PyTorch.
"""

import builtins as _builtins
from math import e, inf, nan, pi
from typing import TYPE_CHECKING, Any

from kiln._array_api import data_types as _data_types
from kiln._array_api.manipulation import broadcast_shapes as _broadcast_shapes
from kiln._basics import dtypes as _dtypes
from kiln._basics.dtype import DType as dtype  # noqa: N813
from kiln._basics.errors import ResourceExhausted as OutOfMemoryError
from kiln._basics.version import __version__ as _kiln_version
from kiln._graph.gradient_mode import enable_grad, is_grad_enabled
from kiln._graph.gradient_mode import no_grad as _no_grad
from kiln._graph.matmul_precision import (
    get_float32_matmul_precision,
    set_float32_matmul_precision,
)
from kiln.torch import (
    _creation,
    _defaults,
    _functions,
    _further,
    _shaping,
    _tensor,
    amp,
    autograd,
    backends,
    cuda,
    distributions,
    func,
    linalg,
    nn,
    optim,
    random,
    serialization,
    special,
    testing,
    utils,
)
from kiln.torch._creation import (
    Generator,
    arange,
    as_tensor,
    asarray,
    bernoulli,
    binomial,
    default_generator,
    empty,
    empty_like,
    empty_permuted,
    empty_strided,
    eye,
    from_dlpack,
    from_numpy,
    frombuffer,
    full,
    full_like,
    get_rng_state,
    initial_seed,
    linspace,
    logspace,
    manual_seed,
    multinomial,
    normal,
    ones,
    ones_like,
    poisson,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    scalar_tensor,
    seed,
    set_rng_state,
    tensor,
    vander,
    zeros,
    zeros_like,
)
from kiln.torch._creation import range_ as range
from kiln.torch._defaults import (
    get_default_dtype,
    set_default_dtype,
    set_default_tensor_type,
)
from kiln.torch._device import device, get_default_device, set_default_device
from kiln.torch._dialect import kind as _kind_of
from kiln.torch._grad import inference_mode, is_inference_mode_enabled, set_grad_enabled
from kiln.torch._size import Size, words
from kiln.torch._tensor import Strided as layout  # noqa: N813
from kiln.torch._tensor import Tensor, strided
from kiln.torch.amp import GradScaler, autocast, is_autocast_available, is_autocast_enabled
from kiln.torch.func import vmap
from kiln.torch.nn import functional as _f
from kiln.torch.serialization import load, save

# Kiln's own version follows the one whose names this package has.
__version__ = f"2.15.0+kiln{_kiln_version}"

# Dtypes. Within this package `bool`, `int` and `float` are these, so Python's own are builtins'.
globals().update(_dtypes.BY_NAME)
globals().update(_defaults.NAMES)
globals().update(_creation.LEGACY)
globals().update(_functions.FUNCTIONS)
globals().update(_further.FUNCTIONS)


def no_grad(orig_func: Any = None) -> Any:
    """Turns gradients off: a context and a decorator, with or without brackets.

    >>> with torch.no_grad():
    ...     print((torch.ones(1, requires_grad=True) * 2).requires_grad)
    False
    """
    return _no_grad() if orig_func is None else _no_grad()(orig_func)


class memory_format:  # noqa: N801
    """A layout of elements, which has no effect: Kiln chooses the layout of values itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format(
    "preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")


def finfo(type: Any = None) -> Any:
    """Returns the properties of a float dtype.

    >>> torch.finfo(torch.float32).bits
    32
    """
    return FloatInfo(_defaults.get_default_dtype() if type is None else type)


class FloatInfo:
    """The properties of a float dtype."""

    def __init__(self, kind: Any) -> None:
        found = _data_types.finfo(_defaults.as_dtype(kind))
        self.bits, self.eps, self.max, self.min = found.bits, found.eps, found.max, found.min
        self.tiny = self.smallest_normal = found.smallest_normal
        self.resolution = 10.0 ** _log10(found.eps)
        self.dtype = _defaults.as_dtype(kind).name


def _log10(value: Any) -> Any:
    return len(f"{1 / value:.0f}") * -1 + 1


def iinfo(type: Any) -> Any:
    """Returns the properties of an integer dtype.

    >>> torch.iinfo(torch.int8).max
    127
    """
    return _data_types.iinfo(_defaults.as_dtype(type))


def can_cast(from_: Any, to: Any) -> _builtins.bool:
    """Returns whether PyTorch casts one dtype to another in place."""
    return _kind_of(_defaults.as_dtype(from_)) <= _kind_of(_defaults.as_dtype(to))


def promote_types(type1: Any, type2: Any) -> Any:
    """Returns the common dtype of two dtypes.

    >>> torch.promote_types(torch.int32, torch.float16)
    kiln.float16
    """
    return _dtypes.promote(_defaults.as_dtype(type1), _defaults.as_dtype(type2))


def result_type(tensor1: Any, tensor2: Any) -> Any:
    """Returns the dtype of the sum of two tensors or numbers.

    >>> torch.result_type(torch.ones(2, dtype=torch.int32), 1.5)
    kiln.float32
    """
    if isinstance(tensor1, Tensor) or isinstance(tensor2, Tensor):
        return (tensor1 * 1 + tensor2 * 1).dtype
    return (tensor(tensor1) + tensor(tensor2)).dtype


def broadcast_shapes(*shapes: Any) -> Size:
    """Returns the common shape.

    >>> torch.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    return Size(_broadcast_shapes(*[(shape,) if isinstance(shape, _builtins.int) else tuple(shape)
                                    for shape in shapes]))


def compile(model: Any = None, **_: Any) -> Any:
    """Returns the function itself: Kiln compiles every graph."""
    return model if model is not None else lambda function: function


def set_printoptions(precision: Any = None, threshold: Any = None, edgeitems: Any = None,
                     linewidth: Any = None, profile: Any = None, sci_mode: Any = None) -> None:
    """Sets how tensors are printed."""
    profiles: Any = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80),
                     "full": (4, inf, 3, 80)}
    if profile is not None:
        _tensor.OPTIONS.update(zip(("precision", "threshold", "edgeitems", "linewidth"),
                                   profiles[profile]))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems,
             "linewidth": linewidth, "sci_mode": sci_mode}
    _tensor.OPTIONS.update({name: value for name, value in given.items() if value is not None})


_threads = {"intra": 1, "inter": 1, "deterministic": False, "warn": False}


def get_num_threads() -> Any:
    """Returns the number that set_num_threads() was given: the daemon has its own threads."""
    return _threads["intra"]


def set_num_threads(number: Any) -> None:
    """Accepts a number of threads: the daemon's configuration has them."""
    _threads["intra"] = number


def get_num_interop_threads() -> Any:
    """Returns the number that set_num_interop_threads() was given."""
    return _threads["inter"]


def set_num_interop_threads(number: Any) -> None:
    """Accepts a number of threads: the daemon's configuration has them."""
    _threads["inter"] = number


def use_deterministic_algorithms(mode: Any, *, warn_only: Any = False) -> None:
    """Accepts the choice: a program gives the same results on the same device anyway."""
    _threads["deterministic"] = _builtins.bool(mode)


def are_deterministic_algorithms_enabled() -> Any:
    """Returns what use_deterministic_algorithms() was given."""
    return _threads["deterministic"]


def set_flush_denormal(mode: Any) -> Any:
    """Returns whether the choice holds: denormal numbers are not flushed."""
    return not mode


def is_warn_always_enabled() -> Any:
    """Returns what set_warn_always() was given."""
    return _threads["warn"]


def set_warn_always(mode: Any) -> None:
    """Accepts the choice."""
    _threads["warn"] = _builtins.bool(mode)


def real(input: Any) -> Any:
    """Returns the tensor itself: it is real."""
    return _tensor.convert(input)


def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: Any = 1) -> Any:
    """Returns the numerical derivatives along dimensions, second order inside."""
    x = _tensor.convert(input)
    axes = _builtins.range(x.ndim) if dim is None else (
        [dim] if isinstance(dim, _builtins.int) else dim)
    found = []
    for place, axis in enumerate(axes):
        step = spacing[place] if isinstance(spacing, (list, tuple)) else spacing
        size = x.shape[axis]
        inside = (x.narrow(axis, 2, size - 2) - x.narrow(axis, 0, size - 2)) / (2 * step)
        first = (x.narrow(axis, 1, 1) - x.narrow(axis, 0, 1)) / step
        last = (x.narrow(axis, size - 1, 1) - x.narrow(axis, size - 2, 1)) / step
        found.append(_shaping.cat([first, inside, last], axis))
    return tuple(found)


def _windowed(name: str, *weights: Any) -> Any:
    def window(window_length: Any, periodic: Any = True, **options: Any) -> Any:
        given = options.get("alpha"), options.get("beta")
        used = weights if given[0] is None else (given[0], given[1])
        points = window_length if periodic else window_length - 1
        place = arange(window_length, dtype=_dtypes.float64) * (2 * pi / _builtins.max(points, 1))
        total = place * 0
        for i, weight in enumerate(used):
            total = total + (-1) ** i * weight * (place * i).cos()
        if window_length == 1:
            total = total * 0 + 1
        return _creation.finish(total._cast(_kind(options)), options.get("device"),
                                options.get("requires_grad", False))

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"Returns a {name.partition('_')[0]} window."
    return window


hann_window = _windowed("hann_window", 0.5, 0.5)
hamming_window = _windowed("hamming_window", 0.54, 0.46)
blackman_window = _windowed("blackman_window", 0.42, 0.5, 0.08)


def _kind(options: Any) -> Any:
    wanted = options.get("dtype")
    return _defaults.get_default_dtype() if wanted is None else _defaults.as_dtype(wanted)


def bartlett_window(window_length: Any, periodic: Any = True, **options: Any) -> Any:
    """Returns a Bartlett window."""
    points = window_length if periodic else window_length - 1
    place = arange(window_length, dtype=_dtypes.float64) * (2 / _builtins.max(points, 1))
    return (1 - (place - 1).abs())._cast(_kind(options))


def norm_except_dim(v: Any, pow: Any = 2, dim: Any = 0) -> Any:
    """Returns the norm over all dimensions except one."""
    axes = tuple(axis for axis in _builtins.range(v.ndim) if axis != dim)
    return v.norm(pow, axes, True)


# Functions of networks that are in `torch`, too.
_NETWORK = words(
    "adaptive_avg_pool1d alpha_dropout avg_pool1d bilinear celu celu_ "
    "channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d "
    "conv_transpose3d cosine_similarity dropout "
    "feature_alpha_dropout group_norm hardshrink layer_norm "
    "max_pool1d max_pool1d_with_indices max_pool2d max_pool3d "
    "pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu rms_norm "
    "rrelu rrelu_ selu selu_ sigmoid softmax tanh log_softmax threshold threshold_ "
    "native_channel_shuffle"
)
globals().update({_name: getattr(_f, _name) for _name in _NETWORK})
globals().update({_name: _functions.FUNCTIONS[_name] for _name in ("relu_", "tanh_", "sigmoid_")})


def _numbered(name: str) -> Any:
    """Returns a loss whose reduction is a number: 0 for "none", 1 for "mean", 2 for "sum"."""
    loss = getattr(_f, name)

    def numbered(*args: Any, reduction: Any = 0, **options: Any) -> Any:
        if args and name != "triplet_margin_loss" and isinstance(args[-1], _builtins.int) and (
                not isinstance(args[-1], _builtins.bool)) and len(args) > 3:
            *args, reduction = args  # type: ignore[assignment]
        return loss(*args, reduction=("none", "mean", "sum")[reduction], **options)

    numbered.__name__ = numbered.__qualname__ = name
    numbered.__doc__ = loss.__doc__
    return numbered


cosine_embedding_loss, hinge_embedding_loss = (
    _numbered("cosine_embedding_loss"), _numbered("hinge_embedding_loss"))
margin_ranking_loss, triplet_margin_loss = (
    _numbered("margin_ranking_loss"), _numbered("triplet_margin_loss"))
ctc_loss = _numbered("ctc_loss")


Event, Stream, AcceleratorError = cuda.Event, cuda.Stream, OutOfMemoryError


def adaptive_max_pool1d(input: Any, output_size: Any) -> Any:
    """Returns the largest elements of windows, and where they are."""
    return _f.adaptive_max_pool1d(input, output_size, True)


def constant_pad_nd(input: Any, pad: Any, value: Any = 0) -> Any:
    """Pads with a number."""
    return _f.pad(input, pad, "constant", value)


def embedding(weight: Any, indices: Any, padding_idx: Any = -1, scale_grad_by_freq: Any = False,
              sparse: Any = False) -> Any:
    """Returns the rows of weight at indices."""
    return _f.embedding(indices, weight, None if padding_idx == -1 else padding_idx)


def batch_norm(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any,
               training: Any, momentum: Any, eps: Any, cudnn_enabled: Any = False) -> Any:
    """Normalizes each channel."""
    return _f.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def binary_cross_entropy_with_logits(input: Any, target: Any, weight: Any = None,
                                     pos_weight: Any = None, reduction: Any = 1) -> Any:
    """-log of the probability that sigmoid(input) assigns to target."""
    names = ("none", "mean", "sum")
    how = names[reduction] if isinstance(reduction, _builtins.int) else reduction
    return _f.binary_cross_entropy_with_logits(input, target, weight, reduction=how,
                                               pos_weight=pos_weight)


class _Version:
    """torch.version."""

    __version__ = __version__
    cuda = None
    hip = None
    debug = False
    git_version = "kiln"


version = _Version()

__all__ = [
    "AcceleratorError", "Event", "Generator", "GradScaler", "OutOfMemoryError", "Size",
    "Stream", "Tensor", "adaptive_max_pool1d", "amp", "arange",
    "are_deterministic_algorithms_enabled", "as_tensor", "asarray", "autocast", "autograd",
    "backends", "bartlett_window", "batch_norm", "bernoulli",
    "binary_cross_entropy_with_logits", "binomial", "blackman_window", "broadcast_shapes",
    "can_cast", "channels_last", "channels_last_3d", "compile", "constant_pad_nd",
    "contiguous_format", "cosine_embedding_loss", "ctc_loss", "cuda", "default_generator",
    "device", "distributions", "dtype", "e", "embedding", "empty", "empty_like", "empty_permuted",
    "empty_strided", "enable_grad", "eye", "finfo", "from_dlpack", "from_numpy", "frombuffer",
    "full", "full_like", "func", "get_default_device", "get_default_dtype",
    "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads",
    "get_rng_state", "gradient", "hamming_window", "hann_window", "hinge_embedding_loss",
    "iinfo", "inf", "inference_mode", "initial_seed", "is_autocast_available",
    "is_autocast_enabled", "is_grad_enabled", "is_inference_mode_enabled",
    "is_warn_always_enabled", "layout", "linalg", "linspace", "load", "logspace", "manual_seed",
    "margin_ranking_loss", "memory_format", "multinomial", "nan", "nn", "no_grad",
    "norm_except_dim", "normal", "ones", "ones_like", "optim", "pi", "poisson",
    "preserve_format", "promote_types", "rand", "rand_like", "randint", "randint_like", "randn",
    "randn_like", "random", "randperm", "range", "real", "result_type", "save", "scalar_tensor",
    "seed", "serialization", "special", "testing", "set_default_device", "set_default_dtype",
    "set_default_tensor_type", "set_float32_matmul_precision", "set_flush_denormal",
    "set_grad_enabled", "set_num_interop_threads", "set_num_threads", "set_printoptions",
    "set_rng_state", "set_warn_always", "strided", "tensor", "triplet_margin_loss",
    "use_deterministic_algorithms", "utils", "vander", "version", "vmap", "zeros", "zeros_like",
    *_dtypes.BY_NAME, *_defaults.NAMES, *_creation.LEGACY, *_functions.FUNCTIONS,
    *_further.FUNCTIONS, *_NETWORK,
]  # fmt: skip

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

