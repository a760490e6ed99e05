"""Lists the public names with their parameters, one per line.

usage: python tests/clients/python/public_api.py > tests/clients/python/public_api.txt
"""

import importlib
import inspect
import re

# The modules in the documentation. `kiln.ops` is made from the table of ops, which has own tests.
MODULES = (
    "kiln", "kiln.amp", "kiln.autograd", "kiln.functional", "kiln.linalg", "kiln.method_functions",
    "kiln.models", "kiln.nn", "kiln.nn.functional", "kiln.nn.init", "kiln.nn.utils", "kiln.optim",
    "kiln.optim.lr_scheduler", "kiln.random", "kiln.serialization", "kiln.sharding", "kiln.tensor",
    "kiln.torch", "kiln.torch.amp", "kiln.torch.autograd", "kiln.torch.autograd.function",
    "kiln.torch.autograd.functional", "kiln.torch.cuda", "kiln.torch.distributions",
    "kiln.torch.distributions.constraints", "kiln.torch.func", "kiln.torch.linalg",
    "kiln.torch.nn", "kiln.torch.nn.functional", "kiln.torch.nn.init", "kiln.torch.nn.utils",
    "kiln.torch.nn.utils.rnn", "kiln.torch.optim", "kiln.torch.optim.lr_scheduler",
    "kiln.torch.utils.data", "kiln.variables",
)  # fmt: skip


def names_of(module):
    """Returns the public names of a module: those of `__all__`, else those that it defines."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(name for name, value in vars(module).items()
                  if not name.startswith("_")
                  and getattr(value, "__module__", "") == module.__name__)


def parameters(function):
    """Returns a signature without annotations; "" if there is none."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    plain = [parameter.replace(annotation=inspect.Parameter.empty)
             for parameter in signature.parameters.values()]
    text = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return re.sub(r"<([\w.]+ )?([\w.<>]+) at 0x[0-9a-f]+>", r"<\2>", text)


def described(value):
    """Returns the text after a name in its line."""
    if isinstance(value, property):
        return " property"
    if inspect.isclass(value):
        return f" class{parameters(value)}"
    if inspect.isroutine(value):
        return parameters(value)
    return " module" if inspect.ismodule(value) else ""


def members(kind, public):
    """Returns the public members of a class, except those that a public base has as well."""
    found = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("kiln"):
            found.update(vars(base))
    inherited = [base for base in kind.__mro__[1:] if base in public]
    return {name: getattr(value, "__func__", value) for name, value in found.items()
            if not name.startswith("_")
            and not any(inspect.getattr_static(base, name, None) is value for base in inherited)}


def listing():
    """Returns all lines, sorted."""
    modules = [importlib.import_module(name) for name in MODULES]
    listed = {f"{module.__name__}.{name}": getattr(module, name)
              for module in modules for name in names_of(module)}
    classes = {value: name for name, value in reversed([*listed.items()]) if inspect.isclass(value)}
    lines = [f"{name}{described(value)}" for name, value in listed.items()]
    for kind, name in classes.items():
        lines += [f"{name}.{member}{described(value)}"
                  for member, value in members(kind, set(classes)).items()]
    return sorted(lines)


if __name__ == "__main__":
    print("\n".join(listing()))
