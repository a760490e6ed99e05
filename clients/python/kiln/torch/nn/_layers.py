"""Layers: the modules of kiln.nn, with PyTorch's arguments and registration."""

import inspect
from typing import Any, Dict, Sequence, Tuple

from kiln import nn as _kiln
from kiln._graph.gradient_mode import no_grad
from kiln.tensor import Tensor as KilnTensor
from kiln.torch._tensor import Tensor
from kiln.torch.nn import functional as F
from kiln.torch.nn._module import COUNTERPARTS, Module

# PyTorch's older arguments of losses, which come before `reduction`.
_OLD = ("size_average", "reduce", "reduction")
# The positions of arguments where PyTorch has others than Kiln.
_ORDERS: Dict[str, Tuple[str, ...]] = {
    "CrossEntropyLoss": ("weight", "size_average", "ignore_index", "reduce", "reduction",
                         "label_smoothing"),
    "NLLLoss": ("weight", "size_average", "ignore_index", "reduce", "reduction"),
    "BCELoss": ("weight", *_OLD), "BCEWithLogitsLoss": ("weight", *_OLD, "pos_weight"),
    "KLDivLoss": (*_OLD, "log_target"), "MSELoss": _OLD, "L1Loss": _OLD, "SoftMarginLoss": _OLD,
    "SmoothL1Loss": (*_OLD, "beta"), "HuberLoss": ("reduction", "delta"),
    "MultiLabelSoftMarginLoss": ("weight", *_OLD), "HingeEmbeddingLoss": ("margin", *_OLD),
    "MarginRankingLoss": ("margin", *_OLD), "CosineEmbeddingLoss": ("margin", *_OLD),
    "TripletMarginLoss": ("margin", "p", "eps", "swap", *_OLD),
    "PoissonNLLLoss": ("log_input", "full", "size_average", "eps", "reduce", "reduction"),
    "Embedding": ("num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type",
                  "scale_grad_by_freq", "sparse", "_weight", "_freeze", "device", "dtype"),
    "EmbeddingBag": ("num_embeddings", "embedding_dim", "max_norm", "norm_type",
                     "scale_grad_by_freq", "mode", "sparse", "_weight", "include_last_offset",
                     "padding_idx", "device", "dtype"),
    "RMSNorm": ("normalized_shape", "eps", "elementwise_affine", "device", "dtype"),
    "ConvTranspose1d": ("in_channels", "out_channels", "kernel_size", "stride", "padding",
                        "output_padding", "groups", "bias", "dilation", "padding_mode"),
    "TransformerEncoderLayer": ("d_model", "nhead", "dim_feedforward", "dropout", "activation",
                                "layer_norm_eps", "batch_first", "norm_first", "bias"),
    "TransformerEncoder": ("encoder_layer", "num_layers", "norm", "enable_nested_tensor",
                           "mask_check"),
}  # fmt: skip
_ORDERS["ConvTranspose2d"] = _ORDERS["ConvTranspose3d"] = _ORDERS["ConvTranspose1d"]
_ORDERS["TransformerDecoderLayer"] = _ORDERS["TransformerEncoderLayer"]
# Arguments without an effect here, with the only value that Kiln has, or None for any.
_IGNORED: Dict[str, Any] = {
    "size_average": None, "reduce": None, "sparse": None, "scale_grad_by_freq": False,
    "enable_nested_tensor": None, "mask_check": None, "padding_mode": "zeros", "inplace": None,
}  # fmt: skip


# Parameters and buffers that a layer may be without.
_PARAMETERS = ("weight", "bias", "in_proj_weight", "in_proj_bias", "q_proj_weight",
               "k_proj_weight", "v_proj_weight", "bias_k", "bias_v", "bias_ih", "bias_hh")
_BUFFERS = ("running_mean", "running_var", "num_batches_tracked")


def _reduction(options: Dict[str, Any]) -> None:
    average, reduce = options.get("size_average"), options.get("reduce")
    if average is not None or reduce is not None:
        options["reduction"] = F._reduction(options.get("reduction", "mean"), average, reduce)


