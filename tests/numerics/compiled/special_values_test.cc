// Compares special values, compiled, with the interpreter: NaN and infinities, zero divisors,
// shifts out of range, casts that do not fit, and every integer dtype.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "compiler/ops/builder.h"
#include "compiler/ops/testing/build_op.h"
#include "gtest/gtest.h"
#include "tests/numerics/compiled/run_compiled.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ops::HostTensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DType kIntegers[] = {DType::kInt8,  DType::kInt16,  DType::kInt32,  DType::kInt64,
                               DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64};

// Returns what is wrong with the op on these operands, each a tensor of its values' shape.
std::string Wrong(std::string_view op, std::vector<HostTensor> operands,
                  const ops::Attributes& attributes = {}, DType declared = DType::kInvalid) {
  graph::Graph graph;
  graph.context = std::make_shared<ir::Context>();
  ops::Builder builder(*graph.context);
  std::vector<const ir::Node*> nodes;
  for (const HostTensor& operand : operands) {
    nodes.push_back(
        builder.Input(static_cast<int64_t>(nodes.size()), operand.dtype, operand.shape));
    graph.inputs.push_back({operand.dtype, operand.shape});
  }
  const auto result = ops::BuildOp(builder, *ops::FindOp(op), nodes, attributes, declared);
  if (!result.ok()) return result.status().ToString();
  graph.outputs = {*result};
  return Disagreement(graph, operands, 1e-6);
}

HostTensor Column(DType dtype, const std::vector<double>& values) {
  return HostTensor::Of(dtype, {static_cast<int64_t>(values.size()), 1}, values);
}
HostTensor Row(DType dtype, const std::vector<double>& values) {
  return HostTensor::Of(dtype, {static_cast<int64_t>(values.size())}, values);
}

// Ends of every range, values just beyond them, and fractions.
std::vector<double> EdgeFloats() {
  std::vector<double> values = {kNan, kInfinity, -kInfinity, 0.0, -0.0, 0.5, -0.5, 1.5, -1.5};
  for (const int bits : {7, 8, 15, 16, 31, 32, 63, 64}) {
    for (const double sign : {1.0, -1.0}) {
      const double power = sign * std::ldexp(1.0, bits);
      values.insert(values.end(), {power, power * (1 - 1e-6), power * (1 + 1e-6)});
    }
  }
  return values;
}

// Small numbers, and both ends of the dtype's range.
std::vector<double> EdgeIntegers() {
  return {0, 1, 2, 3, 7, 100, -1, -2, -3, -7, -100, kInfinity, -kInfinity};
}

// Every value of the dtype is a valid index of the table, so that no index needs a condition.
TEST(SpecialValuesTest, TablesAsLongAsTheirIndicesReach) {
  for (const auto& [dtype, length] : {std::pair<DType, int64_t>{DType::kUInt8, 256},
                                      std::pair<DType, int64_t>{DType::kUInt16, 65536}}) {
    HostTensor table = HostTensor::Zeros(DType::kFloat32, {length, 3});
    for (int64_t i = 0; i < table.size(); ++i) table.SetFloat(i, static_cast<double>(i));
    const HostTensor index =
        Row(dtype, {0, 255, 7, 7, static_cast<double>(length - 1), 128, 1, 254, 3});
    HostTensor values = HostTensor::Zeros(DType::kFloat32, {9, 3});
    for (int64_t i = 0; i < values.size(); ++i) values.SetFloat(i, static_cast<double>(i + 1));
    EXPECT_EQ(Wrong("gather", {table, index}), "") << ir::Name(dtype);
    EXPECT_EQ(Wrong("scatter_add", {table, index, values}), "") << ir::Name(dtype);
  }
}

