"""Uploads to another machine in pieces: what is sent, hashed and forgotten."""

import os
import threading

import numpy as np
import pytest

import kiln
from kiln._session import blobs as _blobs
from kiln._session import connection as _connection
from kiln._session import pieces as _pieces
from kiln._session import session as _session
from kiln._session import stream as _stream
from kiln._session import waiter as _waiter

from kilnd_process import Kilnd
from upload_data import there_and_back, values, wait_until_attached

# Also run by hand with 1024.
UPLOAD_MEBIBYTES = int(os.environ.get("KILN_UPLOAD_MEBIBYTES", "20"))

pytestmark = pytest.mark.usefixtures("kilnd")


def test_the_same_data_travel_once(link):
    connection = kiln.connect(link.address)
    data = values(1, (UPLOAD_MEBIBYTES << 20) + 12345)  # the last piece is a short one
    np.testing.assert_array_equal(there_and_back(data), data)
    once = link.bytes_sent
    assert once > data.nbytes
    np.testing.assert_array_equal(there_and_back(data), data)
    print(f"{data.nbytes} bytes: {once} sent, then {link.bytes_sent - once}")
    assert link.bytes_sent - once < data.nbytes / 100
    # Only the piece that has changed is sent.
    data[3 * _pieces.PIECE_BYTES] ^= 1
    before = link.bytes_sent
    np.testing.assert_array_equal(there_and_back(data), data)
    assert link.bytes_sent - before < 1.1 * _pieces.PIECE_BYTES
    connection.close()


def test_another_session_of_the_user_need_not_send_them_again(link):
    data = values(2, 2 * _pieces.PIECE_BYTES)
    first = kiln.connect(link.address)
    x = kiln.tensor(data).realize()
    x[:1].numpy()
    before = link.bytes_sent
    second = kiln.connect(link.address)
    np.testing.assert_array_equal(there_and_back(data), data)
    assert link.bytes_sent - before < data.nbytes / 100
    del x
    second.close()
    first.close()


def test_pieces_that_are_equal_travel_once(link):
    connection = kiln.connect(link.address)
    data = np.zeros(40 * _pieces.PIECE_BYTES, np.uint8)
    before = link.bytes_sent
    assert kiln.tensor(data).sum().item() == 0
    assert link.bytes_sent - before < 5 * _pieces.PIECE_BYTES
    connection.close()


@pytest.fixture
def hashed(monkeypatch):
    """Lists the sizes of the data that the client has hashed."""
    sizes = []
    digest_name = _pieces.digest_name
    monkeypatch.setattr(
        _pieces, "digest_name", lambda data: sizes.append(data.nbytes) or digest_name(data))
    return sizes


# The C++ client uses the same cases (pieces_test.cc).
@pytest.mark.parametrize(("data", "name"), [
    (b"", "sum64:0000000000000000"),
    (b"abc", "sum64:0000000000636261"),
    (b"\x01" + bytes(7) + b"\x02" + bytes(7), "sum64:0000000000000003"),
    (b"\xff" * 17, "sum64:00000000000000fd"),
])
def test_sums_are_those_of_the_protocol(data, name):
    assert _pieces.sum_name(memoryview(data)) == name


def test_what_is_new_is_not_hashed(link, hashed):
    connection = kiln.connect(link.address)
    data = values(21, 5 * _pieces.PIECE_BYTES + 3)
    np.testing.assert_array_equal(there_and_back(data), data)
    assert hashed == []
    data[0] ^= 1
    np.testing.assert_array_equal(there_and_back(data), data)
    assert sorted(hashed) == [3] + 4 * [_pieces.PIECE_BYTES]
    connection.close()


