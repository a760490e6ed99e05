// Graphs against the interpreter, on whatever runs them: what tests of several devices share.
#ifndef KILN_TESTS_NUMERICS_GRAPH_CHECKS_H_
#define KILN_TESTS_NUMERICS_GRAPH_CHECKS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/kernel/testing/interpret.h"
#include "compiler/ops/op_def.h"
#include "tests/numerics/cases.h"
#include "tests/numerics/compare.h"

namespace kiln::numerics {

// Through all passes and on the device. Outputs of requests for gradients come with it.
using RunGraph = std::function<absl::StatusOr<kernel::PartitionResults>(
    const graph::Graph& graph, absl::Span<const ops::HostTensor> inputs)>;
// How near an op's results must be.
using ClosenessRule = Closeness (*)(const ops::OpDef& op, ir::DType dtype);

// All ops of one operand, the casts among them, and all of two, on values of the dtype that matter:
// in one graph each, so that few kernels are compiled.
void ExpectUnaryOpsRight(ir::DType dtype, ClosenessRule closeness, const RunGraph& run);
void ExpectBinaryOpsRight(ir::DType dtype, ClosenessRule closeness, const RunGraph& run);

// The cases of the table, each with the dtypes of floats that it can take.
struct TableRow {
  Case test_case;
  ir::DType dtype;
};
const std::vector<TableRow>& TableRows();
// "softmax_float16".
std::string Name(const TableRow& row);
void ExpectRight(const TableRow& row, const RunGraph& run);
// With its gradients, if it has any.
void ExpectGradientsRight(const TableRow& row, const RunGraph& run);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_GRAPH_CHECKS_H_
