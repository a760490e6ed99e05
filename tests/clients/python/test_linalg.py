"""Linear algebra compared with NumPy, and its gradients with finite differences."""

import numpy as np
import pytest

import kiln

RANDOM = np.random.default_rng(9)


def general(*shape):
    return RANDOM.normal(size=shape)


def positive(size, *batch):
    a = RANDOM.normal(size=(*batch, size, size))
    return a @ np.swapaxes(a, -1, -2) + 0.1 * np.eye(size)


@pytest.mark.parametrize("size", [1, 2, 5, 24])
def test_factorisations(connection, size):
    a, b, s = general(3, size, size), general(3, size, 2), positive(size, 2)
    low = np.tril(a) + 2 * np.eye(size)
    x, y = kiln.tensor(a), kiln.tensor(b)
    q, r = kiln.linalg.qr(x)
    checks = [
        (kiln.linalg.cholesky(kiln.tensor(s)), np.linalg.cholesky(s)),
        (kiln.linalg.cholesky(kiln.tensor(s), upper=True),
         np.swapaxes(np.linalg.cholesky(s), -1, -2)),
        (kiln.linalg.solve(x, y), np.linalg.solve(a, b)),
        (kiln.linalg.inv(x), np.linalg.inv(a)),
        (kiln.linalg.det(x), np.linalg.det(a)),
        (kiln.linalg.slogdet(x)[0], np.linalg.slogdet(a)[0]),
        (kiln.linalg.slogdet(x)[1], np.linalg.slogdet(a)[1]),
        (q, np.linalg.qr(a)[0]),
        (r, np.linalg.qr(a)[1]),
        (kiln.linalg.solve_triangular(kiln.tensor(low), y), np.linalg.solve(low, b)),
        (kiln.linalg.solve_triangular(kiln.tensor(low).mT, y, upper=True),
         np.linalg.solve(np.swapaxes(low, -1, -2), b)),
    ]  # fmt: skip
    kiln.realize(*[got for got, _ in checks])
    for i, (got, wanted) in enumerate(checks):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-9, atol=1e-9, err_msg=str(i))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4), (1, 3), (3, 1)])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(connection, shape, mode):
    a = general(*shape)
    q, r = kiln.linalg.qr(kiln.tensor(a), mode=mode)
    wanted = [np.linalg.qr(matrix, mode) for matrix in a.reshape(-1, *shape[-2:])]
    kiln.realize(q, r)
    for got, index in ((q, 0), (r, 1)):
        stacked = np.stack([part[index] for part in wanted]).reshape(got.shape)
        np.testing.assert_allclose(got.numpy(), stacked, rtol=1e-10, atol=1e-12)


def test_singular_matrices(connection):
    a = kiln.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 0.0, 0.0]])
    sign, logarithm = kiln.linalg.slogdet(a)
    assert kiln.linalg.det(a).item() == 0 and sign.item() == 0
    assert logarithm.item() == -np.inf
    assert not np.isfinite(kiln.linalg.inv(a).numpy()).all()
    assert np.isnan(kiln.linalg.cholesky(-kiln.eye(2)).numpy()).any()
    unknown = kiln.tensor([[1.0, 2.0], [np.nan, 3.0]])
    for result in (kiln.linalg.det(unknown), kiln.linalg.inv(unknown)[0, 0]):
        assert np.isnan(result.item())
    needs_exchange = kiln.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert kiln.linalg.inv(needs_exchange).tolist() == [[0.0, 1.0], [1.0, 0.0]]


GRADIENTS = {
    # Of a symmetric matrix, as the gradient is.
    "cholesky": (lambda x: kiln.linalg.cholesky((x + x.mT) / 2), positive(5)),
    "inv": (lambda x: kiln.linalg.inv(x), general(5, 5)),
    "det": (lambda x: kiln.linalg.det(x), general(2, 5, 5)),
    "slogdet": (lambda x: kiln.linalg.slogdet(x).logabsdet, general(5, 5)),
    "solve": (lambda x: kiln.linalg.solve(x, x.mT[:, :2]), general(5, 5)),
    "qr": (lambda x: kiln.linalg.qr(x).Q @ kiln.linalg.qr(x).R[:, :1], general(6, 4)),
    "qr_q": (lambda x: kiln.linalg.qr(x).Q, general(6, 4)),
    "triangular": (lambda x: kiln.linalg.solve_triangular(x, x[:, :2]), positive(4)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_equal_differences(connection, name):
    function, at = GRADIENTS[name]
    x = kiln.tensor(at, requires_grad=True)
    y = function(x)
    weights = kiln.tensor(RANDOM.normal(size=y.shape))
    (y * weights).sum().backward()
    step = 1e-6
    moved = at + step * np.eye(at.size).reshape(at.size, *at.shape)
    back = at - step * np.eye(at.size).reshape(at.size, *at.shape)
    run = kiln.jit(lambda v: (function(v) * weights).sum())
    wanted = [(run(kiln.tensor(p)).item() - run(kiln.tensor(m)).item()) / (2 * step)
              for p, m in list(zip(moved, back))[::3]]  # fmt: skip
    got = x.grad.numpy().reshape(-1)[::3]
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5 * np.abs(got).max())


def cofactors(a):
    n = len(a)
    return np.array([[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
                      for j in range(n)] for i in range(n)])  # fmt: skip


# The gradient does not divide by pivots that are 0, or would be 0 without rounding.
@pytest.mark.parametrize("a", [
    [[0.0, 1, 2], [0, 3, 5], [0, 2, 2]], [[1.0, 2, 3], [2, 4, 7], [3, 6, 1]],
    [[0.1, 0.2, 0.3], [0.3, 0.6, 0.7], [0.7, 1.4, 0.1]], [[1.0, 2, 3], [4, 5, 6], [7, 8, 9]],
    [[1.0, 2, 3], [2, 4, 6], [1, 2, 3]], np.zeros((3, 3)),
])  # fmt: skip
def test_gradient_of_a_singular_determinant(connection, a):
    x = kiln.tensor(np.array(a), requires_grad=True)
    kiln.linalg.det(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), cofactors(np.array(a)), atol=1e-12)


