// A command list as CUDA graphs: one for each part between signals and waits, whose nodes wait for
// those alone whose results they need.
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

// What the device was given of one submission.
struct Enqueued {
  // Around the whole, for as long as all went well.
  Event begin;
  Event end;
  // Around each call, where commands are timed.
  struct Timed {
    size_t command = 0;
    Event begin = {};
    Event end = {};
  };
  std::vector<Timed> timed;
  // What the slot table is written from.
  PinnedBlock table;
  // The status of enqueueing; if commands are timed, the seconds of the waits.
  SubmitResult result;
};

// The calls of one list. Used by the device's submission thread only, once at a time.
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

  // Called with an event that stands behind all that was enqueued before a signal, and the signal.
  using OnSignal = std::function<void(Event before, int signal)>;

  // Enqueues all commands and returns without waiting for them, except that a wait blocks until its
  // signal, and copies to and from host memory until what comes before them has ended. addresses[i]
  // is where slot i begins; of host slots, its mirror. The calling thread has a current context.
  Enqueued Enqueue(absl::Span<const CUdeviceptr> addresses, absl::Span<Buffer* const> buffers,
                   const SubmitOptions& options, const SteadyClock& now, const OnSignal& on_signal);

 private:
  // The calls [begin, end), which are enqueued together, and the command behind them.
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
  Dependencies dependencies_;         // of the part that is being made
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
