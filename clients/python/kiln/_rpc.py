"""Callables for the RPCs of a service, made from its protobuf descriptor."""

from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool

from kiln._stream import from_rpc

try:
    from google.protobuf.message_factory import GetMessageClass
except ImportError:  # protobuf before 4.22
    from google.protobuf.symbol_database import Default

    def GetMessageClass(descriptor: Any) -> Any:  # noqa: N802
        return Default().GetPrototype(descriptor)


class Stub:
    """Attributes are the RPCs of `service`, for example Stub(channel, "kiln.v1.SessionService")."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, channel: Any, service: str) -> None:
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
                request_serializer=GetMessageClass(method.input_type).SerializeToString,
                response_deserializer=GetMessageClass(method.output_type).FromString,
            )
            setattr(self, method.name, call)


def call(rpc: Any, request: Any) -> Any:
    """The answer of an RPC; raises the KilnError that it failed with."""
    try:
        return rpc(request)
    except grpc.RpcError as error:
        raise from_rpc(error) from None
