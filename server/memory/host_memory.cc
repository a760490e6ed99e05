#include "server/memory/host_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/quoted.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"

namespace kiln::memory {
namespace {

constexpr int64_t kTimesOfFree = 4;  // maximum ratio of what a user holds to what is free

constexpr absl::string_view kNames[kNumUses] = {"sessions",    "operations", "answers",
                                                "transfers",   "handles",    "graphs",
                                                "compilation", "programs",   "blobs"};

std::string Size(int64_t bytes) {
  if (bytes < 1 << 20) return absl::StrFormat("%.1f KiB", static_cast<double>(bytes) / (1 << 10));
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

absl::string_view Name(Use use) {
  KILN_CHECK_LT(static_cast<int>(use), kNumUses);
  return kNames[static_cast<size_t>(use)];
}

Charge& Charge::operator=(Charge&& other) noexcept {
  Release();
  account_ = std::move(other.account_);
  use_ = other.use_;
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

absl::Status Charge::Resize(int64_t bytes) {
  if (!account_) return absl::OkStatus();
  if (bytes > bytes_) {
    if (absl::Status status = account_->AddOrRefuse(use_, bytes - bytes_); !status.ok())
      return status;
    bytes_ = bytes;
  } else {
    ForceResize(bytes);
  }
  return absl::OkStatus();
}

void Charge::ForceResize(int64_t bytes) {
  if (!account_ || bytes == bytes_) return;
  account_->Add(use_, bytes - bytes_);
  bytes_ = bytes;
}

// A quarter is guaranteed to accounts; a sixteenth is left for charges that cannot be refused.
HostMemory::HostMemory(int64_t limit_bytes, int64_t accounts)
    : limit_(limit_bytes),
      guaranteed_(limit_bytes / 4 / accounts),
      shared_limit_(limit_bytes / 16 * 11),
      modest_(limit_bytes / 32) {}

// Only at the end: meanwhile other threads change one of the counters and not yet another.
HostMemory::~HostMemory() {
  KILN_CHECK_EQ(used_bytes(), 0);
  KILN_CHECK_EQ(shared_used_.load(), 0);
  for (int i = 0; i < kNumUses; ++i)
    KILN_CHECK_EQ(used_bytes(static_cast<Use>(i)), 0) << Name(static_cast<Use>(i));
}

Account::~Account() {
  KILN_CHECK_EQ(own_.load(), 0) << name_;
  KILN_CHECK_EQ(used_.load(), 0) << name_;
}

std::shared_ptr<Account> HostMemory::NewAccount(std::string name, std::shared_ptr<Account> parent) {
  KILN_CHECK(parent == nullptr || parent->user() == parent.get()) << name;
  KILN_CHECK(parent == nullptr || &parent->memory() == this) << name;
  return std::make_shared<Account>(shared_from_this(), std::move(name), std::move(parent));
}

std::shared_ptr<Account> HostMemory::NewUserAccount(const std::string& user) {
  return std::make_shared<Account>(shared_from_this(), absl::StrCat("user ", Quoted(user)), nullptr,
                                   user);
}

std::string HostMemory::Describe() const {
  std::vector<std::pair<int64_t, absl::string_view>> held;
  for (int i = 0; i < kNumUses; ++i) {
    const int64_t bytes = used_bytes(static_cast<Use>(i));
    // Uses below 1% of the limit do not help a person who reads the message.
    if (bytes >= limit_ / 100) held.emplace_back(bytes, kNames[i]);
  }
  std::sort(held.rbegin(), held.rend());
  const std::string parts = absl::StrJoin(held, ", ", [](std::string* out, const auto& part) {
    absl::StrAppend(out, part.second, " ", Size(part.first));
  });
  return absl::StrCat(Size(used_bytes()), " of ", Size(limit_), " are in use",
                      parts.empty() ? "" : absl::StrCat(" (", parts, ")"));
}

int64_t Account::Add(Use use, int64_t bytes) {
  used_.fetch_add(bytes, std::memory_order_relaxed);
  if (parent_) parent_->used_.fetch_add(bytes, std::memory_order_relaxed);
  const int64_t before = own_.fetch_add(bytes, std::memory_order_relaxed);
  const int64_t guaranteed = memory_->guaranteed_;
  // Only what an account holds beyond its guarantee counts as shared. What a user's sessions hold
  // is counted by their own accounts: it may change while a charge of the user's account lives.
  const int64_t shared =
      std::max<int64_t>(0, before + bytes - guaranteed) - std::max<int64_t>(0, before - guaranteed);
  memory_->used_.fetch_add(bytes, std::memory_order_relaxed);
  memory_->by_use_[HostMemory::Index(use)].fetch_add(bytes, std::memory_order_relaxed);
  if (shared != 0) memory_->shared_used_.fetch_add(shared, std::memory_order_relaxed);
  return shared;
}

bool Account::ExceedsLimit(int64_t bytes) const {
  const int64_t limit = top().limit();
  return limit > 0 && top().bytes() > limit - bytes;
}

bool Account::TryAdd(Use use, int64_t bytes) {
  if (exempt_.load(std::memory_order_relaxed)) {
    Add(use, bytes);
    return true;
  }
  // Sums with requested sizes, such as 2^62 bytes, must not overflow.
  if (bytes > memory_->limit_) return false;
  // Added first and taken back if it was too much, so that two threads never use the same free
  // memory.
  const int64_t shared = Add(use, bytes);
  // Within its guarantee an account is refused only if charges that cannot be refused exceed the
  // sixteenth that is left for them.
  if (memory_->used_bytes() <= memory_->limit_ && (shared <= 0 || MayHoldItsShare()) &&
      !ExceedsLimit(0))
    return true;
  Add(use, -bytes);
  return false;
}

bool Account::MayHoldItsShare() const {
  const int64_t shared = memory_->shared_limit_;
  const int64_t used = memory_->shared_used_.load(std::memory_order_relaxed);
  const int64_t of_user = parent_ ? parent_->bytes() : bytes();
  // Small accounts may also use the last quarter, which lets small clients continue beside a greedy
  // one. Its last half is for those whose users are small as well.
  if (bytes() <= memory_->modest_)
    return used <= (of_user <= memory_->modest_ ? shared : shared - shared / 8);
  const int64_t free = shared - shared / 4 - used;
  // Divided rather than multiplied, so that nothing overflows.
  return free >= 0 && of_user / kTimesOfFree <= free;
}

absl::Status Account::AddOrRefuse(Use use, int64_t bytes) {
  if (TryAdd(use, bytes)) return absl::OkStatus();
  if (memory_->reclaimer_) {
    // If the user's own limit is exceeded, other users' memory is not reclaimed.
    memory_->reclaimer_(bytes, ExceedsLimit(bytes) ? top().user_ : "");
    if (TryAdd(use, bytes)) return absl::OkStatus();
  }
  memory_->refused_.fetch_add(1, std::memory_order_relaxed);
  return Refusal(use, bytes);
}

absl::Status Account::Refusal(Use use, int64_t bytes) const {
  if (ExceedsLimit(bytes)) {
    return quota::Refusal({top().user_, quota::Resource::kHostMemory}, bytes, top().bytes(),
                          top().limit());
  }
  return errors::WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          "the daemon's host memory is too small for ", Size(bytes), " of ", Name(use), ": ",
          memory_->Describe(), ", ", Size(this->bytes()), " of it by ", name_,
          parent_ ? absl::StrCat(" and ", Size(parent_->bytes()), " by ", parent_->name_) : "",
          "; each session is guaranteed ", Size(memory_->guaranteed_),
          ", and all sessions of a user may hold up to ", kTimesOfFree,
          " times the memory that is free; read answers, release tensors, programs or blobs, or "
          "start kilnd with a higher --host_memory_limit")),
      "HOST_MEMORY",
      {{"use", std::string(Name(use))},
       {"bytes", absl::StrCat(bytes)},
       {"used", absl::StrCat(memory_->used_bytes())},
       {"limit", absl::StrCat(memory_->limit_)}});
}

absl::Status Account::CheckFitsAlone(Use use, int64_t bytes) const {
  const int64_t limit = top().limit();
  if (bytes <= memory_->limit_ && (limit <= 0 || bytes <= limit)) return absl::OkStatus();
  return Refusal(use, bytes);
}

absl::StatusOr<Charge> Account::Reserve(Use use, int64_t bytes) {
  Charge charge = Open(use);
  if (absl::Status status = charge.Resize(bytes); !status.ok()) return status;
  return charge;
}

}  // namespace kiln::memory
