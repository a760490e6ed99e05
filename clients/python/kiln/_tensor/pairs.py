"""Who expects PyTorch's pair of values and places where there are values alone."""

from kiln._graph.node import Node

# By the op of the values: the method that gives both, and the one that gives places.
_PAIRS = {"max": ("max", "argmax"), "min": ("min", "argmin"), "sort": ("sort", "argsort")}


def remedy(node: Node) -> str:
    """What to write instead of `.values` and `.indices`; empty where nobody expects a pair."""
    if node.op not in _PAIRS or not node.shape:
        return ""
    both, places = _PAIRS[node.op]
    return f"these are the values alone; x.{both}(dim) gives both, x.{places}(dim) the places"
