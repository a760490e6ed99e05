// Builds the partition from clusters: decides which values are stored, which are kept in locals and
// which are recomputed in place, and determines the loops of every stage.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_BUILD_PARTITION_H_
#define KILN_COMPILER_PARTITION_CLUSTER_BUILD_PARTITION_H_

#include "compiler/graph/graph.h"
#include "compiler/partition/cluster/clustering.h"
#include "compiler/partition/partition.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

Partition BuildPartition(const graph::Graph& graph, const Clustering& clustering,
                         const drivers::Target& target);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_BUILD_PARTITION_H_
