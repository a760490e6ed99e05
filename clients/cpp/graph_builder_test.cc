#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kiln/graph.h"
#include "kiln/ops.h"
#include "kiln/v1/graph.pb.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GraphBuilder, NodesStandInTheOrderOfTheCalls) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {2, 3});
  Value y = builder.Input(DType::kFloat32, {3});
  Value sum = ops::Sum(x * y, {.axes = {-1}, .keepdims = true});
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
  builder.Output(ops::Shrink(x, {DimensionSum{-1, {{"pos", 1}}}, "pos"}));
  builder.Output(ops::Tril(ops::Reshape(x, {2, 4}), {.diagonal = "pos"}));
  const auto graph = builder.Build();
  ASSERT_TRUE(graph.ok());
  const v1::Node& shrink = graph->proto().nodes(1);
  const v1::Shape& bounds = shrink.attributes().at("bounds").shape();
  EXPECT_EQ(bounds.dims(0).sum().constant(), -1);
  EXPECT_EQ(bounds.dims(0).sum().terms(0).variable(), "pos");
  EXPECT_EQ(bounds.dims(0).sum().terms(0).factor(), 1);
  EXPECT_EQ(bounds.dims(1).variable(), "pos");
  const v1::Node& tril = graph->proto().nodes(3);
  EXPECT_EQ(tril.attributes().at("diagonal").dim().sum().terms(0).variable(), "pos");
}

TEST(GraphBuilder, AMeshSaysHowInputsAndOutputsLie) {
  GraphBuilder builder;
  builder.SetMesh(
      {.axes = {{"data", 2}, {"model", 2}}, .devices = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"}});
  Value rate = builder.Input(DType::kFloat32, {});
  Value x = builder.Input(DType::kFloat32, {4, 8});
  builder.Lay(x, {{"data"}});
  builder.Output(ops::Sum(x) * rate);
  builder.Output(builder.Shard(x * 2, {{}, {"model", "data"}}), {{}, {"model", "data"}});
  const auto graph = builder.Build();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->devices(), ElementsAre("cpu:0", "cpu:1", "cpu:2", "cpu:3"));
  const v1::Sharding& sharding = graph->proto().sharding();
  EXPECT_EQ(sharding.mesh().axes(1).name(), "model");
  EXPECT_EQ(sharding.mesh().axes(1).size(), 2u);
  ASSERT_EQ(sharding.inputs_size(), 2);
  EXPECT_EQ(sharding.inputs(0).dims_size(), 0);
  EXPECT_THAT(sharding.inputs(1).dims(0).axes(), ElementsAre(0u));
  ASSERT_EQ(sharding.outputs_size(), 2);
  EXPECT_THAT(sharding.outputs(1).dims(1).axes(), ElementsAre(1u, 0u));
  const v1::Node& shard = graph->proto().nodes(graph->proto().nodes_size() - 1);
  EXPECT_EQ(shard.op(), "shard");
  EXPECT_THAT(shard.attributes().at("spec").ints().values(), ElementsAre(0, 2, 1, 0));
}

TEST(GraphBuilder, StagesSayWhereInputsAndOutputsLie) {
  GraphBuilder builder;
  builder.SetStages({"cpu:1", "cpu:0"});
  const Value x = builder.Input(DType::kFloat32, {4});
  const Value w = builder.Input(DType::kFloat32, {4});
  builder.PutOn(w, "cpu:0");
  const Value loss = ops::Sum(ops::Exp(builder.Send(x, "cpu:0")) * w);
  builder.Output(loss);
  builder.Output(x + 1);
  builder.Update(x, builder.AddNode("gradient", {loss, x}));
  const auto graph = builder.Build();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const v1::Sharding& sharding = graph->proto().sharding();
  EXPECT_EQ(sharding.mesh().axes(0).size(), 2u);
  EXPECT_THAT(sharding.stages().inputs(), ElementsAre(0, 1));
  EXPECT_THAT(sharding.stages().outputs(), ElementsAre(1, 0));
  const auto mistake = [](const auto& make) {
    GraphBuilder b;
    make(b);
    return std::string(b.Build().status().message());
  };
  EXPECT_THAT(mistake([](GraphBuilder& b) { b.Send(b.Input(DType::kFloat32, {4}), "cpu:0"); }),
              HasSubstr("call SetStages first"));
  EXPECT_THAT(mistake([](GraphBuilder& b) {
                b.SetStages({"cpu:0"});
                b.PutOn(b.Input(DType::kFloat32, {4}), "cpu:1");
              }),
              HasSubstr("\"cpu:1\" is not a device of the stages"));
  EXPECT_THAT(mistake([](GraphBuilder& b) {
                b.SetStages({"cpu:0"});
                b.PutOn(-b.Input(DType::kFloat32, {4}), "cpu:0");
              }),
              HasSubstr("PutOn: node 1 is not an input"));
  EXPECT_THAT(mistake([](GraphBuilder& b) {
                b.SetStages({"cpu:0"});
                const Value x = b.Input(DType::kFloat32, {4});
                b.Output(-x);
                b.PutOn(x, "cpu:0");
              }),
              HasSubstr("the graph already uses node 0"));
}

TEST(GraphBuilder, MistakesOfMeshesAreTold) {
  const auto mistake = [](const std::function<void(GraphBuilder&, Value)>& make) {
    GraphBuilder builder;
    Value x = builder.Input(DType::kFloat32, {4});
    make(builder, x);
    return std::string(builder.Build().status().message());
  };
  EXPECT_THAT(mistake([](GraphBuilder& b, Value) {
                b.SetMesh({.axes = {{"data", 3}}, .devices = {"cpu:0", "cpu:1"}});
              }),
              HasSubstr("3 places, but it has 2 devices"));
  EXPECT_THAT(mistake([](GraphBuilder& b, Value x) {
                b.SetMesh({.axes = {{"data", 1}}, .devices = {"cpu:0"}});
                b.Lay(x, {{"model"}});
              }),
              HasSubstr("no axis \"model\"; its axes: \"data\""));
  EXPECT_THAT(mistake([](GraphBuilder& b, Value x) { b.Shard(x, {{"data"}}); }),
              HasSubstr("its axes: none"));
  EXPECT_THAT(mistake([](GraphBuilder& b, Value x) { b.Lay(x + 1, {}); }),
              HasSubstr("not an input"));
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

TEST(GraphBuilder, PrecisionIsTheWholeGraphs) {
  GraphBuilder builder;
  builder.Output(builder.Input(DType::kFloat32, {int64_t{2}}));
  EXPECT_EQ(builder.Build()->proto().float32_matmul_precision(), v1::MATMUL_PRECISION_UNSPECIFIED);
  builder.SetFloat32MatmulPrecision(MatmulPrecision::kHigh);
  EXPECT_EQ(builder.Build()->proto().float32_matmul_precision(), v1::MATMUL_PRECISION_HIGH);
  builder.SetFloat32MatmulPrecision(MatmulPrecision::kHighest);
  EXPECT_EQ(builder.Build()->proto().float32_matmul_precision(), v1::MATMUL_PRECISION_UNSPECIFIED);
}

TEST(GraphBuilder, EmptyAxesAreAnAttributeAllTheSame) {
  GraphBuilder builder;
  builder.Output(ops::Sum(builder.Input(DType::kFloat32, {2})));
  EXPECT_TRUE(builder.Build()->proto().nodes(1).attributes().at("axes").has_ints());
}

TEST(GraphBuilder, AForeignValueComesOutOfBuild) {
  GraphBuilder builder, other;
  Value x = builder.Input(DType::kFloat32, {2});
  Value y = other.Input(DType::kFloat32, {2});
  const auto line = Location::current().line() + 1;
  builder.Output(x + y);
  auto graph = builder.Build();
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(graph.status().message(),
              HasSubstr(absl::StrCat("node 1 \"add\" (graph_builder_test.cc:", line,
                                     "): operand 1 belongs to another GraphBuilder")));
  EXPECT_TRUE(other.Build().ok());
}

TEST(GraphBuilder, TheFirstMistakeIsKept) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {2});
  Value mistake = ops::Concat({x, Value()});
  builder.Output(ops::Exp(mistake) + 1);
  builder.Update(x, Value());
  EXPECT_THAT(builder.Build().status().message(),
              AllOf(HasSubstr("\"concat\""), HasSubstr("operand 1 is not a value")));
}

