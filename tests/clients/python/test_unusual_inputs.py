"""Ties, NaN, empty tensors, scalars and integers: compared with PyTorch in values, dtypes, shapes
and gradients."""

import numpy as np
import pytest

import kiln
from kiln import functional as F
from torch_oracle import cosines

NAN, INF = float("nan"), float("inf")


def f(*values):
    return np.array(values, np.float32)


TIES = np.array([[1, 3, 3, 1], [3, 3, 1, 3], [0, 0, 3, 3], [2, 0, 0, 2]], np.float32)
# At most one NaN in a window: which one PyTorch chooses of several depends on the device.
HOLES = np.array([[1, NAN, 3, 1], [3, 3, 1, 3], [0, 0, -INF, -INF], [INF, 0, -INF, -INF]],
                 np.float32)
PAIR = f(1, NAN, 2, 2, -0.0, INF, NAN), f(2, 1, NAN, 2, 0.0, -INF, NAN)
NONE, NO_ROWS, SCALAR = f(), np.zeros((0, 3), np.float32), np.float32(2.5)
WHOLE = np.arange(-32, 32)
SQUARE = np.array([[4, 1, 0.5], [1, 5, 2], [0.5, 2, 6]], np.float32)
LOWER = np.tril(SQUARE) + np.triu(np.full_like(SQUARE, 9), 1)
POOLS = [
    *[f"F.max_pool2d(x[None], {arguments})[0]" for arguments in (
        "2", "2, 1", "3, 2, 1", "2, 2, ceil_mode=True", "2, 1, dilation=2", "4", "3, 3, 1")],
    *[f"F.max_pool1d(x, {arguments})" for arguments in ("2", "3, 1, 1", "3, 2, 1, ceil_mode=True")],
    "F.max_pool3d(x[None, None], (1, 2, 2))[0, 0]", "F.max_pool3d(x.reshape(1, 1, 4, 2, 2), 2)",
    *[f"F.adaptive_max_pool2d(x[None], {size})[0]" for size in (1, 2, 3, "(3, 1)", "(1, 3)")],
    "F.adaptive_max_pool1d(x, 3)", "F.adaptive_max_pool3d(x.reshape(1, 1, 4, 2, 2), (3, 1, 1))",
]  # fmt: skip
# Only windows that contain NaN or an infinity may become NaN or infinite.
KERNEL = np.array([[1, -2], [3, 0.5]], np.float32)
CONVOLUTIONS = [
    *[(f"F.conv2d(x[None, None], w[None, None], {arguments})[0, 0]", KERNEL) for arguments in (
        "padding=1", "stride=2", "None, 1, 2, 2", "b", "padding='same'")],
    *[(f"F.conv_transpose2d(x[None, None], w[None, None], {arguments})[0, 0]", KERNEL) for arguments in (
        "stride=2", "padding=1", "None, 2, 1, 1", "dilation=2")],
    *[(f"F.{name}(x[None], w[:, None], groups=4{more})[0]", f(1, 2, 3, 4, -1, -2, -3, -4).reshape(4, 2))
      for name in ("conv1d", "conv_transpose1d") for more in ("", ", padding=1", ", stride=3")],
    ("F.conv1d(x[None], w[:, :, None])[0]", TIES[:2] + 1),
    *[(f"F.{name}(x.reshape(1, 1, 4, 2, 2), w[None, None, None], padding=(0, 1, 0))[0, 0]", KERNEL)
      for name in ("conv3d", "conv_transpose3d")],
]
LOSSES = [
    *[f"F.{name}(x, y, reduction='{reduction}')" for reduction in ("mean", "sum", "none")
      for name in (
        "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "binary_cross_entropy",
        "binary_cross_entropy_with_logits", "hinge_embedding_loss")],
    *[f"F.{name}(x, y, y, reduction='{reduction}')" for reduction in ("mean", "sum")
      for name in ("margin_ranking_loss", "gaussian_nll_loss")],
    "F.soft_margin_loss(x, Y)", "F.poisson_nll_loss(x, y)",
    "F.multilabel_soft_margin_loss(x[:, None], y[:, None])",
]  # fmt: skip
CASES = [
    *[(pool, {"x": array}) for pool in POOLS for array in (TIES, HOLES)],
    *[(text, {"x": HOLES, "w": weight, **({"b": f(NAN)} if ", b)" in text else {})})
      for text, weight in CONVOLUTIONS],
    *[(f"torch.{name}(x, y)", {"x": PAIR[0], "y": PAIR[1]}) for name in ("maximum", "minimum")],
    *[(f"x.{name}(y)", {"x": PAIR[0], "y": PAIR[1]}) for name in ("max", "min")],
    ("x.max(y)", {"x": TIES, "y": f(2)}), ("X.max(Y)", {"X": WHOLE, "Y": np.array([1])}),
    ("X.min(Y)", {"X": WHOLE, "Y": np.array(0)}),
    ("torch.max(X, Y)", {"X": WHOLE, "Y": WHOLE[::-1].copy()}),
    ("torch.min(x, y)", {"x": TIES, "y": TIES.T.copy()}),
    *[("F.relu(x)", {"x": array}) for array in (TIES, HOLES)],
    *[(f"F.embedding_bag(I, w, mode='max'{more})", {"I": ids, "w": TIES}) for ids, more in (
        (np.array([[0, 1], [2, 1], [3, 3]]), ""), (np.array([[0, 1], [2, 1]]), ", padding_idx=1"))],
    ("F.embedding_bag(I, w, O, mode='max')",
     {"I": np.array([0, 1, 2, 1, 0]), "O": np.array([0, 2, 2]), "w": TIES}),
    # The gradient is that of a symmetric matrix.
    *[(f"torch.linalg.cholesky(x{half})", {"x": matrix}) for half in ("", ", upper=True")
      for matrix in (SQUARE, np.stack([SQUARE, SQUARE * 2]))],
    ("torch.linalg.cholesky(x)", {"x": LOWER}),
    # Inputs with a factor of 0 are ignored, even NaN.
    *[("torch.addmm(x, a, b, beta=0, alpha=2)", {"x": x, "a": TIES, "b": TIES.T.copy()})
      for x in (HOLES, f(1, NAN, INF, 2), np.float32(NAN))],
    ("torch.baddbmm(x, a, b, beta=0)", {"x": HOLES[None], "a": TIES[None], "b": TIES[None]}),
    ("torch.addmm(x, a, b, beta=0.5, alpha=2)", {"x": TIES, "a": TIES, "b": TIES}),
    # Empty tensors.
    *[(f"x.{call}", {"x": NONE}) for call in (
        "mean()", "sum()", "prod()", "var()", "std()", "norm()", "logsumexp(0)", "cumsum(0)",
        "softmax(0)", "any()", "all()", "sort(0).values", "cummax(0).values")],
    ("X.var(unbiased=False)", {"X": NONE}),
    *[(f"x.{call}", {"x": NO_ROWS}) for call in (
        "mean(0)", "mean(1)", "mean()", "sum(0)", "var(0)", "std(1)", "amax(1)", "amin(1, True)",
        "max(1).values", "norm(dim=0)", "prod(0)")],
    *[(loss, {"x": NONE, "Y" if "Y" in loss else "y": NONE}) for loss in LOSSES],
    *[(f"F.{loss}(x, I, reduction='{reduction}')", {"x": NO_ROWS, "I": np.zeros(0, np.int64)})
      for loss in ("cross_entropy", "nll_loss") for reduction in ("mean", "sum", "none")],
    ("F.cross_entropy(x, I, W)", {"x": NO_ROWS, "I": np.zeros(0, np.int64), "W": f(1, 2, 3)}),
    ("F.cross_entropy(x, y)", {"x": NO_ROWS, "y": NO_ROWS}),
    ("x[M].mean()", {"x": TIES, "M": TIES > 7}),
    ("F.mse_loss(x[M], y[M])", {"x": TIES, "y": TIES, "M": TIES > 7}),
    # Scalars.
    *[(f"x.{call}", {"x": SCALAR}) for call in (
        "mean()", "sum()", "amax()", "max()", "prod()", "sort(0).values", "norm()", "std()",
        "var(unbiased=False)", "flatten()", "unsqueeze(0)", "squeeze()", "argmax()", "any()",
        "count_nonzero()", "median()", "tanh()", "clamp(0, 1)", "repeat(3)", "expand(2)")],
    ("X.var()", {"X": SCALAR}),
    # One variable, and fewer observations than the correction.
    *[(f"torch.{name}(x)", {"x": x}) for name in ("cov", "corrcoef")
      for x in (f(1, 2, 4), f(1, 2, 4)[None], SQUARE, SCALAR, f(3)[None])],
    ("torch.cov(x, correction=0)", {"x": SQUARE}), ("torch.cov(x, correction=5)", {"x": SQUARE}),
    # Integers.
    *[(f"F.avg_pool{rank}d(X, {arguments})", {"X": WHOLE.reshape(shape)})
      for rank, shape in ((1, (1, 64)), (2, (1, 8, 8)), (3, (1, 4, 4, 4)))
      for arguments in ("2", "3, 2, 1", "3, 2, 1, ceil_mode=True",
                        "3, 2, 1, count_include_pad=False")],
    ("F.avg_pool2d(X, 3, divisor_override=2)", {"X": WHOLE.reshape(1, 8, 8)}),
    # float64's 53 bits of precision are not enough.
    ("F.avg_pool1d(X, 2)", {"X": (WHOLE + (1 << 60)).reshape(1, 64)}),
    *[("torch.sign(X)", {"X": array}) for array in (f(-0.0, 0, -2, 3, INF, -INF), WHOLE)],
    ("torch.sign(x)", {"x": f(-0.0, 0, -2, 3)}),
]  # fmt: skip


