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
#include "server/errors/errors.h"

namespace kiln::buffers {
namespace {

// Copies pieces to a buffer, each when the one before it has ended, so that other users' copies
// come in between.
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
        if (!ended_) return;  // its end continues
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
  // Of the thread that continues.
  size_t next_ = 0;
  int64_t offset_ = 0;

  absl::Mutex mutex_;
  bool starting_ ABSL_GUARDED_BY(mutex_) = false;              // the call has not returned
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);  // the copy that was started last
};

}  // namespace

Pool::Pool(drivers::Device& device, int64_t limit_bytes)
    : device_(device),
      limit_(limit_bytes > 0 ? std::min(limit_bytes, device.info().memory_bytes)
                             : device.info().memory_bytes) {}

bool Pool::TryReserve(int64_t bytes) {
  // Added first and taken back if it was too much, so that two threads never find the same room.
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
    // The pool has room, but the device does not: rounding or other programs may take what is left.
    return errors::WithReason(buffer.status(), "OUT_OF_MEMORY",
                              {{"device", device_.info().name}, {"bytes", absl::StrCat(bytes)}});
  }
  // What the device gave counts, so that Free can take back the same.
  used_.fetch_add((*buffer)->bytes() - bytes, std::memory_order_relaxed);
  return buffer;
}

absl::StatusOr<std::unique_ptr<drivers::Buffer>> Pool::AllocateBytes(int64_t bytes) {
  auto buffer = TryAllocate(bytes);
  // What would not fit an empty device is no reason to take anything from others.
  const bool may_help = reclaimer_ && bytes <= limit_;
  if (!absl::IsResourceExhausted(buffer.status()) || !may_help) return buffer;
  reclaimer_();
  return TryAllocate(bytes);
}

void Pool::ClearOthers(drivers::Buffer& buffer, const Account& account) {
  void* const host = buffer.host_pointer();
  if (host == nullptr) return;
  const bool was_his = owners_.Take(host, account.top());
  const drivers::Buffer::Contents contents = buffer.contents();
  if (contents == drivers::Buffer::Contents::kZero) return;
  // Of memory that has gone back to the system since, nobody knows whose it was meanwhile.
  if (contents == drivers::Buffer::Contents::kLeft && was_his) return;
  std::memset(host, 0, static_cast<size_t>(buffer.bytes()));
  cleared_.fetch_add(buffer.bytes(), std::memory_order_relaxed);
}

void Pool::Free(std::unique_ptr<drivers::Buffer> buffer, const void* owner) {
  // Before the device may give it to somebody else.
  if (const void* host = buffer->host_pointer()) owners_.GivenBack(host, owner);
  used_.fetch_sub(buffer->bytes(), std::memory_order_relaxed);
  buffer.reset();
}

absl::StatusOr<std::shared_ptr<Value>> Pool::Allocate(std::shared_ptr<const TensorType> type,
                                                      std::shared_ptr<Account> account,
                                                      int64_t at_least) {
  const int64_t life = this->life();  // before the memory, which may be the next one's
  const int64_t bytes = std::max(type->bytes(), at_least);
  // First: one who may have no more is no reason to take anything from others.
  if (account)
    if (absl::Status status = account->Add(bytes); !status.ok()) return status;
  auto buffer = AllocateBytes(bytes);
  if (!buffer.ok()) {
    if (account) account->Remove(bytes);
    return buffer.status();
  }
  if (account) ClearOthers(**buffer, *account);
  return std::make_shared<Value>(std::move(type), std::move(*buffer), shared_from_this(),
                                 std::move(account), at_least, life);
}

absl::Status Pool::LostError() const {
  const std::string& name = device_.info().name;
  return errors::WithReason(
      absl::UnavailableError(absl::StrCat("the tensor was lost when device ", name,
                                          " failed; the device works again: make it anew")),
      "DEVICE_LOST", {{"device", name}});
}

void Pool::Fill(Value& value, absl::Span<const absl::string_view> pieces, Done done) {
  if (value.lost()) return done(LostError());
  if (void* host = value.buffer()->host_pointer()) {
    // The value is fresh, so that nothing on the device orders with this copy.
    char* to = static_cast<char*>(host);
    for (const absl::string_view piece : pieces) to = std::copy(piece.begin(), piece.end(), to);
    return done(absl::OkStatus());
  }
  std::make_shared<Filling>(device_, *value.buffer(), pieces, Counted(std::move(done)))->Continue();
}

void Pool::FillPart(Value& value, int64_t offset, absl::string_view piece, Done done) {
  if (value.lost()) return done(LostError());
  if (void* host = value.buffer()->host_pointer()) {
    std::memcpy(static_cast<char*>(host) + offset, piece.data(), piece.size());
    return done(absl::OkStatus());
  }
  const Done counted = Counted(std::move(done));
  const absl::Status started = device_.StartCopyToDevice(*value.buffer(), offset, piece, counted);
  if (!started.ok()) counted(started);
}

bool Pool::IsHostMemory(const Value& value) {
  return value.buffer() != nullptr && value.buffer()->host_pointer() != nullptr;
}

void Pool::Read(const Value& value, int64_t offset, absl::Span<char> destination, Done done) {
  if (value.lost()) return done(LostError());
  if (destination.empty()) return done(absl::OkStatus());
  if (const void* host = value.buffer()->host_pointer()) {
    // A resolved value never changes.
    std::memcpy(destination.data(), static_cast<const char*>(host) + offset, destination.size());
    return done(absl::OkStatus());
  }
  const Done counted = Counted(std::move(done));
  const absl::Status started =
      device_.StartCopyToHost(*value.buffer(), offset, destination, counted);
  if (!started.ok()) counted(started);
}

Pool::Done Pool::Counted(Done done) {
  {
    absl::MutexLock lock(&copies_mutex_);
    ++copies_;
  }
  auto held = std::make_shared<Done>(std::move(done));
  return [self = shared_from_this(), held = std::move(held)](const absl::Status& status) {
    (*held)(status);
    // Before it counts as ended: the last reference to a call or a session may be in it.
    *held = nullptr;
    absl::MutexLock lock(&self->copies_mutex_);
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
