// A command list as recordings of Level Zero's command lists.
#ifndef KILN_DRIVERS_LEVEL_ZERO_PREPARED_LIST_H_
#define KILN_DRIVERS_LEVEL_ZERO_PREPARED_LIST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/common/check.h"
#include "drivers/common/dependencies.h"
#include "drivers/common/host_mirror.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/command_list.h"
#include "drivers/level_zero/context.h"
#include "drivers/level_zero/recording.h"

namespace kiln::drivers::level_zero {

// What the device was given of one submission.
struct Enqueued {
  // Of each execution, in order; shared with those who wait for a signal's.
  std::vector<std::shared_ptr<Fence>> fences;
  // What was executed; until it has ended nobody else may use it.
  std::shared_ptr<Recording> recording;
  // The status of enqueueing; if commands are timed, the seconds of the waits.
  SubmitResult result;
};

// The calls of one list. Enqueue is called by the device's submission thread only, once at a time.
class Program {
 public:
  // INVALID_ARGUMENT: the list is malformed, or a kernel is not this context's. RESOURCE_EXHAUSTED:
  // no memory for the slot table or the mirror.
  static absl::StatusOr<std::shared_ptr<Program>> Make(std::shared_ptr<Context> context,
                                                       CommandList list);

  ~Program();

  const ListNeeds& needs() const { return needs_; }
  const HostMirror& mirror() const { return mirror_; }
  // To compare only.
  const Context* context() const { return context_.get(); }

  // Called with the fence of what was executed before a signal (null: nothing was) and the signal.
  using OnSignal = std::function<void(std::shared_ptr<Fence> before, int signal)>;

  // Executes all commands in order and returns without waiting for them, except that a wait blocks
  // until its signal, and copies to and from host memory until what comes before them has ended.
  // addresses[i] is where slot i begins; of host slots, its mirror.
  Enqueued Enqueue(absl::Span<char* const> addresses, absl::Span<Buffer* const> buffers,
                   const SubmitOptions& options, const SteadyClock& now, const OnSignal& on_signal);

  // Adds the seconds of each call of a timed submission to those of its command.
  void AddCallSeconds(const Recording& recording, std::vector<double>* command_seconds) const;

 private:
  // The sections [begin, end), which are executed together, and the command behind them.
  struct Part {
    size_t begin = 0;
    size_t end = 0;
    enum class Then : uint8_t { kNothing, kSignal, kWait } then = Then::kNothing;
    int signal = 0;
    size_t command = 0;  // the number of that signal or wait
  };

  Program(std::shared_ptr<Context> context, int num_slots)
      : context_(std::move(context)), written_(num_slots, false), dependencies_(num_slots) {}
  absl::Status Add(const LaunchCommand& launch, size_t command);
  absl::Status Add(const CopyCommand& copy, size_t command);
  absl::Status Add(const FillCommand& fill, size_t command);
  absl::Status Add(const SignalCommand& signal, size_t command);
  absl::Status Add(const WaitCommand& wait, size_t command);
  void AddCall(Call call, absl::Span<const RangeAccess> accesses);
  void BeginSection(bool has_addresses);
  void EndPart(Part::Then then, int signal, size_t command);

  bool SlotsOverlap(absl::Span<char* const> addresses) const;
  absl::StatusOr<std::shared_ptr<Recording>> Take(absl::Span<char* const> addresses,
                                                  Recording::Order order);
  absl::Status AwaitLast();
  absl::Status Execute(const Part& part, absl::Span<char* const> addresses, Enqueued* enqueued);

  const std::shared_ptr<Context> context_;
  ListNeeds needs_;
  size_t num_commands_ = 0;
  std::vector<bool> written_;  // by slot
  Recorded recorded_;
  std::vector<Part> parts_;
  Dependencies dependencies_;     // of the section that is being made
  int calls_before_barrier_ = 0;  // of that section: those that a barrier stands behind
  // As many as this list was in flight at once, of each order; behind what they are recordings of,
  // and so gone before it.
  std::vector<std::shared_ptr<Recording>> recordings_;
  HostMirror mirror_;
  std::shared_ptr<Fence> last_;  // behind what was executed last and not awaited; with a mirror
};

class LevelZeroPreparedList : public PreparedList {
 public:
  explicit LevelZeroPreparedList(std::shared_ptr<Program> program) : program_(std::move(program)) {}
  // Shared with the submissions in flight, so that a list may be destroyed before they end.
  const std::shared_ptr<Program>& program() const { return program_; }
  int64_t host_bytes() const override { return static_cast<int64_t>(program_->mirror().bytes()); }

 private:
  std::shared_ptr<Program> program_;
};

}  // namespace kiln::drivers::level_zero

#endif  // KILN_DRIVERS_LEVEL_ZERO_PREPARED_LIST_H_
