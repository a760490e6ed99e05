"""Every method compared with NumPy, on a live kilnd."""

import math

import numpy as np
import pytest

import kiln
from kiln import functional as F

ONE_SESSION = True

RANDOM = np.random.default_rng(7)
A = RANDOM.normal(size=(3, 4)).astype(np.float32)
B = RANDOM.normal(size=(3, 4)).astype(np.float32)
POSITIVE = np.abs(A) + 0.5
CUBE = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
COUNTS = RANDOM.integers(-20, 20, size=(3, 4)).astype(np.int32)
DIVISORS = np.where(COUNTS[::-1] == 0, 3, COUNTS[::-1])
FLAGS = A > 0


def check(got, wanted, tolerance=2e-6):
    wanted = np.asarray(wanted)
    assert got.shape == wanted.shape
    value = got.numpy()
    assert value.shape == wanted.shape
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(value, wanted, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(value, wanted)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


UNARY = {
    "erf": (A, np.vectorize(math.erf, otypes=["f4"])), "neg": (A, np.negative),
    "abs": (A, np.abs), "sign": (A, np.sign), "square": (A, np.square),
    "sqrt": (POSITIVE, np.sqrt), "rsqrt": (POSITIVE, lambda x: 1 / np.sqrt(x)),
    "reciprocal": (POSITIVE, np.reciprocal), "exp": (A, np.exp), "exp2": (A, np.exp2),
    "log": (POSITIVE, np.log), "log2": (POSITIVE, np.log2), "sin": (A * 9, np.sin),
    "cos": (A * 9, np.cos), "tan": (A, np.tan), "tanh": (A, np.tanh), "sigmoid": (A, sigmoid),
    "relu": (A, lambda x: np.maximum(x, 0)), "trunc": (A * 5, np.trunc),
    "floor": (A * 5, np.floor), "ceil": (A * 5, np.ceil), "round": (np.float32(A * 5), np.round),
    "isnan": (np.where(FLAGS, A, np.nan), np.isnan),
    "isinf": (np.where(FLAGS, A, -np.inf), np.isinf),
    "isfinite": (np.where(FLAGS, A, np.inf), np.isfinite), "logical_not": (FLAGS, np.logical_not),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary(connection, name):
    data, reference = UNARY[name]
    tolerance = 2e-5 if name == "tan" else 2e-6
    check(getattr(kiln.tensor(data), name)(), reference(data), tolerance)


@pytest.mark.parametrize("name", ["trunc", "floor", "ceil", "round"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rounding_keeps_what_is_no_finite_number(connection, name, dtype):
    data = np.array([np.inf, -np.inf, np.nan, 0.5, 1.5, -2.5, 3.0], dtype)
    wanted = getattr(np, name)(data)
    np.testing.assert_array_equal(getattr(kiln.tensor(data), name)().numpy(), wanted)


BINARY = {
    "add": (A, B, np.add), "sub": (A, B, np.subtract), "mul": (A, B, np.multiply),
    "div": (A, POSITIVE, np.divide), "maximum": (A, B, np.maximum), "minimum": (A, B, np.minimum),
    "pow": (POSITIVE, B, np.power), "lt": (A, B, np.less), "le": (COUNTS, DIVISORS, np.less_equal),
    "gt": (A, B, np.greater), "ge": (COUNTS, COUNTS, np.greater_equal),
    "eq": (COUNTS, DIVISORS, np.equal), "ne": (COUNTS, DIVISORS, np.not_equal),
    "floor_divide": (COUNTS, DIVISORS, np.floor_divide),
    "remainder": (COUNTS, DIVISORS, np.remainder), "logical_and": (FLAGS, B > 0, np.logical_and),
    "logical_or": (FLAGS, B > 0, np.logical_or),
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary(connection, name):
    a, b, reference = BINARY[name]
    check(getattr(kiln.tensor(a), name)(kiln.tensor(b)), reference(a, b), 1e-5)


def test_operators_with_numbers_on_either_side(connection):
    x = kiln.tensor(POSITIVE)
    check(2 - x, 2 - POSITIVE)
    check(2 / x, 2 / POSITIVE)
    check(2**x, 2**POSITIVE, 1e-5)
    check(x**2 + x**3 + x**0.5, POSITIVE**2 + POSITIVE**3 + POSITIVE**0.5, 1e-5)
    check(x // 0.75, POSITIVE // 0.75)
    check(x % 0.75, POSITIVE % 0.75, 1e-5)
    check(-x + abs(-x), np.zeros_like(POSITIVE))
    n = kiln.tensor(COUNTS)
    check(n & 6 | 1, COUNTS & 6 | 1)
    check(n ^ 5, COUNTS ^ 5)
    check(~n, ~COUNTS)
    check(n << 2, COUNTS << 2)
    check(n >> 1, COUNTS >> 1)
    check(7 // n.maximum(1), 7 // np.maximum(COUNTS, 1))
    check(7 % n.maximum(1), 7 % np.maximum(COUNTS, 1))
    check(kiln.tensor(FLAGS) + kiln.tensor(FLAGS), FLAGS + FLAGS)
    check(kiln.tensor(FLAGS) * x, FLAGS * POSITIVE)


def test_broadcasting(connection):
    row, column = kiln.tensor(A[0]), kiln.tensor(B[:, :1])
    check(row + column, A[0] + B[:, :1])
    check(row * kiln.tensor(CUBE), A[0] * CUBE)


@pytest.mark.parametrize("axes", [None, 0, 1, -1, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "prod"])
def test_reductions(connection, name, axes, keepdim):
    wanted = getattr(np, name)(CUBE, axis=axes, keepdims=keepdim)
    check(getattr(kiln.tensor(CUBE), name)(axes, keepdim), wanted, 1e-5)


def test_more_reductions(connection):
    x = kiln.tensor(CUBE)
    check(x.var(1), CUBE.var(1, ddof=1), 1e-5)
    check(x.std((0, 2), correction=0), CUBE.std((0, 2)), 1e-5)
    check(x.norm(), np.linalg.norm(CUBE), 1e-5)
    check(x.argmax(1), CUBE.argmax(1))
    check(x.argmin(-1, keepdim=True), CUBE.argmin(-1, keepdims=True))
    check(x.argmax(), CUBE.argmax())
    check(kiln.tensor(COUNTS).argmin(), COUNTS.argmin())
    check((x > 1).any(0), (CUBE > 1).any(0))
    check((x > -9).all(), np.array(True))
    check((x > 0).sum(), (CUBE > 0).sum())
    check(x.logsumexp(-1), np.log(np.exp(CUBE).sum(-1)), 1e-5)
    check(x.softmax(1), softmax(CUBE, 1), 1e-5)
    check(x.log_softmax(), np.log(softmax(CUBE)), 1e-5)
    check(x.cumsum(1), CUBE.cumsum(1), 1e-5)
    check(kiln.tensor(COUNTS).sum(), COUNTS.sum(dtype=np.int32))
    check(kiln.tensor(5.0).sum(), np.float32(5))


def test_matrix_products(connection):
    x = RANDOM.normal(size=(2, 3, 5, 7)).astype(np.float32)
    y = RANDOM.normal(size=(3, 7, 4)).astype(np.float32)
    check(kiln.tensor(x) @ kiln.tensor(y), x @ y, 1e-5)
    check(kiln.tensor(A) @ kiln.tensor(B[0]), A @ B[0], 1e-5)
    check(kiln.tensor(A[0]).dot(kiln.tensor(B[0])), A[0] @ B[0], 1e-5)
    check(kiln.tensor(A).T @ kiln.tensor(B), A.T @ B, 1e-5)
    big = RANDOM.normal(size=(130, 77)).astype(np.float32)
    check(kiln.tensor(big) @ kiln.tensor(big).T, big @ big.T, 1e-4)


KEYS = [
    np.s_[0], np.s_[-1], np.s_[1:], np.s_[:, 1:3], np.s_[::2], np.s_[:, ::-1], np.s_[::-2, 1::2],
    np.s_[..., 1], np.s_[None], np.s_[:, None, 1], np.s_[1, ..., 2], np.s_[1, 2, 3], np.s_[3:1],
    np.s_[:, -3:-1, ::3], np.s_[0, :, None, ::-3], np.s_[..., None],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_with_integers_and_slices(connection, key):
    check(kiln.tensor(CUBE)[key], CUBE[key])


def test_indexing_with_tensors(connection):
    x = kiln.tensor(CUBE)
    rows = np.array([1, 0, 1, -2])
    places = np.array([[2, 0], [1, -1]])
    check(x[kiln.tensor(rows)], CUBE[rows])
    check(x[:, kiln.tensor(places)], CUBE[:, places])
    check(x[:, 1:, kiln.tensor(places)], CUBE[:, 1:, places])
    check(x[kiln.tensor(rows), kiln.tensor([0, 1, 2, 0])], CUBE[rows, [0, 1, 2, 0]])
    check(x[[1, 0]], CUBE[[1, 0]])
    check(x[kiln.tensor([1, 0]), :, kiln.tensor([2, 3])], CUBE[[1, 0], :, [2, 3]])
    check(x[kiln.tensor(rows) * 1], CUBE[rows])
    check(x.index_select(2, kiln.tensor([3, 0])), CUBE[:, :, [3, 0]])
    index = np.array([[[0, 2, 1, 1]], [[2, 2, 0, 1]]])
    check(x.gather(1, kiln.tensor(index)), np.take_along_axis(CUBE, index, 1))


def test_movement(connection):
    x = kiln.tensor(CUBE)
    check(x.reshape(4, -1), CUBE.reshape(4, 6))
    check(x.flatten(1), CUBE.reshape(2, 12))
    check(x.permute(2, 0, 1), CUBE.transpose(2, 0, 1))
    check(x.transpose(0, 2), CUBE.swapaxes(0, 2))
    check(x.T, CUBE.T)
    check(x.unsqueeze(1).squeeze(1), CUBE)
    check(kiln.tensor(A[:1]).expand(3, 4), np.broadcast_to(A[:1], (3, 4)))
    check(kiln.tensor(A).repeat(2, 3), np.tile(A, (2, 3)))
    check(x.flip(0, 2), CUBE[::-1, :, ::-1])
    check(x.pad((1, 2)), np.pad(CUBE, ((0, 0), (0, 0), (1, 2))))
    check(x.pad((0, 1, 2, 0), value=7), np.pad(
        CUBE, ((0, 0), (2, 0), (0, 1)), constant_values=7))
    check(kiln.cat([x, x * 2], 1), np.concatenate([CUBE, CUBE * 2], 1))
    check(kiln.stack([x, x * 2], -1), np.stack([CUBE, CUBE * 2], -1))
    check(kiln.cat([part * i for i, part in enumerate(x.split(3, 2))], 2), np.concatenate(
        [CUBE[:, :, :3] * 0, CUBE[:, :, 3:]], 2))
    assert [part.shape for part in x.chunk(2, 1)] == [(2, 2, 4), (2, 1, 4)]
    check(kiln.tensor(A).tril(), np.tril(A))
    check(kiln.tensor(A).triu(1), np.triu(A, 1))
    check(x.narrow(1, 1, 2).unflatten(1, (2, 1)), CUBE[:, 1:].reshape(2, 2, 1, 4))


def test_choosing(connection):
    a, b = kiln.tensor(A), kiln.tensor(B)
    check(kiln.where(a > 0, a, b), np.where(A > 0, A, B))
    check(kiln.where(a > 0, 1.0, b), np.where(A > 0, np.float32(1), B))
    check(a.clamp(-0.5, 0.5), A.clip(-0.5, 0.5))
    check(a.clamp(min=0.1), A.clip(0.1))
    check(a.masked_fill(a > 0, -1), np.where(A > 0, np.float32(-1), A))
    check(a.lerp(b, 0.25), A + 0.25 * (B - A), 1e-5)


def test_creation(connection):
    check(kiln.arange(5), np.arange(5))
    check(kiln.arange(2, 11, 3), np.arange(2, 11, 3))
    check(kiln.arange(1.0, 2.0, 0.25), np.arange(1, 2, 0.25, dtype=np.float32))
    check(kiln.arange(5, 0, -2), np.arange(5, 0, -2))
    check(kiln.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32))
    check(kiln.eye(3, 4), np.eye(3, 4, dtype=np.float32))
    check(kiln.full((2, 3), 7), np.full((2, 3), 7))
    check(kiln.zeros(2, 0), np.zeros((2, 0), np.float32))
    check(kiln.ones_like(kiln.tensor(COUNTS)), np.ones_like(COUNTS))
    check(kiln.tensor([2, 0, 1]).one_hot(3), np.eye(3, dtype=np.int64)[[2, 0, 1]])


@pytest.mark.parametrize("dtype", [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64"])  # fmt: skip
def test_every_dtype_travels_and_computes(connection, dtype):
    data = np.array([[0, 1, 2], [3, 100, 7]]).astype(dtype)
    x = kiln.tensor(data)
    check(kiln.cat([x, x]).realize(), np.concatenate([data, data]))
    check((x == x).all(), np.array(True))
    for other in ("int32", "float32", "bool", "uint8", "float64"):
        check(x.cast(other), data.astype(other))
    if dtype != "bool":
        check(x * x + 1, data * data + data.dtype.type(1), 1e-6)


def test_convolution_and_pooling(connection):
    torch_like = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2}
    x = RANDOM.normal(size=(2, 4, 9, 10)).astype(np.float32)
    weight = RANDOM.normal(size=(6, 2, 3, 3)).astype(np.float32)
    bias = RANDOM.normal(size=6).astype(np.float32)
    got = F.conv2d(kiln.tensor(x), kiln.tensor(weight), kiln.tensor(bias), **torch_like)
    check(got, convolve(x, weight, bias, **torch_like), 1e-4)
    got = F.conv2d(kiln.tensor(x), kiln.tensor(weight[:, :, :1, :1].repeat(2, 1)))
    check(got, convolve(x, weight[:, :, :1, :1].repeat(2, 1), 0, (1, 1), (0, 0), (1, 1), 1), 1e-4)
    check(F.max_pool2d(kiln.tensor(x), 2), x[:, :, :8].reshape(2, 4, 4, 2, 5, 2).max((3, 5)))
    check(F.avg_pool2d(kiln.tensor(x), 2), x[:, :, :8].reshape(2, 4, 4, 2, 5, 2).mean((3, 5)), 1e-5)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    check(F.max_pool2d(kiln.tensor(x), 3, 2, 1), windows.max((-2, -1)))


def convolve(x, weight, bias, stride, padding, dilation, groups):
    padded = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2)).astype(np.float64)
    reach = [(size - 1) * step + 1 for size, step in zip(weight.shape[2:], dilation)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, (2, 3))
    windows = windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    channels, outs = x.shape[1] // groups, weight.shape[0] // groups
    parts = [
        np.einsum("nchwij,ocij->nohw", windows[:, g * channels : (g + 1) * channels],
                  weight[g * outs : (g + 1) * outs])
        for g in range(groups)
    ]  # fmt: skip
    return (np.concatenate(parts, 1) + np.reshape(bias, (1, -1, 1, 1))).astype(np.float32)


def test_layers(connection):
    x, rows = kiln.tensor(A), kiln.tensor(B)
    check(F.linear(x, rows, kiln.tensor(A[:, 0])), A @ B.T + A[:, 0], 1e-5)
    centered = A - A.mean(-1, keepdims=True)
    normal = centered / np.sqrt(A.var(-1, keepdims=True) + 1e-5)
    check(F.layer_norm(x, (4,)), normal, 1e-5)
    check(F.layer_norm(x, (4,), rows[0], rows[1]), normal * B[0] + B[1], 1e-5)
    root = np.sqrt((A**2).mean(-1, keepdims=True) + 1e-6)
    check(F.rms_norm(x, None, rows[0]), A / root * B[0], 1e-5)
    check(F.embedding(kiln.tensor([[2, 0], [1, 2]]), x), A[[[2, 0], [1, 2]]])
    check(F.gelu(x, "tanh"), 0.5 * A * (
        1 + np.tanh(np.sqrt(2 / np.pi) * (A + 0.044715 * A**3))), 1e-5)
    check(F.silu(x), A * sigmoid(A), 1e-5)
    check(F.softplus(x), np.log1p(np.exp(A)), 1e-5)
    check(F.leaky_relu(x, 0.1), np.where(A > 0, A, 0.1 * A).astype(np.float32))
    q, k, v = (RANDOM.normal(size=(2, 5, 4)).astype(np.float32) for _ in range(3))
    scores = q @ k.swapaxes(1, 2) / 2
    got = F.scaled_dot_product_attention(*map(kiln.tensor, (q, k, v)))
    check(got, softmax(scores) @ v, 1e-5)
    masked = np.where(np.tril(np.ones((5, 5), bool)), scores, -np.inf)
    got = F.scaled_dot_product_attention(*map(kiln.tensor, (q, k, v)), is_causal=True)
    check(got, softmax(masked) @ v, 1e-5)


def test_losses(connection):
    logits, labels = kiln.tensor(A), np.array([3, 0, 2])
    wanted = -np.log(softmax(A))[np.arange(3), labels].mean()
    check(F.cross_entropy(logits, kiln.tensor(labels)), wanted, 1e-5)
    check(F.nll_loss(logits.log_softmax(), kiln.tensor(labels)), wanted, 1e-5)
    check(F.mse_loss(logits, kiln.tensor(B)), ((A - B) ** 2).mean(), 1e-5)
    check(F.l1_loss(logits, kiln.tensor(B)), np.abs(A - B).mean(), 1e-5)
    target = (B > 0).astype(np.float32)
    wanted = -(target * np.log(sigmoid(A)) + (1 - target) * np.log(1 - sigmoid(A))).mean()
    check(F.binary_cross_entropy_with_logits(logits, kiln.tensor(target)), wanted, 1e-5)


def test_large_tensors_travel_in_chunks(connection):
    data = RANDOM.normal(size=(1100, 1000)).astype(np.float32)
    x = kiln.tensor(data)
    check(x.realize(), data)
    check(x + 1, data + 1)


def test_an_error_of_the_daemon_names_the_users_line(connection):
    x = kiln.tensor([1.0]).expand(1 << 18, 1 << 20) * 2  # a tebibyte
    with pytest.raises(kiln.ResourceExhausted):
        x.numpy()
    check(kiln.ones(2) + 1, np.float32([2, 2]))


def test_prelu_of_no_channels(connection):
    x = kiln.zeros(2, 0, 3)
    assert F.prelu(x, kiln.zeros(0)).numpy().shape == (2, 0, 3)
