"""What is measured, on both sides: names, sizes and the work in them, as plain data."""

from typing import NamedTuple


class Matmul(NamedTuple):
    """A product of two square matrices; "tf32" is float32 with the shorter products allowed."""

    size: int
    dtype: str

    @property
    def name(self) -> str:
        """As the table has it."""
        return f"matmul {self.size} {self.dtype}"

    @property
    def flops(self) -> float:
        """Of one product."""
        return 2.0 * self.size**3


class Stream(NamedTuple):
    """A kernel bound by memory: it reads and writes `passes` times as many bytes as one of its tensors has."""

    kind: str
    megabytes: int  # of all inputs together
    passes: float  # of that

    @property
    def name(self) -> str:
        """As the table has it."""
        return f"{self.kind}, {self.megabytes} MiB"

    @property
    def moved_bytes(self) -> float:
        """Of one run, at least."""
        return self.passes * self.megabytes * 2**20


COLUMNS = 1024  # of what softmax and layer norm work on
EMBEDDING = (50257, 768, 16384)  # rows, width, positions


def matmuls(quick: bool) -> list[Matmul]:
    """Of each dtype two sizes."""
    return [Matmul(size, dtype) for dtype in ("fp32", "tf32", "fp16", "bf16") for size in ((64,) if quick else (4096, 8192))]


def streams(quick: bool) -> list[Stream]:
    """`passes` counts what cannot be avoided. Batch norm reads its input a second time, once it knows its moments; Adam
    reads four tensors of equal size and writes three."""
    size = 1 if quick else 1024
    return [Stream("scale", size, 2), Stream("softmax", size, 2), Stream("layer norm", size, 2),
            Stream("batch norm", size, 3), Stream("Adam", size, 7 / 4)]


def embedding(quick: bool) -> tuple[int, int, int]:
    """Rows, width and positions of the embedding whose gradient is made."""
    return (500, 32, 64) if quick else EMBEDDING
