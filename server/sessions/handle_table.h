// The tensors of a session, by the client's handles.
#ifndef KILN_SERVER_SESSIONS_HANDLE_TABLE_H_
#define KILN_SERVER_SESSIONS_HANDLE_TABLE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/memory/host_memory.h"
#include "server/runtime/run/run.h"
#include "server/sessions/id_set.h"

namespace kiln::sessions {

// Not thread-safe: guarded by the session's lock. Charges its account for the table, the host
// memory of its values and the errors of failed values.
class HandleTable {
 public:
  explicit HandleTable(std::shared_ptr<memory::Account> host)
      : host_(std::move(host)), charge_(host_->Open(memory::Use::kHandles)) {}

  // Reserves memory for these handles. INVALID_ARGUMENT, naming the handle, if one is 0, repeated
  // or used before.
  absl::Status Reserve(absl::Span<const uint64_t> handles);
  // Binds each handle to its value. Requires: Reserve succeeded for these handles, and nothing was
  // bound or released since. A handle may occur twice with the same value.
  void Bind(absl::Span<const uint64_t> handles, absl::Span<const runtime::ValuePointer> values);
  // Binds the new ones of `handles` to one failed value; binds none if there is no memory for them.
  void BindFailed(absl::Span<const uint64_t> handles, const absl::Status& error);
  // Binds a handle to another value. Returns the value that it had. Requires: the handle is known.
  [[nodiscard]] runtime::ValuePointer Rebind(uint64_t handle, runtime::ValuePointer value);
  // As Rebind if the handle names `current`; otherwise, also if it was released, does nothing.
  void RebindIf(uint64_t handle, const buffers::Value* current, const runtime::ValuePointer& value);
  // NOT_FOUND names the handle and says whether it was released.
  absl::StatusOr<runtime::ValuePointer> Find(uint64_t handle) const;
  // Releases the known handles. Returns the first error if there are unknown ones. The values are
  // moved to `released`: freeing them may take long, so the caller does it without holding locks.
  absl::Status Release(absl::Span<const uint64_t> handles,
                       std::vector<runtime::ValuePointer>* released);
  // Releases all except `handles`. The caller destroys the returned values, without holding locks.
  [[nodiscard]] std::vector<runtime::ValuePointer> ReleaseAllBut(
      const absl::flat_hash_set<uint64_t>& handles);
  // Replaces the values whose memory was lost with their device by one that failed with `error`.
  // The caller destroys the returned values, without holding locks.
  [[nodiscard]] std::vector<runtime::ValuePointer> FailLost(const absl::Status& error);
  const absl::flat_hash_map<uint64_t, runtime::ValuePointer>& values() const { return values_; }
  const IdSet& used() const { return used_; }
  // For a restored session. Requires: the table is empty. Reserves memory for `values` handles;
  // RESOURCE_EXHAUSTED if there is not enough.
  absl::Status Restore(IdSet used, size_t values);
  // Binds a handle. Requires: it is in the restored `used`, was not bound before, and is one of the
  // `values` handles for which Restore has reserved memory.
  void RestoreValue(uint64_t handle, runtime::ValuePointer value);
  // Empties the table. The caller destroys the returned values, without holding locks.
  [[nodiscard]] absl::flat_hash_map<uint64_t, runtime::ValuePointer> TakeAll();
  // Each bound handle was used and has a value, and all of them are charged.
  void Validate() const;

 private:
  absl::Status CheckNew(absl::Span<const uint64_t> handles) const;
  absl::Status Unknown(uint64_t handle) const;
  // The bytes that the table and its values take with `more` additional handles.
  int64_t BytesWith(size_t more) const;
  // Gives back memory reserved for handles that were not bound.
  void Settle() { charge_.ForceResize(BytesWith(0)); }

  const std::shared_ptr<memory::Account> host_;
  memory::Charge charge_;
  absl::flat_hash_map<uint64_t, runtime::ValuePointer> values_;
  IdSet used_;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_HANDLE_TABLE_H_