TEST(SpecialValuesTest, CastsOfFloats) {
  for (const DType from : {DType::kFloat32, DType::kFloat64}) {
    for (const DType to : kIntegers) {
      EXPECT_EQ(Wrong("cast", {Row(from, EdgeFloats())}, {}, to), "")
          << ir::Name(from) << " to " << ir::Name(to);
    }
    EXPECT_EQ(Wrong("cast", {Row(from, EdgeFloats())}, {}, DType::kBool), "");
    for (const DType to : ir::kAllDTypes) {
      if (!ir::IsFloat8(to)) continue;
      for (const bool saturate : {true, false}) {
        EXPECT_EQ(Wrong("cast", {Row(from, EdgeFloats())}, {{"saturate", saturate}}, to), "")
            << ir::Name(from) << " to " << ir::Name(to);
      }
    }
  }
}

TEST(SpecialValuesTest, CastsOfIntegers) {
  for (const DType from : kIntegers) {
    for (const DType to : kIntegers) {
      EXPECT_EQ(Wrong("cast", {Row(from, EdgeIntegers())}, {}, to), "")
          << ir::Name(from) << " to " << ir::Name(to);
    }
    for (const DType to : {DType::kFloat32, DType::kFloat64, DType::kBool}) {
      EXPECT_EQ(Wrong("cast", {Row(from, EdgeIntegers())}, {}, to), "")
          << ir::Name(from) << " to " << ir::Name(to);
    }
  }
}

TEST(SpecialValuesTest, IntegerArithmetic) {
  for (const DType dtype : kIntegers) {
    for (const char* op : {"add", "sub", "mul", "idiv", "mod", "maximum", "minimum", "and", "or",
                           "xor", "shl", "shr", "cmplt", "cmpeq"}) {
      EXPECT_EQ(Wrong(op, {Column(dtype, EdgeIntegers()), Row(dtype, EdgeIntegers())}), "")
          << op << " of " << ir::Name(dtype);
    }
    for (const char* op : {"sum", "prod", "max", "min"}) {
      EXPECT_EQ(Wrong(op, {Row(dtype, EdgeIntegers())}), "") << op << " of " << ir::Name(dtype);
    }
    EXPECT_EQ(Wrong("neg", {Row(dtype, EdgeIntegers())}), "") << ir::Name(dtype);
    EXPECT_EQ(Wrong("not", {Row(dtype, EdgeIntegers())}), "") << ir::Name(dtype);
    EXPECT_EQ(Wrong("matmul", {HostTensor::Of(dtype, {3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}),
                               HostTensor::Of(dtype, {4, 2}, {9, 8, 7, 6, 5, 4, 3, 2})}),
              "")
        << ir::Name(dtype);
  }
}

TEST(SpecialValuesTest, FloatArithmetic) {
  const std::vector<double> values = {kNan, kInfinity, -kInfinity, 0.0, -0.0, 1.0, -2.5, 1e30};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const char* op : {"add", "sub", "mul", "div", "maximum", "minimum", "cmplt", "cmpeq",
                           "cmpne", "less_equal", "greater_equal", "pow"}) {
      EXPECT_EQ(Wrong(op, {Column(dtype, values), Row(dtype, values)}), "")
          << op << " of " << ir::Name(dtype);
    }
    for (const char* op : {"neg", "reciprocal", "sqrt", "exp2", "log2", "trunc", "floor", "ceil",
                           "round", "abs", "isnan", "isinf", "isfinite", "relu", "sigmoid"}) {
      EXPECT_EQ(Wrong(op, {Row(dtype, values)}), "") << op << " of " << ir::Name(dtype);
    }
    for (const char* op : {"max", "min", "sum", "argmax"}) {
      EXPECT_EQ(Wrong(op, {Row(dtype, values)}), "") << op << " of " << ir::Name(dtype);
      EXPECT_EQ(Wrong(op, {Row(dtype, {-kInfinity, -kInfinity})}), "") << op;
    }
  }
}

TEST(SpecialValuesTest, LargeArguments) {
  const std::vector<double> values = {1e2, -1e3, 1e4, 1e5, -1e6, 1e8, 3e12, -1e20, 1e38};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    EXPECT_EQ(Wrong("sin", {Row(dtype, values)}), "") << ir::Name(dtype);
    EXPECT_EQ(Wrong("cos", {Row(dtype, values)}), "") << ir::Name(dtype);
  }
}

