"""Recurrent layers over packed sequences: a sequence's state stays as it is after its last step."""

from typing import Any, List, Tuple

import numpy as np

from kiln.nn import recurrent as _kiln
from kiln.torch import _creation, _shaping
from kiln.torch._tensor import convert
from kiln.torch.nn import functional as F
from kiln.torch.nn._layers import LAYERS
from kiln.torch.nn.utils import rnn


def _run(layer: Any, packed: Any, state: Any) -> Tuple[Any, Any]:
    """Returns the packed outputs of the last layer, and the final state."""
    x, lengths = rnn.pad_packed_sequence(packed)
    compute, _, parts = _kiln._CELLS[layer._kind]
    directions = 2 if layer.bidirectional else 1
    count = layer.num_layers * directions
    sizes = (layer.proj_size or layer.hidden_size, layer.hidden_size)[:parts]
    if state is None:
        given = tuple(_creation.zeros(count, x.shape[1], size, dtype=x.dtype) for size in sizes)
    else:
        given = tuple(state) if isinstance(state, (tuple, list)) else (state,)
    inside = convert(np.arange(x.shape[0])[:, None] < lengths.numpy()).unsqueeze(-1)
    ends: List[Any] = []
    for number in range(layer.num_layers):
        if number and layer.dropout:
            x = F.dropout(x, layer.dropout, layer.training)
        outputs = []
        for suffix in layer._suffixes(number):
            first = tuple(part[len(ends)] for part in given)
            output, end = _direction(layer, compute, x, first, suffix, inside)
            outputs.append(output)
            ends.append(end)
        x = _shaping.cat(outputs, -1)
    result = rnn.pack_padded_sequence(x, lengths, enforce_sorted=packed.sorted_indices is None)
    final = tuple(_shaping.stack(list(part)) for part in zip(*ends))
    return result, final if parts > 1 else final[0]


def _direction(layer: Any, compute: Any, x: Any, state: Any, suffix: str, inside: Any) -> Any:
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
    weights: List[Any] = [getattr(layer, name + suffix, None) for name in names]
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    gates = F.linear(x, w_ih, b_ih)
    outputs: List[Any] = []
    steps = range(x.shape[0])
    for step in reversed(steps) if suffix.endswith("reverse") else steps:
        new = compute(gates[step], F.linear(state[0], w_hh, b_hh), state)
        if w_hr is not None:
            new = (F.linear(new[0], w_hr), *new[1:])
        state = tuple(_shaping.where(inside[step], now, before)
                      for now, before in zip(new, state))
        outputs.append(_shaping.where(inside[step], new[0], 0.0))
    return _shaping.stack(outputs[::-1] if suffix.endswith("reverse") else outputs), state


def _taking_packed(name: str) -> Any:
    plain = getattr(_kiln, name).forward

    def forward(self: Any, input: Any, hx: Any = None) -> Any:
        if isinstance(input, rnn.PackedSequence):
            return _run(self, input, hx)
        return plain(self, input, hx)

    forward.__doc__ = "Maps a sequence, or packed sequences, to outputs and the final state."
    return forward


for _name in ("RNN", "LSTM", "GRU"):
    LAYERS[_name].forward = _taking_packed(_name)
