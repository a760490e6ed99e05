// Choices at random about which values share a kernel.
#ifndef KILN_TESTS_NUMERICS_COMPILED_RANDOM_CHOICES_H_
#define KILN_TESTS_NUMERICS_COMPILED_RANDOM_CHOICES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "compiler/graph/graph.h"
#include "drivers/interface/target.h"

namespace kiln::numerics {

// Returns choices for some of the graph's sites (partition::FindSites), as text: for few of them,
// or for many, as the seed says; empty for a graph on a mesh. Errors: those of the passes.
absl::StatusOr<std::string> RandomChoices(const graph::Graph& graph, const drivers::Target& target,
                                          const compiler::Options& options, uint64_t seed);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_COMPILED_RANDOM_CHOICES_H_