@pytest.fixture(scope="module")
def references(torch_values):
    return torch_values(CASES)


class Torch:
    """kiln under the name torch."""

    tensor = staticmethod(kiln.tensor)

    def __getattr__(self, name):
        return getattr(kiln, name)


def made(expression, arrays):
    tensors = {name: kiln.tensor(array, requires_grad=array.dtype == np.float32 and name.islower())
               for name, array in arrays.items()}  # fmt: skip
    value = eval(expression, {"F": F, "torch": Torch(), **tensors})
    if value.requires_grad:
        (value * kiln.tensor(cosines(value.shape))).sum().backward()
    return value, {name: tensor.grad for name, tensor in tensors.items() if tensor.requires_grad}


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: f"{i} {CASES[i][0]}")
def test_is_pytorchs(connection, references, number):
    value, gradients = made(*CASES[number])
    wanted = references[str(number)]
    assert (value.shape, value.dtype.name) == (wanted.shape, wanted.dtype.name)
    got = value.numpy()
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)
    for name, gradient in gradients.items():
        if f"{number}/{name}" in references:
            np.testing.assert_allclose(gradient.numpy(), references[f"{number}/{name}"], rtol=5e-5,
                                       atol=5e-6, err_msg=f"gradient of {name}")


@pytest.mark.parametrize("act", [
    "x.amax()", "x.amin(0)", "x.aminmax(0)", "x.max()", "x.min()", "x.max(0)", "x.amax((0, 1))",
    "kiln.max(x)", "kiln.min(x, axis=0)", "x.argmax()", "x.argmin(0)", "x.median()",
    "kiln.median(x, axis=0)", "x.norm(INF)", "x.norm(-INF, 0)", "x.quantile(0.5)", "kiln.nanmax(x)",
    "kiln.linalg.vector_norm(x, ord=INF)", "kiln.linalg.matrix_norm(x, ord=INF)",
])  # fmt: skip
def test_what_nothing_has_is_an_error(act):
    with pytest.raises(kiln.InvalidArgument, match=r"no elements of a tensor of shape"):
        eval(act, {"kiln": kiln, "INF": INF, "x": kiln.zeros(0, 3)})


