"""Gradients compared with finite differences, and PyTorch's rules on which tensors get one."""

import numpy as np
import pytest

import kiln
from kiln import functional as F

ONE_SESSION = True

RANDOM = np.random.default_rng(11)
X = RANDOM.normal(size=(3, 4))
Y = RANDOM.normal(size=(3, 4))
IMAGES = RANDOM.normal(size=(2, 2, 6, 5))
FILTERS = RANDOM.normal(size=(4, 2, 3, 3))
LABELS = np.array([1, 3, 0])


def differences(function, arrays, step=1e-5):
    """Returns central differences of a scalar function, by element, in one program each."""
    results = []
    for position, array in enumerate(arrays):
        gradient = np.zeros_like(array)
        for i in range(array.size):
            ends = []
            for sign in (1, -1):
                moved = [part.copy() for part in arrays]
                moved[position].reshape(-1)[i] += sign * step
                ends.append(function(*[kiln.tensor(part) for part in moved]).item())
            gradient.reshape(-1)[i] = (ends[0] - ends[1]) / (2 * step)
        results.append(gradient)
    return results


FUNCTIONS = {
    "arithmetic": (lambda x, y: ((x * y - x / (y * y + 1)) ** 3).mean(), [X, Y]),
    "broadcast": (lambda x, y: ((x + y[0]) * y[:, :1]).square().sum(), [X, Y]),
    "elementary": (lambda x: (x.exp() + x.sin() * x.cos() + (x * x + 1).log() + (
        x * x + 1).sqrt() + x.tanh() + x.sigmoid() + x.erf()).sum(), [X]),
    "activations": (lambda x: (F.gelu(x) + F.silu(x) + F.softplus(x) + x.relu() + F.gelu(
        x, "tanh")).sum(), [X]),
    "matmul": (lambda x, y: ((x @ y.T) ** 2).sum(), [X, Y]),
    "softmax": (lambda x, y: (x.softmax() * y).sum() + x.log_softmax(0).square().sum(), [X, Y]),
    "reductions": (lambda x: x.max(0).values.sum() + x.min() + x.var(1).sum() + x.prod(1).sum()
                   + x.logsumexp() + x.norm(), [X]),
    "movement": (lambda x, y: (x[::2, ::-1].flatten() * y[1:].T.reshape(8)).sum()
                 + x.pad((1, 2, 0, 1)).square().cumsum(1).sum(), [X, Y]),
    "gather": (lambda x, y: (x[kiln.tensor([2, 0, 2])] * y).sum(), [X, Y]),
    "choice": (lambda x, y: kiln.where(x > y, x * x, y * y * y).clamp(-1, 1).sum(), [X, Y]),
    "cat": (lambda x, y: kiln.cat([x, y * x], 1).square().sum(), [X, Y]),
    "convolution": (lambda x, w: F.conv2d(x, w, stride=(2, 1), padding=1).square().sum(),
                    [IMAGES, FILTERS]),
    "pooling": (lambda x: (F.max_pool2d(x, 2) * F.avg_pool2d(x, 2)).sum(), [IMAGES]),
    "normalisation": (lambda x, y: (F.layer_norm(x, (4,), y[0], y[1]) * y).sum(), [X, Y]),
    "cross_entropy": (lambda x: F.cross_entropy(x, kiln.tensor(LABELS)), [X]),
    "attention": (lambda x, y: F.scaled_dot_product_attention(
        x, y, x * y, is_causal=True).square().sum(), [X, Y]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_the_finite_differences(connection, name):
    function, arrays = FUNCTIONS[name]
    tensors = [kiln.tensor(array, requires_grad=True) for array in arrays]
    function(*tensors).backward()
    kiln.realize(*[tensor.grad for tensor in tensors])
    for tensor, wanted in zip(tensors, differences(function, arrays)):
        np.testing.assert_allclose(tensor.grad.numpy(), wanted, rtol=1e-4, atol=1e-6)


def test_backward_adds_up_until_it_is_cleared(connection):
    x = kiln.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [5, 7])
    x.grad = None
    (x * 3).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [3, 3])


def test_a_loss_may_be_read_before_backward(connection):
    x = kiln.tensor([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()
    assert loss.item() == 5
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), [2, 4])


def test_a_value_read_in_between_does_not_cut_the_gradient(connection):
    x = kiln.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    np.testing.assert_allclose(y.numpy(), [1, 4])
    (y * y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [4, 32])


def test_an_upstream_gradient_weighs(connection):
    x = kiln.tensor([1.0, 2.0], requires_grad=True)
    (x * x).backward(kiln.tensor([1.0, 10.0]))
    np.testing.assert_allclose(x.grad.numpy(), [2, 40])


