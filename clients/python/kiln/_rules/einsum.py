"""The shape of einsum's result, from its equation."""

import json
import string
from typing import Any, Dict, List, Sequence, Tuple

from kiln._basics.errors import InvalidArgument
from kiln._rules.shapes import Shape

# A dimension's name: a letter, or, in an ellipsis, a negative number counted from its end.
Label = Any
_ELLIPSIS = "..."

OPERANDS_MAX = 12


def _error(equation: str, message: str) -> InvalidArgument:
    # As JSON, since a line break in the equation must not break the message.
    return InvalidArgument(f"einsum's equation {json.dumps(equation)}: {message}")


def _parse_term(equation: str, text: str) -> List[Label]:
    term: List[Label] = []
    rest = text.replace(" ", "")
    while rest:
        if rest.startswith(_ELLIPSIS):
            if _ELLIPSIS in term:
                raise _error(equation, "two ellipses in one operand")
            term.append(_ELLIPSIS)
            rest = rest[3:]
        elif rest[0] in string.ascii_letters:
            term.append(rest[0])
            rest = rest[1:]
        else:
            raise _error(
                equation, f"{rest[0]!r} is not a letter; use letters, \"...\", \",\" and \"->\"")
    return term


def _name_dimensions(equation: str, term: List[Label], shape: Shape) -> List[Label]:
    has_ellipsis = _ELLIPSIS in term
    letters = len(term) - has_ellipsis
    if (len(shape) < letters) if has_ellipsis else (len(shape) != letters):
        raise _error(
            equation, f"{letters} letters for an operand of shape {shape}"
            + ("" if has_ellipsis else '; each dimension needs one, or "..."'))
    labels: List[Label] = []
    for label in term:
        if label == _ELLIPSIS:
            labels.extend(-i for i in range(len(shape) - letters, 0, -1))
        else:
            labels.append(label)
    return labels


def _add_sizes(equation: str, labels: List[Label], shape: Shape, sizes: Dict[Label, int]) -> None:
    own: Dict[Label, int] = {}
    for label, size in zip(labels, shape):
        first = own.setdefault(label, size)
        if first != size:
            raise _error(equation, f"'{label}' is repeated for sizes {first} and {size} of one "
                         "operand; a diagonal needs equal ones")  # fmt: skip
        known = sizes.setdefault(label, size)
        if size in (known, 1):
            continue
        if known != 1:
            name = f"'{label}'" if isinstance(label, str) else "an ellipsis"
            raise _error(
                equation, f"{name} names sizes {known} and {size}; they must be equal, or 1")
        sizes[label] = size


def _explicit_result(equation: str, text: str, sizes: Dict[Label, int]) -> List[Label]:
    result: List[Label] = []
    for label in _parse_term(equation, text):
        if label == _ELLIPSIS:
            result.extend(sorted(name for name in sizes if isinstance(name, int)))
            continue
        if label not in sizes:
            raise _error(equation, f"'{label}' is in the result but in no operand")
        if label in result:
            raise _error(equation, f"'{label}' is in the result twice")
        result.append(label)
    return result


def _parse(equation: str, shapes: Sequence[Shape]) -> Tuple[List[Label], Dict[Label, int]]:
    """Returns the result's labels, and the size of each label."""
    left, arrow, right = equation.partition("->")
    texts = left.split(",")
    if len(texts) != len(shapes):
        raise _error(equation, f"{len(texts)} operands are named, but {len(shapes)} are given")
    if len(shapes) > OPERANDS_MAX:
        raise _error(
            equation,
            f"{len(shapes)} operands; at most {OPERANDS_MAX} are allowed, so split the equation")
    sizes: Dict[Label, int] = {}
    uses: Dict[Label, int] = {}
    for text, shape in zip(texts, shapes):
        labels = _name_dimensions(equation, _parse_term(equation, text), shape)
        _add_sizes(equation, labels, shape, sizes)
        for label in labels:
            uses[label] = uses.get(label, 0) + 1
    if arrow:
        return _explicit_result(equation, right, sizes), sizes
    once = sorted(label for label, count in uses.items() if isinstance(label, str) and count == 1)
    return sorted(label for label in sizes if isinstance(label, int)) + once, sizes


def einsum_shape(equation: str, shapes: Sequence[Shape]) -> Shape:
    """Returns the shape of the equation's result; raises InvalidArgument for a wrong one."""
    result, sizes = _parse(equation, shapes)
    return tuple(sizes[label] for label in result)
