// Small tables that outlive the daemon: files of a header, one line for each entry, and a last line
// with the number of entries.
#ifndef KILN_SERVER_STATE_LINE_FILE_H_
#define KILN_SERVER_STATE_LINE_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kiln::state {

// Returns the lines after the header; none if there is no file. DATA_LOSS: the first line is not
// `header`, or lines are missing; see Damaged. A header of a later version is named. UNAVAILABLE,
// reason STATE_FOLDER: it cannot be read.
absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path,
                                                   const std::string& header);

// Replaces the file by a new one, once that is on disk: a crash leaves one of the two. UNAVAILABLE,
// reason STATE_FOLDER: the failed step. Requires: no line contains a line break.
absl::Status WriteLines(const std::string& path, const std::string& header,
                        const std::vector<std::string>& lines);

// DATA_LOSS: the file's content was not written by WriteLines. Using a part of it would be worse
// than using none.
absl::Status Damaged(const std::string& path);

}  // namespace kiln::state

#endif  // KILN_SERVER_STATE_LINE_FILE_H_
