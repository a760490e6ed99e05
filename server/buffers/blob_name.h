// Parses blob names. Thread-safe.
#ifndef KILN_SERVER_BUFFERS_BLOB_NAME_H_
#define KILN_SERVER_BUFFERS_BLOB_NAME_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace kiln::buffers {

// Whether the name identifies the bytes ("sha256:…", "sum64:…"; UploadHeader.blob lists the forms).
// A client can ask whether such a blob exists, and send it again.
bool IsContentAddressed(absl::string_view name);

// INVALID_ARGUMENT if nothing can be uploaded under this name.
absl::Status CheckBlobName(absl::string_view name);

// The 64 hexadecimal digits of the SHA-256 in the name; empty if it has none.
absl::string_view DigestIn(absl::string_view name);

// "sum64:<16 hex digits>:", the prefix of all names with this sum; empty if the name has none.
absl::string_view SumIn(absl::string_view name);

// Whether the name is "sum64:<16 hex digits>", which asks whether any blob has this sum.
bool IsSumAlone(absl::string_view name);

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_BLOB_NAME_H_
