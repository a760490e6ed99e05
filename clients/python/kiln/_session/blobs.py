"""Large values on their way to and from a daemon: BlobService, in chunks."""

import hashlib
import itertools
import threading
import time
import uuid
from collections import deque
from typing import Any, Callable, Deque, Iterator, List, Optional, Sequence, Set, Tuple

import grpc

from kiln._proto.kiln.v1 import blob_pb2
from kiln._session.rpc import Stub, through_cuts
from kiln._session.stream import Stream
from kiln._session.waiter import Work, in_thread

# What is sent anew after a lost connection, and little more.
PIECE_BYTES = 4 << 20
# The daemon is asked at once which of so many pieces it has.
PIECES_AT_ONCE = 16
# How many one call carries: after a cut, the daemon is asked which of them it has. And how many
# calls there are at the same time: with two, threads would wake each other more often.
PIECES_OF_A_CALL = 256
CALLS = 1
# An older daemon takes one piece with each call: over a link of 50 ms each way, one alone would
# have it wait.
CALLS_OF_ONE_PIECE = 4

# Of UploadRequest.data: its number, and that a length and so many bytes follow.
_DATA = bytes([blob_pb2.UploadRequest.DATA_FIELD_NUMBER << 3 | 2])

# Its name and its bytes.
Piece = Tuple[str, memoryview]


class _Private:
    """A blob that the daemon forgets with this object."""

    __slots__ = ("__weakref__",)


class Blobs:
    """The blobs of one session. Thread-safe.

    They are content-addressed to a daemon on another machine, so that the same data set or weights
    travel once; piece by piece, so that hashing goes on beside sending, and an upload that was cut
    off goes on where it was. Within this machine, where hashing would take longer than sending,
    names are private, and the daemon forgets a blob behind the operation that uses it.
    """

    def __init__(self, channel: grpc.Channel, session_id: str, chunk_bytes: int, local: bool,
                 stream: Stream) -> None:
        self._service = Stub(channel, "kiln.v1.BlobService", of_bytes=["Upload"])
        self._session_id = session_id
        self._chunk_bytes = chunk_bytes
        self._local = local
        self.stream = stream
        self._numbers = itertools.count(1)
        # A process that takes over a detached session counts from 1 again.
        self._prefix = f"upload-{uuid.uuid4().hex[:16]}"
        # Content-addressed uploads take turns, each until the operation that uses it has been sent:
        # what FindBlobs has found is kept until an operation sent later has used it.
        self._in_turn = threading.Lock()

    def upload(self, data: memoryview, use: Callable[[Sequence[str]], None]) -> None:
        """Sends these bytes to the daemon, then calls `use` with the names of their blobs, in order.

        `use` sends the operation that takes them; it is called on another thread.
        """
        self.stream.check()
        in_thread(lambda work: self._upload(data, use, work))

    def download(self, handle: int, after_sequence: int) -> bytes:
        """The bytes of a value, as it is after an operation of the stream.

        Raises the KilnError that it failed with.
        """
        request = blob_pb2.DownloadRequest(
            session_id=self._session_id, handle=handle, after_sequence=after_sequence)
        self.stream.check()
        return in_thread(lambda work: through_cuts(
            self.stream, work, lambda: self._receive(request, work)))

    # On threads of their own.

    def _upload(self, data: memoryview, use: Callable[[Sequence[str]], None], work: Work) -> None:
        if not self._local:
            with self._in_turn:
                names = _Pieces(self, data, work).send()
                if not work.abandoned:
                    use(names)
            return
        name = f"{self._prefix}-{next(self._numbers)}"
        blob = _Private()
        # Before it is sent: an upload that fails may have arrived all the same.
        self.stream.blobs.watch(blob, "blobs", name)
        self.send(name, data, work)
        if not work.abandoned:
            use([name])
        # In order: behind the use.
        del blob
        self.stream.wake()

    @property
    def takes_many(self) -> bool:
        """Whether the daemon, as it is now, takes many blobs with one call."""
        return self.stream.takes_many_blobs

    def send(self, name: str, data: memoryview, work: Work) -> None:
        """Sends a blob, again if the connection is lost."""
        through_cuts(self.stream, work,
                     lambda: self._service.Upload(self._upload_requests(name, data, work)))

    def missing(self, names: List[str], work: Work) -> List[str]:
        """Those that the daemon does not have.

        What it has it also holds for this session, so it is still there when it is used.
        """
        request = blob_pb2.FindBlobsRequest(
            session_id=self._session_id, blobs=names, after_sequence=self.stream.last_sequence())
        found = set(through_cuts(
            self.stream, work, lambda: self._service.FindBlobs(request)).found)
        return [name for name in names if name not in found]

    def send_many(self, pieces: Iterator[Piece], work: Work) -> None:
        """Sends these blobs by one call; the daemon has to take many."""
        self._service.Upload(itertools.chain.from_iterable(
            self._upload_requests(name, data, work) for name, data in pieces))

    def _upload_requests(self, name: str, data: memoryview, work: Work) -> Iterator[bytes]:
        header = blob_pb2.UploadHeader(
            session_id=self._session_id, blob=name, size_bytes=data.nbytes)
        before = blob_pb2.UploadRequest(header=header).SerializeToString()
        for start in range(0, data.nbytes, self._chunk_bytes):
            if work.abandoned:  # the daemon drops what ends too early
                return
            yield with_data(before, data[start : start + self._chunk_bytes])
            before = b""
            work.went_on = time.monotonic()

    def _receive(self, request: Any, work: Work) -> bytes:
        chunks = []
        call = self._service.Download(request)
        for chunk in call:
            if work.abandoned:
                call.cancel()
                break
            chunks.append(chunk.data)
            work.went_on = time.monotonic()
        return b"".join(chunks)


