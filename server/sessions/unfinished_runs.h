// The runs of a session that are queued or on the device, and how to take back what they promised.
#ifndef KILN_SERVER_SESSIONS_UNFINISHED_RUNS_H_
#define KILN_SERVER_SESSIONS_UNFINISHED_RUNS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "server/runtime/run.h"
#include "server/sessions/handle_table.h"

namespace kiln::sessions {

// Not thread-safe: the session guards it. No larger than the number of unfinished operations.
//
// A device gets a session's runs in the order of their numbers, so that those which can still be
// cancelled are its last ones. Cancelling goes from the last backwards, and no run is left that
// uses a value which never comes to be. Every handle that a cancelled run would have updated names
// again what it named before that run: what the last run that goes on gives it, or what it was.
class UnfinishedRuns {
 public:
  struct Update {
    uint64_t handle = 0;
    runtime::ValuePointer before;
    const buffers::Value* after = nullptr;  // kept by the run
  };
  struct Entry {
    std::shared_ptr<runtime::QueuedRun> run;
    std::vector<uint64_t> outputs;
    std::vector<const buffers::Value*> output_values;  // kept by the run
    std::vector<Update> updates;
    bool is_cancelled = false;
  };

  // Before it is queued.
  void Add(uint64_t sequence, Entry entry) { entries_.emplace(sequence, std::move(entry)); }
  // It has ended. What is returned is destroyed without locks.
  [[nodiscard]] Entry End(uint64_t sequence);
  // Cancels what can be cancelled of the runs from `first` on. Their outputs name `failed` from
  // here on. Those that are not on the device may be executed no more: the caller drops them.
  // Returns the numbers of those that it has cancelled.
  std::vector<uint64_t> Cancel(uint64_t first, const runtime::ValuePointer& failed,
                               HandleTable* handles);
  // It has not ended, and will be answered with CANCELLED.
  bool IsCancelled(uint64_t sequence) const;
  // Null if it has ended, or is none of these.
  const Entry* Find(uint64_t sequence) const;
  // Empties the table; what it held is destroyed by the caller, without locks.
  [[nodiscard]] absl::btree_map<uint64_t, Entry> TakeAll() { return std::exchange(entries_, {}); }

 private:
  absl::btree_map<uint64_t, Entry> entries_;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_UNFINISHED_RUNS_H_
