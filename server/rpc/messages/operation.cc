#include "server/rpc/messages/operation.h"

#include <utility>

#include "server/rpc/messages/graph_source.h"
#include "server/rpc/messages/placement.h"

namespace kiln::rpc {
namespace {

sessions::Operation FromDefine(v1::DefineProgram& message, memory::Account& account) {
  sessions::DefineProgram operation;
  operation.program = message.program();
  operation.name = std::move(*message.mutable_name());
  // An error is answered by the session, in the operation's turn; the stream continues.
  operation.graph = MakeGraphSource(std::move(*message.mutable_graph()), account);
  operation.devices.assign(message.devices().begin(), message.devices().end());
  operation.live = message.live();
  if (absl::Status status = CheckDeviceNames(operation.devices);
      !status.ok() && operation.graph.ok())
    operation.graph = status;
  return operation;
}

sessions::Operation FromRun(const v1::Run& message) {
  sessions::RunProgram operation;
  operation.program = message.program();
  operation.inputs.assign(message.inputs().begin(), message.inputs().end());
  operation.outputs.assign(message.outputs().begin(), message.outputs().end());
  operation.bindings.insert(message.bindings().begin(), message.bindings().end());
  operation.report_time = message.report_time();
  return operation;
}

sessions::Operation FromWrite(v1::Write& message) {
  sessions::Write operation;
  operation.handle = message.handle();
  // An unknown number becomes kInvalid, which the session refuses.
  const int dtype = message.dtype();
  operation.type.dtype =
      dtype > 0 && dtype < ir::kNumDTypes ? static_cast<ir::DType>(dtype) : ir::DType::kInvalid;
  operation.type.shape.assign(message.shape().begin(), message.shape().end());
  if (message.has_blob()) {
    operation.blobs = {message.blob()};
  } else if (message.has_pieces()) {
    operation.blobs.assign(message.pieces().names().begin(), message.pieces().names().end());
  } else {
    operation.data = std::move(*message.mutable_data());
  }
  if (message.has_placement()) operation.placement = PlacementFromProto(message.placement());
  return operation;
}

sessions::Operation FromDetach(const v1::Detach& message) {
  sessions::Park operation;
  operation.name = message.name();
  operation.keep = absl::Seconds(message.keep_seconds());
  for (const v1::NamedTensor& tensor : message.tensors())
    operation.tensors.push_back({tensor.name(), tensor.handle()});
  return operation;
}

}  // namespace

sessions::Operation ToOperation(v1::ConnectRequest& request, memory::Account& account) {
  switch (request.operation_case()) {
    case v1::ConnectRequest::kDefineProgram:
      return FromDefine(*request.mutable_define_program(), account);
    case v1::ConnectRequest::kRun:
      return FromRun(request.run());
    case v1::ConnectRequest::kWrite:
      return FromWrite(*request.mutable_write());
    case v1::ConnectRequest::kRead:
      return sessions::Read{request.read().handle()};
    case v1::ConnectRequest::kRelease:
      return sessions::Release{
          {request.release().handles().begin(), request.release().handles().end()},
          {request.release().blobs().begin(), request.release().blobs().end()}};
    case v1::ConnectRequest::kReleaseProgram:
      return sessions::ReleaseProgram{request.release_program().program()};
    case v1::ConnectRequest::kBarrier:
      return sessions::Barrier{};
    case v1::ConnectRequest::kCancel:
      return sessions::Cancel{request.cancel().first()};
    case v1::ConnectRequest::kDetach:
      return FromDetach(request.detach());
    case v1::ConnectRequest::kMove:
      return sessions::Move{request.move().source(), request.move().handle(),
                            PlacementFromProto(request.move().placement())};
    case v1::ConnectRequest::kAttach:
    case v1::ConnectRequest::OPERATION_NOT_SET:
      break;
  }
  return sessions::UnknownOperation{};
}

}  // namespace kiln::rpc
