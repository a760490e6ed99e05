// A command list as CUDA graphs: one for each part between signals and waits. A node only waits for
// nodes whose results it needs.
#ifndef KILN_DRIVERS_CUDA_PREPARED_LIST_H_
#define KILN_DRIVERS_CUDA_PREPARED_LIST_H_

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
#include "drivers/cuda/context.h"
#include "drivers/cuda/graph.h"
#include "drivers/cuda/kernel.h"
#include "drivers/cuda/slot_table.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/command_list.h"

namespace kiln::drivers::cuda {

// The device work of one submission.
struct Enqueued {
  // Around the whole list; null if an earlier step failed.
  Event begin;
  Event end;
  // Around each call, if commands are timed.
  struct Timed {
    size_t command = 0;
    Event begin = {};
    Event end = {};
  };
  std::vector<Timed> timed;
  // The source of the slot table's update.
  PinnedBlock table;
  // The status of enqueueing; if commands are timed, also the seconds of the waits.
  SubmitResult result;
};

// The calls of one list. Used only on the device's submission thread, one run at a time.
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

  // Called with a signal and an event after everything enqueued before the signal.
  using OnSignal = std::function<void(Event before, int signal)>;

  // Enqueues all commands without waiting for them, with two exceptions: a wait blocks until its
  // signal, and copies from and to host memory wait for everything before them. addresses[i] is the
  // start of slot i, for host slots of its mirror. Requires: the calling thread has a current
  // context.
  Enqueued Enqueue(absl::Span<const CUdeviceptr> addresses, absl::Span<Buffer* const> buffers,
                   const SubmitOptions& options, const SteadyClock& now, const OnSignal& on_signal);

 private:
  // The calls [begin, end), which are enqueued together, and the command that follows them.
  struct Part {
    size_t begin = 0;
    size_t end = 0;
    enum class Then : uint8_t { kNothing, kSignal, kWait } then = Then::kNothing;
    int signal = 0;
    size_t command = 0;  // the number of that signal or wait
    std::unique_ptr<Graph> graph = nullptr;
  };

  explicit Program(std::shared_ptr<Context> context, int num_slots)
      : context_(std::move(context)), written_(num_slots, false), dependencies_(num_slots) {}
  absl::Status Add(const LaunchCommand& launch, size_t command);
  absl::Status Add(const CopyCommand& copy, size_t command);
  absl::Status Add(const FillCommand& fill, size_t command);
  absl::Status Add(const SignalCommand& signal, size_t command);
  absl::Status Add(const WaitCommand& wait, size_t command);
  void AddCall(Call call, absl::Span<const RangeAccess> accesses);
  void EndPart(Part::Then then, int signal, size_t command);

  bool SlotsOverlap(absl::Span<const CUdeviceptr> addresses) const;
  absl::Status EnqueuePart(Part& part, const Places& places, bool one_by_one, bool timed,
                           Enqueued* enqueued);
  absl::StatusOr<Event> Record();
  absl::Status AwaitAll();

  const std::shared_ptr<Context> context_;
  ListNeeds needs_;
  size_t num_commands_ = 0;
  std::vector<bool> written_;  // by slot
  std::vector<Call> calls_;
  std::vector<Part> parts_;
  Dependencies dependencies_;         // of the part under construction
  std::unique_ptr<SlotTable> table_;  // null if no kernel takes one
  HostMirror mirror_;
};

class CudaPreparedList : public PreparedList {
 public:
  explicit CudaPreparedList(std::shared_ptr<Program> program) : program_(std::move(program)) {}
  // Shared with the submissions in flight, so that a list may be destroyed before they end.
  const std::shared_ptr<Program>& program() const { return program_; }
  int64_t host_bytes() const override { return static_cast<int64_t>(program_->mirror().bytes()); }

 private:
  std::shared_ptr<Program> program_;
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_PREPARED_LIST_H_
