"""All rows, and the ops that have none, with the reason."""

from op_table import elementwise, movements, neural, reductions

ROWS = {**elementwise.ROWS, **movements.ROWS, **reductions.ROWS, **neural.ROWS}

# Ops that other tests cover, since no operand's dtype or value decides what they compute.
ELSEWHERE = {
    "const": "a source: every program has one, and test_generated compares all dtypes",
    "input": "a source: every case here has one",
    "random_normal": "its bits are random_bits'; other tests look at its distribution",
    "gradient": "a request: every differentiable case here makes one",
}
