"""PyTorch's pairs of values and places, of which the values alone are given here."""

import dis
from types import FrameType
from typing import Optional

from kiln._errors import InvalidArgument
from kiln._node import Node

# By the op of the values: the method that gives values, and the one that gives places.
_PAIRS = {
    "max": ("max", "argmax"), "min": ("min", "argmin"), "sort": ("sort", "argsort"),
    "cumulative_max": ("cummax", ""), "cumulative_min": ("cummin", ""),
}  # fmt: skip
_UNPACK = dis.opmap["UNPACK_SEQUENCE"]


def remedy(node: Node) -> str:
    """What to write instead of a pair; empty where nobody expects one."""
    if node.op not in _PAIRS or not node.shape:
        return ""
    values, places = _PAIRS[node.op]
    instead = f"; the places are x.{places}(dim)" if places else ""
    return f"x.{values}(dim) gives the values alone{instead}"


def refuse_pair(node: Node, caller: Optional[FrameType]) -> None:
    """Raises where `v, i = x.max(dim)` is about to take two rows of values for a pair."""
    advice = remedy(node)
    if not advice or caller is None:
        return
    code, place = caller.f_code.co_code, caller.f_lasti
    if code[place] == _UNPACK and code[place + 1] == 2:
        raise InvalidArgument(
            f"a pair taken from a tensor of shape {node.shape}: {advice}. If its two rows are "
            "wanted, unbind() it")
