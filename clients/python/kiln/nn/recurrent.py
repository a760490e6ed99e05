"""Recurrent layers, with PyTorch's parameters, order of gates and results.

A sequence is unrolled: each of its steps is part of the graph; equal kernels are compiled once.
"""

import math
from typing import Any, Dict, List, Optional, Tuple

from kiln import functional
from kiln._array_api.creation import zeros
from kiln._array_api.manipulation import cat
from kiln._basics.errors import InvalidArgument
from kiln._tensor.constructors import stack
from kiln.nn.module import Module
from kiln.nn.parameter import Parameter
from kiln.random import uniform
from kiln.tensor import Tensor

State = Tuple[Tensor, ...]


def _rnn_tanh(gates_x: Tensor, gates_h: Tensor, state: State) -> State:
    return ((gates_x + gates_h).tanh(),)


def _rnn_relu(gates_x: Tensor, gates_h: Tensor, state: State) -> State:
    return ((gates_x + gates_h).relu(),)


def _lstm(gates_x: Tensor, gates_h: Tensor, state: State) -> State:
    """Hochreiter and Schmidhuber, 1997, with forget gates; input, forget, cell, output."""
    inputs, forget, cell, output = (gates_x + gates_h).chunk(4, -1)
    memory = forget.sigmoid() * state[1] + inputs.sigmoid() * cell.tanh()
    return output.sigmoid() * memory.tanh(), memory


def _gru(gates_x: Tensor, gates_h: Tensor, state: State) -> State:
    """Cho et al., 2014; reset, update, new. The reset gate acts on the product, as in cuDNN."""
    reset_x, update_x, new_x = gates_x.chunk(3, -1)
    reset_h, update_h, new_h = gates_h.chunk(3, -1)
    update = (update_x + update_h).sigmoid()
    new = (new_x + (reset_x + reset_h).sigmoid() * new_h).tanh()
    return (new + update * (state[0] - new),)


_CELLS = {"tanh": (_rnn_tanh, 1, 1), "relu": (_rnn_relu, 1, 1), "lstm": (_lstm, 4, 2),
          "gru": (_gru, 3, 1)}  # the function, the number of gates, and of the tensors of its state


