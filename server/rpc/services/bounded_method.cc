#include "server/rpc/services/bounded_method.h"

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>

#include <vector>

#include "proto/check/check.h"
#include "server/rpc/messages/message.h"
#include "server/rpc/messages/parts.h"

namespace kiln::rpc {
namespace {

// Returns the same bytes without copying.
grpc::ByteBuffer Share(grpc_byte_buffer* bytes) {
  std::vector<grpc::Slice> slices;
  grpc_byte_buffer_reader reader;
  if (grpc_byte_buffer_reader_init(&reader, bytes) == 0) return {};
  grpc_slice slice;
  while (grpc_byte_buffer_reader_next(&reader, &slice) != 0)
    slices.emplace_back(slice, grpc::Slice::STEAL_REF);
  grpc_byte_buffer_reader_destroy(&reader);
  return {slices.data(), slices.size()};
}

}  // namespace

void* BoundedMethod::Deserialize(grpc_call* call, grpc_byte_buffer* request, grpc::Status* status,
                                 void** data) {
  absl::Status checked;
  // Null if the call has ended meanwhile.
  if (request != nullptr) {
    grpc::ByteBuffer bytes = Share(request);
    checked = CheckParts(bytes, request_);
  }
  if (!checked.ok()) {
    // The handler needs a message anyway to be able to end the call.
    grpc_byte_buffer_destroy(request);
    request = grpc_raw_byte_buffer_create(nullptr, 0);
  }
  void* const message = method_->Deserialize(call, request, status, data);
  if (checked.ok() && !status->ok()) checked = Malformed(request_.full_name());
  if (!checked.ok()) *status = End(parts_, checked);
  return message;
}

void BoundedMethod::RunHandler(const HandlerParameter& parameter) {
  if (parameter.status.ok()) return method_->RunHandler(parameter);
  make_refusing_(parameter.status)
      ->RunHandler(HandlerParameter(parameter.call, parameter.server_context, parameter.request,
                                    grpc::Status::OK, parameter.internal_data,
                                    parameter.call_requester));
}

int MethodIndex(const std::string& service, const std::string& method) {
  const auto* found =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(service + "." + method);
  KILN_CHECK(found != nullptr) << service << " has no method " << method;
  return found->index();
}

}  // namespace kiln::rpc
