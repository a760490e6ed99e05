"""No function, method or op accepts a bool as an axis or a size, or a number as a bool."""

import inspect
import re

import numpy as np
import pytest

import kiln
from kiln import functional as F
from kiln import nn
from kiln._graph.node import TABLE
from op_table.table import ROWS
from test_op_table import TRIED, applied, cases_for, operands_of, variable

X = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
NAMES = {
    "x": X, "v": X[0], "i": np.array([[1, 0, 2, 3]]), "j": np.array([1, 0]),
    "c": np.array([1, 2, 2, 0]),
    "a1": X[None], "a2": X[None, None], "a3": np.broadcast_to(X, (1, 1, 4, 4, 4)),
    "w1": X[:1, :2].reshape(1, 1, 2), "w2": X[:2, :2].reshape(1, 1, 2, 2),
    "w3": np.ones((1, 1, 2, 2, 2), np.float32),
}  # fmt: skip

# Calls in which an axis, a size or a count is written <so>: a bool in its place is an error.
METHODS = [
    *[f"x.{name}(<0>)" for name in (
        "sum", "prod", "mean", "any", "all", "count_nonzero", "logsumexp", "softmax",
        "log_softmax", "cumsum", "cumprod", "logcumsumexp", "amax", "amin", "aminmax", "max",
        "min", "argmax", "argmin", "median", "cummax", "cummin", "sort", "argsort", "squeeze",
        "unsqueeze", "unbind", "flip", "flatten")],
    *[f"x.{name}((0, <1>))" for name in ("sum", "mean", "var", "std", "amax")],
    "x.norm(2, <0>)", "x.var((<0>,))", "x.std((0, <1>))", "x.var(dim=(<0>,), unbiased=True)",
    "x.sum(axis=<0>)", "x.sort(axis=<0>)", "x.flatten(0, <1>)", "x.topk(<2>)", "x.topk(2, <0>)",
    "x.kthvalue(<1>)", "x.kthvalue(1, axis=<0>)", "x.reshape(<4>, 4)", "x.reshape((4, <4>))",
    "x.view(<16>)", "x.expand(4, <4>)", "x.broadcast_to(<4>, 4)", "x.unflatten(<0>, (2, 2))",
    "x.unflatten(0, (<2>, 2))", "x.permute(<1>, 0)", "x.transpose(<0>, 1)", "x.swapaxes(0, <1>)",
    "x.swapdims(<0>, 1)", "x.moveaxis(<0>, 1)", "x.movedim(0, <1>)", "x.repeat(<2>, 1)",
    "x.tile(<2>)", "x.repeat_interleave(<2>)", "x.repeat_interleave(2, <0>)",
    "x.roll(<1>)", "x.roll(1, <0>)", "x.pad((<1>, 1))",
    "c.one_hot(<3>)", "x.tril(<0>)", "x.triu(<0>)", "x.narrow(<0>, 1, 2)", "x.narrow(0, <1>, 2)",
    "x.narrow(0, 1, <2>)", "x.select(<0>, 1)", "x.select(0, <1>)", "x.chunk(<2>)",
    "x.chunk(2, <0>)",
    "x.split(<2>)", "x.split(2, <0>)", "x.split([<1>, 3])", "x.split_with_sizes([2, 2], <0>)",
    "x.tensor_split(<2>)", "x.tensor_split(2, <0>)", "x.unfold(<0>, 2, 1)", "x.unfold(0, <2>, 1)",
    "x.unfold(0, 2, <1>)", "x.diagonal(<0>)", "x.diagonal(0, <0>, 1)", "x.diagonal(0, 0, <1>)",
    "x.diag(<0>)", "x.diag_embed(<0>)", "x.trace(offset=<0>)", "x.gather(<0>, i)",
    "x.scatter(<0>, i, x[:1])", "x.scatter_add(<0>, i, x[:1])",
    "x.scatter_reduce(<0>, i, x[:1], 'sum')", "x.index_add(<0>, j, x[:2])",
    "x.index_copy(<0>, j, x[:2])", "x.index_reduce(<0>, j, x[:2], 'prod')",
    "x.index_select(<0>, j)",
    "x.take_along_dim(i, <0>)", "x.new_zeros(<2>, 2)", "x.new_ones((2, <2>))",
    "x.new_full((<2>,), 1)", "x.diff(axis=<0>)", "x.diff(n=<1>)", "x.quantile(0.5, axis=<0>)",
    "x.nansum(axis=<0>)", "x.nanmean(axis=<0>)", "x[:3].cross(x[:3], axis=<0>)",
    "x.matrix_power(<2>)", "c.bincount(minlength=<2>)", "c.bincount(length=<3>)",
    "x.multinomial(<2>)", "x.with_variable(<0>, kiln.Variable('n', 1, 9))",
]  # fmt: skip
FUNCTIONS = [
    *[f"kiln.{name}(x, axis=<0>)" for name in (
        "all", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumulative_prod",
        "cumulative_sum", "diff", "expand_dims", "flip", "max", "mean", "median", "min", "nanmax",
        "nanmean", "nanmin", "nanstd", "nansum", "nanvar", "prod", "sort", "std", "sum",
        "trapezoid", "unstack", "var", "linalg.vector_norm")],
    *[f"kiln.{name}(<3>, 3)" for name in (
        "zeros", "ones", "empty", "rand", "randn", "eye", "random.random_bits", "random.uniform")],
    *[f"kiln.{name}((3, <3>))" for name in ("zeros", "ones", "empty", "rand", "randn")],
    "kiln.full((<2>,), 1)", "kiln.full(<2>, 1)", "kiln.eye(2, <3>)", "kiln.eye(2, k=<0>)",
    "kiln.linspace(0, 1, <3>)", "kiln.iota((<2>,))", "kiln.iota((2, 2), <1>)",
    "kiln.kthvalue(x, <1>)", "kiln.kthvalue(x, 1, axis=<0>)", "kiln.topk(x, <1>)",
    "kiln.topk(x, 1, axis=<0>)", "kiln.quantile(x, 0.5, axis=<0>)", "kiln.concat([x, x], axis=<0>)",
    "kiln.cat([x, x], <0>)", "kiln.stack([x, x], axis=<0>)", "kiln.squeeze(x[:1], <0>)",
    "kiln.split(x, <2>)", "kiln.chunk(x, <2>)", "kiln.repeat(x, <2>)",
    "kiln.repeat(x, 2, axis=<0>)",
    "kiln.tile(x, (<2>,))", "kiln.roll(x, <1>)", "kiln.roll(x, 1, <0>)", "kiln.moveaxis(x, <0>, 1)",
    "kiln.swapaxes(x, <0>, 1)", "kiln.permute_dims(x, (<1>, 0))", "kiln.reshape(x, (<16>,))",
    "kiln.broadcast_to(x, (<4>, 4))", "kiln.take(x, j, axis=<0>)",
    "kiln.take_along_axis(x, i, axis=<0>)", "kiln.vecdot(x, x, axis=<-1>)",
    "kiln.tensordot(x, x, axes=<2>)", "kiln.tensordot(x, x, axes=([<0>], [1]))",
    "kiln.cross(x[:3], x[:3], axis=<0>)", "kiln.linalg.diagonal(x, offset=<0>)",
    "kiln.histc(x, <3>)", "kiln.histogram(x, <3>, (0.0, 1.0))", "kiln.vander(v, <2>)",
    "kiln.linalg.matrix_power(x, <2>)", "kiln.randint(0, 2, (<2>,))", "kiln.randint(0, 2, <2>)",
    "kiln.bernoulli(0.5, <2>)", "kiln.normal(0.0, 1.0, (<2>,))", "kiln.randperm(<3>)",
    "kiln.random.categorical(v, <2>)", "kiln.random.categorical(v, (<2>,))",
    "kiln.random.multinomial(v, <2>)", "kiln.random.gumbel((<2>,))",
    "kiln.random.exponential((<2>,))", "kiln.random.truncated_normal((<2>,))",
    "kiln.random.permutation(x, <0>)", "kiln.random.permutation(<3>)", "kiln.tril(x, <0>)",
]  # fmt: skip
FUNCTIONALS = [
    *[f"F.{name}(x, dim=<0>)" for name in (
        "softmax", "softmin", "log_softmax", "glu", "normalize", "gumbel_softmax")],
    "F.cosine_similarity(x, x, dim=<0>)",
    *[f"F.{kind}_pool{rank}d(a{rank}, {arguments})" for rank in (1, 2, 3) for kind in ("max", "avg")
      for arguments in ("<2>", f"({'2, ' * (rank - 1)}<2>,)", "2, <1>", "2, padding=<1>")],
    *[f"F.max_pool{rank}d(a{rank}, 2, dilation=<1>)" for rank in (1, 2, 3)],
    *[f"F.avg_pool{rank}d(a{rank}, 2, divisor_override=<2>)" for rank in (2, 3)],
    *[f"F.lp_pool{rank}d(a{rank}, 2.0, <2>)" for rank in (1, 2, 3)],
    *[f"F.adaptive_{kind}_pool{rank}d(a{rank}, {size})" for rank in (1, 2, 3)
      for kind in ("max", "avg") for size in ("<2>", f"({'None, ' * (rank - 1)}<2>,)")],
    *[f"F.conv{rank}d(a{rank}{'[:, :1]' if rank == 1 else ''}, w{rank}, {argument}=<1>)"
      for rank in (1, 2, 3) for argument in ("stride", "padding", "dilation", "groups")],
    *[f"F.conv_transpose{rank}d(a{rank}{'[:, :1]' if rank == 1 else ''}, w{rank}, stride=2, "
      f"{argument}=<1>)" for rank in (1, 2, 3)
      for argument in ("padding", "output_padding", "dilation", "groups")],
    "F.unfold(a2, <2>)", "F.unfold(a2, 2, stride=<1>)", "F.fold(a1, <3>, 2)",
    "F.fold(a1, (3, <3>), 2)",
    "F.fold(a1, 3, <2>)", "F.pad(x, (<1>, 1))", "F.interpolate(a2, <8>)",
    "F.interpolate(a2, (<8>, 8))", "F.one_hot(c, <3>)", "F.embedding(c, x, padding_idx=<0>)",
    "F.embedding_bag(i, x, padding_idx=<0>)", "F.cross_entropy(x, c, ignore_index=<0>)",
    "F.nll_loss(x, c, ignore_index=<0>)", "F.group_norm(x, <2>)", "F.layer_norm(x[:, :1], <1>)",
    "F.layer_norm(x, (<4>,))", "F.rms_norm(x[:, :1], (<1>,))", "F.local_response_norm(a1, <2>)",
    "F.pixel_shuffle(a1.reshape(4, 2, 2), <2>)", "F.pixel_unshuffle(a1, <2>)",
    "F.channel_shuffle(a1, <2>)", "F.rotary_tables(c, <4>)", "F.sinusoidal_positions(c, <4>)",
    "F.alibi_bias(<2>, 2, 2)", "F.alibi_bias(2, <2>, 2)", "F.alibi_bias(2, 2, <2>)",
    "nn.Linear(<2>, 2)", "nn.Linear(2, <2>)", "nn.Conv2d(1, 1, <2>)", "nn.Conv2d(1, 1, (2, <2>))",
    "nn.MaxPool2d(<2>)", "nn.LayerNorm(<2>)", "nn.Embedding(<2>, 2)", "nn.Flatten(<1>)(x)",
    "nn.Softmax(<0>)(x)",
]  # fmt: skip
CALLS = [*METHODS, *FUNCTIONS, *FUNCTIONALS]

