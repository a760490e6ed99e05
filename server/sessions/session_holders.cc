// The holdings of a session, by the names that its client knows.
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

std::vector<quota::Holder> Session::LargestValues() const {
  using Entry = std::pair<int64_t, uint64_t>;  // bytes, handle
  std::vector<Entry> largest;
  std::vector<quota::Holder> holders;
  absl::MutexLock lock(&mutex_);
  size_t seen = 0;
  for (const auto& [handle, value] : handles_.values()) {
    if (++seen > kHandlesSeenMax) break;
    if (value->type() == nullptr || (value->pool() == nullptr && value->parts().empty())) continue;
    largest.emplace_back(value->bytes(), handle);
    std::push_heap(largest.begin(), largest.end(), std::greater<>());
    if (largest.size() <= kValuesMax) continue;
    std::pop_heap(largest.begin(), largest.end(), std::greater<>());
    largest.pop_back();
  }
  for (const auto& [bytes, handle] : largest) {
    holders.push_back({absl::StrCat("handle ", handle, " of ", identity_.name, ", ",
                                    handles_.values().at(handle)->type()->ToString()),
                       bytes});
  }
  return holders;
}

std::vector<quota::Holder> Session::HoldersOf(quota::Resource resource) const {
  const std::string name = identity_.client.description.empty()
                               ? absl::StrCat("session ", identity_.name)
                               : absl::StrCat("session ", identity_.name, " (",
                                              Shown(identity_.client.description), ")");
  switch (resource) {
    case Resource::kDeviceMemory:
      return LargestValues();
    case Resource::kHostMemory:
      return {{name, host_->bytes()}};
    case Resource::kBuffers:
      return {{name, devices_.buffers()}};
    case Resource::kPrograms: {
      absl::MutexLock lock(&mutex_);
      return {{name, static_cast<int64_t>(programs_.size())}};
    }
    case Resource::kSessions: {
      absl::MutexLock lock(&mutex_);
      if (sink_ != nullptr) return {{name, 0}};
      if (detached_) return {{absl::StrCat(name, ", detached as ", Quoted(detached_->name)), 0}};
      return {{absl::StrCat(name, ", whose client is disconnected; `kiln sessions close ",
                            identity_.name, "` closes it"),
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
