"""torch.autograd.Function, hooks, torch.func and torch.distributions compute what PyTorch computes.

tests/clients/python/pytorch/record.py records its results again.
"""

# ruff: noqa: E501

import gc
import json
import pathlib
import sys
import weakref

import numpy as np
import pytest

import kiln
import kiln.torch as torch
from test_torch_values import difference

FOLDER = pathlib.Path(__file__).resolve().parent / "pytorch"
sys.path.insert(0, str(FOLDER))
import torch_cases  # noqa: E402
import torch_distributions  # noqa: E402
import torch_functions  # noqa: E402

ONE_SESSION = True
CASES = {f"{module.__name__}/{name}": case for module in (torch_functions, torch_distributions)
         for name, case in module.cases(torch).items()}


@pytest.fixture(scope="module")
def recorded():
    with np.load(FOLDER / "recorded_functions.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize("name", CASES)
def test_results_are_pytorchs(name, recorded, connection):
    counts = json.loads(str(recorded["cases"]))
    assert name in counts, "record it: pytorch/record.py functions"
    number = list(counts).index(name)
    told = difference(torch_cases.flat(CASES[name]()), [recorded[f"{number}.{i}"] for i in range(counts[name])])
    assert told is None, told


# Functions.


class TwoMultiples(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        double, triple = x * 2, x * 3
        ctx.save_for_backward(double)
        return double, triple

    @staticmethod
    def backward(ctx, of_double, of_triple):
        (double,) = ctx.saved_tensors
        return of_double * double + of_triple * 3


# The gradients at 1 are PyTorch's.
@pytest.mark.parametrize(("place", "used", "gradient"), [
    (0, (0,), 20), (0, (0, 1), 23), (0, (1,), 3), (1, (0,), 2), (1, (0, 1), 32), (1, (1,), 30)])
def test_a_hook_of_one_result_runs_before_the_function(place, used, gradient, connection):
    x = torch.ones(2, requires_grad=True)
    results = TwoMultiples.apply(x)
    results[place].register_hook(lambda slope: None if slope is None else slope * 10)
    sum(results[i].sum() for i in used).backward()
    assert x.grad.tolist() == [gradient, gradient]


def test_a_second_backward_makes_dropped_results_again(connection):
    x = torch.ones(2, requires_grad=True)
    total = TwoMultiples.apply(TwoMultiples.apply(x)[0])[0].sum()
    total.backward(retain_graph=True)
    assert x.grad.tolist() == [8.0, 8.0]
    total.backward()
    assert x.grad.tolist() == [16.0, 16.0]


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, slope):
        return slope * 2


def test_a_backward_returns_a_gradient_for_each_argument(connection):
    class Fewer(Double):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

    class Narrow(Double):
        @staticmethod
        def backward(ctx, slope):
            return slope[:1]

    x = torch.ones(2, requires_grad=True)
    for function, args in ((Fewer, (x, x)), (Narrow, (x,))):
        with pytest.raises(kiln.InvalidArgument, match=function.__name__):
            function.apply(*args).sum().backward()


def test_a_backward_sees_the_values_of_its_call(connection):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, slope):
            return 2 * ctx.saved_tensors[0] * slope

    x = torch.tensor([3.0], requires_grad=True)
    y = Square.apply(x)
    with torch.no_grad():
        x.mul_(10)
    y.backward()
    assert x.grad.item() == 6 and y.grad_fn.name() == "SquareBackward"


