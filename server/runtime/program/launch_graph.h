// Which launches of a program read what which others wrote.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_LAUNCH_GRAPH_H_
#define KILN_SERVER_RUNTIME_PROGRAM_LAUNCH_GRAPH_H_

#include <cstdint>
#include <vector>

#include "compiler/compiler.h"

namespace kiln::runtime {

// A launch reads bytes that an earlier one wrote last. Both are indices into
// CompiledProgram::calls.
struct LaunchEdge {
  int from = 0;
  int to = 0;
  int64_t bytes = 0;  // of all of its arguments together; counts a byte once for each argument

  bool operator==(const LaunchEdge&) const = default;
};

// Returns the edges of the first `launches_max` launches by `to`, then `from`; at most `edges_max`
// of them. A launch may read what thousands wrote. What a launch reads of another device of its
// group counts as what this device wrote there, since all devices of a group run the same launches.
std::vector<LaunchEdge> LaunchEdges(const compiler::CompiledProgram& program,
                                    size_t launches_max = SIZE_MAX, size_t edges_max = SIZE_MAX);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_LAUNCH_GRAPH_H_
