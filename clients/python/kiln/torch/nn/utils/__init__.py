"""torch.nn.utils: operations on gradients and Parameters."""

import copy
import math
from typing import Any, Iterable, List, Optional

from kiln._graph.gradient_mode import no_grad
from kiln.nn import utils as _utils
from kiln.tensor import Tensor as KilnTensor
from kiln.torch import _creation, _reducing, _shaping
from kiln.torch._tensor import convert
from kiln.torch.nn.parameter import Parameter
from kiln.torch.nn.utils import rnn, stateless


def _listed(parameters: Any) -> List[Any]:
    return [parameters] if isinstance(parameters, KilnTensor) else list(parameters)


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False, foreach: Optional[bool] = None) -> Any:
    """Scales all gradients so that their common norm is at most max_norm; returns that norm."""
    total = _utils.clip_grad_norm_(_listed(parameters), float(max_norm), float(norm_type))
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients is non-finite")
    return convert(total)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Optional[bool] = None) -> None:
    """Limits each element of the gradients to [-clip_value, clip_value]."""
    _utils.clip_grad_value_(_listed(parameters), float(clip_value))


def get_total_norm(tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: Optional[bool] = None) -> Any:
    """Returns the norm of all elements of several tensors together."""
    norms = [_reducing.norm(tensor, norm_type) for tensor in _listed(tensors)]
    return _reducing.norm(_shaping.stack(norms), norm_type) if norms else _creation.zeros(())


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any,
                          foreach: Optional[bool] = None) -> None:
    """Scales all gradients by max_norm / total_norm, if that is below 1."""
    with no_grad():
        share = (max_norm / (convert(total_norm) + 1e-6)).clamp(max=1.0)
        for parameter in _listed(parameters):
            if parameter.grad is not None:
                parameter.grad = parameter.grad * share


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """Concatenates all elements of the Parameters to a vector."""
    return _shaping.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Sets Parameters to consecutive parts of a vector."""
    place = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[place: place + count].reshape(parameter.shape)
        place += count


class _Normed:
    """A hook that computes a module's weight before each forward()."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Any, _: Any) -> None:
        vars(module)[self.name] = self.weight(module)

    def weight(self, module: Any) -> Any:
        """Returns the weight."""
        raise NotImplementedError

    def install(self, module: Any) -> Any:
        """Registers the hook; returns the module."""
        module._parameters.pop(self.name)
        self(module, ())
        vars(module).setdefault("_norm_handles", {})[self.name] = (
            module.register_forward_pre_hook(self), self)
        return module


class _WeightNorm(_Normed):
    def __init__(self, name: str, dim: Optional[int]) -> None:
        super().__init__(name)
        self.dim = dim

    def norm(self, weight: Any) -> Any:
        """Returns the norm of each entry along the dimension."""
        if self.dim is None:
            return weight.norm()
        axis = self.dim % weight.ndim
        return weight.norm(2, tuple(i for i in range(weight.ndim) if i != axis), True)

    def weight(self, module: Any) -> Any:
        """Returns g * v / |v|."""
        direction = getattr(module, f"{self.name}_v")
        return direction * (getattr(module, f"{self.name}_g") / self.norm(direction))


def weight_norm(module: Any, name: str = "weight", dim: Optional[int] = 0) -> Any:
    """Splits a weight into magnitude and direction (Salimans and Kingma, 2016)."""
    hook = _WeightNorm(name, dim)
    weight = getattr(module, name)
    module.register_parameter(f"{name}_g", Parameter(hook.norm(weight.detach())))
    module.register_parameter(f"{name}_v", Parameter(weight.detach().clone()))
    return hook.install(module)


class _SpectralNorm(_Normed):
    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__(name)
        self.iterations, self.dim, self.eps = n_power_iterations, dim, eps

    def matrix(self, weight: Any) -> Any:
        """Returns the weight as a matrix."""
        if self.dim:
            weight = weight.movedim(self.dim, 0)
        return weight.reshape(weight.shape[0], -1)

    def weight(self, module: Any) -> Any:
        """Returns the weight divided by its largest singular value."""
        weight = getattr(module, f"{self.name}_orig")
        rows = self.matrix(weight)
        left = getattr(module, f"{self.name}_u")
        right = getattr(module, f"{self.name}_v")
        if module.training:
            with no_grad():
                u, v = left, right
                for _ in range(self.iterations):
                    v = _unit(rows.detach().t() @ u, self.eps)
                    u = _unit(rows.detach() @ v, self.eps)
                left.copy_(u)
                right.copy_(v)
        return weight / (left.detach().clone() @ (rows @ right.detach().clone()))


def _unit(vector: Any, eps: float) -> Any:
    return vector / vector.norm().clamp(min=eps)


def spectral_norm(module: Any, name: str = "weight", n_power_iterations: int = 1,
                  eps: float = 1e-12, dim: Optional[int] = None) -> Any:
    """Divides a weight by its largest singular value (Miyato et al., 2018)."""
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    hook = _SpectralNorm(name, n_power_iterations, dim, eps)
    weight = getattr(module, name)
    rows, columns = hook.matrix(weight.detach()).shape
    module.register_parameter(f"{name}_orig", Parameter(weight.detach().clone()))
    module.register_buffer(f"{name}_u", _unit(_creation.randn(rows), eps))
    module.register_buffer(f"{name}_v", _unit(_creation.randn(columns), eps))
    return hook.install(module)


def _remove(module: Any, name: str, kept: Any, dropped: Iterable[str]) -> Any:
    handle, _ = vars(module)["_norm_handles"].pop(name)
    handle.remove()
    for suffix in dropped:
        delattr(module, f"{name}{suffix}")
    vars(module).pop(name, None)
    module.register_parameter(name, Parameter(kept))
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Makes the present weight a Parameter again."""
    hook = vars(module)["_norm_handles"][name][1]
    return _remove(module, name, hook.weight(module).detach(), ("_g", "_v"))


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Makes the present weight a Parameter again."""
    return _remove(module, name, getattr(module, name).detach(), ("_orig", "_u", "_v"))


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns a module; its initial values cost nothing before they are used."""
    return module_cls(*args, **kwargs)


def fuse_conv_bn_weights(conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float,
                         bn_w: Any, bn_b: Any, transpose: bool = False) -> Any:
    """Returns the weight and bias of a convolution followed by a batch norm."""
    bias = bn_rm * 0 if conv_b is None else conv_b
    scale = (bn_w if bn_w is not None else bn_rm * 0 + 1) * (bn_rv + bn_eps).rsqrt()
    shift = bn_b if bn_b is not None else bn_rm * 0
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return (Parameter((conv_w * scale.reshape(shape)).detach()),
            Parameter(((bias - bn_rm) * scale + shift).detach()))


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Returns a convolution that computes a convolution and a batch norm, for inference."""
    fused = copy.deepcopy(conv)
    weight, bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose)
    fused.weight, fused.bias = weight, bias
    return fused


def fuse_linear_bn_weights(linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float,
                           bn_w: Any, bn_b: Any) -> Any:
    """Returns the weight and bias of a linear layer followed by a batch norm."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Returns a linear layer that computes a linear layer and a batch norm, for inference."""
    return fuse_conv_bn_eval(linear, bn)


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Returns the module: Kiln chooses the layout of values itself."""
    return module


convert_conv3d_weight_memory_format = convert_conv2d_weight_memory_format
clip_grad_norm = clip_grad_norm_

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
    "get_total_norm", "parameters_to_vector", "remove_spectral_norm", "remove_weight_norm", "rnn",
    "skip_init", "spectral_norm", "stateless", "vector_to_parameters", "weight_norm",
]
