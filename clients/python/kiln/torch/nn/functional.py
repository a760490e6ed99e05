"""torch.nn.functional: Kiln's functions with PyTorch's arguments."""

import math
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from kiln import functional as _f
from kiln._basics import dtypes as _dtypes
from kiln._basics.errors import InvalidArgument
from kiln._tensor.selection import required
from kiln.functional import (  # those whose arguments are PyTorch's
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    bilinear,
    channel_shuffle,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    fold,
    gelu,
    glu,
    hardshrink,
    layer_norm,
    linear,
    logsigmoid,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    pixel_shuffle,
    pixel_unshuffle,
    prelu,
    scaled_dot_product_attention,
    softshrink,
    softsign,
    tanhshrink,
    unfold,
)
from kiln.functional._arguments import spread as _spread
from kiln.tensor import Tensor as KilnTensor
from kiln.torch import _creation, _pointwise, _products, _shaping
from kiln.torch._scalars import as_rows
from kiln.torch._tensor import convert

native_channel_shuffle = channel_shuffle
softmax, log_softmax = _pointwise.softmax, _pointwise.log_softmax


def _activation(name: str, function: Callable[..., Any], *options: str) -> Callable[..., Any]:
    """Returns an activation with its options and `inplace`."""

    def activation(input: Any, *args: Any, inplace: bool = False, **kwargs: Any) -> Any:
        given = dict(zip(options, args))
        if len(args) > len(options):
            inplace = bool(args[len(options)])
        result = function(convert(input), **given, **kwargs)
        return input._in_place(result) if inplace else result

    activation.__name__ = activation.__qualname__ = name
    activation.__doc__ = function.__doc__
    return activation


relu = _activation("relu", _f.relu)
relu6 = _activation("relu6", _f.relu6)
elu = _activation("elu", _f.elu, "alpha")
selu = _activation("selu", _f.selu)
celu = _activation("celu", _f.celu, "alpha")
leaky_relu = _activation("leaky_relu", _f.leaky_relu, "negative_slope")


def _rrelu(input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3,
           training: bool = False) -> Any:
    """leaky_relu with a slope drawn between the bounds in training, otherwise with their mean."""
    if lower > upper:
        raise InvalidArgument(f"rrelu between {lower} and {upper}; lower must not be above upper")
    return _f.rrelu(input, lower, upper, training)


rrelu = _activation("rrelu", _rrelu, "lower", "upper", "training")


def _hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """Limits x to [min_val, max_val]."""
    if min_val == max_val:
        return input.clamp(min_val, max_val)
    return _f.hardtanh(input, min_val, max_val)


hardtanh = _activation("hardtanh", _hardtanh, "min_val", "max_val")
hardswish = _activation("hardswish", _f.hardswish)
hardsigmoid = _activation("hardsigmoid", _f.hardsigmoid)
silu = _activation("silu", _f.silu)
mish = _activation("mish", _f.mish)
threshold = _activation("threshold", _f.threshold, "threshold", "value")


def _changing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def changing(input: Any, *args: Any, **kwargs: Any) -> Any:
        return function(input, *args, inplace=True, **kwargs)

    changing.__name__ = changing.__qualname__ = name
    changing.__doc__ = f"As {name[:-1]}(), but changes its argument."
    return changing


relu_, elu_, selu_, celu_ = (_changing("relu_", relu), _changing("elu_", elu),
                             _changing("selu_", selu), _changing("celu_", celu))
leaky_relu_, rrelu_ = _changing("leaky_relu_", leaky_relu), _changing("rrelu_", rrelu)
hardtanh_, threshold_ = _changing("hardtanh_", hardtanh), _changing("threshold_", threshold)


