// What a blob's name says about its bytes. Thread-safe.
#ifndef KILN_SERVER_BUFFERS_BLOB_NAME_H_
#define KILN_SERVER_BUFFERS_BLOB_NAME_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace kiln::buffers {

// Whether the bytes can be found by what they are ("sha256:…", "sum64:…"; UploadHeader.blob says
// which forms there are). A client can ask whether such a blob is there, and send it again.
bool IsContentAddressed(absl::string_view name);

// INVALID_ARGUMENT for a name under which nothing can be uploaded.
absl::Status CheckBlobName(absl::string_view name);

// The 64 hexadecimal digits of the SHA-256 that the name states; empty if it states none.
absl::string_view DigestIn(absl::string_view name);

// "sum64:<16 hex digits>:", with which all names begin that state this sum; empty if the name
// states none.
absl::string_view SumIn(absl::string_view name);

// "sum64:<16 hex digits>", which asks whether any blob has this sum.
bool IsSumAlone(absl::string_view name);

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_BLOB_NAME_H_
