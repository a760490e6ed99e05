// Byte counts in human-readable form.
#ifndef KILN_PROTO_TEXT_BYTE_COUNT_H_
#define KILN_PROTO_TEXT_BYTE_COUNT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace kiln {

// Parses "512MiB", "4GiB", "1000000" or "2.5GB". INVALID_ARGUMENT for other text.
absl::StatusOr<int64_t> ParseBytes(const std::string& text);

}  // namespace kiln

#endif  // KILN_PROTO_TEXT_BYTE_COUNT_H_
