"""What was sent ahead is cancelled by Connection.cancel() and by Ctrl-C, and no state is torn."""

import signal
import threading

import numpy as np
import pytest

import kiln

from kilnd_process import Kilnd

STEPS = 300


@kiln.jit
def step(count, x):
    count.assign(count + 1)
    for _ in range(4):
        x = (x @ x) * 1e-3
    return x.sum()


@pytest.fixture
def connection():
    """To a daemon that takes seconds for all the steps, however many cores there are."""
    with Kilnd(threads=2) as kilnd, kiln.connect(kilnd.address) as connection:
        yield connection


@pytest.fixture
def interrupt():
    """Ctrl-C while this thread waits."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.main_thread().ident
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    yield timer.start
    timer.join()
    signal.signal(signal.SIGINT, before)


def begin():
    """A counter, what a step takes, and steps' losses: many seconds' worth."""
    count, x = kiln.tensor(0.0), kiln.tensor(np.eye(1024, dtype=np.float32))
    step(count, x).item()
    return count, x, [step(count, x) for _ in range(STEPS)]


def went_on(losses):
    """How many steps have a loss: the first ones, or else this raises."""
    done = 0
    for i, loss in enumerate(losses):
        try:
            loss.item()
        except kiln.Cancelled as error:
            assert "for its results, run it again" in str(error)
            assert error.reason == "CANCELLED"
            continue
        assert done == i, "a step went on after a cancelled one"
        done += 1
    return done


def test_cancel_leaves_the_state_of_the_last_step_that_went_on(connection):
    count, x, losses = begin()
    connection.cancel()
    after = step(count, x)
    done = went_on(losses)
    assert done < STEPS
    after.item()
    assert count.item() == 1 + done + 1
    connection.synchronize()


def test_an_interrupt_cancels_traced_steps_even_if_their_losses_are_held(connection, interrupt):
    count, x, losses = begin()
    with pytest.raises(KeyboardInterrupt):
        interrupt()
        losses[-1].item()
    done = went_on(losses)
    assert done < STEPS
    assert count.item() == 1 + done


def test_an_interrupt_cancels_no_result_that_is_held(connection, interrupt):
    count, x = kiln.tensor(0.0), kiln.tensor(np.eye(1024, dtype=np.float32))
    step(count, x).item()
    before = [step(count, x) for _ in range(30)]
    kept = (x + 1).realize()
    behind = [step(count, x) for _ in range(STEPS)]
    with pytest.raises(KeyboardInterrupt):
        interrupt()
        connection.synchronize()
    assert kept.numpy()[0, 0] == 2
    assert went_on(before) == len(before)
    done = went_on(behind)
    assert done < STEPS
    assert count.item() == 1 + len(before) + done
