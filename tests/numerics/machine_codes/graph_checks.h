// Compares graphs with the interpreter on any device: shared by tests of several devices.
#ifndef KILN_TESTS_NUMERICS_MACHINE_CODES_GRAPH_CHECKS_H_
#define KILN_TESTS_NUMERICS_MACHINE_CODES_GRAPH_CHECKS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/kernel/testing/interpret.h"
#include "compiler/ops/op_def.h"
#include "tests/numerics/cases/cases.h"
#include "tests/numerics/compare.h"

namespace kiln::numerics {

// Runs a graph through all passes and on the device. The outputs include requested gradients.
using RunGraph = std::function<absl::StatusOr<kernel::PartitionResults>(
    const graph::Graph& graph, absl::Span<const ops::HostTensor> inputs)>;
// Returns how close an op's results must be.
using ClosenessRule = Closeness (*)(const ops::OpDef& op, ir::DType dtype);

// Check all ops of one operand, including casts, and all of two, on the dtype's special values: in
// one graph each, so that few kernels are compiled.
void ExpectUnaryOpsRight(ir::DType dtype, ClosenessRule closeness, const RunGraph& run);
void ExpectBinaryOpsRight(ir::DType dtype, ClosenessRule closeness, const RunGraph& run);

// The cases of the table, each with the float dtypes that it can have.
struct TableRow {
  Case test_case;
  ir::DType dtype;
};
const std::vector<TableRow>& TableRows();
// Returns for example "softmax_float16".
std::string Name(const TableRow& row);
void ExpectRight(const TableRow& row, const RunGraph& run);
// Also checks its gradients, if it has any.
void ExpectGradientsRight(const TableRow& row, const RunGraph& run);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_MACHINE_CODES_GRAPH_CHECKS_H_
