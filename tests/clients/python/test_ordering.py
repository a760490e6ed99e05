"""Methods that return PyTorch's pairs of values and places, and clamping, compared with PyTorch."""

import numpy as np
import pytest

import kiln
from kiln import functional as F
from torch_oracle import cosines

RANDOM = np.random.default_rng(3)
NAN = float("nan")


def distinct(dtype, *shape):
    count = int(np.prod(shape))
    return (RANDOM.permutation(count) - count // 2).reshape(shape).astype(dtype)


TIES = np.array([[1, 3, 3, 2], [5, 5, 5, 5], [0, -1, -1, -2]], np.float32)
SPECIAL = np.array([[1, NAN, 3, NAN], [np.inf, -np.inf, 0, 1], [-np.inf] * 4], np.float32)
MATRIX = distinct(np.float32, 5, 6)
CUBE = distinct(np.float32, 2, 3, 4)
WHOLE = distinct(np.int64, 5, 6)
BOUNDS = np.array([0, 1, 1, 1.5, 2, 2, 3, -np.inf, np.inf], np.float32)
CASES = [
    # Arrays with lower-case names get a gradient, which goes to the element at the index.
    *[(f"x.{call}.values", {"x": MATRIX}) for call in (
        "max(1)", "min(0)", "max(0, True)", "median(1)", "median(0, True)", "cummax(1)",
        "cummin(0)", "sort(1)", "sort(0, True)", "topk(2, 1)", "kthvalue(2, 1)")],
    *[(f"x.{call}.values", {"x": CUBE})
      for call in ("max(-2)", "min(2)", "median(-3)", "cummax(0)")],
    *[(f"x.{call}.values", {"x": array}) for call in (
        "max(1)", "min(1)", "max(0, keepdim=True)", "min(0)", "cummax(1)", "cummin(1)", "cummax(0)")
      for array in (TIES, SPECIAL)],
    *[(f"x.{call}", {"x": TIES})
      for call in ("amax(1)", "amin(0)", "amax((0, 1))", "max()", "min()")],
    *[(f"x.{call}", {"x": SPECIAL}) for call in ("max()", "min()")],
    ("torch.stack(X.aminmax(dim=1))", {"X": TIES}),
    *[(f"X.{call}.{part}", {"X": array})
      for call in ("max(1)", "min(0)", "max(0, keepdim=True)", "median(1)", "median(0, True)",
                   "cummax(1)", "cummin(0)", "sort(1)", "sort(0, descending=True)", "sort()",
                   "topk(2, 1)", "kthvalue(2, 1)")
      for part in ("values", "indices") for array in (MATRIX, WHOLE, WHOLE.astype(np.uint8))],
    *[(f"X.{call}.{part}", {"X": CUBE}) for call in ("max(-2)", "min(2)", "median(-3)", "cummax(0)")
      for part in ("values", "indices")],
    *[(f"X.{call}.{part}", {"X": array}) for call in ("max(1)", "min(1)", "cummax(1)", "cummin(1)")
      for part in ("values", "indices") for array in (TIES, SPECIAL)],
    *[(f"X.{call}", {"X": array}) for call in ("median(1).values", "median()", "max()", "min()")
      for array in (TIES, SPECIAL, MATRIX)],
    *[(call, {"x": BOUNDS}) for call in (
        "x.clamp(1, 2)", "x.clip(1.0, 2.0)", "torch.clamp(x, min=1)", "torch.clamp(x, max=2)",
        "x.clamp_min(1)", "x.clamp_max(2)", "torch.clip(x, 1, 2)", "x.clamp(2, 1)")],
    ("x.clamp(low, high)", {"x": BOUNDS, "low": np.full(9, 1, np.float32),
                            "high": np.full(9, 2, np.float32)}),
    ("x.clamp(min=low)", {"x": BOUNDS, "low": np.array([1], np.float32)}),
    ("x.clamp(max=high)", {"x": BOUNDS, "high": np.array([2], np.float32)}),
    ("X.clamp(2, 4)", {"X": np.arange(6)}),
    ("X.clamp(-1, 300)", {"X": np.arange(6)}),
    *[(f"F.interpolate(X, {size}, mode='{mode}')", {"X": image})
      for mode in ("nearest", "nearest-exact")
      for size, image in (("(3, 7)", RANDOM.integers(0, 256, (2, 3, 5, 4)).astype(np.uint8)),
                          ("9", RANDOM.integers(0, 256, (2, 3, 5)).astype(np.uint8)))],
]  # fmt: skip


@pytest.fixture(scope="module")
def references(torch_values):
    return torch_values(CASES)


def test_values_places_and_gradients_are_pytorchs(connection, references):
    made = []
    for i, (expression, arrays) in enumerate(CASES):
        tensors = {name: kiln.tensor(array, requires_grad=name.islower())
                   for name, array in arrays.items()}  # fmt: skip
        value = eval(expression, {"F": F, "torch": kiln, **tensors})
        made.append((f"{i}: {expression}", value, references[str(i)]))
        if value.requires_grad:
            (value * kiln.tensor(cosines(value.shape))).sum().backward()
        made += [(f"{i}: {expression}, {name}", tensor.grad, references[f"{i}/{name}"])
                 for name, tensor in tensors.items() if tensor.requires_grad]
    kiln.realize(*[value for _, value, _ in made])
    for text, value, wanted in made:
        assert value.dtype.name == wanted.dtype.name, text
        np.testing.assert_allclose(value.numpy(), wanted, rtol=1e-6, err_msg=text)


def test_clipping_has_one_gradient(connection):
    for bounds in ((1.0, 2.0), (2.0, 1.0)):
        leaves = [kiln.tensor(BOUNDS, requires_grad=True) for _ in range(3)]
        values = [leaves[0].clip(*bounds), kiln.clip(leaves[1], *bounds),
                  kiln.ops.clip(leaves[2], min=bounds[0], max=bounds[1])]  # fmt: skip
        for value in values:
            value.sum().backward()
        for value, leaf in zip(values[1:], leaves[1:]):
            np.testing.assert_array_equal(value.numpy(), values[0].numpy())
            np.testing.assert_array_equal(leaf.grad.numpy(), leaves[0].grad.numpy())
        np.testing.assert_array_equal(values[0].numpy(), np.clip(BOUNDS, *bounds))


def test_functions_of_the_array_api_give_values(connection):
    x = kiln.tensor(MATRIX)
    assert kiln.max(x, axis=1).shape == (5,) and kiln.min(x, dim=0).shape == (6,)
    np.testing.assert_array_equal(kiln.sort(x, axis=0).numpy(), np.sort(MATRIX, 0))
    np.testing.assert_array_equal(kiln.median(x, axis=1).numpy(), np.median(MATRIX, 1))
    np.testing.assert_array_equal(x.amax((0, 1)).numpy(), MATRIX.max())


def test_pairs_have_names_and_come_apart(connection):
    values, indices = kiln.tensor([[1.0, 5.0], [7.0, 2.0]]).max(1)
    assert values.tolist() == [5.0, 7.0] and indices.tolist() == [1, 0]
    pair = kiln.tensor([3, 1, 2]).sort(descending=True)
    assert pair.values.tolist() == [3, 2, 1] and pair.indices.tolist() == [0, 2, 1]
    flags = kiln.tensor([[False, True], [False, False]]).max(1)
    assert flags.values.tolist() == [True, False] and flags.indices.tolist() == [1, 0]
    assert kiln.tensor([[1.0, 5.0]]).max(keepdim=True).tolist() == [[5.0]]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "area"])
def test_blended_integers_are_rounded(connection, dtype, mode):
    """At a scale with exact weights. PyTorch supports this only for uint8."""
    ends = np.iinfo(dtype)
    x = RANDOM.integers(max(ends.min, -30000), min(ends.max, 30000), (1, 2, 4, 4)).astype(dtype)
    got = F.interpolate(kiln.tensor(x), scale_factor=2, mode=mode)
    wide = F.interpolate(kiln.tensor(x.astype(np.float64)), scale_factor=2, mode=mode).numpy()
    assert got.dtype.name == dtype
    wanted = np.clip(np.rint(wide), ends.min, ends.max)
    np.testing.assert_array_equal(got.numpy(), wanted.astype(dtype))
