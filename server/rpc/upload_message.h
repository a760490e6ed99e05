// An UploadRequest without a copy of its data.
#ifndef KILN_SERVER_RPC_UPLOAD_MESSAGE_H_
#define KILN_SERVER_RPC_UPLOAD_MESSAGE_H_

#include <grpcpp/support/byte_buffer.h>

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kiln/v1/blob.pb.h"

namespace kiln::rpc {

struct UploadMessage {
  std::optional<v1::UploadHeader> header;
  std::vector<absl::string_view> data;  // within what was read, in order
};

// What protobuf's parser would make of `bytes`, which must outlive the message's data. Replaces
// `message`. INVALID_ARGUMENT: it is no UploadRequest (MALFORMED_MESSAGE), or has too many parts,
// see CheckParts.
absl::Status ReadUpload(grpc::ByteBuffer& bytes, UploadMessage* message);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_UPLOAD_MESSAGE_H_
