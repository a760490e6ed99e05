// Transfers bulk data in chunks, through BlobService.
#ifndef KILN_CLIENTS_CPP_BLOBS_H_
#define KILN_CLIENTS_CPP_BLOBS_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kiln/v1/blob.grpc.pb.h"

namespace kiln::client {

// The transfers of one session. Stateless, so calls may run concurrently.
class Blobs {
 public:
  // `chunk_bytes` is the chunk size that the daemon asked for when the session was opened.
  Blobs(v1::BlobService::StubInterface& stub, std::string session_id, std::string address,
        uint64_t chunk_bytes);

  // Sends `data` under a name private to the session, or by its content (see UploadHeader.blob).
  absl::Status Upload(const std::string& blob, absl::Span<const char> data) const;
  struct Found {
    std::set<std::string> names;
    bool knows_sums;  // the daemon's answer; false for an older daemon
  };
  // Returns which of these content-addressed blobs the daemon has; it keeps them for the session
  // until an operation after `after_sequence` has used them. For names that are sums, returns those
  // that some blob has.
  absl::StatusOr<Found> Find(const std::vector<std::string>& names, uint64_t after_sequence) const;
  // Returns a buffer's bytes once its value has been computed. First waits until the daemon has
  // received the operation `after_sequence`.
  absl::StatusOr<std::string> Download(uint64_t handle, uint64_t after_sequence) const;

 private:
  v1::BlobService::StubInterface& stub_;
  const std::string session_id_;
  const std::string address_;
  const uint64_t chunk_bytes_;
};

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_BLOBS_H_