class Layer(Module):
    """The base of the layers that are Kiln's."""

    _kiln_class: Any = None
    _names: Tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        Module._prepare(self)
        order = _ORDERS.get(type(self)._kiln_class.__name__)
        wanted = type(self)._names
        options = dict(kwargs)
        if order is not None:
            options.update(zip(order, args))
            args = ()
        elif len(args) > len(wanted):
            options.update(zip(("device", "dtype"), args[len(wanted):]))
            args = args[: len(wanted)]
        device, dtype = options.pop("device", None), options.pop("dtype", None)
        given: Dict[str, Any] = {
            name: options.pop(name) for name in ("_weight", "_freeze", "max_norm", "norm_type")
            if name in options}
        if "size_average" in options or "reduce" in options:
            _reduction(options)
        unbiased = "bias" not in wanted and options.pop("bias", True) is False
        for name in [name for name in options if name not in wanted]:
            value = options.pop(name)
            if name not in _IGNORED:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword "
                                f"argument {name!r}")
            if _IGNORED[name] is not None and value != _IGNORED[name]:
                raise NotImplementedError(f"{type(self).__name__} with {name}={value!r}")
        self._made_with = (args, dict(options))
        type(self)._kiln_class.__init__(self, *args, **options)
        if unbiased:
            self._remove_biases()
        self._register_state()
        self._finish(given)
        if type(self).reset_parameters is not Layer.reset_parameters:
            self.reset_parameters()
        if device is not None or dtype is not None:
            self.to(device=device, dtype=dtype)

    def _register_state(self) -> None:
        """Makes tensors that were given as arguments, such as a loss's weight, buffers."""
        for name, value in list(vars(self).items()):
            if isinstance(value, Tensor):
                self.register_buffer(name, vars(self).pop(name))
            elif value is None and name in _PARAMETERS:
                self.register_parameter(name, vars(self).pop(name))
            elif value is None and name in _BUFFERS:
                self.register_buffer(name, vars(self).pop(name))

    def _remove_biases(self) -> None:
        for module in self.modules():
            for name in list(module._parameters):
                if name.endswith("bias"):
                    module._parameters[name] = None

    def _finish(self, given: Dict[str, Any]) -> None:
        if given.get("max_norm") is not None:
            self.max_norm = given["max_norm"]
            self.norm_type = given.get("norm_type", 2.0)
        if given.get("_weight") is not None:
            self.weight.data = given["_weight"]

    def _arguments(self) -> Tuple[Any, Dict[str, Any]]:
        """Returns the arguments that the layer was made with."""
        found = vars(self).get("_made_with")
        if found is not None:
            return found  # type: ignore[no-any-return]
        # Made by another layer.
        options = {}
        for name in self._names:
            value = getattr(self, name, None)
            if isinstance(value, KilnTensor) or name == "bias":
                options[name] = value is not None
            elif value is not None and not isinstance(value, Module):
                options[name] = value
        return (), options

    def reset_parameters(self) -> None:
        """Draws the Parameters again, as when the layer was made."""
        args, options = self._arguments()
        fresh = COUNTERPARTS[type(self)._kiln_class](*args, **options)
        with no_grad():
            for (_, mine), (_, other) in zip(self.own_tensors(), fresh.own_tensors()):
                mine.copy_(other._cast(mine.dtype))

    def extra_repr(self) -> str:
        """Returns the arguments for repr()."""
        args, options = self._arguments()
        return ", ".join([*[repr(arg) for arg in args if not isinstance(arg, (KilnTensor, Module))],
                          *[f"{name}={value!r}" for name, value in options.items()
                            if not isinstance(value, (KilnTensor, Module))]])


def _layer(name: str) -> Any:
    kiln_class = getattr(_kiln, name)
    names = tuple(inspect.signature(kiln_class.__init__).parameters)[1:]
    doc = (kiln_class.__doc__ or "").partition("\n\n    >>>")[0].rstrip() + "\n"
    made = type(name, (Layer, kiln_class), {
        "_kiln_class": kiln_class, "_names": names, "__module__": __name__, "__doc__": doc,
        "__qualname__": name})
    COUNTERPARTS[kiln_class] = made
    return made


_OWN = ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "Module",
        "Parameter")
NAMES: Sequence[str] = sorted(
    name for name in _kiln.__all__ if name[0].isupper() and name not in _OWN)
LAYERS: Dict[str, Any] = {name: _layer(name) for name in NAMES}

