// An UploadRequest parsed without copying its data.
#ifndef KILN_SERVER_RPC_MESSAGES_UPLOAD_MESSAGE_H_
#define KILN_SERVER_RPC_MESSAGES_UPLOAD_MESSAGE_H_

#include <grpcpp/support/byte_buffer.h>

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kiln/v1/blob.pb.h"

namespace kiln::rpc {

struct UploadMessage {
  std::optional<v1::UploadHeader> header;
  std::vector<absl::string_view> data;  // within the bytes that were read, in order
};

// Parses `bytes` as protobuf's parser would; they must outlive the message's data. Replaces
// `message`. INVALID_ARGUMENT: it is not an UploadRequest (MALFORMED_MESSAGE), or has too many
// parts, see CheckParts.
absl::Status ReadUpload(grpc::ByteBuffer& bytes, UploadMessage* message);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_MESSAGES_UPLOAD_MESSAGE_H_
