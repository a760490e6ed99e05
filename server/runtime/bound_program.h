// A program with its variables bound: what a run runs.
//
// Programs come in two kinds. One that was compiled for all values of a graph's variables takes
// their values as an input and buffers that hold the most there can be; one that was compiled for
// these values alone, as every program of a graph without variables is, has neither.
#ifndef KILN_SERVER_RUNTIME_BOUND_PROGRAM_H_
#define KILN_SERVER_RUNTIME_BOUND_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/buffers/value.h"
#include "server/runtime/first_call.h"
#include "server/runtime/future.h"
#include "server/runtime/program.h"

namespace kiln::runtime {

// Immutable but for its renewal. Thread-safe.
struct BoundProgram {
  std::shared_ptr<Program> program;
  // The true shapes at these values.
  Signature signature;

  // The rest is empty unless the program is one for all values.

  // The program's last input.
  std::shared_ptr<buffers::Value> variables;
  std::vector<int64_t> values;  // that are in it
  // For each input whose buffers may be smaller than the program asks for: copies its bytes from
  // slot 0 to a larger buffer in slot 1. Null where there is nothing to copy.
  std::vector<std::unique_ptr<drivers::PreparedList>> widen;

  // This one again, made when it was next used after its device had been lost and revived.
  struct Renewal {
    absl::Mutex mutex;
    std::shared_ptr<const BoundProgram> bound ABSL_GUARDED_BY(mutex);
  };
  mutable Renewal renewal;

  // Bytes that the program's slots ask for.
  int64_t input_bytes(size_t input) const { return program->compiled().slots[input].bytes; }
  // Outputs, then updates.
  int64_t result_bytes(size_t result) const {
    const size_t inputs = signature.inputs.size() + (variables ? 1 : 0);
    return program->compiled().slots[inputs + result].bytes;
  }
};

struct ProgramFuture : Future<std::shared_ptr<const BoundProgram>> {
  // What has become of it so far. Set before others see it; null where nobody asks.
  std::shared_ptr<FirstCall> first_call;
};

// A program of these values alone.
std::shared_ptr<const BoundProgram> Bound(std::shared_ptr<Program> program);

// A program for all values at some: `signature` is that of the graph made for them. The values are
// the daemon's memory, no user's. RESOURCE_EXHAUSTED, or whatever error the device reports.
absl::StatusOr<std::shared_ptr<const BoundProgram>> Bind(std::shared_ptr<Program> program,
                                                         Signature signature,
                                                         absl::Span<const int64_t> values);

// `bound`, or what stands for it since its device was lost and revived. The errors of Bind.
absl::StatusOr<std::shared_ptr<const BoundProgram>> Renewed(
    std::shared_ptr<const BoundProgram> bound);

// Once the program is there, it knows that `user` has asked for it under this name.
void NoteUser(const std::shared_ptr<ProgramFuture>& future, const std::string& user,
              const std::string& name);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_BOUND_PROGRAM_H_
