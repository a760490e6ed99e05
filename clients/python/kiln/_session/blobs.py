"""Transfers large values to and from a daemon in chunks, over BlobService."""

import itertools
import threading
import time
import uuid
from typing import Any, Callable, Iterator, List, Optional, Sequence, Set

import grpc

from kiln._basics.errors import KilnError
from kiln._proto.kiln.v1 import blob_pb2, session_pb2
from kiln._session.pieces import Piece, PieceUpload
from kiln._session.rpc import Stub, through_cuts
from kiln._session.stream import Stream
from kiln._session.waiter import Waiter, Work, in_thread

# The tag of UploadRequest.data: the field's number and wire type; the length and bytes follow.
_DATA = bytes([blob_pb2.UploadRequest.DATA_FIELD_NUMBER << 3 | 2])


class _Private:
    """A blob that the daemon forgets when this object dies."""

    __slots__ = ("__weakref__",)


class Blobs:
    """The blobs of one session. Thread-safe.

    For a daemon on another machine, blobs are content-addressed, so that the same data set or
    weights are sent once. They are sent in pieces, so that an interrupted upload resumes, and
    hashing overlaps with sending. Only pieces whose sum the daemon knows are hashed; an older
    daemon knows no sums, so all are. Within this machine, where asking would take longer than
    sending, names are private, and the daemon forgets a blob after the operation that uses it.
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
        # blobs found by FindBlobs are kept until an operation sent later has used them.
        self._in_turn = threading.Lock()
        # The names that interrupted uploads have sent or found. The daemon keeps these blobs for
        # the next uploads, until one is complete or has failed.
        self._left: Set[str] = set()
        # Resolves when the daemon has forgotten them; until then FindBlobs would still find them.
        self._forgetting: Optional[Waiter] = None

    def upload(self, data: memoryview, use: Callable[[Sequence[str]], None]) -> None:
        """Sends these bytes to the daemon, then calls `use` with their blobs' names, in order.

        `use` sends the operation that takes them; it is called on another thread.
        """
        self.stream.check()
        in_thread(lambda work: self._upload(data, use, work))

    def download(self, handle: int, after_sequence: int) -> bytes:
        """Returns the bytes of a value, as it is after an operation of the stream.

        Raises the KilnError that the transfer failed with.
        """
        request = blob_pb2.DownloadRequest(
            session_id=self._session_id, handle=handle, after_sequence=after_sequence)
        self.stream.check()
        return in_thread(lambda work: through_cuts(
            self.stream, work, lambda: self._receive(request, work)), self.stream.wait_telling)

    # Everything below runs on threads of its own.

    def _upload(self, data: memoryview, use: Callable[[Sequence[str]], None], work: Work) -> None:
        if not self._local:
            with self._in_turn:
                if self._forgetting is not None:
                    self._forgetting.wait()
                    self._forgetting = None
                self._upload_pieces(data, use, work)
            return
        name = self.new_name()
        # Watches before sending: an upload that fails may have arrived all the same.
        blob = self._watched(name)
        self.send(name, data, work)
        if not work.abandoned:
            use([name])
        # The release is sent after the use.
        del blob
        self.stream.wake()

    def _upload_pieces(
            self, data: memoryview, use: Callable[[Sequence[str]], None], work: Work) -> None:
        upload = PieceUpload(self, data, work)
        try:
            names = upload.send()
            if not work.abandoned:
                use(names)
                self._forget_left_but(names)
                return
        except BaseException:
            # The daemon refuses a piece that an interrupted upload left incomplete; no failure.
            if not work.abandoned:
                self._left |= upload.offered
                self._forget_left_but(())
                raise
        finally:
            self.stream.wake()
        self._left |= upload.offered

    def _forget_left_but(self, used: Sequence[str]) -> None:
        names = self._left.difference(used)
        self._left.clear()
        if not names:
            return
        waiter = Waiter()
        try:
            self.stream.send(lambda result, error: waiter.resolve(),
                             release=session_pb2.Release(blobs=names))
        except KilnError:  # the session is closed or detached: no blobs of it are left
            return
        self._forgetting = waiter

    def _watched(self, name: str) -> _Private:
        """Returns an object with which the daemon forgets the blob."""
        blob = _Private()
        self.stream.blobs.watch(blob, "blobs", name)
        return blob

    def new_name(self) -> str:
        """Returns a name that no blob of the session has had."""
        return f"{self._prefix}-{next(self._numbers)}"

    @property
    def takes_many(self) -> bool:
        """Returns whether the daemon, in its present version, takes many blobs with one call."""
        return self.stream.takes_many_blobs

    def send(self, name: str, data: memoryview, work: Work) -> None:
        """Sends a blob; repeats that if the connection is lost."""
        through_cuts(self.stream, work,
                     lambda: self._service.Upload(self._upload_requests(name, data, work)))

    def missing(self, names: List[str], work: Work) -> List[str]:
        """Returns the names that the daemon does not have.

        The daemon holds the others for this session, so they are still there when they are used.
        """
        found = set(self._find(names, work).found)
        return [name for name in names if name not in found]

    def known_sums(self, sums: List[str], work: Work) -> Optional[Set[str]]:
        """Returns the sums that some blob has; None if the daemon is an older one, without sums."""
        answer = self._find(sums, work)
        return set(answer.found) if answer.knows_sums else None

    def _find(self, names: List[str], work: Work) -> Any:
        request = blob_pb2.FindBlobsRequest(
            session_id=self._session_id, blobs=names, after_sequence=self.stream.last_sequence())
        return through_cuts(self.stream, work, lambda: self._service.FindBlobs(request))

    def send_many(self, pieces: Iterator[Piece], work: Work) -> None:
        """Sends these blobs by one call. Requires: takes_many."""
        self._service.Upload(itertools.chain.from_iterable(
            self._upload_requests(name, data, work) for name, data in pieces))

    def _upload_requests(self, name: str, data: memoryview, work: Work) -> Iterator[bytes]:
        header = blob_pb2.UploadHeader(
            session_id=self._session_id, blob=name, size_bytes=data.nbytes)
        before = blob_pb2.UploadRequest(header=header).SerializeToString()
        for start in range(0, data.nbytes, self._chunk_bytes):
            if work.abandoned:  # the daemon drops an incomplete blob
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
    """Returns a serialized UploadRequest with this `data`; `before` are its other fields.

    A message object would copy the bytes three more times, to memory that is touched for the first
    time.
    """
    size, rest = [], data.nbytes
    while rest > 0x7F:
        size.append(rest & 0x7F | 0x80)
        rest >>= 7
    size.append(rest)
    return b"".join((before, _DATA, bytes(size), data))