# Calls with a bool of PyTorch's or the array API's: a number in its place is an error.
FLAGS = [
    *[f"x.{name}(0, <True>)" for name in (
        "sum", "prod", "mean", "any", "all", "logsumexp", "amax", "amin", "aminmax", "max", "min",
        "argmax", "argmin", "median", "sort", "argsort", "var", "std")],
    "x.norm(2, 0, <True>)", "x.topk(2, largest=<False>)", "x.var(0, keepdim=<True>)",
    "x.std(unbiased=<False>)", "x.isclose(x, equal_nan=<True>)", "x.multinomial(2, <True>)",
    "kiln.sum(x, keepdims=<True>)", "kiln.var(x, axis=0, keepdims=<True>)",
    "kiln.median(x, keepdims=<True>)", "kiln.sort(x, descending=<True>)",
    "kiln.argsort(x, descending=<True>)", "kiln.kthvalue(x, 1, keepdims=<True>)",
    "kiln.isclose(x, x, equal_nan=<True>)", "kiln.linalg.cholesky(x, upper=<True>)",
    "kiln.linalg.solve_triangular(x, x, upper=<True>)",
    "kiln.linalg.solve_triangular(x, x, unit_diagonal=<True>)",
    "F.max_pool2d(a2, 2, ceil_mode=<True>)", "F.avg_pool2d(a2, 2, ceil_mode=<True>)",
    "F.avg_pool2d(a2, 2, count_include_pad=<True>)", "F.kl_div(x, x, log_target=<True>)",
    "F.poisson_nll_loss(x, x, <True>)", "F.gaussian_nll_loss(x, x, x, full=<True>)",
    "F.triplet_margin_loss(x, x, x, swap=<True>)", "F.pairwise_distance(x, x, keepdim=<True>)",
    "F.scaled_dot_product_attention(x, x, x, is_causal=<True>)",
    "F.interpolate(a2, 8, mode='bilinear', align_corners=<True>)",
    "F.embedding_bag(c, x, j, include_last_offset=<False>)",
]  # fmt: skip


