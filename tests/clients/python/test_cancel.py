"""Connection.cancel() and Ctrl-C cancel operations sent ahead, and state stays consistent."""

import signal
import sys
import threading

import numpy as np
import pytest

import kiln
from kiln._session.waiter import Waiter

from eventually import eventually
from kilnd_process import Kilnd

STEPS = 300


@kiln.jit
def step(count, x):
    count.assign(count + 1)
    for _ in range(4):
        x = (x @ x) * 1e-3
    return x.sum()


@pytest.fixture
def kilnd():
    """A daemon that takes seconds for all the steps, however many cores there are."""
    with Kilnd(threads=2) as kilnd:
        yield kilnd


@pytest.fixture
def connection(kilnd):
    with kiln.connect(kilnd.address) as connection:
        yield connection


def interrupt_what_waits(connection, kind, wait):
    """Presses Ctrl-C while wait() waits for the answer of an operation of this kind."""
    main = threading.main_thread().ident
    stream = connection.stream

    def waits():
        with stream._lock:
            is_sent = any(pending.request.HasField(kind) for pending in stream._pending.values())
        return is_sent and sys._current_frames()[main].f_code is Waiter.wait.__code__

    def interrupt():
        if eventually(waits):
            signal.pthread_kill(main, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupter = threading.Thread(target=interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupter.start()
            wait()
    finally:
        interrupter.join()
        signal.signal(signal.SIGINT, before)


def begin():
    """Returns a counter, the arguments of a step, and steps' losses: many seconds of work, of which
    a few steps have ended.
    """
    count, x = kiln.tensor(0.0), kiln.tensor(np.eye(1024, dtype=np.float32))
    step(count, x).item()
    losses = [step(count, x) for _ in range(STEPS)]
    losses[2].item()
    return count, x, losses


def went_on(losses):
    """Returns how many steps have a loss; raises unless they are the first ones."""
    done = 0
    for i, loss in enumerate(losses):
        try:
            loss.item()
        except kiln.Cancelled as error:
            assert "run it again for its results" in str(error)
            assert error.reason == "CANCELLED"
            continue
        assert done == i, "a step went on after a cancelled one"
        done += 1
    return done


# Operations sent while the daemon is stopped have arrived before it continues with its steps.


def test_cancel_leaves_the_state_of_the_last_step_that_went_on(kilnd, connection):
    count, x, losses = begin()
    with kilnd.standing_still():
        connection.cancel()
        after = step(count, x)
    done = went_on(losses)
    assert 3 <= done < STEPS
    after.item()
    assert count.item() == 1 + done + 1
    connection.synchronize()


def test_an_interrupt_cancels_traced_steps_even_if_their_losses_are_held(kilnd, connection):
    count, x, losses = begin()
    with kilnd.standing_still():
        interrupt_what_waits(connection, "read", lambda: losses[-1].item())
    done = went_on(losses)
    assert 3 <= done < STEPS
    assert count.item() == 1 + done


def test_an_interrupt_cancels_no_result_that_is_held(kilnd, connection):
    count, x = kiln.tensor(0.0), kiln.tensor(np.eye(1024, dtype=np.float32))
    step(count, x).item()
    before = [step(count, x) for _ in range(30)]
    kept = (x + 1).realize()
    behind = [step(count, x) for _ in range(STEPS)]
    with kilnd.standing_still():
        interrupt_what_waits(connection, "barrier", connection.synchronize)
    assert kept.numpy()[0, 0] == 2
    assert went_on(before) == len(before)
    done = went_on(behind)
    assert done < STEPS
    assert count.item() == 1 + len(before) + done
