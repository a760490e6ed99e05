"""Bools with bools and with numbers, compared with NumPy and PyTorch."""

import numpy as np
import pytest

import kiln
from kiln import functional as F

A = np.array([True, True, False, False])
B = np.array([True, False, True, False])
M = np.array([[True, False, True], [False, False, True]])
N = np.array([[1, 2, 3], [-4, 0, 6]], np.int32)
U = np.array([3, 0, 200, 255], np.uint8)
X = np.array([0.5, -1.0, 2.0, 0.0], np.float32)
V = np.array([0.5, 3.0, -1.0], np.float32)

# Expressions in NumPy's terms; `np` is kiln when Kiln evaluates them. Bools with bools give bool.
BOTH = [
    "A * B", "A + B", "A * True", "True * A", "A + False", "True + A", "A * B + A", "B ** 1 * 3",
    "A @ B", "M @ M.T", "M @ V", "V @ M.T", "M @ N.T", "N @ M.T", "M[:, :2] @ M",
    "np.multiply(A, B)", "np.add(A, B)", "np.matmul(M, M.T)", "np.outer(A, B)", "np.kron(A, B)",
    "np.kron(M, M)", "np.inner(M, M)", "np.vdot(A, B)", "np.tensordot(M, M, axes=([1], [1]))",
    "np.einsum('ij,kj->ik', M, M)", "np.einsum('i,i', A, B)", "np.einsum('i,j->ij', A, B)",
    "np.einsum('i,i->i', A, X)", "np.einsum('ij->j', M)", "np.maximum(A, B)", "np.minimum(A, B)",
    "np.where(A, B, A)", "np.where(A, True, B)", "np.diff(A)", "np.trace(M)", "A & B", "A | B",
    "A ^ B", "~A", "A.sum()", "A.prod()", "M.sum(0)", "np.max(M, axis=0)", "M.min()", "A.any()",
    "A.all()", "A * U", "U + A", "A - U", "U - A", "A * X", "X + A", "A - X", "X - A", "1 - A",
    "A - 1", "A * 2", "2 * A", "A + 2", "A * 2.5", "A - 0.5", "A // U", "A * N[:, :1]", "M * N",
    "N - M", "A ** 2", "A ** 3", "A ** 1", "A ** 0", "2 ** A", "A == B",
    "A < B", "A <= True", "A != 1",
    "np.isclose(A, B)", "np.concatenate([A, B])", "np.tril(M)", "np.roll(A, 1)", "A[A * B]",
    "X[(X > -1) * (X < 2)]", "X[(X < 0) + (X > 1)]", "A / (U + 1)", "A * np.True_",
]  # fmt: skip
# Kiln's dtypes of results for which NumPy has another one, which is the key.
KINDS = {"float64": "float32", "int8": "int64", "int32": "int64", "uint64": "int64"}


class AsNumPy:
    """kiln with the names that only NumPy has."""

    concatenate = staticmethod(kiln.concat)
    True_ = np.True_

    def __getattr__(self, name):
        return getattr(kiln, name)


ARRAYS = {"A": A, "B": B, "M": M, "N": N, "U": U, "X": X, "V": V}


@pytest.mark.parametrize("expression", BOTH)
def test_is_numpys(connection, expression):
    got = eval(expression, {"np": AsNumPy(), **{k: kiln.tensor(v) for k, v in ARRAYS.items()}})
    with np.errstate(all="ignore"):
        wanted = np.asarray(eval(expression, {"np": np, **ARRAYS}))
    assert got.shape == wanted.shape
    names = {wanted.dtype.name, KINDS.get(wanted.dtype.name)}
    assert got.dtype.name in names, (got.dtype, wanted.dtype)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("expression", ["A * P", "P * A", "A + P", "M @ Q", "A * R", "A - R"])
def test_beside_arrays_of_numpy(connection, expression):
    arrays = {"P": B, "Q": M.T, "R": U}
    tensors = {name: kiln.tensor(value) for name, value in ARRAYS.items()}
    wanted = eval(expression, {**ARRAYS, **arrays})
    got = eval(expression, {**tensors, **arrays})
    assert got.dtype.name == wanted.dtype.name
    np.testing.assert_array_equal(got.numpy(), wanted)


