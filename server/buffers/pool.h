// The memory of one device as the daemon hands it out.
#ifndef KILN_SERVER_BUFFERS_POOL_H_
#define KILN_SERVER_BUFFERS_POOL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "drivers/interface/device.h"
#include "server/buffers/account.h"
#include "server/buffers/block_owners.h"
#include "server/buffers/value.h"

namespace kiln::buffers {

// Thread-safe. Shared: values keep it, and with it the promise that the device still exists.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  // `limit_bytes` bounds what is handed out at once, within the device's memory; 0: all of that.
  // `device` outlives the pool and its values.
  Pool(drivers::Device& device, int64_t limit_bytes);

  // Called when something does not fit, before it is refused: gives back what nobody needs any
  // more. Any thread may call it, with locks held. Before anything is allocated.
  void SetReclaimer(std::function<void()> reclaimer) { reclaimer_ = std::move(reclaimer); }

  drivers::Device& device() const { return device_; }
  int64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
  int64_t total_bytes() const { return limit_; }

  // How often the device was lost and revived. What was allocated before is gone.
  int64_t life() const { return life_.load(std::memory_order_acquire); }
  void BeginLife() { life_.fetch_add(1, std::memory_order_acq_rel); }
  // UNAVAILABLE: what is said of a value from an earlier life.
  absl::Status LostError() const;

  // Memory that the host sees is cleared unless it was the same user's before, or is the system's
  // fresh pages, which are made when they are first written to. A pending value with
  // memory for `type`, and for `at_least` bytes. RESOURCE_EXHAUSTED names what was asked for and
  // what is left, or is quota::Refusal of `account`; other errors are the device's.
  absl::StatusOr<std::shared_ptr<Value>> Allocate(std::shared_ptr<const TensorType> type,
                                                  std::shared_ptr<Account> account,
                                                  int64_t at_least = 0);
  // Memory without a type, for intermediate results; give it back with Free.
  absl::StatusOr<std::unique_ptr<drivers::Buffer>> AllocateBytes(int64_t bytes);
  // `owner`: whose bytes are in it (Account::top); null: those of several users.
  void Free(std::unique_ptr<drivers::Buffer> buffer, const void* owner = nullptr);
  // Of memory that was not the same user's before; for tests.
  int64_t cleared_bytes() const { return cleared_.load(std::memory_order_relaxed); }

  // Called once, on a thread of the device's or before the call returns; must not block.
  using Done = std::function<void(const absl::Status&)>;
  // Writes the pieces, one after another, to a fresh value, which nothing submitted uses yet; other
  // copies come in between. A list that uses it and is submitted from now on starts after `done`,
  // and until then holds up those behind it. Does not resolve the value. The value and the pieces
  // must live until `done`.
  void Fill(Value& value, absl::Span<const absl::string_view> pieces, Done done);
  // The same for one piece of a value that is filled piece by piece, each once the one before it
  // has ended.
  void FillPart(Value& value, int64_t offset, absl::string_view piece, Done done);
  // Reads [offset, offset + destination.size()) of a value that resolved to OK. The value and the
  // destination must live until `done`.
  void Read(const Value& value, int64_t offset, absl::Span<char> destination, Done done);
  // True if both are plain copies in memory, which have ended when the call returns.
  static bool IsHostMemory(const Value& value);
  // Waits until no `done` of either is outstanding; false if `timeout` passes first.
  bool WaitForCopies(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(copies_mutex_);

 private:
  // Counts a copy until `done` has been called, and what it holds is gone.
  Done Counted(Done done) ABSL_LOCKS_EXCLUDED(copies_mutex_);
  bool TryReserve(int64_t bytes);
  absl::Status Refusal(int64_t bytes) const;
  void ClearOthers(drivers::Buffer& buffer, const Account& account);
  // The device's, counted.
  absl::StatusOr<std::unique_ptr<drivers::Buffer>> TryAllocate(int64_t bytes);

  drivers::Device& device_;
  const int64_t limit_;
  std::function<void()> reclaimer_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> cleared_{0};
  BlockOwners owners_;
  std::atomic<int64_t> life_{0};
  absl::Mutex copies_mutex_;
  int64_t copies_ ABSL_GUARDED_BY(copies_mutex_) = 0;  // under way
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_POOL_H_