def sigmoid(input: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return convert(input).sigmoid()


def tanh(input: Any) -> Any:
    """The hyperbolic tangent."""
    return convert(input).tanh()


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(beta * x)) / beta; x where beta * x is above threshold."""
    x = convert(input)
    if beta > 0:
        return _f.softplus(x, beta, threshold)
    return x.where(x * beta > threshold, (x * beta).exp().log1p() / beta)


def softmin(input: Any, dim: Optional[int] = None, dtype: Any = None) -> Any:
    """The softmax of -x."""
    return softmax(-convert(input), dim, dtype)


@as_rows
def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10,
                   dim: int = -1) -> Any:
    """Returns the softmax of logits plus Gumbel noise; one-hot if `hard`."""
    return _f.gumbel_softmax(convert(logits), tau, hard, dim)


def _dropping(name: str, function: Callable[..., Any], training: bool) -> Callable[..., Any]:
    usual = training

    def dropout(input: Any, p: float = 0.5, training: bool = usual, inplace: bool = False) -> Any:
        result = function(convert(input), p, training)
        return input._in_place(result) if inplace else result

    dropout.__name__ = dropout.__qualname__ = name
    dropout.__doc__ = function.__doc__
    return dropout


def _feature_alpha(input: Any, p: float, training: bool) -> Any:
    """alpha_dropout of whole channels."""
    if not training or p == 0:
        return input * 1
    scale, shift = 1.0507009873554805, 1.6732632423543772
    low = -scale * shift
    kept = (_creation.rand(*input.shape[:2], *[1] * (input.ndim - 2)) >= p)._cast(input.dtype)
    factor = ((1 - p) * (1 + p * low ** 2)) ** -0.5
    return (input * kept + (1 - kept) * low) * factor - low * p * factor


dropout = _dropping("dropout", _f.dropout, True)
dropout1d = _dropping("dropout1d", _f.dropout1d, True)
dropout2d = _dropping("dropout2d", _f.dropout2d, True)
dropout3d = _dropping("dropout3d", _f.dropout3d, True)


def _alpha_dropout(input: Any, p: float, training: bool) -> Any:
    """dropout that keeps the mean and the variance of selu's results."""
    return input * 0 if training and p == 1 else _f.alpha_dropout(input, p, training)


alpha_dropout = _dropping("alpha_dropout", _alpha_dropout, False)
feature_alpha_dropout = _dropping("feature_alpha_dropout", _feature_alpha, False)


def rms_norm(input: Any, normalized_shape: Sequence[int], weight: Any = None,
             eps: Optional[float] = None) -> Any:
    """Divides by the root of the mean square plus eps, over the last dimensions."""
    return _f.rms_norm(convert(input), tuple(normalized_shape), weight, eps)


@as_rows
def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """Divides by the p-norm along a dimension, or by eps if that is larger."""
    x = convert(input)
    result = _f.normalize(x, p, dim, eps) if isinstance(dim, int) and p > 0 else (
        x / x.norm(p, dim, True).clamp(min=eps))
    return result if out is None else out.copy_(result)


