#include "compiler/partition/fuse.h"

#include "compiler/partition/cluster.h"
#include "compiler/partition/materialize.h"
#include "compiler/partition/normalize.h"
#include "compiler/partition/stages.h"

namespace kiln::partition {

absl::StatusOr<Partition> Fuse(const graph::Graph& graph) {
  const graph::Graph normal = Normalize(graph);
  return BuildPartition(normal, MakeClusters(ChooseStored(normal)));
}

}  // namespace kiln::partition
