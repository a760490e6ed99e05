"""What a traced function can reach: its arguments, closure, globals, and the objects behind them.

Tracing runs a function once and keeps its graph, so all that the function may have looked at must
be looked at again before each call. `survey` walks it: tensors are collected in a fixed order,
everything else becomes a *guard*, a flat list of hashable facts. Equal guards mean that the
function would build the same graph; the tensors collected then are its inputs.
"""

import collections
import dis
import enum
import functools
import sys
import sysconfig
import types
import weakref
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import numpy as np

from kiln._dtypes import DType
from kiln.tensor import Tensor
from kiln.variables import Bindings, Dim, merged

_PLAIN = (int, float, bool, str, bytes, complex, type(None), type(Ellipsis), np.generic, DType,
          np.dtype)  # fmt: skip
# Arrays up to this size are compared by content; larger ones by identity.
_SMALL_ARRAY_BYTES = 4096
_STDLIB = sysconfig.get_paths()["stdlib"]
_TRUSTED = ("kiln", "numpy", "builtins")


class Survey:
    """The result: facts, tensors, and (when asked for) where each fact was found."""

    __slots__ = ("_seen", "bindings", "guard", "kept", "paths", "tensor_paths", "tensors")

    def __init__(self, with_paths: bool = False) -> None:
        self.guard: List[Any] = []
        self.tensors: List[Tensor] = []
        # Objects that the guard names by identity, which must live as long as the guard.
        self.kept: List[Any] = []
        self.paths: Optional[List[str]] = [] if with_paths else None
        self.tensor_paths: List[str] = []
        # Values of the variables in numbers. They are no facts: a graph holds for all of them.
        self.bindings: Bindings = {}
        self._seen: Dict[int, int] = {}

    def add(self, value: Any, path: str) -> None:
        """Walks `value`."""
        kind = type(value)
        if kind in _EXACT_PLAIN:
            # By text: 0.0 and -0.0 differ, NaN equals NaN.
            self._fact((kind, repr(value) if kind is float else value), path)
            return
        identity = id(value)
        number = self._seen.get(identity)
        if number is not None:
            self._fact(("seen", number), path)
            return
        self._seen[identity] = len(self._seen)
        handler = _HANDLERS.get(kind)
        if handler is None:
            handler = _HANDLERS[kind] = _handler(kind, value)
        handler(self, value, path)

    def _add_named(self, named: Any, path: str) -> None:
        """Walks (name, value) pairs; short, since most of a survey's time is spent here."""
        guard, paths = self.guard, self.paths
        for name, value in named:
            if paths is None:
                guard.append(name)
                if type(value) in _ATOMS:
                    guard.append(value)
                    guard.append(type(value))
                else:
                    self.add(value, path)
                continue
            place = f"{path}.{name}"
            guard.append(name)
            paths.append(place)
            if type(value) in _ATOMS:
                guard.extend((value, type(value)))
                paths.extend((place, place))
            else:
                self.add(value, place)

    def _fact(self, fact: Any, path: str) -> None:
        self.guard.append(fact)
        if self.paths is not None:
            self.paths.append(path)

    def _tensor(self, tensor: Tensor, path: str) -> None:
        node = tensor._node
        self._fact((Tensor, node.shape, node.dtype, tensor._requires_grad), path)
        self.tensors.append(tensor)
        if self.paths is not None:
            self.tensor_paths.append(path)
        gradient = tensor._grad
        if gradient is not None:
            if gradient._node in leftovers:
                self._fact("leftover", path)
            else:
                self.add(gradient, self._join(path, ".grad"))

    def _dim(self, number: Dim, path: str) -> None:
        self._fact((Dim, number.unbound()), path)
        self.bindings = merged(self.bindings, number.values)

    def _join(self, path: str, part: str) -> str:
        return path + part if self.paths is not None else path

    def _sequence(self, value: Any, path: str) -> None:
        self._fact((type(value), len(value)), path)
        if self.paths is None:
            for item in value:
                self.add(item, path)
            return
        for i, item in enumerate(value):
            self.add(item, f"{path}[{i}]")

    def _mapping(self, value: Any, path: str) -> None:
        self._fact((type(value), len(value)), path)
        for key, item in list(value.items()):
            self._key(key, path)
            self.add(item, self._join(path, f"[{key!r}]"))

    def _key(self, key: Any, path: str) -> None:
        if isinstance(key, Tensor):
            self.add(key, self._join(path, "[key]"))
            return
        self.kept.append(key)
        self._fact((type(key), key), path)

    def _set(self, value: Any, path: str) -> None:
        if all(isinstance(item, _PLAIN) for item in value):
            self._fact((type(value), frozenset(value)), path)
        else:
            self._identity(value, path)

    def _array(self, value: np.ndarray, path: str) -> None:
        if value.nbytes <= _SMALL_ARRAY_BYTES and value.dtype.kind in "biufc":
            self._fact((np.ndarray, value.shape, value.dtype.str, value.tobytes()), path)
        else:
            self._identity(value, path)

    def _identity(self, value: Any, path: str) -> None:
        self.kept.append(value)
        self._fact((type(value), id(value)), path)

    def _object(self, value: Any, path: str) -> None:
        self._identity(value, path)
        kind = type(value)
        code = _class_code(kind)
        if code.members:
            code.visit(self, path)
        attributes = getattr(value, "__dict__", None)
        if attributes:
            self._fact(len(attributes), path)
            self._add_named(tuple(attributes.items()), path)
        for name in _slots(kind):
            if hasattr(value, name):
                self.add(getattr(value, name), self._join(path, f".{name}"))

    def _function(self, value: Any, path: str) -> None:
        if _is_trusted(value):
            self._identity(value, path)
            return
        self._fact((types.FunctionType, value.__code__), path)
        code_of(value).visit(self, path)
        for default in (value.__defaults__, value.__kwdefaults__):
            if default:
                self.add(default, self._join(path, " default"))

    def _method(self, value: Any, path: str) -> None:
        self._fact(types.MethodType, path)
        self.add(value.__func__, path)
        self.add(value.__self__, path)

    def _builtin(self, value: Any, path: str) -> None:
        owner = value.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            self._identity(value, path)
            return
        self._fact((types.BuiltinFunctionType, value.__name__), path)
        self.add(owner, path)

    def _partial(self, value: Any, path: str) -> None:
        self._fact(functools.partial, path)
        for part in (value.func, value.args, value.keywords):
            self.add(part, path)

    def _generator(self, value: Any, path: str) -> None:
        self._identity(value, path)
        frame = getattr(value, "gi_frame", None)
        self._fact(None if frame is None else frame.f_lasti, path)

    def _class(self, value: Any, path: str) -> None:
        self._identity(value, path)
        _class_code(value).visit(self, path)


