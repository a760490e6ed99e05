"""Training steps outside kiln.jit, whose batches are slices that begin at another index each time, next to the same steps in
kiln.jit.

Prints a JSON object: for each network the seconds of the steps of both kinds, alternating, from the fourth of each on. For
"small", also those of (x + 1).sum().item(), alternating with round trips to a bare gRPC server. The daemon is the one at
$KILN_ADDRESS. The arguments are the number of steps and the server's address.
"""

import json
import queue
import sys
import threading
import time

import grpc
import numpy

import kiln
from kiln import nn
from kiln._proto.kiln.v1 import session_pb2
from kiln._session.rpc import Stub

WORDS, BATCH, LENGTH, WIDTH = 2000, 20, 20, 128
FIRST = 3  # steps that may compile


class Lstm(nn.Module):
    """A word-level LSTM, whose state is carried from one part of the text to the next."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, 2)
        self.output = nn.Linear(WIDTH, WORDS)
        self.initial = (kiln.zeros(2, BATCH, WIDTH).realize(), kiln.zeros(2, BATCH, WIDTH).realize())

    def forward(self, x, state):
        """Returns logits by position and word, and the state."""
        hidden, state = self.lstm(self.embedding(x), state)
        return self.output(hidden.reshape(-1, WIDTH)), [part.detach() for part in state]


class Transformer(nn.Module):
    """Two layers with causal attention."""

    initial = ()

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.position = nn.Parameter(kiln.randn(LENGTH, 1, WIDTH) * 0.1)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, 0.0), 2)
        self.output = nn.Linear(WIDTH, WORDS)

    def forward(self, x, state):
        """Returns logits by position and word, and no state."""
        mask = kiln.full((LENGTH, LENGTH), float("-inf")).triu(1)
        hidden = self.encoder(self.embedding(x) + self.position, mask)
        return self.output(hidden.reshape(-1, WIDTH)), state


def trainer(model, traced: bool):
    """Returns a function that does one training step on the n-th part of a text and reads the loss."""
    optimizer = kiln.optim.Adam(model.parameters(), lr=1e-3)
    text = kiln.tensor(numpy.random.default_rng(0).integers(0, WORDS, (100 * LENGTH + 1, BATCH))).realize()
    state = list(model.initial)

    def step(x, y, *state):
        optimizer.zero_grad()
        logits, state = model(x, state)
        loss = nn.functional.cross_entropy(logits, y.reshape(-1))
        loss.backward()
        optimizer.step()
        return (loss, *state)

    run = kiln.jit(step) if traced else step

    def train(part: int) -> float:
        begin = part % 100 * LENGTH
        loss, *state[:] = run(text[begin : begin + LENGTH], text[begin + 1 : begin + 1 + LENGTH], *state)
        return loss.item()

    return train


def seconds(function, part: int) -> float:
    """Returns how long one call takes."""
    start = time.perf_counter()
    function(part)
    return time.perf_counter() - start


class Echo:
    """Sends a message of a small step's size to a server and back: the cost of gRPC for Python alone."""

    def __init__(self, address: str):
        self.message = session_pb2.ConnectRequest(sequence=1, run=session_pb2.Run(program=3, inputs=[4], outputs=[5]))
        self.requests: queue.SimpleQueue = queue.SimpleQueue()
        self.answered = threading.Semaphore(0)
        channel = grpc.insecure_channel(address)
        self.answers = Stub(channel, "kiln.v1.SessionService").Connect(iter(self.requests.get, None))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for _ in self.answers:
            self.answered.release()

    def __call__(self, part: int) -> None:
        self.requests.put(self.message)
        self.answered.acquire()

    def close(self) -> None:
        """Ends the stream."""
        self.requests.put(None)


def main() -> None:
    steps = int(sys.argv[1])
    kiln.manual_seed(0)
    result = {}
    for name, network in (("word-level LSTM", Lstm), ("Transformer", Transformer)):
        kinds = [trainer(network(), traced) for traced in (False, True)]
        times = [[seconds(kind, part) for kind in kinds] for part in range(FIRST + steps)][FIRST:]
        result[name] = [list(column) for column in zip(*times)]
    x = kiln.ones(8).realize()
    echo = Echo(sys.argv[2])
    kinds = [lambda part: (x + 1).sum().item(), echo]
    times = [[seconds(kind, part) for kind in kinds] for part in range(FIRST + 20 * steps)][FIRST:]
    result["small"] = [list(column) for column in zip(*times)]
    echo.close()
    print(json.dumps(result))


main()
