// Operations that have been received and not answered: their memory, and the barriers that wait for
// them.
#ifndef KILN_SERVER_SESSIONS_UNFINISHED_OPERATIONS_H_
#define KILN_SERVER_SESSIONS_UNFINISHED_OPERATIONS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/memory/host_memory.h"
#include "server/quota/meter.h"
#include "server/sessions/operation.h"

namespace kiln::sessions {

// Not thread-safe: guarded by the session's lock.
class UnfinishedOperations {
 public:
  struct Limits {
    int64_t operations = 0;
    int64_t bytes = 0;  // of them and their graphs
  };

  // `of_user` counts the operations of all sessions of the user; may be null. Requires: it outlives
  // this.
  UnfinishedOperations(std::shared_ptr<memory::Account> host, Limits limits,
                       quota::Meter* of_user = nullptr)
      : host_(std::move(host)),
        limits_(limits),
        of_user_(of_user),
        small_(host_->Open(memory::Use::kOperations)) {}
  ~UnfinishedOperations() { Clear(); }

  // Charges an operation until End. An operation for which there is no memory is replaced by
  // Refused. Sequence numbers count up from 1.
  // `travels_alone`: its message has no other operation, so HasRoom was checked before it.
  void Admit(uint64_t sequence, Operation* operation, bool travels_alone = true);
  // Records that the operation was answered. Returns the barriers that were waiting only for it.
  std::vector<uint64_t> End(uint64_t sequence);
  // Returns false if no operation before the barrier is unfinished. Called when the barrier is
  // executed, before any later operation is.
  bool AddBarrier(uint64_t sequence);

  // The number of answered operations.
  uint64_t ended() const { return ended_; }
  // For a restored session: `ended` operations had been answered. The others are admitted; barriers
  // among them are added with the number of operations that they wait for.
  void RestoreEnded(uint64_t ended) { ended_ = ended; }
  void RestoreBarrier(uint64_t sequence, uint64_t remaining) {
    barriers_.push_back({sequence, remaining});
  }

  bool empty() const { return count_ == 0; }
  int64_t size() const { return count_; }
  // False: no more should be received until some have ended. One operation is always accepted, so
  // that there is one to wait for.
  bool HasRoom() const;
  // Gives back the charges of all operations. End is not called afterwards.
  void Clear();

 private:
  struct Large {
    memory::Charge charge;
    int64_t bytes = 0;  // with its graph
  };
  struct Barrier {
    uint64_t sequence = 0;
    uint64_t remaining = 0;
  };

  const std::shared_ptr<memory::Account> host_;
  const Limits limits_;
  quota::Meter* const of_user_;
  int64_t count_ = 0;
  uint64_t ended_ = 0;
  memory::Charge small_;                        // for operations that are not in large_
  absl::flat_hash_map<uint64_t, Large> large_;  // by sequence number
  int64_t large_bytes_ = 0;
  std::vector<Barrier> barriers_;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_UNFINISHED_OPERATIONS_H_
