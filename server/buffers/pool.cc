#include "server/buffers/pool.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"

namespace kiln::buffers {
namespace {

// Copies pieces to a buffer, each after the previous one has ended, so that other users' copies can
// run in between.
class Filling : public std::enable_shared_from_this<Filling> {
 public:
  Filling(drivers::Device& device, drivers::Buffer& buffer,
          absl::Span<const absl::string_view> pieces, Pool::Done done)
      : device_(device),
        buffer_(buffer),
        pieces_(pieces.begin(), pieces.end()),
        done_(std::move(done)) {}

  // A loop, since copies may end before the call that starts them returns.
  void Continue() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (next_ < pieces_.size()) {
      const absl::string_view piece = pieces_[next_++];
      const int64_t offset = std::exchange(offset_, offset_ + static_cast<int64_t>(piece.size()));
      {
        absl::MutexLock lock(&mutex_);
        starting_ = true;
        ended_.reset();
      }
      const absl::Status started = device_.StartCopyToDevice(
          buffer_, offset, piece,
          [self = shared_from_this()](const absl::Status& status) { self->Ended(status); });
      if (!started.ok()) return done_(started);
      absl::Status status;
      {
        absl::MutexLock lock(&mutex_);
        starting_ = false;
        if (!ended_) return;  // the copy's callback will continue
        status = *ended_;
      }
      if (!status.ok()) return done_(status);
    }
    done_(absl::OkStatus());
  }

 private:
  void Ended(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      KILN_CHECK(!ended_) << "a copy ended twice";
      ended_ = status;
      if (starting_) return;
    }
    if (!status.ok()) return done_(status);
    Continue();
  }

  drivers::Device& device_;
  drivers::Buffer& buffer_;
  const std::vector<absl::string_view> pieces_;
  const Pool::Done done_;
  // Used only by the thread that continues.
  size_t next_ = 0;
  int64_t offset_ = 0;

  absl::Mutex mutex_;
  bool starting_ ABSL_GUARDED_BY(mutex_) = false;              // StartCopy has not returned
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);  // result of the last started copy
};

// The value's buffer. Requires: it has one, and [offset, offset + bytes) is within it: a copy
// beyond it would read or change another user's memory.
drivers::Buffer& BufferWith(const Value& value, int64_t offset, size_t bytes) {
  KILN_CHECK_NE(value.buffer(), nullptr);
  KILN_CHECK_GE(offset, 0);
  KILN_CHECK_LE(offset, value.buffer()->bytes());
  KILN_CHECK_LE(bytes, value.buffer()->bytes() - offset);
  return *value.buffer();
}

size_t SizeOf(absl::Span<const absl::string_view> pieces) {
  size_t size = 0;
  for (const absl::string_view piece : pieces) size += piece.size();
  return size;
}

}  // namespace

Pool::Pool(drivers::Device& device, int64_t limit_bytes)
    : device_(device),
      limit_(limit_bytes > 0 ? std::min(limit_bytes, device.info().memory_bytes)
                             : device.info().memory_bytes) {}

Pool::~Pool() {
  KILN_CHECK_EQ(used_.load(), 0) << "bytes were not freed";
  absl::MutexLock lock(&copies_mutex_);
  KILN_CHECK_EQ(copies_, 0);
}

bool Pool::TryReserve(int64_t bytes) {
  KILN_CHECK_GE(bytes, 0);
  // Added first and subtracted again if it was too much, so that two threads never use the same
  // free bytes.
  const int64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes <= limit_ - before) return true;
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

absl::Status Pool::Refusal(int64_t bytes) const {
  const std::string& name = device_.info().name;
  return errors::WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          bytes, " bytes do not fit on ", name, ": ", used_bytes(), " of ", limit_,
          " bytes are in use; release tensors, use a smaller batch, or raise the memory limit")),
      "OUT_OF_MEMORY",
      {{"device", name}, {"bytes", absl::StrCat(bytes)}, {"limit", absl::StrCat(limit_)}});
}

absl::StatusOr<std::unique_ptr<drivers::Buffer>> Pool::TryAllocate(int64_t bytes) {
  if (!TryReserve(bytes)) return Refusal(bytes);
  auto buffer = device_.Allocate(bytes);
  if (!buffer.ok()) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    if (!absl::IsResourceExhausted(buffer.status())) return buffer.status();
    // The pool has enough, but the device does not: rounding or other programs may use the rest.
    return errors::WithReason(buffer.status(), "OUT_OF_MEMORY",
                              {{"device", device_.info().name}, {"bytes", absl::StrCat(bytes)}});
  }
  // Counts what the device allocated, so that Free can subtract the same.
  used_.fetch_add((*buffer)->bytes() - bytes, std::memory_order_relaxed);
  return buffer;
}

