// Reads files that an operator has named: a configuration, certificates, an archive. The path may
// lead to anything, and the daemon must neither wait for it nor read without an end.
#ifndef KILN_SERVER_STATE_SMALL_FILE_H_
#define KILN_SERVER_STATE_SMALL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln::state {

// Opens a regular file, or a link to one, for reading. Never waits for a writer, as open(2) does
// for a FIFO. The caller closes the descriptor. `what` names the file in messages: "the
// configuration". All errors name it, its path, the reason and what to do. NOT_FOUND: there is
// none. FAILED_PRECONDITION: it is not a regular file. UNAVAILABLE: it cannot be opened.
absl::StatusOr<int> OpenRegularFile(const std::string& path, absl::string_view what);

// Returns the content of such a file. Additional errors: RESOURCE_EXHAUSTED, it has more than
// `bytes_max` bytes, of which it reads one more at most, even if another process appends to it.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, absl::string_view what,
                                          int64_t bytes_max);

}  // namespace kiln::state

#endif  // KILN_SERVER_STATE_SMALL_FILE_H_
