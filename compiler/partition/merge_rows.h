// Kernels with the same grid, one of which reads the other's results row by row, become one.
#ifndef KILN_COMPILER_PARTITION_MERGE_ROWS_H_
#define KILN_COMPILER_PARTITION_MERGE_ROWS_H_

#include "compiler/partition/clustering.h"

namespace kiln::partition {

// Values join clusters one by one (cluster.h), so a value that meets two clusters can only join one
// of them. This joins the clusters afterwards.
void MergeRows(Clustering* clustering);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_MERGE_ROWS_H_
