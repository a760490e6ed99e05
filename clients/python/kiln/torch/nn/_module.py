"""torch.nn.Module: Parameters, buffers and modules are registered by assignment, as in PyTorch."""

import itertools
from collections import OrderedDict
from typing import Any, Callable, Dict, Iterator, List, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._graph.gradient_mode import no_grad
from kiln.nn.module import Module as KilnModule
from kiln.nn.parameter import Parameter as KilnParameter
from kiln.tensor import Tensor as KilnTensor
from kiln.torch import _defaults, _device
from kiln.torch._tensor import Removable, Tensor, arguments_of_to, convert
from kiln.torch.nn.parameter import Buffer, Parameter

# The classes of this package by those of kiln.nn, filled by _layers.py; and functions that convert
# modules with other attributes.
COUNTERPARTS: Dict[type, type] = {}
CONVERSIONS: Dict[type, Callable[[Any], Any]] = {}

_numbers = itertools.count()
_REGISTERED = ("_parameters", "_buffers", "_modules")


class IncompatibleKeys(tuple):  # type: ignore[type-arg]
    """The names that load_state_dict() did not find, and those that it did not use."""

    missing_keys = property(lambda self: self[0])
    unexpected_keys = property(lambda self: self[1])

    def __repr__(self) -> str:
        if not self[0] and not self[1]:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


def adopted(value: Any) -> Any:
    """Returns a module of kiln.nn, which a layer of Kiln has made, as one of this package."""
    if not isinstance(value, KilnModule) or isinstance(value, Module):
        return value
    conversion = CONVERSIONS.get(type(value))
    if conversion is not None:
        return conversion(value)
    wanted: Any = COUNTERPARTS.get(type(value))
    if wanted is None:
        raise InvalidArgument(
            f"a module of {type(value).__module__}.{type(value).__name__} inside of a torch.nn "
            "module; derive it from torch.nn.Module")
    attributes = dict(vars(value))
    made: Any = wanted.__new__(wanted)
    Module._prepare(made)
    for name, attribute in attributes.items():
        setattr(made, name, attribute)
    return made


