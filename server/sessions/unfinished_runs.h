// The runs of a session that are queued or on the device, and how to undo their bindings of
// handles.
#ifndef KILN_SERVER_SESSIONS_UNFINISHED_RUNS_H_
#define KILN_SERVER_SESSIONS_UNFINISHED_RUNS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "server/runtime/run/run.h"
#include "server/sessions/handle_table.h"

namespace kiln::sessions {

// Not thread-safe: guarded by the session's lock. Has no more entries than there are unfinished
// operations.
//
// A device receives a session's runs in the order of their numbers, so the runs that can still be
// cancelled are the last ones. Runs are cancelled from the last one backwards, so no remaining run
// uses a value that is never computed. Each handle that a cancelled run would have updated gets the
// value that it had before that run: the one from the last run that was not cancelled, or its
// original value.
class UnfinishedRuns {
 public:
  struct Update {
    uint64_t handle = 0;
    runtime::ValuePointer before;
    const buffers::Value* after = nullptr;  // owned by the run
  };
  struct Entry {
    std::shared_ptr<runtime::Run> run;
    std::vector<uint64_t> outputs;
    std::vector<const buffers::Value*> output_values;  // owned by the run
    std::vector<Update> updates;
    bool is_cancelled = false;
  };

  // Adds a run. Called before the run is queued.
  void Add(uint64_t sequence, Entry entry) { entries_.emplace(sequence, std::move(entry)); }
  // Removes a run that has ended. The caller destroys the returned entry, without holding locks.
  [[nodiscard]] Entry End(uint64_t sequence);
  // Cancels those of the runs from `first` on that can be cancelled. Their outputs refer to
  // `failed` from here on. Cancelled runs that are not on the device need not be executed; the
  // caller drops them. Returns the numbers of the runs that this call has cancelled.
  std::vector<uint64_t> Cancel(uint64_t first, const runtime::ValuePointer& failed,
                               HandleTable* handles);
  // True if the run has not ended and will be answered with CANCELLED.
  bool IsCancelled(uint64_t sequence) const;
  // Null if the run has ended or is unknown.
  const Entry* Find(uint64_t sequence) const;
  // Empties the table. The caller destroys the returned entries, without holding locks.
  [[nodiscard]] absl::btree_map<uint64_t, Entry> TakeAll() { return std::exchange(entries_, {}); }

 private:
  absl::btree_map<uint64_t, Entry> entries_;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_UNFINISHED_RUNS_H_
