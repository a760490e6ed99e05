"""torch.optim: the optimizers of kiln.optim with PyTorch's groups, state and arguments."""

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from kiln import optim as _kiln
from kiln._graph.gradient_mode import enable_grad, no_grad
from kiln.torch import _shaping
from kiln.torch.optim import lr_scheduler, optimizer, swa_utils
from kiln.torch.optim.optimizer import Optimizer, Rule, checked

_CHOICES: Dict[str, Any] = {
    "foreach": None, "maximize": False, "capturable": False, "differentiable": False,
    "fused": None}


def _optimizer(name: str, lr: float, **defaults: Any) -> Any:
    """Returns an optimizer with a rule of kiln.optim; arguments are in the order of defaults."""
    order = ("lr", *defaults)

    def init(self: Any, params: Any, *args: Any, **kwargs: Any) -> None:
        given = {**dict(zip(order, args)), **kwargs}
        options = {"lr": lr, **defaults, **_CHOICES}
        unknown = [option for option in given if option not in options]
        if unknown or len(args) > len(order):
            raise TypeError(f"{name}.__init__() got an unexpected keyword argument "
                            f"{(unknown or ['positional'])[0]!r}")
        options.update(given)
        Rule.__init__(self, params, {**checked(name, options), "maximize": options["maximize"]})

    own = getattr(_kiln, name)
    doc = (own.__doc__ or "").partition("\n\n    >>>")[0].rstrip() + "\n"
    return type(name, (Rule,), {
        "__init__": init, "_rule_class": own, "__module__": __name__, "__qualname__": name,
        "__doc__": doc})


_BETAS = (0.9, 0.999)
_plain_sgd: Any = _optimizer("SGD", 1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False)
# Optimizers whose rule is Kiln's, with their arguments in PyTorch's order.
_OPTIMIZERS: Dict[str, Dict[str, Any]] = {
    "Adadelta": {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0},
    "Adagrad": {"lr": 1e-2, "lr_decay": 0, "weight_decay": 0, "initial_accumulator_value": 0,
                "eps": 1e-10},
    "Adam": {"lr": 1e-3, "betas": _BETAS, "eps": 1e-8, "weight_decay": 0, "amsgrad": False},
    "AdamW": {"lr": 1e-3, "betas": _BETAS, "eps": 1e-8, "weight_decay": 1e-2, "amsgrad": False},
    "Adamax": {"lr": 2e-3, "betas": _BETAS, "eps": 1e-8, "weight_decay": 0},
    "NAdam": {"lr": 2e-3, "betas": _BETAS, "eps": 1e-8, "weight_decay": 0,
              "momentum_decay": 4e-3},
    "RAdam": {"lr": 1e-3, "betas": _BETAS, "eps": 1e-8, "weight_decay": 0},
    "RMSprop": {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8, "weight_decay": 0, "momentum": 0,
                "centered": False},
}  # fmt: skip
_MADE: Dict[str, Any] = {
    _name: _optimizer(_name, **_arguments) for _name, _arguments in _OPTIMIZERS.items()}
globals().update(_MADE)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