def batch_norm(input: Any, running_mean: Any, running_var: Any, weight: Any = None,
               bias: Any = None, training: bool = False, momentum: float = 0.1,
               eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel (dimension 1)."""
    if training and eps <= 0:
        raise InvalidArgument(f"batch_norm in training with an eps of {eps}; it must be above 0")
    return _f.batch_norm(convert(input), running_mean, running_var, weight, bias, training,
                         momentum, eps)


def instance_norm(input: Any, running_mean: Any = None, running_var: Any = None,
                  weight: Any = None, bias: Any = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Any:
    """Normalizes each channel of each image by its mean and standard deviation."""
    x = convert(input)
    if use_input_stats:
        require_several_places(x)
    return _f.instance_norm(x, running_mean, running_var, weight, bias, use_input_stats, momentum,
                            eps)


def require_several_places(x: Any) -> None:
    """Raises InvalidArgument if an image has only one spatial element."""
    if math.prod(x.shape[2:]) == 1:
        raise InvalidArgument(
            f"instance_norm in training of shape {tuple(x.shape)}; it needs more than one spatial "
            "element")


def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None,
               eps: float = 1e-5) -> Any:
    """Normalizes each group of channels by its mean and standard deviation."""
    x = convert(input)
    require_several_in_group(x, num_groups)
    return _f.group_norm(x, num_groups, weight, bias, eps)


def require_several_in_group(x: Any, groups: int) -> None:
    """Raises InvalidArgument if there is one image, with one value per group."""
    if x.ndim > 1 and x.numel() == groups:
        raise InvalidArgument(
            f"group_norm of shape {tuple(x.shape)} in {groups} groups; it needs more than one "
            "value a group")


def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75,
                        k: float = 1.0) -> Any:
    """x / (k + alpha * the mean of x² over size neighbouring channels) to the power beta."""
    x = convert(input)
    if x.ndim < 3:
        raise InvalidArgument(
            f"local_response_norm of shape {tuple(x.shape)}; it must have at least 3 dimensions")
    return _f.local_response_norm(x, size, alpha, beta, k)


@as_rows
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along dim; norms below eps count as eps."""
    return _f.cosine_similarity(convert(x1), convert(x2), dim, eps)


def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Any:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    if p > 0:
        return _f.pairwise_distance(convert(x1), convert(x2), p, eps, keepdim)
    return (convert(x1) - x2 + eps).norm(p, -1, keepdim)


def embedding(input: Any, weight: Any, padding_idx: Optional[int] = None,
              max_norm: Optional[float] = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    """Returns the rows of weight at indices."""
    if max_norm is not None:
        places = convert(input).reshape(-1)
        rows = weight.detach()
        rows[places] = _shaping.renorm(rows[places], norm_type, 0, max_norm)
    return _f.embedding(convert(input), weight, padding_idx)


def embedding_bag(input: Any, weight: Any, offsets: Any = None, max_norm: Optional[float] = None,
                  norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean",
                  sparse: bool = False, per_sample_weights: Any = None,
                  include_last_offset: bool = False, padding_idx: Optional[int] = None) -> Any:
    """Returns the sum, mean or maximum of the rows of weight in each bag."""
    return _f.embedding_bag(
        convert(input), weight, offsets, mode=mode, per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset, padding_idx=padding_idx)


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """Returns 1 at each integer's index, 0 elsewhere, along a new last dimension."""
    x = convert(tensor)
    classes = int(x.max().item()) + 1 if num_classes < 0 else num_classes
    return _f.one_hot(x, classes)


def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Any:
    """Pads: (left, right) of the last dimension, then of the one before, …; negative ones cut."""
    x, amounts = convert(input), [int(amount) for amount in pad]
    if mode == "constant" and any(amount < 0 for amount in amounts):
        for i, (left, right) in enumerate(zip(amounts[::2], amounts[1::2])):
            axis = x.ndim - 1 - i
            begin = max(-left, 0)
            x = x.narrow(axis, begin, x.shape[axis] - begin - max(-right, 0))
        amounts = [max(amount, 0) for amount in amounts]
    return _f.pad(x, amounts, mode, 0 if value is None else value)


# Losses. PyTorch's older arguments size_average and reduce come before `reduction`.


def _reduction(reduction: str, size_average: Any, reduce: Any) -> str:
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def cross_entropy(input: Any, target: Any, weight: Any = None, size_average: Any = None,
                  ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Any:
    """-log softmax(input) at the target."""
    return _f.cross_entropy(convert(input), convert(target), weight, ignore_index,
                            _reduction(reduction, size_average, reduce), label_smoothing)


def linear_cross_entropy(input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None,
                         weight: Any = None, reduction: str = "mean",
                         ignore_index: Optional[int] = None, label_smoothing: float = 0.0,
                         options: Any = None) -> Any:
    """The cross entropy of a linear layer's results."""
    classes, *sizes, features = linear_weight.shape
    scores = linear(convert(input), linear_weight.reshape(-1, features),
                    None if linear_bias is None else linear_bias.reshape(-1))
    scores = scores.reshape(*input.shape[:-1], classes, *sizes)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(scores, target, weight, None, ignored, None, reduction, label_smoothing)


def nll_loss(input: Any, target: Any, weight: Any = None, size_average: Any = None,
             ignore_index: int = -100, reduce: Any = None, reduction: str = "mean") -> Any:
    """-input at the target, for log probabilities."""
    return _f.nll_loss(convert(input), convert(target), weight, ignore_index,
                       _reduction(reduction, size_average, reduce))


def _plain_loss(name: str, function: Callable[..., Any], inputs: int,
                *before: str, after: Sequence[str] = ()) -> Callable[..., Any]:
    """Returns a loss with PyTorch's order of arguments: inputs, options `before`, size_average,
    reduce, reduction, options `after`.
    """
    order = (*before, "size_average", "reduce", "reduction", *after)

    def loss(*args: Any, **kwargs: Any) -> Any:
        names = ("input", "target") if inputs == 2 else (
            ("anchor", "positive", "negative") if name == "triplet_margin_loss" else (
                "input1", "input2", "target"))
        given = [convert(arg) for arg in args[:inputs]]
        given += [convert(kwargs.pop(one)) for one in names[len(given):] if one in kwargs]
        options = {**dict(zip(order, args[inputs:])), **kwargs}
        reduction = _reduction(options.pop("reduction", "mean"),
                               options.pop("size_average", None), options.pop("reduce", None))
        return function(*given, reduction=reduction, **options)

    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = function.__doc__
    return loss


def _weighted(function: Callable[..., Any]) -> Callable[..., Any]:
    def loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None,
             **options: Any) -> Any:
        if weight is None:
            x, y = _shaping.broadcast_tensors(input, target)
            return function(x, y, reduction=reduction, **options)
        each = function(*_shaping.broadcast_tensors(input, target), reduction="none",
                        **options) * weight
        if reduction == "none":
            return each
        return each.sum() if reduction == "sum" else each.sum() / convert(weight).expand(
            each.shape).sum()

    loss.__doc__ = function.__doc__
    return loss


mse_loss = _plain_loss("mse_loss", _weighted(_f.mse_loss), 2, after=("weight",))
l1_loss = _plain_loss("l1_loss", _weighted(_f.l1_loss), 2, after=("weight",))


def _smooth_l1(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    """d² / (2 * beta) where d = |input - target| is below beta, d - beta / 2 elsewhere."""
    if beta == 0:
        return _f.l1_loss(input, target, reduction)
    return _f.smooth_l1_loss(input, target, reduction, beta)


def _binary_cross_entropy(input: Any, target: Any, weight: Any = None,
                          reduction: str = "mean") -> Any:
    """-log of the probability that input, in [0, 1], assigns to target."""
    # A probability of 0 or 1 that is right gets no gradient.
    right = (input == target) & ((input == 0) | (input == 1))
    result = _f.binary_cross_entropy(input.detach().where(right, input), target, weight, reduction)
    refused = ~((input >= 0) & (input <= 1)) | ~((target >= 0) & (target <= 1))
    return required(result, refused, "binary_cross_entropy",
                    "all elements of input and target must be in [0, 1]")


smooth_l1_loss = _plain_loss("smooth_l1_loss", _weighted(_smooth_l1), 2, after=("beta",))
binary_cross_entropy = _plain_loss("binary_cross_entropy", _binary_cross_entropy, 2, "weight")
binary_cross_entropy_with_logits = _plain_loss(
    "binary_cross_entropy_with_logits", _f.binary_cross_entropy_with_logits, 2, "weight",
    after=("pos_weight",))
kl_div = _plain_loss("kl_div", _f.kl_div, 2, after=("log_target",))


def _hinge_embedding(input: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Any:
    """x where target is 1, max(0, margin - x) where it is -1."""
    beyond = (margin - input).clamp(min=0)
    return _reduced(input.where(target == 1, 0.0) + beyond.where(target == -1, 0.0), reduction)


def _margin_ranking(input1: Any, input2: Any, target: Any, margin: float = 0.0,
                    reduction: str = "mean") -> Any:
    """max(0, -target (input1 - input2) + margin)."""
    return _reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


hinge_embedding_loss = _plain_loss("hinge_embedding_loss", _hinge_embedding, 2, "margin")
soft_margin_loss = _plain_loss("soft_margin_loss", _f.soft_margin_loss, 2)
multilabel_soft_margin_loss = _plain_loss(
    "multilabel_soft_margin_loss", _f.multilabel_soft_margin_loss, 2, "weight")
cosine_embedding_loss = _plain_loss("cosine_embedding_loss", _f.cosine_embedding_loss, 3, "margin")
margin_ranking_loss = _plain_loss("margin_ranking_loss", _margin_ranking, 3, "margin")


def _triplet_margin(anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0,
                    eps: float = 1e-6, swap: bool = False, reduction: str = "mean") -> Any:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), with d the p-norm."""
    if margin <= 0:
        raise InvalidArgument(f"triplet_margin_loss with a margin of {margin}; it must be above 0")
    return _f.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


triplet_margin_loss = _plain_loss(
    "triplet_margin_loss", _triplet_margin, 3, "margin", "p", "eps", "swap")


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0,
               weight: Any = None) -> Any:
    """d² / 2 where d = |input - target| is at most delta, delta * (d - delta / 2) elsewhere."""
    return _weighted(_f.huber_loss)(input, target, reduction, weight, delta=delta)


def gaussian_nll_loss(input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Any:
    """-log of target's density under a normal distribution of mean input and variance var."""
    if not isinstance(var, KilnTensor):
        var = convert(input) * 0 + var
    result = _f.gaussian_nll_loss(convert(input), convert(target), var, full, eps, reduction)
    return required(result, var < 0, "gaussian_nll_loss", "var must not be negative")


def poisson_nll_loss(input: Any, target: Any, log_input: bool = True, full: bool = False,
                     size_average: Any = None, eps: float = 1e-8, reduce: Any = None,
                     reduction: str = "mean") -> Any:
    """-log of target's probability under a Poisson distribution of mean exp(input)."""
    return _f.poisson_nll_loss(convert(input), convert(target), log_input, full, eps,
                               _reduction(reduction, size_average, reduce))


def _reduced(each: Any, reduction: str) -> Any:
    if reduction not in ("none", "mean", "sum"):
        raise InvalidArgument(f'reduction {reduction!r}; it must be "none", "mean" or "sum"')
    if reduction == "none":
        return each
    return each.mean() if reduction == "mean" else each.sum()


def multi_margin_loss(input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None,
                      size_average: Any = None, reduce: Any = None,
                      reduction: str = "mean") -> Any:
    """The mean over wrong classes of max(0, margin - x[target] + x) to the power p."""
    x, labels = convert(input), convert(target)
    rows = x.reshape(-1, x.shape[-1])
    places = labels.reshape(-1, 1)
    gaps = (margin - rows.gather(1, places) + rows).clamp(min=0) ** p
    if weight is not None:
        gaps = gaps * convert(weight)[places]
    wrong = one_hot(places.squeeze(1), rows.shape[1]) == 0
    each = (gaps * wrong).sum(1) / rows.shape[1]
    return _reduced(each.reshape(labels.shape), _reduction(reduction, size_average, reduce))


def multilabel_margin_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None,
                           reduction: str = "mean") -> Any:
    """The sum of max(0, 1 - (x[label] - x[other])) over labels before the first -1 and others."""
    x, labels = convert(input), convert(target)
    rows, places = x.reshape(-1, x.shape[-1]), labels.reshape(-1, x.shape[-1])
    counts = ((places < 0).long().cumsum(1) == 0)._cast(rows.dtype)
    chosen = places.clamp(min=0)
    is_label = (one_hot(chosen, rows.shape[1]) * counts.unsqueeze(-1)).sum(1) > 0
    gaps = (1 - rows.gather(1, chosen).unsqueeze(2) + rows.unsqueeze(1)).clamp(min=0)
    each = (gaps * counts.unsqueeze(2) * (~is_label).unsqueeze(1)).sum((1, 2)) / rows.shape[1]
    return _reduced(each.reshape(x.shape[:-1]), _reduction(reduction, size_average, reduce))


def triplet_margin_with_distance_loss(anchor: Any, positive: Any, negative: Any, *,
                                      distance_function: Any = None, margin: float = 1.0,
                                      swap: bool = False, reduction: str = "mean") -> Any:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    measure = distance_function or pairwise_distance
    near, far = measure(anchor, positive), measure(anchor, negative)
    if swap:
        far = far.minimum(measure(positive, negative))
    return _reduced((near - far + margin).clamp(min=0), reduction)


def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Any:
    """-log of the probability of all alignments of targets (Graves et al., 2006)."""
    x = convert(log_probs)
    batched = x.ndim == 3
    if not batched:
        x = x.unsqueeze(1)
    steps, count, _ = x.shape
    sizes = np.asarray(convert(target_lengths).numpy()).reshape(-1).astype(int)
    ends = np.asarray(convert(input_lengths).numpy()).reshape(-1).astype(int)
    given = convert(targets).numpy()
    most = int(sizes.max()) if sizes.size else 0
    labels = np.full((count, 2 * most + 1), blank, np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    for i, size in enumerate(sizes):
        row = given[starts[i]: starts[i] + size] if given.ndim == 1 and batched else (
            given[:size] if given.ndim == 1 else given[i, :size])
        labels[i, 1:2 * size:2] = row
    skips = np.zeros(labels.shape, bool)
    skips[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    low = -1e30
    can_skip = convert(skips)
    emitted = x.gather(2, convert(labels).unsqueeze(0).expand(steps, *labels.shape))
    begins = np.zeros(labels.shape, bool)
    begins[:, :2] = True
    alpha = emitted[0].where(convert(begins), low)
    results: List[Any] = [alpha]
    for step in range(1, steps):
        one = _f.pad(alpha, (1, 0), value=low)[:, :-1]
        two = _f.pad(alpha, (2, 0), value=low)[:, :-2] if labels.shape[1] > 1 else one
        two = two.where(can_skip, low)
        alpha = _shaping.stack([alpha, one, two]).logsumexp(0) + emitted[step]
        results.append(alpha)
    rows = _shaping.stack(results)[convert(ends - 1), convert(np.arange(count))]
    last = rows.gather(1, convert(2 * sizes).unsqueeze(1))
    before = rows.gather(1, convert(np.maximum(2 * sizes - 1, 0)).unsqueeze(1)).where(
        convert(sizes > 0).unsqueeze(1), low)
    loss = -_shaping.cat([last, before], 1).logsumexp(1)
    impossible = loss > 1e29
    loss = loss.where(~impossible, 0.0 if zero_infinity else math.inf)
    if reduction == "mean":
        return (loss / convert(np.maximum(sizes, 1).astype(np.float32))).mean()
    if reduction == "sum":
        return loss.sum()
    return loss if batched else loss.squeeze(0)


# Pooling with indices.


def _max_pool(rank: int) -> Callable[..., Any]:
    plain = getattr(_f, f"max_pool{rank}d")

    def max_pool(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
        x = convert(input)
        stride = None if stride in ((), []) else stride
        if not return_indices:
            return plain(x, kernel_size, stride, padding, dilation, ceil_mode)
        return _with_indices(rank, x, kernel_size, stride, padding, dilation, ceil_mode)

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{rank}d"
    max_pool.__doc__ = "Returns the largest elements of windows, with return_indices also where."
    return max_pool


def _with_indices(rank: int, x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                  ceil_mode: bool) -> Any:
    batched = x.ndim == rank + 2
    rows = x if batched else x.unsqueeze(0)
    size = _spread(kernel_size, rank, "kernel_size")
    step = size if stride is None else _spread(stride, rank, "stride")
    pads, gaps = _spread(padding, rank, "padding"), _spread(dilation, rank, "dilation")
    places = np.arange(math.prod(rows.shape[2:])).reshape(tuple(rows.shape[2:]))
    borders: List[int] = []
    for i in range(rank):
        reach = gaps[i] * (size[i] - 1) + 1
        length = rows.shape[2 + i] + 2 * pads[i]
        count = (-(-(length - reach) // step[i]) if ceil_mode else (length - reach) // step[i]) + 1
        if ceil_mode and (count - 1) * step[i] >= rows.shape[2 + i] + pads[i]:
            count -= 1
        after = max(0, (count - 1) * step[i] + reach - rows.shape[2 + i] - pads[i])
        borders = [pads[i], after, *borders]
        places = np.pad(places, [(pads[i], after) if axis == i else (0, 0)
                                 for axis in range(rank)], constant_values=-1)
    wide = _f.pad(rows, borders, value=-math.inf if rows.dtype.is_float else 0)
    for i in range(rank):
        reach = gaps[i] * (size[i] - 1) + 1
        count = (wide.shape[2 + i] - reach) // step[i] + 1
        index = (np.arange(count)[:, None] * step[i] + np.arange(size[i]) * gaps[i]).reshape(-1)
        wide = wide.index_select(2 + i, convert(index))
        places = np.take(places, index, i)
    split: List[int] = []
    for i in range(rank):
        split += [wide.shape[2 + i] // size[i], size[i]]
    lead = tuple(rows.shape[:2])
    order = [*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)]
    windows = wide.reshape(*lead, *split).permute(0, 1, *[2 + axis for axis in order])
    shape = tuple(windows.shape[2: 2 + rank])
    windows = windows.reshape(*lead, *shape, -1)
    where = np.transpose(places.reshape(split), order).reshape(*shape, -1)
    best = windows.argmax(-1, keepdim=True)
    values = windows.gather(-1, best).squeeze(-1)
    found = convert(where).expand(*lead, *where.shape).gather(-1, best).squeeze(-1)
    return (values, found) if batched else (values.squeeze(0), found.squeeze(0))


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)


def _always_indices(rank: int) -> Callable[..., Any]:
    def pool(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False, return_indices: bool = False) -> Any:
        return _with_indices(rank, convert(input), kernel_size, stride, padding, dilation,
                             ceil_mode)

    pool.__name__ = pool.__qualname__ = f"max_pool{rank}d_with_indices"
    pool.__doc__ = "Returns the largest elements of windows, and where they are."
    return pool


max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    _always_indices(1), _always_indices(2), _always_indices(3))


def _unpool(rank: int) -> Callable[..., Any]:
    def unpool(input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
               output_size: Any = None) -> Any:
        x = convert(input)
        size = _spread(kernel_size, rank, "kernel_size")
        step = size if stride is None else _spread(stride, rank, "stride")
        pads = _spread(padding, rank, "padding")
        shape = tuple(output_size)[-rank:] if output_size is not None else tuple(
            (x.shape[i - rank] - 1) * step[i] + size[i] - 2 * pads[i] for i in range(rank))
        lead = tuple(x.shape[:-rank])
        flat = _creation.zeros(*lead, math.prod(shape), dtype=x.dtype)
        made = flat.scatter(-1, convert(indices).reshape(*lead, -1), x.reshape(*lead, -1))
        return made.reshape(*lead, *shape)

    unpool.__name__ = unpool.__qualname__ = f"max_unpool{rank}d"
    unpool.__doc__ = "Puts elements back to where a pooling found them, zeros elsewhere."
    return unpool


max_unpool1d, max_unpool2d, max_unpool3d = _unpool(1), _unpool(2), _unpool(3)


def _adaptive(rank: int) -> Callable[..., Any]:
    plain = getattr(_f, f"adaptive_max_pool{rank}d")

    def pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        x = convert(input)
        return _adaptive_indices(rank, x, output_size) if return_indices else plain(x, output_size)

    pool.__name__ = pool.__qualname__ = f"adaptive_max_pool{rank}d"
    pool.__doc__ = "Returns the largest elements of as many windows as the output has elements."
    return pool


def _adaptive_indices(rank: int, x: Any, output_size: Any) -> Any:
    inside = tuple(x.shape[-rank:])
    given = (output_size,) * rank if isinstance(output_size, int) else tuple(output_size)
    wanted = [inside[i] if size is None else size for i, size in enumerate(given)]
    places = np.arange(math.prod(inside)).reshape(inside)
    flat = x.reshape(*x.shape[:-rank], -1)
    values, found = [], []
    for cell in np.ndindex(*wanted):
        part = places[tuple(slice(cell[i] * inside[i] // wanted[i],
                                  -(-(cell[i] + 1) * inside[i] // wanted[i]))
                            for i in range(rank))].reshape(-1)
        window = flat.index_select(-1, convert(part))
        best = window.argmax(-1)
        values.append(window.amax(-1))
        found.append(convert(part)[best])
    shape = (*x.shape[:-rank], *wanted)
    return _shaping.stack(values, -1).reshape(shape), _shaping.stack(found, -1).reshape(shape)


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive(1), _adaptive(2), _adaptive(3))


def _adaptive_always(rank: int) -> Callable[..., Any]:
    def pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        return _adaptive_indices(rank, convert(input), output_size)

    pool.__name__ = pool.__qualname__ = f"adaptive_max_pool{rank}d_with_indices"
    pool.__doc__ = "As adaptive_max_pool, with the indices."
    return pool


adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices = (
    _adaptive_always(1), _adaptive_always(2))
adaptive_max_pool3d_with_indices = _adaptive_always(3)


def _fractional(rank: int, indices: bool) -> Callable[..., Any]:
    def pool(input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
             return_indices: bool = False, _random_samples: Any = None) -> Any:
        x = convert(input)
        batched = x.ndim == rank + 2
        rows = x if batched else x.unsqueeze(0)
        size = _spread(kernel_size, rank, "kernel_size")
        inside = tuple(rows.shape[2:])
        if output_size is None:
            ratio = (output_ratio,) * rank if isinstance(output_ratio, float) else output_ratio
            output_size = [int(length * share) for length, share in zip(inside, ratio)]
        wanted = _spread(output_size, rank, "output_size")
        drawn = _creation.rand(*rows.shape[:2], rank) if _random_samples is None else (
            convert(_random_samples))
        place: Any = 0
        for i in range(rank):
            # The samples of the last dimension come first.
            begin = _fractional_begins(drawn[..., rank - 1 - i], inside[i], size[i], wanted[i])
            index = begin.unsqueeze(-1) + convert(np.arange(size[i]))
            shape = [1] * (2 * rank)
            shape[i], shape[rank + i] = wanted[i], size[i]
            place = place * inside[i] + index.reshape(*rows.shape[:2], *shape)
        lead = tuple(rows.shape[:2])
        place = place.reshape(*lead, *wanted, -1)
        windows = rows.reshape(*lead, -1).gather(2, place.reshape(*lead, -1)).reshape(place.shape)
        best = windows.argmax(-1, keepdim=True)
        values, found = (part.gather(-1, best).squeeze(-1) for part in (windows, place))
        if not batched:
            values, found = values.squeeze(0), found.squeeze(0)
        return (values, found) if indices or return_indices else values

    pool.__name__ = pool.__qualname__ = (
        f"fractional_max_pool{rank}d{'_with_indices' * indices}")
    pool.__doc__ = "Returns the largest elements of windows at random places (Graham, 2014)."
    return pool


def _fractional_begins(drawn: Any, inside: int, size: int, wanted: int) -> Any:
    """Returns where windows begin along a dimension; the last one ends with it."""
    if wanted == 1:
        return (drawn * 0)._cast(_dtypes.int64).unsqueeze(-1) + (inside - size)
    step = (inside - size) / (wanted - 1)
    place = convert(np.arange(wanted))
    begins = ((place + drawn.unsqueeze(-1)) * step).trunc() - (drawn * step).trunc().unsqueeze(-1)
    return begins._cast(_dtypes.int64).where(place != wanted - 1, inside - size)


fractional_max_pool2d, fractional_max_pool3d = _fractional(2, False), _fractional(3, False)
fractional_max_pool2d_with_indices = _fractional(2, True)
fractional_max_pool3d_with_indices = _fractional(3, True)


# Resizing and sampling.


def interpolate(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: Optional[bool] = None,
                recompute_scale_factor: Optional[bool] = None, antialias: bool = False) -> Any:
    """Resizes the spatial dimensions."""
    if antialias:
        raise InvalidArgument("interpolate with antialias; Kiln has only antialias=False")
    return _f.interpolate(convert(input), size, scale_factor, mode, align_corners,
                          recompute_scale_factor)


def upsample(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: Optional[bool] = None) -> Any:
    """Resizes the spatial dimensions."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Resizes by the nearest elements."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Resizes images linearly, with aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def grid_sample(input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: Optional[bool] = None) -> Any:
    """Samples images at positions."""
    return _f.grid_sample(convert(input), convert(grid), mode, padding_mode, bool(align_corners))


def affine_grid(theta: Any, size: Sequence[int], align_corners: Optional[bool] = None) -> Any:
    """Returns positions for grid_sample, transformed by affine matrices."""
    matrices = convert(theta)
    axes = []
    for length in reversed(tuple(size)[2:]):
        line = _creation.linspace(-1, 1, length, dtype=matrices.dtype) if length > 1 else (
            _creation.zeros(1, dtype=matrices.dtype))
        axes.append(line if align_corners else line * ((length - 1) / length))
    grids = _shaping.meshgrid(*reversed(axes), indexing="ij")
    points = _shaping.stack([*reversed(grids), grids[0] * 0 + 1], -1)
    flat = points.reshape(1, -1, points.shape[-1]) @ matrices.transpose(1, 2)
    return flat.reshape(size[0], *tuple(size)[2:], len(axes))


def pdist(input: Any, p: float = 2.0) -> Any:
    """Returns the distances of all pairs of rows."""
    x = convert(input)
    rows, columns = np.triu_indices(x.shape[0], 1)
    return (x[convert(rows)] - x[convert(columns)]).norm(p, 1)


def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """A convolution over time of (time, batch, channels)."""
    result = conv1d(convert(input).permute(1, 2, 0), convert(weight).permute(2, 1, 0), bias,
                    padding=pad)
    return result.permute(2, 0, 1)


def cdist(x1: Any, x2: Any, p: float = 2.0) -> Any:
    """Returns the distances of the rows of x1 to those of x2."""
    return _products.cdist(x1, x2, p)


def multi_head_attention_forward(
        query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int,
        in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool,
        dropout_p: float, out_proj_weight: Any, out_proj_bias: Any, training: bool = True,
        key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
        use_separate_proj_weight: bool = False, q_proj_weight: Any = None,
        k_proj_weight: Any = None, v_proj_weight: Any = None, static_k: Any = None,
        static_v: Any = None, average_attn_weights: bool = True, is_causal: bool = False) -> Any:
    """Multi-head attention with given weights, of (length, batch, features)."""
    parts = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else (
        in_proj_weight.chunk(3))
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    length, batch, features = query.shape
    q, k, v = (linear(x, weight, bias) for x, weight, bias in zip(
        (query, key, value), parts, biases))
    if bias_k is not None:
        k = _shaping.cat([k, bias_k.expand(1, batch, features)])
        v = _shaping.cat([v, bias_v.expand(1, batch, features)])
    size = features // num_heads
    q, k, v = (x.reshape(x.shape[0], batch * num_heads, size).transpose(0, 1) for x in (q, k, v))
    if add_zero_attn:
        k, v = (_f.pad(x, (0, 0, 0, 1)) for x in (k, v))
    scores = q @ k.transpose(1, 2) / math.sqrt(size)
    added = k.shape[1] - key.shape[0]
    if attn_mask is not None:
        scores = scores + _f.pad(_as_bias(attn_mask, scores.dtype), (0, added))
    if key_padding_mask is not None:
        hidden = _f.pad(_as_bias(key_padding_mask, scores.dtype), (0, added))
        scores = (scores.reshape(batch, num_heads, length, -1) + hidden.reshape(
            batch, 1, 1, -1)).reshape(batch * num_heads, length, -1)
    weights = softmax(scores, -1)
    mixed = dropout(weights, dropout_p, training) @ v
    output = linear(mixed.transpose(0, 1).reshape(length, batch, features), out_proj_weight,
                    out_proj_bias)
    if not need_weights:
        return output, None
    weights = weights.reshape(batch, num_heads, length, -1)
    return output, weights.mean(1) if average_attn_weights else weights


def _as_bias(mask: Any, dtype: Any) -> Any:
    x = convert(mask)
    if x.dtype is not _dtypes.bool_:
        return x
    return (x * 0)._cast(dtype).where(~x, -math.inf)


INPLACE: Dict[str, Callable[..., Any]] = {
    "relu_": relu_, "selu_": selu_, "celu_": celu_, "rrelu_": rrelu_, "threshold_": threshold_,
}  # fmt: skip

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices", "affine_grid", "alpha_dropout", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "cdist", "celu", "celu_", "channel_shuffle", "conv1d",
    "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss", "dropout",
    "dropout1d", "dropout2d", "dropout3d", "elu", "elu_", "embedding", "embedding_bag",
    "feature_alpha_dropout", "fold", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices", "gaussian_nll_loss", "gelu", "glu", "grid_sample",
    "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "hardtanh_", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div",
    "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_", "linear", "linear_cross_entropy",
    "local_response_norm", "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "margin_ranking_loss", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
    "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d",
    "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_head_attention_forward",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "native_channel_shuffle", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance",
    "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6",
    "relu_", "rms_norm", "rrelu", "rrelu_", "scaled_dot_product_attention", "selu", "selu_",
    "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus",
    "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
    "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold", "upsample",
    "upsample_bilinear", "upsample_nearest",
]  # fmt: skip
