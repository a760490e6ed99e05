// Whether the simulation of devices sees what is planned wrong.
#ifndef KILN_TESTS_SHARDED_FAULTS_H_
#define KILN_TESTS_SHARDED_FAULTS_H_

#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/shard/program.h"

namespace kiln::sharded {

// A value for each input, the same ones each time.
std::vector<ops::HostTensor> InputValues(const graph::Graph& graph);

// Whether one of many orders in which devices may go ahead shows that `program` is not what
// MakeProgram makes of the graph.
bool IsNoticed(const graph::Graph& graph, const shard::Program& program);

}  // namespace kiln::sharded

#endif  // KILN_TESTS_SHARDED_FAULTS_H_
