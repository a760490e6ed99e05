// Which stored values share a kernel, and how their loops line up.
//
// A cluster is a kernel in the making: stages of values over shared loops. A value joins the
// cluster of what it reads
//  * in the same stage, if it needs only the same points: an elementwise epilogue, or a sibling
//    over the same data;
//  * as a new stage, if both fit one grid ("rows"): softmax, normalisations and their gradients.
//    The grid may shrink for it, as long as it keeps enough points or the work is small;
//  * where blocks of threads share memory, as a new stage over tiles of a cut grid (tile.h), if it
//    reads no other tile than its own: rounds of a sorting network.
// Contractions take epilogues only: their loops belong to the schedule; one that streams many large
// tensors is cut off again (split_epilogues.h). A scatter is alone: it writes over a tensor that is
// there already.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_H_
#define KILN_COMPILER_PARTITION_CLUSTER_H_

#include "compiler/graph/graph.h"
#include "compiler/partition/clustering.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

// Chooses which values are stored (materialize.h), then puts each into a cluster. What the graph's
// scatters write over is theirs (prepare_scatters.h).
Clustering MakeClusters(const graph::Graph& graph, const drivers::Target& target);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_H_