TEST(GraphBuilder, WhatIsComputedOfNumbersAloneIsNoValue) {
  GraphBuilder builder;
  builder.Output(ops::Add(1, 2));
  EXPECT_THAT(builder.Build().status().message(), HasSubstr("output 0: it is not a value"));
}

TEST(GraphBuilder, OptionalOperandsAreGivenInOrder) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {2, 3});
  builder.Output(ops::LayerNorm(x, {.bias = x}));
  EXPECT_THAT(builder.Build().status().message(),
              AllOf(HasSubstr("\"layer_norm\" (graph_builder_test.cc:"),
                    HasSubstr(") of x, weight?, bias?: operand 1 is missing")));
}

TEST(GraphBuilder, NodesHaveTheLineOfTheirCall) {
  GraphBuilder builder;
  const auto line = Location::current().line();
  Value x = builder.Input(DType::kFloat32, {2});
  Value y = x + x;
  Value z = ops::Exp(y);
  builder.Output(z);
  const auto graph = builder.Build();
  const auto source = [&](int node) { return graph->proto().nodes(node).source(); };
  EXPECT_EQ(source(0), absl::StrCat("graph_builder_test.cc:", line + 1));
  EXPECT_EQ(source(1), absl::StrCat("graph_builder_test.cc:", line + 2));
  EXPECT_EQ(source(2), absl::StrCat("graph_builder_test.cc:", line + 3));
}

TEST(Operands, NumbersTakeTheDTypeBesideThem) {
  GraphBuilder builder;
  const auto input = [&](DType dtype) { return builder.Input(dtype, {2}); };
  EXPECT_EQ((input(DType::kFloat16) * 2).dtype(), DType::kFloat16);
  EXPECT_EQ((2.5 * input(DType::kFloat64)).dtype(), DType::kFloat64);
  EXPECT_EQ((input(DType::kInt8) - 1).dtype(), DType::kInt8);
  EXPECT_EQ((input(DType::kInt8) - 1.5).dtype(), DType::kFloat32);
  EXPECT_EQ((1 / input(DType::kInt64)).dtype(), DType::kFloat32);
  EXPECT_EQ(ops::Where(input(DType::kBool), input(DType::kInt16), 0).dtype(), DType::kInt16);
  EXPECT_EQ(ops::Where(input(DType::kBool), 1, 0).dtype(), DType::kInt64);
  EXPECT_EQ(ops::Where(input(DType::kBool), 1.0, 0.0).dtype(), DType::kFloat32);
  EXPECT_EQ(ops::Maximum(input(DType::kUInt8), true).dtype(), DType::kUInt8);
  EXPECT_EQ((-input(DType::kBFloat16)).dtype(), DType::kBFloat16);
  EXPECT_TRUE(builder.Build().ok());
}

TEST(GraphBuilder, OnlyInputsAreUpdated) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {2});
  builder.Update(x + x, x);
  EXPECT_THAT(builder.Build().status().message(), HasSubstr("node 1 is not an input"));
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
