"""Computes cases with PyTorch: python3 torch_oracle.py KIND CASES.json RESULTS.npz. Kinds are
modules, functions and training.

A case of a module is {"name", "make", "call", "inputs"}: text that makes a module `m` from `nn`,
text that calls it with inputs x0, x1, … made by `inputs_of`, and what those are. The same text is
used for Kiln, so that names, arguments and layouts are compared, too. Results are in float64,
computed from float32 numbers.

A case of a function is [an expression in which F is torch.nn.functional and torch itself, its
arrays as [name, dtype, values, shape]]; results are its value and, if that has any, the gradients
of arrays whose names are in lower case.

A case of training is text that makes an optimizer of parameters `p` and `q`, or a scheduler of an
optimizer `o`; the results are the parameters, or the learning rates, after each step.
"""

import json
import sys

import numpy as np


def inputs_of(case):
    """Returns the inputs of a case, a list of [kind, shape]; kinds with "!" have no gradient."""
    numbers = np.random.default_rng(len(case["name"]))
    result = []
    for kind, shape in case["inputs"]:
        name, _, argument = kind.rstrip("!").partition(":")
        if name == "normal":
            array = numbers.standard_normal(shape).astype(np.float32)
        elif name == "uniform":
            array = numbers.uniform(0.05, 0.95, shape).astype(np.float32)
        elif name == "sign":
            array = numbers.choice([-1.0, 1.0], shape).astype(np.float32)
        elif name == "below":
            array = numbers.integers(0, int(argument), shape)
        else:
            array = numbers.random(shape) < float(argument)
        result.append(array)
    return result


def weights_of(shapes):
    """Returns the factors of outputs that are then summed to a loss."""
    numbers = np.random.default_rng(7)
    return [numbers.standard_normal(shape).astype(np.float32) for shape in shapes]


def flat(outputs, kind):
    """Returns all tensors in nested tuples."""
    if isinstance(outputs, kind):
        return [outputs]
    if isinstance(outputs, (tuple, list)):
        return [tensor for part in outputs for tensor in flat(part, kind)]
    return []


START = (np.array([1.0, -2.0, 3.0], np.float32), np.arange(6, dtype=np.float32).reshape(2, 3) / 4)
TARGET = (np.array([0.5, 0.5, -1.0], np.float32), np.full((2, 3), 0.3, np.float32))
STEPS = 12
RATES = 24


def loss_of(parameters, targets):
    """Returns the loss that the optimizers of the cases minimize."""
    squares = [((p - t) ** 2).sum() * (i + 1) for i, (p, t) in enumerate(zip(parameters, targets))]
    return squares[0] + squares[1] + (parameters[0] * parameters[1]).sum() * 0.1


def measure_at(epoch):
    """Returns the value given to a scheduler that depends on a metric."""
    return max(5.0 - epoch, 0.0) + 0.1 * (epoch % 3)


def run_modules(cases):
    """Returns all results by name."""
    import torch

    results = {}
    for case in cases:
        torch.manual_seed(3)
        module = eval(case["make"], {"nn": torch.nn})
        if case.get("eval"):
            module.eval()
        for name, parameter in module.named_parameters():
            # Ones and zeros would hide an exchanged weight or bias.
            noise = np.random.default_rng(len(name)).standard_normal(tuple(parameter.shape))
            parameter.data += torch.from_numpy(np.asarray(0.1 * noise)).float()
        key = case["name"]
        for name, value in module.state_dict().items():
            results[f"{key}/state/{name}"] = value.numpy().copy()
        module.double()
        inputs = [torch.from_numpy(array) for array in inputs_of(case)]
        inputs = [x.double() if x.is_floating_point() else x for x in inputs]
        for x, (kind, _) in zip(inputs, case["inputs"]):
            x.requires_grad_(x.is_floating_point() and not kind.endswith("!"))
        names = {f"x{i}": x for i, x in enumerate(inputs)}
        outputs = flat(eval(case["call"], {"m": module, "nn": torch.nn, **names}), torch.Tensor)
        weights = weights_of([tuple(output.shape) for output in outputs])
        differentiable = [(output * torch.from_numpy(weight)).sum()
                          for output, weight in zip(outputs, weights) if output.requires_grad]
        if differentiable:
            sum(differentiable).backward()
        for i, output in enumerate(outputs):
            results[f"{key}/output/{i}"] = output.detach().numpy()
        for i, x in enumerate(inputs):
            if x.grad is not None:
                results[f"{key}/input_gradient/{i}"] = x.grad.numpy()
        for name, parameter in module.named_parameters():
            if parameter.grad is not None:
                results[f"{key}/gradient/{name}"] = parameter.grad.numpy()
        for name, buffer in module.named_buffers():
            results[f"{key}/buffer/{name}"] = buffer.numpy()
    return results


def cosines(shape):
    """Returns the factors of a function's value that is then summed."""
    count = int(np.prod(shape, dtype=np.int64))
    return np.cos(np.arange(count, dtype=np.float64)).reshape(shape).astype(np.float32)


def run_functions(cases):
    """Returns the value of case i as "i", gradients as "i/name"."""
    import torch

    results = {}
    for i, (expression, arrays) in enumerate(cases):
        # Lists without elements do not determine their shape.
        tensors = {name: torch.from_numpy(np.array(values, dtype).reshape(shape))
                   for name, dtype, values, shape in arrays}  # fmt: skip
        for name, tensor in tensors.items():
            tensor.requires_grad_(tensor.is_floating_point() and name.islower())
        value = eval(expression, {"F": torch.nn.functional, "torch": torch, **tensors})
        results[str(i)] = value.detach().numpy()
        if value.requires_grad:
            (value * torch.from_numpy(cosines(tuple(value.shape)))).sum().backward()
        for name, tensor in tensors.items():
            if tensor.grad is not None:
                results[f"{i}/{name}"] = tensor.grad.numpy()
    return results


def run_training(cases):
    """Returns all results by name."""
    import torch
    from torch.optim import lr_scheduler

    results = {}
    for make in cases["optimizers"]:
        parameters = [torch.from_numpy(x.copy()).double().requires_grad_() for x in START]
        names = {"optim": torch.optim, "p": parameters[0], "q": parameters[1]}
        optimizer = eval(make, names)
        targets = [torch.from_numpy(x).double() for x in TARGET]
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(parameters, targets).backward()
            optimizer.step()
            for i, parameter in enumerate(parameters):
                results[f"{make}/{step}/{i}"] = parameter.detach().numpy().copy()
    for make in cases["schedulers"]:
        weights = [torch.zeros(1, requires_grad=True) for _ in range(2)]
        optimizer = torch.optim.SGD([{"params": weights[:1]}, {"params": weights[1:], "lr": 0.5}],
                                    lr=0.1)
        scheduler = eval(make, {**vars(lr_scheduler), "o": optimizer})
        rates = [[group["lr"] for group in optimizer.param_groups]]
        for epoch in range(RATES):
            optimizer.step()
            scheduler.step(*[measure_at(epoch)] * make.startswith("ReduceLROnPlateau"))
            rates.append([group["lr"] for group in optimizer.param_groups])
        results[make] = np.array(rates)
    return results


def main():
    with open(sys.argv[2]) as file:
        cases = json.load(file)
    run = {"modules": run_modules, "functions": run_functions, "training": run_training}[
        sys.argv[1]]
    np.savez(sys.argv[3], **run(cases))


if __name__ == "__main__":
    main()