def test_detach_and_no_grad_stop_gradients(connection):
    x = kiln.tensor([1.0, 2.0], requires_grad=True)
    (x * x.detach()).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1, 2])
    with kiln.no_grad():
        y = x * 2
    assert not y.requires_grad and not (x * 2).detach().requires_grad
    with pytest.raises(kiln.InvalidArgument, match="requires_grad"):
        y.sum().backward()


def test_backward_of_more_than_one_element_says_what_to_do(connection):
    with pytest.raises(kiln.InvalidArgument, match=r"\(2,\).*sum"):
        (kiln.zeros(2, requires_grad=True) * 2).backward()


def test_results_are_no_leaves_and_get_no_grad(connection):
    x = kiln.tensor([1.0], requires_grad=True)
    y = x * 2
    y.sum().backward()
    assert x.is_leaf and not y.is_leaf and y.grad is None
    assert y.requires_grad and not kiln.ones(1).requires_grad


def test_a_result_that_retains_its_gradient(connection):
    x = kiln.tensor([1.0, 2.0], requires_grad=True)
    doubled = x * 2
    squared = doubled * doubled
    for retained in (doubled, squared, doubled):
        retained.retain_grad()
    (squared * 3).sum().backward()
    assert squared.grad.tolist() == [3.0, 3.0]
    assert doubled.grad.tolist() == [12.0, 24.0]
    assert x.grad.tolist() == [24.0, 48.0]
    again = x * 2  # the same expression, whose gradient is not requested
    again.sum().backward()
    assert again.grad is None and doubled.grad.tolist() == [12.0, 24.0]
    with pytest.raises(kiln.InvalidArgument, match="no gradient flows"):
        kiln.ones(2).retain_grad()


def test_retained_gradients_add_up_over_two_losses(connection):
    x = kiln.tensor([3.0], requires_grad=True)
    y = x * x
    y.retain_grad()
    (y * 2).sum().backward()
    (y * 5).sum().backward()
    assert y.grad.tolist() == [7.0] and x.grad.tolist() == [42.0]


def test_a_leaf_changes_in_place_only_without_gradients(connection):
    x = kiln.tensor([1.0], requires_grad=True)
    with pytest.raises(kiln.InvalidArgument, match="no_grad"):
        x += 1
    with kiln.no_grad():
        x += 1
    assert x.requires_grad and x.item() == 2
    (x * x).sum().backward()
    assert x.grad.item() == 4


def test_grad_of_functions(connection):
    def f(x, y):
        return (x**3 * y).sum()

    x, y = kiln.tensor([2.0]), kiln.tensor([5.0])
    assert kiln.grad(f)(x, y).item() == 60
    value, (dx, dy) = kiln.value_and_grad(f, argnums=(0, 1))(x, y)
    assert (value.item(), dx.item(), dy.item()) == (40, 60, 8)
    assert not x.requires_grad


def test_grad_nests(connection):
    second = kiln.grad(lambda x: kiln.grad(lambda z: (z**3).sum())(x).sum())
    np.testing.assert_allclose(second(kiln.tensor([2.0, 3.0])).numpy(), [12, 18], rtol=1e-5)


def test_grad_tells_a_tensor_given_twice_apart(connection):
    x = kiln.tensor(3.0)
    dx, dy = kiln.value_and_grad(lambda a, b: a * a * b, argnums=(0, 1))(x, x)[1]
    assert (dx.item(), dy.item()) == (18, 9)


def test_grad_leaves_a_closures_use_of_the_same_tensor_alone(connection):
    x = kiln.tensor(3.0)
    assert kiln.grad(lambda a: a * x)(x).item() == 3


def test_gradients_of_chosen_inputs(connection):
    x = kiln.tensor([2.0], requires_grad=True)
    hidden = x * x
    (dx, dh) = kiln.autograd.gradients((hidden * 3).sum(), [x, hidden])
    assert (dx.item(), dh.item(), x.grad) == (12, 3, None)


