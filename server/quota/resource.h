// The resources that are limited for each user.
#ifndef KILN_SERVER_QUOTA_RESOURCE_H_
#define KILN_SERVER_QUOTA_RESOURCE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace kiln::quota {

enum class Resource {
  kHostMemory,    // held by the daemon for its clients
  kDeviceMemory,  // on each device: tensors, and intermediate results of the user's runs
  kSessions,      // open
  kBuffers,       // tensors on devices
  kPrograms,      // defined in sessions
  kOperations,    // received and unanswered; beyond it, streams are not read for a while
  kGraphNodes,    // of one graph, as sent
  kUploads,       // under way
  kUploadBytes,   // received of uploads under way; beyond it, only one is read
  kDisk,          // for sessions that are saved over a restart
  kWeight,        // share of each device's time, relative to others'
};
inline constexpr int kNumResources = 11;

// A user with twice this weight gets twice the time.
inline constexpr int64_t kUsualWeight = 100;
inline constexpr int64_t kWeightMax = 10'000;

struct ResourceRow {
  Resource resource;
  absl::string_view name;    // "device_memory": in the configuration and in `kiln quota`
  absl::string_view what;    // in sentences, after an amount: "of device memory", "sessions"
  absl::string_view one;     // likewise, after 1: "session"
  absl::string_view remedy;  // "release tensors"
  bool is_bytes = false;
  int64_t default_limit = 0;  // 0: no limit
};

// In the order of the enum.
absl::Span<const ResourceRow> Resources();
const ResourceRow& RowOf(Resource resource);
// Returns nullopt if there is no resource with that name.
std::optional<Resource> ParseResource(absl::string_view name);

// Limits by resource. 0: only the limits for all users together apply.
class Limits {
 public:
  Limits();
  int64_t& operator[](Resource resource) { return values_[static_cast<size_t>(resource)]; }
  int64_t operator[](Resource resource) const { return values_[static_cast<size_t>(resource)]; }
  bool operator==(const Limits&) const = default;

 private:
  std::array<int64_t, kNumResources> values_;
};

// "3.5 MiB" for resources counted in bytes, else "17".
std::string AmountText(Resource resource, int64_t amount);

}  // namespace kiln::quota

#endif  // KILN_SERVER_QUOTA_RESOURCE_H_
