"""Callables for the RPCs of a service, made from its protobuf descriptor."""

import time
from typing import TYPE_CHECKING, Any, Callable, Container, TypeVar

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool

from kiln._basics.errors import Cancelled, Unavailable
from kiln._session.stream import Stream, from_rpc, in_session
from kiln._session.waiter import Work, in_thread

try:
    from google.protobuf.message_factory import GetMessageClass
except ImportError:  # protobuf before 4.22
    from google.protobuf.symbol_database import Default

    def GetMessageClass(descriptor: Any) -> Any:  # noqa: N802
        return Default().GetPrototype(descriptor)


_T = TypeVar("_T")
_PAUSE_SECONDS = 0.05


class Stub:
    """Has the RPCs of `service` as attributes, for example Stub(channel, "kiln.v1.SessionService").

    The methods in `of_bytes` take serialized requests.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, channel: Any, service: str, of_bytes: Container[str] = ()) -> None:
        descriptor = descriptor_pool.Default().FindServiceByName(service)
        for method in descriptor.methods:
            streaming = descriptor_pb2.MethodDescriptorProto()
            method.CopyToProto(streaming)
            kind = "{}_{}".format(
                "stream" if streaming.client_streaming else "unary",
                "stream" if streaming.server_streaming else "unary",
            )
            call = getattr(channel, kind)(
                f"/{service}/{method.name}",
                request_serializer=None if method.name in of_bytes else (
                    GetMessageClass(method.input_type).SerializeToString),
                response_deserializer=GetMessageClass(method.output_type).FromString,
            )
            setattr(self, method.name, call)


def call(stream: Stream, rpc: Any, request: Any) -> Any:
    """Returns the answer of an RPC that may be repeated; raises its error as a KilnError."""
    stream.check()
    return in_thread(lambda work: through_cuts(stream, work, lambda: rpc(request)))


def through_cuts(stream: Stream, work: Work, transfer: Callable[[], _T]) -> _T:
    """Repeats a transfer that a lost connection has ended, within a lease of its last progress.

    Raises the KilnError of the transfer, or the one that the session was lost by.
    """
    began = time.monotonic()
    while True:
        try:
            return transfer()
        except grpc.RpcError as error:
            failure = in_session(from_rpc(error))
        except ValueError as error:  # the channel is closed
            failure = Unavailable(str(error))
        stream.check()
        # A daemon that stops in a hurry cancels what is left.
        lost = isinstance(failure, (Unavailable, Cancelled)) and failure.reason in (
            "", "RESTARTING")
        away = time.monotonic() - max(began, work.went_on)
        if not lost or work.abandoned or away > stream.lease_seconds:
            raise failure
        time.sleep(_PAUSE_SECONDS)
