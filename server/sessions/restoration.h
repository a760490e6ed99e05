// The state of a restored session until it has executed its pending operations again.
#ifndef KILN_SERVER_SESSIONS_RESTORATION_H_
#define KILN_SERVER_SESSIONS_RESTORATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/runtime/cache/graph_source.h"
#include "server/runtime/cache/program_cache.h"
#include "server/sessions/operations/operation.h"

namespace kiln::sessions {

struct Checkpoint;  // checkpoint/checkpoint.h

struct Restoration {
  const std::shared_ptr<const Checkpoint> checkpoint;  // shared: a waiting operation uses it, too
  // Parts of the checkpoint.
  const std::vector<SavedPending>& pending;
  const std::vector<std::shared_ptr<const ProgramOrigin>>& origins;

  std::vector<runtime::ValuePointer> values{};  // of the checkpoint; null until they are made
  std::vector<std::shared_ptr<const runtime::GraphSource>> sources{};  // of the origins
  std::vector<std::shared_ptr<runtime::ProgramFuture>> programs{};     // of pending runs
  // Handles whose values pending operations make, with the numbers of the values.
  std::vector<std::pair<uint64_t, size_t>> late_handles{};
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_RESTORATION_H_
