"""A warning for loops that compile at each iteration."""

import threading
import warnings
from collections import OrderedDict
from typing import Any, Optional

from kiln._basics.source import Source, format_source, user_source

# A line with this many new programs in a row is taken for a loop: programs that differ only in
# attributes and sizes, or any programs.
_MANY_ALIKE = 8
_MANY = 32
# Each keeps the message of its last graph.
_LINES_KEPT = 128


class _Line:
    """The new programs in a row of one line of the user's."""

    def __init__(self) -> None:
        self.count = 0
        self.alike = 0  # of the last ones, as many as differ only in attributes
        self.graph: Any = None  # of the last one
        self.changed = ""  # the first thing that differed from the one before

    def note(self, graph: Any) -> None:
        """Counts one more."""
        self.count += 1
        difference = None if self.graph is None else _difference(self.graph, graph)
        self.alike = 1 if difference is None else self.alike + 1
        self.changed = difference or ""
        self.graph = graph

    @property
    def is_loop(self) -> bool:
        """Returns whether it is taken for a loop."""
        return self.count >= _MANY or self.alike >= _MANY_ALIKE


_new: "OrderedDict[Source, _Line]" = OrderedDict()
_warned: "OrderedDict[Source, None]" = OrderedDict()
_lock = threading.Lock()  # guards both


def note_new(graph: Any) -> None:
    """Records that a new graph is about to be compiled; warns after many in a row."""
    source = user_source()
    if source is None:
        return
    with _lock:
        line = _new.pop(source, None) or _Line()
        line.note(graph)
        is_loop = line.is_loop
        if is_loop:
            _warned.setdefault(source)
        elif source not in _warned:
            _new[source] = line
        for lines in (_new, _warned):
            if len(lines) > _LINES_KEPT:
                lines.popitem(last=False)
    if is_loop:
        changed = f" ({line.changed})" if line.changed else ""
        count = line.count if line.count >= _MANY else line.alike
        warnings.warn_explicit(
            f"{format_source(source)} has computed {count} programs in a row that were all new, "
            "and each is compiled. Numbers and begins of slices may change without that, and most "
            f"sizes. What changes here is another thing{changed}: how many operations there are, "
            "an axis, a small exponent, a parameter such as a stride, or sizes for which the "
            "daemon finds no common program. Make it a tensor, or the same in each iteration",
            RuntimeWarning, *source)


def note_known() -> None:
    """Records that a program is run again."""
    if _new:
        source = user_source()
        if source is not None:
            with _lock:
                _new.pop(source, None)


def _difference(old: Any, new: Any) -> Optional[str]:
    """Returns the first attribute that differs, with its values; None: not only attributes do."""
    if len(old.nodes) != len(new.nodes):
        return None
    found = None
    for before, after in zip(old.nodes, new.nodes):
        if before.op != after.op or before.dtype != after.dtype:
            return None
        for name in sorted(after.attributes):
            values = [_text(node.attributes[name]) if name in node.attributes else "its default"
                      for node in (before, after)]
            if found is None and values[0] != values[1]:
                found = f'"{name}" of "{after.op}": {values[0]}, then {values[1]}'
    return found


def _text(attribute: Any) -> str:
    kind = attribute.WhichOneof("value")
    value = getattr(attribute, kind)
    if kind == "ints":
        return str(tuple(value.values))
    if kind == "shape":
        sizes = [str(dim.size) if dim.HasField("size") else "a variable" for dim in value.dims]
        return f"({', '.join(sizes)})"
    return "a variable" if kind == "dim" else str(value)
