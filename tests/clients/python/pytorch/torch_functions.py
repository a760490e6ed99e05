"""Functions with their own backward, hooks, and torch.func: recorded_functions.npz has what PyTorch computes.

Each case is a function of torch that returns tensors and numbers.
"""


def cases(torch):
    """Returns the cases by name."""
    Function = torch.autograd.Function
    once_differentiable = torch.autograd.function.once_differentiable

    def x():
        return torch.tensor([0.5, -1.0, 2.0], requires_grad=True)

    class Cube(Function):
        @staticmethod
        def forward(ctx, x, power):
            ctx.save_for_backward(x)
            ctx.power = power
            return x ** power

        @staticmethod
        def backward(ctx, slope):
            x, = ctx.saved_tensors
            return slope * ctx.power * x ** (ctx.power - 1), None

    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, slope):
            result, = ctx.saved_tensors
            return slope * result

    class Wrong(Function):
        """The gradient is 7, so that its flow is seen."""

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, slope):
            return slope * 7

    class Two(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y, x + y

        @staticmethod
        def backward(ctx, product, total):
            x, y = ctx.saved_tensors
            seen.append(ctx.needs_input_grad)
            return product * y + total, (product * x + total) if ctx.needs_input_grad[1] else None

    class Unmaterialized(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, one, two):
            seen.append((one is None, two is None))
            return two * 2

    class SetUp(Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs, output)

        @staticmethod
        def backward(ctx, slope):
            x, y, output = ctx.saved_tensors
            return slope * y, slope * x + output * 0

    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            values, places = x.sort()
            ctx.mark_non_differentiable(places)
            ctx.save_for_backward(places)
            return values, places

        @staticmethod
        def backward(ctx, slope, _):
            places, = ctx.saved_tensors
            return torch.zeros_like(slope).scatter(0, places, slope)

    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, slope):
            return 2 * ctx.saved_tensors[0] * slope

    class Straight(Function):
        """Rounds; gradients pass (straight-through)."""

        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, slope):
            return slope

    class Dirty(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(3)

        @staticmethod
        def backward(ctx, slope):
            return slope * 5

    seen = []

    def power():
        leaf = x()
        value = Cube.apply(leaf, 3)
        value.sum().backward()
        return [value, leaf.grad, value.requires_grad, value.is_leaf]

    def chained():
        leaf = x()
        value = Wrong.apply(Exp.apply(leaf * 2) + leaf) * leaf
        value.sum().backward()
        return [value, leaf.grad]

    def nested_gradients():
        leaf = x()
        slope, = torch.autograd.grad(Cube.apply(leaf, 3).sum(), leaf, create_graph=True)
        second, = torch.autograd.grad(slope.sum(), leaf, create_graph=True)
        third, = torch.autograd.grad((second * leaf).sum(), leaf)
        return [slope, second, third]

    def nested_output():
        leaf = x()
        slope, = torch.autograd.grad(Exp.apply(leaf).sum(), leaf, create_graph=True)
        second, = torch.autograd.grad((slope * slope).sum(), leaf)
        return [slope, second]

    def penalty():
        leaf = x()
        slope, = torch.autograd.grad(Cube.apply(leaf.sin(), 2).sum(), leaf, create_graph=True)
        ((slope.norm() - 1) ** 2).backward()
        return leaf.grad

    def two_results():
        del seen[:]
        one, two = x(), x()
        product, total = Two.apply(one, two.detach())
        (product * product + total).sum().backward()
        first = one.grad
        one.grad = None
        product, total = Two.apply(one, two)
        total.sum().backward()
        return [first, one.grad, two.grad, [list(flags) for flags in seen]]

    def unmaterialized():
        del seen[:]
        leaf = x()
        Unmaterialized.apply(leaf)[1].sum().backward()
        return [leaf.grad, [list(flags) for flags in seen]]

    def set_up():
        one, two = x(), torch.tensor([3.0, 4.0, 5.0], requires_grad=True)
        SetUp.apply(one, two).sum().backward()
        return [one.grad, two.grad]

    def not_differentiable():
        leaf = x()
        values, places = Sorted.apply(leaf)
        (values * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
        return [values, places, places.requires_grad, leaf.grad]

    def once():
        leaf = x()
        Once.apply(leaf).sum().backward()
        slope, = torch.autograd.grad(Once.apply(leaf).sum(), leaf, create_graph=True)
        return [leaf.grad, refused(slope), refused(torch.autograd.grad(
            Once.apply(leaf * leaf).pow(2).sum(), leaf, create_graph=True)[0])]

    def refused(value):
        try:
            value.sum().backward()
        except Exception:
            return True
        return False

    def straight_through_a_model():
        layer = torch.nn.Linear(3, 2)
        with torch.no_grad():
            layer.weight.copy_(torch.arange(6.0).reshape(2, 3) / 5)
            layer.bias.zero_()
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = (Straight.apply(layer(x().detach()) * 4) - 1).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return [losses, layer.weight, layer.bias]

    def dirty():
        leaf = x()
        middle = leaf * 1
        result = Dirty.apply(middle)
        (result * middle).sum().backward()
        return [result is middle, middle, leaf.grad]

    def branches():
        leaf = x()
        value = Wrong.apply(leaf)
        other = Wrong.apply(value + leaf)
        (value * other + leaf).sum().backward()
        return leaf.grad

    def without_gradients():
        with torch.no_grad():
            value = Cube.apply(x(), 2)
        return [value.requires_grad, Cube.apply(x().detach(), 2).requires_grad]

    def saved_value_is_kept():
        leaf = x()
        value = Cube.apply(leaf, 2).sum()
        with torch.no_grad():
            other = leaf.clone()
        value.backward()
        return [leaf.grad, other]

    def hook_of_a_result():
        leaf = x()
        middle = leaf * 2
        result = middle * middle
        handle = middle.register_hook(lambda slope: slope * 10)
        result.sum().backward(retain_graph=True)
        first = leaf.grad
        leaf.grad = None
        handle.remove()
        (middle * 3).sum().backward()
        return [first, leaf.grad]

    def several_hooks():
        leaf = x()
        middle = leaf.exp()
        slopes = []
        middle.register_hook(lambda slope: slopes.append(slope.clone()))
        middle.register_hook(lambda slope: slope + 1)
        middle.register_hook(lambda slope: slopes.append(slope.clone()))
        middle.retain_grad()
        (middle * middle).sum().backward()
        return [leaf.grad, middle.grad, slopes]

    def hook_of_a_function():
        leaf = x()
        middle = Wrong.apply(leaf)
        middle.register_hook(lambda slope: slope * 2)
        Wrong.apply(middle).sum().backward()
        return leaf.grad

    def hook_and_grad():
        leaf = x()
        middle = leaf * 3
        middle.register_hook(lambda slope: slope * 2)
        found = torch.autograd.grad((middle * leaf).sum(), [middle, leaf])
        leaf.register_hook(lambda slope: slope * 5)
        return [found, torch.autograd.grad((leaf * 3).sum(), leaf)]

    def several_ends():
        leaf, other = x(), x()
        shared = Wrong.apply(leaf)
        torch.autograd.backward([shared.sum(), (shared * other)], [None, torch.ones(3)])
        return [leaf.grad, other.grad]

    def chosen_inputs():
        leaf, other = x(), x()
        (Wrong.apply(leaf) * other).sum().backward(inputs=[other])
        return [leaf.grad, other.grad]

    def batched_gradients():
        leaf = x()
        return torch.autograd.grad(leaf ** 2, leaf, torch.eye(3), is_grads_batched=True)

    def broadcast_gradient():
        class Wide(Function):
            @staticmethod
            def forward(ctx, x, y):
                return x + y

            @staticmethod
            def backward(ctx, slope):
                return slope, slope

        leaf, row = x(), torch.ones(1, requires_grad=True)
        Wide.apply(leaf, row).sum().backward()
        return [leaf.grad, row.grad]

    def checked():
        double = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
        return [torch.autograd.gradcheck(lambda x: Cube.apply(x, 3), (double,)),
                torch.autograd.gradgradcheck(lambda x: Cube.apply(x, 3), (double,)),
                torch.autograd.gradcheck(Wrong.apply, (double,), raise_exception=False)]

    func, functional = torch.func, torch.autograd.functional
    a, b = torch.tensor([1.0, 2.0, -0.5]), torch.tensor([0.3, -1.0, 2.0])

    def polynomial(x, y):
        return (x ** 2 * y + y.sin()).sum()

    def pair(x, y):
        return x * y.exp(), (x ** 3).sum()

    def model():
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        with torch.no_grad():
            for i, parameter in enumerate(net.parameters()):
                parameter.copy_((torch.arange(float(parameter.numel())).reshape(parameter.shape) - 3) / (4 + i))
        return net

    def per_sample():
        net = model()
        state = {name: value.detach() for name, value in net.named_parameters()}

        def loss(state, row, target):
            return (func.functional_call(net, state, (row.unsqueeze(0),)).squeeze() - target) ** 2

        rows, targets = torch.arange(6.0).reshape(2, 3) / 3, torch.tensor([1.0, -1.0])
        found = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(state, rows, targets)
        return [found[name] for name in sorted(found)]

    def ensemble():
        nets = [model(), model()]
        with torch.no_grad():
            nets[1][0].weight.mul_(-1)
        parameters, buffers = func.stack_module_state(nets)
        result = func.vmap(lambda p, b, rows: func.functional_call(nets[0], (p, b), (rows,)), in_dims=(0, 0, None))(
            parameters, buffers, torch.arange(6.0).reshape(2, 3))
        return [result, *[parameters[name] for name in sorted(parameters)]]

    def outer_gradient():
        leaf = x()
        slope = func.grad(lambda t: (t ** 3 * leaf).sum())(leaf)
        slope.sum().backward()
        return [slope, leaf.grad, func.grad(lambda t: (t ** 3).sum())(leaf.detach()).requires_grad]

    return {
        "power": power, "chained": chained, "nested gradients": nested_gradients, "nested output": nested_output,
        "penalty": penalty, "two results": two_results, "unmaterialized": unmaterialized, "set up": set_up,
        "not differentiable": not_differentiable, "once": once, "straight through": straight_through_a_model, "dirty": dirty,
        "branches": branches, "without gradients": without_gradients, "saved": saved_value_is_kept, "hook": hook_of_a_result,
        "several hooks": several_hooks, "hook of a function": hook_of_a_function, "hook and grad": hook_and_grad,
        "several ends": several_ends, "chosen inputs": chosen_inputs, "batched": batched_gradients, "broadcast": broadcast_gradient,
        "checked": checked,
        "grad": lambda: [func.grad(polynomial)(a, b), *func.grad(polynomial, argnums=(0, 1))(a, b), func.grad(polynomial, 1)(a, b)],
        "grad of grad": lambda: func.grad(lambda x: func.grad(lambda y: (y ** 3 * x).sum())(x).sum())(a),
        "grad and value": lambda: func.grad_and_value(polynomial)(a, b),
        "aux": lambda: func.grad(lambda x: ((x * x).sum(), x + 1), has_aux=True)(a),
        "vjp": lambda: [func.vjp(pair, a, b)[0], *func.vjp(pair, a, b)[1]((b, torch.tensor(2.0)))],
        "jvp": lambda: func.jvp(pair, (a, b), (b, a)),
        "jvp of a constant": lambda: func.jvp(lambda x: x * 0 + b, (a,), (b,)),
        "functionalize": lambda: func.functionalize(lambda x: x.add(1).mul_(2))(a),
        "linearize": lambda: func.linearize(torch.sin, a)[1](b),
        "jacrev": lambda: [func.jacrev(pair)(a, b), func.jacrev(torch.sin)(a), func.jacrev(pair, argnums=(0, 1))(a, b)],
        "jacfwd": lambda: [func.jacfwd(pair)(a, b), func.jacfwd(lambda x: x.outer(x))(a)],
        "hessian": lambda: [func.hessian(lambda x: (x ** 3).sum() * x[0])(a), func.hessian(polynomial, argnums=(0, 1))(a, b)],
        "dicts": lambda: func.grad(lambda p, x: (p["w"] * x + p["b"]).pow(2).sum())({"w": a, "b": b}, b),
        "vmap": lambda: [torch.vmap(torch.dot)(torch.stack([a, b]), torch.stack([b, a])),
                         torch.vmap(lambda x, y: (x + y, x.sum()), in_dims=(1, None), out_dims=(1, 0))(torch.stack([a, b]), a[:2]),
                         torch.vmap(torch.vmap(torch.mul, (0, None)), (None, 0))(a, b),
                         torch.vmap(lambda d: d["x"] * 2, in_dims=({"x": 0},))({"x": a}),
                         torch.vmap(lambda x, y: x * y)(a, y=b), torch.vmap(func.grad(torch.sin))(a)],
        "jacobian by vmap": lambda: torch.vmap(func.vjp(torch.sin, a)[1])(torch.eye(3)),
        "per sample": per_sample, "ensemble": ensemble, "outer gradient": outer_gradient,
        "functional jacobian": lambda: [functional.jacobian(pair, (a, b)), functional.jacobian(lambda x: x.outer(x), a)],
        "functional hessian": lambda: [functional.hessian(polynomial, (a, b)), functional.hessian(lambda x: (x ** 4).sum(), a)],
        "functional products": lambda: [functional.vjp(lambda x: x.sin(), a, b), functional.jvp(lambda x: x.sin(), a, b),
                                        functional.hvp(polynomial, (a, b), (b, a)), functional.vhp(polynomial, (a, b), (b, a)),
                                        functional.vjp(lambda x: (x ** 2).sum(), a)],
        "functional graph": lambda: functional.jacobian(lambda x: x ** 2, x(), create_graph=True).requires_grad,
    }
