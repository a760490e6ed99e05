"""Public names have an example in their docstrings, which test_doctests runs."""

import importlib
import inspect

import pytest

import kiln
from kiln.optim.lr_scheduler import LRScheduler

PUBLIC = ("kiln", "kiln.nn", "kiln.nn.init", "kiln.nn.utils", "kiln.functional", "kiln.linalg",
          "kiln.optim", "kiln.optim.lr_scheduler", "kiln.amp", "kiln.autograd",
          "kiln._array_api.sets")  # fmt: skip

# Methods without an example, by their class or a base of it.
WITHOUT = {
    kiln.nn.Module: {"forward": "the example of the class calls it",
                     "extra_repr": "what repr() shows is in examples of repr()"},
    kiln.optim.Optimizer: dict.fromkeys(
        ("slots", "update", "check", "initial"), "what a new optimizer defines; step() calls it"),
    LRScheduler: {"rate": "what a new scheduler defines; step() calls it"},
    kiln.Connection: dict.fromkeys(
        ("close", "define", "download", "move", "raise_unreported", "run", "upload"),
        "what tensors and sessions call; test_session has each"),
    kiln.Generator: {"word": "what keys are made of"},
}  # fmt: skip


def has_example(thing) -> bool:
    return ">>>" in (inspect.getdoc(thing) or "")


def function_of(raw):
    """Returns the function with the docstring of a class' attribute."""
    if isinstance(raw, property):
        return raw.fget
    return raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw


def methods_of(kind):
    for name, raw in vars(kind).items():
        function = function_of(raw)
        if not name.startswith("_") and inspect.isfunction(function):
            yield name, function


def needs_example(kind, name) -> bool:
    return not any(issubclass(kind, base) and name in names for base, names in WITHOUT.items())


def names_of(module):
    """Returns the public names of a package, or the functions of a module without a list."""
    defined = [name for name, value in vars(module).items() if not name.startswith("_")
               and inspect.isfunction(value) and value.__module__ == module.__name__]
    return getattr(module, "__all__", defined)


def without_example(module):
    for name in names_of(module):
        thing = getattr(module, name)
        if name.startswith("__") or not callable(thing):
            continue
        if not getattr(thing, "__module__", "").startswith("kiln"):
            continue
        if inspect.isclass(thing) and thing is not kiln.Tensor:  # see the test of its methods
            if issubclass(thing, kiln.KilnError) and thing is not kiln.KilnError:
                continue  # errors are raised, not constructed
            yield from (f"{name}.{method}" for method, function in methods_of(thing)
                        if not has_example(function) and needs_example(thing, method))
        if not has_example(thing):
            yield name


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_has_an_example(name):
    missing = sorted(without_example(importlib.import_module(name)))
    assert not missing, f"no example in the docstring of: {', '.join(missing)}"


def test_methods_of_tensors_have_one():
    missing = []
    for name in dir(kiln.Tensor):
        method = function_of(inspect.getattr_static(kiln.Tensor, name))
        if name.startswith("_") or has_example(method):
            continue
        apart = getattr(kiln.Tensor, name[:-1], None)  # x.add_(y) is x.assign(x.add(y))
        if not (name.endswith("_") and has_example(apart)):
            missing.append(name)
    assert not missing, f"no example in the docstring of: {', '.join(missing)}"


def test_reasons_are_of_methods_that_there_are():
    for kind, names in WITHOUT.items():
        assert not [name for name in names if not hasattr(kind, name)], kind
