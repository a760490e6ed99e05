// Runs a program.
#ifndef KILN_SERVER_SESSIONS_OPERATIONS_RUN_H_
#define KILN_SERVER_SESSIONS_OPERATIONS_RUN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/runtime/run/run.h"
#include "server/sessions/operations/common.h"

namespace kiln::sessions {

struct RunProgram {
  uint64_t program = 0;
  std::vector<uint64_t> inputs;
  std::vector<uint64_t> outputs;
  runtime::Bindings bindings;
  bool report_time = false;

  static constexpr uint64_t kLogKinds[] = {2};
  static constexpr bool kLogsItself = true;
  static constexpr bool kTakesMemory = true;
  int64_t bytes() const;
  absl::Span<const uint64_t> new_handles() const { return outputs; }
  void EncodeForLog(Encoder& out) const;
  static RunProgram DecodeFromLog(uint64_t kind, Decoder& in);
  // The program's compilation, or an input that is being copied to the device.
  AddWaiter MustWaitFor(SessionState& session, uint64_t sequence) const;
  void Execute(SessionState& session, uint64_t sequence);
};

// Numbers of values and of the origin in a checkpoint.
struct SavedRun {
  size_t origin = 0;
  runtime::Bindings bindings;
  std::vector<size_t> inputs;
  std::vector<size_t> results;
  bool report_time = false;
  // The updated handles, one for each of the last `results`, and the values to restore if the run
  // is cancelled. Empty if the run cannot be cancelled.
  struct Update {
    uint64_t handle = 0;
    size_t before = 0;
  };
  std::vector<Update> updates{};

  void Encode(Encoder& out) const;
  static SavedRun Decode(Decoder& in, const CheckpointSizes& sizes);
  // Since version 3 of checkpoints.
  void EncodeMore(Encoder& out) const;
  void DecodeMore(Decoder& in, const CheckpointSizes& sizes);
  std::vector<size_t> uses() const;
  absl::Span<const size_t> makes() const { return results; }
  void Redo(SessionState& session, uint64_t sequence, size_t pending) const;
};

// A run that is queued or on the device, and how to undo its bindings of handles.
struct PendingRun {
  std::shared_ptr<const ProgramOrigin> program;  // null: the run cannot be done again
  runtime::Bindings bindings;
  std::vector<runtime::ValuePointer> inputs;
  bool report_time = false;
  std::vector<runtime::ValuePointer> results{};  // outputs, then updates
  // Null if it cannot be cancelled, since it is done again after a restart.
  std::shared_ptr<runtime::Run> run{};
  std::vector<uint64_t> outputs{};  // the handles of the first results
  struct Update {
    uint64_t handle = 0;
    runtime::ValuePointer before;
  };
  std::vector<Update> updates{};  // the handles of the other results
  bool is_cancelled = false;      // it will be answered with CANCELLED

  bool can_be_redone() const { return program != nullptr; }
  // Whether its inputs are not all there any more (runtime::Run::has_committed).
  bool has_committed() const { return run != nullptr && run->has_committed(); }
  absl::Span<const runtime::ValuePointer> makes() const { return results; }
  absl::StatusOr<SavedRun> Save(CheckpointIndex& index) const;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_OPERATIONS_RUN_H_