def test_results_go_with_the_last_tensor(connection):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(x, result)
            return result, result * 2

        @staticmethod
        def backward(ctx, slope, twice):
            return (slope + 2 * twice) * ctx.saved_tensors[1]

    x = torch.tensor([0.0], requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        first, second = Exp.apply(x)
        second.register_hook(lambda slope: slope * 3)
        nodes = [weakref.ref(tensor._node) for tensor in (first, second)]
        del first
        assert nodes[0]() is None
        (slope,) = torch.autograd.grad(second.sum(), x, create_graph=True)
        assert slope.item() == 6 and torch.autograd.grad(slope, x)[0].item() == 6
        del second, slope
        assert [node() for node in nodes] == [None, None]
    finally:
        gc.enable()


def test_functions_in_a_traced_function(connection):
    class Seven(Double):
        @staticmethod
        def backward(ctx, slope):
            return slope * 7

    @kiln.jit
    def slopes(w):
        return torch.func.grad(lambda t: Seven.apply(t * t).sum())(w)

    for value in (1.0, 2.0, 3.0):
        assert slopes(torch.full((2,), value)).tolist() == [14 * value] * 2


def test_a_hook_of_a_result_applies_to_what_was_computed_before(connection):
    x = torch.ones(2, requires_grad=True)
    middle = x * 3
    result = middle * middle
    middle.register_hook(lambda slope: slope * 0)
    (result + x).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_derivatives_of_other_arguments_raise(connection):
    with pytest.raises(kiln.InvalidArgument, match="without dimensions"):
        torch.func.grad(lambda x: x * 2)(torch.ones(2))
    with pytest.raises(kiln.InvalidArgument, match="only floats"):
        torch.func.grad(lambda x: x.sum())(torch.tensor([1]))
    with pytest.raises(kiln.InvalidArgument, match="sizes"):
        torch.vmap(torch.add)(torch.ones(2), torch.ones(3))


# Distributions.


@pytest.mark.parametrize("make", [
    lambda d: d.Normal(0.0, -1.0).sample(), lambda d: d.Bernoulli(1.5).sample(), lambda d: d.Uniform(2.0, 1.0).sample(),
    lambda d: d.Gamma(-1.0, 1.0).log_prob(1.0), lambda d: d.Categorical(torch.tensor([1.0, -2.0])).entropy(),
    lambda d: d.Categorical(logits=torch.tensor([float("nan"), 1.0])).logits, lambda d: d.Poisson(-1.0).mean,
    lambda d: d.Bernoulli(0.5).log_prob(torch.tensor(0.5)), lambda d: d.Exponential(1.0).log_prob(torch.tensor(-1.0)),
    lambda d: d.Categorical(torch.ones(3)).log_prob(torch.tensor(3)), lambda d: d.Bernoulli(probs=0.5, logits=0.0),
    lambda d: d.Dirichlet(torch.ones(3)).log_prob(torch.ones(3)), lambda d: d.Bernoulli(), lambda d: d.Dirichlet(1.0),
    lambda d: d.MultivariateNormal(torch.zeros(2)), lambda d: d.Independent(d.Normal(0.0, 1.0), 1)])
def test_parameters_and_values_outside_of_their_sets_raise(make, connection):
    with pytest.raises(kiln.InvalidArgument):
        made = make(torch.distributions)
        np.asarray(made)


def test_divergences_without_a_rule_raise(connection):
    d = torch.distributions
    with pytest.raises(NotImplementedError, match="register_kl"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.Bernoulli(0.5))
    alpha = torch.ones(2, requires_grad=True)
    for made in (d.Gamma(alpha, 1.0), d.Beta(alpha, 1.0), d.Dirichlet(alpha)):
        with pytest.raises(NotImplementedError, match="concentration"):
            made.rsample()


@pytest.mark.parametrize("name, given", [
    ("Normal", (1.0, 2.0)), ("LogNormal", (0.0, 0.5)), ("Laplace", (1.0, 2.0)), ("Uniform", (-1.0, 3.0)), ("Exponential", (2.0,)),
    ("Gamma", (0.3, 2.0)), ("Gamma", (1.0, 0.5)), ("Gamma", (7.0, 1.0)), ("Beta", (0.5, 2.0)), ("Beta", (4.0, 3.0)), ("Chi2", (3.0,)),
    ("Bernoulli", (0.3,)), ("Geometric", (0.3,)), ("Poisson", (4.0,)), ("Binomial", (6, torch.tensor(0.3)))])
def test_samples_have_the_distribution(name, given, connection):
    torch.manual_seed(3)
    made = getattr(torch.distributions, name)(*given)
    count = 20000
    drawn = made.sample((count,)).numpy().astype(np.float64)
    assert drawn.shape == (count,) and np.isfinite(drawn).all()
    mean, deviation = made.mean.item(), made.stddev.item()
    assert abs(drawn.mean() - mean) < 6 * deviation / count ** 0.5
    assert abs(drawn.std() - deviation) < 0.1 * deviation
    stats = pytest.importorskip("scipy.stats")
    reference = {
        "Gamma": lambda: stats.gamma(given[0], scale=1 / given[1]), "Beta": lambda: stats.beta(*given), "Chi2": lambda: stats.chi2(*given),
        "Normal": lambda: stats.norm(*given), "Laplace": lambda: stats.laplace(*given), "Exponential": lambda: stats.expon(scale=0.5),
        "Uniform": lambda: stats.uniform(-1, 4), "LogNormal": lambda: stats.lognorm(0.5)}.get(name)
    if reference is not None:
        assert stats.kstest(drawn, reference().cdf).pvalue > 1e-4


def test_samples_of_classes_and_vectors(connection):
    torch.manual_seed(3)
    d = torch.distributions
    weights = torch.tensor([[0.2, 0.3, 0.5], [0.7, 0.1, 0.2]])
    drawn = d.Categorical(weights).sample((4000,)).numpy()
    shares = np.stack([(drawn == i).mean(0) for i in range(3)], -1)
    np.testing.assert_allclose(shares, weights.numpy(), atol=0.04)
    rows = d.Dirichlet(weights * 10).sample((4000,))
    np.testing.assert_allclose(rows.mean(0).numpy(), weights.numpy(), atol=0.02)
    np.testing.assert_allclose(rows.sum(-1).numpy(), 1, rtol=1e-5)
    covariance = torch.tensor([[2.0, 0.5], [0.5, 1.0]])
    points = d.MultivariateNormal(torch.tensor([1.0, -1.0]), covariance).sample((4000,))
    np.testing.assert_allclose(np.cov(points.numpy().T), covariance.numpy(), atol=0.15)
    np.testing.assert_allclose(d.OneHotCategorical(weights).sample((4000,)).mean(0).numpy(), weights.numpy(), atol=0.04)


def test_policy_gradients_flow_through_log_prob(connection):
    torch.manual_seed(0)
    logits = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([logits], lr=0.5)
    for _ in range(40):
        policy = torch.distributions.Categorical(logits=logits)
        action = policy.sample((32,))
        reward = (action == 2).float()
        loss = -(policy.log_prob(action) * (reward - reward.mean())).mean() - 0.001 * policy.entropy()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert torch.distributions.Categorical(logits=logits).probs[2].item() > 0.8
