// A graph on a mesh becomes what each of its devices does, the same for all of them but for the
// device's place: single program, multiple data. Or, of a graph in stages, what each device does of
// it.
#ifndef KILN_COMPILER_SHARD_SHARD_H_
#define KILN_COMPILER_SHARD_SHARD_H_

#include "compiler/graph/graph.h"
#include "compiler/shard/program.h"

namespace kiln::shard {

// `graph` has a mesh, and no gradient requests. Linear in its nodes, times the ways in which one
// value is wanted.
Program Shard(const graph::Graph& graph);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_SHARD_H_
