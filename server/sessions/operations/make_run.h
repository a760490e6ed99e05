// Makes a run of a program on its devices, and checks what its inputs must be.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_MAKE_RUN_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_MAKE_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/runtime/run/run.h"
#include "server/sessions/operations/common.h"

namespace kiln::sessions {

struct QueueableRun {
  std::shared_ptr<runtime::Run> run;
  std::function<void()> enqueue;  // called without locks
};

// Checks types and placements of the inputs. INVALID_ARGUMENT names the input.
absl::Status CheckInputs(const runtime::BoundProgram& program,
                         absl::Span<const runtime::ValuePointer> inputs);
// Requires: the inputs have passed CheckInputs. `references`: as of runtime::Run::Create. Errors:
// those of runtime::Run::Create.
absl::StatusOr<QueueableRun> MakeRun(SessionState& session, uint64_t sequence,
                                     const std::shared_ptr<const runtime::BoundProgram>& program,
                                     std::vector<runtime::ValuePointer> inputs,
                                     runtime::Run::Done done, int references = 0);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_MAKE_RUN_H_
