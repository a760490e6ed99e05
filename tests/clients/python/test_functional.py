"""kiln.functional compared with PyTorch: expressions give the same values and gradients."""

import numpy as np
import pytest

import kiln
from kiln import functional as F
from torch_oracle import cosines

ONE_SESSION = True

RANDOM = np.random.default_rng(7)


def normal(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def probability(*shape):
    return RANDOM.uniform(0.02, 0.98, size=shape).astype(np.float32)


def labels(classes, *shape):
    return RANDOM.integers(0, classes, size=shape)


def signs(*shape):
    return (RANDOM.integers(0, 2, size=shape) * 2 - 1).astype(np.float32)


LINE = np.concatenate([np.linspace(-8, 8, 31), [0.0, -90, 90, -1e-3, 1e-3]]).astype(np.float32)
JOINTS = np.array([-3, -1, -0.5, 0, 0.5, 1, 3, 6], np.float32) + np.float32(1e-3)

ACTIVATIONS = [
    "relu(x)", "relu6(x)", "leaky_relu(x, 0.1)", "elu(x, 1.5)", "celu(x, 2.0)", "selu(x)",
    "gelu(x)", "sigmoid(x)", "hardsigmoid(x)", "logsigmoid(x)", "silu(x)", "hardswish(x)",
    "mish(x)", "tanh(x)", "hardtanh(x, -0.7, 2.0)", "softplus(x)", "softplus(x, 2.0, 5.0)",
    "softsign(x)", "tanhshrink(x)", "softshrink(x)", "softshrink(x, 1.0)", "hardshrink(x, 1.0)",
    "threshold(x, 0.2, -3.0)", "rrelu(x)",
]  # fmt: skip

# An expression and its arrays. Arrays with lower-case names get a gradient if they are floats.
CASES = [
    *[(f"F.{call}", {"x": LINE}) for call in ACTIVATIONS],
    *[(f"F.{call}", {"x": JOINTS}) for call in ACTIVATIONS],
    ("F.gelu(x, approximate='tanh')", {"x": LINE}),
    ("F.relu(x)", {"x": np.array([0.0, -0.0, np.inf, -np.inf], np.float32)}),
    ("F.prelu(x, w)", {"x": normal(2, 3, 4), "w": normal(3)}),
    ("F.prelu(x, w)", {"x": normal(2, 3), "w": normal(1)}),
    ("F.glu(x, 1)", {"x": normal(3, 6, 2)}),
    *[(f"F.{name}(x, {dim})", {"x": normal(2, 5, 3) * 9})
      for name in ("softmax", "softmin", "log_softmax") for dim in (0, 1, -1)],
    ("F.normalize(x)", {"x": normal(3, 4)}),
    ("F.normalize(x, p=3.0, dim=0)", {"x": normal(3, 4)}),
    ("F.normalize(x, p=1.0, dim=-1)", {"x": np.zeros((2, 3), np.float32)}),
    ("F.cosine_similarity(x, y)", {"x": normal(3, 4), "y": normal(3, 4)}),
    ("F.cosine_similarity(x, y, dim=0, eps=1e-3)", {"x": normal(3, 4), "y": normal(3, 4)}),
    ("F.pairwise_distance(x, y, p=2.0)", {"x": normal(3, 4), "y": normal(3, 4)}),
    ("F.pairwise_distance(x, y, p=3.0, keepdim=True)", {"x": normal(3, 4), "y": normal(3, 4)}),
    # Convolutions.
    ("F.conv1d(x, w, b, stride=2, padding=1)",
     {"x": normal(2, 3, 9), "w": normal(4, 3, 3), "b": normal(4)}),
    ("F.conv1d(x, w, padding='same', dilation=3)", {"x": normal(2, 3, 9), "w": normal(4, 3, 4)}),
    ("F.conv1d(x, w)", {"x": normal(3, 9), "w": normal(4, 3, 3)}),
    ("F.conv2d(x, w, b, (2, 1), (1, 2), (1, 2), 2)",
     {"x": normal(2, 4, 9, 8), "w": normal(6, 2, 3, 3), "b": normal(6)}),
    ("F.conv2d(x, w, padding='valid', groups=4)",
     {"x": normal(1, 4, 5, 5), "w": normal(8, 1, 3, 3)}),
    ("F.conv3d(x, w, b, (1, 2, 1), (0, 1, 1), 1, 2)",
     {"x": normal(2, 4, 4, 5, 4), "w": normal(2, 2, 2, 3, 2), "b": normal(2)}),
    ("F.conv_transpose1d(x, w, b, 3, 1, 2, 2)",
     {"x": normal(2, 4, 5), "w": normal(4, 3, 4), "b": normal(6)}),
    ("F.conv_transpose1d(x, w, dilation=3, output_padding=2)",
     {"x": normal(2, 3, 4), "w": normal(3, 2, 2)}),
    ("F.conv_transpose2d(x, w, b, (2, 1), (1, 0), (1, 0), 1, (1, 2))",
     {"x": normal(2, 3, 4, 5), "w": normal(3, 4, 3, 2), "b": normal(4)}),
    ("F.conv_transpose2d(x, w, stride=2)", {"x": normal(3, 4, 5), "w": normal(3, 4, 2, 2)}),
    ("F.conv_transpose3d(x, w, stride=(1, 2, 2), groups=2)",
     {"x": normal(1, 4, 2, 3, 2), "w": normal(4, 1, 2, 1, 3)}),
    ("F.unfold(x, (2, 3), (2, 1), 1, (1, 2))", {"x": normal(2, 3, 5, 6)}),
    ("F.fold(x, (5, 6), (2, 3), (2, 1), 1, (1, 2))", {"x": normal(2, 18, 15)}),
    ("F.pixel_shuffle(x, 3)", {"x": normal(2, 18, 2, 3)}),
    ("F.pixel_unshuffle(x, 2)", {"x": normal(2, 3, 4, 6)}),
    ("F.bilinear(x, y, w, b)",
     {"x": normal(3, 4), "y": normal(3, 5), "w": normal(2, 4, 5), "b": normal(2)}),
    # Pools.
    ("F.max_pool1d(x, 3, 2, 1)", {"x": normal(2, 3, 8)}),
    ("F.max_pool1d(x, 3, 2, 1, 2, True)", {"x": normal(2, 3, 9)}),
    ("F.max_pool2d(x, (3, 2), (2, 3), (1, 0), ceil_mode=True)", {"x": normal(2, 3, 8, 9)}),
    ("F.max_pool2d(x, 3, dilation=2, padding=1)", {"x": normal(3, 9, 9)}),
    ("F.max_pool3d(x, (2, 1, 3), stride=1)", {"x": normal(1, 2, 4, 3, 5)}),
    ("F.avg_pool1d(x, 3, 2, 1, True)", {"x": normal(2, 3, 8)}),
    ("F.avg_pool1d(x, 3, 2, 1, True, False)", {"x": normal(2, 3, 8)}),
    ("F.avg_pool2d(x, (3, 2), (2, 3), (1, 1), True, False)", {"x": normal(2, 3, 8, 9)}),
    ("F.avg_pool2d(x, 2, divisor_override=3)", {"x": normal(2, 3, 4, 5)}),
    ("F.avg_pool3d(x, (2, 1, 3), 2, (1, 0, 1))", {"x": normal(1, 2, 4, 3, 5)}),
    ("F.lp_pool1d(x, 2.0, 3, 2)", {"x": probability(2, 3, 8)}),
    ("F.lp_pool2d(x, 3.0, 2)", {"x": probability(2, 3, 4, 5)}),
    ("F.adaptive_avg_pool1d(x, 3)", {"x": normal(2, 3, 8)}),
    ("F.adaptive_avg_pool2d(x, (None, 5))", {"x": normal(2, 3, 4, 7)}),
    ("F.adaptive_avg_pool2d(x, 1)", {"x": normal(2, 3, 4, 7)}),
    ("F.adaptive_avg_pool3d(x, (2, 3, 1))", {"x": normal(1, 2, 3, 4, 5)}),
    ("F.adaptive_max_pool1d(x, 3)", {"x": normal(2, 3, 8)}),
    ("F.adaptive_max_pool2d(x, (3, 2))", {"x": normal(2, 3, 7, 6)}),
    # Padding and resizing.
    ("F.pad(x, (1, 2, 0, 3))", {"x": normal(2, 3, 4)}),
    ("F.pad(x, (1, -1, -1, 3), value=2.5)", {"x": normal(2, 3, 4)}),
    ("F.pad(x, (3, 2), mode='reflect')", {"x": normal(2, 3, 4)}),
    ("F.pad(x, (3, 2, 1, 2), mode='reflect')", {"x": normal(2, 3, 3, 4)}),
    ("F.pad(x, (3, 6, 1, 0), mode='replicate')", {"x": normal(2, 3, 3, 4)}),
    ("F.pad(x, (4, 2, 1, 3), mode='circular')", {"x": normal(2, 3, 3, 4)}),
    ("F.interpolate(x, 11)", {"x": normal(2, 3, 4)}),
    ("F.interpolate(x, scale_factor=2)", {"x": normal(2, 3, 4, 5)}),
    ("F.interpolate(x, (3, 2))", {"x": normal(2, 3, 6, 5)}),
    ("F.interpolate(x, scale_factor=1.6)", {"x": normal(2, 3, 5)}),
    ("F.interpolate(x, (7, 2), mode='nearest-exact')", {"x": normal(2, 3, 4, 5)}),
    ("F.interpolate(x, 7, mode='linear')", {"x": normal(2, 3, 4)}),
    ("F.interpolate(x, (8, 3), mode='bilinear')", {"x": normal(2, 3, 4, 5)}),
    ("F.interpolate(x, (8, 3), mode='bilinear', align_corners=True)", {"x": normal(2, 3, 4, 5)}),
    ("F.interpolate(x, scale_factor=(1.7, 0.6), mode='bilinear')", {"x": normal(2, 3, 4, 5)}),
    ("F.interpolate(x, scale_factor=1.7, mode='bilinear', recompute_scale_factor=True)",
     {"x": normal(2, 3, 4, 5)}),
    ("F.interpolate(x, (7, 3), mode='bicubic')", {"x": normal(2, 3, 4, 5)}),
    ("F.interpolate(x, (7, 3), mode='bicubic', align_corners=True)", {"x": normal(2, 3, 4, 5)}),
    ("F.interpolate(x, (2, 6, 3), mode='trilinear')", {"x": normal(1, 2, 3, 4, 5)}),
    ("F.interpolate(x, (3, 2), mode='area')", {"x": normal(2, 3, 4, 5)}),
    # Normalizations.
    ("F.layer_norm(x, (4,), w, b)", {"x": normal(3, 4), "w": normal(4), "b": normal(4)}),
    ("F.layer_norm(x, (3, 4), eps=0.1)", {"x": normal(2, 3, 4)}),
    ("F.group_norm(x, 2, w, b)", {"x": normal(2, 4, 3), "w": normal(4), "b": normal(4)}),
    ("F.instance_norm(x, weight=w, bias=b)",
     {"x": normal(2, 3, 4), "w": normal(3), "b": normal(3)}),
    ("F.batch_norm(x, None, None, w, b, True)",
     {"x": normal(4, 3, 2), "w": normal(3), "b": normal(3)}),
    ("F.batch_norm(x, M, V, w, b)",
     {"x": normal(4, 3, 2), "M": normal(3), "V": probability(3), "w": normal(3), "b": normal(3)}),
    ("F.local_response_norm(x, 3, 0.5, 0.6, 2.0)", {"x": normal(2, 5, 3)}),
    # Losses.
    *[(f"F.{name}(x, y, reduction='{reduction}')", {"x": normal(3, 4), "y": normal(3, 4)})
      for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
      for reduction in ("mean", "sum", "none")],
    ("F.smooth_l1_loss(x, y, beta=0.3)", {"x": normal(3, 4), "y": normal(3, 4)}),
    ("F.huber_loss(x, y, delta=0.3)", {"x": normal(3, 4), "y": normal(3, 4)}),
    ("F.binary_cross_entropy(x, y)", {"x": probability(3, 4), "y": probability(3, 4)}),
    ("F.binary_cross_entropy(x, Y, W, reduction='none')",
     {"x": np.float32([[0.0, 1.0], [1e-30, 0.5]]), "Y": np.float32([[1, 0.5], [1, 0]]),
      "W": probability(2)}),
    ("F.binary_cross_entropy_with_logits(x, y, W, pos_weight=P)",
     {"x": normal(3, 4) * 30, "y": probability(3, 4), "W": probability(4), "P": probability(4)}),
    ("F.binary_cross_entropy_with_logits(x, y, reduction='sum')",
     {"x": normal(3, 4), "y": probability(3, 4)}),
    ("F.kl_div(x, y, reduction='batchmean')", {"x": normal(3, 4), "y": probability(3, 4)}),
    ("F.kl_div(x, y, reduction='none', log_target=True)", {"x": normal(3, 4), "y": normal(3, 4)}),
    ("F.hinge_embedding_loss(x, Y)", {"x": normal(3, 4), "Y": signs(3, 4)}),
    ("F.margin_ranking_loss(x, y, t, 0.2)", {"x": normal(5), "y": normal(5), "t": signs(5)}),
    ("F.soft_margin_loss(x, Y)", {"x": normal(3, 4) * 20, "Y": signs(3, 4)}),
    ("F.multilabel_soft_margin_loss(x, Y, W)",
     {"x": normal(3, 4), "Y": probability(3, 4), "W": probability(4)}),
    ("F.cosine_embedding_loss(x, y, T, 0.1)",
     {"x": normal(5, 4), "y": normal(5, 4), "T": signs(5)}),
    ("F.triplet_margin_loss(x, y, z)", {"x": normal(5, 4), "y": normal(5, 4), "z": normal(5, 4)}),
    ("F.triplet_margin_loss(x, y, z, 2.0, 3.0, swap=True, reduction='none')",
     {"x": normal(5, 4), "y": normal(5, 4), "z": normal(5, 4)}),
    ("F.gaussian_nll_loss(x, y, v, full=True)",
     {"x": normal(3, 4), "y": normal(3, 4), "v": probability(3, 4)}),
    ("F.gaussian_nll_loss(x, y, v)",
     {"x": normal(3, 4), "y": normal(3, 4), "v": np.float32([[0.5], [1e-9], [2]])}),
    ("F.poisson_nll_loss(x, y, full=True)", {"x": normal(3, 4), "y": probability(3, 4) * 5}),
    ("F.poisson_nll_loss(x, y, log_input=False, reduction='none')",
     {"x": probability(3, 4), "y": probability(3, 4)}),
    *[(f"F.cross_entropy(x, y, reduction='{reduction}')", {"x": normal(6, 5), "y": labels(5, 6)})
      for reduction in ("mean", "sum", "none")],
    *[(f"F.cross_entropy(x, y, W, ignore_index=2, reduction='{reduction}', label_smoothing=0.1)",
       {"x": normal(6, 5, 2), "y": labels(5, 6, 2), "W": probability(5)})
      for reduction in ("mean", "sum", "none")],
    ("F.cross_entropy(x, y)", {"x": normal(3, 5), "y": np.array([1, -100, 4])}),
    ("F.cross_entropy(x, y, label_smoothing=0.3)", {"x": normal(5), "y": np.array(2)}),
    ("F.cross_entropy(x, y, W, label_smoothing=0.2)",
     {"x": normal(6, 5), "y": probability(6, 5), "W": probability(5)}),
    ("F.nll_loss(x, y, W, ignore_index=1)",
     {"x": normal(6, 5), "y": labels(5, 6), "W": probability(5)}),
    ("F.nll_loss(x, y, reduction='none')", {"x": normal(2, 5, 3), "y": labels(5, 2, 3)}),
    ("F.embedding(i, w, padding_idx=1)", {"i": labels(4, 2, 3), "w": normal(4, 3)}),
    # Bags.
    *[(f"F.embedding_bag(i, w, mode='{mode}'{padding})",
       {"i": labels(9, 4, 3), "w": normal(9, 5)})
      for mode in ("sum", "mean", "max") for padding in ("", ", padding_idx=2")],
    *[(f"F.embedding_bag(i, w, O, mode='{mode}'{more})",
       {"i": labels(9, 10), "w": normal(9, 5), "O": np.array([0, 3, 3, 8, 10])})
      for mode in ("sum", "mean", "max")
      for more in ("", ", include_last_offset=True", ", padding_idx=-3")],
    ("F.embedding_bag(i, w, O, mode='sum', per_sample_weights=s)",
     {"i": labels(9, 6), "w": normal(9, 5), "O": np.array([0, 4]), "s": normal(6)}),
    # Places in an image, inside and outside.
    *[(f"F.grid_sample(x, {grid}, mode='{mode}', padding_mode='{padding}', align_corners={align})",
       {"x": normal(2, 3, 5, 4), grid: normal(2, 6, 7, 2)})
      for mode, grid in (("bilinear", "g"), ("nearest", "G"))
      for padding in ("zeros", "border") for align in (False, True)],
    ("F.grid_sample(x, g, align_corners=True)",
     {"x": normal(1, 1, 1, 3), "g": normal(1, 2, 2, 2)}),
    # Distances of all pairs, blocks.
    *[(f"torch.cdist(x, y, p={p})", {"x": normal(2, 4, 3), "y": normal(2, 5, 3)})
      for p in ("2.0", "1.0", "3.0", "float('inf')")],
    ("torch.cdist(X, Y, p=0.0) * z",
     {"X": labels(3, 4, 6).astype(np.float32), "Y": labels(3, 5, 6).astype(np.float32),
      "z": normal(4, 5)}),
    ("torch.block_diag(x, y, z)",
     {"x": normal(2, 3), "y": normal(4), "z": np.float32(2)}),
]  # fmt: skip


@pytest.fixture(scope="module")
def references(torch_values):
    return torch_values(CASES)


def evaluate(expression, arrays):
    tensors = {
        name: kiln.tensor(array, requires_grad=array.dtype == np.float32 and name.islower())
        for name, array in arrays.items()
    }
    value = eval(expression, {"F": F, "torch": kiln, **tensors})
    leaves = {name: tensor for name, tensor in tensors.items() if tensor.requires_grad}
    (value * kiln.tensor(cosines(value.shape))).sum().backward()
    kiln.realize(value, *[leaf.grad for leaf in leaves.values()])
    return value.numpy(), {name: leaf.grad.numpy() for name, leaf in leaves.items()}


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: CASES[i][0][2:])
def test_is_pytorchs(connection, references, number):
    value, gradients = evaluate(*CASES[number])
    np.testing.assert_allclose(value, references[str(number)], rtol=2e-5, atol=2e-6)
    for name, gradient in gradients.items():
        wanted = references[f"{number}/{name}"]
        scale = max(1.0, float(np.abs(wanted).max(initial=0)))
        np.testing.assert_allclose(gradient, wanted, rtol=5e-5, atol=5e-6 * scale, err_msg=name)


