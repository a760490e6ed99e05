// What each user may have so much of.
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
  kHostMemory,    // that the daemon has for what its clients make it hold
  kDeviceMemory,  // on each device: tensors, and what the user's runs need for intermediate results
  kSessions,      // open
  kBuffers,       // tensors on devices
  kPrograms,      // that the sessions have numbers for
  kOperations,    // received and not answered; beyond it, streams are not read for a while
  kGraphNodes,    // of one graph, as it was sent
  kUploads,       // under way
  kUploadBytes,   // that have come of uploads under way; beyond it, one alone is read
  kDisk,          // for sessions that are kept over a restart
  kWeight,        // share of each device's time, relative to others'
};
inline constexpr int kNumResources = 11;

// Who has twice this gets twice the time.
inline constexpr int64_t kUsualWeight = 100;
inline constexpr int64_t kMostWeight = 10'000;

struct ResourceRow {
  Resource resource;
  absl::string_view name;    // "device_memory": in the configuration and in `kiln quota`
  absl::string_view what;    // in sentences, behind an amount: "of device memory", "sessions"
  absl::string_view one;     // likewise, behind 1: "session"
  absl::string_view remedy;  // "release tensors"
  bool is_bytes = false;
  int64_t default_limit = 0;  // 0: none
};

// In the order of the enum.
absl::Span<const ResourceRow> Resources();
const ResourceRow& RowOf(Resource resource);
// Nothing if there is none of that name.
std::optional<Resource> ParseResource(absl::string_view name);

// By resource. 0: no limit but those that hold for everybody together.
class Limits {
 public:
  Limits();
  int64_t& operator[](Resource resource) { return values_[static_cast<size_t>(resource)]; }
  int64_t operator[](Resource resource) const { return values_[static_cast<size_t>(resource)]; }
  bool operator==(const Limits&) const = default;

 private:
  std::array<int64_t, kNumResources> values_;
};

// "3.5 MiB" where it counts bytes, else "17".
std::string AmountText(Resource resource, int64_t amount);

}  // namespace kiln::quota

#endif  // KILN_SERVER_QUOTA_RESOURCE_H_