// An expression that uses its parts twice, repeatedly: as a tree it has 2^60 nodes. Alone, and as a
// factor of a matrix product.
TEST(SpecialValuesTest, SharedSubexpressions) {
  graph::Graph graph;
  graph.context = std::make_shared<ir::Context>();
  ops::Builder b(*graph.context);
  const ir::Node* x = b.Input(0, DType::kFloat32, {17, 23});
  const ir::Node* weight = b.Input(1, DType::kFloat32, {9, 23});
  graph.inputs = {{DType::kFloat32, {17, 23}}, {DType::kFloat32, {9, 23}}};
  const ir::Node* mixed = x;
  for (int i = 0; i < 60; ++i) mixed = b.Mul(b.Add(mixed, b.Sin(mixed)), 0.5);
  const auto product =
      ops::BuildOp(b, *ops::FindOp("linear"), {mixed, weight}, {}, DType::kInvalid);
  ASSERT_TRUE(product.ok()) << product.status();
  graph.outputs = {mixed, *product};
  std::vector<double> values(17 * 23);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i));
  const std::vector<HostTensor> inputs = {
      HostTensor::Of(DType::kFloat32, {17, 23}, values),
      HostTensor::Of(DType::kFloat32, {9, 23}, absl::MakeSpan(values).first(9 * 23))};
  EXPECT_EQ(Disagreement(graph, inputs, 1e-4), "");
  graph.outputs = {*product};
  EXPECT_EQ(Disagreement(graph, inputs, 1e-4), "");
}

// Such a sum ends where its terms do, no matter how large the limit is.
TEST(SpecialValuesTest, SumsOfWhatStandsBeforeAnyNumber) {
  constexpr int64_t kInt64Min = std::numeric_limits<int64_t>::min();
  constexpr int64_t kGreatest = std::numeric_limits<int64_t>::max();
  graph::Graph graph;
  graph.context = std::make_shared<ir::Context>();
  ops::Builder b(*graph.context);
  const ir::Node* x = b.Input(0, DType::kFloat32, {1000});
  const ir::Node* limit = b.Input(1, DType::kInt64, {});
  graph.inputs = {{DType::kFloat32, {1000}}, {DType::kInt64, {}}};
  const HostTensor ones = HostTensor::Of(DType::kFloat32, {1000}, std::vector<double>(1000, 1));
  const ir::Node* place = b.Iota(DType::kInt64, {1000}, 0);
  for (const ir::Node* left : {place, b.Sub(place, b.ConstInt(DType::kInt64, 3)),
                               b.Mul(place, b.ConstInt(DType::kInt64, 2))}) {
    graph.outputs = {b.Sum(b.Where(b.Less(left, limit), x, b.Const(DType::kFloat32, 0)), {0})};
    for (const int64_t number : {int64_t{10}, int64_t{-5}, kGreatest, kGreatest - 1, kGreatest / 2,
                                 kInt64Min, kInt64Min + 1, kInt64Min / 2}) {
      HostTensor end = HostTensor::Zeros(DType::kInt64, {});
      end.SetInt(0, number);
      EXPECT_EQ(Disagreement(graph, {ones, end}, 1e-6), "") << number;
    }
  }
}

TEST(SpecialValuesTest, NothingToDo) {
  const HostTensor nothing = HostTensor::Zeros(DType::kFloat32, {0, 3});
  EXPECT_EQ(Wrong("exp", {nothing}), "");
  EXPECT_EQ(Wrong("sum", {nothing}, {{"axes", std::vector<int64_t>{0}}}), "");
  EXPECT_EQ(Wrong("max", {nothing}, {{"axes", std::vector<int64_t>{0}}}), "");
  EXPECT_EQ(Wrong("prod", {nothing}), "");
  EXPECT_EQ(Wrong("matmul", {nothing, HostTensor::Zeros(DType::kFloat32, {3, 2})}), "");
  EXPECT_EQ(Wrong("matmul", {HostTensor::Zeros(DType::kFloat32, {2, 0}),
                             HostTensor::Zeros(DType::kFloat32, {0, 3})}),
            "");
}

}  // namespace
}  // namespace kiln::numerics
