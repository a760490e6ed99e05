"""Methods with other names of PyTorch, compared with NumPy."""

import copy
import pickle

import numpy as np
import pytest

import kiln
from kiln import _attached_methods
from kiln._tensor.attached import AttachedMethods

X = np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32)
Y = np.random.default_rng(4).normal(size=(3, 4)).astype(np.float32)
N = np.array([[6, -5, 0], [3, 2, -1]], np.int32)

METHODS = {
    "absolute": (lambda x, y, n: x.absolute(), np.abs(X)),
    "negative": (lambda x, y, n: x.negative(), -X),
    "true_divide": (lambda x, y, n: x.true_divide(y), X / Y),
    "less": (lambda x, y, n: x.less(y), X < Y),
    "greater_equal": (lambda x, y, n: x.greater_equal(y), X >= Y),
    "not_equal": (lambda x, y, n: n.not_equal(2), N != 2),
    "logical_xor": (lambda x, y, n: n.logical_xor(n > 2), N.astype(bool) ^ (N > 2)),
    "bitwise_and": (lambda x, y, n: n.bitwise_and(3), N & 3),
    "bitwise_or": (lambda x, y, n: n.bitwise_or(n * 2), N | (N * 2)),
    "bitwise_xor": (lambda x, y, n: n.bitwise_xor(3), N ^ 3),
    "bitwise_not": (lambda x, y, n: n.bitwise_not(), ~N),
    "shifts": (lambda x, y, n: n.bitwise_left_shift(2).bitwise_right_shift(1), N << 2 >> 1),
    "reflected shifts": (lambda x, y, n: (3 << n.abs()) + (64 >> n.abs()),
                         (3 << abs(N)) + (64 >> abs(N))),
    "frac": (lambda x, y, n: (x * 3).frac(), np.modf(X * 3)[0]),
    "clamp_min": (lambda x, y, n: x.clamp_min(0.1).clamp_max(0.5), X.clip(0.1, 0.5)),
    "clamp by tensors": (lambda x, y, n: x.clamp(y, y + 1), X.clip(Y, Y + 1)),
    "addcmul": (lambda x, y, n: x.addcmul(x, y, 2), X + 2 * X * Y),
    "addcdiv": (lambda x, y, n: x.addcdiv(x, y, 0.5), X + 0.5 * X / Y),
    "addmm": (lambda x, y, n: x.mT.addmm(x.T @ y, y.T, 2, 3), 2 * X.T + 3 * (X.T @ Y @ Y.T)),
    "count_nonzero": (lambda x, y, n: n.count_nonzero(1), np.count_nonzero(N, 1)),
    "aminmax": (lambda x, y, n: kiln.stack(x.aminmax(0)), np.stack([X.min(0), X.max(0)])),
    "dist": (lambda x, y, n: x.dist(y), np.linalg.norm(X - Y)),
    "isclose": (lambda x, y, n: x.isclose(x * kiln.tensor([1, 1.001, 1 + 1e-7, 1])),
                np.broadcast_to([True, False, True, True], (3, 4))),
    "ravel": (lambda x, y, n: x.T.ravel(), X.T.ravel()),
    "t": (lambda x, y, n: x.t(), X.T),
    "select": (lambda x, y, n: x.select(1, -1), X[:, -1]),
    "moveaxis": (lambda x, y, n: x[None].movedim(0, 2), X[:, :, None]),
    "tile": (lambda x, y, n: x.tile(2, 1, 3), np.tile(X, (2, 1, 3))),
    "roll": (lambda x, y, n: x.roll((1, 2), (0, 1)), np.roll(X, (1, 2), (0, 1))),
    "repeat_interleave": (lambda x, y, n: x.repeat_interleave(2, 1), np.repeat(X, 2, 1)),
    "tensor_split": (lambda x, y, n: x.tensor_split(3, 1)[0], np.array_split(X, 3, 1)[0]),
    "unfold": (lambda x, y, n: x.unfold(1, 2, 2), X.reshape(3, 2, 2)),
    "nonzero": (lambda x, y, n: n.nonzero(), np.argwhere(N)),
    "masked_select": (lambda x, y, n: x.masked_select(x > 0), X[X > 0]),
    "unique": (lambda x, y, n: n.abs().unique(), np.unique(abs(N))),
    "take_along_dim": (lambda x, y, n: x.take_along_dim(kiln.tensor([[1], [0], [3]]), 1),
                       np.take_along_axis(X, np.array([[1], [0], [3]]), 1)),
    "new_full": (lambda x, y, n: n.new_full((2,), 7) + n.new_ones(2) + n.new_zeros(2),
                 np.int32([8, 8])),
    "to": (lambda x, y, n: n.to(x).to("int64").short().char(), N.astype(np.int8)),
    "divmod": (lambda x, y, n: divmod(n, 4)[0] * 10 + divmod(n, 4)[1], N // 4 * 10 + N % 4),
    "sum of integers": (lambda x, y, n: n.sum(), N.sum(dtype=np.int64)),
    "sum of bytes": (lambda x, y, n: n.byte().sum(0), N.astype(np.uint8).sum(0, dtype=np.uint64)),
}  # fmt: skip


def test_methods(connection):
    x, y, n = kiln.tensor(X), kiln.tensor(Y), kiln.tensor(N)
    results = {name: act(x, y, n) for name, (act, _) in METHODS.items()}
    kiln.realize(*results.values())
    for name, (_, wanted) in METHODS.items():
        got = results[name].numpy()
        assert (got.shape, got.dtype) == (np.shape(wanted), np.asarray(wanted).dtype), name
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6, err_msg=name)