_plain_embedding = LAYERS["Embedding"].forward


def _embedding(self: Any, input: Any) -> Any:
    """Returns the rows at indices; rows whose norm is above max_norm are scaled down first."""
    norm = vars(self).get("max_norm")
    if norm is None:
        return _plain_embedding(self, input)
    return F.embedding(input, self.weight, self.padding_idx, norm, self.norm_type)


def _from_pretrained(cls: Any, embeddings: Any, freeze: bool = True, padding_idx: Any = None,
                     max_norm: Any = None, norm_type: float = 2.0,
                     scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    """Returns an Embedding with these rows."""
    rows, columns = embeddings.shape
    made = cls(rows, columns, padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type)
    made.weight.data = embeddings
    made.weight.requires_grad_(not freeze)
    return made


LAYERS["Embedding"].forward = _embedding
LAYERS["Embedding"].from_pretrained = classmethod(_from_pretrained)
LAYERS["Embedding"].max_norm = None
LAYERS["Embedding"].scale_grad_by_freq = LAYERS["Embedding"].sparse = False


# Layers that compute functions of torch.nn.functional, and the attributes that are their options.
_COMPUTED_BY: Dict[str, Tuple[Any, Tuple[str, ...]]] = {
    "BCELoss": (F.binary_cross_entropy, ("weight", "reduction")),
    "SmoothL1Loss": (F.smooth_l1_loss, ("reduction", "beta")),
    "TripletMarginLoss": (F.triplet_margin_loss, ("margin", "p", "eps", "swap", "reduction")),
    "HingeEmbeddingLoss": (F.hinge_embedding_loss, ("margin", "reduction")),
    "MarginRankingLoss": (F.margin_ranking_loss, ("margin", "reduction")),
    "GaussianNLLLoss": (F.gaussian_nll_loss, ("full", "eps", "reduction")),
    "CosineSimilarity": (F.cosine_similarity, ("dim", "eps")),
    "PairwiseDistance": (F.pairwise_distance, ("p", "eps", "keepdim")),
    "Hardtanh": (F.hardtanh, ("min_val", "max_val")),
    "Softplus": (F.softplus, ("beta", "threshold")),
    "RReLU": (F.rrelu, ("lower", "upper", "training")),
    "AlphaDropout": (F.alpha_dropout, ("p", "training")),
    "GroupNorm": (F.group_norm, ("num_groups", "weight", "bias", "eps")),
    "LocalResponseNorm": (F.local_response_norm, ("size", "alpha", "beta", "k")),
}


def _computing(function: Any, options: Sequence[str]) -> Any:
    def forward(self: Any, *inputs: Any, **named: Any) -> Any:
        return function(*inputs, **named, **{option: getattr(self, option) for option in options})

    forward.__doc__ = function.__doc__
    return forward


for _name, (_function, _options) in _COMPUTED_BY.items():
    LAYERS[_name].forward = _computing(_function, _options)


def _along_dim(function: Any) -> Any:
    def forward(self: Any, input: Any) -> Any:
        args, options = self._arguments()
        given = args[0] if args else options.get("dim")
        return function(input, None if given is None else self.dim)

    forward.__doc__ = function.__doc__
    return forward


for _name, _function in (("Softmax", F.softmax), ("Softmin", F.softmin),
                         ("LogSoftmax", F.log_softmax)):
    LAYERS[_name].forward = _along_dim(_function)

_plain_instance_norm = LAYERS["InstanceNorm1d"].forward


def _instance_norm(self: Any, input: Any) -> Any:
    """Normalizes each channel of each image by its mean and standard deviation."""
    if self.training or self.running_mean is None:
        F.require_several_places(input if input.ndim > self._ranks[0] - 1 else input.unsqueeze(0))
    return _plain_instance_norm(self, input)


for _name in ("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"):
    LAYERS[_name].forward = _instance_norm


def _flatten_parameters(self: Any) -> None:
    """Does nothing: Kiln has no separate layout of weights."""


for _name in ("RNN", "LSTM", "GRU"):
    LAYERS[_name].flatten_parameters = _flatten_parameters
    LAYERS[_name].mode = property(lambda self: type(self).__name__ if type(
        self).__name__ != "RNN" else f"RNN_{self._kind.upper()}")
