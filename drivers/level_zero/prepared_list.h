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

// The device work of one submission.
struct Enqueued {
  // One for each execution, in order; shared with signals that wait for one.
  std::vector<std::shared_ptr<Fence>> fences;
  // The executed recording; in use until its end.
  std::shared_ptr<Recording> recording;
  // The status of enqueueing; if commands are timed, also the seconds of the waits.
  SubmitResult result;
};

// The calls of one list. Enqueue is called only on the device's submission thread, one run at a
// time.
class Program {
 public:
  // INVALID_ARGUMENT: the list is malformed, or a kernel does not belong to this context.
  // RESOURCE_EXHAUSTED: no memory for the slot table or the mirror.
  static absl::StatusOr<std::shared_ptr<Program>> Make(std::shared_ptr<Context> context,
                                                       CommandList list);

  ~Program();

  const ListNeeds& needs() const { return needs_; }
  const HostMirror& mirror() const { return mirror_; }
  // Only for comparison.
  const Context* context() const { return context_.get(); }

  // Called with the fence of the work executed before a signal (null: none) and the signal.
  using OnSignal = std::function<void(std::shared_ptr<Fence> before, int signal)>;

  // Executes all commands in order without waiting for them, with two exceptions: a wait blocks
  // until its signal, and copies from and to host memory wait for everything before them.
  // addresses[i] is the start of slot i, for host slots of its mirror.
  Enqueued Enqueue(absl::Span<char* const> addresses, absl::Span<Buffer* const> buffers,
                   const SubmitOptions& options, const SteadyClock& now, const OnSignal& on_signal);

  // Adds the seconds of each call of a timed submission to those of its command.
  void AddCallSeconds(const Recording& recording, std::vector<double>* command_seconds) const;

 private:
  // The sections [begin, end), which are executed together, and the command that follows them.
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
  Dependencies dependencies_;     // of the section under construction
  int calls_before_barrier_ = 0;  // calls of that section before its last barrier
  // As many of each order as runs of this list were in flight at once. After recorded_, so that
  // recordings are destroyed before it.
  std::vector<std::shared_ptr<Recording>> recordings_;
  HostMirror mirror_;
  std::shared_ptr<Fence> last_;  // of the last execution not yet awaited; with a mirror
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