def test_equal_sums_are_not_equal_bytes(link, hashed):
    connection = kiln.connect(link.address)
    data = values(22, 2 * _pieces.PIECE_BYTES).view(np.uint64)
    np.testing.assert_array_equal(there_and_back(data), data)
    turned = data[::-1].copy()  # the pieces exchange their sums
    before = link.bytes_sent
    for _ in range(2):
        np.testing.assert_array_equal(there_and_back(turned), turned)
    assert link.bytes_sent - before > data.nbytes
    assert link.bytes_sent - before < 1.1 * data.nbytes
    assert len(hashed) == 4
    # The same within one upload.
    piece = values(23, _pieces.PIECE_BYTES).view(np.uint64)
    both = np.concatenate([piece, piece[::-1], piece])
    np.testing.assert_array_equal(there_and_back(both), both)
    connection.close()


def test_an_older_daemon_is_asked_for_digests(link, hashed, monkeypatch):
    monkeypatch.setattr(_blobs.Blobs, "known_sums", lambda self, sums, work: None)
    connection = kiln.connect(link.address)
    data = values(24, 20 * _pieces.PIECE_BYTES + 3)
    np.testing.assert_array_equal(there_and_back(data), data)
    before = link.bytes_sent
    np.testing.assert_array_equal(there_and_back(data), data)
    assert link.bytes_sent - before < data.nbytes / 100
    assert len(hashed) == 42
    connection.close()


def test_pieces_that_were_changed_while_they_were_sent_are_sent_again(link, monkeypatch):
    connection = kiln.connect(link.address)
    data = values(4, 2 * _pieces.PIECE_BYTES)
    requests = _blobs.Blobs._upload_requests
    with monkeypatch.context() as patch:
        patch.setattr(_blobs.Blobs, "_upload_requests", lambda self, name, piece, work: requests(
            self, name, memoryview(bytes(piece.nbytes)), work))
        assert not there_and_back(data).any()
    before = link.bytes_sent
    np.testing.assert_array_equal(there_and_back(data), data)
    assert link.bytes_sent - before > data.nbytes
    connection.close()