IN_PLACE = {
    "+=": lambda x: x.__iadd__(2), "-=": lambda x: x.__isub__(2), "*=": lambda x: x.__imul__(2),
    "//=": lambda x: x.__ifloordiv__(2), "%=": lambda x: x.__imod__(2),
    "**=": lambda x: x.__ipow__(2), "/=": lambda x: x.__itruediv__(2),
}  # fmt: skip


@pytest.mark.parametrize("sign", IN_PLACE)
def test_operators_in_place(connection, sign):
    x, wanted = kiln.tensor(X), X.copy()
    before, other = x * 1, x
    IN_PLACE[sign](x)
    IN_PLACE[sign](wanted)
    assert other is x
    np.testing.assert_allclose(x.numpy(), wanted, rtol=1e-6)
    np.testing.assert_array_equal(before.numpy(), X)


def test_bits_in_place(connection):
    n, wanted = kiln.tensor(N), N.copy()
    n &= 7
    n |= 8
    n ^= 1
    n <<= 3
    n >>= 1
    wanted = ((((wanted & 7) | 8) ^ 1) << 3) >> 1
    np.testing.assert_array_equal(n.numpy(), wanted)
    n @= kiln.eye(3, dtype="int32")
    np.testing.assert_array_equal(n.numpy(), wanted)


def test_methods_in_place(connection):
    x = kiln.tensor(X)
    assert x.abs_().add_(1).sqrt_().clamp_(max=1.2).mul_(2) is x
    np.testing.assert_allclose(x.numpy(), np.sqrt(abs(X) + 1).clip(max=1.2) * 2, rtol=1e-6)
    with pytest.raises(kiln.InvalidArgument, match=r"int32.*test_methods\.py:"):
        kiln.tensor(N).div_(2)


def test_whole_tensors_are_compared(connection):
    x = kiln.tensor(X)
    assert x.equal(x * 1) and not x.equal(x + 1) and not x.equal(x.T)
    assert x.allclose(x * (1 + 1e-7)) and not x.allclose(x + 1)
    nan = kiln.tensor([np.nan, np.inf])
    assert not nan.allclose(nan) and nan.allclose(nan, equal_nan=True)


def test_comparisons_with_integers_that_the_dtype_lacks(connection):
    x = kiln.tensor([0, 255], "uint8")
    for other, wanted in ((-1, "ne gt ge"), (256, "ne lt le"), (1 << 70, "ne lt le")):
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            assert getattr(x, name)(other).tolist() == [name in wanted.split()] * 2
    assert 255 in x and 7 not in x and 300 not in x


def test_equality_with_what_is_no_operand_is_false():
    x = kiln.zeros(2)
    for other in (None, "a", {}, int):
        assert (x == other) is False and (x != other) is True
    assert x in [x] and len({x, x, kiln.zeros(2)}) == 2


def test_large_tensors_print_their_corners(connection):
    x = kiln.arange(2_000_000).reshape(1000, 2000) * 1
    sizes = []
    download = connection.download
    connection.download = lambda buffer: sizes.append(buffer.nbytes) or download(buffer)
    assert repr(x) == "tensor(lazy, shape=(1000, 2000), dtype=int64)"
    text = str(x.float())
    assert sizes == [7 * 7 * 4]
    for part in ("0.000e+00", "1.999e+03", "...", "shape=(1000, 2000)", "dtype=float32"):
        assert part in text
    wanted = np.array2string(np.arange(2_000_000).reshape(1000, 2000), separator=", ",
                             prefix="tensor(", threshold=100)
    assert str(x) == f"tensor({wanted}, shape=(1000, 2000), dtype=int64)"
    assert sizes == [7 * 7 * 4, 7 * 7 * 8]
    assert repr(x.realize()) == str(x)
    assert str(kiln.zeros(0, 3)) == "tensor([], dtype=float32)"
    assert str(kiln.tensor(2.5)) == "tensor(2.5, dtype=float32)"
    assert "requires_grad=True" in str(kiln.zeros(2, requires_grad=True))


def test_copies(connection):
    for x in (kiln.tensor(X) * 1, kiln.tensor(X, requires_grad=True), kiln.tensor(X, "bfloat16"),
              kiln.tensor(X, "float8_e5m2")):  # fmt: skip
        for copied in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert copied is not x and copied.dtype is x.dtype
            assert copied.requires_grad is x.requires_grad
            np.testing.assert_array_equal(copied.numpy(), x.numpy())
            with kiln.no_grad():
                copied[0] = 7
            assert not np.array_equal(copied.numpy(), x.numpy())
    weight = kiln.nn.Parameter(kiln.zeros(2))
    assert type(pickle.loads(pickle.dumps(weight))) is kiln.nn.Parameter


