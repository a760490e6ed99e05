"""Sessions: reconnection, release, processes that fork or are killed."""

import contextlib
import gc
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import kiln
from kiln import nn
from kiln._proto.kiln.v1 import error_pb2, session_pb2
from kiln._session import connection as _connection
from kiln._session import waiter
from kiln._session.rpc import Stub
from kiln._session.stream import FIRST_DELAY_SECONDS, Stream
from eventually import GIVE_UP_SECONDS, eventually
from kilnd_process import Kilnd, build_folder
from link import Link

CUTS = int(os.environ.get("KILN_CUTS", "20"))
# Longer than any test: a session that ends earlier was not ended by its lease.
LONG_LEASE_SECONDS = 3600
# Set by hand: the daemon of another build, to which this one is upgraded.
OTHER_KILND = os.environ.get("KILN_OTHER_KILND")
SOURCE = pathlib.Path(kiln.__file__).resolve().parents[1]


@pytest.fixture
def linked(kilnd):
    with Link(kilnd.tcp_address) as link:
        connection = kiln.connect(link.address)
        yield link, connection
        _connection._default = None
        connection.close()


def test_a_dropped_connection_resumes_and_runs_everything_once(linked):
    link, _ = linked
    count = kiln.tensor(0)

    @kiln.jit
    def f():
        count.assign(count + 1)
        return count * 1

    results = []
    for i in range(300):
        results.append(f())
        if i % 60 == 30:
            link.cut()
        if i % 50 == 0:
            assert results[-1].item() == i + 1
    assert [result.item() for result in results] == list(range(1, 301))
    assert count.item() == 300
    # Between two cuts, and after the last one, a value was read.
    assert link.connections == 1 + 5


class Pauses(queue.SimpleQueue):
    """The queue on which a stream pauses before it attaches again; records pauses after a loss."""

    def __init__(self, stream):
        self._stream = stream
        self.after_losses = []

    def get(self, block=True, timeout=None):
        if self._stream._attachment.last_received is not None:
            self.after_losses.append(timeout)
        return super().get(block, timeout)


def test_cuts_with_answers_outstanding_resume_soon(linked):
    link, connection = linked
    x = kiln.tensor(np.arange(1000, dtype=np.float32)).realize()
    connection.synchronize()
    pauses = connection.stream._closing = Pauses(connection.stream)
    for i in range(CUTS):
        # Either the first message sent or the first answer is lost.
        link.cut_after(**{("sent", "received")[i % 2]: 0})
        answers = [waiter.Waiter() for _ in range(20)]
        for answer in answers:
            connection.stream.send(
                answer.resolve, read=session_pb2.Read(handle=x._node.buffer.handle))
        assert all(len(answer.wait().data) == 4000 for answer in answers)
        assert link.connections >= 2 + i
    # However many cuts there were, each is followed by an attempt after the shortest pause.
    assert len(pauses.after_losses) >= CUTS
    assert max(pauses.after_losses) <= FIRST_DELAY_SECONDS


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_large_transfers_survive_cuts(linked, share):
    link, _ = linked
    data = np.arange(8 << 20, dtype=np.float32)
    link.cut_after(sent=share * data.nbytes)
    x = kiln.tensor(data).realize()
    x[:1].numpy()
    assert link.connections == 2
    link.cut_after(received=share * data.nbytes)
    np.testing.assert_array_equal(x.numpy(), data)
    assert link.connections == 3


def test_a_read_that_waits_survives_a_cut(linked):
    link, connection = linked
    x = kiln.tensor(np.ones((64, 64), np.float32)).realize()
    for i in range(10):
        x = (x @ x / 64).realize()
        connection.synchronize()
        link.cut_after(received=100 * i)  # of its 16 KiB
        assert x.numpy()[0, 0] == 1
        assert link.connections == 2 + i


def test_a_lost_session_is_a_clear_error(fresh_kilnd):
    connection = kiln.connect(fresh_kilnd.address)
    x = (kiln.tensor([1.0]) + 1).realize()
    assert x.item() == 2
    Stub(connection._session.channel, "kiln.v1.SessionService").CloseSession(
        session_pb2.CloseSessionRequest(session_id=connection._session.id))
    with pytest.raises(kiln.KilnError):
        (x + 1).numpy()
    _connection._default = None
    kiln.connect(fresh_kilnd.address)
    assert (kiln.tensor([1.0]) + 1).item() == 2
    _connection._default = None


