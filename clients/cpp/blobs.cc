#include "clients/cpp/blobs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cpp/status.h"

namespace kiln::client {

Blobs::Blobs(v1::BlobService::StubInterface& stub, std::string session_id, std::string address,
             uint64_t chunk_bytes)
    : stub_(stub),
      session_id_(std::move(session_id)),
      address_(std::move(address)),
      chunk_bytes_(chunk_bytes) {}

absl::Status Blobs::Upload(const std::string& blob, absl::Span<const char> data) const {
  grpc::ClientContext context;
  v1::UploadResponse answer;
  auto writer = stub_.Upload(&context, &answer);
  v1::UploadRequest request;
  request.mutable_header()->set_session_id(session_id_);
  request.mutable_header()->set_blob(blob);
  request.mutable_header()->set_size_bytes(data.size());
  size_t sent = 0;
  // At least once: an empty blob needs its header too.
  do {
    const size_t size = std::min<size_t>(chunk_bytes_, data.size() - sent);
    request.set_data(data.data() + sent, size);
    sent += size;
    if (!writer->Write(request)) break;  // Finish says why
    // Only the first message has a header.
    request.clear_header();
  } while (sent < data.size());
  writer->WritesDone();
  return FromGrpc(writer->Finish(), address_);
}

absl::StatusOr<Blobs::Found> Blobs::Find(const std::vector<std::string>& names,
                                         uint64_t after_sequence) const {
  grpc::ClientContext context;
  v1::FindBlobsRequest request;
  request.set_session_id(session_id_);
  request.mutable_blobs()->Assign(names.begin(), names.end());
  request.set_after_sequence(after_sequence);
  v1::FindBlobsResponse answer;
  const absl::Status status = FromGrpc(stub_.FindBlobs(&context, request, &answer), address_);
  if (!status.ok()) return status;
  return Found{{answer.found().begin(), answer.found().end()}, answer.knows_sums()};
}

absl::StatusOr<std::string> Blobs::Download(uint64_t handle, uint64_t after_sequence) const {
  grpc::ClientContext context;
  v1::DownloadRequest request;
  request.set_session_id(session_id_);
  request.set_handle(handle);
  request.set_after_sequence(after_sequence);
  auto reader = stub_.Download(&context, request);
  v1::DownloadResponse chunk;
  std::string bytes;
  uint64_t size = 0;
  while (reader->Read(&chunk)) {
    // Only the first chunk has the total size.
    if (bytes.empty()) {
      size = chunk.size_bytes();
      bytes.reserve(size);
    }
    bytes.append(chunk.data());
  }
  if (absl::Status status = FromGrpc(reader->Finish(), address_); !status.ok()) return status;
  // Otherwise a stream that ends early without an error would be taken for a smaller tensor.
  if (bytes.size() != size) {
    return absl::DataLossError(
        absl::StrCat("the daemon announced ", size, " bytes, but sent ", bytes.size()));
  }
  return bytes;
}

}  // namespace kiln::client
