"""Layers that kiln.nn lacks, over the functions of torch.nn.functional."""

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from kiln.torch import _shaping
from kiln.torch.nn import functional as F
from kiln.torch.nn._containers import ModuleList, Sequential
from kiln.torch.nn._layers import LAYERS
from kiln.torch.nn._module import Module

_Options = Tuple[Tuple[str, Any], ...]
_REQUIRED = object()


def _module(name: str, function: Callable[..., Any], inputs: int, *arguments: Tuple[str, Any],
            base: Any = Module, doc: str = "") -> Any:
    """Returns a module whose attributes are a function's options."""

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        given = {**dict(zip([argument for argument, _ in arguments], args)), **kwargs}
        known = {argument for argument, _ in arguments}
        unknown = [argument for argument in given if argument not in known]
        missing = [argument for argument, usual in arguments
                   if usual is _REQUIRED and argument not in given]
        if unknown or missing or len(args) > len(arguments):
            raise TypeError(f"{name}() with {unknown or args}, without {missing}")
        for argument, usual in arguments:
            setattr(self, argument, given.get(argument, usual))
            if hasattr(getattr(self, argument), "_node"):
                self.register_buffer(argument, vars(self).pop(argument))

    def forward(self: Any, *inputs: Any, **more: Any) -> Any:
        options = {argument: getattr(self, argument) for argument, _ in arguments}
        return function(*inputs, **options, **more)

    def extra_repr(self: Any) -> str:
        return ", ".join(f"{argument}={getattr(self, argument)!r}" for argument, _ in arguments
                         if not hasattr(getattr(self, argument), "_node"))

    return type(name, (base,), {
        "__init__": init, "forward": forward, "extra_repr": extra_repr, "__module__": __name__,
        "__qualname__": name, "__doc__": doc or (function.__doc__ or name)})


_loss: _Options = (("size_average", None), ("reduce", None), ("reduction", "mean"))


def _pooling(rank: int) -> Any:
    return _module(
        f"MaxPool{rank}d", getattr(F, f"max_pool{rank}d"), 1, ("kernel_size", _REQUIRED),
        ("stride", None), ("padding", 0), ("dilation", 1), ("return_indices", False),
        ("ceil_mode", False))


def _unpooling(rank: int) -> Any:
    return _module(f"MaxUnpool{rank}d", getattr(F, f"max_unpool{rank}d"), 2,
                   ("kernel_size", _REQUIRED), ("stride", None), ("padding", 0))


def _adaptive(rank: int) -> Any:
    return _module(f"AdaptiveMaxPool{rank}d", getattr(F, f"adaptive_max_pool{rank}d"), 1,
                   ("output_size", _REQUIRED), ("return_indices", False))


