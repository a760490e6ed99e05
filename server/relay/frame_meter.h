// Reads the frame headers of an HTTP/2 client's data (RFC 9113, section 4.1).
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

// Tracks one connection from its first byte on. Not thread-safe.
class FrameMeter {
 public:
  // Limit for the compressed header block of one call, in one HEADERS frame and any number of
  // CONTINUATION frames. gRPC itself has no limit (CVE-2023-33953).
  static constexpr int64_t kHeaderBlockBytesMax = 64 << 10;

  // Returns how many of `bytes`, which follow those of earlier calls, may be forwarded to the
  // server. Bytes are retained from the first frame that `admit` refuses, or from an incomplete
  // frame header: pass them again, with what follows. INVALID_ARGUMENT: the client does not speak
  // HTTP/2. RESOURCE_EXHAUSTED: a header block is too long. After an error, close the connection.
  absl::StatusOr<size_t> Pass(absl::string_view bytes, absl::FunctionRef<bool(const Frame&)> admit);

  // Whether the connection preface (section 3.4) has arrived.
  bool has_preface() const;

 private:
  absl::Status CheckHeaderBlock(const Frame& frame);
  void Validate() const;

  size_t preface_bytes_ = 0;  // bytes of the preface that have passed
  int64_t payload_left_ = 0;  // of the frame whose header has passed
  int64_t header_block_bytes_ = 0;
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_FRAME_METER_H_