def test_threads_upload_equal_pieces_while_memory_is_short(monkeypatch):
    monkeypatch.setattr(_session, "is_local", lambda target: False)
    monkeypatch.setattr(_pieces, "PIECE_BYTES", 1 << 20)
    shared = values(5, 2 << 20)
    wrong = []
    with Kilnd(config="[sessions]\nblob_limit = \"6MiB\"\n") as kilnd:
        connection = kiln.connect(kilnd.tcp_address)

        def upload(thread):
            for i in range(8):
                data = np.concatenate([shared, values(100 * thread + i, 2 << 20), shared])
                if not np.array_equal(there_and_back(data), data):
                    wrong.append(i)

        threads = [threading.Thread(target=upload, args=(thread,)) for thread in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        _connection._default = None
        connection.close()
    assert wrong == []


def pieces_sent(monkeypatch):
    """Lists the names of the pieces that uploads send from now on."""
    names = []
    requests = _blobs.Blobs._upload_requests
    monkeypatch.setattr(_blobs.Blobs, "_upload_requests", lambda self, name, piece, work: (
        names.append(name) or requests(self, name, piece, work)))
    return names


def test_an_interrupted_upload_is_found_by_the_next_one(link, monkeypatch):
    connection = kiln.connect(link.address)
    wait_until_attached(connection)
    data = values(25, 24 * _pieces.PIECE_BYTES)
    blobs = connection._session.blobs
    work = _waiter.Work()
    send_many = _blobs.Blobs.send_many

    def abandons(self, pieces, work):
        pieces = list(pieces)[:9]
        send_many(self, iter(pieces), work)
        work.abandoned = True

    with monkeypatch.context() as patch:
        patch.setattr(_blobs.Blobs, "send_many", abandons)
        patch.setattr(_pieces, "PIECES_OF_A_CALL", 9)
        blobs._upload(memoryview(data), lambda names: pytest.fail("half of it was used"), work)
    sent = pieces_sent(monkeypatch)
    np.testing.assert_array_equal(there_and_back(data), data)
    assert len(sent) == 15
    assert not blobs._left
    connection.close()


def interrupt_while_a_piece_is_sent(connection, data, number, patch):
    work = _waiter.Work()
    requests = _blobs.Blobs._upload_requests
    sent = []

    def abandons(self, name, piece, work):
        sent.append(name)
        for request in requests(self, name, piece, work):
            yield request
            work.abandoned = work.abandoned or len(sent) == number

    patch.setattr(_blobs.Blobs, "_upload_requests", abandons)
    connection._session.blobs._upload(
        memoryview(data), lambda names: pytest.fail("half of it was used"), work)


def test_an_upload_that_was_interrupted_within_a_piece_is_found_too(link, monkeypatch):
    connection = kiln.connect(link.address)
    wait_until_attached(connection)
    data = values(26, 24 * _pieces.PIECE_BYTES)
    with monkeypatch.context() as patch:
        interrupt_while_a_piece_is_sent(connection, data, 10, patch)
    sent = pieces_sent(monkeypatch)
    np.testing.assert_array_equal(there_and_back(data), data)
    assert len(sent) == 15
    connection.close()


@pytest.fixture
def small(monkeypatch):
    """A connection to a daemon with room for five pieces at a time."""
    monkeypatch.setattr(_session, "is_local", lambda target: False)
    with Kilnd(config="[sessions]\nblob_limit = \"20MiB\"\n") as kilnd:
        connection = kiln.connect(kilnd.tcp_address)
        wait_until_attached(connection)
        yield connection
        _connection._default = None
        connection.close()


def refused(data):
    with pytest.raises(kiln.KilnError, match="blob_limit"):
        there_and_back(data)


def is_taken(seed):
    data = values(seed, 4 * _pieces.PIECE_BYTES)
    np.testing.assert_array_equal(there_and_back(data), data)


def test_a_failed_upload_is_forgotten(small):
    for seed in range(3):
        refused(values(seed, 8 * _pieces.PIECE_BYTES))
        is_taken(100 + seed)


def test_so_is_what_it_has_hashed_or_found(small):
    pieces = values(27, 4 * _pieces.PIECE_BYTES).view(np.uint64).reshape(4, -1)
    np.testing.assert_array_equal(there_and_back(pieces), pieces)
    refused(np.concatenate([pieces[:, ::-1], pieces, pieces[:, ::-1]]))
    is_taken(28)
    np.testing.assert_array_equal(there_and_back(pieces), pieces)
    refused(np.concatenate([pieces, pieces[:, ::-1]]))
    is_taken(29)


def test_what_is_forgotten_is_not_told_to_be_there(small, monkeypatch):
    pieces = values(32, 4 * _pieces.PIECE_BYTES).view(np.uint64).reshape(4, -1)
    np.testing.assert_array_equal(there_and_back(pieces), pieces)
    send, missing, wait = _stream.Stream.send, _blobs.Blobs.missing, _waiter.Waiter.wait
    held = []

    def holds_releases(self, *arguments, **operation):
        if "release" in operation:
            held.append(lambda: send(self, *arguments, **operation))
        else:
            send(self, *arguments, **operation)

    def sends_them():
        while held:
            held.pop(0)()

    def waits(self):
        if self is small._session.blobs._forgetting:
            sends_them()
        return wait(self)

    def is_told(self, *arguments):
        result = missing(self, *arguments)
        sends_them()
        return result

    monkeypatch.setattr(_stream.Stream, "send", holds_releases)
    refused(np.concatenate([pieces, pieces[:, ::-1]]))
    assert held
    # The release is processed as late as possible: when the next upload waits for it, or else after
    # the daemon's answer.
    monkeypatch.setattr(_waiter.Waiter, "wait", waits)
    monkeypatch.setattr(_blobs.Blobs, "missing", is_told)
    np.testing.assert_array_equal(there_and_back(pieces), pieces)
    assert not held


def test_what_an_interrupted_upload_has_left_ends_with_a_failure(small, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_while_a_piece_is_sent(small, values(30, 4 * _pieces.PIECE_BYTES), 4, patch)
    assert small._session.blobs._left
    refused(values(31, 4 * _pieces.PIECE_BYTES))
    is_taken(31)
