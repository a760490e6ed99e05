// Makes changes of a folder durable.
#ifndef KILN_SERVER_STATE_SYNC_FOLDER_H_
#define KILN_SERVER_STATE_SYNC_FOLDER_H_

#include <string>

#include "absl/status/status.h"

namespace kiln::state {

// Makes it outlast a power failure that `path` was created, renamed or removed in its folder.
// UNAVAILABLE: the folder cannot be opened or written.
absl::Status SyncFolderOf(const std::string& path);

}  // namespace kiln::state

#endif  // KILN_SERVER_STATE_SYNC_FOLDER_H_
