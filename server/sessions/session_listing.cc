// A session in lists: its numbers, its programs, and its holdings by the names that its client
// knows.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/quoted.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

using quota::Resource;

constexpr size_t kValuesMax = 3;
// Bounds the cost of each refusal for a client that is refused again and again.
constexpr size_t kHandlesSeenMax = 10'000;

}  // namespace

SessionStats Session::GetStats() const {
  const SessionState& state = *state_;
  absl::MutexLock lock(&state.mutex);
  SessionStats stats;
  stats.connected = state.stream.sink != nullptr;
  stats.expires = stats.connected ? state.services.clock.wall() + state.FullLease()
                                  : OnWall(state.services.clock, state.expires);
  if (state.parked) stats.parked_name = state.parked->name;
  stats.memory_bytes = state.devices.bytes();
  stats.buffers = state.devices.buffers();
  stats.programs = static_cast<int64_t>(state.programs.size());
  stats.runs = state.runs;
  stats.waiting = state.pending.size();
  stats.device_seconds = state.device_seconds;
  if (state.recorder) stats.checkpoint_time = state.recorder->checkpoint_time();
  return stats;
}

bool Session::Uses(const runtime::Program& program) const {
  absl::MutexLock lock(&state_->mutex);
  return state_->programs.Names(program);
}

std::vector<ProgramTable::Waiting> Session::FirstCalls() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->programs.FirstCalls();
}

std::vector<quota::Holder> Session::LargestValues() const {
  using Entry = std::pair<int64_t, uint64_t>;  // bytes, handle
  std::vector<Entry> largest;
  std::vector<quota::Holder> holders;
  absl::MutexLock lock(&state_->mutex);
  size_t seen = 0;
  for (const auto& [handle, value] : state_->handles.values()) {
    if (++seen > kHandlesSeenMax) break;
    if (value->type() == nullptr || (value->pool() == nullptr && value->parts().empty())) continue;
    largest.emplace_back(value->bytes(), handle);
    std::push_heap(largest.begin(), largest.end(), std::greater<>());
    if (largest.size() <= kValuesMax) continue;
    std::pop_heap(largest.begin(), largest.end(), std::greater<>());
    largest.pop_back();
  }
  for (const auto& [bytes, handle] : largest) {
    holders.push_back({absl::StrCat("handle ", handle, " of ", identity().name, ", ",
                                    state_->handles.values().at(handle)->type()->ToString()),
                       bytes});
  }
  return holders;
}

std::vector<quota::Holder> Session::HoldersOf(quota::Resource resource) const {
  const std::string name = identity().client.description.empty()
                               ? absl::StrCat("session ", identity().name)
                               : absl::StrCat("session ", identity().name, " (",
                                              Shown(identity().client.description), ")");
  switch (resource) {
    case Resource::kDeviceMemory:
      return LargestValues();
    case Resource::kHostMemory:
      return {{name, host()->bytes()}};
    case Resource::kBuffers:
      return {{name, state_->devices.buffers()}};
    case Resource::kPrograms: {
      absl::MutexLock lock(&state_->mutex);
      return {{name, static_cast<int64_t>(state_->programs.size())}};
    }
    case Resource::kSessions: {
      absl::MutexLock lock(&state_->mutex);
      if (state_->stream.sink != nullptr) return {{name, 0}};
      if (state_->parked)
        return {{absl::StrCat(name, ", detached as ", Quoted(state_->parked->name)), 0}};
      return {{absl::StrCat(name, ", whose client is disconnected; `kiln sessions close ",
                            identity().name, "` closes it"),
               0, /*is_idle=*/true}};
    }
    case Resource::kOperations:
    case Resource::kGraphNodes:
    case Resource::kUploads:
    case Resource::kUploadBytes:
    case Resource::kDisk:
    case Resource::kWeight:
      break;
  }
  return {};
}

}  // namespace kiln::sessions
