// Checks whether the simulation of devices detects wrong plans.
#ifndef KILN_TESTS_SHARDED_FAULTS_H_
#define KILN_TESTS_SHARDED_FAULTS_H_

#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/shard/program.h"

namespace kiln::sharded {

// Returns a value for each input, the same each time.
std::vector<ops::HostTensor> InputValues(const graph::Graph& graph);

// Returns true if, for some of many orders in which the devices may run, `program` gives other
// results than MakeProgram's for the graph.
bool IsNoticed(const graph::Graph& graph, const shard::Program& program);

}  // namespace kiln::sharded

#endif  // KILN_TESTS_SHARDED_FAULTS_H_