def test_grad_of_tensors_as_pytorchs(connection):
    x = kiln.tensor([1.0, 2.0, 3.0], requires_grad=True)
    other = kiln.ones(2, requires_grad=True)
    y = x**3
    (slope,) = kiln.autograd.grad(outputs=y, inputs=x, grad_outputs=kiln.ones_like(y),
                                  create_graph=True, retain_graph=True)
    assert slope.tolist() == [3, 12, 27]
    penalty = (slope.norm(2, dim=0) - 1) ** 2
    penalty.backward()
    length = np.linalg.norm([3, 12, 27])
    np.testing.assert_allclose(
        x.grad.numpy(), 2 * (length - 1) / length * np.array([3, 12, 27]) * [6, 12, 18], rtol=1e-5)
    # Without create_graph the gradient is a constant, as in PyTorch.
    (constant,) = kiln.autograd.grad(y.sum(), [x])
    assert not constant.requires_grad
    assert kiln.autograd.grad((constant * x).sum(), x)[0].tolist() == [3, 12, 27]
    both = kiln.autograd.grad([y.sum(), (x * other.sum()).sum()], [x, other])
    assert [part.tolist() for part in both] == [[5, 14, 29], [6, 6]]
    assert kiln.autograd.grad(y.sum(), [x, other], allow_unused=True)[1] is None
    with pytest.raises(kiln.InvalidArgument, match="no output depends on input 1, of shape"):
        kiln.autograd.grad(y.sum(), [x, other])
    with pytest.raises(kiln.InvalidArgument, match="no output depends on input 0"):
        kiln.autograd.grad((x.detach() * other.sum()).sum(), x)


def test_a_hessian_row_by_row(connection):
    x = kiln.tensor([0.5, -1.0], requires_grad=True)
    (slope,) = kiln.autograd.grad((x[0] * x[1] ** 2).sin(), x, create_graph=True)
    rows = [kiln.autograd.grad(slope[i], x)[0].tolist() for i in range(2)]
    wanted = [[-np.sin(0.5), -2 * np.cos(0.5) + np.sin(0.5)],
              [-2 * np.cos(0.5) + np.sin(0.5), np.cos(0.5) - np.sin(0.5)]]
    np.testing.assert_allclose(rows, wanted, rtol=1e-5)


def slope(function, x):
    """Returns d function / d x by backward(), with both as leaves that are values on the device."""
    x.grad = None
    function(x).sum().backward()
    found = x.grad.tolist()
    x.grad = None
    return found


@kiln.no_grad()
def doubled(x):
    return x * 2


CONSTANTS = {  # functions whose result has the value of x, and no gradient
    "no_grad": lambda x: doubled(x) / 2,
    "no_grad, used further": lambda x: doubled(x * 1).reshape(-1).exp().log() / 2,
    "detach": lambda x: x.detach(),
    "detached result": lambda x: (x * 1).detach(),
    "a new tensor": lambda x: kiln.tensor(x),
    "assigned": lambda x: kiln.zeros_like(x).assign(x),
    "a gradient": lambda x: kiln.autograd.grad((x * x / 2).sum(), x)[0],
    "a gradient in no_grad": lambda x: kiln.no_grad()(kiln.grad(lambda v: (v * v / 2).sum()))(x),

}


@pytest.mark.parametrize("realized", [False, True])
@pytest.mark.parametrize("constant", CONSTANTS.values(), ids=CONSTANTS.keys())
def test_no_gradient_flows_through_a_constant(connection, constant, realized):
    x = kiln.tensor([1.0, 2.0, 3.0])
    if realized:
        x.realize()
    x.requires_grad_()
    assert slope(lambda x: constant(x) * x, x) == [1, 2, 3]
    traced = kiln.jit(lambda: slope_of_traced(constant, x))
    assert traced().tolist() == [1, 2, 3]


def slope_of_traced(constant, x):
    x.grad = None
    (constant(x) * x).sum().backward()
    found, x.grad = x.grad, None
    return found


def test_a_target_that_the_same_network_computes_is_a_constant(connection):
    kiln.manual_seed(0)  # with some other weights the values almost cancel out
    network = kiln.nn.Linear(2, 1, bias=False)
    now, later = kiln.ones(1, 2), kiln.full((1, 2), 3.0)
    with kiln.no_grad():
        target = network(later)
    ((network(now) - target) ** 2).sum().backward()
    error = 2 * (network(now) - network(later)).item()
    np.testing.assert_allclose(network.weight.grad.numpy(), error * np.ones((1, 2)), rtol=1e-5)


def test_nested_gradients_by_one_tensor_are_by_variables_of_their_own(connection):
    for x in (kiln.tensor(3.0), kiln.tensor(1.5) * 2):
        assert kiln.grad(lambda v, x=x: v * x.detach())(x).item() == 3
        assert kiln.grad(lambda v, x=x: kiln.grad(lambda u: u * u)(x) * v)(x).item() == 6
        assert kiln.grad(lambda v: kiln.grad(lambda u: kiln.grad(
            lambda t: t * u * u)(v))(v))(x).item() == 2
        assert kiln.grad(lambda v: kiln.grad(lambda u: kiln.grad(
            lambda t: t * u * u * v)(v))(v))(x).item() == 12


def test_two_leaves_of_one_value_get_a_gradient_each(connection):
    value = kiln.tensor([1.0, 2.0]) * 2
    a, b = value.detach().requires_grad_(), value.detach().requires_grad_()
    (a * b * b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([4, 16], [8, 32])
