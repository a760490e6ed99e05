"""Large values on their way to and from a daemon: BlobService, in chunks."""

import hashlib
import itertools
from typing import Any, Iterator

import grpc

from kiln._proto.kiln.v1 import blob_pb2
from kiln._session.rpc import Stub, through_cuts
from kiln._session.stream import Stream
from kiln._session.waiter import Work, in_thread


class Blob:
    """Bytes that the daemon has."""

    __slots__ = ("__weakref__", "name")

    def __init__(self, name: str) -> None:
        self.name = name


class Blobs:
    """The blobs of one session. Thread-safe.

    They are content-addressed to a daemon on another machine, so that the same data set or weights
    travel once; within this machine, where hashing would take longer than sending, names are
    private, and the daemon forgets a blob with the last reference to the `Blob`.
    """

    def __init__(self, channel: grpc.Channel, session_id: str, chunk_bytes: int, local: bool,
                 stream: Stream) -> None:
        self._service = Stub(channel, "kiln.v1.BlobService")
        self._session_id = session_id
        self._chunk_bytes = chunk_bytes
        self._local = local
        self._stream = stream
        self._numbers = itertools.count(1)

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
        if self._local:
            blob = Blob(f"upload-{next(self._numbers)}")
            # Before it is sent: an upload that fails may have arrived all the same.
            self._stream.blobs.watch(blob, "blobs", blob.name)
        else:
            blob = Blob("sha256:" + hashlib.sha256(data).hexdigest())
        through_cuts(self._stream, work, lambda: self._send(blob.name, data, work))
        return blob

    def _send(self, name: str, data: memoryview, work: Work) -> None:
        # What the daemon finds it also holds for this session, so it is still there when it is
        # used.
        if not self._local and name in self._service.FindBlobs(blob_pb2.FindBlobsRequest(
                session_id=self._session_id, blobs=[name])).found:
            return
        self._service.Upload(self._upload_requests(name, data, work))

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
