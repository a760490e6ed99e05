"""All rows, and the ops that have none, with the reason."""

from op_table import elementwise, movements, neural, reductions

ROWS = {**elementwise.ROWS, **movements.ROWS, **reductions.ROWS, **neural.ROWS}

# Their values and gradients are PyTorch's: in float64 in tests/golden/op_values.txt, which
# tests/numerics reads, in float32 in test_functional.py.
_PYTORCHS = (
    "adaptive_avg_pool", "adaptive_max_pool", "avg_pool1d", "avg_pool3d", "binary_cross_entropy",
    "celu", "conv1d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "cosine_embedding_loss", "cosine_similarity", "dropout", "elu", "fold",
    "gaussian_nll_loss", "glu", "group_norm", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div",
    "l1_loss", "local_response_norm", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "margin_ranking_loss", "max_pool1d", "max_pool3d", "mish", "normalize", "pad_circular",
    "pad_constant", "pad_reflect", "pad_replicate", "pairwise_distance", "pixel_shuffle",
    "pixel_unshuffle", "poisson_nll_loss", "prelu", "quick_gelu", "relu6", "rotary_embedding",
    "selu", "smooth_l1_loss", "soft_margin_loss", "softshrink", "softsign", "squareplus",
    "tanhshrink", "threshold", "triplet_margin_loss", "unfold",
)  # fmt: skip

# Ops that other tests cover, most since no operand's dtype or value decides what they compute.
ELSEWHERE = {
    "const": "a source: every program has one, and test_generated compares all dtypes",
    "input": "a source: every case here has one",
    "random_normal": "its bits are random_bits'; other tests look at its distribution",
    "gradient": "a request: every differentiable case here makes one",
    **dict.fromkeys(_PYTORCHS, "compared with PyTorch"),
}