def with_data(before: bytes, data: memoryview) -> bytes:
    """An UploadRequest with this `data`, serialized; `before` are its other fields.

    A message object would copy the bytes three times more, to memory that is touched first.
    """
    size, rest = [], data.nbytes
    while rest > 0x7F:
        size.append(rest & 0x7F | 0x80)
        rest >>= 7
    size.append(rest)
    return b"".join((before, _DATA, bytes(size), data))


class _Batch:
    """The pieces that one call carries."""

    __slots__ = ("is_over", "pieces")

    def __init__(self, pieces: List[Piece]) -> None:
        self.pieces = pieces
        self.is_over = False  # takes no more


class _ToSend:
    """Pieces between the thread that hashes them and those that send. Bounded. Thread-safe."""

    def __init__(self) -> None:
        self._pieces: Deque[Piece] = deque()
        self._has_ended = False
        self._changed = threading.Condition()

    def put(self, piece: Piece) -> None:
        """Waits while many wait already."""
        with self._changed:
            while len(self._pieces) >= PIECES_AT_ONCE:
                self._changed.wait()
            self._pieces.append(piece)
            self._changed.notify_all()

    def end(self) -> None:
        """No more will come."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def take_for(self, batch: _Batch) -> Optional[Piece]:
        """Waits for the next piece, which is the batch's from then on.

        None: no more will come, or the batch is full or over.
        """
        with self._changed:
            while not batch.is_over and len(batch.pieces) < PIECES_OF_A_CALL:
                if self._pieces:
                    piece = self._pieces.popleft()
                    batch.pieces.append(piece)
                    self._changed.notify_all()
                    return piece
                if self._has_ended:
                    break
                self._changed.wait()
            return None

    def close(self, batch: _Batch) -> None:
        """The batch is over: a call that has ended may still ask for more."""
        with self._changed:
            batch.is_over = True
            self._changed.notify_all()


class _Pieces:
    """One upload of content-addressed pieces: hashed on this thread, sent on others meanwhile."""

    def __init__(self, blobs: Blobs, data: memoryview, work: Work) -> None:
        self._blobs = blobs
        self._pieces = [data[start : start + PIECE_BYTES]
                        for start in range(0, data.nbytes, PIECE_BYTES)]
        self._work = work
        self._to_send = _ToSend()
        self._offered: Set[str] = set()
        self._failure: Optional[BaseException] = None

    def send(self) -> List[str]:
        """The names, once the daemon has all of them."""
        calls = CALLS if self._blobs.takes_many else CALLS_OF_ONE_PIECE
        senders = [threading.Thread(target=self._send_some, daemon=True)
                   for _ in range(min(calls, len(self._pieces)))]
        for sender in senders:
            sender.start()
        names: List[str] = []
        try:
            # A few first, then twice as many each time, so that sending begins early and goes on.
            asked = calls
            while self._pieces:
                names += self._offer(self._pieces[:asked])
                del self._pieces[:asked]
                asked = min(2 * asked, PIECES_AT_ONCE)
        except BaseException as error:
            self._failure = self._failure or error
        self._to_send.end()
        for sender in senders:
            sender.join()
        if self._failure is not None:
            raise self._failure
        return names

    def _offer(self, pieces: List[memoryview]) -> List[str]:
        if self._is_over():
            return []
        names = ["sha256:" + hashlib.sha256(piece).hexdigest() for piece in pieces]
        by_name = {
            name: piece for name, piece in zip(names, pieces) if name not in self._offered}
        self._offered.update(by_name)
        for name in self._blobs.missing(list(by_name), self._work) if by_name else []:
            self._to_send.put((name, by_name[name]))
        return names

    def _send_some(self) -> None:
        while True:
            batch = _Batch([])
            if self._to_send.take_for(batch) is None:
                return
            if self._is_over():  # only empties the queue
                continue
            try:
                self._send(batch)
            except BaseException as error:
                self._failure = self._failure or error

    def _send(self, batch: _Batch) -> None:
        def transfer() -> None:
            nonlocal batch
            if batch.is_over:  # and was cut off
                batch = _Batch(self._missing_of(batch.pieces))
            if not self._blobs.takes_many:
                for name, piece in batch.pieces:
                    self._blobs.send(name, piece, self._work)
            elif batch.pieces:
                try:
                    self._blobs.send_many(self._through(batch), self._work)
                finally:
                    self._to_send.close(batch)

        through_cuts(self._blobs.stream, self._work, transfer)

    def _through(self, batch: _Batch) -> Iterator[Piece]:
        """Its pieces, and those that come until it is full. On a thread of the call's."""
        yield from list(batch.pieces)
        while not self._is_over():
            piece = self._to_send.take_for(batch)
            if piece is None:
                return
            yield piece

    def _missing_of(self, pieces: List[Piece]) -> List[Piece]:
        missing: Set[str] = set()
        for start in range(0, len(pieces), PIECES_AT_ONCE):
            names = [name for name, _ in pieces[start : start + PIECES_AT_ONCE]]
            missing.update(self._blobs.missing(names, self._work))
        return [piece for piece in pieces if piece[0] in missing]

    def _is_over(self) -> bool:
        return self._failure is not None or self._work.abandoned
