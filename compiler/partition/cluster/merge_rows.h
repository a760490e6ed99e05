// Merges kernels with the same grid if one reads the other's results row by row.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_MERGE_ROWS_H_
#define KILN_COMPILER_PARTITION_CLUSTER_MERGE_ROWS_H_

#include "compiler/partition/cluster/clustering.h"

namespace kiln::partition {

// Values join clusters one by one (cluster.h), so a value that fits two clusters can only join one
// of them. This pass merges the clusters afterwards.
void MergeRows(Clustering* clustering);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_MERGE_ROWS_H_
