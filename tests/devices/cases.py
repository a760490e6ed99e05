"""The cases measured on both sides: names, sizes and the work in them, as plain data."""

from typing import NamedTuple


class Matmul(NamedTuple):
    """A product of two square matrices; "tf32" is float32 with tf32 products allowed."""

    size: int
    dtype: str

    @property
    def name(self) -> str:
        """Returns the name in the table."""
        return f"matmul {self.size} {self.dtype}"

    @property
    def flops(self) -> float:
        """Returns the operations of one product."""
        return 2.0 * self.size**3


class Stream(NamedTuple):
    """A kernel bound by memory: it reads and writes `passes` times as many bytes as one of its tensors has."""

    kind: str
    megabytes: int  # of all inputs together
    passes: float  # of `megabytes`

    @property
    def name(self) -> str:
        """Returns the name in the table."""
        return f"{self.kind}, {self.megabytes} MiB"

    @property
    def moved_bytes(self) -> float:
        """Returns the least number of bytes that one run moves."""
        return self.passes * self.megabytes * 2**20


COLUMNS = 1024  # the row length of softmax and layer norm
SIZES = ("gpu", "processor", "quick")  # quick: only checks that it works


def size_of(arguments: list[str]) -> str:
    """Returns the size that a command line asks for: --processor, --quick, else a GPU's."""
    return next((size for size in SIZES if f"--{size}" in arguments), "gpu")


def matmuls(size: str) -> list[Matmul]:
    """Returns two sizes of each dtype; processors multiply short floats only by converting them to float32."""
    dtypes = ("fp32",) if size == "processor" else ("fp32", "tf32", "fp16", "bf16")
    sides = {"gpu": (4096, 8192), "processor": (1024, 2048), "quick": (64,)}[size]
    return [Matmul(side, dtype) for dtype in dtypes for side in sides]


def streams(size: str) -> list[Stream]:
    """Returns the cases; `passes` counts the unavoidable ones. Batch norm reads its input a second time, once it knows its
    moments; Adam reads four tensors of equal size and writes three."""
    megabytes = {"gpu": 1024, "processor": 64, "quick": 1}[size]
    return [Stream("scale", megabytes, 2), Stream("softmax", megabytes, 2), Stream("layer norm", megabytes, 2),
            Stream("batch norm", megabytes, 3), Stream("Adam", megabytes, 7 / 4)]


def embedding(size: str) -> tuple[int, int, int]:
    """Returns rows, width and positions of the embedding whose gradient is computed."""
    return {"gpu": (50257, 768, 16384), "processor": (50257, 768, 4096), "quick": (500, 32, 64)}[size]