def test_the_package_has_what_its_modules_have():
    import importlib
    import pkgutil

    names = set()
    for found in pkgutil.iter_modules(F.__path__):
        if not found.name.startswith("_"):
            module = importlib.import_module(f"kiln.functional.{found.name}")
            names |= {name for name, value in vars(module).items() if not name.startswith("_")
                      and getattr(value, "__module__", None) == module.__name__}
    assert set(F.__all__) == names


def test_softplus_keeps_its_digits_far_to_the_left(connection):
    x = np.array([-30.0, -20.0, -5.0])
    got = F.softplus(kiln.tensor(x.astype(np.float32))).numpy()
    np.testing.assert_allclose(got, np.log1p(np.exp(x)), rtol=2e-6)


def test_nan_goes_through_activations(connection):
    x = kiln.tensor([float("nan")])
    results = [F.relu(x), F.relu6(x), F.hardtanh(x), F.hardswish(x), F.softshrink(x),
               F.hardshrink(x), F.elu(x), F.mish(x), F.softplus(x), F.threshold(x, 0.0, 1.0)]
    kiln.realize(*results)
    assert all(np.isnan(result.numpy()[0]) for result in results)


def test_a_row_that_attends_to_nothing_is_zero_and_so_is_its_gradient(connection):
    query, key = (kiln.tensor(normal(2, 3, 4), requires_grad=True) for _ in range(2))
    kept = np.array([[True, False, True], [False, False, False], [True, True, True]])
    for mask in (kiln.tensor(kept), kiln.tensor(np.where(kept, 0, -np.inf).astype(np.float32))):
        for dropped in (0.0, 0.1):
            query.grad = key.grad = None
            attended = F.scaled_dot_product_attention(query, key, key, mask, dropout_p=dropped)
            attended.sum().backward()
            assert not attended.numpy()[:, 1].any() and not query.grad.numpy()[:, 1].any()
            assert np.isfinite(key.grad.numpy()).all() and np.isfinite(query.grad.numpy()).all()
            assert dropped or query.grad.numpy()[:, 2].any()


