"""Rows of the benchmark, the bounds on them, and how they are printed."""

import json
from typing import NamedTuple, Optional


class Row(NamedTuple):
    """A figure and its peer's, from the same run."""

    name: str
    value: float
    unit: str
    peer: str = ""
    peer_value: float = 0.0

    @property
    def ratio(self) -> Optional[float]:
        """value / peer_value; None without a peer."""
        return self.value / self.peer_value if self.peer_value else None


# Bounds of a ratio (or, with peer "", of the value itself): (beginning of the name, peer's beginning, minimum, maximum). The
# first match applies, so narrower names come first.
BOUNDS = [
    ("matmul 1x", "OpenBLAS", 1.0, None),
    ("matmul 8x", "OpenBLAS", 1.0, None),
    ("matmul 32x", "OpenBLAS", 1.0, None),
    ("matmul", "OpenBLAS", 0.85, None),
    ("chain", "copy", 0.8, None),
    ("softmax", "copy", 0.8, None),
    ("layer norm", "copy", 0.8, None),
    ("sort of", "PyTorch", None, 1.0),
    ("topk of", "PyTorch", None, 1.5),
    ("gather of", "PyTorch", None, 1.1),
    ("replay of 100", "", None, 2.0),
    ("one replay", "gRPC", None, 3.0),
    ("upload", "gRPC", 0.8, None),
    ("content-addressed upload", "gRPC", 0.9, None),
    ("training steps", "", 0.95, None),
    ("convnet step, cold compile", "", None, 3.0),
    ("convnet step, warm compile", "", None, 0.7),
    ("convnet step, kernels", "", None, 60),
    ("convnet step beside", "PyTorch", None, 1.0),
    ("convnet step", "PyTorch", None, 1.5),
    ("import kiln", "", None, 0.4),
    ("graph of 10,000 nodes", "", None, 0.3),
    ("word-level LSTM step, eager", "kiln.jit", None, 1.5),
    ("Transformer step, eager", "kiln.jit", None, 1.5),
    ("ResNet-50 step, 224 x 224, batch 8, distinct kernels", "", None, 250),
    ("ResNet-50 step, 224 x 224, batch 8, cold compile", "", None, 20.0),
    ("GPT-2 small step, context 256, cold compile", "", None, 15.0),
    ("GPT-2 small step, context 256, memory", "", None, 8.0),
    ("GPT-2 small step, context 256, first call beyond a later one, cold", "", None, 2.0),
    ("GPT-2 small step, context 256, first call beyond a later one, warm", "", None, 0.5),
    ("ResNet-18 step, 32 x 32, batch 64, first call beyond a later one, cold", "", None, 2.0),
    ("ResNet-18 step, 32 x 32, batch 64, first call beyond a later one, warm", "", None, 0.5),
    ("ResNet-", "PyTorch", None, 1.5),
]


def bound(row: Row) -> tuple[Optional[float], Optional[float]]:
    """Returns the bounds of a row: (minimum, maximum)."""
    for name, peer, bound_min, bound_max in BOUNDS:
        if row.name.startswith(name) and (row.peer.startswith(peer) if peer else True):
            return bound_min, bound_max
    return None, None


def holds(row: Row) -> Optional[bool]:
    """Returns whether the row is within its bounds; None if it has none."""
    bound_min, bound_max = bound(row)
    if bound_min is None and bound_max is None:
        return None
    measured = row.ratio if row.ratio is not None else row.value
    return (bound_min is None or measured >= bound_min) and (bound_max is None or measured <= bound_max)


def asked(row: Row) -> str:
    """Returns the bound as text."""
    bound_min, bound_max = bound(row)
    times = " x" if row.ratio is not None else ""
    if bound_min is not None:
        return f">= {bound_min:g}{times}"
    return f"<= {bound_max:g}{times}" if bound_max is not None else ""


def line(row: Row) -> str:
    """Returns a row of the table."""
    mark = {True: "ok", False: "MISS", None: ""}[holds(row)]
    peer = f"{row.peer_value:>10.4g}  {row.peer}" if row.peer else ""
    ratio = f"{row.ratio:.2f} x" if row.ratio is not None else ""
    return f"{row.name:<52} {row.value:>10.4g} {row.unit:<11} {ratio:>8}  {asked(row):<10} {mark:<4} {peer}".rstrip()


HEADER = f"{'what':<52} {'value':>10} {'unit':<11} {'ratio':>8}  {'asked':<10} {'':<4} {'peer':>10}"


def write_json(rows: list[Row], path: str) -> None:
    """Writes all rows as a list of objects."""
    with open(path, "w") as file:
        json.dump([dict(row._asdict(), ratio=row.ratio) for row in rows], file, indent=2)
        file.write("\n")
