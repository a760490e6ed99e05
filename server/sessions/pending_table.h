// The operations of a session that have been received and not answered: their memory, what is
// needed to do them again or to cancel them, and the barriers that wait for them.
#ifndef KILN_SERVER_SESSIONS_PENDING_TABLE_H_
#define KILN_SERVER_SESSIONS_PENDING_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/memory/host_memory.h"
#include "server/quota/meter.h"
#include "server/sessions/handle_table.h"
#include "server/sessions/operations/operation.h"

namespace kiln::sessions {

// Not thread-safe: guarded by the session's lock.
class PendingTable {
 public:
  struct Limits {
    int64_t operations = 0;
    int64_t bytes = 0;  // of them and their graphs
  };
  struct Entry {
    std::optional<memory::Charge> charge;      // nullopt: charged with the other small operations
    int64_t bytes = 0;                         // if charged alone; with its graph
    std::optional<PendingOperation> executed;  // since it was executed
    // For traces: its kind, and when it was received; empty if it was not traced then.
    std::string_view name = {};
    absl::Time received = absl::InfinitePast();
  };
  using Entries = std::map<uint64_t, Entry>;  // by sequence number

  // `of_user` counts the operations of all sessions of the user; may be null. Requires: it outlives
  // this.
  PendingTable(std::shared_ptr<memory::Account> host, Limits limits,
               quota::Meter* of_user = nullptr)
      : host_(std::move(host)),
        limits_(limits),
        of_user_(of_user),
        small_(host_->Open(memory::Use::kOperations)) {}
  ~PendingTable() { TakeAll(); }

  // Charges an operation until End. An operation for which there is no memory is replaced by
  // Refused. Sequence numbers count up from 1. Requires: TakeAll was not called.
  // `travels_alone`: its message has no other operation, so HasRoom was checked before it.
  void Admit(uint64_t sequence, Operation* operation, bool travels_alone = true);
  // Notes that an operation is traced. Requires: it was admitted; `name` is a constant.
  void SetReceived(uint64_t sequence, std::string_view name, absl::Time now);
  // The operation has been executed, and is answered later. Called once, before it can end. After
  // TakeAll it does nothing. Requires: it was admitted.
  void SetExecuted(uint64_t sequence, PendingOperation operation);
  // Takes what SetExecuted has stored, if there is such an operation. The caller destroys it
  // without holding locks: values and programs take others.
  [[nodiscard]] std::optional<PendingOperation> TakeExecuted(uint64_t sequence);
  // Removes an operation that was answered. Returns the barriers that were waiting only for it.
  // Requires: it is in the table; TakeExecuted was called if SetExecuted was.
  std::vector<uint64_t> End(uint64_t sequence);
  // Returns false if no operation before the barrier is in the table. Called when the barrier is
  // executed, before any later operation is. Requires: the barrier was admitted, unless TakeAll was
  // called.
  bool AddBarrier(uint64_t sequence);
  // Cancels those of the runs from `first` on that can be cancelled. Their outputs refer to
  // `failed` from here on. Cancelled runs that are not on the device need not be executed; the
  // caller drops them. Returns the numbers of the runs that this call has cancelled.
  //
  // A device receives a session's runs in the order of their numbers, so the runs that can still be
  // cancelled are the last ones: none before one that has committed (runtime/run/run.h) is. Runs
  // are cancelled from the last one backwards, so no remaining run uses a value that is never
  // computed. Each handle that a cancelled run would have updated gets the value that it had before
  // that run: the one from the last run that was not cancelled, or its original value.
  std::vector<uint64_t> CancelRuns(uint64_t first, const runtime::ValuePointer& failed,
                                   HandleTable* handles);

  const Entries& entries() const { return entries_; }
  // True if each operation up to `executed` either was answered or can be done again. Requires: all
  // of these have been executed, and no other.
  bool HasAllUpTo(uint64_t executed) const;
  // For a restored session: `ended` operations had been answered. The others are admitted; barriers
  // among them are added with the number of operations that they wait for. Requires: the table is
  // new.
  void RestoreEnded(uint64_t ended);
  // Requires: the barrier was admitted, and waits for the `remaining` operations before it.
  void RestoreBarrier(uint64_t sequence, uint64_t remaining);
  // How many operations have been answered.
  uint64_t ended() const { return ended_; }

  bool empty() const { return entries_.empty(); }
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  // False: no more should be received until some have ended. One operation is always accepted, so
  // that there is one to wait for.
  bool HasRoom() const;
  // Empties the table and gives back the charges of small operations; the others are charged until
  // the caller destroys the entries, without holding locks.
  Entries TakeAll();
  // The charges and counters are those of the entries, and each barrier waits for as many entries
  // as there are before it.
  void Validate() const;

 private:
  struct WaitingBarrier {
    uint64_t sequence = 0;
    uint64_t remaining = 0;
  };
  // Charges the operation of a new entry, or replaces it by Refused.
  void ChargeEntry(Entry& entry, Operation* operation, bool travels_alone);

  const std::shared_ptr<memory::Account> host_;
  const Limits limits_;
  quota::Meter* const of_user_;
  uint64_t ended_ = 0;
  uint64_t redoable_ = 0;  // entries that have been executed and can be done again
  memory::Charge small_;
  Entries entries_;
  int64_t large_bytes_ = 0;
  std::vector<WaitingBarrier> barriers_;  // in the order of their sequence numbers
  bool is_taken_ = false;                 // TakeAll was called
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_PENDING_TABLE_H_
