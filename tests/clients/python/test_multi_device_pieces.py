"""Long programs on several devices run in pieces, and runs of other sessions come in between."""

import re

import numpy as np
import pytest

import kiln
from kiln._session import connection as _connection
from kilnd_process import Kilnd

DEVICES = ["cpu:0", "cpu:1"]
LONG_RUNS = 20


@pytest.fixture(scope="module")
def daemon():
    """A daemon that splits programs longer than a millisecond, and logs its runs."""
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


def highest_pieces(daemon, since):
    """Returns the most pieces of a run on two devices in the log after its first `since` bytes."""
    log = daemon.log.read_text(errors="replace")[since:]
    return max(map(int, re.findall(r"event=run_started .*devices=2 pieces=(\d+)", log)), default=0)


@pytest.mark.parametrize("mode", ["data", "tensor", "zero3", "pipeline"])
def test_training_in_pieces_is_that_of_one_device(daemon, connection, example, on_one, mode):
    since = len(daemon.log.read_text(errors="replace"))
    losses, _, _ = example.train("gpt", mode, DEVICES, 20)
    np.testing.assert_allclose(losses, on_one, rtol=1e-4)
    assert highest_pieces(daemon, since) > 1


@kiln.jit
def long_step(x, w):
    for _ in range(300):
        x = kiln.tanh(x @ w)
    return x.sum()


def told(log):
    """Returns, from the log, how many runs of one device began and ended within a run on two, and
    how many runs on two have ended.
    """
    begun, within, joint = {}, 0, 0
    for place, (event, run, more) in enumerate(re.findall(r"event=run_(started|ended) run=(\S+) (.*)\n", log)):
        if event == "started":
            begun[run] = place, "devices=2" in more
            continue
        since, is_joint = begun.pop(run, (0, True))
        joint += is_joint
        within += not is_joint and any(on_two and other < since for other, on_two in begun.values())
    return within, joint


def test_short_requests_come_in_between(daemon, connection):
    """The other session runs only programs of about a second."""
    one = kiln.tensor([1.0]).realize()
    assert (one + 1).item() == 2
    with kiln.connect(daemon.address) as other:
        mesh = kiln.Mesh("data", DEVICES)
        x = kiln.shard(kiln.tensor(np.ones((1024, 512), np.float32)), mesh, "data")
        w = kiln.shard(kiln.tensor(np.eye(512, dtype=np.float32)), mesh, None)
        expected = long_step(x, w).item()
        since = len(daemon.log.read_text(errors="replace"))
        totals = [long_step(x, w).realize() for _ in range(LONG_RUNS)]
        within = joint = 0
        while within < 3 and joint < LONG_RUNS:
            assert (one + 1).item() == 2
            within, joint = told(daemon.log.read_text(errors="replace")[since:])
        assert within >= 3
        assert totals[0].item() == expected
        other.cancel()
