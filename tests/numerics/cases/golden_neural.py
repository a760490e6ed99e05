"""PyTorch's results for the ops of neural networks; used by generate_golden."""

import functools
import math

import torch
import torch.nn.functional as F


def spatial(function, *names):
    """Returns a function of x and a window, with PyTorch's parameters renamed from the rows' names."""
    renamed = {"kernel": "kernel_size"}

    def apply(a, x):
        rank = len(a["kernel"])
        given = {renamed.get(k, k): v for k, v in a.items() if k not in ("divisor_override", *names)}
        if a.get("divisor_override"):
            given["divisor_override"] = a["divisor_override"]
        batched = x.reshape(-1, 1, *x.shape[x.dim() - rank :])
        result = function(batched, **given)
        return result.reshape(*x.shape[: x.dim() - rank], *result.shape[2:])

    return apply


def convolution(function, rank):
    def apply(a, x, *parameters):
        a = dict(a)
        padding = a.pop("padding", [0] * rank)
        if len(padding) == 2 * rank:
            pairs = [padding[i : i + 2] for i in range(0, 2 * rank, 2)]
            x = F.pad(x, [part for pair in reversed(pairs) for part in pair])
            padding = [0] * rank
        return function(x, *parameters, padding=padding, **a)

    return apply


def lp_pool(a, x):
    rank = len(a["kernel"])
    for axis in range(x.dim() - rank, x.dim()):
        assert x.shape[axis] % a["kernel"][0] == 0
    windows = x.pow(a["norm"])
    for i, size in enumerate(a["kernel"]):
        windows = windows.unfold(x.dim() - rank + i, size, size)
    return windows.sum(tuple(range(-rank, 0))).pow(1 / a["norm"])


def adaptive(kind):
    def apply(a, x):
        rank = len(a["size"])
        batched = x.reshape(-1, 1, *x.shape[x.dim() - rank :])
        result = getattr(F, f"adaptive_{kind}_pool{rank}d")(batched, a["size"])
        return result.reshape(*x.shape[: x.dim() - rank], *a["size"])

    return apply


def interpolate(a, x):
    rank = len(a["size"])
    mode = {"linear": ["linear", "bilinear", "trilinear"][rank - 1], "cubic": "bicubic"}.get(a["mode"], a["mode"])
    given = {"scale_factor": a["scale"]} if a["scale"] else {"size": a["size"]}
    if a["mode"] in ("linear", "cubic"):
        given["align_corners"] = a["align_corners"]
    return F.interpolate(x, mode=mode, **given)


def border(mode):
    def apply(a, x):
        for axis in range(x.dim()):
            before, after = a["padding"][2 * axis : 2 * axis + 2]
            if before == after == 0:
                continue
            last = x.transpose(axis, -1)
            flat = last.reshape(1, -1, last.shape[-1])
            given = {"value": a.get("value", 0)} if mode == "constant" else {}
            padded = F.pad(flat, (before, after), mode=mode, **given)
            x = padded.reshape(*last.shape[:-1], -1).transpose(axis, -1)
        return x

    return apply


def loss(function, *order):
    """Returns a loss of operands; `order` gives their names in PyTorch."""

    def apply(a, *operands):
        given = {"epsilon": "eps"}
        named = {given.get(k, k): v for k, v in a.items()}
        for name, operand in zip(order, operands):
            named[name] = operand
        if "target" in named and not named["target"].is_floating_point():
            named["target"] = named["target"].long()
        return function(**named)

    return apply


def attention(a, q, k, v, mask=None):
    if a.get("grouped"):
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * (a.get("scale") or 1 / math.sqrt(q.shape[-1]))
    if a.get("causal"):
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).tril() == 0, -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1).nan_to_num() @ v


def rotary(a, x, cos, sin):
    half = cos.shape[-1]
    rest = x[..., 2 * half :]
    if a.get("interleaved"):
        first, second = x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]
    else:
        first, second = x[..., :half], x[..., half : 2 * half]
    turned = (first * cos - second * sin, second * cos + first * sin)
    joined = torch.stack(turned, -1).flatten(-2) if a.get("interleaved") else torch.cat(turned, -1)
    return torch.cat((joined, rest), -1)


def normed(function):
    return lambda a, x, *wb: function(x, weight=wb[0] if wb else None, bias=wb[1] if len(wb) > 1 else None)