class SGD(_plain_sgd):  # type: ignore[misc]
    """Stochastic gradient descent, with momentum and weight decay.

    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> optimizer = torch.optim.SGD([w], lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.5, 0.5]
    """


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""

    def __init__(self, params: Any, lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
                 t0: float = 1e6, weight_decay: float = 0, **choices: Any) -> None:
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0,
                                  "weight_decay": weight_decay,
                                  "maximize": choices.get("maximize", False)})

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Updates the Parameters by their gradients."""
        loss = None if closure is None else closure()
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._update(group, parameter)
        return loss

    def _update(self, group: Any, parameter: Any) -> None:
        state = self.state[parameter]
        if not state:
            state.update(step=0, eta=group["lr"], mu=1.0, ax=parameter.detach().clone() * 0)
        gradient = -parameter.grad if group["maximize"] else parameter.grad
        if group["weight_decay"]:
            gradient = gradient + parameter * group["weight_decay"]
        state["step"] += 1
        parameter.copy_(parameter * (1 - group["lambd"] * state["eta"]) - gradient * state["eta"])
        if state["mu"] == 1:
            state["ax"] = parameter.detach().clone()
        else:
            state["ax"] = state["ax"] + (parameter.detach() - state["ax"]) * state["mu"]
        state["eta"] = group["lr"] / (
            (1 + group["lambd"] * group["lr"] * state["step"]) ** group["alpha"])
        state["mu"] = 1 / max(1, state["step"] - group["t0"])


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993)."""

    def __init__(self, params: Any, lr: float = 1e-2, etas: Tuple[float, float] = (0.5, 1.2),
                 step_sizes: Tuple[float, float] = (1e-6, 50), **choices: Any) -> None:
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes,
                                  "maximize": choices.get("maximize", False)})

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Updates the Parameters by their gradients."""
        loss = None if closure is None else closure()
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._update(group, parameter)
        return loss

    def _update(self, group: Any, parameter: Any) -> None:
        state = self.state[parameter]
        if not state:
            zeros = parameter.detach() * 0
            state.update(step=0, prev=zeros, step_size=zeros + group["lr"])
        state["step"] += 1
        gradient = -parameter.grad if group["maximize"] else parameter.grad.detach()
        less, more = group["etas"]
        agrees = (gradient * state["prev"]).sign()
        factor = (agrees * 0 + 1).where(agrees == 0, (agrees * 0 + more).where(agrees > 0, less))
        size = (state["step_size"] * factor).clamp(*group["step_sizes"])
        gradient = gradient.where(agrees >= 0, 0.0)
        parameter.copy_(parameter - gradient.sign() * size)
        state["prev"], state["step_size"] = gradient, size


_adam: Any = _MADE["Adam"]


class SparseAdam(_adam):  # type: ignore[misc]
    """Adam: gradients are dense in Kiln."""

    def __init__(self, params: Any, lr: float = 1e-3, betas: Tuple[float, float] = _BETAS,
                 eps: float = 1e-8, maximize: bool = False) -> None:
        super().__init__(params, lr, betas, eps, maximize=maximize)


class Adafactor(Optimizer):
    """Adam with factored second moments (Shazeer and Stern, 2018)."""

    def __init__(self, params: Any, lr: float = 1e-2, beta2_decay: float = -0.8,
                 eps: Tuple[Optional[float], float] = (None, 1e-3), d: float = 1.0,
                 weight_decay: float = 0.0, *, foreach: Optional[bool] = None,
                 maximize: bool = False) -> None:
        super().__init__(params, {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
                                  "weight_decay": weight_decay, "maximize": maximize})

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Updates the Parameters by their gradients."""
        loss = None if closure is None else closure()
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._update(group, parameter)
        return loss

    def _update(self, group: Any, parameter: Any) -> None:
        state = self.state[parameter]
        gradient = -parameter.grad if group["maximize"] else parameter.grad.detach()
        factored = gradient.ndim > 1
        if not state:
            state["step"] = 0
            if factored:
                state["row_var"] = gradient[..., :1] * 0
                state["col_var"] = gradient[..., :1, :] * 0
            else:
                state["variance"] = gradient * 0
        state["step"] += 1
        share = state["step"] ** group["beta2_decay"]
        small, least = group["eps"]
        small = 2.0 ** -23 if small is None else small
        size = min(group["lr"], 1 / state["step"] ** 0.5)
        rms = (parameter.norm(2) / parameter.numel() ** 0.5).clamp(min=least)
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        square = gradient.square()
        if factored:
            row = state["row_var"] = state["row_var"] + (
                square.mean(-1, keepdim=True) - state["row_var"]) * share
            column = state["col_var"] = state["col_var"] + (
                square.mean(-2, keepdim=True) - state["col_var"]) * share
            estimate = row @ column / row.mean(-2, keepdim=True).clamp(min=small)
        else:
            estimate = state["variance"] = state["variance"] + (square - state["variance"]) * share
        update = gradient * estimate.clamp(min=small * small).rsqrt()
        scale = (update.norm(2) / (update.numel() ** 0.5 * group["d"])).clamp(min=1.0)
        parameter.copy_(parameter - update * (rms * size / scale))


