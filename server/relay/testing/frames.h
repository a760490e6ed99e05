// Bytes of an HTTP/2 client.
#ifndef KILN_SERVER_RELAY_TESTING_FRAMES_H_
#define KILN_SERVER_RELAY_TESTING_FRAMES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace kiln::relay::testing {

inline constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// A frame of this type with these flags, of stream 1, with `payload_bytes` zero bytes.
inline std::string FrameBytes(int type, int flags, int64_t payload_bytes) {
  std::string bytes;
  for (const int64_t byte : {payload_bytes >> 16, payload_bytes >> 8, payload_bytes, int64_t{type},
                             int64_t{flags}, int64_t{0}, int64_t{0}, int64_t{0}, int64_t{1}})
    bytes.push_back(static_cast<char>(byte));
  return bytes + std::string(static_cast<size_t>(payload_bytes), '\0');
}

}  // namespace kiln::relay::testing

#endif  // KILN_SERVER_RELAY_TESTING_FRAMES_H_
