"""Tables of vectors."""

from typing import Optional

from kiln import functional
from kiln._array_api.creation import arange
from kiln._basics.errors import InvalidArgument
from kiln.nn.module import Module
from kiln.nn.parameter import Parameter
from kiln.random import randn
from kiln.tensor import Tensor


class Embedding(Module):
    """A table of vectors, read at integers; an integer out of range raises IndexError.

    The row `padding_idx` is initialized to zeros and gets no gradient; it must be one of the rows,
    or InvalidArgument is raised.

    >>> kiln.nn.Embedding(10, 3)(kiln.tensor([[1, 2], [4, 9]])).shape
    (2, 2, 3)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int,
                 padding_idx: Optional[int] = None) -> None:
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise InvalidArgument(
                f"a padding_idx of {padding_idx} in a table of {num_embeddings} rows")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        values = randn(num_embeddings, embedding_dim)
        if self.padding_idx is not None:
            row = arange(num_embeddings).reshape(-1, 1) == self.padding_idx
            values = values.masked_fill(row, 0.0)
        self.weight = Parameter(values.contiguous())

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True,
                        padding_idx: Optional[int] = None) -> "Embedding":
        """Returns a table with these rows (num_embeddings, embedding_dim), not trained if `freeze`.

        >>> layer = kiln.nn.Embedding.from_pretrained(kiln.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> layer(kiln.tensor([1])).tolist()
        [[3.0, 4.0]]
        """
        rows, columns = embeddings.shape
        table = cls(rows, columns, padding_idx)
        table.weight = Parameter(embeddings, not freeze)
        return table

    def forward(self, index: Tensor) -> Tensor:
        """Maps any shape to the same shape with a last dimension of embedding_dim."""
        return functional.embedding(index, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """Returns the sizes for repr()."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
