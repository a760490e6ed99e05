"""Tables of vectors whose rows are combined in bags."""

from typing import Optional

from kiln import functional
from kiln._basics.errors import InvalidArgument
from kiln.functional.bags import MODES
from kiln.nn.embedding import Embedding
from kiln.nn.parameter import Parameter
from kiln.tensor import Tensor


class EmbeddingBag(Embedding):
    """The sum, mean or maximum of the table's rows in each bag of integers.

    Rows at `padding_idx`, which are initialized to zeros, are ignored. Raises InvalidArgument for
    another mode.

    >>> kiln.nn.EmbeddingBag(10, 3)(kiln.tensor([[1, 2], [4, 9]])).shape
    (2, 3)
    >>> kiln.nn.EmbeddingBag(10, 3)(kiln.tensor([1, 2, 4, 9]), kiln.tensor([0, 3])).shape
    (2, 3)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, mode: str = "mean",
                 include_last_offset: bool = False, padding_idx: Optional[int] = None) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx)
        if mode not in MODES:
            raise InvalidArgument(
                f'EmbeddingBag\'s mode is {mode!r}; it must be "sum", "mean" or "max"')
        self.mode = mode
        self.include_last_offset = include_last_offset

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True,
                        padding_idx: Optional[int] = None, mode: str = "mean") -> "EmbeddingBag":
        """Returns a table with these rows (num_embeddings, embedding_dim), not trained if `freeze`.

        >>> rows = kiln.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> kiln.nn.EmbeddingBag.from_pretrained(rows)(kiln.tensor([[0, 1]])).tolist()
        [[2.0, 3.0]]
        """
        rows, columns = embeddings.shape
        table = cls(rows, columns, mode, padding_idx=padding_idx)
        table.weight = Parameter(embeddings, not freeze)
        return table

    def forward(self, index: Tensor, offsets: Optional[Tensor] = None,
                per_sample_weights: Optional[Tensor] = None) -> Tensor:
        """Maps (bags, length), or a vector and offsets, to (bags, embedding_dim)."""
        return functional.embedding_bag(
            index, self.weight, offsets, mode=self.mode, per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset, padding_idx=self.padding_idx)

    def extra_repr(self) -> str:
        """Returns the sizes and the mode for repr()."""
        return f"{super().extra_repr()}, mode={self.mode!r}"
