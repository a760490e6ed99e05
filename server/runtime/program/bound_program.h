// A program with its variables bound, ready to run.
//
// There are two kinds of programs. A program that was compiled for all values of a graph's
// variables takes the values as an input, and its buffers have the maximum size. A program that was
// compiled for particular values, as every program of a graph without variables is, has neither.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_BOUND_PROGRAM_H_
#define KILN_SERVER_RUNTIME_PROGRAM_BOUND_PROGRAM_H_

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
#include "server/runtime/program/program.h"

namespace kiln::runtime {

// Immutable except for its renewal. Thread-safe.
struct BoundProgram {
  std::shared_ptr<Program> program;
  // The actual shapes at these values.
  Signature signature;

  // The fields below are empty unless the program is one for all values.

  // The program's last input.
  std::shared_ptr<buffers::Value> variables;
  std::vector<int64_t> values;  // the content of `variables`
  // For each input whose buffers may be smaller than the program's slot: a list that copies its
  // bytes from slot 0 to a larger buffer in slot 1. Null if no copy is needed.
  std::vector<std::unique_ptr<drivers::PreparedList>> widen;

  // The replacement of this object, made on its first use after its device was lost and revived.
  struct Renewal {
    absl::Mutex mutex;
    std::shared_ptr<const BoundProgram> bound ABSL_GUARDED_BY(mutex);
  };
  mutable Renewal renewal;

  // Returns the size in bytes of the program's slot.
  int64_t input_bytes(size_t input) const { return program->compiled().slots[input].bytes; }
  // Outputs, then updates.
  int64_t result_bytes(size_t result) const {
    const size_t inputs = signature.inputs.size() + (variables ? 1 : 0);
    return program->compiled().slots[inputs + result].bytes;
  }
};

struct ProgramFuture : Future<std::shared_ptr<const BoundProgram>> {
  // Progress of the compilation. Set before other threads see the future; null if it is not needed.
  std::shared_ptr<FirstCall> first_call;
};

// Wraps a program that was compiled for particular values.
std::shared_ptr<const BoundProgram> Bound(std::shared_ptr<Program> program);

// Binds a program for all values. `signature` is that of the graph built for `values`. The memory
// of the values belongs to the daemon and is charged to no user. Errors: RESOURCE_EXHAUSTED, or the
// device's error.
absl::StatusOr<std::shared_ptr<const BoundProgram>> Bind(std::shared_ptr<Program> program,
                                                         Signature signature,
                                                         absl::Span<const int64_t> values);

// Returns `bound`, or its replacement if its device was lost and revived. Errors: those of Bind.
absl::StatusOr<std::shared_ptr<const BoundProgram>> Renewed(
    std::shared_ptr<const BoundProgram> bound);

// Records, once the program is ready, that `user` has asked for it under this name.
void NoteUser(const std::shared_ptr<ProgramFuture>& future, const std::string& user,
              const std::string& name);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_BOUND_PROGRAM_H_
