#include "server/runtime/device/arenas.h"

#include <algorithm>
#include <set>
#include <utility>

#include "proto/check/check.h"

namespace kiln::runtime {

void Arenas::Validate() const {
  std::set<const Arena*> all;
  for (const auto& arena : arenas_) {
    KILN_CHECK_NE(arena, nullptr);
    KILN_CHECK_NE(arena->buffer(), nullptr);
    KILN_CHECK_EQ(arena->pool_, pool_);
    const bool is_new = all.insert(arena.get()).second;
    KILN_CHECK(is_new) << "an arena of " << arena->bytes() << " bytes is here twice";
    // Its holder shares it, and will release it.
    KILN_CHECK(!arena->held_ || arena.use_count() > 1) << "arena of " << arena->bytes() << " bytes";
  }
}

std::shared_ptr<Arena> Arenas::FindLocked(int64_t bytes, bool or_held) const {
  std::shared_ptr<Arena> best;
  for (const auto& arena : arenas_) {
    if (arena->lost() || arena->bytes() < bytes || (arena->held_ && !or_held)) continue;
    // Reserve does not need to keep the small ones.
    const bool is_better = best == nullptr || (or_held ? arena->bytes() > best->bytes()
                                                       : arena->bytes() < best->bytes());
    if (is_better) best = arena;
  }
  return best;
}

Arenas::List Arenas::TakeSurplus() {
  // Only Reserve and Take can share an idle arena again, and they do so under the lock.
  const auto is_idle = [](const auto& arena) { return arena.use_count() == 1 && !arena->held_; };
  const Arena* kept = nullptr;
  for (const auto& arena : arenas_) {
    if (!is_idle(arena) || arena->lost()) continue;
    if (kept == nullptr || arena->bytes() > kept->bytes()) kept = arena.get();
  }
  const auto surplus = std::stable_partition(
      arenas_.begin(), arenas_.end(),
      [&](const auto& arena) { return !is_idle(arena) || arena.get() == kept; });
  List taken(std::make_move_iterator(surplus), std::make_move_iterator(arenas_.end()));
  arenas_.erase(surplus, arenas_.end());
  return taken;
}

absl::StatusOr<std::shared_ptr<Arena>> Arenas::Make(int64_t bytes) {
  const int64_t life = pool_->life();
  auto buffer = pool_->AllocateBytes(bytes);
  if (!buffer.ok()) return buffer.status();
  auto arena = std::make_shared<Arena>(pool_, std::move(*buffer), life);
  absl::MutexLock lock(&mutex_);
  arenas_.push_back(arena);
  KILN_VALIDATE(*this, arenas_.size());
  return arena;
}

absl::StatusOr<std::shared_ptr<Arena>> Arenas::Reserve(int64_t bytes) {
  absl::MutexLock making(&making_mutex_);
  {
    List smaller;  // destroyed without the lock, before the new one is made: both might not fit
    absl::MutexLock lock(&mutex_);
    if (auto arena = FindLocked(bytes, /*or_held=*/true)) return arena;
    smaller = TakeSurplus();
    // The largest one is too small as well.
    std::erase_if(arenas_, [&](std::shared_ptr<Arena>& arena) {
      if (arena.use_count() > 1 || arena->held_) return false;
      smaller.push_back(std::move(arena));
      return true;
    });
    KILN_VALIDATE(*this, arenas_.size());
  }
  return Make(bytes);
}

absl::StatusOr<std::shared_ptr<Arena>> Arenas::Take(int64_t bytes, bool hold) {
  absl::MutexLock making(&making_mutex_);
  std::shared_ptr<Arena> arena;
  {
    absl::MutexLock lock(&mutex_);
    arena = FindLocked(bytes, /*or_held=*/false);
  }
  if (arena == nullptr) {
    auto made = Make(bytes);
    if (absl::IsResourceExhausted(made.status())) return nullptr;
    if (!made.ok()) return made.status();
    arena = *std::move(made);
  }
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(!arena->held_) << "two runs would share an arena";
  KILN_CHECK_GE(arena->bytes(), bytes);
  arena->held_ = hold;
  KILN_VALIDATE(*this, arenas_.size());
  return arena;
}

void Arenas::Release(Arena& arena) {
  List surplus;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(arena.held_);
  arena.held_ = false;
  surplus = TakeSurplus();
  KILN_VALIDATE(*this, arenas_.size());
}

void Arenas::DropIdle() {
  // Must not take making_mutex_: Make allocates while it holds it, and the allocation may call
  // this.
  List idle;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  const auto first = std::stable_partition(arenas_.begin(), arenas_.end(), [](const auto& arena) {
    return arena.use_count() > 1 || arena->held_;
  });
  idle.assign(std::make_move_iterator(first), std::make_move_iterator(arenas_.end()));
  arenas_.erase(first, arenas_.end());
  KILN_VALIDATE(*this, arenas_.size());
}

int Arenas::count() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(arenas_.size());
}

}  // namespace kiln::runtime
