#include "server/sessions/pending_table.h"

#include <algorithm>

#include "proto/check/check.h"

namespace kiln::sessions {
namespace {

// Operations up to this size are charged in bulk, because most operations of a session are small
// runs, thousands of them. The charge covers the operation, its entry and its answer.
constexpr int64_t kSmall = 1 << 10;
// Operations above this may be refused. Smaller ones are bounded by the number of pending
// operations.
constexpr int64_t kRefusable = 64 << 10;
// The same for an operation that shares its message with others.
constexpr int64_t kRefusableTogether = 4 << 10;

// Rebinds the handles as if the run had never been executed.
void UndoBindings(const PendingRun& run, const runtime::ValuePointer& failed,
                  HandleTable* handles) {
  KILN_CHECK_EQ(run.results.size(), run.outputs.size() + run.updates.size());
  size_t result = 0;
  for (const uint64_t output : run.outputs)
    handles->RebindIf(output, run.results[result++].get(), failed);
  for (const PendingRun::Update& update : run.updates)
    handles->RebindIf(update.handle, run.results[result++].get(), update.before);
}

}  // namespace

void PendingTable::Admit(uint64_t sequence, Operation* operation, bool travels_alone) {
  KILN_CHECK(!is_taken_);
  KILN_CHECK(sequence > 0 && (entries_.empty() || entries_.rbegin()->first < sequence))
      << "operation " << sequence << " after " << (entries_.empty() ? 0 : entries_.rbegin()->first);
  if (of_user_ != nullptr) of_user_->ForceTake(1);
  Entry& entry = entries_[sequence];
  ChargeEntry(entry, operation, travels_alone);
  KILN_VALIDATE(*this, size());
}

void PendingTable::ChargeEntry(Entry& entry, Operation* operation, bool travels_alone) {
  const int64_t bytes = SizeOf(*operation);
  // The graph was charged when it was read; here it only counts towards the limit.
  const int64_t with_graph = bytes + GraphBytes(*operation);
  if (with_graph <= kSmall) return small_.ForceResize(small_.bytes() + kSmall);
  entry.charge = host_->Open(memory::Use::kOperations);
  entry.bytes = with_graph;
  const int64_t refusable = travels_alone ? kRefusable : kRefusableTogether;
  if (bytes <= refusable) {
    entry.charge->ForceResize(bytes);
  } else if (absl::Status status = entry.charge->Resize(bytes); !status.ok()) {
    const absl::Span<const uint64_t> handles = NewHandles(*operation);
    Refused refused{std::move(status), {handles.begin(), handles.end()}};
    if (SizeOf(refused) > refusable) refused.handles.clear();
    *operation = std::move(refused);
    entry.bytes = 0;
  }
  large_bytes_ += entry.bytes;
}

void PendingTable::SetReceived(uint64_t sequence, std::string_view name, absl::Time now) {
  const auto found = entries_.find(sequence);
  KILN_CHECK(found != entries_.end()) << "operation " << sequence;
  found->second.name = name;
  found->second.received = now;
}

void PendingTable::SetExecuted(uint64_t sequence, PendingOperation operation) {
  const auto entry = entries_.find(sequence);
  if (entry == entries_.end()) {
    KILN_CHECK(is_taken_) << "operation " << sequence << " was not admitted";
    return;  // the session is closed
  }
  KILN_CHECK(!entry->second.executed) << "operation " << sequence << " is executed twice";
  if (CanBeRedone(operation)) ++redoable_;
  entry->second.executed = std::move(operation);
  KILN_VALIDATE(*this, size());
}

std::optional<PendingOperation> PendingTable::TakeExecuted(uint64_t sequence) {
  const auto entry = entries_.find(sequence);
  KILN_CHECK(entry != entries_.end() || is_taken_) << "operation " << sequence << " is unknown";
  if (entry == entries_.end() || !entry->second.executed) return std::nullopt;
  if (CanBeRedone(*entry->second.executed)) {
    KILN_CHECK_GT(redoable_, uint64_t{0});
    --redoable_;
  }
  auto executed = std::exchange(entry->second.executed, std::nullopt);
  KILN_VALIDATE(*this, size());
  return executed;
}

std::vector<uint64_t> PendingTable::End(uint64_t sequence) {
  const auto entry = entries_.find(sequence);
  KILN_CHECK(entry != entries_.end()) << "operation " << sequence << " is not pending";
  KILN_CHECK(!entry->second.executed) << "operation " << sequence << " is still executed";
  if (of_user_ != nullptr) of_user_->Give(1);
  ++ended_;
  large_bytes_ -= entry->second.bytes;
  if (!entry->second.charge) small_.ForceResize(small_.bytes() - kSmall);
  entries_.erase(entry);
  std::vector<uint64_t> reached;
  for (WaitingBarrier& barrier : barriers_) {
    if (sequence < barrier.sequence && --barrier.remaining == 0)
      reached.push_back(barrier.sequence);
  }
  // A barrier is the first of what is left.
  for (const uint64_t barrier : reached)
    KILN_CHECK(!entries_.empty() && entries_.begin()->first == barrier) << "barrier " << barrier;
  std::erase_if(barriers_, [](const WaitingBarrier& barrier) { return barrier.remaining == 0; });
  KILN_VALIDATE(*this, size());
  return reached;
}

bool PendingTable::AddBarrier(uint64_t sequence) {
  // Operations are executed in order, so all that have ended came before the barrier.
  KILN_CHECK_LT(ended_, sequence);
  const uint64_t remaining = sequence - 1 - ended_;
  if (remaining == 0) return false;
  barriers_.push_back({sequence, remaining});
  KILN_VALIDATE(*this, size());
  return true;
}

bool PendingTable::HasAllUpTo(uint64_t executed) const {
  // Else the difference below would be a huge number.
  KILN_CHECK_LE(ended_, executed);
  return executed - ended_ == redoable_;
}

void PendingTable::RestoreEnded(uint64_t ended) {
  KILN_CHECK(empty() && ended_ == 0);
  ended_ = ended;
}

void PendingTable::RestoreBarrier(uint64_t sequence, uint64_t remaining) {
  KILN_CHECK_GT(remaining, uint64_t{0});
  barriers_.push_back({sequence, remaining});
  KILN_VALIDATE(*this, size());
}

std::vector<uint64_t> PendingTable::CancelRuns(uint64_t first, const runtime::ValuePointer& failed,
                                               HandleTable* handles) {
  KILN_CHECK(failed != nullptr && handles != nullptr);
  std::vector<uint64_t> cancelled;
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && entry->first >= first; ++entry) {
    std::optional<PendingOperation>& executed = entry->second.executed;
    PendingRun* const run = executed ? std::get_if<PendingRun>(&*executed) : nullptr;
    if (run == nullptr || run->run == nullptr) continue;
    if (!run->run->Cancel()) {
      // It has begun to replace its inputs, so that earlier runs have ended on its device, even if
      // the daemon does not know that yet.
      if (run->run->has_committed()) break;
      // Earlier runs may still be cancelled after one that has failed or was cancelled already.
      continue;
    }
    KILN_CHECK(!run->is_cancelled) << "run " << entry->first << " was cancelled twice";
    run->is_cancelled = true;
    cancelled.push_back(entry->first);
    UndoBindings(*run, failed, handles);
  }
  return cancelled;
}