def test_heads_in_groups_are_repeated_heads(connection):
    query, key, value = normal(2, 6, 5, 4), normal(2, 2, 7, 4), normal(2, 2, 7, 3)
    got = F.scaled_dot_product_attention(*map(kiln.tensor, (query, key, value)), enable_gqa=True)
    repeated = [kiln.tensor(part.repeat(3, 1)) for part in (key, value)]
    wanted = F.scaled_dot_product_attention(kiln.tensor(query), *repeated)
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_dropout_keeps_the_mean_and_whole_channels(connection):
    kiln.manual_seed(5)
    dropped = F.dropout(kiln.ones(200, 100), 0.3).numpy()
    assert set(np.unique(dropped)) == {np.float32(0), np.float32(1 / 0.7)}
    assert abs(dropped.mean() - 1) < 0.02
    channels = F.dropout2d(kiln.ones(20, 10, 3, 3), 0.5).numpy()
    assert (channels == channels[:, :, :1, :1]).all() and 0.3 < (channels > 0).mean() < 0.7


@pytest.mark.parametrize(("act", "words"), [
    (lambda: F.grid_sample(kiln.ones(1, 2, 3), kiln.ones(1, 2, 2, 2)), r"\(1, 2, 3\).*N, C, H, W"),
    (lambda: F.grid_sample(kiln.ones(1, 1, 2, 2), kiln.ones(1, 2, 2, 2), "bicubic"), "bicubic"),
    (lambda: F.grid_sample(kiln.ones(1, 1, 2, 2), kiln.ones(1, 2, 2, 2), padding_mode="wrap"),
     '"zeros" or "border"'),
    (lambda: F.grid_sample(kiln.ones(1, 1, 2, 2), kiln.ones(1, 2, 2, 2, dtype="int32")), "floats"),
    (lambda: F.embedding_bag(kiln.tensor([1]), kiln.ones(2, 2)), "offsets"),
    (lambda: F.embedding_bag(kiln.tensor([[1]]), kiln.ones(2, 2), mode="min"), '"max"'),
    (lambda: F.embedding_bag(kiln.tensor([[1]]), kiln.ones(2, 2), padding_idx=2), "2 rows"),
    (lambda: F.embedding_bag(kiln.tensor([[1]]), kiln.ones(2, 2),
                             per_sample_weights=kiln.ones(1, 1)), "for mode"),
    (lambda: kiln.cdist(kiln.ones(2, 3), kiln.ones(2, 4)), r"\(2, 3\).*\(2, 4\)"),
    (lambda: kiln.cdist(kiln.ones(2, 3), kiln.ones(2, 3), p=-1), "0 or above"),
    (lambda: kiln.block_diag(), "one tensor"),
    (lambda: kiln.block_diag(kiln.ones(1, 2, 3)), r"\(1, 2, 3\)"),
    (lambda: kiln.histc(kiln.tensor([1])), "int64"),
    (lambda: kiln.histc(kiln.ones(2), bins=0), "at least 1"),
])  # fmt: skip
def test_what_does_not_fit(act, words):
    with pytest.raises(kiln.InvalidArgument, match=words) as caught:
        act()
    assert caught.value.source.startswith("test_functional.py:")


@pytest.mark.parametrize(("values", "low", "high"), [
    ([0.0, 1.0, 1.5, 4.0, 4.5, -1.0, 2.0], 0, 4), ([3.0, 1.0, 2.0, 2.5], 0, 0),
    ([2.0, 2.0], 0, 0), ([], 0, 1),
])  # fmt: skip
def test_histc(connection, values, low, high):
    array = np.array(values, np.float32)
    ends = (low, high) if low != high else (array.min(), array.max())
    if ends[0] == ends[1]:
        ends = (ends[0] - 1, ends[1] + 1)
    found = kiln.histc(kiln.tensor(array), bins=4, min=low, max=high)
    np.testing.assert_array_equal(found.numpy(), np.histogram(array, 4, ends)[0])
    assert found.dtype is kiln.float32
