// Decides which values are worth storing. All others are inlined into their readers.
//
// The unit of cost is one read of one element from memory per computed element; the target gives
// the costs of arithmetic. Storing costs about one write, and one read per reader. Recomputing
// costs the reads of all operands and the arithmetic, once per reader.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_MATERIALIZE_H_
#define KILN_COMPILER_PARTITION_CLUSTER_MATERIALIZE_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/node.h"
#include "compiler/partition/choices/choices.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

enum class Storage : uint8_t {
  kRequired,  // results, reductions, contiguous
  kStored,    // cheaper to read than to recompute
  kNearby,    // worth keeping within a kernel (its functions are costly), but not worth storing to
              // memory
};

// A value that may become its own loop nest.
struct Candidate {
  const ir::Node* node = nullptr;
  Storage storage = Storage::kRequired;
  // The cost of computing one element from stored operands.
  double arithmetic = 0;
  int nodes = 0;  // of that expression
};

// Returns operands before users, without inputs. `chosen` replaces what the costs say, but not what
// has to be stored.
std::vector<Candidate> ChooseStored(const graph::Graph& graph, const drivers::Target& target,
                                    const ChosenValues& chosen);

// Returns the arithmetic cost from which on a value is worth keeping, if that is cheaper than
// storing it.
double CostlyArithmetic(const drivers::Target& target);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_MATERIALIZE_H_
