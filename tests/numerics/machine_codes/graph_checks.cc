#include "tests/numerics/machine_codes/graph_checks.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/text.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/testing/build_op.h"
#include "compiler/ops/testing/evaluate.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/primitive_values.h"
#include "tests/numerics/random/graph.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ops::HostTensor;
using ops::Kind;
using ops::OpDef;

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

  // Applies the op to as many of the operands as it takes.
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

  void ExpectRight(const RunGraph& run) {
    if (graph_.outputs.empty()) return;
    const auto expected = ops::Evaluate(graph_.outputs, operands_);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto actual = run(graph_, operands_);
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

void AddAll(Kind kind, DType dtype, ClosenessRule closeness, ManyOps* many) {
  for (const OpDef& op : ops::AllOps()) {
    if (op.kind == kind && Admits(op, dtype)) many->Add(op.name, closeness(op, dtype));
  }
}

std::vector<TableRow> MakeRows() {
  std::vector<TableRow> rows;
  for (const Case& test_case : Cases()) {
    bool has_float = false;
    for (const OperandSpec& operand : test_case.operands)
      has_float = has_float || operand.dtype == DType::kInvalid;
    for (const DType dtype :
         {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
      if (dtype == DType::kFloat32 || has_float) rows.push_back({test_case, dtype});
    }
  }
  return rows;
}

void ExpectGraphRight(const graph::Graph& graph, const std::vector<HostTensor>& inputs, DType dtype,
                      const RunGraph& run) {
  const auto differentiated = autodiff::Differentiate(graph);
  ASSERT_TRUE(differentiated.ok()) << differentiated.status();
  const auto expected = ops::Evaluate(differentiated->outputs, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto actual = run(graph, inputs);
  ASSERT_TRUE(actual.ok()) << actual.status();
  const double tolerance = ToleranceOf(dtype);
  for (size_t i = 0; i < expected->size(); ++i) {
    EXPECT_EQ(Difference(actual->outputs[i], (*expected)[i], tolerance, tolerance), "")
        << graph::Print(graph);
  }
}

}  // namespace

void ExpectUnaryOpsRight(DType dtype, ClosenessRule closeness, const RunGraph& run) {
  ManyOps many(Values(dtype, 1));
  AddAll(Kind::kUnary, dtype, closeness, &many);
  for (const DType to : AllDTypes()) many.Add("cast", {}, to);
  for (const DType to : AllDTypes()) {
    if (ir::SizeOf(to) != ir::SizeOf(dtype)) continue;
    if ((to == DType::kBool) == (dtype == DType::kBool)) many.Add("bitcast", {}, to);
  }
  many.ExpectRight(run);
}

void ExpectBinaryOpsRight(DType dtype, ClosenessRule closeness, const RunGraph& run) {
  ManyOps many(Values(dtype, 2));
  AddAll(Kind::kBinary, dtype, closeness, &many);
  many.ExpectRight(run);
}

const std::vector<TableRow>& TableRows() {
  static const auto& rows = *new std::vector<TableRow>(MakeRows());
  return rows;
}

std::string Name(const TableRow& row) {
  return absl::StrCat(row.test_case.name, "_", std::string(ir::Name(row.dtype)));
}

void ExpectRight(const TableRow& row, const RunGraph& run) {
  const auto graph = MakeGraph(row.test_case, row.dtype);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ExpectGraphRight(*graph, OperandValues(row.test_case, row.dtype), row.dtype, run);
}

void ExpectGradientsRight(const TableRow& row, const RunGraph& run) {
  if (!row.test_case.differentiable) return ExpectRight(row, run);
  const auto graph = MakeGradientGraph(row.test_case, row.dtype, /*differentiate=*/false);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<HostTensor> inputs = OperandValues(row.test_case, row.dtype);
  inputs.push_back(OperandValue({graph->inputs.back().shape, -1, 1}, row.dtype, 9));
  ExpectGraphRight(*graph, inputs, row.dtype, run);
}

}  // namespace kiln::numerics
