// What a session holds in host memory, and when it takes no more.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

// An operation of no more than this is charged in bulk; it and its answer are some objects.
constexpr int64_t kSmall = 1 << 10;
// One of more may be refused. So much of it is bounded by the operations under way.
constexpr int64_t kRefusable = 64 << 10;
// While host memory is short, answers of no more than this wait for acknowledgement.
constexpr int64_t kAnswersWhenShort = 256 << 10;

}  // namespace

absl::Status Session::CheckAcknowledged() const {
  const SessionLimits& limits = services_.limits;
  const bool few = static_cast<int64_t>(log_.size()) <= limits.unacknowledged_answers &&
                   log_.bytes() <= limits.unacknowledged_bytes;
  const bool room = log_.bytes() <= kAnswersWhenShort || !host_->memory().IsShort();
  if (few && room) return absl::OkStatus();
  return errors::WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          log_.size(), " answers of ", log_.bytes(), " bytes have not been acknowledged",
          few ? ", and the daemon's host memory is short" : "",
          "; set ConnectRequest.acknowledged")),
      "UNACKNOWLEDGED");
}

void Session::Admit(uint64_t sequence, Operation* operation) {
  ++unfinished_;
  const int64_t bytes = SizeOf(*operation);
  const int64_t with_graph = bytes + GraphBytes(*operation);
  if (with_graph <= kSmall) return small_.ForceResize(small_.bytes() + kSmall);
  Large large{host_->Open(memory::Use::kOperations), with_graph};
  if (bytes <= kRefusable) {
    large.charge.ForceResize(bytes);
  } else if (absl::Status status = large.charge.Resize(bytes); !status.ok()) {
    Refused refused{std::move(status), NewHandles(*operation)};
    if (SizeOf(refused) > kRefusable) refused.handles.clear();
    *operation = std::move(refused);
    large.bytes = 0;
  }
  unfinished_bytes_ += large.bytes;
  large_.emplace(sequence, std::move(large));
}

bool Session::HasRoom() const {
  return unfinished_ < services_.limits.unfinished_operations &&
         unfinished_bytes_ < services_.limits.unfinished_bytes &&
         (unfinished_ == 0 || !host_->memory().IsShort());
}

void Session::CountDown(uint64_t sequence, std::vector<uint64_t>* ended) {
  --unfinished_;
  if (const auto large = large_.find(sequence); large != large_.end()) {
    unfinished_bytes_ -= large->second.bytes;
    large_.erase(large);
  } else {
    small_.ForceResize(small_.bytes() - kSmall);
  }
  for (PendingBarrier& barrier : barriers_) {
    if (sequence < barrier.sequence && --barrier.remaining == 0) ended->push_back(barrier.sequence);
  }
  barriers_.erase(std::remove_if(barriers_.begin(), barriers_.end(),
                                 [](const auto& b) { return b.remaining == 0; }),
                  barriers_.end());
}

absl::Status Session::ReserveHandles(size_t count) {
  return handles_charge_.Resize(handles_.BytesWith(count));
}

void Session::SettleHandles() { handles_charge_.ForceResize(handles_.BytesWith(0)); }

absl::Status Session::ReserveProgram(DefinedProgram* program, size_t instances) {
  constexpr size_t kPerProgram = 1 << 10;
  constexpr size_t kPerInstance = 1 << 10;  // here and in the program cache
  size_t names = 0;
  for (const runtime::Variable& variable : program->variables) names += variable.name.size();
  return program->charge.Resize(
      static_cast<int64_t>(kPerProgram + instances * (kPerInstance + 2 * names)));
}

}  // namespace kiln::sessions
