// An epilogue that streams many large tensors becomes a kernel of its own.
#ifndef KILN_COMPILER_PARTITION_SPLIT_EPILOGUES_H_
#define KILN_COMPILER_PARTITION_SPLIT_EPILOGUES_H_

#include <cstdint>

#include "compiler/partition/clustering.h"

namespace kiln::partition {

// A contraction's schedule visits its result tile by tile: short runs of many rows. One tensor
// that is read along (a residual, a bias' input) costs less than a second trip of the result
// through memory. The state of an optimizer, three tensors read and three written, costs more when
// all of it is larger than the caches: memory delivers whole rows much faster.
inline constexpr int kMostStreams = 2;              // tensors read along
inline constexpr int64_t kLargeEpilogue = 1 << 20;  // elements of the result

void SplitEpilogues(Clustering* clustering);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_SPLIT_EPILOGUES_H_
