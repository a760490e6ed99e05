"""Embedding, one-hot, and affine maps."""

from typing import Optional

from kiln._basics.errors import InvalidArgument
from kiln._graph.checks import Limit, check
from kiln._rules import whole
from kiln._tensor.selection import with_checks
from kiln.tensor import Tensor, apply


def linear(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """input (…, in) @ weight.T + bias, with weight (out, in) and bias (out).

    >>> F.linear(kiln.ones(2), kiln.ones(3, 2), kiln.ones(3)).tolist()
    [3.0, 3.0, 3.0]
    """
    return apply("linear", (input, weight) if bias is None else (input, weight, bias))


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor,
             bias: Optional[Tensor] = None) -> Tensor:
    """input1 (…, in1) weight (out, in1, in2) input2 (…, in2), plus bias (out).

    >>> F.bilinear(kiln.ones(1, 2), kiln.ones(1, 3), kiln.ones(4, 2, 3)).tolist()
    [[6.0, 6.0, 6.0, 6.0]]
    """
    out, first, second = weight.shape
    half = linear(input2, weight.reshape(out * first, second)).reshape(
        *input2.shape[:-1], out, first)
    result = (half @ input1.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias


def embedding(input: Tensor, weight: Tensor, padding_idx: Optional[int] = None) -> Tensor:
    """Returns the rows of weight (rows, columns) at the integers input, as (*input.shape, columns).

    The row at padding_idx gets no gradient. An index that is out of range or negative raises
    IndexError: at once if its value is known in this process, otherwise with the next value that is
    read.

    >>> F.embedding(kiln.tensor([1, 0]), kiln.tensor([[1.0], [2.0]])).tolist()
    [[2.0], [1.0]]
    """
    rows = with_checks(weight._op("gather", input, axis=0),
                       check(input._node, Limit("embedding", weight.shape[0], of="rows")))
    if padding_idx is None:
        return rows
    size = weight.shape[0]
    if not -size <= whole(padding_idx, "padding_idx") < size:
        raise InvalidArgument(
            f"padding_idx {padding_idx} of an embedding of {size} rows; it must be one of them")
    fixed = (input == padding_idx % size).unsqueeze(-1)
    return apply("where", (fixed, rows.detach(), rows))


def one_hot(tensor: Tensor, num_classes: int) -> Tensor:
    """Returns 1 at each integer's index, 0 elsewhere, along a new last dimension, as int64.

    Integers out of range raise IndexError as in embedding.

    >>> F.one_hot(kiln.tensor([2, 0]), 3).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    classes = whole(num_classes, "num_classes")
    return with_checks(tensor._op("one_hot", classes=classes),
                       check(tensor._node, Limit("one_hot", classes, what="class", of="classes")))
