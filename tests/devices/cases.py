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
SIZES = ("gpu", "processor", "quick")  # quick: only whether it works


def size_of(arguments: list[str]) -> str:
    """That a command line asks for: --processor, --quick, else a GPU's."""
    return next((size for size in SIZES if f"--{size}" in arguments), "gpu")


def matmuls(size: str) -> list[Matmul]:
    """Of each dtype two sizes; processors multiply short floats only by way of long ones."""
    dtypes = ("fp32",) if size == "processor" else ("fp32", "tf32", "fp16", "bf16")
    sides = {"gpu": (4096, 8192), "processor": (1024, 2048), "quick": (64,)}[size]
    return [Matmul(side, dtype) for dtype in dtypes for side in sides]


def streams(size: str) -> list[Stream]:
    """`passes` counts what cannot be avoided. Batch norm reads its input a second time, once it knows its moments; Adam
    reads four tensors of equal size and writes three."""
    megabytes = {"gpu": 1024, "processor": 64, "quick": 1}[size]
    return [Stream("scale", megabytes, 2), Stream("softmax", megabytes, 2), Stream("layer norm", megabytes, 2),
            Stream("batch norm", megabytes, 3), Stream("Adam", megabytes, 7 / 4)]


def embedding(size: str) -> tuple[int, int, int]:
    """Rows, width and positions of the embedding whose gradient is made."""
    return {"gpu": (50257, 768, 16384), "processor": (50257, 768, 4096), "quick": (500, 32, 64)}[size]