bool PendingTable::HasRoom() const {
  if (empty()) return true;
  // While memory is short, or the user's sessions together have reached the user's limit, a session
  // may have one pending operation.
  return size() < limits_.operations && large_bytes_ < limits_.bytes &&
         !host_->memory().IsShort() && (of_user_ == nullptr || !of_user_->IsFull());
}

PendingTable::Entries PendingTable::TakeAll() {
  if (of_user_ != nullptr) of_user_->Give(size());
  small_.Release();
  redoable_ = 0;
  large_bytes_ = 0;
  is_taken_ = true;
  Entries all = std::exchange(entries_, {});
  KILN_VALIDATE(*this, size());
  return all;
}

void PendingTable::Validate() const {
  int64_t small = 0;
  int64_t large_bytes = 0;
  uint64_t redoable = 0;
  uint64_t before = 0;  // entries
  auto barrier = barriers_.begin();
  for (const auto& [sequence, entry] : entries_) {
    if (entry.charge) {
      large_bytes += entry.bytes;
    } else {
      KILN_CHECK_EQ(entry.bytes, 0) << "operation " << sequence;
      ++small;
    }
    if (entry.executed && CanBeRedone(*entry.executed)) ++redoable;
    if (barrier != barriers_.end() && barrier->sequence == sequence) {
      KILN_CHECK_EQ(barrier->remaining, before) << "barrier " << sequence;
      ++barrier;
    }
    ++before;
  }
  KILN_CHECK_EQ(small_.bytes(), small * kSmall);
  KILN_CHECK_EQ(large_bytes_, large_bytes);
  KILN_CHECK_EQ(redoable_, redoable);
  KILN_CHECK(is_taken_ || barrier == barriers_.end())
      << "barrier " << barrier->sequence << " is not pending, or out of order";
  KILN_CHECK(!is_taken_ || entries_.empty());
  // The user's other sessions have some, too.
  if (of_user_ != nullptr) KILN_CHECK_GE(of_user_->used(), size());
}

}  // namespace kiln::sessions
