"""torch.nn.utils.rnn: sequences of different lengths."""

from typing import Any, List, NamedTuple, Optional, Sequence

import numpy as np

from kiln.torch import _creation, _shaping
from kiln.torch._tensor import convert


class PackedSequence(NamedTuple):
    """Sequences without padding: the elements of step 0, then those of step 1, and so on."""

    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on an accelerator."""
        return bool(self.data.is_cuda)

    def to(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """Returns the sequences on a device or in a dtype."""
        return self._replace(data=self.data.to(*args, **kwargs))


def invert_permutation(permutation: Any) -> Any:
    """Returns the permutation that undoes another one."""
    return None if permutation is None else convert(permutation).argsort()


def pad_sequence(sequences: Sequence[Any], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Any:
    """Stacks sequences, filled up to the longest one."""
    rows = [convert(sequence) for sequence in sequences]
    longest = max(row.shape[0] for row in rows)
    filled: List[Any] = []
    for row in rows:
        missing = longest - row.shape[0]
        if missing:
            more = _creation.full((missing, *row.shape[1:]), padding_value, dtype=row.dtype)
            row = _shaping.cat([row, more] if padding_side == "right" else [more, row])
        filled.append(row)
    return _shaping.stack(filled, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> List[Any]:
    """Returns the sequences of a padded tensor."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [rows[i, :int(length)] for i, length in enumerate(convert(lengths).tolist())]


def pack_padded_sequence(input: Any, lengths: Any, batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
    """Returns the elements of padded sequences without their padding."""
    sizes = np.asarray(convert(lengths).numpy()).astype(int)
    rows = input if batch_first else input.transpose(0, 1)
    order: Optional[Any] = None
    if enforce_sorted:
        if (sizes[1:] > sizes[:-1]).any():
            raise RuntimeError("`lengths` array must be sorted in decreasing order when "
                               "`enforce_sorted` is True")
    else:
        order = np.argsort(-sizes, kind="stable")
        sizes = sizes[order]
    counts = np.array([(sizes > step).sum() for step in range(sizes.max())], np.int64)
    places = np.concatenate([np.arange(count) for count in counts])
    steps = np.repeat(np.arange(len(counts)), counts)
    back = None if order is None else convert(np.argsort(order))
    batch = places if order is None else order[places]
    return PackedSequence(rows[convert(batch), convert(steps)], convert(counts),
                          None if order is None else convert(order), back)


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False,
                        padding_value: float = 0.0, total_length: Optional[int] = None) -> Any:
    """Returns padded sequences and their lengths."""
    counts = sequence.batch_sizes.numpy()
    batch, longest = int(counts[0]), max(len(counts), total_length or 0)
    lengths = np.array([(counts > row).sum() for row in range(batch)], np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    place = np.zeros((batch, longest), np.int64)
    inside = np.zeros((batch, longest), bool)
    for step, (start, count) in enumerate(zip(starts, counts)):
        place[:count, step] = start + np.arange(count)
        inside[:count, step] = True
    if sequence.unsorted_indices is not None:
        back = sequence.unsorted_indices.numpy()
        place, inside, lengths = place[back], inside[back], lengths[back]
    rows = sequence.data[convert(place)]
    mask = convert(inside.reshape(batch, longest, *[1] * (rows.ndim - 2)))
    rows = rows.where(mask, padding_value)
    return rows if batch_first else rows.transpose(0, 1), convert(lengths)


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences."""
    lengths = [len(sequence) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences, True), lengths, True, enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> List[Any]:
    """Returns the sequences of a packed one."""
    padded, lengths = pad_packed_sequence(packed_sequences, True)
    return unpad_sequence(padded, lengths, True)
