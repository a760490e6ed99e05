#include "tests/numerics/kernels/proved_loops.h"

#include <utility>
#include <vector>

#include "compiler/proof/prove.h"
#include "compiler/schedule/apply/apply.h"
#include "compiler/schedule/threads/synchronize.h"

namespace kiln::numerics {

absl::StatusOr<compiler::PassState> Passes(const graph::Graph& graph,
                                           const drivers::Target& target) {
  std::vector<compiler::PassReport> reports;
  compiler::Options options;
  options.verify = true;
  return compiler::RunPasses(graph, target, {}, options, &reports);
}

absl::StatusOr<schedule::LoopProgram> ProvedLoops(const kernel::Kernel& kernel,
                                                  const schedule::Schedule& schedule,
                                                  int shuffling) {
  auto program = schedule::Apply(kernel, schedule);
  if (!program.ok()) return program.status();
  const absl::Status proved = proof::Prove(kernel, schedule, *program);
  if (!proved.ok()) return proved;
  return schedule::Synchronize(*std::move(program), shuffling);
}

}  // namespace kiln::numerics