class FeatureAlphaDropout(Module):
    """alpha_dropout of whole channels."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p, self.inplace = p, inplace

    def forward(self, input: Any) -> Any:
        """Returns the input with random channels set to the lowest value."""
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)


class TripletMarginWithDistanceLoss(Module):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""

    def __init__(self, *, distance_function: Optional[Callable[..., Any]] = None,
                 margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> None:
        super().__init__()
        self.distance_function, self.margin = distance_function, margin
        self.swap, self.reduction = swap, reduction

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        """Returns the loss."""
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function,
            margin=self.margin, swap=self.swap, reduction=self.reduction)


class CTCLoss(Module):
    """-log of the probability of all alignments of targets (Graves et al., 2006)."""

    def __init__(self, blank: int = 0, reduction: str = "mean",
                 zero_infinity: bool = False) -> None:
        super().__init__()
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def forward(self, log_probs: Any, targets: Any, input_lengths: Any,
                target_lengths: Any) -> Any:
        """Returns the loss."""
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank,
                          self.reduction, self.zero_infinity)


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over clusters of classes, rare ones in smaller spaces (Grave et al., 2016)."""

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int],
                 div_value: float = 4.0, head_bias: bool = False, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.n_clusters = len(self.cutoffs) - 1
        self.head = LAYERS["Linear"](in_features, self.cutoffs[0] + self.n_clusters, head_bias,
                                     device=device, dtype=dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            inner = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(Sequential(
                LAYERS["Linear"](in_features, inner, bias=False, device=device, dtype=dtype),
                LAYERS["Linear"](inner, classes, bias=False, device=device, dtype=dtype)))

    def forward(self, input: Any, target: Any) -> Any:
        """Returns (the log probabilities of the targets, their mean negative)."""
        batched = input.ndim == 2
        rows = self.log_prob(input if batched else input.unsqueeze(0))
        labels = target if batched else target.unsqueeze(0)
        output = rows.gather(1, labels.unsqueeze(1)).squeeze(1)
        return output if batched else output.squeeze(0), -output.mean()

    def log_prob(self, input: Any) -> Any:
        """Returns the log probabilities of all classes."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.cutoffs[0]]]
        for i, tail in enumerate(self.tail):
            parts.append(F.log_softmax(tail(input), 1) + head[:, self.cutoffs[0] + i].unsqueeze(1))
        return _shaping.cat(parts, 1)

    def predict(self, input: Any) -> Any:
        """Returns the most probable classes."""
        return self.log_prob(input).argmax(1)


class _Lazy(Module):
    """A module that becomes another one when it first sees its input."""

    _target: Any = None
    _axis = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        if type(self)._target.__name__.startswith("InstanceNorm") and len(args) < 3:
            kwargs = {"affine": True, "track_running_stats": True, **kwargs}
        self._lazy = (args, kwargs)

    def forward(self, *inputs: Any) -> Any:
        """Makes the layer for the size of this input, and applies it."""
        args, kwargs = self._lazy
        training, target = self.training, type(self)._target
        size = inputs[0].shape[self._place(inputs[0], target)]
        self.__class__ = target
        target.__init__(self, size, *args, **kwargs)
        self.train(training)
        return self.forward(*inputs)

    @staticmethod
    def _place(input: Any, target: Any) -> int:
        if target is LAYERS["Linear"]:
            return -1
        rank = int(target.__name__[-2])
        return input.ndim - rank - 1 if target.__name__.startswith("Conv") or input.ndim > 2 else 1


def _lazy(name: str) -> Any:
    return type(f"Lazy{name}", (_Lazy,), {
        "_target": LAYERS[name], "__module__": __name__, "__qualname__": f"Lazy{name}",
        "__doc__": f"A {name} whose input size is that of its first input."})


_BatchNorm: Any = LAYERS["BatchNorm2d"]


class SyncBatchNorm(_BatchNorm):  # type: ignore[misc]
    """Batch normalization of any number of dimensions: in one process the batch is whole."""

    _ranks = (2, 3, 4, 5)

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: Optional[float] = 0.1,
                 affine: bool = True, track_running_stats: bool = True,
                 process_group: Any = None, device: Any = None, dtype: Any = None) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device,
                         dtype=dtype)

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Returns the module: its batch norms see whole batches already."""
        return module


class LinearCrossEntropyLoss(Module):
    """The cross entropy of a linear layer's results."""

    def __init__(self, in_features: int, num_classes: int, *, bias: bool = False,
                 **options: Any) -> None:
        super().__init__()
        device, dtype = options.pop("device", None), options.pop("dtype", None)
        out = options.pop("out_features", ()) or ()
        self._sizes = (num_classes, *((out,) if isinstance(out, int) else out))
        rows = 1
        for size in self._sizes:
            rows *= size
        self.linear = LAYERS["Linear"](in_features, rows, bias, device=device, dtype=dtype)
        self.register_buffer("weight", options.pop("weight", None))
        self._options = options

    def forward(self, input: Any, target: Any) -> Any:
        """Returns the loss."""
        weight, bias = self.linear.weight, self.linear.bias
        return F.linear_cross_entropy(
            input, weight.reshape(*self._sizes, -1), target,
            linear_bias=None if bias is None else bias.reshape(self._sizes), weight=self.weight,
            **self._options)


class LinearCrossEntropyOptions:
    """Settings of PyTorch's own implementation, which have no effect."""

    def __init__(self, **settings: Any) -> None:
        vars(self).update(settings)


class DataParallel(Module):
    """A module that PyTorch runs on several GPUs at once; here on that of its Parameters."""

    def __init__(self, module: Any, device_ids: Any = None, output_device: Any = None,
                 dim: int = 0) -> None:
        super().__init__()
        self.module, self.dim = module, dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Calls the module."""
        return self.module(*inputs, **kwargs)


class RNNBase(Module):
    """RNNBase("LSTM", …) is an LSTM; the modes are "LSTM", "GRU", "RNN_TANH" and "RNN_RELU"."""

    def __new__(cls, mode: str, *args: Any, **kwargs: Any) -> Any:
        if mode in ("LSTM", "GRU"):
            return LAYERS[mode](*args, **kwargs)
        return LAYERS["RNN"](*args, nonlinearity=mode.partition("_")[2].lower(), **kwargs)


def _fractional(rank: int) -> Any:
    return _module(
        f"FractionalMaxPool{rank}d", getattr(F, f"fractional_max_pool{rank}d"), 1,
        ("kernel_size", _REQUIRED), ("output_size", None), ("output_ratio", None),
        ("return_indices", False), ("_random_samples", None))


MORE: Dict[str, Any] = {
    **{f"FractionalMaxPool{rank}d": _fractional(rank) for rank in (2, 3)},
    "DataParallel": DataParallel, "LinearCrossEntropyLoss": LinearCrossEntropyLoss,
    "LinearCrossEntropyOptions": LinearCrossEntropyOptions, "RNNBase": RNNBase,
    **{f"MaxPool{rank}d": _pooling(rank) for rank in (1, 2, 3)},
    **{f"MaxUnpool{rank}d": _unpooling(rank) for rank in (1, 2, 3)},
    **{f"AdaptiveMaxPool{rank}d": _adaptive(rank) for rank in (1, 2, 3)},
    **{f"Lazy{name}": _lazy(name) for name in (
        "Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
        "ConvTranspose3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d",
        "InstanceNorm2d", "InstanceNorm3d")},
    "LPPool3d": _module("LPPool3d", F.lp_pool3d, 1, ("norm_type", _REQUIRED),
                        ("kernel_size", _REQUIRED), ("stride", None), ("ceil_mode", False)),
    "MultiMarginLoss": _module("MultiMarginLoss", F.multi_margin_loss, 2, ("p", 1),
                               ("margin", 1.0), ("weight", None), *_loss),
    "MultiLabelMarginLoss": _module("MultiLabelMarginLoss", F.multilabel_margin_loss, 2, *_loss),
    "FeatureAlphaDropout": FeatureAlphaDropout, "CTCLoss": CTCLoss,
    "TripletMarginWithDistanceLoss": TripletMarginWithDistanceLoss,
    "AdaptiveLogSoftmaxWithLoss": AdaptiveLogSoftmaxWithLoss, "SyncBatchNorm": SyncBatchNorm,
    "NLLLoss2d": LAYERS["NLLLoss"],
}  # fmt: skip
