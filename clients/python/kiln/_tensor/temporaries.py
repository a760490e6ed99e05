"""Detects changes of temporary tensors.

Indexing returns new tensors, not views, so `x[0][1] = 5` or `x[0].zero_()` would have no visible
effect. Such a tensor is recognized by its reference count. The count is measured once below, since
it differs between versions of Python; if a named object has no more references than a temporary
one, nothing is rejected.
"""

import functools
import opcode
import sys
import types
from typing import Any, Callable, TypeVar

from kiln._basics.errors import InvalidArgument

Method = TypeVar("Method", bound=Callable[..., Any])


def is_statement(frame: types.FrameType) -> bool:
    """Returns whether the frame executes `a[b] = c`, not a call of __setitem__."""
    return frame.f_code.co_code[frame.f_lasti] == opcode.opmap["STORE_SUBSCR"]


def refuses_temporaries(method: Method) -> Method:
    """Makes a method that changes its tensor reject temporaries that an index returned."""
    name = method.__name__

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._selected and sys.getrefcount(self) <= IN_METHOD:
            raise InvalidArgument(
                f"{name} changes a temporary tensor, which has no effect: indexing returns new "
                "tensors, not views. Assign to the key instead, such as x[0] = 5 or x[0] += 1, or "
                f"use {name[:-1]} for a new tensor")
        return method(self, *args, **kwargs)

    return checked  # type: ignore[return-value]


class _Probe:
    """Counts the references that its methods see."""

    seen = 0

    def __setitem__(self, key: Any, value: Any) -> None:
        _Probe.seen = sys.getrefcount(self)


def _method(self: Any, *args: Any, **kwargs: Any) -> None:
    _Probe.seen = sys.getrefcount(self)


_Probe.method = _method  # type: ignore[attr-defined]


def _of_a_temporary(act_on_temporary: Callable[[], None],
                    act_on_named: Callable[[Any], None]) -> int:
    act_on_temporary()
    temporary = _Probe.seen
    named = [_Probe()]
    act_on_named(named)
    return temporary if temporary < _Probe.seen else 0


def _assign_to_temporary() -> None:
    _Probe()[0] = 0


def _assign_to_named(holder: Any) -> None:
    holder[0][0] = 0


def _call_on_temporary() -> None:
    _Probe().method()  # type: ignore[attr-defined]


def _call_on_named(holder: Any) -> None:
    holder[0].method()


# The reference counts of a temporary in __setitem__ and in a method; 0 if they do not differ from a
# named object's.
IN_STATEMENT = _of_a_temporary(_assign_to_temporary, _assign_to_named)
IN_METHOD = _of_a_temporary(_call_on_temporary, _call_on_named)
