"""Long programs on several devices come in pieces, between which others' have their turn."""

import re
import threading

import numpy as np
import pytest

import kiln
from kiln._session import connection as _connection
from kilnd_process import Kilnd

DEVICES = ["cpu:0", "cpu:1"]


@pytest.fixture(scope="module")
def daemon():
    """One that cuts what takes longer than a millisecond, and writes down what it runs."""
    with Kilnd(threads=2, flags=["--cpu_devices=2", "--slice_ms=1", "--log_level=debug"]) as daemon:
        yield daemon


@pytest.fixture
def connection(daemon):
    connection = kiln.connect(daemon.address)
    yield connection
    _connection._default = None
    connection.close()


@pytest.fixture(scope="module")
def on_one(daemon, example):
    connection = kiln.connect(daemon.address)
    losses, _, _ = example.train("gpt", "one", DEVICES[:1], 20)
    _connection._default = None
    connection.close()
    return losses


def most_pieces(daemon, since):
    """Of a gang's run that the log tells of behind its first `since` bytes."""
    log = daemon.log.read_text(errors="replace")[since:]
    return max(map(int, re.findall(r"event=run_started .*devices=2 pieces=(\d+)", log)), default=0)


@pytest.mark.parametrize("mode", ["data", "tensor", "zero3", "pipeline"])
def test_training_in_pieces_is_that_of_one_device(daemon, connection, example, on_one, mode):
    since = len(daemon.log.read_text(errors="replace"))
    losses, _, _ = example.train("gpt", mode, DEVICES, 20)
    np.testing.assert_allclose(losses, on_one, rtol=1e-4)
    assert most_pieces(daemon, since) > 1


@kiln.jit
def long_step(x, w):
    for _ in range(300):
        x = kiln.tanh(x @ w)
    return x.sum()


def test_a_short_request_comes_in_between(daemon, connection):
    """Of a run of a second or so."""
    one = kiln.tensor([1.0]).realize()
    assert (one + 1).item() == 2
    kiln.connect(daemon.address)  # whose session has the long run
    mesh = kiln.Mesh("data", DEVICES)
    x = kiln.shard(kiln.tensor(np.ones((1024, 512), np.float32)), mesh, "data")
    w = kiln.shard(kiln.tensor(np.eye(512, dtype=np.float32)), mesh, None)
    expected = long_step(x, w).item()
    total = long_step(x, w).realize()
    ended = threading.Event()

    def wait():
        assert total.item() == expected
        ended.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    answers = 0
    while waiting.is_alive():
        assert (one + 1).item() == 2
        answers += not ended.is_set()
    waiting.join()
    assert ended.is_set()
    kiln.default_connection().close()
    assert answers >= 3