def test_methods_that_are_functions_too(connection):
    from kiln import method_functions

    for name in method_functions.__all__:
        assert getattr(kiln, name) is getattr(kiln.Tensor, name), name
    x = kiln.arange(6.0).reshape(1, 2, 3)
    assert kiln.bmm(x, x.mT).tolist() == [[[5, 14], [14, 50]]]
    assert kiln.clamp(x, max=1).sum().item() == 5
    assert kiln.cumprod(x, dim=2).tolist() == [[[0, 0, 0], [3, 12, 60]]]


def test_functions_of_the_array_api_take_pytorchs_keywords(connection):
    x = kiln.tensor([[3.0, 1.0], [2.0, 5.0]])
    assert kiln.sort(x, dim=0).tolist() == [[2, 1], [3, 5]]
    assert kiln.quantile(x, 0.5, dim=1, keepdim=True).tolist() == [[2], [3.5]]
    assert kiln.nansum(x, dim=0).tolist() == [5, 6]
    assert kiln.cumulative_prod(x, dim=1).tolist() == [[3, 3], [2, 10]]
    assert kiln.topk(x, 1, dim=0).indices.tolist() == [[0, 1]]
    assert kiln.roll(x, shifts=(1, 1), dims=(0, 1)).tolist() == [[5, 2], [1, 3]]
    assert kiln.roll(x, 1, 0).tolist() == [[2, 5], [3, 1]]
    assert kiln.flip(x, dims=(0,)).tolist() == [[2, 5], [3, 1]]
    assert kiln.tensordot(x, x, dims=([0], [0])).tolist() == [[13, 13], [13, 26]]
    assert x.var(0, unbiased=False).tolist() == [0.25, 4]
    assert x.std(unbiased=True).item() == x.std().item()
    assert kiln.searchsorted(kiln.arange(3), kiln.tensor([1]), right=True).tolist() == [2]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32"])
def test_division_with_a_rounding_mode(connection, dtype):
    a = np.array([7, 100, 8, 0, 1] if dtype == "uint8" else [-7, 7, -8, 0, 1], dtype)
    for divisor in (3, 2) if dtype == "uint8" else (3, -2):
        x = kiln.tensor(a)
        for mode, function in (("trunc", np.trunc), ("floor", np.floor)):
            got = x.div(divisor, rounding_mode=mode)
            assert got.dtype is x.dtype
            assert got.tolist() == function(a / float(divisor)).tolist()
    with pytest.raises(kiln.InvalidArgument, match="rounding_mode 'up'; it must be"):
        kiln.ones(2).div(2, rounding_mode="up")


def test_scattering_in_place_and_of_a_number(connection):
    x = kiln.zeros(2, 3)
    before = x + 0
    x.scatter_(1, kiln.tensor([[2], [0]]), 5.0)
    x.scatter_add_(0, kiln.tensor([[1, 1, 1]]), kiln.ones(1, 3))
    assert x.tolist() == [[0, 0, 5], [6, 1, 1]]
    x.index_add_(0, kiln.tensor([0, 0]), kiln.ones(2, 3))
    assert x.tolist() == [[2, 2, 7], [6, 1, 1]]
    assert before.tolist() == [[0] * 3] * 2


def test_the_first_true(connection):
    mask = kiln.tensor([[False, True, True], [False, False, False]])
    assert (mask.argmax().item(), mask.argmax(1).tolist()) == (1, [1, 0])
    assert kiln.argmin(mask, axis=0).tolist() == [0, 1, 1]


def test_the_classes_of_tensor_are_one_line():
    line = [kind for kind in kiln.Tensor.__mro__ if kind.__module__.startswith("kiln")]
    assert all(kind.__bases__ == (base,) for kind, base in zip(line, line[1:]))
    assert line[-1].__bases__ == (object,)


def test_functions_that_are_methods_too(connection):
    a = kiln.tensor([[2.0, 1.0], [1.0, 3.0]])
    assert (a.trace().item(), a.nansum().item()) == (5, 7)
    np.testing.assert_allclose(a.det().item(), 5, rtol=1e-6)
    np.testing.assert_allclose((a.inverse() @ a).numpy(), np.eye(2), atol=1e-6)
    assert a.diag().tolist() == [2, 3]
    assert a.quantile(0.5, dim=1).tolist() == [1.5, 2]
    assert a[0].outer(a[1]).tolist() == [[2, 6], [1, 3]]
    assert a.kthvalue(1).values.tolist() == [1, 1]
    assert kiln.tensor([1, 1, 2]).bincount(minlength=4).tolist() == [0, 2, 1, 0]
    assert kiln.Tensor.trace is kiln.trace
    assert {*AttachedMethods.__annotations__} == {*_attached_methods.METHODS}
