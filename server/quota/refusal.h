// The error for a user who has reached one of their limits.
#ifndef KILN_SERVER_QUOTA_REFUSAL_H_
#define KILN_SERVER_QUOTA_REFUSAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/quota/resource.h"

namespace kiln::quota {

// The user and resource of a limit.
struct Scope {
  std::string user{};
  Resource resource = Resource::kHostMemory;
  std::string device{};  // for device memory
};

// RESOURCE_EXHAUSTED, reason QUOTA_EXCEEDED, with the details user, quota (the resource's name),
// device, asked, used and limit.
absl::Status Refusal(const Scope& scope, int64_t asked, int64_t used, int64_t limit);
// Returns nullopt if Refusal did not make the status, or if WithHolders has been applied.
std::optional<Scope> Unexplained(const absl::Status& status);

// Something that a user has, and could release.
struct Holder {
  std::string name;      // "session s3", "handle 7 of s3, float32[8, 3]"
  int64_t amount = 0;    // of the resource; 0: irrelevant
  bool is_idle = false;  // not in use now
};
// Adds the three largest holders to a refusal; of equally large ones, idle ones first.
absl::Status WithHolders(const absl::Status& refusal, Resource resource,
                         std::vector<Holder> holders);

}  // namespace kiln::quota

#endif  // KILN_SERVER_QUOTA_REFUSAL_H_
