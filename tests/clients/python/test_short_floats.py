"""float16, bfloat16 and float8, computed by kilnd; NumPy rounds float16 at every step, too."""

import numpy as np
import pytest

import kiln
from kiln import functional as F
from op_table.row import FLOAT8

RANDOM = np.random.default_rng(7)
A = RANDOM.normal(size=(37, 53)).astype(np.float16)
B = RANDOM.normal(size=(37, 53)).astype(np.float16)

STEPS = {
    "add": lambda a, b: a + b,
    "chain": lambda a, b: (a * b - a) / (b * b + 1) * 3,
    "maximum": lambda a, b: abs(a) - b,
    "compare": lambda a, b: a < b,
}


@pytest.mark.parametrize("name", STEPS)
def test_float16_rounds_every_step_as_numpy_does(connection, name):
    got = STEPS[name](kiln.tensor(A), kiln.tensor(B)).numpy()
    want = STEPS[name](A, B)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_sums_accumulate_in_float32(connection):
    ones = kiln.ones(5000, dtype=kiln.float16)
    assert ones.sum().item() == 5000  # 2048 + 1 is 2048 in float16
    assert ones.bfloat16().sum().item() == 4992  # the nearest number


@pytest.mark.parametrize("dtype, tolerance", [("float16", 1e-3), ("bfloat16", 8e-3)])
def test_products_of_matrices_round_once(connection, dtype, tolerance):
    x = RANDOM.normal(size=(70, 300)).astype(np.float32)
    w = RANDOM.normal(size=(300, 90)).astype(np.float32)
    left, right = kiln.tensor(x).cast(dtype), kiln.tensor(w).cast(dtype)
    got = (left @ right).float().numpy()
    want = left.float().numpy() @ right.float().numpy()
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_loss_in_half_precision_has_gradients(connection, dtype):
    weight = kiln.tensor(RANDOM.normal(size=(10, 53)).astype(np.float32) / 8, requires_grad=True)
    x = kiln.tensor(A)

    def loss(half):
        logits = F.linear(x.cast(half), weight.cast(half))
        return F.gelu(logits).float().square().mean()

    loss("float32").backward()
    want, weight.grad = weight.grad.numpy(), None
    loss(dtype).backward()
    assert weight.grad.dtype is kiln.float32
    np.testing.assert_allclose(weight.grad.numpy(), want, atol=2e-2 * np.abs(want).max())


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_is_stored_moved_and_compared(connection, dtype):
    x = kiln.tensor(A).cast(dtype)
    moved = kiln.where(x < x.flip(0), x, x.flip(0)).T.float().numpy()
    stored = x.float().numpy()
    np.testing.assert_array_equal(moved, np.minimum(stored, stored[::-1]).T)
    np.testing.assert_allclose(stored, A, rtol=0.13, atol=0.01)


def test_arithmetic_on_float8_is_refused_with_the_remedy():
    x = kiln.tensor(A).cast("float8_e4m3")
    with pytest.raises(kiln.InvalidArgument, match="only stores numbers; cast it to float16"):
        x + x
    with pytest.raises(kiln.InvalidArgument, match="only stores numbers"):
        x.exp()


def test_integers_to_the_power_of_integers_stay_integers(connection):
    base = np.array([2, -3, 0, 7, 10], np.int64)
    power = np.array([10, 3, 0, 22, 19], np.int64)
    got = kiln.tensor(base) ** kiln.tensor(power)
    assert got.dtype is kiln.int64
    np.testing.assert_array_equal(got.numpy(), base**power)
    with pytest.raises(kiln.InvalidArgument, match="cast the tensor to float32"):
        kiln.tensor(base) ** -2


def test_remainders_of_floats_are_exact(connection):
    a = np.float32([1e20, -1e20, 5.5, -5.5, 1, 7, np.inf, 3])
    b = np.float32([3, 7, 2, 2, 0.1, np.inf, 2, 0])
    with np.errstate(invalid="ignore", divide="ignore"):
        want = np.remainder(a, b), np.floor_divide(a, b)
    np.testing.assert_array_equal((kiln.tensor(a) % kiln.tensor(b)).numpy(), want[0])
    np.testing.assert_array_equal((kiln.tensor(a) // kiln.tensor(b)).numpy()[:-1], want[1][:-1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rotary_positions_are_float32s_rounded_once(connection, dtype):
    x = kiln.tensor(RANDOM.normal(size=(2, 9, 8)).astype(np.float32)).cast(dtype)
    cos, sin = F.rotary_tables(kiln.arange(9), 6)
    turned = F.rotary_embedding(x, cos, sin)
    assert turned.dtype is x.dtype and cos.dtype is kiln.float32
    wanted = F.rotary_embedding(x.float(), cos, sin).cast(dtype)
    np.testing.assert_array_equal(turned.float().numpy(), wanted.float().numpy())