def test_tall_matrices_need_no_square_ones(connection):
    a = general(20000, 3)  # 20000 x 20000 would be 3.2 GB
    q, r = kiln.linalg.qr(kiln.tensor(a))
    np.testing.assert_allclose(np.abs(r.numpy()), np.abs(np.linalg.qr(a)[1]), rtol=1e-10)
    np.testing.assert_allclose((q @ r).numpy(), a, atol=1e-12)
    np.testing.assert_allclose((q.mT @ q).numpy(), np.eye(3), atol=1e-12)


EQUATIONS = [
    ("ij,jk->ik", (3, 4), (4, 5)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ii", (4, 4)),
    ("ii->i", (4, 4)), ("iij->j", (3, 3, 2)), ("ij->ji", (3, 4)), ("ij->", (3, 4)),
    ("i,j->ij", (3,), (4,)), ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("ij,jk,kl->il", (3, 4), (4, 5), (5, 2)),
    ("ab,bc,cd,da", (2, 3), (3, 4), (4, 5), (5, 2)), ("i,i,i->i", (5,), (5,), (5,)),
    ("ij, kj", (3, 4), (2, 4)), ("...i->i...", (2, 3, 4)),
    ("ijk,ilm,njm,nlk,abc->", *[(2, 2, 2)] * 5),
]  # fmt: skip


def test_einsum(connection):
    checks = []
    for equation, *shapes in EQUATIONS:
        operands = [general(*shape) for shape in shapes]
        got = kiln.einsum(equation, *map(kiln.tensor, operands))
        checks.append((got, np.einsum(equation, *operands), equation))
    kiln.realize(*[got for got, _, _ in checks])
    for got, wanted, equation in checks:
        np.testing.assert_allclose(
            got.numpy(), wanted, rtol=1e-11, atol=1e-11, err_msg=equation)


@pytest.mark.parametrize("equation,shapes,message", [
    ("ij,jk->ik", [(2, 3), (4, 5)], "names sizes 3 and 4"),
    ("ij->k", [(2, 3)], "'k' is in the result but in no operand"),
    ("ijk", [(2, 3)], "3 letters for an operand of shape"),
    ("ii->i", [(1, 3)], "'i' is repeated for sizes 1 and 3"),
    ("ij,jk", [(2, 3)], "2 operands are named, but 1 are given"),
])  # fmt: skip
def test_einsum_errors(equation, shapes, message):
    with pytest.raises(kiln.InvalidArgument, match=message):
        kiln.einsum(equation, *[kiln.zeros(*shape) for shape in shapes])


def test_products_and_norms(connection):
    a, b, v = general(3, 4), general(4, 5), general(4)
    x, y, z = kiln.tensor(a), kiln.tensor(b), kiln.tensor(v)
    checks = [
        (kiln.tensordot(x, y, axes=1), np.tensordot(a, b, 1)),
        (kiln.tensordot(x, y, axes=([1], [0])), np.tensordot(a, b, ([1], [0]))),
        (kiln.vecdot(x, z), a @ v), (kiln.inner(x, z), np.inner(a, v)),
        (kiln.outer(z, z), np.outer(v, v)), (kiln.kron(x, y), np.kron(a, b)),
        (kiln.kron(z, y), np.kron(v, b)), (kiln.linalg.trace(x, offset=1), np.trace(a, 1)),
        (kiln.diag(z, 1), np.diag(v, 1)), (kiln.diag(x, -1), np.diag(a, -1)),
        (kiln.cross(x[:, :3], y[:3, 0]), np.cross(a[:, :3], b[:3, 0])),
        (kiln.linalg.matrix_power(x[:, :3], 5), np.linalg.matrix_power(a[:, :3], 5)),
        (kiln.linalg.matrix_power(x[:, :3], -2), np.linalg.matrix_power(a[:, :3], -2)),
    ]  # fmt: skip
    for order in ("fro", 1, -1, np.inf, -np.inf):
        checks.append((kiln.linalg.matrix_norm(x, ord=order), np.linalg.norm(a, order)))
    for order in (2, 1, 0, 3, 0.5, np.inf, -np.inf):
        checks.append((kiln.linalg.vector_norm(z, ord=order), np.linalg.norm(v, order)))
    kiln.realize(*[got for got, _ in checks])
    for i, (got, wanted) in enumerate(checks):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-9, atol=1e-10, err_msg=str(i))
