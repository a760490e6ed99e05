"""Functions of kiln.functional keep a short float's dtype, and compute what float32 does."""

import inspect

import numpy as np
import pytest

import kiln
from kiln import functional as F

RANDOM = np.random.default_rng(11)


def normal(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


X = normal(2, 4, 6)
IMAGE = normal(1, 4, 6, 6)
CUBE = normal(1, 2, 4, 4, 4)
ARRAYS = {
    "x": X, "y": normal(2, 4, 6), "z": normal(2, 4, 6), "m": normal(3, 4), "i": IMAGE, "c": CUBE,
    "p": RANDOM.uniform(0.1, 0.9, (2, 4, 6)).astype(np.float32), "v": normal(4), "u": normal(6),
    "s": np.sign(normal(2, 4, 6)), "q": np.sign(normal(3)), "a": np.sign(normal(2)),
    "k1": normal(4, 4, 3), "k2": normal(4, 4, 3, 3), "k3": normal(2, 2, 3, 3, 3),
    "w": normal(5, 6), "b": normal(3, 6, 6), "wide": normal(4, 4), "turns": normal(4, 3),
    "g": RANDOM.uniform(-1, 1, (1, 3, 3, 2)).astype(np.float32), "f": normal(1, 9, 4),
}  # fmt: skip
LABELS = np.array([1, 0, 3])
BAGS = np.array([[0, 1], [2, 4]])
KEPT = np.array([[True, False, True, True]] * 4)
WHOLE = {"LABELS": LABELS, "BAGS": BAGS, "KEPT": KEPT}

NO_FLOAT = {"alibi_bias", "one_hot", "rotary_tables", "sinusoidal_positions"}


def needs_one_argument(name):
    parameters = inspect.signature(getattr(F, name)).parameters.values()
    return sum(parameter.default is parameter.empty for parameter in parameters) == 1


# A call of each function with a float operand.
CALLS = {
    **{name: f"F.{name}(x)" for name in F.__all__
       if name not in NO_FLOAT and needs_one_argument(name)},
    **{name: f"F.{name}(x, y)" for name in (
        "cosine_similarity", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "mse_loss",
        "multilabel_soft_margin_loss", "pairwise_distance", "poisson_nll_loss", "smooth_l1_loss",
        "soft_margin_loss", "binary_cross_entropy_with_logits", "cdist")},
    **{f"adaptive_{kind}_pool{rank}d": f"F.adaptive_{kind}_pool{rank}d({of}, 2)"
       for kind in ("avg", "max") for rank, of in ((1, "x"), (2, "i"), (3, "c"))},
    **{f"{kind}_pool{rank}d": f"F.{kind}_pool{rank}d({of}, 2)"
       for kind in ("avg", "max") for rank, of in ((1, "x"), (2, "i"), (3, "c"))},
    **{f"lp_pool{rank}d": f"F.lp_pool{rank}d({of}.abs(), 2.0, 2)"
       for rank, of in ((1, "x"), (2, "i"), (3, "c"))},
    **{f"conv{rank}d": f"F.conv{rank}d({of}, k{rank})"
       for rank, of in ((1, "x"), (2, "i"), (3, "c"))},
    **{f"conv_transpose{rank}d": f"F.conv_transpose{rank}d({of}, k{rank})"
       for rank, of in ((1, "x"), (2, "i"), (3, "c"))},
    "alpha_dropout": "F.alpha_dropout(x, 0.5, training=True)", "dropout": "F.dropout(x)",
    "dropout1d": "F.dropout1d(x)", "dropout2d": "F.dropout2d(i)", "dropout3d": "F.dropout3d(c)",
    "batch_norm": "F.batch_norm(x, None, None, v, v, training=True)",
    "bilinear": "F.bilinear(m[:, :4], m, b[:, :4, :4])",
    "binary_cross_entropy": "F.binary_cross_entropy(p, p)",
    "channel_shuffle": "F.channel_shuffle(x, 2)",
    "cosine_embedding_loss": "F.cosine_embedding_loss(m, m * 2, q)",
    "cross_entropy": "F.cross_entropy(m, LABELS, weight=v.abs(), label_smoothing=0.1)",
    "embedding": "F.embedding(LABELS, w, padding_idx=1)",
    "embedding_bag": "F.embedding_bag(BAGS, w, mode='max')", "fold": "F.fold(f, (4, 4), 3)",
    "gaussian_nll_loss": "F.gaussian_nll_loss(x, y, p)",
    "grid_sample": "F.grid_sample(i, g)", "group_norm": "F.group_norm(x, 2, v, v)",
    "gumbel_softmax": "F.gumbel_softmax(x, hard=True)",
    "instance_norm": "F.instance_norm(x, weight=v, bias=v)",
    "interpolate": "F.interpolate(i, scale_factor=2, mode='bilinear')",
    "layer_norm": "F.layer_norm(x, (6,), u, u)", "linear": "F.linear(x, w, w[:, 0])",
    "local_response_norm": "F.local_response_norm(x, 3)",
    "margin_ranking_loss": "F.margin_ranking_loss(x, y, s)",
    "nll_loss": "F.nll_loss(m, LABELS, weight=v.abs())", "pad": "F.pad(x, (1, 1), value=0.5)",
    "pixel_shuffle": "F.pixel_shuffle(i, 2)", "pixel_unshuffle": "F.pixel_unshuffle(i, 2)",
    "prelu": "F.prelu(x, v)", "rotary_embedding": "F.rotary_embedding(x, turns, turns)",
    "scaled_dot_product_attention": "F.scaled_dot_product_attention(x, y, z)",
    "threshold": "F.threshold(x, 0.2, -3.0)",
    "triplet_margin_loss": "F.triplet_margin_loss(x, y, z)",
    "unfold": "F.unfold(i, 3)",
}  # fmt: skip
FURTHER = [
    "F.batch_norm(x, v, v.abs())", "F.gaussian_nll_loss(x, y, 0.5)",
    "F.gaussian_nll_loss(x, y, p, full=True)",
    "F.embedding_bag(BAGS, w)", "F.embedding_bag(BAGS, w, mode='sum')",
    "F.embedding_bag(BAGS, w, mode='sum', per_sample_weights=w[:2, :2])",
    "F.cross_entropy(x, p)", "F.cross_entropy(m, LABELS, reduction='none')",
    "F.kl_div(x, p, reduction='batchmean')", "F.kl_div(x, y, log_target=True)",
    "F.interpolate(i, scale_factor=2)", "F.interpolate(i, 3, mode='area')",
    "F.interpolate(i, 9, mode='bicubic')", "F.pad(x, (1, 1), mode='reflect')",
    "F.pad(x, (1, -1), mode='replicate')", "F.gumbel_softmax(x)", "F.gelu(x, 'tanh')",
    "F.binary_cross_entropy_with_logits(x, p, pos_weight=p)",
    "F.triplet_margin_loss(x, y, z, swap=True)",
    "F.poisson_nll_loss(x, p, full=True)", "F.cdist(x, y, 1.0)", "F.cdist(x, y, float('inf'))",
    "F.dropout(x, 1.0)", "F.rrelu(x, training=True)", "F.grid_sample(i, g, 'nearest', 'border')",
    "F.avg_pool2d(i, 3, 2, 1, ceil_mode=True, count_include_pad=False)",
    "F.layer_norm(x, (6,), bias=u)",
    *[f"F.scaled_dot_product_attention(x, y, z{mask}, dropout_p={p}, is_causal={causal})"
      for mask in ("", ", KEPT", ", wide") for p in (0.0, 0.1) for causal in (False, True)],
    # A mask of another dtype than the scores'.
    *[f"F.scaled_dot_product_attention(x, y, z, KEPT.float(), dropout_p={p})" for p in (0.0, 0.1)],
]  # fmt: skip
# Each of these draws its own numbers.
DRAWN = ("F.alpha_dropout", "F.dropout", "F.gumbel_softmax", "F.rrelu(x, training", "dropout_p=0.1")


def test_every_function_is_called():
    assert {*CALLS} | NO_FLOAT == {*F.__all__} and not {*CALLS} & NO_FLOAT


def value_of(call, *dtypes):
    """Returns the call's value for numbers cast to these dtypes one after the other."""
    named = {name: kiln.tensor(value) for name, value in WHOLE.items()}
    for name, array in ARRAYS.items():
        named[name] = kiln.tensor(array)
        for dtype in dtypes:
            named[name] = named[name].cast(dtype)
    return eval(call, {"F": F, **named})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_the_dtype_stays(connection, dtype):
    calls = [*CALLS.values(), *FURTHER]
    got = {call: value_of(call, dtype) for call in calls}
    others = {call: value.dtype for call, value in got.items() if value.dtype.name != dtype}
    assert others == {}
    if dtype == "float64":
        return
    wanted = {call: value_of(call, dtype, "float32") for call in calls}
    kiln.realize(*got.values(), *wanted.values())
    near = 8 * float(kiln.finfo(dtype).eps)
    for call in calls:
        if not any(drawn in call for drawn in DRAWN):
            np.testing.assert_allclose(got[call].float().numpy(), wanted[call].numpy(), near, near,
                                       err_msg=f"{call} of {dtype}")