absl::StatusOr<std::unique_ptr<drivers::Buffer>> Pool::AllocateBytes(int64_t bytes) {
  auto buffer = TryAllocate(bytes);
  // A request that would not fit an empty device must not evict others' data.
  if (!absl::IsResourceExhausted(buffer.status()) || bytes > limit_) return buffer;
  TakeReservations();
  buffer = TryAllocate(bytes);
  if (!absl::IsResourceExhausted(buffer.status()) || !reclaimer_) return buffer;
  reclaimer_();
  return TryAllocate(bytes);
}

absl::StatusOr<std::unique_ptr<Pool::Reservation>> Pool::Reserve(int64_t bytes,
                                                                 std::shared_ptr<Account> account,
                                                                 GiveUp give_up) {
  if (absl::Status status = account->Add(bytes); !status.ok()) return status;
  bool fits = TryReserve(bytes);
  if (!fits && bytes <= limit_) {
    TakeReservations();
    fits = TryReserve(bytes);
  }
  if (!fits && reclaimer_ && bytes <= limit_) {
    reclaimer_();
    fits = TryReserve(bytes);
  }
  if (fits) {
    return std::make_unique<Reservation>(shared_from_this(), std::move(account), bytes,
                                         std::move(give_up));
  }
  account->Remove(bytes);
  return Refusal(bytes);
}

Pool::Reservation::Reservation(std::shared_ptr<Pool> pool, std::shared_ptr<Account> account,
                               int64_t bytes, GiveUp give_up)
    : pool_(std::move(pool)),
      account_(std::move(account)),
      bytes_(bytes),
      give_up_(std::move(give_up)) {
  if (give_up_ == nullptr) return;
  absl::MutexLock lock(&pool_->reservations_mutex_);
  pool_->reservations_.insert(this);
}

Pool::Reservation::~Reservation() {
  if (give_up_ != nullptr) {
    absl::MutexLock lock(&pool_->reservations_mutex_);
    if (pool_->reservations_.erase(this) == 0) return;  // it was given up
  }
  pool_->used_.fetch_sub(bytes_, std::memory_order_relaxed);
  account_->Remove(bytes_);
}

void Pool::TakeReservations() {
  absl::MutexLock lock(&reservations_mutex_);
  for (auto each = reservations_.begin(); each != reservations_.end();) {
    const Reservation& reservation = **each;
    if (!reservation.give_up_()) {
      ++each;
      continue;
    }
    each = reservations_.erase(each);
    used_.fetch_sub(reservation.bytes_, std::memory_order_relaxed);
    reservation.account_->Remove(reservation.bytes_);
  }
}

void Pool::ClearOthers(drivers::Buffer& buffer, const Account& account) {
  void* const host = buffer.host_pointer();
  if (host == nullptr) return;
  const bool was_his = owners_.Take(host, account.top());
  const drivers::Buffer::Contents contents = buffer.contents();
  if (contents == drivers::Buffer::Contents::kZero) return;
  // Memory that has meanwhile been returned to the system may have had other owners.
  if (contents == drivers::Buffer::Contents::kLeft && was_his) return;
  std::memset(host, 0, static_cast<size_t>(buffer.bytes()));
  cleared_.fetch_add(buffer.bytes(), std::memory_order_relaxed);
}

void Pool::Free(std::unique_ptr<drivers::Buffer> buffer, const void* owner) {
  KILN_CHECK_NE(buffer, nullptr);
  // Before the device can hand it to another user.
  if (const void* host = buffer->host_pointer()) owners_.GivenBack(host, owner);
  used_.fetch_sub(buffer->bytes(), std::memory_order_relaxed);
  buffer.reset();
}

absl::StatusOr<std::shared_ptr<Value>> Pool::Allocate(std::shared_ptr<const TensorType> type,
                                                      std::shared_ptr<Account> account,
                                                      int64_t bytes_min) {
  const int64_t life = this->life();  // read before allocating, which may already use a new life
  const int64_t bytes = std::max(type->bytes(), bytes_min);
  // First, because a user at their limit must not evict others' data.
  if (account)
    if (absl::Status status = account->Add(bytes); !status.ok()) return status;
  auto buffer = AllocateBytes(bytes);
  if (!buffer.ok()) {
    if (account) account->Remove(bytes);
    return buffer.status();
  }
  if (account) ClearOthers(**buffer, *account);
  auto memory = std::make_shared<ValueMemory>(*std::move(buffer), shared_from_this(),
                                              std::move(account), bytes, life);
  return std::make_shared<Value>(std::move(type), std::move(memory));
}

