// Which values are worth storing. All others are inlined into what reads them.
//
// The unit of cost is one read of one element from memory per computed element; arithmetic counts
// by the target's costs. Storing costs about a write and a read for each reader, computing again
// costs the reads of all operands and the arithmetic, once for each reader.
#ifndef KILN_COMPILER_PARTITION_MATERIALIZE_H_
#define KILN_COMPILER_PARTITION_MATERIALIZE_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/node.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

enum class Storage : uint8_t {
  kRequired,  // results, reductions, contiguous
  kStored,    // cheaper to read than to compute again
  kNearby,    // worth keeping within a kernel (it has costly functions), not worth a trip through
              // memory
};

// A value that may become a loop nest of its own.
struct Candidate {
  const ir::Node* node = nullptr;
  Storage storage = Storage::kRequired;
  // Of computing one element from stored operands.
  double arithmetic = 0;
  int nodes = 0;  // of that expression
};

// Operands before users. Inputs are not among them.
std::vector<Candidate> ChooseStored(const graph::Graph& graph, const drivers::Target& target);

// Of arithmetic from which on a value is worth keeping, where that is cheaper than storing it.
double CostlyArithmetic(const drivers::Target& target);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_MATERIALIZE_H_
