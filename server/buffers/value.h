// A tensor's value on a device: its memory, and whether its content is available yet.
#ifndef KILN_SERVER_BUFFERS_VALUE_H_
#define KILN_SERVER_BUFFERS_VALUE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "compiler/ir/dtype.h"
#include "drivers/interface/buffer.h"
#include "proto/check/check.h"
#include "server/buffers/account.h"
#include "server/buffers/placement.h"
#include "server/memory/host_memory.h"

namespace kiln::buffers {

class Pool;

struct TensorType {
  ir::DType dtype = ir::DType::kInvalid;
  std::vector<int64_t> shape;
  bool operator==(const TensorType&) const = default;

  // Bytes of the row-major value. Requires: the type has passed CheckTensorType or the compiler.
  int64_t bytes() const;
  // "float32[8, 3]".
  std::string ToString() const;
};

// INVALID_ARGUMENT for an unknown dtype, a negative size, more than 32 dimensions, or more bytes
// than fit into an int64.
absl::Status CheckTensorType(const TensorType& type);

// The device memory of a value. A value and the one that a run writes over it have the same.
struct ValueMemory {
  ValueMemory(std::unique_ptr<drivers::Buffer> buffer, std::shared_ptr<Pool> pool,
              std::shared_ptr<Account> account, int64_t bytes, int64_t life);
  ~ValueMemory();
  ValueMemory(const ValueMemory&) = delete;
  ValueMemory& operator=(const ValueMemory&) = delete;

  std::unique_ptr<drivers::Buffer> buffer;
  const std::shared_ptr<Pool> pool;
  const std::shared_ptr<Account> account;  // has counted `bytes`; may be null
  const int64_t bytes;                     // possibly more than the value's
  const int64_t life;                      // the pool's life at the allocation
};

// Shared by the handles that name it and the runs that use it; the last one frees the memory. A
// value is *pending* until it is resolved, once, to OK (the bytes are available) or to the error
// that prevented it. Its bytes never change again, unless nothing but one run uses it: that run may
// write the value's successor over it (docs/design/programs-and-replay.md). Thread-safe.
class Value {
 public:
  using Waiter = std::function<void(const absl::Status&)>;

  // A failed value has no device memory. `charge` is for its error.
  static std::shared_ptr<Value> Failed(absl::Status status, memory::Charge charge = {});

  // A value on several devices: `parts` are pending values, one for each device of the placement,
  // by mesh coordinate. It has no memory itself. The code that resolves the parts must resolve it,
  // too.
  static std::shared_ptr<Value> Sharded(std::shared_ptr<const TensorType> type,
                                        std::shared_ptr<const Placement> placement,
                                        std::vector<std::shared_ptr<Value>> parts);

  // Use Pool::Allocate. `memory` may be null.
  Value(std::shared_ptr<const TensorType> type, std::shared_ptr<ValueMemory> memory);
  // A pending value that a run writes over `old`. Requires: `old` has memory.
  static std::shared_ptr<Value> Over(std::shared_ptr<const TensorType> type, const Value& old);
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;

  // Null for a failed value that never had a type.
  const std::shared_ptr<const TensorType>& type() const { return type_; }
  // Null unless it is on several devices; it then has no buffer and no pool.
  const std::shared_ptr<const Placement>& placement() const { return placement_; }
  absl::Span<const std::shared_ptr<Value>> parts() const { return parts_; }
  drivers::Buffer* buffer() const { return memory_ ? memory_->buffer.get() : nullptr; }
  int64_t bytes() const { return type_ ? type_->bytes() : 0; }
  // Whose memory it is; empty if it is not charged to a user.
  const std::string& user() const;
  // The pool of its device; null without memory.
  Pool* pool() const { return memory_ ? memory_->pool.get() : nullptr; }
  // The account that pays for its memory; null without one.
  const Account* account() const { return memory_ ? memory_->account.get() : nullptr; }

  // Marks a value that a run makes, as long as it is pending. Call this before other threads have
  // it.
  void SetIsResult() { is_result_ = true; }
  bool is_result() const { return is_result_; }

  // Whether the device was lost after the allocation, and the memory with it.
  bool lost() const;

  bool resolved() const { return resolved_.load(std::memory_order_acquire); }
  // Requires: resolved().
  const absl::Status& status() const {
    KILN_DCHECK(resolved());
    return status_;
  }
  // Marks it and its parts as failed, because the run that computes it has failed. It will resolve
  // with that error, but possibly not before the runs after it end. The last reason counts.
  void Doom(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Why it must not be used in computations, as far as known before it has resolved.
  absl::Status failure() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Resolves the value and its parts. Runs the waiters on this thread. Later calls do nothing.
  void Resolve(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  // `waiter` will be called when the value resolves. Returns false, without calling it, if the
  // value has already resolved.
  bool AddWaiter(Waiter waiter) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::shared_ptr<const TensorType> type_;
  std::shared_ptr<ValueMemory> memory_;  // null without memory
  bool is_result_ = false;
  std::shared_ptr<const Placement> placement_;
  std::vector<std::shared_ptr<Value>> parts_;
  memory::Charge charge_;
  std::atomic<bool> resolved_{false};
  absl::Status status_;  // written once, before resolved_
  std::atomic<bool> is_doomed_{false};
  mutable absl::Mutex mutex_;
  absl::Status doom_ ABSL_GUARDED_BY(mutex_);
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_VALUE_H_
