// The decisions of a graph's clusters that could have been different: where a search tries another
// choice.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_SITES_H_
#define KILN_COMPILER_PARTITION_CLUSTER_SITES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ir/node.h"
#include "compiler/partition/choices/choices.h"
#include "compiler/partition/cluster/clustering.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

// A value with the choice that the clusters have not made. If they have made it because it was
// chosen, the site has its opposite.
struct Site {
  int64_t value = 0;  // its number
  Choice choice = Choice::kApart;
  int64_t bytes = 0;  // of the value: about what is moved or saved for each reader
  // Equal for sites that look alike: the same choice for values of the same op and shape, whose
  // operands and users have the same ops and shapes, as those of equal layers.
  std::string kind;
  std::string text;  // "split %40 add float32[32,64]"
};

// Returns the sites, those of large values first. `graph` is the one that was clustered, and
// `clustering` is complete. Some choices may turn out to change nothing.
std::vector<Site> FindSites(const graph::Graph& graph, const Clustering& clustering,
                            const drivers::Target& target);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_SITES_H_
