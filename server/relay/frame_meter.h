// Reads the frame headers of what an HTTP/2 client sends (RFC 9113, section 4.1).
#ifndef KILN_SERVER_RELAY_FRAME_METER_H_
#define KILN_SERVER_RELAY_FRAME_METER_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln::relay {

struct Frame {
  enum Type : uint8_t { kData = 0, kHeaders = 1, kReset = 3, kContinuation = 9 };
  uint8_t type = 0;
  uint8_t flags = 0;
  uint32_t payload_bytes = 0;

  // A client begins a call with HEADERS. Trailers, which Kiln's clients do not send, count as well.
  bool BeginsCall() const { return type == kHeaders; }
};

// Follows one connection, from its first byte on. Not thread-safe.
class FrameMeter {
 public:
  // The header block of one call, compressed, in one HEADERS frame and any number of CONTINUATION
  // frames. gRPC collects them without a bound (CVE-2023-33953).
  static constexpr int64_t kHeaderBlockBytesMax = 64 << 10;

  // Returns how many of `bytes`, which follow those of earlier calls, may go to the server. Bytes
  // stay behind from the first frame on that `admit` refuses, or from a frame header on of which a
  // part has not arrived: present them again, with what follows.
  // INVALID_ARGUMENT: the client does not speak HTTP/2. RESOURCE_EXHAUSTED: a header block is too
  // long. The connection is of no use after an error.
  absl::StatusOr<size_t> Pass(absl::string_view bytes, absl::FunctionRef<bool(const Frame&)> admit);

  // Whether the connection preface (section 3.4) has arrived.
  bool has_preface() const;

 private:
  absl::Status CheckHeaderBlock(const Frame& frame);

  size_t preface_bytes_ = 0;  // that have passed
  int64_t payload_left_ = 0;  // of the frame whose header has passed
  int64_t header_block_bytes_ = 0;
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_FRAME_METER_H_
