#include "server/buffers/account.h"

#include <algorithm>

#include "proto/check/check.h"

namespace kiln::buffers {

Account::~Account() {
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(arenas_.empty());
  KILN_CHECK_EQ(arena_bytes_, 0);
  KILN_CHECK_EQ(bytes_.used(), 0) << "bytes on a device of user " << user();
  KILN_CHECK_EQ(buffers_.used(), 0) << "values of user " << user();
}

void Account::Validate() const {
  for (const auto& [bytes, count] : arenas_) {
    KILN_CHECK_GE(bytes, 0);
    KILN_CHECK_GT(count, 0) << "arenas of " << bytes << " bytes";
  }
  // Only the largest counts.
  KILN_CHECK_EQ(arena_bytes_, arenas_.empty() ? 0 : arenas_.rbegin()->first);
}

void Account::ForceAdd(int64_t bytes) {
  bytes_.ForceTake(bytes);
  buffers_.ForceTake(1);
  if (parent_) parent_->ForceAdd(bytes);
}

void Account::ForceAddBytes(int64_t bytes) {
  bytes_.ForceTake(bytes);
  if (parent_) parent_->ForceAddBytes(bytes);
}

absl::Status Account::Add(int64_t bytes) {
  KILN_CHECK_GE(bytes, 0);
  if (exempt_.load(std::memory_order_relaxed)) {
    ForceAdd(bytes);
    return absl::OkStatus();
  }
  if (absl::Status status = bytes_.Take(bytes); !status.ok()) return status;
  absl::Status status = buffers_.Take(1);
  if (status.ok()) {
    if (parent_) status = parent_->Add(bytes);
    if (status.ok()) return status;
    buffers_.Give(1);
  }
  bytes_.Give(bytes);
  return status;
}

void Account::Remove(int64_t bytes) {
  // Not of the bytes, whose sum may wrap for a moment, because clients choose them.
  KILN_CHECK_GE(buffers_.used(), 1) << "a value of user " << user() << " was removed twice";
  bytes_.Give(bytes);
  buffers_.Give(1);
  if (parent_) parent_->Remove(bytes);
}

absl::Status Account::AddBytes(int64_t bytes) {
  if (exempt_.load(std::memory_order_relaxed)) {
    ForceAddBytes(bytes);
    return absl::OkStatus();
  }
  if (absl::Status status = bytes_.Take(bytes); !status.ok() || !parent_) return status;
  absl::Status status = parent_->AddBytes(bytes);
  if (!status.ok()) bytes_.Give(bytes);
  return status;
}

void Account::RemoveBytes(int64_t bytes) {
  bytes_.Give(bytes);
  if (parent_) parent_->RemoveBytes(bytes);
}

absl::StatusOr<std::unique_ptr<Account::Arena>> Account::AddArena(int64_t bytes) {
  {
    absl::MutexLock lock(&mutex_);
    const int64_t largest = arenas_.empty() ? 0 : arenas_.rbegin()->first;
    if (absl::Status status = AddBytes(std::max<int64_t>(0, bytes - largest)); !status.ok())
      return status;
    ++arenas_[bytes];
    arena_bytes_ = std::max(largest, bytes);
    KILN_VALIDATE(*this, arenas_.size());
  }
  return std::make_unique<Arena>(shared_from_this(), bytes);
}

void Account::RemoveArena(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  const auto found = arenas_.find(bytes);
  KILN_CHECK(found != arenas_.end()) << "an arena of " << bytes << " bytes";
  if (--found->second > 0) return;
  const bool was_largest = std::next(found) == arenas_.end();
  arenas_.erase(found);
  if (!was_largest) return;
  const int64_t largest = arenas_.empty() ? 0 : arenas_.rbegin()->first;
  RemoveBytes(bytes - largest);
  arena_bytes_ = largest;
  KILN_VALIDATE(*this, arenas_.size());
}

}  // namespace kiln::buffers
