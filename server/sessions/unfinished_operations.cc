#include "server/sessions/unfinished_operations.h"

#include <algorithm>
#include <utility>

namespace kiln::sessions {
namespace {

// Operations up to this size are charged in bulk, without separate entries, because most operations
// of a session are small runs, thousands of them. The charge covers the operation and its answer.
constexpr int64_t kSmall = 1 << 10;
// Operations above this may be refused. Smaller ones are bounded by the number of unfinished
// operations.
constexpr int64_t kRefusable = 64 << 10;
// The same for an operation that shares its message with others.
constexpr int64_t kRefusableTogether = 4 << 10;

}  // namespace

void UnfinishedOperations::Admit(uint64_t sequence, Operation* operation, bool travels_alone) {
  ++count_;
  if (of_user_ != nullptr) of_user_->ForceTake(1);
  const int64_t bytes = SizeOf(*operation);
  // The graph was charged when it was read; here it only counts towards the limit.
  const int64_t with_graph = bytes + GraphBytes(*operation);
  if (with_graph <= kSmall) return small_.ForceResize(small_.bytes() + kSmall);
  Large large{host_->Open(memory::Use::kOperations), with_graph};
  const int64_t refusable = travels_alone ? kRefusable : kRefusableTogether;
  if (bytes <= refusable) {
    large.charge.ForceResize(bytes);
  } else if (absl::Status status = large.charge.Resize(bytes); !status.ok()) {
    Refused refused{std::move(status), NewHandles(*operation)};
    if (SizeOf(refused) > refusable) refused.handles.clear();
    *operation = std::move(refused);
    large.bytes = 0;
  }
  large_bytes_ += large.bytes;
  large_.emplace(sequence, std::move(large));
}

std::vector<uint64_t> UnfinishedOperations::End(uint64_t sequence) {
  --count_;
  if (of_user_ != nullptr) of_user_->Give(1);
  ++ended_;
  if (const auto large = large_.find(sequence); large != large_.end()) {
    large_bytes_ -= large->second.bytes;
    large_.erase(large);
  } else {
    small_.ForceResize(small_.bytes() - kSmall);
  }
  std::vector<uint64_t> reached;
  for (Barrier& barrier : barriers_) {
    if (sequence < barrier.sequence && --barrier.remaining == 0)
      reached.push_back(barrier.sequence);
  }
  if (reached.empty()) return reached;
  barriers_.erase(std::remove_if(barriers_.begin(), barriers_.end(),
                                 [](const Barrier& barrier) { return barrier.remaining == 0; }),
                  barriers_.end());
  return reached;
}

bool UnfinishedOperations::AddBarrier(uint64_t sequence) {
  // Operations are executed in order, so all that have ended came before the barrier.
  const uint64_t remaining = sequence - 1 - ended_;
  if (remaining == 0) return false;
  barriers_.push_back({sequence, remaining});
  return true;
}

bool UnfinishedOperations::HasRoom() const {
  if (count_ == 0) return true;
  // While memory is short, or the user's sessions together have reached the user's limit, a session
  // may have one unfinished operation.
  return count_ < limits_.operations && large_bytes_ < limits_.bytes &&
         !host_->memory().IsShort() && (of_user_ == nullptr || !of_user_->IsFull());
}

void UnfinishedOperations::Clear() {
  if (of_user_ != nullptr) of_user_->Give(count_);
  count_ = 0;
  large_.clear();
  small_.Release();
}

}  // namespace kiln::sessions
