// Compares every primitive in every dtype that its row admits, compiled, with the interpreter: bit
// for bit, except elementary functions, which are rounded differently in the last place. All values
// of one-byte and two-byte dtypes occur (of one-byte dtypes all pairs), of wider ones the special
// values and random bits. Each op runs along memory with a ragged end, and across it.
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/attributes.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/promote.h"
#include "compiler/ops/testing/build_op.h"
#include "compiler/ops/testing/evaluate.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/primitive_values.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/compiled/run_compiled.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ir::Node;
using ops::HostTensor;
using ops::Kind;
using ops::OpDef;

constexpr int64_t kRows = 61;
constexpr int64_t kColumns = 67;

struct Application {
  const OpDef* op = nullptr;
  std::vector<HostTensor> operands;
  ops::Attributes attributes = {};
  DType declared = DType::kInvalid;
  // False: along memory. True: across it, with the operands' first elements as a transposed matrix.
  bool across = false;
};

// Returns the graph of an application; `inputs` become its inputs.
absl::StatusOr<graph::Graph> MakeGraph(const Application& application) {
  graph::Graph graph;
  graph.context = std::make_shared<ir::Context>();
  ops::Builder builder(*graph.context);
  std::vector<const Node*> nodes;
  for (const HostTensor& operand : application.operands) {
    const Node* node =
        builder.Input(static_cast<int64_t>(nodes.size()), operand.dtype, operand.shape);
    graph.inputs.push_back({operand.dtype, operand.shape});
    if (application.across) {
      node = builder.Slice(node, 0, 0, std::min(operand.shape[0], kRows * kColumns));
      const int64_t rows = node->shape()[0] / kColumns;
      if (rows > 0) {
        node = builder.Reshape(builder.Slice(node, 0, 0, rows * kColumns), {rows, kColumns});
        node = builder.Transpose(node, 0, 1);
      }
    }
    nodes.push_back(node);
  }
  const auto result =
      ops::BuildOp(builder, *application.op, nodes, application.attributes, application.declared);
  if (!result.ok()) return result.status();
  graph.outputs = {*result};
  return graph;
}

// Returns what is wrong; empty if nothing.
std::string Wrong(const Application& application, Closeness closeness) {
  const auto graph = MakeGraph(application);
  if (!graph.ok()) return graph.status().ToString();
  const auto expected = ops::Evaluate(graph->outputs, application.operands);
  if (!expected.ok()) return expected.status().ToString();
  const auto actual = RunCompiled(*graph, application.operands);
  if (!actual.ok()) return actual.status().ToString();
  return Difference((*actual)[0], (*expected)[0], closeness);
}

std::string WrongBothWays(Application application, Closeness closeness) {
  std::string wrong = Wrong(application, closeness);
  if (!wrong.empty()) return absl::StrCat("along memory: ", wrong);
  application.across = true;
  wrong = Wrong(application, closeness);
  return wrong.empty() ? "" : absl::StrCat("across memory: ", wrong);
}

struct PrimitiveParameter {
  const OpDef* op;
  DType dtype;
};

std::string PrimitiveName(const testing::TestParamInfo<PrimitiveParameter>& info) {
  return absl::StrCat(std::string(info.param.op->name), "_",
                      std::string(ir::Name(info.param.dtype)));
}

std::vector<PrimitiveParameter> Parameters(std::initializer_list<Kind> kinds) {
  std::vector<PrimitiveParameter> parameters;
  for (const OpDef& op : ops::AllOps()) {
    for (const DType dtype : AllDTypes()) {
      if (std::find(kinds.begin(), kinds.end(), op.kind) == kinds.end()) continue;
      if (Admits(op, dtype)) parameters.push_back({&op, dtype});
    }
  }
  return parameters;
}

class ElementwiseTest : public testing::TestWithParam<PrimitiveParameter> {};

TEST_P(ElementwiseTest, EqualsInterpreter) {
  const auto& [op, dtype] = GetParam();
  const auto operands = Values(dtype, static_cast<int>(op->operands.size()));
  EXPECT_EQ(WrongBothWays({op, operands}, ClosenessOf(*op, dtype)), "");
}

INSTANTIATE_TEST_SUITE_P(Primitives, ElementwiseTest,
                         testing::ValuesIn(Parameters({Kind::kUnary, Kind::kBinary})),
                         PrimitiveName);

class DTypeTest : public testing::TestWithParam<DType> {};

TEST_P(DTypeTest, Casts) {
  const auto operands = Values(GetParam(), 1);
  for (const DType to : AllDTypes()) {
    EXPECT_EQ(WrongBothWays({ops::FindOp("cast"), operands, {}, to}, {}), "") << ir::Name(to);
  }
}

TEST_P(DTypeTest, Bitcasts) {
  const auto operands = Values(GetParam(), 1);
  for (const DType to : AllDTypes()) {
    if (ir::SizeOf(to) != ir::SizeOf(GetParam())) continue;
    if ((to == DType::kBool) != (GetParam() == DType::kBool)) continue;
    EXPECT_EQ(WrongBothWays({ops::FindOp("bitcast"), operands, {}, to}, {}), "") << ir::Name(to);
  }
}

TEST_P(DTypeTest, Where) {
  auto operands = Values(GetParam(), 2);
  HostTensor condition = HostTensor::Zeros(DType::kBool, operands[0].shape);
  for (int64_t i = 0; i < condition.size(); ++i) condition.SetInt(i, i % 3 == 0 || i % 7 == 0);
  operands.insert(operands.begin(), condition);
  EXPECT_EQ(WrongBothWays({ops::FindOp("where"), operands}, {}), "");
}

