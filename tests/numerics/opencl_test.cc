// Kernels printed as OpenCL C against the interpreter, on this machine's OpenCL device: every
// primitive in every dtype, bit for bit but for the elementary functions; and the cases of the
// table, of which CI runs a part.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/autodiff/differentiate.h"
#include "compiler/ir/short_float.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/testing/build_op.h"
#include "compiler/ops/testing/evaluate.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/primitive_values.h"
#include "tests/numerics/random_graph.h"
#include "tests/numerics/run_opencl.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ir::Op;
using ops::HostTensor;
using ops::Kind;
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

// One graph with an output for each application of an op to its inputs, so that few kernels are
// compiled.
class ManyOps {
 public:
  explicit ManyOps(std::vector<HostTensor> operands) : operands_(std::move(operands)) {
    graph_.context = std::make_shared<ir::Context>();
    builder_ = std::make_unique<ops::Builder>(*graph_.context);
    for (const HostTensor& operand : operands_) {
      graph_.inputs.push_back({operand.dtype, operand.shape});
      inputs_.push_back(
          builder_->Input(static_cast<int64_t>(inputs_.size()), operand.dtype, operand.shape));
    }
  }

  // To as many of the operands as the op takes.
  void Add(std::string_view op, Closeness closeness, DType declared = DType::kInvalid) {
    const OpDef& row = *ops::FindOp(op);
    const std::vector<const ir::Node*> operands(inputs_.begin(),
                                                inputs_.begin() + row.operands.size());
    const auto node = ops::BuildOp(*builder_, row, operands, {}, declared);
    ASSERT_TRUE(node.ok()) << node.status();
    graph_.outputs.push_back(*node);
    what_.push_back(absl::StrCat(std::string(op), " to ", std::string(ir::Name((*node)->dtype()))));
    closeness_.push_back(closeness);
  }

  void ExpectRight(Scheduled scheduled) {
    if (graph_.outputs.empty()) return;
    const auto expected = ops::Evaluate(graph_.outputs, operands_);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto actual = RunOnOpenCl(graph_, operands_, scheduled);
    ASSERT_TRUE(actual.ok()) << actual.status();
    for (size_t i = 0; i < what_.size(); ++i) {
      EXPECT_EQ(Difference(actual->outputs[i], (*expected)[i], closeness_[i]), "") << what_[i];
    }
  }

 private:
  graph::Graph graph_;
  std::unique_ptr<ops::Builder> builder_;
  std::vector<HostTensor> operands_;
  std::vector<const ir::Node*> inputs_;
  std::vector<std::string> what_;
  std::vector<Closeness> closeness_;
};

class OpenClDTypeTest : public testing::TestWithParam<DType> {};

// Of one operand, and the casts: a kernel whose inputs are all values of short dtypes.
TEST_P(OpenClDTypeTest, UnaryOps) {
  const DType dtype = GetParam();
  ManyOps many(Values(dtype, 1));
  for (const OpDef& op : ops::AllOps()) {
    if (op.kind != Kind::kUnary || !Admits(op, dtype)) continue;
    many.Add(op.name, OpenClCloseness(op, dtype));
  }
  for (const DType to : AllDTypes()) many.Add("cast", {}, to);
  for (const DType to : AllDTypes()) {
    if (ir::SizeOf(to) != ir::SizeOf(dtype)) continue;
    if ((to == DType::kBool) == (dtype == DType::kBool)) many.Add("bitcast", {}, to);
  }
  many.ExpectRight(Scheduled::kThreads);
}

TEST_P(OpenClDTypeTest, BinaryOps) {
  const DType dtype = GetParam();
  ManyOps many(Values(dtype, 2));
  for (const OpDef& op : ops::AllOps()) {
    if (op.kind != Kind::kBinary || !Admits(op, dtype)) continue;
    many.Add(op.name, OpenClCloseness(op, dtype));
  }
  many.ExpectRight(Scheduled::kThreads);
}

INSTANTIATE_TEST_SUITE_P(All, OpenClDTypeTest, testing::ValuesIn(AllDTypes()),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

struct Parameter {
  Case test_case;
  DType dtype;
  Scheduled scheduled;
};

std::vector<Parameter> Parameters() {
  std::vector<Parameter> parameters;
  for (const Case& test_case : Cases()) {
    bool has_float = false;
    for (const OperandSpec& operand : test_case.operands) {
      has_float = has_float || operand.dtype == DType::kInvalid;
    }
    for (const DType dtype :
         {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
      if (dtype != DType::kFloat32 && !has_float) continue;
      for (const Scheduled scheduled : {Scheduled::kThreads, Scheduled::kAsForCpu}) {
        parameters.push_back({test_case, dtype, scheduled});
      }
    }
  }
  return parameters;
}

class OpenClCaseTest : public testing::TestWithParam<Parameter> {};

TEST_P(OpenClCaseTest, EqualsInterpreter) {
  const auto& [test_case, dtype, scheduled] = GetParam();
  const auto graph = MakeGraph(test_case, dtype);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::vector<HostTensor> inputs = OperandValues(test_case, dtype);
  const auto differentiated = autodiff::Differentiate(*graph);
  ASSERT_TRUE(differentiated.ok()) << differentiated.status();
  const auto expected = ops::Evaluate(differentiated->outputs, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto actual = RunOnOpenCl(*graph, inputs, scheduled);
  ASSERT_TRUE(actual.ok()) << actual.status();
  const double tolerance = ToleranceOf(dtype);
  for (size_t i = 0; i < expected->size(); ++i) {
    EXPECT_EQ(Difference(actual->outputs[i], (*expected)[i], tolerance, tolerance), "")
        << graph::Print(*graph);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, OpenClCaseTest, testing::ValuesIn(Parameters()), [](const auto& info) {
      return absl::StrCat(info.param.test_case.name, "_", std::string(ir::Name(info.param.dtype)),
                          info.param.scheduled == Scheduled::kThreads ? "_threads" : "_as_for_cpu");
    });

}  // namespace
}  // namespace kiln::numerics
