// Turns a graph on a mesh into the program of its devices, which is the same for all of them except
// for the device's mesh coordinate (single program, multiple data). Turns a graph in stages into
// the work of each device.
#ifndef KILN_COMPILER_SHARD_SHARD_H_
#define KILN_COMPILER_SHARD_SHARD_H_

#include "compiler/graph/graph.h"
#include "compiler/shard/program.h"

namespace kiln::shard {

// Requires: `graph` has a mesh, and no gradient requests. Takes time linear in its nodes, times the
// number of layouts in which one value is wanted.
Program Shard(const graph::Graph& graph);

// Returns a graph without a mesh as the program of one device: a single segment.
Program OnOneDevice(const graph::Graph& graph);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_SHARD_H_