def idles(connection, begun):
    begun()
    connection._session._wait_for_end(GIVE_UP_SECONDS)  # starts when the stream has failed
    connection.stream.check()


def waits(connection, begun):
    x = kiln.tensor(np.ones((1024, 1024), np.float32))
    f = kiln.jit(lambda x: x @ x / 1024)
    while True:
        for _ in range(500):
            x = f(x)
        begun()
        x.numpy()


def runs(connection, begun):
    f = kiln.jit(lambda x: x + 1)
    x = kiln.tensor(np.ones(10, np.float32))
    while True:
        x = f(x)
        x.numpy()
        begun()


def uploads(connection, begun):
    while True:
        kiln.tensor(np.ones(32 << 20, np.float32)).realize()
        begun()


def downloads(connection, begun):
    x = kiln.tensor(np.ones(32 << 20, np.float32)).realize()
    while True:
        x.numpy()
        begun()


@pytest.mark.parametrize("work", [idles, waits, runs, uploads, downloads])
def test_clients_learn_of_a_shutdown(fresh_kilnd, work):
    """The daemon tells them: a client that is not told would retry until its lease is over."""
    connection = kiln.connect(fresh_kilnd.address)
    (kiln.tensor([1.0]) + 1).item()
    begun = threading.Event()

    def stop():
        begun.wait()
        fresh_kilnd.process.send_signal(signal.SIGINT)  # with SIGTERM it would keep the session

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(kiln.Unavailable, match="the daemon has stopped, so this session"):
        try:
            work(connection, begun.set)
        finally:
            begun.set()
            stopper.join()
    with pytest.raises(kiln.Unavailable, match="the daemon has stopped"):
        (kiln.tensor([1.0]) + 1).item()
    with pytest.raises(kiln.Unavailable, match="the daemon has stopped"):
        connection.devices()
    _connection._default = None
    connection.close()


def test_the_first_operation_that_hears_of_a_shutdown_ends_the_session():
    stream = Stream("a session", 60)
    heard = []
    for _ in range(2):
        stream.send(lambda result, error: heard.append(error), barrier=session_pb2.Barrier())
    result = session_pb2.Result(sequence=1)
    result.error.code = 14
    detail = result.error.details.add(type_url="type.googleapis.com/google.rpc.ErrorInfo")
    detail.value = error_pb2.ErrorInfo(reason="SHUTTING_DOWN").SerializeToString()
    stream._answer(result)
    assert [error.reason for error in heard] == ["SHUTTING_DOWN"] * 2
    with pytest.raises(kiln.Unavailable, match="the daemon has stopped"):
        stream.send(barrier=session_pb2.Barrier())


def test_who_is_revoked_is_told_what_to_do():
    stream = Stream("a session", 60)
    heard = []
    stream.send(lambda result, error: heard.append(error), barrier=session_pb2.Barrier())
    result = session_pb2.Result(sequence=1)
    result.error.code = 16
    result.error.message = "this user was revoked by an admin"
    detail = result.error.details.add(type_url="type.googleapis.com/google.rpc.ErrorInfo")
    detail.value = error_pb2.ErrorInfo(reason="REVOKED").SerializeToString()
    stream._answer(result)
    assert isinstance(heard[0], kiln.Unauthenticated) and heard[0].reason == "REVOKED"
    assert str(heard[0]).startswith("this user was revoked by an admin; ask an admin of the daemon "
                                    "for a new token")
    assert "kiln.connect()" in str(heard[0])


def memory(connection):
    return connection.devices()[0].memory_used_bytes


