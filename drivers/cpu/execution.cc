#include "drivers/cpu/execution.h"

#include <vector>

namespace kiln::drivers::cpu {

Execution::Execution(Program& program, absl::Span<char* const> slots, const SubmitOptions& options,
                     WorkerPool& pool)
    : program_(program), options_(options), pool_(pool), start_(pool.Now()), last_end_(start_) {
  program_.SetPointers(slots);
  if (options_.time_commands) result_.command_seconds.reserve(program_.calls_.size());
}

bool Execution::IsHeld() const { return !group().IsDecided(program_.calls_[next_].signal); }

bool Execution::RunCommands(bool blocks) {
  const std::vector<Program::Call>& calls = program_.calls_;
  for (; next_ < calls.size(); ++next_) {
    if (!blocks && calls[next_].kind == Program::Kind::kWait && IsHeld()) return false;
    result_.status = program_.Execute(calls[next_], options_, pool_);
    if (!result_.status.ok()) break;
    if (!options_.time_commands) continue;
    const SteadyTime now = pool_.Now();
    result_.command_seconds.push_back(Seconds(last_end_, now));
    last_end_ = now;
  }
  End();
  return true;
}

void Execution::End() {
  // Lists on other devices may wait for a signal that will never come.
  if (!result_.status.ok() && options_.group != nullptr) options_.group->Abort(result_.status);
  result_.seconds = Seconds(start_, pool_.Now());
}

}  // namespace kiln::drivers::cpu
