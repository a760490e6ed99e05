#include "clients/cpp/kiln/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kiln/v1/graph.pb.h"

namespace kiln {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GraphBuilder, NodesStandInTheOrderOfTheCalls) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {2, 3});
  Value y = builder.Input(DType::kFloat32, {3});
  Value sum = builder.Sum(builder.Mul(x, y), {-1}, true);
  builder.Output(sum);
  builder.Update(y, y);
  auto graph = builder.Build();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->num_inputs(), 2);
  EXPECT_EQ(graph->num_outputs(), 1);
  const v1::Graph& proto = graph->proto();
  ASSERT_EQ(proto.nodes_size(), 4);
  EXPECT_EQ(proto.nodes(1).op(), "input");
  EXPECT_EQ(proto.nodes(1).attributes().at("index").i(), 1);
  EXPECT_EQ(proto.nodes(1).dtype(), v1::DTYPE_FLOAT32);
  EXPECT_EQ(proto.nodes(0).attributes().at("shape").shape().dims(1).size(), 3);
  EXPECT_THAT(proto.nodes(2).operands(), ElementsAre(0, 1));
  EXPECT_THAT(proto.nodes(3).attributes().at("axes").ints().values(), ElementsAre(-1));
  EXPECT_TRUE(proto.nodes(3).attributes().at("keepdims").b());
  EXPECT_THAT(proto.outputs(), ElementsAre(3));
  EXPECT_EQ(proto.updates(0).input(), 1u);
}

TEST(GraphBuilder, WhereNumbersStandSumsOfVariablesMay) {
  GraphBuilder builder;
  builder.Variable("pos", 1, 8);
  Value x = builder.Input(DType::kFloat32, {int64_t{8}});
  builder.Output(builder.AddNode(
      "shrink", {x}, {{"bounds", std::vector<Dimension>{DimensionSum{-1, {{"pos", 1}}}, "pos"}}}));
  const auto graph = builder.Build();
  ASSERT_TRUE(graph.ok());
  const v1::Node& shrink = graph->proto().nodes(1);
  const v1::Shape& bounds = shrink.attributes().at("bounds").shape();
  EXPECT_EQ(bounds.dims(0).sum().constant(), -1);
  EXPECT_EQ(bounds.dims(0).sum().terms(0).variable(), "pos");
  EXPECT_EQ(bounds.dims(0).sum().terms(0).factor(), 1);
  EXPECT_EQ(bounds.dims(1).variable(), "pos");
}

TEST(GraphBuilder, DimensionsMayBeVariables) {
  GraphBuilder builder;
  builder.Variable("length", 1, 128);
  builder.Output(builder.Input(DType::kInt32, {"length", 4}));
  auto graph = builder.Build();
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(graph->proto().variables(0).max(), 128);
  EXPECT_EQ(graph->proto().nodes(0).attributes().at("shape").shape().dims(0).variable(), "length");
}

TEST(GraphBuilder, EmptyAxesAreAnAttributeAllTheSame) {
  GraphBuilder builder;
  builder.Output(builder.Sum(builder.Input(DType::kFloat32, {2}), {}));
  EXPECT_TRUE(builder.Build()->proto().nodes(1).attributes().at("axes").has_ints());
}

TEST(GraphBuilder, TheFirstMistakeComesOutOfBuild) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {2});
  builder.Output(builder.Add(x, Value{17}));
  auto graph = builder.Build();
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(graph.status().message(), HasSubstr("node 1 (add)"));
}

TEST(GraphBuilder, OnlyInputsAreUpdated) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {2});
  builder.Update(builder.Add(x, x), x);
  EXPECT_THAT(builder.Build().status().message(), HasSubstr("node 1 is no input"));
}

TEST(DTypes, HaveTheSizesOfTheWire) {
  EXPECT_EQ(SizeOf(DType::kBool), 1);
  EXPECT_EQ(SizeOf(DType::kBFloat16), 2);
  EXPECT_EQ(SizeOf(DType::kFloat64), 8);
  EXPECT_EQ(SizeOf(DType::kFloat8E5M2), 1);
  EXPECT_EQ(static_cast<int>(DType::kFloat8E5M2), v1::DTYPE_FLOAT8_E5M2);
  EXPECT_EQ(kDTypeOf<uint16_t>, DType::kUInt16);
}

}  // namespace
}  // namespace kiln
