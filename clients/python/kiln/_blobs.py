"""Large values on their way to and from a daemon: BlobService, in chunks."""

import hashlib
import itertools
from typing import Any, Iterator

import grpc

from kiln import _stream
from kiln._proto.kiln.v1 import blob_pb2
from kiln._rpc import Stub, call


class Blobs:
    """The blobs of one session. Thread-safe.

    They are content-addressed to a daemon on another machine, so that the same data set or weights
    travel once; within this machine, where hashing would take longer than sending, names are
    private.
    """

    def __init__(self, channel: grpc.Channel, session_id: str, chunk_bytes: int,
                 local: bool) -> None:
        self._service = Stub(channel, "kiln.v1.BlobService")
        self._session_id = session_id
        self._chunk_bytes = chunk_bytes
        self._local = local
        self._numbers = itertools.count(1)

    def upload(self, data: memoryview) -> str:
        """The name of a blob with these bytes, which the daemon has from here on."""
        if self._local:
            name = f"upload-{next(self._numbers)}"
        else:
            name = "sha256:" + hashlib.sha256(data).hexdigest()
        if self._local or not self._has(name):
            call(self._service.Upload, self._upload_requests(name, data))
        return name

    def used(self, name: str) -> None:
        """Lets the daemon forget a blob that nobody will ask for again. Does not wait."""
        if self._local:
            self._service.DeleteBlobs.future(blob_pb2.DeleteBlobsRequest(
                session_id=self._session_id, blobs=[name]))

    def download(self, handle: int, after_sequence: int) -> bytes:
        """The bytes of a value, as it is after an operation of the stream.

        Raises the KilnError that it failed with.
        """
        request = blob_pb2.DownloadRequest(
            session_id=self._session_id, handle=handle, after_sequence=after_sequence)
        try:
            return b"".join(chunk.data for chunk in self._service.Download(request))
        except grpc.RpcError as error:
            raise _stream.from_rpc(error) from None

    def _has(self, name: str) -> bool:
        return name in call(self._service.FindBlobs, blob_pb2.FindBlobsRequest(
            session_id=self._session_id, blobs=[name])).found

    def _upload_requests(self, name: str, data: memoryview) -> Iterator[Any]:
        header = blob_pb2.UploadHeader(
            session_id=self._session_id, blob=name, size_bytes=data.nbytes)
        yield blob_pb2.UploadRequest(header=header)
        for start in range(0, data.nbytes, self._chunk_bytes):
            yield blob_pb2.UploadRequest(data=bytes(data[start : start + self._chunk_bytes]))