def evaluate(text, **more):
    tensors = {name: kiln.tensor(array) for name, array in NAMES.items()}
    return eval(text, {"kiln": kiln, "F": F, "nn": nn, **tensors, **more})


@pytest.mark.parametrize("call", CALLS)
def test_a_bool_is_no_axis_and_no_size(connection, call):
    evaluate(re.sub("<(.*)>", r"\1", call))
    for given in (True, False, np.True_):
        with pytest.raises(kiln.InvalidArgument, match=rf"{given!r}\b.*; it must be"):
            evaluate(re.sub("<.*>", "given", call), given=given)


def test_counts_are_no_bools():
    with pytest.raises(kiln.InvalidArgument, match="repeats of bool; they must be integers"):
        kiln.tensor(X).repeat_interleave([True, False, True, True], 0)


@pytest.mark.parametrize("call", FLAGS)
def test_a_number_is_no_bool(connection, call):
    evaluate(re.sub("<(.*)>", r"\1", call))
    evaluate(re.sub("<(.*)>", r"numpy.bool_(\1)", call), numpy=np)
    for given in (1, 0, 0.5):
        with pytest.raises(kiln.InvalidArgument, match=rf"{given!r}; it must be True or False"):
            evaluate(re.sub("<.*>", "given", call), given=given)


