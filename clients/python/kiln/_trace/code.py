"""Finds what code can reach by name: closures and globals of functions, methods of classes."""

import dis
import functools
import sys
import sysconfig
import types
import weakref
from typing import TYPE_CHECKING, Any, Set

if TYPE_CHECKING:
    from kiln._trace.guards import Survey

_STDLIB = sysconfig.get_paths()["stdlib"]
_TRUSTED = ("kiln", "numpy", "builtins")


@functools.cache
def is_library(module: str) -> bool:
    """Returns whether a module belongs to this package, NumPy, or the standard library."""
    top = module.partition(".")[0]
    if top in _TRUSTED:
        return True
    if top == "__main__":
        return False
    names = getattr(sys, "stdlib_module_names", None)
    if names is not None:
        return top in names
    file = getattr(sys.modules.get(top), "__file__", None) or ""  # Python 3.9
    # site-packages is within the standard library's folder.
    return file.startswith(_STDLIB) and "-packages" not in file


class _Code:
    """Everything that a function can reach by name: its closure's cells and module globals."""

    __slots__ = ("cells", "globals", "names", "roots")

    def __init__(self, function: Any) -> None:
        self.globals = function.__globals__
        # The names that the code looks up as globals or imports, and all names it uses of modules.
        self.roots = tuple(sorted(_root_names(function.__code__)))
        self.names = tuple(sorted(_names(function.__code__)))
        self.cells = tuple(zip(function.__code__.co_freevars, function.__closure__ or ()))

    def visit(self, survey: "Survey", path: str) -> None:
        """Walks all of it."""
        for name, cell in self.cells:
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                survey.fact((name, "empty"), path)
                continue
            survey.add(value, survey.join(path, f" closure {name}"))
        known = self.globals
        for name in self.roots:
            if name in known:
                value = known[name]
            elif name in sys.modules and not is_library(name):  # imported inside the function
                value = sys.modules[name]
            else:
                continue
            if type(value) is types.ModuleType:
                self._visit_module(survey, value, name)
            else:
                survey.add(value, name)

    def _visit_module(self, survey: "Survey", module: Any, path: str) -> None:
        survey.fact((types.ModuleType, id(module)), path)
        if is_library(module.__name__):
            return
        attributes = vars(module)
        for name in self.names:
            if name in attributes:
                survey.add(attributes[name], survey.join(path, f".{name}"))


class _ClassCode:
    """Everything that instances reach through their class: methods and class attributes."""

    __slots__ = ("members", "sizes")

    def __init__(self, kind: type) -> None:
        bases = [base for base in kind.__mro__ if not is_library(base.__module__)]
        self.sizes = tuple(bases)
        self.members = tuple(
            (base, name) for base in bases for name in vars(base) if not _is_internal(name))

    def visit(self, survey: "Survey", path: str) -> None:
        """Walks the present values."""
        for base in self.sizes:
            # A name that was added later is not a member; the number of names shows it.
            survey.fact(len(vars(base)), path)
        for base, name in self.members:
            member = vars(base).get(name)
            # The function inside a classmethod, staticmethod or property.
            function = getattr(member, "__func__", None) or getattr(member, "fget", None)
            survey.add(function or member, survey.join(path, f".{name}"))


def _is_internal(name: str) -> bool:
    return (name.startswith("__") and name.endswith("__") and name != "__call__") or (
        name == "_abc_impl")


def _root_names(code: Any) -> Set[str]:
    result = {instruction.argval for instruction in dis.get_instructions(code)
              if instruction.opname.endswith(("_GLOBAL", "_NAME"))}
    # Inner functions, lambdas and comprehensions are code objects of their own.
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            result |= _root_names(constant)
    return result


def _names(code: Any) -> Set[str]:
    result = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            result |= _names(constant)
    return result


_codes: "weakref.WeakKeyDictionary[Any, _Code]" = weakref.WeakKeyDictionary()
_class_codes: "weakref.WeakKeyDictionary[type, _ClassCode]" = weakref.WeakKeyDictionary()


def code_of(function: Any) -> _Code:
    """Returns the names that a function's code uses, found once per function."""
    code = _codes.get(function)
    if code is None:
        code = _codes[function] = _Code(function)
    return code


def class_code(kind: type) -> _ClassCode:
    """Returns what a class contributes to its instances, found once per class."""
    found = _class_codes.get(kind)
    if found is None:
        found = _class_codes[kind] = _ClassCode(kind)
    return found