def test_a_norm_of_no_rows_that_others_have(connection):
    assert kiln.zeros(0, 3).norm(INF, 1).shape == (0,) and kiln.zeros(0, 3).amax(1).shape == (0,)
    assert kiln.linalg.vector_norm(kiln.zeros(0, 3), axis=(), ord=INF).shape == (0, 3)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32"])
def test_pools_of_integers_that_pytorch_has_no_mean_of(dtype):
    for rank, pool in ((1, F.avg_pool1d), (2, F.avg_pool2d), (3, F.avg_pool3d)):
        with pytest.raises(kiln.InvalidArgument, match=f"{dtype}.*floats or int64, cast it first"):
            pool(kiln.zeros(*(1,) * rank, 4, dtype=dtype), 1)


@pytest.mark.parametrize("name", ["max", "min"])
def test_two_tensors_have_no_dimension_to_keep(name):
    x = kiln.ones(2)
    for act in (getattr(x, name), lambda *args: getattr(kiln, name)(x, args[0], keepdims=args[1])):
        with pytest.raises(kiln.InvalidArgument, match=f"{name} of two tensors with keepdim"):
            act(x, True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_padding_and_copies_keep_the_sign_of_zero(connection, dtype):
    x = kiln.tensor([1.0, -0.0], dtype=dtype)
    for padded in (x.pad((1, 1), value=-0.0), F.pad(x, (1, 1), value=-0.0)):
        assert kiln.signbit(padded).tolist() == [True, False, True, True]
    assert kiln.signbit(x.pad((1, 1))).tolist() == [False, False, True, False]
    for moved in (x.repeat(2), x.flip(0).roll(1).repeat(2), kiln.concat([x, x]),
                  kiln.stack([x, x]).flatten()):
        assert kiln.signbit(moved).tolist() == [False, True] * 2


def test_a_gradient_that_is_infinite_stays_at_its_element(connection):
    x = kiln.tensor([[1.0, 3.0, 2.0, 0.0]], requires_grad=True)
    F.max_pool1d(x, 2).backward(kiln.tensor([[INF, 1.0]]))
    assert x.grad.tolist() == [[0, INF, 1, 0]]
