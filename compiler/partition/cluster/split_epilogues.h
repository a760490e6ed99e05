// Splits off an epilogue that streams many large tensors as a separate kernel.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_SPLIT_EPILOGUES_H_
#define KILN_COMPILER_PARTITION_CLUSTER_SPLIT_EPILOGUES_H_

#include <cstdint>

#include "compiler/partition/cluster/clustering.h"

namespace kiln::partition {

// A contraction's schedule visits its result tile by tile: short runs of many rows. Reading one
// more tensor in that order (a residual, a bias) costs less than writing the result to memory and
// reading it again. The state of an optimizer, three tensors read and three written, costs more if
// all of it exceeds the caches, since memory delivers whole rows much faster. A result that is
// rounded to a short float stays so: the new kernel reads the short float.
inline constexpr int kStreamsMax = 2;               // tensors read in the epilogue
inline constexpr int64_t kLargeEpilogue = 1 << 20;  // elements of the result

void SplitEpilogues(Clustering* clustering);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_SPLIT_EPILOGUES_H_
