"""All rows, and the ops that have none, with the reason."""

from op_table import (
    activations,
    arrays,
    elementwise,
    functions,
    layers,
    losses,
    movements,
    neural,
    reductions,
)

ROWS = {
    **elementwise.ROWS, **functions.ROWS, **movements.ROWS, **reductions.ROWS, **arrays.ROWS,
    **neural.ROWS, **activations.ROWS, **layers.ROWS, **losses.ROWS,
}  # fmt: skip

# Their values and gradients are PyTorch's: in float64 in tests/golden/op_values.txt, which
# tests/numerics reads, in float32 in test_functional.py.
_PYTORCHS = (
    "adaptive_avg_pool", "adaptive_max_pool", "cosine_embedding_loss", "cosine_similarity",
    "dropout", "fold", "gaussian_nll_loss", "hinge_embedding_loss", "interpolate",
    "local_response_norm", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss",
    "normalize", "pairwise_distance", "pixel_unshuffle", "poisson_nll_loss", "rotary_embedding",
    "triplet_margin_loss", "unfold",
)  # fmt: skip

# Ops that other tests cover, most since no operand's dtype or value decides what they compute.
ELSEWHERE = {
    "const": "a source: every program has one, and test_generated compares all dtypes",
    "input": "a source: every case here has one",
    "random_normal": "its bits are random_bits'; other tests look at its distribution",
    **dict.fromkeys(("scatter", "put_along_axis", "index_put"),
                    "scatter_elements at other places; test_scatter has every mode"),
    "gradient": "a request: every differentiable case here makes one",
    **dict.fromkeys(_PYTORCHS, "compared with PyTorch"),
}
