// Reads the text form of a graph; graph.h's Print writes it.
//
//   float32_matmul_precision high   # "highest" if omitted
//   mesh data=2 model=4      # omitted if there is none
//   input 0 float32[4,8] spec=[1,0,0]   # as the op "shard" stores it; omitted if nothing is split
//   input 1 float32
//   %0 = input float32[4,8] index=0
//   %1 = neg float32[4,8] %0
//   output %1                # may have a spec too
//   update 0 %1              # after the run, input 0 holds %1
//
// Inputs come first and in order, outputs and updates after the nodes they name. compiler/ir/text.h
// describes the form of nodes.
#ifndef KILN_COMPILER_GRAPH_TEXT_H_
#define KILN_COMPILER_GRAPH_TEXT_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace kiln::graph {

// Returns INVALID_ARGUMENT, "line N: …", if the text is not a legal graph. Safe for untrusted text.
absl::StatusOr<Graph> Parse(std::string_view text);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_TEXT_H_
