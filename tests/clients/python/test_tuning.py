"""kiln.tune, and jitted functions that are tuned when they are first compiled."""

import io
import os
import signal
import threading

import numpy as np
import pytest

import kiln
from kiln._session import connection as _connection
from kiln._session import progress, tuning
from kiln._session.waiter import Waiter
from eventually import eventually
from kilnd_process import NO_PROBES, Kilnd

STATES_OF_A_SEARCH = {"faster", "kept"}


@pytest.fixture
def daemon():
    """A kilnd of its own: what is found must not change the numbers of other tests."""
    with Kilnd(threads=1, config=NO_PROBES) as running:
        yield running


@pytest.fixture
def opened(daemon):
    connection = kiln.connect(daemon.address)
    yield connection
    _connection._default = None
    connection.close()


def network(x, w):
    y = x @ w
    return kiln.softmax(y, -1), (y * y).sum()


def arguments():
    return kiln.Tensor(np.arange(48, dtype=np.float32).reshape(6, 8) / 48), kiln.ones(8, 32)


def tunings(daemon) -> int:
    return daemon.log.read_text().count("event=tune_started")


def kernels_tuned(daemon) -> int:
    return daemon.log.read_text().count("event=kernel_tuned")


def test_tune_searches_the_kernels_of_a_function(daemon, opened):
    function = kiln.jit(network)
    with pytest.raises(ValueError, match="network has no program to tune yet; call it first"):
        kiln.tune(function)
    before = [result.numpy() for result in function(*arguments())]
    (info,) = function.programs()
    found = kiln.tune(function, seconds=600, width=1)
    assert {kernel.state for kernel in found} <= STATES_OF_A_SEARCH
    assert sum(kernel.share for kernel in found) == pytest.approx(1)
    assert all(kernel.seconds_before >= kernel.seconds_now > 0 for kernel in found)
    for old, new in zip(before, function(*arguments())):
        np.testing.assert_allclose(new.numpy(), old, rtol=1e-5)
    # Other values may share kernels now.
    (after,) = function.programs()
    assert len(found) == after.distinct_kernels
    # By its program, and by the beginning of its digest, which show what was stored.
    assert {kernel.state for kernel in kiln.tune(info, width=1)} == {"searched"}
    assert {kernel.state for kernel in kiln.tune(info.digest[:12], width=1)} == {"searched"}
    assert {kernel.state for kernel in kiln.tune(function, width=1)} == {"searched"}


def test_a_function_with_a_beam_is_tuned_when_it_is_compiled(daemon, opened):
    @kiln.jit(beam=1)
    def tuned(x, w):
        return network(x, w)

    results = [result.numpy() for result in tuned(*arguments())]
    assert tunings(daemon) == 1
    searched = kernels_tuned(daemon)
    assert searched > 0
    tuned(*arguments())
    assert tunings(daemon) == 1
    for result, wanted in zip(results, network(*arguments())):
        np.testing.assert_allclose(result, wanted.numpy(), rtol=1e-5)
    # Another session finds everything stored.
    _connection._default = None
    other = kiln.connect(daemon.address)
    again = kiln.jit(tuned.__wrapped__, beam=1)
    again(*arguments())[1].numpy()
    assert tunings(daemon) == 2
    assert kernels_tuned(daemon) == searched
    other.close()
    _connection._default = opened


def test_the_environment_is_the_beam_of_functions_without_one(daemon, opened, monkeypatch):
    monkeypatch.setenv("KILN_BEAM", "1")
    kiln.jit(network, beam=0)(*arguments())[1].numpy()
    assert tunings(daemon) == 0
    kiln.jit(network)(*arguments())[1].numpy()
    assert tunings(daemon) == 1
    monkeypatch.setenv("KILN_BEAM", "0")
    kiln.jit(lambda x: x + 1)(kiln.ones(3)).numpy()
    assert tunings(daemon) == 1
    monkeypatch.setenv("KILN_BEAM", "wide")
    with pytest.raises(ValueError, match="KILN_BEAM is 'wide'; it is a number of 0 to 64"):
        kiln.jit(lambda x: x + 2)(kiln.ones(3))


def test_a_function_runs_although_it_cannot_be_tuned():
    with Kilnd(config=NO_PROBES, devices="null") as daemon:
        connection = kiln.connect(daemon.address)
        function = kiln.jit(lambda x: x + 1, beam=1)
        with pytest.warns(RuntimeWarning, match="the program was not tuned: .*computes nothing"):
            assert function(kiln.ones(2)).tolist() == [0, 0]
        with pytest.raises(kiln.FailedPrecondition):
            kiln.tune(function)
        _connection._default = None
        connection.close()


@pytest.fixture
def interruptible():
    """Interrupts raise, also where a shell started the tests in its background, with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_tuning_is_in_nobodys_way(daemon, opened, interruptible):
    function = kiln.jit(network)

    def run() -> None:
        """Also makes a program to tune, of what a search has found."""
        # Large enough for searches that take longer than the interrupt.
        function(kiln.rand(256, 256), kiln.rand(256, 256))[1].numpy()

    def is_interrupted(width: int) -> bool:
        """Interrupts a search; returns False if it had ended before."""
        run()
        before = tunings(daemon)
        runs = threading.Event()

        def interrupt() -> None:
            if eventually(lambda: tunings(daemon) > before) and runs.is_set():
                os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            runs.set()
            kiln.tune(function, seconds=600, width=width)
            return False
        except KeyboardInterrupt:
            return True
        finally:
            runs.clear()
            thread.join()

    interrupted = 0
    for width in range(64, 44, -1):
        if is_interrupted(width):
            run()
            assert kiln.tune(function, seconds=1, width=2)
            interrupted += 1
        if interrupted == 3:
            break
    assert interrupted == 3


def test_numbers_out_of_range_are_refused():
    for beam in (-1, 65, 1.5, True):
        with pytest.raises(ValueError, match="beam is .*; it is a number of 0 to 64"):
            kiln.jit(network, beam=beam)
    for width in (0, 65):
        with pytest.raises(ValueError, match="width is"):
            kiln.tune("abc", width=width)
    with pytest.raises(ValueError, match="seconds is 0"):
        kiln.tune("abc", seconds=0)


def test_progress_is_shown(monkeypatch):
    monkeypatch.delenv("KILN_PROGRESS", raising=False)
    file, waiter = io.StringIO(), Waiter()

    class Resolving(io.StringIO):
        def write(self, text):
            file.write(text)
            waiter.resolve(7)
            return len(text)

    message = tuning.program_pb2.TuneProgramResponse(
        kernel="su\nm", number=2, kernels=9, tried=48, seconds_before=3e-3, seconds_now=2e-3)
    assert progress.tell(waiter, lambda: [message], Resolving(), tuning.text_of) == 7
    assert file.getvalue() == (
        "kiln: tuning kernel 2 of 9, su?m: 48 schedules tried, 1.50 times as fast\n")