class Module(KilnModule):
    """The base class of layers and models.

    >>> class Net(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = torch.nn.Linear(4, 2)
    ...     def forward(self, x):
    ...         return self.layer(x).relu()
    >>> Net()(torch.ones(3, 4)).shape
    torch.Size([3, 2])
    """

    _parameters: Dict[str, Any]
    _buffers: Dict[str, Any]
    _modules: Dict[str, Any]
    dump_patches = False
    call_super_init = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._prepare()

    def _prepare(self) -> None:
        values = vars(self)
        values["training"] = True
        for name in _REGISTERED:
            values[name] = OrderedDict()
        values["_non_persistent_buffers_set"] = set()
        for kind in ("_before", "_after", "_saving", "_loading", "_loaded"):
            values[kind] = OrderedDict()

    # Attributes.

    def __setattr__(self, name: str, value: Any) -> None:
        values = vars(self)
        if "_parameters" not in values:
            if isinstance(value, (KilnTensor, KilnModule)) and isinstance(
                    value, (KilnParameter, KilnModule)):
                raise AttributeError(
                    "cannot assign parameters or modules before Module.__init__() call")
            object.__setattr__(self, name, value)
            return
        if isinstance(value, KilnParameter) and not isinstance(value, Parameter):
            value = Parameter(convert(value.detach()), value.requires_grad)
        if isinstance(value, Parameter):
            self._forget(name)
            values["_parameters"][name] = value
        elif isinstance(value, KilnModule):
            self._forget(name)
            values["_modules"][name] = adopted(value)
        elif isinstance(value, Buffer):
            self.register_buffer(name, value, value.persistent)
        elif isinstance(value, KilnTensor) and not isinstance(value, Tensor):
            # Made by a layer of Kiln, whose tensors are buffers.
            self._forget(name)
            values["_buffers"][name] = convert(value)
        elif name in values["_parameters"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign {type(value).__name__} as parameter {name!r} "
                    "(torch.nn.Parameter or None expected)")
            values["_parameters"][name] = None
        elif name in values["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign {type(value).__name__} as child module {name!r} "
                    "(torch.nn.Module or None expected)")
            values["_modules"][name] = None
        elif name in values["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign {type(value).__name__} as buffer {name!r} "
                                "(torch.Tensor or None expected)")
            values["_buffers"][name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str) -> None:
        values = vars(self)
        values.pop(name, None)
        for kind in _REGISTERED:
            values[kind].pop(name, None)
        values["_non_persistent_buffers_set"].discard(name)

    def __getattr__(self, name: str) -> Any:
        values = vars(self)
        for kind in _REGISTERED:
            found = values.get(kind)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for kind in _REGISTERED:
            if name in vars(self)[kind]:
                del vars(self)[kind][name]
                vars(self)["_non_persistent_buffers_set"].discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> List[str]:
        names = {*dir(type(self)), *vars(self)}
        for kind in _REGISTERED:
            names.update(vars(self)[kind])
        return sorted(names)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Registers a tensor as a buffer: state that is not a Parameter."""
        self._check_name(name, self._buffers)
        self._forget(name)
        self._buffers[name] = None if tensor is None else convert(tensor)
        if not persistent:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Any) -> None:
        """Registers a Parameter, or None."""
        self._check_name(name, self._parameters)
        if param is not None and not isinstance(param, KilnParameter):
            raise TypeError(f"cannot assign {type(param).__name__} object to parameter {name!r}")
        self._forget(name)
        self._parameters[name] = param

    def register_module(self, name: str, module: Any) -> None:
        """Registers a module, or None."""
        self.add_module(name, module)

    def add_module(self, name: str, module: Any) -> None:
        """Registers a module, or None."""
        if module is not None and not isinstance(module, KilnModule):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_name(name, self._modules)
        self._forget(name)
        self._modules[name] = adopted(module)

    def _check_name(self, name: Any, where: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name should be a string, not {type(name).__name__}")
        if "." in name or not name:
            raise KeyError(f"the name {name!r} is empty or contains a dot")
        if hasattr(self, name) and name not in where:
            raise KeyError(f"attribute {name!r} already exists")

    # Calls and hooks.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls forward() and the registered hooks."""
        values = vars(self)
        if not values.get("_before") and not values.get("_after"):
            return self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._before.values()):
            given = hook(self, args, kwargs) if with_kwargs else hook(self, args)
            if given is not None and with_kwargs:
                args, kwargs = given
            elif given is not None:
                args = given if isinstance(given, tuple) else (given,)
        result = self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._after.values()):
            instead = hook(self, args, kwargs, result) if with_kwargs else (
                hook(self, args, result))
            result = result if instead is None else instead
        return result

    def _hooked(self, kind: str, hook: Any, prepend: bool = False) -> Removable:
        hooks = vars(self)[kind]
        number = next(_numbers)
        hooks[number] = hook
        if prepend:
            hooks.move_to_end(number, last=False)
        return Removable(hooks, number)

    def register_forward_pre_hook(self, hook: Any, *, prepend: bool = False,  # type: ignore
                                  with_kwargs: bool = False) -> Removable:
        """Registers hook(module, args), called before forward(); its result replaces args."""
        return self._hooked("_before", (hook, with_kwargs), prepend)

    def register_forward_hook(self, hook: Any, *, prepend: bool = False,  # type: ignore
                              with_kwargs: bool = False,
                              always_call: bool = False) -> Removable:
        """Registers hook(module, args, output), called after forward(); its result replaces it."""
        return self._hooked("_after", (hook, with_kwargs), prepend)

    def register_state_dict_post_hook(self, hook: Any) -> Removable:
        """Registers hook(module, state_dict, prefix, local_metadata), called by state_dict()."""
        return self._hooked("_saving", hook)

    def register_load_state_dict_pre_hook(self, hook: Any) -> Removable:
        """Registers hook(module, state_dict, prefix, …), called before a module is loaded."""
        return self._hooked("_loading", hook)

    def register_load_state_dict_post_hook(self, hook: Any) -> Removable:
        """Registers hook(module, incompatible_keys), called after load_state_dict()."""
        return self._hooked("_loaded", hook)

    # The tree.

    def named_children(self) -> Iterator[Tuple[str, Any]]:
        """Yields the modules among the attributes, each once, with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Any]:
        """Yields the modules among the attributes."""
        return (module for _, module in self.named_children())

    def named_modules(self, memo: Any = None, prefix: str = "",  # type: ignore[override]
                      remove_duplicate: bool = True) -> Iterator[Tuple[str, Any]]:
        """Yields this module and all under it, with their names."""
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(seen, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """Yields this module and all under it."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def _walk(self, prefix: str) -> Iterator[Tuple[str, Any]]:
        return self.named_modules(None, prefix, False)

    def own_tensors(self) -> Iterator[Tuple[str, Any]]:
        """Yields the Parameters and buffers of only this module."""
        for kind in ("_parameters", "_buffers"):
            for name, value in vars(self)[kind].items():
                if value is not None:
                    yield name, value

    def _members(self, kind: str, prefix: str, recurse: bool,
                 remove_duplicate: bool) -> Iterator[Tuple[str, Any]]:
        seen = set()
        modules = self.named_modules(None, prefix, remove_duplicate) if recurse else (
            [(prefix, self)])
        for path, module in modules:
            for name, value in vars(module)[kind].items():
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[Tuple[str, Any]]:
        """Yields all Parameters with their names."""
        return self._members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """Yields all Parameters."""
        return (value for _, value in self.named_parameters("", recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[Tuple[str, Any]]:
        """Yields all buffers with their names."""
        return self._members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Yields all buffers."""
        return (value for _, value in self.named_buffers("", recurse))

    def get_submodule(self, target: str) -> Any:
        """Returns the module of a name such as "layer1.0.conv1"."""
        module: Any = self
        for part in target.split(".") if target else []:
            if part not in module._modules:
                raise AttributeError(f"{type(module).__name__} has no attribute {part!r}")
            module = module._modules[part]
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Replaces the module of a name."""
        path, _, name = target.rpartition(".")
        setattr(self.get_submodule(path), name, module)

    def get_parameter(self, target: str) -> Any:
        """Returns the Parameter of a name."""
        return self._found(target, "_parameters")

    def get_buffer(self, target: str) -> Any:
        """Returns the buffer of a name."""
        return self._found(target, "_buffers")

    def _found(self, target: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in vars(module)[kind]:
            raise AttributeError(f"{type(module).__name__} has no attribute {name!r}")
        return vars(module)[kind][name]

    # State.

    def state_dict(self, *args: Any, destination: Any = None,
                   prefix: str = "", keep_vars: bool = False) -> Any:
        """Returns all Parameters and persistent buffers by name: views without gradient."""
        if args:
            destination = args[0]
            prefix = args[1] if len(args) > 1 else prefix
            keep_vars = args[2] if len(args) > 2 else keep_vars
        found: Any = OrderedDict() if destination is None else destination
        for name, value in self.own_tensors():
            if name not in self._non_persistent_buffers_set:
                found[prefix + name] = value if keep_vars else value.detach()
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=found, prefix=f"{prefix}{name}.",
                                  keep_vars=keep_vars)
        for hook in self._saving.values():
            hook(self, found, prefix, {})
        return found

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any,
                              strict: bool, missing_keys: List[str], unexpected_keys: List[str],
                              error_msgs: List[str]) -> None:
        for hook in self._loading.values():
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                 error_msgs)
        for name, mine in self.own_tensors():
            if name in self._non_persistent_buffers_set:
                continue
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            value = convert(state_dict[key])
            if tuple(value.shape) == (1,) and not mine.ndim:
                value = value.reshape(())
            if value.shape != mine.shape:
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {value.shape} from "
                    f"checkpoint, the shape in current model is {mine.shape}.")
                continue
            with no_grad():
                if local_metadata.get("assign_to_params_buffers", False):
                    mine.data = value
                else:
                    mine.copy_(value.detach())
        known = {name for kind in _REGISTERED for name in vars(self)[kind]}
        for key in state_dict:
            if strict and key.startswith(prefix) and key not in unexpected_keys:
                own = key[len(prefix):].split(".")
                if own[0] not in known or (len(own) == 1 and own[0] in self._modules) or (
                        len(own) > 1 and own[0] not in self._modules):
                    unexpected_keys.append(key)

    def load_state_dict(self, state_dict: Any, strict: bool = True,
                        assign: bool = False) -> Any:
        """Sets Parameters and buffers to the values of `state_dict`.

        Raises RuntimeError if names are missing or unexpected (unless `strict` is False) or if
        shapes differ.
        """
        missing: List[str] = []
        unexpected: List[str] = []
        errors: List[str] = []

        def load(module: Any, prefix: str) -> None:
            module._load_from_state_dict(
                state_dict, prefix, {"assign_to_params_buffers": assign}, True, missing,
                unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    load(child, f"{prefix}{name}.")

        load(self, "")
        result = IncompatibleKeys((missing, unexpected))
        for module in self.modules():
            for hook in module._loaded.values():
                hook(module, result)
        if strict and unexpected:
            errors.insert(0, "Unexpected key(s) in state_dict: " + ", ".join(
                f'"{key}"' for key in unexpected) + ".")
        if strict and missing:
            errors.insert(0, "Missing key(s) in state_dict: " + ", ".join(
                f'"{key}"' for key in missing) + ".")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                               + "\n\t".join(errors))
        return result

    def get_extra_state(self) -> Any:
        """Raises RuntimeError: subclasses with further state override it."""
        raise RuntimeError("override get_extra_state() for state beyond Parameters and buffers")

    def set_extra_state(self, state: Any) -> None:
        """Raises RuntimeError: subclasses with further state override it."""
        raise RuntimeError("override set_extra_state() for state beyond Parameters and buffers")

    # Dtype and device.

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        for module in self.modules() if recurse else [self]:
            for kind in ("_parameters", "_buffers"):
                for name, value in vars(module)[kind].items():
                    if value is None:
                        continue
                    with no_grad():
                        changed = fn(value.detach())
                        gradient = None if value.grad is None else fn(value.grad)
                    if kind == "_buffers" and not value.is_leaf:
                        vars(module)[kind][name] = changed
                    elif changed._node is not value._node:
                        value.data = changed
                    if gradient is not None:
                        value.grad = gradient
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Moves Parameters and buffers to a device, and casts their floats; returns self."""
        wanted = arguments_of_to(args, kwargs.get("device"), kwargs.get("dtype"),
                                 kwargs.get("tensor"))

        def move(value: Any) -> Any:
            if wanted.dtype is not None and value.dtype.is_float:
                value = value._cast(wanted.dtype)
            return value if wanted.device is None else value._on(wanted.device)

        if wanted.dtype is not None and not wanted.dtype.is_float:
            raise TypeError(f"nn.Module.to only accepts floating point dtypes, not {wanted.dtype}")
        return self._apply(move)

    def cuda(self, device: Any = None) -> Any:
        """Moves Parameters and buffers to an accelerator; returns self."""
        return self.to(_device.cuda_device(device))

    def cpu(self) -> Any:
        """Moves Parameters and buffers to the CPU; returns self."""
        return self.to("cpu")

    def type(self, dst_type: Any) -> Any:
        """Casts all Parameters and buffers; returns self."""
        wanted = _defaults.as_dtype(dst_type)
        return self._apply(lambda value: value._cast(wanted))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Moves the module to a device; returns self."""
        return self.to(device)

    def share_memory(self) -> Any:
        """Returns self."""
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing: Kiln compiles every graph."""

    # Training.

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops all gradients or, without `set_to_none`, makes them zeros."""
        for parameter in self.parameters():
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach() * 0

    def train(self, mode: bool = True) -> Any:
        """Switches to training, or with `mode` False to inference; returns self."""
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """Switches to inference; returns self."""
        return self.train(False)

    def apply(self, fn: Callable[[Any], Any]) -> Any:
        """Calls a function with each module, after the modules under it; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Freezes or unfreezes all Parameters; returns self."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = []
        for name, module in self._modules.items():
            text = repr(module).replace("\n", "\n  ")
            children.append(f"({name}): {text}")
        if lines and not children and len(lines) == 1:
            return f"{self._get_name()}({lines[0]})"
        body = [*lines, *children]
        if not body:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(body) + "\n)"
