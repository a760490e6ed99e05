"""Clients over slow or broken links: what is sent, and that results do not change."""

import threading
import time
import types

import grpc
import numpy as np
import pytest

import kiln
from kiln._proto.kiln.v1 import blob_pb2
from kiln._session import blobs as _blobs
from kiln._session import connection as _connection
from kiln._session import pieces as _pieces
from kiln._session import rpc as _rpc
from kiln._session import session as _session
from kiln._session import waiter as _waiter

from eventually import eventually
from kilnd_process import Kilnd
from link import Link
from upload_data import there_and_back, values, wait_until_attached

pytestmark = pytest.mark.usefixtures("kilnd")


def test_an_upload_goes_on_where_it_was_cut_off(kilnd, link):
    connection = kiln.connect(link.address)
    wait_until_attached(connection)
    data = values(3, 24 * _pieces.PIECE_BYTES)
    start, taken = link.bytes_sent, kilnd.metric("kiln_received_bytes_total")
    lost = 0
    result = []
    upload = threading.Thread(target=lambda: result.append(kiln.tensor(data).realize()), daemon=True)
    stops = [int(pieces * _pieces.PIECE_BYTES) for pieces in (6.5, 13, 19.5)]  # each time, half a piece has arrived
    link.hold_at(start + stops[0])
    upload.start()
    for sent in stops:
        link.hold_at(start + sent)
        # Bytes around the data, and messages that were cut off, are not counted.
        lost += connection._session.chunk_bytes
        least = taken + 0.999 * sent - lost
        assert eventually(lambda: kilnd.metric("kiln_received_bytes_total") >= least)
        link.cut()
    upload.join()
    np.testing.assert_array_equal(result[0].numpy(), data)
    # After each cut, only the piece that the daemon had in part is sent again.
    assert link.bytes_sent - start < 1.001 * data.nbytes + 3 * _pieces.CALLS * _pieces.PIECE_BYTES
    del result
    connection.close()


def calls_of(monkeypatch):
    """Lists the calls of uploads from now on: the blobs of each call."""
    calls = []
    one, many = _blobs.Blobs.send, _blobs.Blobs.send_many

    def send(self, name, data, work):
        calls.append([name])
        one(self, name, data, work)

    def send_many(self, pieces, work):
        carried = []
        calls.append(carried)
        many(self, (carried.append(piece[0]) or piece for piece in pieces), work)

    monkeypatch.setattr(_blobs.Blobs, "send", send)
    monkeypatch.setattr(_blobs.Blobs, "send_many", send_many)
    return calls


def test_one_call_carries_many_pieces_but_not_all(link, monkeypatch):
    connection = kiln.connect(link.address)
    wait_until_attached(connection)
    calls = calls_of(monkeypatch)
    monkeypatch.setattr(_pieces, "PIECES_OF_A_CALL", 5)
    data = values(7, 17 * _pieces.PIECE_BYTES + 1)
    np.testing.assert_array_equal(there_and_back(data), data)
    assert sum(map(len, calls)) == 18
    assert all(1 <= len(carried) <= 5 for carried in calls)
    assert 4 <= len(calls) <= 10
    connection.close()


def test_an_older_daemon_gets_one_piece_with_each_call(link, monkeypatch):
    monkeypatch.setattr(_blobs.Blobs, "takes_many", False)
    calls = calls_of(monkeypatch)
    connection = kiln.connect(link.address)
    data = values(8, 9 * _pieces.PIECE_BYTES + 1)
    np.testing.assert_array_equal(there_and_back(data), data)
    assert [len(carried) for carried in calls] == [1] * 10
    connection.close()


def test_an_upload_goes_on_with_an_older_daemon(link, monkeypatch):
    connection = kiln.connect(link.address)
    wait_until_attached(connection)
    calls = calls_of(monkeypatch)
    data = values(9, 24 * _pieces.PIECE_BYTES)
    start = link.bytes_sent
    result = []
    upload = threading.Thread(target=lambda: result.append(kiln.tensor(data).realize()), daemon=True)
    link.hold_at(start + data.nbytes // 2)
    upload.start()
    assert eventually(lambda: link.bytes_sent - start >= data.nbytes // 2)
    monkeypatch.setattr(_blobs.Blobs, "takes_many", False)
    link.cut()
    upload.join()
    np.testing.assert_array_equal(result[0].numpy(), data)
    assert len(calls[0]) > 1
    assert len(calls[-1]) == 1
    del result
    connection.close()


def test_what_fails_names_its_piece_and_ends_the_upload(monkeypatch):
    monkeypatch.setattr(_session, "is_local", lambda target: False)
    with Kilnd(config="[sessions]\nblob_limit = \"10MiB\"\n") as kilnd:
        connection = kiln.connect(kilnd.tcp_address)
        wait_until_attached(connection)
        with pytest.raises(kiln.KilnError, match="blob \"sum64:") as failed:
            kiln.tensor(values(10, 40 * _pieces.PIECE_BYTES)).realize()
        assert failed.value.reason == "BLOB_LIMIT"
        assert failed.value.metadata["blob"].startswith("sum64:")
        _connection._default = None
        connection.close()


def test_a_cut_after_a_long_time_is_a_cut(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_rpc, "time", types.SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda seconds: None))
    stream = types.SimpleNamespace(lease_seconds=60, check=lambda: None)
    work = _waiter.Work()
    attempts = []

    class Cut(grpc.RpcError):
        def code(self):
            return grpc.StatusCode.UNAVAILABLE

        def details(self):
            return "cut"

        def trailing_metadata(self):
            return ()

    def transfer():
        attempts.append(now[0])
        now[0] += 1000
        if len(attempts) < 4:
            work.went_on = now[0] - 1
            raise Cut
        now[0] += 1000
        if len(attempts) < 6:
            raise Cut

    with pytest.raises(kiln.KilnError, match="cut"):
        _rpc.through_cuts(stream, work, transfer)
    assert len(attempts) == 4, "nothing came through in the fourth"


@pytest.mark.parametrize("size", [1, 127, 128, 16383, 16384, 1 << 20])
def test_chunks_are_serialized_as_protobuf_does(size):
    data = values(size, size)
    header = blob_pb2.UploadHeader(session_id="s", blob="b", size_bytes=size)
    before = blob_pb2.UploadRequest(header=header).SerializeToString()
    message = blob_pb2.UploadRequest(header=header, data=data.tobytes())
    assert _blobs.with_data(before, memoryview(data)) == message.SerializeToString()


def test_a_slow_link_does_not_change_results(kilnd):
    def train(address):
        connection = kiln.connect(address)
        kiln.manual_seed(3)
        model = kiln.nn.Linear(16, 4)
        optimizer = kiln.optim.Adam(model.parameters(), lr=1e-2)

        @kiln.jit
        def step(x, y):
            optimizer.zero_grad()
            loss = kiln.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        for i in range(60):
            noise = np.random.default_rng(i)
            loss = step(kiln.tensor(noise.normal(size=(8, 16)).astype(np.float32)),
                        kiln.tensor(noise.normal(size=(8, 4)).astype(np.float32)))
        weights = [parameter.numpy() for parameter in model.parameters()] + [loss.numpy()]
        _connection._default = None
        connection.close()
        return weights

    with Link(kilnd.tcp_address, delay=0.05) as link:
        slow = train(link.address)
    for near, far in zip(train(kilnd.address), slow):
        np.testing.assert_array_equal(near, far)