# Nodes that were left in .grad by traced functions.
leftovers: "weakref.WeakSet[Any]" = weakref.WeakSet()

# Values of these types are told apart by value and type alone.
_ATOMS = {int, bool, str, type(None)}
_EXACT_PLAIN = {int, float, bool, str, bytes, complex, type(None), type(Ellipsis), DType}
_HANDLERS: Dict[type, Callable[[Survey, Any, str], None]] = {
    Tensor: Survey._tensor,
    list: Survey._sequence,
    tuple: Survey._sequence,
    dict: Survey._mapping,
    set: Survey._set,
    frozenset: Survey._set,
    np.ndarray: Survey._array,
    types.FunctionType: Survey._function,
    types.MethodType: Survey._method,
    functools.partial: Survey._partial,
    types.BuiltinFunctionType: Survey._builtin,
    types.GeneratorType: Survey._generator,
    collections.deque: Survey._sequence,
}
_IDENTITY_TYPES = (types.ModuleType, types.CodeType, property, weakref.ref,
                   type(sys.stdout))  # fmt: skip


def _handler(kind: type, value: Any) -> Callable[[Survey, Any, str], None]:
    if isinstance(value, Tensor):
        return Survey._tensor
    if isinstance(value, Dim):
        return Survey._dim
    if isinstance(value, _PLAIN):
        return lambda survey, item, path: survey._fact((type(item), repr(item)), path)
    if isinstance(value, enum.Enum):
        return lambda survey, item, path: survey._fact((type(item), item.name), path)
    # A user's subclass may look at more than its base says.
    if hasattr(kind, "_kiln_watched") and is_library(kind.__module__):
        return _watched
    if isinstance(value, type):
        return Survey._class
    if isinstance(value, _IDENTITY_TYPES):
        return Survey._identity
    if isinstance(value, (list, tuple)) and not hasattr(value, "__dict__"):
        return Survey._sequence
    if isinstance(value, dict) and not hasattr(value, "__dict__"):
        return Survey._mapping
    if isinstance(value, dict):
        return _mapping_object
    if isinstance(value, (list, tuple)):
        return _sequence_object
    return Survey._object


