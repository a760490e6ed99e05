// What is said to a user who has reached a limit of his own.
#ifndef KILN_SERVER_QUOTA_REFUSAL_H_
#define KILN_SERVER_QUOTA_REFUSAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/quota/resource.h"

namespace kiln::quota {

// Whose limit, and of what.
struct Scope {
  std::string user{};
  Resource resource = Resource::kHostMemory;
  std::string device{};  // of device memory
};

// RESOURCE_EXHAUSTED, reason QUOTA_EXCEEDED, with the details user, quota (the resource's name),
// device, asked, used and limit.
absl::Status Refusal(const Scope& scope, int64_t asked, int64_t used, int64_t limit);
// Nothing if Refusal did not make it, or WithHolders has said who holds what.
std::optional<Scope> Unexplained(const absl::Status& status);

// Something that a user has, and could give back.
struct Holder {
  std::string name;      // "session s3", "handle 7 of s3, float32[8, 3]"
  int64_t amount = 0;    // of the resource; 0: it does not matter
  bool is_idle = false;  // nobody uses it now
};
// A refusal that names the largest three; of what is as large, first what is idle.
absl::Status WithHolders(const absl::Status& refusal, Resource resource,
                         std::vector<Holder> holders);

}  // namespace kiln::quota

#endif  // KILN_SERVER_QUOTA_REFUSAL_H_
