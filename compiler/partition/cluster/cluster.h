// Decides which stored values share a kernel, and how their loops line up.
//
// A cluster is a future kernel: stages of values over shared loops. A value joins the cluster of a
// value that it reads
//  * in the same stage, if it needs only the same points: an elementwise epilogue, or a sibling
//    over the same data;
//  * as a new stage, if both fit one grid ("rows"): softmax, normalisations and their gradients.
//    The grid may shrink for this, as long as it keeps enough points or the work is small;
//  * where blocks of threads share memory, as a new stage over tiles of a cut grid (tile.h), if it
//    reads no tile other than its own: rounds of a sorting network.
// Contractions take only epilogues, since their loops belong to the schedule; an epilogue that
// streams many large tensors is split off again (split_epilogues.h). A scatter is alone: it
// overwrites an existing tensor.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_CLUSTER_H_
#define KILN_COMPILER_PARTITION_CLUSTER_CLUSTER_H_

#include "compiler/graph/graph.h"
#include "compiler/partition/choices/choices.h"
#include "compiler/partition/cluster/clustering.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

// Chooses the values to store (materialize.h), then puts each into a cluster. The tensors that the
// graph's scatters overwrite are reserved for them (scatter/prepare_scatters.h). `chosen` goes
// before what costs say, here and in the passes that change the clusters.
Clustering MakeClusters(const graph::Graph& graph, const drivers::Target& target,
                        ChosenValues chosen = {});

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_CLUSTER_H_
