"""Large values on their way to and from a daemon: BlobService, in chunks."""

import hashlib
import itertools
import queue
import threading
import uuid
from typing import Any, Iterator, List, Optional, Tuple

import grpc

from kiln._proto.kiln.v1 import blob_pb2
from kiln._session.rpc import Stub, through_cuts
from kiln._session.stream import Stream
from kiln._session.waiter import Work, in_thread

# What is sent anew after a lost connection, for each of the senders at most.
PIECE_BYTES = 4 << 20
# The daemon is asked at once which of so many pieces it has.
PIECES_AT_ONCE = 16
# Pieces on their way at the same time: over a link of 50 ms each way, one alone would have it wait.
SENDERS = 4


class Blob:
    """Bytes that the daemon has, under one or several names whose bytes follow each other."""

    __slots__ = ("__weakref__", "names")

    def __init__(self, names: Tuple[str, ...]) -> None:
        self.names = names


class Blobs:
    """The blobs of one session. Thread-safe.

    They are content-addressed to a daemon on another machine, so that the same data set or weights
    travel once; piece by piece, so that hashing goes on beside sending, and an upload that was cut
    off goes on where it was. Within this machine, where hashing would take longer than sending,
    names are private, and the daemon forgets a blob with the last reference to the `Blob`.
    """

    def __init__(self, channel: grpc.Channel, session_id: str, chunk_bytes: int, local: bool,
                 stream: Stream) -> None:
        self._service = Stub(channel, "kiln.v1.BlobService")
        self._session_id = session_id
        self._chunk_bytes = chunk_bytes
        self._local = local
        self._stream = stream
        self._numbers = itertools.count(1)
        # A process that takes over a detached session counts from 1 again.
        self._prefix = f"upload-{uuid.uuid4().hex[:16]}"

    def upload(self, data: memoryview) -> Blob:
        """A blob with these bytes, which the daemon has from here on."""
        self._stream.check()
        return in_thread(lambda work: self._upload(data, work))

    def download(self, handle: int, after_sequence: int) -> bytes:
        """The bytes of a value, as it is after an operation of the stream.

        Raises the KilnError that it failed with.
        """
        request = blob_pb2.DownloadRequest(
            session_id=self._session_id, handle=handle, after_sequence=after_sequence)
        self._stream.check()
        return in_thread(lambda work: through_cuts(
            self._stream, work, lambda: self._receive(request, work)))

    # On threads of their own.

    def _upload(self, data: memoryview, work: Work) -> Blob:
        if not self._local:
            return Blob(tuple(_Pieces(self, data, work).send()))
        name = f"{self._prefix}-{next(self._numbers)}"
        blob = Blob((name,))
        # Before it is sent: an upload that fails may have arrived all the same.
        self._stream.blobs.watch(blob, "blobs", name)
        self.send(name, data, work)
        return blob

    def send(self, name: str, data: memoryview, work: Work) -> None:
        """Sends a blob, again if the connection is lost."""
        through_cuts(self._stream, work,
                     lambda: self._service.Upload(self._upload_requests(name, data, work)))

    def missing(self, names: List[str], work: Work) -> List[str]:
        """Those that the daemon does not have.

        What it has it also holds for this session, so it is still there when it is used.
        """
        request = blob_pb2.FindBlobsRequest(session_id=self._session_id, blobs=names)
        found = set(through_cuts(
            self._stream, work, lambda: self._service.FindBlobs(request)).found)
        return [name for name in names if name not in found]

    def _upload_requests(self, name: str, data: memoryview, work: Work) -> Iterator[Any]:
        header = blob_pb2.UploadHeader(
            session_id=self._session_id, blob=name, size_bytes=data.nbytes)
        yield blob_pb2.UploadRequest(header=header)
        for start in range(0, data.nbytes, self._chunk_bytes):
            if work.abandoned:  # the daemon drops what ends too early
                return
            yield blob_pb2.UploadRequest(data=bytes(data[start : start + self._chunk_bytes]))

    def _receive(self, request: Any, work: Work) -> bytes:
        chunks = []
        call = self._service.Download(request)
        for chunk in call:
            if work.abandoned:
                call.cancel()
                break
            chunks.append(chunk.data)
        return b"".join(chunks)


class _Pieces:
    """One upload of content-addressed pieces: hashed on this thread, sent on others meanwhile."""

    def __init__(self, blobs: Blobs, data: memoryview, work: Work) -> None:
        self._blobs = blobs
        self._pieces = [data[start : start + PIECE_BYTES]
                        for start in range(0, data.nbytes, PIECE_BYTES)]
        self._work = work
        # Ends with a None for each sender. Bounded, so that hashing does not run far ahead.
        self._to_send: queue.Queue[Optional[Tuple[str, memoryview]]] = queue.Queue(PIECES_AT_ONCE)
        self._failure: Optional[BaseException] = None

    def send(self) -> List[str]:
        """The names, once the daemon has all of them."""
        senders = [threading.Thread(target=self._send_some, daemon=True)
                   for _ in range(min(SENDERS, len(self._pieces)))]
        for sender in senders:
            sender.start()
        names: List[str] = []
        try:
            for start in range(0, len(self._pieces), PIECES_AT_ONCE):
                names += self._offer(self._pieces[start : start + PIECES_AT_ONCE])
        except BaseException as error:
            self._failure = self._failure or error
        for _ in senders:
            self._to_send.put(None)
        for sender in senders:
            sender.join()
        if self._failure is not None:
            raise self._failure
        return names

    def _offer(self, pieces: List[memoryview]) -> List[str]:
        if self._is_over():
            return []
        names = ["sha256:" + hashlib.sha256(piece).hexdigest() for piece in pieces]
        by_name = dict(zip(names, pieces))
        for name in self._blobs.missing(list(by_name), self._work):
            self._to_send.put((name, by_name[name]))
        return names

    def _send_some(self) -> None:
        while True:
            item = self._to_send.get()
            if item is None:
                return
            if self._is_over():  # only empties the queue
                continue
            try:
                self._blobs.send(*item, self._work)
            except BaseException as error:
                self._failure = self._failure or error

    def _is_over(self) -> bool:
        return self._failure is not None or self._work.abandoned
