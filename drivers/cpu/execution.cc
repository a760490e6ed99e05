#include "drivers/cpu/execution.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "proto/check/check.h"

namespace kiln::drivers::cpu {
namespace {

// Share of a slice for one portion, so that a portion slower than expected still ends soon.
constexpr double kPortionOfSlice = 0.25;
// Bytes of a portion of a copy, which take some tens of microseconds.
constexpr int64_t kCopiedBytesMin = 128 << 10;

SteadyTime After(SteadyTime time, double seconds) {
  return time +
         std::chrono::duration_cast<SteadyTime::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Execution::Execution(Program& program, absl::Span<char* const> slots, const SubmitOptions& options,
                     WorkerPool& pool)
    : program_(program),
      options_(options),
      pool_(pool),
      start_(pool.Now()),
      last_end_(start_),
      next_(options.begin.command),
      task_(options.begin.task),
      looked_(start_),
      slice_end_(After(start_, options.slice_seconds)) {
  KILN_CHECK(options.begin.command >= 0 && options.begin.task >= 0);
  KILN_CHECK_LE(next_, program_.calls_.size());
  program_.SetPointers(slots);
  if (options_.time_commands) result_.command_seconds.reserve(program_.calls_.size());
}

bool Execution::IsHeld() const {
  KILN_CHECK_LT(next_, program_.calls_.size());
  const Program::Call& call = program_.calls_[next_];
  KILN_CHECK(call.kind == Program::Kind::kWait) << "command " << next_;
  return !group().IsDecided(call.signal);
}

bool Execution::RunCommands(bool blocks) {
  KILN_CHECK(!result_.rest.has_value()) << "an execution that has ended early goes on";
  std::vector<Program::Call>& calls = program_.calls_;
  for (; next_ < calls.size(); ++next_) {
    Program::Call& call = calls[next_];
    if (!blocks && call.kind == Program::Kind::kWait && IsHeld()) return false;
    result_.status = BeginCommit();
    if (!result_.status.ok()) break;
    const bool ended = options_.goes_on == nullptr ? RunWhole(call) : RunWhileItGoesOn(call);
    if (!result_.status.ok()) break;
    // The time of a command's first tasks counts, too.
    if (options_.time_commands && (ended || task_ > 0)) NoteTime();
    if (!ended) {
      result_.rest = ListPosition{static_cast<int>(next_), task_};
      break;
    }
  }
  End();
  return true;
}

absl::Status Execution::BeginCommit() const {
  const bool begins = options_.begin_commit != nullptr && task_ == 0 &&
                      next_ == static_cast<size_t>(options_.commit);
  return begins ? options_.begin_commit() : absl::OkStatus();
}

bool Execution::RunWhole(const Program::Call& call) {
  result_.status = program_.Execute(call, options_, pool_);
  return true;
}

void Execution::NoteTime() {
  const SteadyTime now = pool_.Now();
  result_.command_seconds.push_back(Seconds(last_end_, now));
  last_end_ = now;
}

bool Execution::RunWhileItGoesOn(Program::Call& call) {
  if (call.looks && !GoesOn()) return false;
  if (!call.is_long) return RunWhole(call);
  while (true) {
    const Program::Portion portion = NextPortion(call);
    const SteadyTime start = looked_;
    KILN_CHECK_LT(portion.begin, portion.end) << "of " << call.size << " tasks";
    result_.status = program_.Execute(call, portion, options_, pool_);
    task_ = portion.end;
    looked_ = pool_.Now();
    call.task_seconds = Seconds(start, looked_) / static_cast<double>(portion.end - portion.begin);
    if (!result_.status.ok()) return true;
    if (task_ == call.size) break;
    if (!GoesOn()) return false;
  }
  task_ = 0;
  return true;
}

bool Execution::GoesOn() {
  looked_ = pool_.Now();
  if (looked_ < slice_end_) return true;
  if (!options_.goes_on(Seconds(start_, looked_))) return false;
  slice_end_ = After(looked_, options_.slice_seconds);
  return true;
}

Program::Portion Execution::NextPortion(const Program::Call& call) const {
  const double seconds =
      std::min(kPortionOfSlice * options_.slice_seconds, Seconds(looked_, slice_end_));
  // At least one task for each thread.
  const bool copies = call.kind == Program::Kind::kCopy || call.kind == Program::Kind::kFill;
  const int64_t tasks_min = copies                                ? kCopiedBytesMin
                            : call.kind == Program::Kind::kKernel ? 1
                                                                  : pool_.threads();
  const double tasks_max = static_cast<double>(call.size - task_);
  const double fit = call.task_seconds > 0 ? seconds / call.task_seconds : tasks_max;
  const auto tasks =
      static_cast<int64_t>(std::clamp(fit, std::min<double>(tasks_min, tasks_max), tasks_max));
  return {task_, task_ + tasks};
}

void Execution::End() {
  // Lists on other devices may be waiting for a signal that will not come.
  if (!result_.status.ok() && options_.group != nullptr) options_.group->Abort(result_.status);
  result_.seconds = Seconds(start_, pool_.Now());
}

}  // namespace kiln::drivers::cpu
