// Small tables that outlive the daemon: files of a header, a line for each entry, and a last line
// that tells how many entries there are.
#ifndef KILN_SERVER_STATE_LINE_FILE_H_
#define KILN_SERVER_STATE_LINE_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kiln::state {

// The lines behind the header; none if there is no file. DATA_LOSS: the first line is not `header`,
// or lines are missing; see Damaged. UNAVAILABLE, reason STATE_FOLDER: it cannot be read.
absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path,
                                                   const std::string& header);

// Puts a whole new file in the place of the old one, once it is on the disk: a crash leaves one or
// the other. UNAVAILABLE, reason STATE_FOLDER: what failed.
absl::Status WriteLines(const std::string& path, const std::string& header,
                        const std::vector<std::string>& lines);

// DATA_LOSS: the file holds what was never written there. A part of it would be worse than none.
absl::Status Damaged(const std::string& path);

}  // namespace kiln::state

#endif  // KILN_SERVER_STATE_LINE_FILE_H_