absl::Status Pool::LostError() const {
  const std::string& name = device_.info().name;
  return errors::WithReason(absl::UnavailableError(absl::StrCat(
                                "the tensor was lost when device ", name,
                                " failed; the device works again, so create the tensor again")),
                            "DEVICE_LOST", {{"device", name}});
}

void Pool::Fill(Value& value, absl::Span<const absl::string_view> pieces, Done done) {
  if (value.lost()) return done(LostError());
  drivers::Buffer& buffer = BufferWith(value, 0, SizeOf(pieces));
  done = Recorded(value, /*to_device=*/true, SizeOf(pieces), std::move(done));
  if (void* host = buffer.host_pointer()) {
    // The value is new, so no work on the device is ordered with this copy.
    char* to = static_cast<char*>(host);
    for (const absl::string_view piece : pieces) to = std::copy(piece.begin(), piece.end(), to);
    return done(absl::OkStatus());
  }
  std::make_shared<Filling>(device_, buffer, pieces, Counted(std::move(done)))->Continue();
}

void Pool::FillPart(Value& value, int64_t offset, absl::string_view piece, Done done) {
  if (value.lost()) return done(LostError());
  drivers::Buffer& buffer = BufferWith(value, offset, piece.size());
  done = Recorded(value, /*to_device=*/true, piece.size(), std::move(done));
  if (void* host = buffer.host_pointer()) {
    std::memcpy(static_cast<char*>(host) + offset, piece.data(), piece.size());
    return done(absl::OkStatus());
  }
  const Done counted = Counted(std::move(done));
  const absl::Status started = device_.StartCopyToDevice(buffer, offset, piece, counted);
  if (!started.ok()) counted(started);
}

bool Pool::IsHostMemory(const Value& value) {
  return value.buffer() != nullptr && value.buffer()->host_pointer() != nullptr;
}

void Pool::Read(const Value& value, int64_t offset, absl::Span<char> destination, Done done) {
  if (value.lost()) return done(LostError());
  if (destination.empty()) return done(absl::OkStatus());
  drivers::Buffer& buffer = BufferWith(value, offset, destination.size());
  done = Recorded(value, /*to_device=*/false, destination.size(), std::move(done));
  if (const void* host = buffer.host_pointer()) {
    // A resolved value never changes.
    std::memcpy(destination.data(), static_cast<const char*>(host) + offset, destination.size());
    return done(absl::OkStatus());
  }
  const Done counted = Counted(std::move(done));
  const absl::Status started = device_.StartCopyToHost(buffer, offset, destination, counted);
  if (!started.ok()) counted(started);
}

Pool::Done Pool::Recorded(const Value& value, bool to_device, size_t bytes, Done done) {
  (to_device ? bytes_to_device_ : bytes_from_device_)
      .fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  if (!trace::IsOn(recorder_)) return done;
  trace::Span span{.kind = trace::Kind::kCopy,
                   .start = recorder_->now(),
                   .duration = absl::ZeroDuration(),
                   .name = to_device ? "to device" : "from device",
                   .user = value.user(),
                   .device = device_.info().name,
                   .bytes = static_cast<int64_t>(bytes)};
  return [recorder = recorder_, span = std::move(span),
          done = std::move(done)](const absl::Status& status) mutable {
    span.duration = recorder->now() - span.start;
    recorder->Add(std::move(span));
    done(status);
  };
}

Pool::Done Pool::Counted(Done done) {
  {
    absl::MutexLock lock(&copies_mutex_);
    ++copies_;
  }
  auto held = std::make_shared<Done>(std::move(done));
  return [self = shared_from_this(), held = std::move(held)](const absl::Status& status) {
    KILN_CHECK(*held != nullptr) << "a copy ended twice";
    (*held)(status);
    // Before the copy counts as ended, since it may hold the last reference to a call or a session.
    *held = nullptr;
    absl::MutexLock lock(&self->copies_mutex_);
    KILN_CHECK_GT(self->copies_, 0);
    --self->copies_;
  };
}

bool Pool::WaitForCopies(absl::Duration timeout) {
  absl::MutexLock lock(&copies_mutex_);
  return copies_mutex_.AwaitWithTimeout(
      absl::Condition(
          +[](int64_t* copies) { return *copies == 0; }, &copies_),
      timeout);
}

}  // namespace kiln::buffers