def label_loss(function):
    return loss(function, "input", "target", "weight")


FUNCTIONS = {
    **{
        name: functools.partial(lambda f, a, x: f(x), getattr(F, name))
        for name in ("relu6", "hardtanh", "hardsigmoid", "hardswish", "softshrink", "hardshrink", "logsigmoid",
                     "mish", "tanhshrink", "softsign", "selu")
    },
    "quick_gelu": lambda a, x: x * torch.sigmoid(1.702 * x),
    "squareplus": lambda a, x: (x + (x * x + 4).sqrt()) / 2,
    "elu": lambda a, x: F.elu(x, **a),
    "celu": lambda a, x: F.celu(x, **a),
    "softplus": lambda a, x: F.softplus(x, **a),
    "threshold": lambda a, x: F.threshold(x, **a),
    "prelu": lambda a, x, w: F.prelu(x, w),
    "glu": lambda a, x: F.glu(x, a.get("axis", -1)),
    "normalize": lambda a, x: F.normalize(x, a.get("p", 2.0), a.get("axis", 1)),
    "cosine_similarity": lambda a, x, y: F.cosine_similarity(x, y, a.get("axis", 1)),
    "pairwise_distance": lambda a, x, y: F.pairwise_distance(x, y, a.get("p", 2.0), keepdim=a.get("keepdims", False)),
    **{f"conv{rank}d": convolution(getattr(F, f"conv{rank}d"), rank) for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": convolution(getattr(F, f"conv_transpose{rank}d"), rank) for rank in (1, 2, 3)},
    **{f"max_pool{rank}d": spatial(getattr(F, f"max_pool{rank}d")) for rank in (1, 2, 3)},
    **{f"avg_pool{rank}d": spatial(getattr(F, f"avg_pool{rank}d")) for rank in (1, 2, 3)},
    **{f"lp_pool{rank}d": lp_pool for rank in (1, 2, 3)},
    "adaptive_avg_pool": adaptive("avg"),
    "adaptive_max_pool": adaptive("max"),
    "interpolate": interpolate,
    **{f"pad_{mode}": border(mode) for mode in ("constant", "reflect", "replicate", "circular")},
    "unfold": lambda a, x: F.unfold(x, a["kernel"], a["dilation"], a["padding"], a["stride"]),
    "fold": lambda a, x: F.fold(x, a["size"], a["kernel"], a["dilation"], a["padding"], a["stride"]),
    "pixel_shuffle": lambda a, x: F.pixel_shuffle(x, a["factor"]),
    "pixel_unshuffle": lambda a, x: F.pixel_unshuffle(x, a["factor"]),
    "group_norm": lambda a, x, *wb: F.group_norm(x, a["groups"], *wb),
    "instance_norm": normed(F.instance_norm),
    "local_response_norm": lambda a, x: F.local_response_norm(x, **a),
    "scaled_dot_product_attention": attention,
    "rotary_embedding": rotary,
    "mse_loss": loss(F.mse_loss, "input", "target"),
    "l1_loss": loss(F.l1_loss, "input", "target"),
    "smooth_l1_loss": loss(F.smooth_l1_loss, "input", "target"),
    "huber_loss": loss(F.huber_loss, "input", "target"),
    "binary_cross_entropy": loss(F.binary_cross_entropy, "input", "target", "weight"),
    "binary_cross_entropy_with_logits": loss(
        F.binary_cross_entropy_with_logits, "input", "target", "weight", "pos_weight"),
    "kl_div": loss(F.kl_div, "input", "target"),
    "hinge_embedding_loss": loss(F.hinge_embedding_loss, "input", "target"),
    "margin_ranking_loss": loss(F.margin_ranking_loss, "input1", "input2", "target"),
    "soft_margin_loss": loss(F.soft_margin_loss, "input", "target"),
    "gaussian_nll_loss": loss(F.gaussian_nll_loss, "input", "target", "var"),
    "poisson_nll_loss": loss(F.poisson_nll_loss, "input", "target"),
    "cosine_embedding_loss": loss(F.cosine_embedding_loss, "input1", "input2", "target"),
    "triplet_margin_loss": loss(F.triplet_margin_loss, "anchor", "positive", "negative"),
    "cross_entropy": label_loss(F.cross_entropy),
    "nll_loss": label_loss(F.nll_loss),
}