HostTensor Matrix(DType dtype, const ir::Shape& shape) {
  HostTensor tensor = HostTensor::Zeros(dtype, shape);
  const HostTensor values = Values(dtype, 1)[0];
  const int size = ir::SizeOf(dtype);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    std::memcpy(tensor.bytes.data() + i * size, values.bytes.data() + i * 37 % values.size() * size,
                size);
  }
  return tensor;
}

TEST_P(DTypeTest, Movement) {
  using Ints = std::vector<int64_t>;
  const std::vector<std::pair<std::string, ops::Attributes>> movements = {
      {"reshape", {{"shape", Ints{67, 61}}}},
      {"permute", {{"axes", Ints{1, 0}}}},
      {"expand", {{"shape", Ints{3, 61, 67}}}},
      {"pad", {{"padding", Ints{1, 2, 3, 0}}}},
      {"shrink", {{"bounds", Ints{2, 50, 1, 66}}}},
      {"flip", {{"axes", Ints{1}}}},
      {"window", {{"axis", int64_t{1}}, {"size", int64_t{5}}, {"stride", int64_t{2}}}},
  };
  for (const auto& [name, attributes] : movements) {
    EXPECT_EQ(Wrong({ops::FindOp(name), {Matrix(GetParam(), {61, 67})}, attributes}, {}), "")
        << name;
  }
  const Application unwindow = {
      ops::FindOp("unwindow"),
      {Matrix(GetParam(), {7, 32, 5})},
      {{"axis", int64_t{1}}, {"length", int64_t{67}}, {"stride", int64_t{2}}}};
  EXPECT_EQ(Wrong(unwindow, {}), "");
  const Application concat = {ops::FindOp("concat"),
                              {Matrix(GetParam(), {5, 7}), Matrix(GetParam(), {5, 30})},
                              {{"axis", int64_t{1}}}};
  EXPECT_EQ(Wrong(concat, {}), "");
}

// Every dtype of index, with indices out of range.
TEST_P(DTypeTest, Gather) {
  for (const DType index_dtype : AllDTypes()) {
    if (!ir::IsInteger(index_dtype)) continue;
    const HostTensor index = HostTensor::Of(index_dtype, {9}, {0, 60, 3, -1, 61, 7, 127, 59, 1});
    const Application gather = {ops::FindOp("gather"), {Matrix(GetParam(), {61, 67}), index}};
    EXPECT_EQ(Wrong(gather, {}), "") << ir::Name(index_dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(All, DTypeTest, testing::ValuesIn(AllDTypes()),
                         [](const auto& info) { return std::string(ir::Name(info.param)); });

// Values whose sums and products are exact in every dtype involved.
HostTensor SmallNumbers(DType dtype, const ir::Shape& shape) {
  HostTensor tensor = HostTensor::Zeros(dtype, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int64_t value = i % 97 == 0 ? 2 : i % 41 == 0 ? -1 : i % 3 == 0 ? 0 : 1;
    if (ir::IsFloat(dtype)) {
      tensor.SetFloat(i, static_cast<double>(value));
    } else {
      tensor.SetInt(i, value);
    }
  }
  return tensor;
}

class ReductionTest : public testing::TestWithParam<PrimitiveParameter> {};

TEST_P(ReductionTest, EqualsInterpreter) {
  const auto& [op, dtype] = GetParam();
  const bool maximum = op->op == ir::Op::kReduceMax;
  for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0}, {1}, {0, 1}}) {
    // Sums exceed what a short float could reach by adding ones; products stay small.
    HostTensor x =
        maximum ? Matrix(dtype, {kRows, kColumns}) : SmallNumbers(dtype, {kRows, kColumns});
    if (op->op == ir::Op::kReduceProd) {
      x = HostTensor::Zeros(dtype, {kRows, kColumns});
      for (int64_t i = 0; i < x.size(); ++i) {
        const double value = i % 13 == 0 ? 3 : i % 11 == 0 ? 2 : 1;
        ir::IsFloat(dtype) ? x.SetFloat(i, i % 300 < 200 ? 1 : value)
                           : x.SetInt(i, static_cast<int64_t>(value));
      }
    }
    EXPECT_EQ(Wrong({op, {x}, {{"axes", axes}}}, ClosenessOf(*op, dtype)), "") << axes.size();
  }
}

INSTANTIATE_TEST_SUITE_P(Primitives, ReductionTest, testing::ValuesIn(Parameters({Kind::kReduce})),
                         PrimitiveName);

TEST(ScatterTest, EveryDType) {
  const OpDef& op = *ops::FindOp("scatter_add");
  const HostTensor index = HostTensor::Of(DType::kInt32, {9}, {0, 60, 3, -1, 61, 3, 3, 59, 1});
  for (const DType dtype : AllDTypes()) {
    if (!ops::Belongs(dtype, op.operand_class)) continue;
    const Application scatter = {
        &op, {SmallNumbers(dtype, {61, 5}), index, SmallNumbers(dtype, {9, 5})}};
    EXPECT_EQ(Wrong(scatter, {}), "") << ir::Name(dtype);
  }
}

TEST(IotaTest, EveryDType) {
  for (const DType dtype : AllDTypes()) {
    if (dtype == DType::kBool) continue;
    const Application iota = {
        ops::FindOp("iota"), {}, {{"shape", std::vector<int64_t>{kManyValues}}}, dtype};
    EXPECT_EQ(Wrong(iota, {}), "") << ir::Name(dtype);
  }
}

}  // namespace
}  // namespace kiln::numerics
