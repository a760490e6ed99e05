"""Every op of the daemon's table as a function: `kiln.ops.gelu(x, approximate="tanh")`.

Functions and their docstrings are made from the table on first use, so a new op appears with the
table's next version. Operands are positional, attributes are keywords. For everyday use, prefer the
functions of `kiln` and the methods of tensors, which are made of these ops.

>>> help(kiln.ops.softmax)  # doctest: +ELLIPSIS
Help on function softmax in module kiln.ops:
...

`expansion()` of a function shows the primitives that the daemon makes of the op: for given
operands, of which only shapes and dtypes count, or for those of the documentation's example.

>>> kiln.ops.mse_loss.expansion(kiln.ones(3, 4), kiln.ones(3, 4), reduction="sum")
input 0 float32[3,4]
input 1 float32[3,4]
%0 = input float32[3,4] index=0
%1 = input float32[3,4] index=1
%2 = sub float32[3,4] %0 %1
%3 = mul float32[3,4] %2 %2
%4 = reduce_sum float32[1,1] %3 axes=[0,1]
%5 = reshape float32 %4
output %5
"""

import inspect
import textwrap
from typing import Any, Dict, List, Optional, Protocol, Tuple

import numpy as np

from kiln._basics import dtypes
from kiln._basics.errors import InvalidArgument
from kiln._graph.node import TABLE, make
from kiln._ops.definition import Attribute, Op
from kiln.ops._examples import example_of
from kiln.ops._expansion import expansion
from kiln.tensor import Tensor, apply, wrap

# Nodes that only this package makes.
_INTERNAL = ("const", "input", "gradient")

_SHAPES = {
    "same": "the first operand's",
    "broadcast": "that to which the operands broadcast",
    "reduce": "the operand's without the axes, or with size 1 there if keepdims",
    "attribute": "the attribute shape",
    "scalar": "()",
}
_DTYPES = {
    "same": "the first operand's",
    "promote": "that to which the operands promote",
    "promote_float": "that to which the operands promote, float32 for integers and bools",
    "attribute": "the argument dtype",
    "second": "the second operand's",
}
_PYTHON_TYPES = {"int": int, "float": float, "bool": bool, "string": str, "ints": Tuple[int, ...],
                 "shape": Tuple[int, ...], "number": float}  # fmt: skip


def _signature(op: Op) -> inspect.Signature:
    parameters: List[inspect.Parameter] = []
    for name in op.operands:
        one, many = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL
        optional = name.endswith("?")
        parameters.append(inspect.Parameter(
            _plain(name), many if name.endswith("*") else one,
            default=None if optional else inspect.Parameter.empty,
            annotation=Optional[Tensor] if optional else Tensor))
    only = inspect.Parameter.KEYWORD_ONLY
    for attribute in op.attributes:
        parameters.append(inspect.Parameter(
            attribute.name, only, annotation=_PYTHON_TYPES[attribute.type],
            default=inspect.Parameter.empty if attribute.default is None else attribute.default))
    if op.dtype_rule == "attribute":
        parameters.append(inspect.Parameter("dtype", only, annotation=dtypes.DType))
    return inspect.Signature(parameters, return_annotation=Tensor)


def _plain(name: str) -> str:
    return name.rstrip("?*")


def documentation(op: Op) -> str:
    """Returns the docstring of an op's function."""
    shape = _SHAPES.get(op.shape_rule, f"by the rule of {op.shape_rule}, see the example")
    dtype = _DTYPES.get(op.dtype_rule, op.dtype_rule)
    facts = f"Shape: {shape}. Dtype: {dtype}."
    if op.operands:
        special = op.special_operand
        facts += f" Operands: {op.operand_class.replace('_', ' ')}"
        if special >= 0:
            facts += f"; {_plain(op.operands[special])}: {op.special_class.replace('_', ' ')}"
        facts += "."
    if op.attributes:
        listed = ", ".join(_attribute(attribute) for attribute in op.attributes)
        facts += f" Attributes: {listed}."
    facts += " Raises InvalidArgument for other shapes, dtypes and attributes."
    lines = [op.doc.rstrip(".") + ".", "", *textwrap.wrap(facts, 96)]
    example = example_of(op)
    if example is not None:
        lines += ["", f">>> kiln.ops.{_python_name(op)}({example.text}).shape", repr(example.shape)]
    return "\n".join(lines)


def _attribute(attribute: Attribute) -> str:
    default = "" if attribute.default is None else f" = {attribute.default!r}"
    return f"{attribute.name}: {attribute.type}{default}"


def _python_name(op: Op) -> str:
    """Appends an underscore to `and`, `or` and `not`, which are keywords of Python."""
    return f"{op.name}_" if op.name in ("and", "or", "not") else op.name


class OpFunction(Protocol):
    """The function of an op."""

    def __call__(self, *operands: Any, dtype: Any = None, **attributes: Any) -> Tensor:
        """Applies the op."""

    def expansion(self, *operands: Any, **attributes: Any) -> str:
        """Returns the primitives that the daemon makes of the op, one per line."""


def _make(op: Op) -> OpFunction:
    variadic = any(name.endswith("*") for name in op.operands)

    def function(*operands: Any, dtype: Any = None, **attributes: Any) -> Tensor:
        given = list(operands)
        while given and given[-1] is None and not variadic:
            given.pop()
        if not given and op.operands:
            raise InvalidArgument(f'"{op.name}" of no operands; it takes {", ".join(op.operands)}')
        wanted = None if dtype is None else dtypes.as_dtype(dtype)
        frozen = {name: tuple(value) if isinstance(value, (list, range, np.ndarray)) else value
                  for name, value in attributes.items()}  # fmt: skip
        if not op.operands:
            return wrap(make(op.name, (), tuple(frozen.items()), wanted))
        return apply(op.name, given, wanted, **frozen)

    function.__name__ = function.__qualname__ = _python_name(op)
    function.__doc__ = documentation(op)
    function.__signature__ = _signature(op)  # type: ignore[attr-defined]

    def expansion_of(*operands: Any, **attributes: Any) -> str:
        return expansion(op, function, operands, attributes)

    expansion_of.__name__, expansion_of.__doc__ = "expansion", OpFunction.expansion.__doc__
    function.expansion = expansion_of  # type: ignore[attr-defined]
    made: OpFunction = function  # type: ignore[assignment]
    return made


_by_name: Dict[str, Op] = {
    _python_name(op): op for op in TABLE.values() if op.name not in _INTERNAL}
_made: Dict[str, OpFunction] = {}


def __getattr__(name: str) -> OpFunction:
    op = _by_name.get(name)
    if op is None:
        raise AttributeError(f"unknown op {name!r}; use one of {', '.join(sorted(_by_name))}")
    # Not stored in the module's globals, where an op such as `any` would hide Python's own.
    function = _made.get(name)
    if function is None:
        function = _made[name] = _make(op)
    return function


def __dir__() -> List[str]:
    return sorted(_by_name)
