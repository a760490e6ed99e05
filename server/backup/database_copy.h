// Copies a database of SQLite that other processes may be using.
#ifndef KILN_SERVER_BACKUP_DATABASE_COPY_H_
#define KILN_SERVER_BACKUP_DATABASE_COPY_H_

#include <string>

#include "absl/status/status.h"

namespace kiln::backup {

// Copies all that was committed to one file, by SQLite's backup API
// (https://sqlite.org/backup.html): no writer is kept from writing for long, and the copy is of one
// moment. `to` must not exist. UNAVAILABLE: it cannot be read or written.
absl::Status CopyDatabase(const std::string& from, const std::string& to);

}  // namespace kiln::backup

#endif  // KILN_SERVER_BACKUP_DATABASE_COPY_H_
