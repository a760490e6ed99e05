// A command list as queue packets, built once, and the copies between them.
#ifndef KILN_DRIVERS_HSA_PREPARED_LIST_H_
#define KILN_DRIVERS_HSA_PREPARED_LIST_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "drivers/common/check.h"
#include "drivers/common/dependencies.h"
#include "drivers/common/host_mirror.h"
#include "drivers/hsa/context.h"
#include "drivers/hsa/kernel.h"
#include "drivers/hsa/replay.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/command_list.h"

namespace kiln::drivers::hsa {

// The device work of one submission.
struct Enqueued {
  // Becomes 0 when everything has ended, if there was no error.
  Signal end;
  // Signals that packets and copies wait for.
  std::vector<Signal> between;
  // If commands are timed: the signals of kernels and of copies. A copy's pieces, all of about the
  // same size, share one signal.
  struct Timed {
    size_t command = 0;
    Signal signal = {};
    int copies = 0;
  };
  std::vector<Timed> timed;
  std::unique_ptr<Replay> replay;
  // The status of enqueueing; if commands are timed, also the seconds of the waits.
  SubmitResult result;
};

class Program {
 public:
  // INVALID_ARGUMENT: the list is malformed, or a kernel does not belong to this context.
  // RESOURCE_EXHAUSTED: no memory for the source of fills or for the mirror.
  static absl::StatusOr<std::shared_ptr<Program>> Make(std::shared_ptr<Context> context,
                                                       CommandList list);
  ~Program();

  const ListNeeds& needs() const { return needs_; }
  const HostMirror& mirror() const { return mirror_; }
  // Only for comparison.
  const Context* context() const { return context_.get(); }

  // Called with a signal of the list, and an HSA signal that becomes 0 when everything enqueued
  // before it has ended.
  using OnSignal = std::function<void(Signal before, int signal)>;

  // Enqueues all commands without waiting for them, with three exceptions: a wait blocks until its
  // signal, copies from and to host memory wait for everything before them, and all commands wait
  // while the queue is full. addresses[i] is the start of slot i, for host slots of its mirror. Not
  // reentrant.
  Enqueued Enqueue(absl::Span<char* const> addresses, absl::Span<Buffer* const> buffers,
                   const SubmitOptions& options, const SteadyClock& now, const OnSignal& on_signal);
  // Requires: everything enqueued with it has ended.
  void GiveBack(std::unique_ptr<Replay> replay);

 private:
  // Commands that are given to the device together.
  struct Step {
    enum class Kind : uint8_t { kLaunches, kCopy, kFill, kSignal, kWait } kind = Kind::kLaunches;
    size_t begin = 0;  // the launches
    size_t end = 0;
    SlotRange from = {};  // of a copy
    SlotRange to = {};
    uint8_t value = 0;  // of a fill
    int signal = 0;
    size_t command = 0;
  };
  class Run;

  explicit Program(std::shared_ptr<Context> context, int num_slots)
      : context_(std::move(context)), written_(num_slots, false), dependencies_(num_slots) {}
  absl::Status Add(const LaunchCommand& launch, size_t command);
  absl::Status Add(const CopyCommand& copy, size_t command);
  absl::Status Add(const FillCommand& fill, size_t command);
  absl::Status Add(const SignalCommand& signal, size_t command);
  absl::Status Add(const WaitCommand& wait, size_t command);
  absl::Status MakeMirror();
  absl::StatusOr<std::unique_ptr<Replay>> TakeReplay();
  bool SlotsOverlap(absl::Span<char* const> addresses) const;

  const std::shared_ptr<Context> context_;
  ListNeeds needs_;
  size_t num_commands_ = 0;
  std::vector<bool> written_;  // by slot
  std::vector<Launch> launches_;
  std::vector<Step> steps_;
  Dependencies dependencies_;          // of the launches since the last other step
  size_t last_after_all_ = 0;          // the last of those that waits for all before it
  std::map<uint8_t, char*> patterns_;  // device memory filled with this byte
  HostMirror mirror_;

  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Replay>> idle_ ABSL_GUARDED_BY(mutex_);
};

class HsaPreparedList : public PreparedList {
 public:
  explicit HsaPreparedList(std::shared_ptr<Program> program) : program_(std::move(program)) {}
  // Shared with the submissions in flight, so that a list may be destroyed before they end.
  const std::shared_ptr<Program>& program() const { return program_; }
  int64_t host_bytes() const override { return static_cast<int64_t>(program_->mirror().bytes()); }

 private:
  std::shared_ptr<Program> program_;
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_PREPARED_LIST_H_
