// Reads the text form of a graph; graph.h's Print writes it.
//
//   float32_matmul_precision high   # "highest" if it is left out
//   mesh data=2 model=4      # left out without one
//   input 0 float32[4,8] spec=[1,0,0]   # as the op "shard" has it; left out where nothing is split
//   input 1 float32
//   %0 = input float32[4,8] index=0
//   %1 = neg float32[4,8] %0
//   output %1                # likewise with a spec
//   update 0 %1              # after the run, input 0 holds %1
//
// Inputs come first and in order, outputs and updates after the nodes they name. Nodes are as
// compiler/ir/text.h has them.
#ifndef KILN_COMPILER_GRAPH_TEXT_H_
#define KILN_COMPILER_GRAPH_TEXT_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace kiln::graph {

// INVALID_ARGUMENT, "line N: …", for whatever is not a legal graph: any text is safe to parse.
absl::StatusOr<Graph> Parse(std::string_view text);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_TEXT_H_
