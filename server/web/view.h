// Answers for the web view's page, as JSON. Each call belongs to an RPC: it needs that RPC's role
// (auth/method_table.h) and shows the same numbers, from the same functions
// (rpc/services/answers.h).
#ifndef KILN_SERVER_WEB_VIEW_H_
#define KILN_SERVER_WEB_VIEW_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/auth/principal.h"
#include "server/rpc/services/services.h"

namespace kiln::web {

// All of them outlive the view.
struct ViewParts {
  const rpc::DeviceServiceParts* devices = nullptr;
  const rpc::ProgramServiceParts* programs = nullptr;
  const rpc::AdminServiceParts* admin = nullptr;
};

// More launches of one program are left out: no one can read a drawing of them.
inline constexpr size_t kLaunchesMax = 4000;
inline constexpr size_t kEdgesMax = 20'000;
// The longest text of a graph, or of a kernel, that is sent.
inline constexpr size_t kTextBytesMax = 8 << 20;

struct Call {
  absl::string_view name;    // of the page below /web/api/
  absl::string_view method;  // the RPC
  // Returns the answer as JSON. Thread-safe. INVALID_ARGUMENT: the query is wrong; NOT_FOUND: there
  // is no such program that the caller may see, or no such kernel; RESOURCE_EXHAUSTED: the answer
  // is too large for the view.
  absl::StatusOr<std::string> (*answer)(const ViewParts& parts, const auth::Principal& caller,
                                        const std::string& query);
};

absl::Span<const Call> Calls();

}  // namespace kiln::web

#endif  // KILN_SERVER_WEB_VIEW_H_
