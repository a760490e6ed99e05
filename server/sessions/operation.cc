#include "server/sessions/operation.h"

namespace kiln::sessions {

int64_t SizeOf(const Operation& operation) {
  constexpr int64_t kOverhead = 256;
  if (const auto* write = std::get_if<Write>(&operation))
    return kOverhead + static_cast<int64_t>(write->data.size());
  if (const auto* run = std::get_if<RunProgram>(&operation)) {
    return kOverhead +
           static_cast<int64_t>((run->inputs.size() + run->outputs.size()) * sizeof(uint64_t));
  }
  return kOverhead;
}

}  // namespace kiln::sessions
