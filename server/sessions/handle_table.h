// The tensors of a session, by the client's numbers.
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
#include "server/runtime/run.h"
#include "server/sessions/id_set.h"

namespace kiln::sessions {

// Not thread-safe: the session guards it. Charges its account for the table, its values' host
// memory and the errors of failed ones.
class HandleTable {
 public:
  explicit HandleTable(std::shared_ptr<memory::Account> host)
      : host_(std::move(host)), charge_(host_->Open(memory::Use::kHandles)) {}

  // Room for these, if all are new, not 0 and distinct; INVALID_ARGUMENT names the handle that is
  // not.
  absl::Status Reserve(absl::Span<const uint64_t> handles);
  // Binds each to its value; they have been reserved.
  void Bind(absl::Span<const uint64_t> handles, absl::Span<const runtime::ValuePointer> values);
  // Binds those of `handles` that are new to one failed value; none if there is no room.
  void Poison(absl::Span<const uint64_t> handles, const absl::Status& error);
  // A known handle names another value from here on. Returns the one before.
  runtime::ValuePointer Rebind(uint64_t handle, runtime::ValuePointer value) {
    return std::exchange(values_[handle], std::move(value));
  }
  // The same if the handle names `current`; otherwise, or if it was released, nothing changes.
  void RebindIf(uint64_t handle, const buffers::Value* current, const runtime::ValuePointer& value);
  // NOT_FOUND names the handle and says whether it was released.
  absl::StatusOr<runtime::ValuePointer> Find(uint64_t handle) const;
  // Releases those that are known; the first error, if others are among them.
  // What they named is `released`: freeing it may take long, so that is done without locks.
  absl::Status Release(absl::Span<const uint64_t> handles,
                       std::vector<runtime::ValuePointer>* released);
  // The values are destroyed by the caller, without locks.
  [[nodiscard]] std::vector<runtime::ValuePointer> ReleaseAllBut(
      const absl::flat_hash_set<uint64_t>& handles);
  // Those whose memory was lost with their device fail with `error`; the values are destroyed by
  // the caller, without locks.
  [[nodiscard]] std::vector<runtime::ValuePointer> FailLost(const absl::Status& error);
  const absl::flat_hash_map<uint64_t, runtime::ValuePointer>& values() const { return values_; }
  const IdSet& used() const { return used_; }
  // For a table that was kept; it is empty. RESOURCE_EXHAUSTED: no room for so many values.
  absl::Status Restore(IdSet used, size_t values);
  // Binds one of `used`.
  void RestoreValue(uint64_t handle, runtime::ValuePointer value) {
    values_[handle] = std::move(value);
  }
  // Empties the table; the values are destroyed by the caller, without locks.
  [[nodiscard]] absl::flat_hash_map<uint64_t, runtime::ValuePointer> TakeAll();

 private:
  absl::Status CheckNew(absl::Span<const uint64_t> handles) const;
  absl::Status Unknown(uint64_t handle) const;
  // What the table and its values take with so many handles more.
  int64_t BytesWith(size_t more) const;
  // Gives back what has been reserved and not bound.
  void Settle() { charge_.ForceResize(BytesWith(0)); }

  const std::shared_ptr<memory::Account> host_;
  memory::Charge charge_;
  absl::flat_hash_map<uint64_t, runtime::ValuePointer> values_;
  IdSet used_;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_HANDLE_TABLE_H_
