"""PyTorch's pairs of values and places, of which the values alone are given here."""

from kiln._node import Node

# By the op of the values: the method that gives values, and the one that gives places.
_PAIRS = {
    "max": ("max", "argmax"), "min": ("min", "argmin"), "sort": ("sort", "argsort"),
    "cumulative_max": ("cummax", ""), "cumulative_min": ("cummin", ""),
}  # fmt: skip


def remedy(node: Node) -> str:
    """What to write instead of `.values` and `.indices`; empty where nobody expects a pair."""
    if node.op not in _PAIRS or not node.shape:
        return ""
    values, places = _PAIRS[node.op]
    instead = f"; the places are x.{places}(dim)" if places else ""
    return f"x.{values}(dim) gives the values alone{instead}"
