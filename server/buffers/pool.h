// The daemon's pool of one device's memory.
#ifndef KILN_SERVER_BUFFERS_POOL_H_
#define KILN_SERVER_BUFFERS_POOL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
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
#include "server/trace/recorder.h"

namespace kiln::buffers {

// Thread-safe. Shared: values keep it alive, and with it the guarantee that the device exists.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  // `limit_bytes` bounds the memory in use, within the device's memory; 0: all of the device's
  // memory. `device` must outlive the pool and its values.
  Pool(drivers::Device& device, int64_t limit_bytes);
  // Requires: all memory has been freed. (Copies under way keep it alive.)
  ~Pool();

  // `reclaimer` is called when an allocation does not fit, before it is refused, and frees what is
  // no longer needed. It may be called on any thread, with locks held. Call this before any
  // allocation.
  void SetReclaimer(std::function<void()> reclaimer) { reclaimer_ = std::move(reclaimer); }

  // Copies are recorded there, which outlives the pool. Call this before any allocation.
  void SetRecorder(trace::Recorder* recorder) { recorder_ = recorder; }

  drivers::Device& device() const { return device_; }
  int64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
  int64_t total_bytes() const { return limit_; }

  // How often the device was lost and revived. Memory allocated in an earlier life is gone.
  int64_t life() const { return life_.load(std::memory_order_acquire); }
  void BeginLife() { life_.fetch_add(1, std::memory_order_acq_rel); }
  // UNAVAILABLE: the error for a value from an earlier life.
  absl::Status LostError() const;

  // Returns a pending value with memory for `type`, and for at least `bytes_min` bytes.
  // Host-visible memory is cleared unless it belonged to the same user before, or is fresh pages of
  // the system, which are supplied on first write. RESOURCE_EXHAUSTED names the requested size and
  // what is left, or is quota::Refusal of `account`; other errors are the device's.
  absl::StatusOr<std::shared_ptr<Value>> Allocate(std::shared_ptr<const TensorType> type,
                                                  std::shared_ptr<Account> account,
                                                  int64_t bytes_min = 0);
  // Memory without a type, for intermediate results; return it with Free.
  absl::StatusOr<std::unique_ptr<drivers::Buffer>> AllocateBytes(int64_t bytes);
  // Requires: this pool has allocated it. `owner`: the user whose bytes are in it (Account::top);
  // null: several users.
  void Free(std::unique_ptr<drivers::Buffer> buffer, const void* owner = nullptr);

  // Called when an allocation or another reservation does not fit, on any thread, possibly with
  // locks held. Returns true if the memory is free now: it is not counted any more. Must neither
  // call the pool nor destroy the reservation.
  using GiveUp = std::function<bool()>;

  // Memory of the device that another process of this daemon uses, counted during this object's
  // lifetime, or until it is given up.
  class Reservation {
   public:
    Reservation(std::shared_ptr<Pool> pool, std::shared_ptr<Account> account, int64_t bytes,
                GiveUp give_up);
    // Waits for a call of `give_up`.
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

   private:
    friend class Pool;
    const std::shared_ptr<Pool> pool_;
    const std::shared_ptr<Account> account_;
    const int64_t bytes_;
    const GiveUp give_up_;
  };
  // RESOURCE_EXHAUSTED as of Allocate, or quota::Refusal of `account`. `give_up` may be null.
  absl::StatusOr<std::unique_ptr<Reservation>> Reserve(int64_t bytes,
                                                       std::shared_ptr<Account> account,
                                                       GiveUp give_up = nullptr);
  // Bytes cleared because they did not belong to the same user before; for tests.
  int64_t cleared_bytes() const { return cleared_.load(std::memory_order_relaxed); }

  // Called once, on a device thread or before the call returns; must not block.
  using Done = std::function<void(const absl::Status&)>;
  // Requires of Fill, FillPart and Read: the value has a buffer, and the bytes are within it.
  //
  // Writes the pieces, one after another, to a new value that no submitted work uses yet; other
  // copies can run in between. A list that uses it and is submitted from now on starts after
  // `done`, and blocks the lists after it until then. Does not resolve the value. The value and the
  // pieces must live until `done`.
  void Fill(Value& value, absl::Span<const absl::string_view> pieces, Done done);
  // The same for one piece of a value that is filled piece by piece, each after the previous one
  // has ended.
  void FillPart(Value& value, int64_t offset, absl::string_view piece, Done done);
  // Reads [offset, offset + destination.size()) of a value that resolved to OK. The value and the
  // destination must live until `done`.
  void Read(const Value& value, int64_t offset, absl::Span<char> destination, Done done);
  // Whether both are plain memory copies, which have ended when the call returns.
  static bool IsHostMemory(const Value& value);
  // Bytes copied to values, and from them, since the daemon started.
  int64_t bytes_to_device() const { return bytes_to_device_.load(std::memory_order_relaxed); }
  int64_t bytes_from_device() const { return bytes_from_device_.load(std::memory_order_relaxed); }
  // Waits until no `done` of either is pending; returns false if `timeout` passes first.
  bool WaitForCopies(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(copies_mutex_);

 private:
  // Counts a copy until `done` has been called and everything it holds is destroyed.
  Done Counted(Done done) ABSL_LOCKS_EXCLUDED(copies_mutex_);
  // Counts the bytes of a copy that begins, and records it if it is traced.
  Done Recorded(const Value& value, bool to_device, size_t bytes, Done done);
  bool TryReserve(int64_t bytes);
  // Has reservations given up.
  void TakeReservations() ABSL_LOCKS_EXCLUDED(reservations_mutex_);
  absl::Status Refusal(int64_t bytes) const;
  void ClearOthers(drivers::Buffer& buffer, const Account& account);
  // Allocates from the device and counts it.
  absl::StatusOr<std::unique_ptr<drivers::Buffer>> TryAllocate(int64_t bytes);

  drivers::Device& device_;
  const int64_t limit_;
  std::function<void()> reclaimer_;
  trace::Recorder* recorder_ = nullptr;
  std::atomic<int64_t> bytes_to_device_{0};
  std::atomic<int64_t> bytes_from_device_{0};
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> cleared_{0};
  // Held while a reservation is given up, before the locks of those who do so.
  absl::Mutex reservations_mutex_;
  // Those that may be given up and are not.
  std::set<const Reservation*> reservations_ ABSL_GUARDED_BY(reservations_mutex_);
  BlockOwners owners_;
  std::atomic<int64_t> life_{0};
  absl::Mutex copies_mutex_;
  int64_t copies_ ABSL_GUARDED_BY(copies_mutex_) = 0;  // under way
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_POOL_H_
