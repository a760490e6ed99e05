"""Surveys what a traced function can reach: arguments, closure, globals, and their objects.

Tracing runs a function once and keeps its graph, so everything that the function may have read must
be examined before each call. `survey` walks it: tensors are collected in a fixed order, everything
else becomes a *guard*, a flat list of hashable facts. Equal guards mean that the function would
build the same graph; the tensors collected then are its inputs.
"""

import collections
import enum
import functools
import sys
import types
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from kiln._basics.bindings import Bindings, merged
from kiln._basics.dtypes import DType
from kiln._graph.places import where
from kiln._trace.code import class_code, code_of, is_library
from kiln.tensor import Tensor
from kiln.variables import Dim

_PLAIN = (int, float, bool, str, bytes, complex, type(None), type(Ellipsis), np.generic, DType,
          np.dtype)  # fmt: skip
# Arrays up to this size are compared by content; larger ones by identity.
_SMALL_ARRAY_BYTES = 4096


class Survey:
    """The result of a walk: facts, tensors, and (on request) the path of each fact."""

    __slots__ = ("_seen", "bindings", "guard", "kept", "paths", "tensor_paths", "tensors")

    def __init__(self, with_paths: bool = False) -> None:
        self.guard: List[Any] = []
        self.tensors: List[Tensor] = []
        # Objects that the guard names by identity, which must live as long as the guard.
        self.kept: List[Any] = []
        self.paths: Optional[List[str]] = [] if with_paths else None
        self.tensor_paths: List[str] = []
        # The values of the variables in numbers. Not facts: a graph holds for all their values.
        self.bindings: Bindings = {}
        self._seen: Dict[int, int] = {}

    def add(self, value: Any, path: str) -> None:
        """Walks `value`."""
        kind = type(value)
        if kind in _EXACT_PLAIN:
            # As text: 0.0 and -0.0 differ, NaN equals NaN.
            self.fact((kind, repr(value) if kind is float else value), path)
            return
        identity = id(value)
        # A repeated object is a number in the guard: cycles end, and one object under two names
        # differs from two equal ones.
        number = self._seen.get(identity)
        if number is not None:
            self.fact(("seen", number), path)
            return
        self._seen[identity] = len(self._seen)
        handler = _HANDLERS.get(kind)
        if handler is None:
            handler = _HANDLERS[kind] = _handler(kind, value)
        handler(self, value, path)

    def _add_named(self, named: Any, path: str) -> None:
        """Walks (name, value) pairs; inlines common cases, since most of the time is spent here."""
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

    def fact(self, fact: Any, path: str) -> None:
        """Adds one fact."""
        self.guard.append(fact)
        if self.paths is not None:
            self.paths.append(path)

    def _tensor(self, tensor: Tensor, path: str) -> None:
        node = tensor._node
        self.fact((Tensor, node.shape, node.dtype, tensor._requires_grad), path)
        if node.home is not None:
            placement = where(node)
            self.fact(placement and placement.number, path)
        self.tensors.append(tensor)
        if self.paths is not None:
            self.tensor_paths.append(path)
        gradient = tensor._grad
        if gradient is not None:
            if gradient._node in leftovers:
                self.fact("leftover", path)
            else:
                self.add(gradient, self.join(path, ".grad"))

    def _dim(self, number: Dim, path: str) -> None:
        self.fact((Dim, number.unbound()), path)
        self.bindings = merged(self.bindings, number.values)

    def join(self, path: str, part: str) -> str:
        """Returns the path of a part, if paths are wanted."""
        return path + part if self.paths is not None else path

    def _sequence(self, value: Any, path: str) -> None:
        self.fact((type(value), len(value)), path)
        if self.paths is None:
            for item in value:
                self.add(item, path)
            return
        for i, item in enumerate(value):
            self.add(item, f"{path}[{i}]")

    def _mapping(self, value: Any, path: str) -> None:
        self.fact((type(value), len(value)), path)
        for key, item in list(value.items()):
            self._key(key, path)
            self.add(item, self.join(path, f"[{key!r}]"))

    def _key(self, key: Any, path: str) -> None:
        if isinstance(key, Tensor):
            self.add(key, self.join(path, "[key]"))
            return
        self.kept.append(key)
        self.fact((type(key), key), path)

    def _set(self, value: Any, path: str) -> None:
        if all(isinstance(item, _PLAIN) for item in value):
            self.fact((type(value), frozenset(value)), path)
        else:
            self._identity(value, path)

    def _array(self, value: np.ndarray, path: str) -> None:
        if value.nbytes <= _SMALL_ARRAY_BYTES and value.dtype.kind in "biufc":
            self.fact((np.ndarray, value.shape, value.dtype.str, value.tobytes()), path)
        else:
            self._identity(value, path)

    def _identity(self, value: Any, path: str) -> None:
        self.kept.append(value)
        self.fact((type(value), id(value)), path)

    def _object(self, value: Any, path: str) -> None:
        self._identity(value, path)
        kind = type(value)
        code = class_code(kind)
        if code.members:
            code.visit(self, path)
        attributes = getattr(value, "__dict__", None)
        if attributes:
            self.fact(len(attributes), path)
            self._add_named(tuple(attributes.items()), path)
        for name in _slots(kind):
            if hasattr(value, name):
                self.add(getattr(value, name), self.join(path, f".{name}"))

    def _function(self, value: Any, path: str) -> None:
        if _is_trusted(value):
            self._identity(value, path)
            return
        self.fact((types.FunctionType, value.__code__), path)
        code_of(value).visit(self, path)
        for default in (value.__defaults__, value.__kwdefaults__):
            if default:
                self.add(default, self.join(path, " default"))

    def _method(self, value: Any, path: str) -> None:
        self.fact(types.MethodType, path)
        self.add(value.__func__, path)
        self.add(value.__self__, path)

    def _builtin(self, value: Any, path: str) -> None:
        owner = value.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            self._identity(value, path)
            return
        self.fact((types.BuiltinFunctionType, value.__name__), path)
        self.add(owner, path)

    def _partial(self, value: Any, path: str) -> None:
        self.fact(functools.partial, path)
        for part in (value.func, value.args, value.keywords):
            self.add(part, path)

    def _generator(self, value: Any, path: str) -> None:
        self._identity(value, path)
        frame = getattr(value, "gi_frame", None)
        # Its position: every value that is taken from it is a change.
        self.fact(None if frame is None else frame.f_lasti, path)

    def _class(self, value: Any, path: str) -> None:
        self._identity(value, path)
        class_code(value).visit(self, path)


# Nodes that traced functions have left in .grad.
leftovers: "weakref.WeakSet[Any]" = weakref.WeakSet()

# Values of these types are distinguished by value and type alone.
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
        return lambda survey, item, path: survey.fact((type(item), repr(item)), path)
    if isinstance(value, enum.Enum):
        return lambda survey, item, path: survey.fact((type(item), item.name), path)
    # A user's subclass may read more than its base declares.
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
    """Walks an object of this package that declares its relevant attributes in _kiln_watched."""
    survey._identity(value, path)
    for name in value._kiln_watched:
        survey.add(getattr(value, name), survey.join(path, f".{name}"))


def _is_trusted(function: Any) -> bool:
    """Returns whether a function is this package's or a library's, which keep no hidden state."""
    return is_library(getattr(function, "__module__", None) or "")


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


def survey(roots: List[Tuple[str, Any]], with_paths: bool = False) -> Survey:
    """Walks named roots in order."""
    result = Survey(with_paths)
    for path, value in roots:
        result.add(value, path)
    return result
