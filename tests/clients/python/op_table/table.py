"""All rows, and the ops without a row, with the reason."""

from typing import NamedTuple

from op_table import (
    activations,
    arrays,
    chance,
    distances,
    elementwise,
    functions,
    layers,
    losses,
    movements,
    neural,
    reductions,
    scatters,
    windows,
)

ROWS = {
    **elementwise.ROWS, **functions.ROWS, **movements.ROWS, **scatters.ROWS, **reductions.ROWS,
    **arrays.ROWS, **neural.ROWS, **activations.ROWS, **layers.ROWS, **windows.ROWS,
    **losses.ROWS, **distances.ROWS, **chance.ROWS,
}  # fmt: skip


class Elsewhere(NamedTuple):
    """The reason why an op has no row, and the test outside the table that covers it."""

    test: str
    reason: str


ELSEWHERE = {
    "input": Elsewhere("test_input", "it computes nothing: what is read back is what was sent"),
    "gradient": Elsewhere("test_op", "a request: every differentiable case makes one"),
}
