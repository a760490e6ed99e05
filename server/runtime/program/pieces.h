// The lists of a program cut into pieces, so that other lists can run in between
// (fairness/slices.h).
#ifndef KILN_SERVER_RUNTIME_PROGRAM_PIECES_H_
#define KILN_SERVER_RUNTIME_PROGRAM_PIECES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/fairness/slices.h"
#include "server/runtime/program/loaded_program.h"

namespace kiln::runtime {

// A piece has the same exchanges on all devices, so no device waits for a piece that has not been
// submitted.
struct Pieces {
  struct List {
    std::unique_ptr<drivers::PreparedList> list;
    int first_command = 0;  // in the whole list; the piece before may contain a part of it
  };
  std::shared_ptr<const LoadedProgram> loaded;  // provides their kernels and signals
  std::vector<double> seconds;                  // expected time of each piece; two or more
  std::vector<std::vector<List>> lists;         // by member and piece
};

// Returns the points of the call's grid, as in fairness::CommandCost; 1 if the kernel cannot run a
// part of it.
int64_t PointsOf(const compiler::CompiledProgram& program, const compiler::KernelCall& call);

// Returns null if there would be one piece, or if a list uses host memory, of which the list of
// each piece would need its own. `costs`: by member, of the calls, then of the copies. Errors: the
// devices'.
absl::StatusOr<std::shared_ptr<const Pieces>> CutLists(
    const ShardedProgram& program, const std::shared_ptr<const LoadedProgram>& loaded,
    absl::Span<const std::vector<fairness::CommandCost>> costs, double seconds_max);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_PIECES_H_