class LBFGS(Optimizer):
    """Limited-memory BFGS, without a line search (Nocedal, 1980)."""

    def __init__(self, params: Any, lr: float = 1, max_iter: int = 20,
                 max_eval: Optional[int] = None, tolerance_grad: float = 1e-7,
                 tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: Optional[str] = None) -> None:
        if line_search_fn is not None:
            raise NotImplementedError(f"LBFGS with line_search_fn={line_search_fn!r}")
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_eval or max_iter * 5 // 4,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def _flat_gradient(self) -> Any:
        return _shaping.cat([
            (parameter.detach() * 0 if parameter.grad is None else parameter.grad).reshape(-1)
            for parameter in self.param_groups[0]["params"]])

    def _move(self, share: float, direction: Any) -> None:
        place = 0
        for parameter in self.param_groups[0]["params"]:
            count = parameter.numel()
            parameter.copy_(parameter + share * direction[place: place + count].reshape(
                parameter.shape))
            place += count

    def step(self, closure: Any = None) -> Any:
        """Takes up to max_iter steps; `closure` computes the loss and its gradients again."""
        with no_grad():
            return self._iterate(closure)

    def _iterate(self, closure: Any) -> Any:
        group = self.param_groups[0]
        state = self.state[group["params"][0]]
        state.setdefault("n_iter", 0)
        state.setdefault("func_evals", 0)
        first = self._evaluated(closure)
        loss = float(first)
        state["func_evals"] += 1
        flat = self._flat_gradient()
        if float(flat.abs().max()) <= group["tolerance_grad"]:
            return first
        pairs: List[Any] = state.get("pairs", [])
        direction, before, length = state.get("d"), state.get("prev_flat_grad"), state.get("t")
        ratio = state.get("H_diag", 1.0)
        evaluations = 1
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction, pairs, ratio = -flat, [], 1.0
            else:
                change, moved = flat - before, direction * length
                curvature = float(change @ moved)
                if curvature > 1e-10:
                    pairs = [*pairs, (change, moved, 1.0 / curvature)][-group["history_size"]:]
                    ratio = curvature / float(change @ change)
                direction = _two_loops(flat, pairs, ratio)
            before = flat
            length = min(1.0, 1.0 / float(flat.abs().sum())) * group["lr"] if (
                state["n_iter"] == 1) else group["lr"]
            slope = float(flat @ direction)
            if slope > -group["tolerance_change"]:
                break
            self._move(length, direction)
            last = loss
            if iteration != group["max_iter"]:
                loss = float(self._evaluated(closure))
                flat = self._flat_gradient()
                evaluations += 1
                state["func_evals"] += 1
            if (iteration == group["max_iter"] or evaluations >= group["max_eval"]
                    or float(flat.abs().max()) <= group["tolerance_grad"]
                    or float((direction * length).abs().max()) <= group["tolerance_change"]
                    or abs(loss - last) < group["tolerance_change"]):
                break
        state.update(pairs=pairs, d=direction, prev_flat_grad=before, t=length, H_diag=ratio)
        return first

    def _evaluated(self, closure: Any) -> Any:
        with enable_grad():
            return closure()


def _two_loops(gradient: Any, pairs: List[Any], ratio: float) -> Any:
    """Returns the direction of L-BFGS from the latest changes."""
    result = -gradient
    shares: List[Any] = []
    for change, moved, inverse in reversed(pairs):
        share = (moved @ result) * inverse
        shares.append(share)
        result = result - change * share
    result = result * ratio
    for (change, moved, inverse), share in zip(pairs, reversed(shares)):
        result = result + moved * (share - (change @ result) * inverse)
    return result


__all__ = [
    "ASGD", "LBFGS", "SGD", "Adafactor", "Optimizer", "Rprop", "SparseAdam", "lr_scheduler",
    "optimizer", "swa_utils", *_MADE,
]  # fmt: skip