# Names of parameters that are axes or sizes.
AXES_AND_SIZES = {
    "dim", "dim0", "dim1", "dim2", "axis", "axis1", "axis2", "axes", "dims", "start_dim", "end_dim",
    "shape", "size", "k", "n", "num", "chunks", "parts", "length", "repeats", "classes", "count",
    "num_classes", "minlength", "bins", "n_rows", "n_cols", "kernel_size", "stride", "padding",
    "dilation", "output_padding", "groups", "num_groups", "output_size", "divisor_override",
    "normalized_shape", "upscale_factor", "downscale_factor", "features", "heads", "pad",
}  # fmt: skip


def test_every_function_with_an_axis_or_a_size_is_called():
    called = {name for call in CALLS for name in re.findall(r"(\w+)\(", call)}
    missing = []
    for owner in (kiln, kiln.Tensor, F, kiln.linalg):
        for name in getattr(owner, "__all__", dir(owner)):
            function = getattr(owner, name)
            if name.startswith("_") or inspect.isclass(function) or not callable(function):
                continue
            parameters = {*inspect.signature(function).parameters}
            if parameters & AXES_AND_SIZES and name not in called:
                missing.append(f"{name}({', '.join(sorted(parameters & AXES_AND_SIZES))})")
    assert missing == []


INTEGERS = [(name, attribute.name) for name, op in TABLE.items() if name in ROWS
            for attribute in op.attributes if attribute.type in ("int", "ints", "shape")]
BOOLS = [(name, attribute.name) for name, op in TABLE.items() if name in ROWS
         for attribute in op.attributes if attribute.type == "bool"]  # fmt: skip


def apply_with(name, change):
    """Applies an op to its row's first operands, with its attributes changed by `change`."""
    dtype = next(dtype for tried, dtype in TRIED if tried == name)
    case = cases_for(name, dtype)[0]
    tensors = [variable(array) for array in operands_of(ROWS[name], case, dtype)]
    given = {attribute.name: attribute.default for attribute in TABLE[name].attributes}
    return applied(name, tensors, change({**given, **case.attributes}))


@pytest.mark.parametrize("name, attribute", INTEGERS)
def test_no_op_takes_a_bool_for_an_integer(connection, name, attribute):
    apply_with(name, lambda attributes: attributes)
    for given in (True, False, np.True_):
        def change(attributes, given=given):
            several = isinstance(attributes[attribute], tuple)
            rest = attributes[attribute][1:] if several else ()
            return {**attributes, attribute: (given, *rest) if several else given}

        with pytest.raises(kiln.InvalidArgument, match=f'attribute "{attribute}".*{given!r}'):
            apply_with(name, change)


@pytest.mark.parametrize("name, attribute", BOOLS)
def test_no_op_takes_a_number_for_a_bool(connection, name, attribute):
    for given in (1, 0, 0.5):
        with pytest.raises(kiln.InvalidArgument, match=f'attribute "{attribute}".*True or False'):
            apply_with(name, lambda attributes, given=given: {**attributes, attribute: given})