def _kind(nonlinearity: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        raise InvalidArgument(f'nonlinearity {nonlinearity!r}; it must be "tanh" or "relu"')
    return nonlinearity


def _weight(shape: Tuple[int, ...], hidden_size: int) -> Parameter:
    bound = 1 / math.sqrt(hidden_size) if hidden_size else 0.0
    return Parameter(uniform(shape, low=-bound, high=bound).contiguous())


class _Cell(Module):
    """One step of a recurrent layer."""

    def __init__(self, kind: str, input_size: int, hidden_size: int, bias: bool) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self._kind = kind
        rows = _CELLS[kind][1] * hidden_size
        self.weight_ih = _weight((rows, input_size), hidden_size)
        self.weight_hh = _weight((rows, hidden_size), hidden_size)
        self.bias_ih = _weight((rows,), hidden_size) if bias else None
        self.bias_hh = _weight((rows,), hidden_size) if bias else None

    def _next(self, x: Tensor, state: Optional[State]) -> State:
        compute, _, count = _CELLS[self._kind]
        if state is None:
            state = (zeros((*x.shape[:-1], self.hidden_size), dtype=x.dtype),) * count
        return compute(
            functional.linear(x, self.weight_ih, self.bias_ih),
            functional.linear(state[0], self.weight_hh, self.bias_hh), state)

    def extra_repr(self) -> str:
        """Returns the sizes for repr()."""
        return f"{self.input_size}, {self.hidden_size}, bias={self.bias_ih is not None}"


class RNNCell(_Cell):
    """tanh (or relu) of W_ih x + b_ih + W_hh h + b_hh.

    >>> kiln.nn.RNNCell(3, 5)(kiln.ones(2, 3)).shape
    (2, 5)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True,
                 nonlinearity: str = "tanh") -> None:
        super().__init__(_kind(nonlinearity), input_size, hidden_size, bias)

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        """Maps (N, input_size) or (input_size,), and the state, to the next state."""
        return self._next(input, None if hx is None else (hx,))[0]


class GRUCell(_Cell):
    """One step of a gated recurrent unit.

    >>> kiln.nn.GRUCell(3, 5)(kiln.ones(2, 3)).shape
    (2, 5)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__("gru", input_size, hidden_size, bias)

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        """Maps (N, input_size) or (input_size,), and the state, to the next state."""
        return self._next(input, None if hx is None else (hx,))[0]


class LSTMCell(_Cell):
    """One step of a long short-term memory.

    >>> h, c = kiln.nn.LSTMCell(3, 5)(kiln.ones(2, 3))
    >>> h.shape, c.shape
    ((2, 5), (2, 5))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__("lstm", input_size, hidden_size, bias)

    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> (
            Tuple[Tensor, Tensor]):
        """Maps (N, input_size) or (input_size,), and (h, c), to the next (h, c)."""
        state, memory = self._next(input, hx)
        return state, memory


class _Recurrent(Module):
    """Layers of one kind over a sequence, each in one or two directions."""

    def __init__(self, kind: str, input_size: int, hidden_size: int, num_layers: int, bias: bool,
                 batch_first: bool, dropout: float, bidirectional: bool, proj_size: int) -> None:
        super().__init__()
        if num_layers < 1 or not 0 <= proj_size < max(hidden_size, 1):
            raise InvalidArgument(
                f"{num_layers} layers with a projection to {proj_size} of {hidden_size}; there "
                "must be at least one layer, and proj_size must be smaller than the hidden size")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self.bias = bias
        self._kind = kind
        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                self._add_weights(layer, suffix)

    def _suffixes(self, layer: int) -> List[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: 2 if self.bidirectional else 1]

    def _add_weights(self, layer: int, suffix: str) -> None:
        out = self.proj_size or self.hidden_size
        within = self.input_size if layer == 0 else out * (2 if self.bidirectional else 1)
        rows = _CELLS[self._kind][1] * self.hidden_size
        shapes: Dict[str, Tuple[int, ...]] = {
            "weight_ih": (rows, within), "weight_hh": (rows, out)}
        if self.bias:
            shapes.update({"bias_ih": (rows,), "bias_hh": (rows,)})
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        for name, shape in shapes.items():
            setattr(self, name + suffix, _weight(shape, self.hidden_size))

    def _run(self, x: Tensor, state: Optional[State]) -> Tuple[Tensor, State]:
        """Returns the last layer's outputs, and the final state with tensors for all layers."""
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise InvalidArgument(
                f"{type(self).__name__} of a tensor of shape {x.shape}; it takes "
                f"{'(N, T' if self.batch_first else '(T, N'}, {self.input_size}), or without "
                f"batch (T, {self.input_size})")
        batched = x.ndim == 3
        if not batched:
            x = x.unsqueeze(1)
            state = state and tuple(part.unsqueeze(1) for part in state)
        elif self.batch_first:
            x = x.transpose(0, 1)
        first = self._first_state(x, state)
        last: List[State] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = functional.dropout(x, self.dropout, self.training)
            outputs = []
            for suffix in self._suffixes(layer):
                start = tuple(part[len(last)] for part in first)
                output, end = self._direction(x, start, suffix)
                outputs.append(output)
                last.append(end)
            x = cat(outputs, -1) if len(outputs) > 1 else outputs[0]
        ends = tuple(stack(list(parts)) for parts in zip(*last))
        if not batched:
            return x.squeeze(1), tuple(part.squeeze(1) for part in ends)
        return x.transpose(0, 1) if self.batch_first else x, ends

    def _first_state(self, x: Tensor, state: Optional[State]) -> State:
        count = self.num_layers * (2 if self.bidirectional else 1)
        out = self.proj_size or self.hidden_size
        shapes = [(count, x.shape[1], out), (count, x.shape[1], self.hidden_size)]
        shapes = shapes[: _CELLS[self._kind][2]]
        if state is None:
            return tuple(zeros(shape, dtype=x.dtype) for shape in shapes)
        for part, shape in zip(state, shapes):
            if part.shape != shape:
                raise InvalidArgument(
                    f"{type(self).__name__} with a state of shape {part.shape}; it must have "
                    f"shape {shape}")
        return state

    def _direction(self, x: Tensor, state: State, suffix: str) -> Tuple[Tensor, State]:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        weights: Dict[str, Any] = {name: getattr(self, name + suffix, None) for name in names}
        compute = _CELLS[self._kind][0]
        # All steps' inputs at once: one large product instead of many small ones.
        gates = functional.linear(x, weights["weight_ih"], weights["bias_ih"])
        outputs = []
        backwards = suffix.endswith("reverse")
        for step in reversed(range(x.shape[0])) if backwards else range(x.shape[0]):
            state = compute(
                gates[step], functional.linear(state[0], weights["weight_hh"], weights["bias_hh"]),
                state)
            if weights["weight_hr"] is not None:
                state = (functional.linear(state[0], weights["weight_hr"]), *state[1:])
            outputs.append(state[0])
        if not outputs:
            # A sequence without steps has outputs without elements, of the right shape.
            return gates[:, :, : state[0].shape[-1]], state
        return stack(outputs[::-1] if backwards else outputs), state

    def extra_repr(self) -> str:
        """Returns the sizes for repr()."""
        return (f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, "
                f"batch_first={self.batch_first}, bidirectional={self.bidirectional}")


class RNN(_Recurrent):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), in one or more layers (Elman, 1990).

    >>> output, state = kiln.nn.RNN(3, 5)(kiln.ones(7, 2, 3))
    >>> output.shape, state.shape
    ((7, 2, 5), (1, 2, 5))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1,
                 nonlinearity: str = "tanh", bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False) -> None:
        super().__init__(_kind(nonlinearity), input_size, hidden_size, num_layers, bias,
                         batch_first, dropout, bidirectional, 0)

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        """Maps (T, N, input_size) to outputs (T, N, directions * hidden_size) and the last state.

        With batch_first T and N are exchanged in input and outputs; without N both have two
        dimensions. The state is (layers * directions, N, hidden_size), zeros by default. Raises
        InvalidArgument for other shapes.
        """
        output, state = self._run(input, None if hx is None else (hx,))
        return output, state[0]


class GRU(_Recurrent):
    """Gated recurrent units, in one or more layers (Cho et al., 2014).

    >>> output, state = kiln.nn.GRU(3, 5)(kiln.ones(7, 2, 3))
    >>> output.shape, state.shape
    ((7, 2, 5), (1, 2, 5))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False) -> None:
        super().__init__("gru", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, 0)

    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        """See RNN.forward."""
        output, state = self._run(input, None if hx is None else (hx,))
        return output, state[0]


class LSTM(_Recurrent):
    """Long short-term memory, in one or more layers (Hochreiter and Schmidhuber, 1997).

    >>> lstm = kiln.nn.LSTM(8, 16, num_layers=2, batch_first=True)
    >>> output, (h, c) = lstm(kiln.zeros(4, 10, 8))
    >>> output.shape, h.shape, c.shape
    ((4, 10, 16), (2, 4, 16), (2, 4, 16))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 proj_size: int = 0) -> None:
        super().__init__("lstm", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, proj_size)

    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> (
            Tuple[Tensor, Any]):
        """See RNN.forward; the state is (h, c). With proj_size, h has that size."""
        return self._run(input, hx)