def _mapping_object(survey: Survey, value: Any, path: str) -> None:
    survey._mapping(value, path)
    survey._object(value, path)


def _sequence_object(survey: Survey, value: Any, path: str) -> None:
    survey._sequence(value, path)
    survey._object(value, path)


def _watched(survey: Survey, value: Any, path: str) -> None:
    """This package's own objects that say which of their attributes matter."""
    survey._identity(value, path)
    for name in value._kiln_watched:
        survey.add(getattr(value, name), survey._join(path, f".{name}"))


def _is_trusted(function: Any) -> bool:
    """Whether a function's code is this package's or a library's, which keep no state behind it."""
    return is_library(getattr(function, "__module__", None) or "")


@functools.cache
def is_library(module: str) -> bool:
    """Whether a module belongs to this package, NumPy, or the standard library."""
    top = module.partition(".")[0]
    if top in _TRUSTED:
        return True
    if top == "__main__":
        return False
    names = getattr(sys, "stdlib_module_names", None)
    if names is not None:
        return top in names
    file = getattr(sys.modules.get(top), "__file__", None) or ""  # Python 3.9
    return file.startswith(_STDLIB) and "-packages" not in file


class _Code:
    """What a piece of code can reach by name: its closure's cells and its module's globals."""

    __slots__ = ("cells", "globals", "names", "roots")

    def __init__(self, function: Any) -> None:
        self.globals = function.__globals__
        # What the code looks up as a global or imports, and every name it uses of modules.
        self.roots = tuple(sorted(_root_names(function.__code__)))
        self.names = tuple(sorted(_names(function.__code__)))
        self.cells = tuple(zip(function.__code__.co_freevars, function.__closure__ or ()))

    def visit(self, survey: Survey, path: str) -> None:
        """Walks all of it."""
        for name, cell in self.cells:
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                survey._fact((name, "empty"), path)
                continue
            survey.add(value, survey._join(path, f" closure {name}"))
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

    def _visit_module(self, survey: Survey, module: Any, path: str) -> None:
        survey._fact((types.ModuleType, id(module)), path)
        if is_library(module.__name__):
            return
        attributes = vars(module)
        for name in self.names:
            if name in attributes:
                survey.add(attributes[name], survey._join(path, f".{name}"))


class _ClassCode:
    """What instances of a class reach through it: the user's methods and class attributes."""

    __slots__ = ("members", "sizes")

    def __init__(self, kind: type) -> None:
        bases = [base for base in kind.__mro__ if not is_library(base.__module__)]
        self.sizes = tuple(bases)
        self.members = tuple(
            (base, name) for base in bases for name in vars(base) if not _is_internal(name))

    def visit(self, survey: Survey, path: str) -> None:
        """Walks them as they are now."""
        for base in self.sizes:
            survey._fact(len(vars(base)), path)
        for base, name in self.members:
            member = vars(base).get(name)
            function = getattr(member, "__func__", None) or getattr(member, "fget", None)
            survey.add(function or member, survey._join(path, f".{name}"))


def _is_internal(name: str) -> bool:
    return (name.startswith("__") and name.endswith("__") and name != "__call__") or (
        name == "_abc_impl")


def _slots(kind: type) -> Tuple[str, ...]:
    found = _slot_names.get(kind)
    if found is None:
        names: List[str] = []
        for base in kind.__mro__:
            slots = vars(base).get("__slots__", ())
            names += [slots] if isinstance(slots, str) else list(slots)
        found = _slot_names[kind] = tuple(
            name for name in names if not (name.startswith("__") and name.endswith("__")))
    return found


_slot_names: "weakref.WeakKeyDictionary[type, Tuple[str, ...]]" = weakref.WeakKeyDictionary()


def _root_names(code: Any) -> Set[str]:
    result = {instruction.argval for instruction in dis.get_instructions(code)
              if instruction.opname.endswith(("_GLOBAL", "_NAME"))}
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
    """The names a function's code uses, found once per function."""
    code = _codes.get(function)
    if code is None:
        code = _codes[function] = _Code(function)
    return code


def _class_code(kind: type) -> _ClassCode:
    found = _class_codes.get(kind)
    if found is None:
        found = _class_codes[kind] = _ClassCode(kind)
    return found


def survey(roots: List[Tuple[str, Any]], with_paths: bool = False) -> Survey:
    """Walks named roots in order."""
    result = Survey(with_paths)
    for path, value in roots:
        result.add(value, path)
    return result