def test_dead_tensors_free_their_memory(connection):
    (kiln.tensor([1.0]) + 1).item()
    size = 64 << 20
    before = memory(connection)
    x = (kiln.zeros(size // 4) + 1).realize()
    connection.synchronize()
    assert memory(connection) >= size
    del x
    gc.collect()
    assert eventually(lambda: memory(connection) < before + size // 2)


def test_dead_tensors_make_room_for_the_next():
    with Kilnd(threads=2, flags=["--memory_limit=64MiB"]) as daemon:
        with kiln.connect(daemon.address) as connection:
            half_a_piece = np.ones(1 << 17, np.float32)
            for _ in range(300):
                uploaded = kiln.tensor(half_a_piece).realize()
            assert uploaded.sum().item() == 1 << 17
            one = kiln.tensor(1.0).realize()
            for _ in range(20):
                large = (kiln.zeros(4 << 20) + one).realize()
                large[:1].item()
            del large
            large = kiln.tensor(np.ones(10 << 20, np.float32)).realize()
            assert large[-1].item() == 1
            del large, uploaded, one
            connection.synchronize()
            assert memory(connection) < 8 << 20
        _connection._default = None


def test_a_thousand_uploads_leave_no_blobs(fresh_kilnd):
    connection = kiln.connect(fresh_kilnd.address)
    data = np.zeros((1 << 18) + 1, np.float32)  # a little more than fits in the stream
    for _ in range(1000):
        kiln.tensor(data).realize()
    connection.synchronize()
    assert eventually(lambda: "\nkiln_blob_bytes 0\n" in fresh_kilnd.metrics())
    _connection._default = None
    connection.close()


def test_a_forgotten_connection_ends_its_session(fresh_kilnd):
    for _ in range(3):
        kiln.connect(fresh_kilnd.address, lease_seconds=LONG_LEASE_SECONDS)
        assert (kiln.tensor([1.0]) + 1).item() == 2
    _connection._default = None
    gc.collect()
    assert eventually(lambda: "\nkiln_sessions 0\n" in fresh_kilnd.metrics())


def test_a_connection_that_is_forgotten_while_it_computes_ends_its_session(fresh_kilnd):
    kiln.connect(fresh_kilnd.address, lease_seconds=LONG_LEASE_SECONDS)
    x = kiln.ones(2048, 2048).realize()
    gc.disable()  # the release must not need another collection, once the answers are there
    try:
        for _ in range(10):
            y = (x @ x).realize()
        del x, y
        _connection._default = None
        gc.collect()
        assert eventually(lambda: "\nkiln_sessions 0\n" in fresh_kilnd.metrics())
    finally:
        gc.enable()


def test_steps_in_flight_do_not_wait_for_one_another(fresh_kilnd):
    with kiln.connect(fresh_kilnd.address):
        f = kiln.jit(lambda x: x @ x)
        x = kiln.tensor(np.eye(256, dtype=np.float32))
        f(x).numpy()
        # While the daemon is stopped, no step can end.
        gave_up = []

        def give_up():
            gave_up.append(True)
            fresh_kilnd.process.send_signal(signal.SIGCONT)

        guard = threading.Timer(GIVE_UP_SECONDS, give_up)
        with fresh_kilnd.standing_still():
            guard.start()
            results = [f(x) for _ in range(50)]
            guard.cancel()
        assert not gave_up
        np.testing.assert_array_equal(results[-1].numpy(), np.eye(256, dtype=np.float32))


def test_threads_share_a_connection(connection):
    errors = []

    def work(number):
        try:
            f = kiln.jit(lambda x: (x * number).sum())
            for i in range(30):
                assert f(kiln.full((10,), float(i))).item() == 10 * i * number
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_tensors_of_two_connections_do_not_mix(kilnd, connection):
    x = (kiln.tensor([1.0]) + 1).realize()
    other = kiln.connect(kilnd.address)
    y = (kiln.tensor([1.0]) + 1).realize()
    assert x.item() == y.item() == 2
    with pytest.raises(kiln.FailedPrecondition, match="two connections"):
        (x + y).numpy()
    other.close()


def test_traced_functions_draw_and_keep_constants_on_every_connection(kilnd, connection):
    @kiln.jit
    def noisy(x):
        return x + kiln.rand(3), x * kiln.tensor([float(i) for i in range(3)])

    def numbers():
        kiln.manual_seed(5)
        return [result.tolist() for _ in range(3) for result in noisy(kiln.ones(3))]

    first = numbers()
    with kiln.connect(kilnd.address):
        assert numbers() == first
        kiln.rand(2)
    with kiln.connect(kilnd.address):
        assert numbers() == first


def script(body, kilnd, *arguments):
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", body, *arguments], env=dict(kilnd.environment(), PYTHONPATH=path),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


FORK = """
import os, sys, kiln
x = (kiln.tensor([1.0]) + 1).realize()
x.item()
child = os.fork()
if child == 0:
    try:
        (x + 1).numpy()
    except kiln.FailedPrecondition as error:
        os._exit(42 if "fork" in str(error) else 1)
    os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), x.item())
"""


@pytest.mark.skipif(sys.version_info < (3, 9), reason="needs waitstatus_to_exitcode")
def test_a_forked_child_is_told_to_connect_again(kilnd):
    process = script(FORK, kilnd)
    output, errors = process.communicate(timeout=GIVE_UP_SECONDS)
    assert output.split() == ["42", "2.0"], errors


VICTIM = """
import numpy as np, kiln
kiln.connect(lease_seconds=5)
ballast = (kiln.zeros(16 << 20) + 1).realize()
ballast[:1].numpy()
f = kiln.jit(lambda x: x @ x / 512)
x = kiln.tensor(np.ones((512, 512), np.float32))
print("ready", flush=True)
while True:
    x = f(x)
    kiln.default_connection().synchronize()
"""


def train(steps, between=lambda step: None, read_every=1):
    """Returns the losses and the final weights. Losses are read every `read_every` steps; the
    others stay in flight.
    """
    kiln.manual_seed(2)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 4))
    optimizer = kiln.optim.Adam(model.parameters(), lr=1e-3)
    data = np.random.default_rng(0)
    x = kiln.tensor(data.normal(size=(64, 32)).astype(np.float32))
    y = kiln.tensor(data.integers(0, 4, 64))

    @kiln.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for i in range(steps):
        losses.append(step(x, y))
        if i % read_every == read_every - 1:
            losses[-1].item()
        between(i)
    return [loss.item() for loss in losses], [parameter.numpy() for parameter in model.parameters()]


def test_a_killed_clients_memory_comes_back_and_its_neighbour_does_not_notice(kilnd, connection):
    alone = train(120)
    before = memory(connection)
    victim = script(VICTIM, kilnd)
    try:
        assert victim.stdout.readline() == "ready\n", victim.stderr.read()
        assert memory(connection) >= 64 << 20
        beside = train(120, lambda step: victim.send_signal(signal.SIGKILL) if step == 60 else None)
    finally:
        victim.kill()
        victim.communicate()
    assert beside[0] == alone[0]
    for a, b in zip(alone[1], beside[1]):
        np.testing.assert_array_equal(a, b)
    assert eventually(lambda: memory(connection) < before + (32 << 20))


def train_at(target, steps, before, read_every=1, **options):
    """Returns the losses and weights of a training run; calls `before` after each step."""
    kiln.connect(target, **options)
    try:
        return train(steps, before, read_every)
    finally:
        connection, _connection._default = _connection._default, None
        connection.close()


def assert_same_training(one, other):
    assert one[0] == other[0]
    for a, b in zip(one[1], other[1]):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("read_every", [1, 7])  # between reads steps are in flight
def test_training_through_twenty_cuts_changes_no_bit(fresh_kilnd, read_every):
    undisturbed = train_at(fresh_kilnd.tcp_address, 200, lambda step: None)
    random = np.random.default_rng(CUTS)
    cut_at = set(random.choice(200, 20, replace=False).tolist())
    with Link(fresh_kilnd.tcp_address) as link:

        def cut(step):
            # Steps are still sent while the link refuses the client. Every other time it does not
            # refuse.
            if step in cut_at:
                link.cut(refuses=step % 2)

        cut_off = train_at(link.address, 200, cut, read_every)
        # After each cut, the next loss that is read comes over a new connection.
        assert link.connections > len({(step + 1) // read_every for step in cut_at})
    assert_same_training(undisturbed, cut_off)


def test_training_through_restarts_changes_no_bit(fresh_kilnd):
    undisturbed = train_at(fresh_kilnd.address, 60, lambda step: None)

    def restart(step):
        if step == 20:
            assert fresh_kilnd.stop(signal.SIGTERM) == 0
            fresh_kilnd.command[0] = OTHER_KILND or fresh_kilnd.command[0]
        elif step == 40:
            said = subprocess.run(
                [build_folder() / "clients" / "cli" / "kiln", "drain"], env=fresh_kilnd.environment(),
                capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
            assert said.returncode == 0, said.stderr
            assert "the daemon has stopped" in said.stdout
            assert fresh_kilnd.process.wait(timeout=GIVE_UP_SECONDS) == 0
        else:
            return
        fresh_kilnd.start()

    restarted = train_at(fresh_kilnd.address, 60, restart, read_every=7)
    assert_same_training(undisturbed, restarted)
    assert fresh_kilnd.log.read_text().count("event=session_restored") == 2


def test_training_through_kills_changes_no_bit(fresh_kilnd):
    undisturbed = train_at(fresh_kilnd.address, 60, lambda step: None)

    def kill(step):
        if step in (3, 20, 21, 45):
            fresh_kilnd.process.kill()
            fresh_kilnd.process.wait()
            fresh_kilnd.start()

    killed = train_at(fresh_kilnd.address, 60, kill, read_every=7, snapshot_seconds=1)
    assert_same_training(undisturbed, killed)
    # The third daemon may stop before it has restored the session.
    assert fresh_kilnd.log.read_text().count("event=session_restored") in (3, 4)


def test_a_detached_session_survives_a_kill(fresh_kilnd):
    connection = kiln.connect(fresh_kilnd.address, snapshot_seconds=3600)
    x = (kiln.tensor([1.0, 2.0]) + 1).realize()
    connection.detach("night", tensors={"x": x})
    _connection._default = None
    fresh_kilnd.process.kill()
    fresh_kilnd.process.wait()
    fresh_kilnd.start()
    attached = kiln.attach("night", fresh_kilnd.address)
    np.testing.assert_array_equal(attached["x"].numpy(), np.array([2, 3], np.float32))
    connection, _connection._default = _connection._default, None
    connection.close()


def test_work_in_flight_survives_a_restart(fresh_kilnd):
    kiln.connect(fresh_kilnd.address)
    f = kiln.jit(lambda x: x @ x / 512)
    x = kiln.tensor(np.ones((512, 512), np.float32))
    for _ in range(300):
        x = f(x)
    x = x + 1
    x.realize()
    assert fresh_kilnd.stop(signal.SIGTERM) == 0
    fresh_kilnd.start()
    np.testing.assert_array_equal(x.numpy(), np.full((512, 512), 2, np.float32))
    connection, _connection._default = _connection._default, None
    connection.close()


def test_a_daemon_that_was_killed_is_one_clear_error(fresh_kilnd):
    kiln.connect(fresh_kilnd.address)
    x = (kiln.tensor([1.0]) + 1).realize()
    assert x.item() == 2
    fresh_kilnd.process.kill()
    fresh_kilnd.process.wait()
    fresh_kilnd.start()
    with pytest.raises(kiln.NotFound, match="was killed, or stopped without a "
                       "checkpoint of it") as raised:
        (x + 1).numpy()
    assert raised.value.reason == "SESSION_LOST"
    connection, _connection._default = _connection._default, None
    connection.close()


def set_quota(kilnd, limit):
    """Sets the quota of callers over loopback."""
    subprocess.run([build_folder() / "clients" / "cli" / "kiln", "quota", "set", "local", limit],
                   env=kilnd.environment(), check=True, timeout=GIVE_UP_SECONDS)


def test_what_has_died_is_free_for_the_next_operation_once_a_quota_has_refused_one(fresh_kilnd):
    set_quota(fresh_kilnd, "buffers=20")
    connection = kiln.connect(fresh_kilnd.tcp_address)
    for _ in range(30):
        kept = []
        with pytest.raises(kiln.ResourceExhausted, match="20 tensors") as refused:
            for i in range(30):
                kept.append(kiln.tensor([i, 1]).realize())
                assert kept[-1].tolist() == [i, 1]
        assert refused.value.metadata["used"] == "20" and len(kept) >= 15
        del kept, refused
        gc.collect()
    _connection._default = None
    connection.close()


def test_what_has_no_room_on_the_disk_says_so(fresh_kilnd):
    kiln.connect(fresh_kilnd.tcp_address)
    x = kiln.ones(1000).realize()
    assert x.numpy().sum() == 1000  # so it has its bytes: a run that waits is saved as an operation
    set_quota(fresh_kilnd, "disk=1000")
    assert fresh_kilnd.stop(signal.SIGTERM) == 0
    explained = r'"local" may have 1000 bytes of disk .*`kiln quota set USER disk=\.\.\.`.*call kiln.connect'
    with pytest.raises(kiln.NotFound, match=explained) as raised:
        (x + 1).numpy()
    assert raised.value.reason == "SESSION_LOST" and raised.value.metadata["cause"] == "QUOTA_EXCEEDED"
    connection, _connection._default = _connection._default, None
    connection.close()


def test_a_client_that_was_away_within_its_lease_goes_on(linked):
    link, _ = linked
    count = kiln.tensor(0)

    @kiln.jit
    def f():
        count.assign(count + 1)
        return count * 1

    f()
    link.cut(refuses=3)
    assert f().item() == 2
    assert link.connections == 2


SLEEPER = """
import os, signal, sys
import numpy as np
import kiln
import test_session

def sleep(step):
    if step == 29:
        os.kill(os.getpid(), signal.SIGSTOP)

losses, weights = test_session.train_at(sys.argv[1], 60, sleep, read_every=7, lease_seconds=int(sys.argv[2]))
np.savez(sys.argv[3], losses, *weights)
"""


@pytest.mark.parametrize("network", ["stays", "goes"])
def test_training_that_sleeps_within_its_lease_changes_no_bit(fresh_kilnd, tmp_path, network):
    losses, weights = train_at(fresh_kilnd.tcp_address, 60, lambda step: None)
    with Link(fresh_kilnd.tcp_address) as link:
        tests = pathlib.Path(__file__).resolve().parent
        path = os.pathsep.join([str(SOURCE), str(tests), str(tests.parents[1]), os.environ.get("PYTHONPATH", "")])
        laptop = subprocess.Popen(
            [sys.executable, "-c", SLEEPER, link.address, str(LONG_LEASE_SECONDS), str(tmp_path / "trained.npz")],
            env=dict(os.environ, PYTHONPATH=path), stdin=subprocess.DEVNULL)
        try:
            changed = os.waitid(os.P_PID, laptop.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            assert changed.si_code == os.CLD_STOPPED
            if network == "goes":
                link.cut()
                assert eventually(lambda: fresh_kilnd.metric("kiln_connections") == 0)
            assert eventually(lambda: fresh_kilnd.metric("kiln_device_queue_length") == 0)
            laptop.send_signal(signal.SIGCONT)
            assert laptop.wait(timeout=GIVE_UP_SECONDS) == 0
        finally:
            laptop.kill()
            laptop.communicate()
    with np.load(tmp_path / "trained.npz") as trained:
        assert_same_training((losses, weights), (trained["arr_0"].tolist(), [
            trained[name] for name in trained.files[1:]]))


ATTACHING = """
import sys, kiln
tensors = kiln.attach("night", sys.argv[1])
count = tensors["count"]
assert (count + 1).item() == 301, count.item()
kiln.default_connection().detach("morning", 3600, {"count": count, "more": count * 2})
"""


def test_another_process_attaches_while_the_work_goes_on(fresh_kilnd):
    connection = kiln.connect(fresh_kilnd.address)
    count = kiln.tensor(0.0)

    @kiln.jit
    def step():
        count.assign(count + 1)

    for _ in range(300):
        step()
    with pytest.raises(kiln.InvalidArgument, match="must have 1 to 64 letters"):
        connection.detach("../night")
    connection.detach("night", keep_seconds=3600, tensors={"count": count})
    with pytest.raises(kiln.FailedPrecondition, match="kiln.attach\\('night'\\) continues it"):
        count.numpy()
    environment = dict(os.environ, PYTHONPATH=str(SOURCE))
    said = subprocess.run([sys.executable, "-c", ATTACHING, fresh_kilnd.address], env=environment,
                          capture_output=True, text=True, timeout=GIVE_UP_SECONDS)
    assert said.returncode == 0, said.stderr
    with pytest.raises(kiln.NotFound, match="no session named"):
        kiln.attach("night", fresh_kilnd.address)
    assert fresh_kilnd.stop(signal.SIGTERM) == 0
    fresh_kilnd.start()
    tensors = kiln.attach("morning", fresh_kilnd.address)
    assert {name: tensor.item() for name, tensor in tensors.items()} == {"count": 300, "more": 600}
    # Now the process closes it normally, and so the session is closed.
    kiln.default_connection().close()
    _connection._default = None
    with pytest.raises(kiln.NotFound):
        kiln.attach("morning", fresh_kilnd.address)


TRAINING = """
import sys, kiln
kiln.manual_seed(3)
model = kiln.nn.Linear(3, 2)
optimizer = kiln.optim.Adam(model.parameters(), lr=0.1)

def train():
    optimizer.zero_grad()
    (model(kiln.ones(4, 3)) ** 2).sum().backward()
    optimizer.step()

if sys.argv[1] == "begin":
    train()
    train()
    optimizer.param_groups[0].lr = 1 / 3
    kiln.default_connection().detach("training", 3600, {
        **model.state_dict(), **optimizer.state_dict(), "more": 1})
    print("left")
else:
    state = kiln.attach("training")
    for part in (model, optimizer):
        part.load_state_dict({name: state[name] for name in part.state_dict()})
    assert optimizer.param_groups[0].lr == 1 / 3, "not to the bit"
    assert state["more"].dtype == kiln.int64 and state["more"].item() == 1
    train()
    print(model.weight.tolist())
"""


def test_a_model_and_its_optimizer_are_left_and_taken_up(fresh_kilnd):
    outputs = []
    for what in ("begin", "end"):
        process = script(TRAINING, fresh_kilnd, what)
        output, errors = process.communicate(timeout=GIVE_UP_SECONDS)
        assert process.returncode == 0, errors
        outputs.append(output)
    assert outputs[0] == "left\n"
    kiln.manual_seed(3)
    with kiln.connect(fresh_kilnd.address):
        model = nn.Linear(3, 2)
        optimizer = kiln.optim.Adam(model.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            (model(kiln.ones(4, 3)) ** 2).sum().backward()
            optimizer.step()
            if step == 1:
                optimizer.param_groups[0].lr = 1 / 3
        assert f"{model.weight.tolist()}\n" == outputs[1]
    _connection._default = None


def close_session(kilnd, name):
    return subprocess.run([build_folder() / "clients" / "cli" / "kiln", "sessions", "close", name],
                          env=kilnd.environment(), capture_output=True, text=True, timeout=GIVE_UP_SECONDS)


def test_a_session_that_was_left_is_closed_by_its_name(fresh_kilnd):
    connection = kiln.connect(fresh_kilnd.address)
    connection.detach("night", 600, {"ones": kiln.ones(3)})
    done = close_session(fresh_kilnd, "night")
    assert done.stdout.startswith("closed s1 of "), done.stderr
    with pytest.raises(kiln.NotFound):
        kiln.attach("night", fresh_kilnd.address)
    done = close_session(fresh_kilnd, "night")
    assert done.returncode == 1 and 'there is no session "night"' in done.stderr
    assert "\nkiln_sessions 0\n" in fresh_kilnd.metrics()


@pytest.mark.parametrize("away", [False, True])
def test_a_session_that_somebody_closed_is_one_clear_error(fresh_kilnd, away):
    with Link(fresh_kilnd.tcp_address) as link:
        kiln.connect(link.address)
        x = (kiln.tensor([1.0]) + 1).realize()
        assert x.item() == 2
        with link.down() if away else contextlib.nullcontext():
            done = close_session(fresh_kilnd, "s1")
            assert done.returncode == 0, done.stderr
            assert "\nkiln_sessions 0\n" in fresh_kilnd.metrics()
        closed = "s1 was closed by .* with `kiln sessions close`, .*call kiln.connect"
        with pytest.raises(kiln.NotFound, match=closed) as raised:
            (x + 1).numpy()
        assert raised.value.reason == "SESSION_CLOSED"
        connection, _connection._default = _connection._default, None
        connection.close()


def test_what_a_session_cannot_keep_is_named(connection):
    with pytest.raises(kiln.InvalidArgument, match="'base_lrs' is a list; .* each entry of a list"):
        connection.detach("night", 60, {"base_lrs": [0.1]})
    connection.synchronize()


def test_whoever_is_taken_over_hears_so_at_once(fresh_kilnd):
    first = kiln.connect(fresh_kilnd.address)
    x = kiln.ones(2).realize()
    first.detach("mine", 3600, {"x": x})
    kiln.attach("mine", fresh_kilnd.address)
    second = kiln.default_connection()
    kiln.attach("mine", fresh_kilnd.address)
    with pytest.raises(kiln.Aborted, match="another process took over"):
        second.synchronize()
    kiln.default_connection().close()
    _connection._default = None


def test_uploads_of_two_clients_have_different_names(kilnd, connection):
    other = kiln.connect(kilnd.address)
    names = []
    for each in (connection, other):
        each._session.blobs.upload(memoryview(b"bytes"), names.extend)
    # Private names; a session that is taken over must not get equal ones from both processes.
    assert not any(":" in name for name in names)
    assert len(names) == len(set(names)) == 2
    other.close()
