#include "server/runtime/compile_threads.h"

#include "server/errors/errors.h"

namespace kiln::runtime {

absl::Status CompileThreads::status() const {
  if (!stopped_) return absl::OkStatus();
  return errors::WithReason(absl::UnavailableError("daemon is shutting down"), "SHUTTING_DOWN");
}

}  // namespace kiln::runtime
