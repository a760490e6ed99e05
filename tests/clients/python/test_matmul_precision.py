"""Precision of float32 matrix products: factors rounded to tf32, compared with NumPy in float64."""

import threading

import numpy as np
import pytest

import kiln
from kiln import functional as F

RANDOM = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def highest_afterwards():
    yield
    kiln.set_float32_matmul_precision("highest")


def normal(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def tf32(x):
    """Rounds to nearest, ties to even; returns float64."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    rounded = (bits + 0xFFF + (bits >> 13 & 1)) & np.uint32(0xFFFFE000)
    return rounded.view(np.float32).astype(np.float64)


def windows(x, size):
    """Returns the windows of (N, C, H, W) as (N, H', W', C, size, size)."""
    view = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))
    return view.transpose(0, 2, 3, 1, 4, 5)


def attention(query, key, value, round):
    scores = round(query) @ round(key).swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return round(weights / weights.sum(-1, keepdims=True)) @ round(value)


A, B, BATCH = normal(37, 70), normal(70, 53), normal(5, 70, 53)
IMAGE, KERNEL = normal(2, 8, 12, 12), normal(16, 8, 3, 3)
QUERY, KEY, VALUE = normal(2, 9, 16), normal(2, 11, 16), normal(2, 11, 16)

# The product, its reference in NumPy with a function that rounds factors, and the tolerance.
PRODUCTS = {
    "matmul": (lambda: kiln.tensor(A) @ kiln.tensor(B), lambda r: r(A) @ r(B), 1e-5),
    "batched": (lambda: kiln.tensor(A) @ kiln.tensor(BATCH), lambda r: r(A) @ r(BATCH), 1e-5),
    "linear": (lambda: F.linear(kiln.tensor(A), kiln.tensor(B.T), kiln.tensor(B[0])),
               lambda r: r(A) @ r(B) + B[0], 1e-5),
    "einsum": (lambda: kiln.einsum("ik,bkj->bji", kiln.tensor(A), kiln.tensor(BATCH)),
               lambda r: np.einsum("ik,bkj->bji", r(A), r(BATCH)), 1e-5),
    "conv2d": (lambda: F.conv2d(kiln.tensor(IMAGE), kiln.tensor(KERNEL)),
               lambda r: np.einsum("nhwcij,ocij->nohw", windows(r(IMAGE), 3), r(KERNEL)), 1e-5),
    # The weights of the second product are rounded, and a last bit of float32 may decide how.
    "attention": (lambda: F.scaled_dot_product_attention(*map(kiln.tensor, (QUERY, KEY, VALUE))),
                  lambda r: attention(QUERY, KEY, VALUE, r), 5e-4),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_factors_are_rounded_as_asked(connection, name):
    compute, reference, tolerance = PRODUCTS[name]
    exact = reference(np.float64)
    np.testing.assert_allclose(compute().numpy(), exact, rtol=1e-5, atol=1e-5)
    kiln.set_float32_matmul_precision("high")
    high = compute().numpy()
    np.testing.assert_allclose(high, reference(tf32), rtol=tolerance, atol=tolerance)
    assert np.abs(high - exact).max() > 1e-4
    kiln.set_float32_matmul_precision("medium")
    np.testing.assert_array_equal(compute().numpy(), high)


def test_gradients_are_rounded_too(connection):
    kiln.set_float32_matmul_precision("high")
    upstream = normal(37, 53)
    a, b = kiln.tensor(A, requires_grad=True), kiln.tensor(B, requires_grad=True)
    ((a @ b) * kiln.tensor(upstream)).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), tf32(upstream) @ tf32(B).T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(b.grad.numpy(), tf32(A).T @ tf32(upstream), rtol=1e-5, atol=1e-5)


def test_gradients_of_convolutions_are_rounded_too(connection):
    kiln.set_float32_matmul_precision("high")
    upstream = normal(2, 16, 10, 10)
    x, weight = kiln.tensor(IMAGE, requires_grad=True), kiln.tensor(KERNEL, requires_grad=True)
    (F.conv2d(x, weight) * kiln.tensor(upstream)).sum().backward()
    spread = np.pad(tf32(upstream), ((0, 0), (0, 0), (2, 2), (2, 2)))
    np.testing.assert_allclose(
        x.grad.numpy(),
        np.einsum("nhwoij,ocij->nchw", windows(spread, 3), tf32(KERNEL)[:, :, ::-1, ::-1]),
        rtol=1e-5, atol=1e-5)  # fmt: skip
    np.testing.assert_allclose(
        weight.grad.numpy(),
        np.einsum("nhwcij,nohw->ocij", windows(tf32(IMAGE), 3), tf32(upstream)),
        rtol=1e-4, atol=1e-4)  # fmt: skip


def test_what_is_no_product_of_matrices_stays_exact(connection):
    x = kiln.tensor(A)
    compute = {
        "variance": lambda: x.var(dim=1),
        "dot": lambda: (x * x).sum(dim=1),
        "vector": lambda: x @ kiln.tensor(B[:, 0]),
        "norm": lambda: F.layer_norm(x, (70,)),
    }
    before = {name: function().numpy() for name, function in compute.items()}
    kiln.set_float32_matmul_precision("high")
    for name, function in compute.items():
        np.testing.assert_array_equal(function().numpy(), before[name], name)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_other_floats_stay_as_they_are(connection, dtype):
    compute = lambda: (kiln.tensor(A).cast(dtype) @ kiln.tensor(B).cast(dtype)).float().numpy()
    before = compute()
    kiln.set_float32_matmul_precision("high")
    np.testing.assert_array_equal(compute(), before)


def test_infinities_and_nan_stay(connection):
    kiln.set_float32_matmul_precision("high")
    odd = np.array([0x7F800000, 0xFF800000, 0x7FC00000, 0x7FFFFFFF, 0x7F800001], np.uint32)
    x = np.stack([np.append(odd.view(np.float32), np.float32(1.0001)), np.ones(6, np.float32)], 1)
    y = np.array([[1, 2], [0, 0]], np.float32)
    want = np.array([np.inf, -np.inf, np.nan, np.nan, np.nan, 1])
    got = (kiln.tensor(x) @ kiln.tensor(y)).numpy()
    np.testing.assert_array_equal(got, want[:, None] * [1, 2])


def test_variables_of_a_shape_know_it(connection):
    kiln.set_float32_matmul_precision("high")
    length = kiln.Variable("length", 8, 64)

    @kiln.jit
    def product(x, w):
        return x @ w

    for size in (9, 30):
        x, w = normal(17, size), normal(size, 19)
        got = product(kiln.tensor(x).with_variable(1, length),
                      kiln.tensor(w).with_variable(0, length))  # fmt: skip
        np.testing.assert_allclose(got.numpy(), tf32(x) @ tf32(w), rtol=1e-5, atol=1e-5)


def test_a_traced_function_is_traced_again(connection):
    @kiln.jit
    def product(x, y):
        return x @ y

    a, b = kiln.tensor(A), kiln.tensor(B)
    exact = product(a, b).numpy()
    kiln.set_float32_matmul_precision("high")
    rounded = product(a, b).numpy()
    assert product.traces == 2
    assert np.abs(rounded - exact).max() > 1e-4
    assert len({program.digest for program in product.programs()}) == 2
    kiln.set_float32_matmul_precision("medium")
    kiln.set_float32_matmul_precision("high")
    np.testing.assert_array_equal(product(a, b).numpy(), rounded)
    kiln.set_float32_matmul_precision("highest")
    np.testing.assert_array_equal(product(a, b).numpy(), exact)
    assert product.traces == 2


def test_lazy_tensors_have_what_holds_when_they_are_computed(connection):
    lazy = kiln.tensor(A) @ kiln.tensor(B)
    kiln.set_float32_matmul_precision("high")
    np.testing.assert_allclose(lazy.numpy(), tf32(A) @ tf32(B), rtol=1e-5, atol=1e-5)


def test_it_is_set_for_all_threads():
    assert kiln.get_float32_matmul_precision() == "highest"
    thread = threading.Thread(target=kiln.set_float32_matmul_precision, args=("medium",))
    thread.start()
    thread.join()
    assert kiln.get_float32_matmul_precision() == "medium"


@pytest.mark.parametrize("wrong", ["low", "HIGH", "", None, 1, ["high"]])
def test_another_name_is_refused(wrong):
    with pytest.raises(kiln.InvalidArgument, match='"highest", "high", "medium"'):
        kiln.set_float32_matmul_precision(wrong)
    assert kiln.get_float32_matmul_precision() == "highest"


def test_it_is_not_set_while_a_function_is_traced(stand_in):
    @kiln.jit
    def product(x):
        kiln.set_float32_matmul_precision("high")
        return x @ x

    with pytest.raises(kiln.TraceError, match="Call it outside"):
        product(kiln.ones((2, 2)))
    assert kiln.get_float32_matmul_precision() == "highest"