TORCH = [
    ("X.masked_fill(Y, True)", {"X": A, "Y": B}), ("X.masked_fill(Y, 0)", {"X": A, "Y": B}),
    ("X.masked_fill(Y, 7)", {"X": U, "Y": B}), ("x.masked_fill(Y, 7)", {"x": X, "Y": B}),
    ("F.pad(X, (1, 2), value=True)", {"X": A}), ("F.pad(X, (1, 2), value=1)", {"X": A}),
    ("F.pad(X, (1, 2), value=3)", {"X": U}),
    *[(f"X.{name}(0).{part}", {"X": M}) for name in ("cummax", "cummin", "max", "min", "sort")
      for part in ("values", "indices")],
    ("torch.outer(X, Y)", {"X": A, "Y": B}), ("torch.kron(X, Y)", {"X": A, "Y": B}),
    ("X.add(Y)", {"X": A, "Y": B}), ("X.mul(Y)", {"X": A, "Y": B}), ("X ** 2", {"X": A}),
    ("torch.isclose(X, Y)", {"X": A, "Y": B}), ("X.square()", {"X": A}),
    ("X * 2.5", {"X": A}), ("X.cumsum(0)", {"X": M}), ("X.cumprod(0)", {"X": M}),
]  # fmt: skip


def test_is_pytorchs(connection, torch_values):
    references = torch_values(TORCH)
    for i, (expression, arrays) in enumerate(TORCH):
        tensors = {name: kiln.tensor(value) for name, value in arrays.items()}
        got = eval(expression, {"F": F, "torch": kiln, **tensors})
        assert got.dtype.name == references[str(i)].dtype.name, expression
        np.testing.assert_array_equal(got.numpy(), references[str(i)], expression)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32"])
def test_padding_and_filling_keep_the_dtype(connection, dtype):
    x = kiln.tensor(np.ones(3, dtype))
    for result in (x.pad((1, 1), value=1), x.masked_fill(x > 0, 1), F.pad(x, (1, 1), value=1)):
        assert result.dtype is x.dtype
    mask = kiln.tensor([True, False, True])
    filled = x.masked_fill(mask, kiln.tensor(np.zeros((), dtype)))
    assert filled.dtype is x.dtype and filled.tolist() == [0, 1, 0]


@pytest.mark.parametrize("act", [
    lambda a, b: a - b, lambda a, b: a - True, lambda a, b: True - a,
    lambda a, b: kiln.subtract(a, b), lambda a, b: a.sub_(b),
])  # fmt: skip
def test_the_difference_of_bools_is_refused(act):
    with pytest.raises(kiln.InvalidArgument, match=r"difference of two bools.*a \^ b"):
        act(kiln.tensor(A), kiln.tensor(B))


def test_numbers_that_the_dtype_lacks_are_refused():
    with pytest.raises(kiln.InvalidArgument, match=r"0\.5 is not a value of int32"):
        kiln.tensor(N).masked_fill(kiln.tensor(N) > 0, 0.5)
    with pytest.raises(kiln.InvalidArgument, match="cannot assign float32.*int32"):
        kiln.tensor(N).masked_fill(kiln.tensor(N) > 0, kiln.tensor(0.5))


def test_bools_in_place(connection):
    a = kiln.tensor(A)
    a *= kiln.tensor(B)
    assert a.dtype is kiln.bool and a.tolist() == [True, False, False, False]
    a += kiln.tensor(B)
    assert a.dtype is kiln.bool and a.tolist() == B.tolist()


def test_the_condition_of_a_choice_lends_no_dtype(connection):
    x = kiln.ones(2, dtype="bfloat16")
    assert kiln.ops.where(x > 0, x, 0.5).dtype is kiln.bfloat16
    assert kiln.ops.where(x > 0, 0.5, x).dtype is kiln.bfloat16
