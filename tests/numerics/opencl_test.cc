// Kernels printed as OpenCL C against the interpreter, on this machine's OpenCL device: every
// primitive in every dtype, bit for bit but for the elementary functions; and the cases of the
// table, of which CI runs a part.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/short_float.h"
#include "gtest/gtest.h"
#include "tests/numerics/graph_checks.h"
#include "tests/numerics/primitive_values.h"
#include "tests/numerics/run_opencl.h"
#include "tests/numerics/split_cases.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ir::Op;
using ops::OpDef;

// OpenCL 1.2, 7.4, and the interpreter's half a place. What is done in more digits and rounded is
// as exact as anywhere.
Closeness OpenClCloseness(const OpDef& op, DType dtype) {
  const Closeness closeness = ClosenessOf(op, dtype);
  if (ir::IsShortFloat(dtype)) return closeness;
  if (op.op == Op::kPow) return {17, true};
  if (op.op == Op::kExp2 || op.op == Op::kLog2 || op.op == Op::kSin) return {5, true};
  return closeness;
}

RunGraph On(Scheduled scheduled) {
  return [scheduled](const graph::Graph& graph, absl::Span<const ops::HostTensor> inputs) {
    return RunOnOpenCl(graph, inputs, scheduled);
  };
}

class OpenClDTypeTest : public testing::TestWithParam<DType> {};

TEST_P(OpenClDTypeTest, UnaryOps) {
  ExpectUnaryOpsRight(GetParam(), OpenClCloseness, On(Scheduled::kThreads));
}

TEST_P(OpenClDTypeTest, BinaryOps) {
  ExpectBinaryOpsRight(GetParam(), OpenClCloseness, On(Scheduled::kThreads));
}

INSTANTIATE_TEST_SUITE_P(All, OpenClDTypeTest, testing::ValuesIn(AllDTypes()),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

struct Parameter {
  TableRow row;
  Scheduled scheduled;
};

std::vector<Parameter> Parameters() {
  std::vector<Parameter> parameters;
  for (const TableRow& row : TableRows()) {
    for (const Scheduled scheduled : {Scheduled::kThreads, Scheduled::kAsForCpu})
      parameters.push_back({row, scheduled});
  }
  return parameters;
}

class OpenClCaseTest : public testing::TestWithParam<Parameter> {};

TEST_P(OpenClCaseTest, EqualsInterpreter) { ExpectRight(GetParam().row, On(GetParam().scheduled)); }

INSTANTIATE_TEST_SUITE_P(
    Table, OpenClCaseTest, testing::ValuesIn(Parameters()), [](const auto& info) {
      return absl::StrCat(Name(info.param.row),
                          info.param.scheduled == Scheduled::kThreads ? "_threads" : "_as_for_cpu");
    });

class OpenClSplitTest : public testing::TestWithParam<Case> {};

TEST_P(OpenClSplitTest, EqualsInterpreter) {
  ExpectGradientsRight({GetParam(), DType::kFloat32}, On(Scheduled::kThreads));
}

INSTANTIATE_TEST_SUITE_P(All, OpenClSplitTest, testing::ValuesIn(SplitCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::numerics
