#include "compiler/graph/wire/wire.h"

#include "compiler/graph/error.h"
#include "compiler/graph/text.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "kiln/v1/graph.pb.h"

namespace kiln::graph {
namespace {

using ::testing::HasSubstr;

v1::Graph Proto(const std::string& text) {
  v1::Graph proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto));
  return proto;
}

// sum(relu(w * x)), its gradient with respect to w, and the update w := that gradient.
const char kWireStep[] = R"(
  nodes { op: "input" dtype: DTYPE_FLOAT32
          attributes { key: "index" value { i: 0 } }
          attributes { key: "shape" value { shape { dims { size: 3 } } } } }
  nodes { op: "input" dtype: DTYPE_INT32
          attributes { key: "index" value { i: 1 } }
          attributes { key: "shape" value { shape { dims { variable: "rows" } dims { size: 3 } } } } }
  nodes { op: "mul" operands: [0, 1] source: "train.py:4" }
  nodes { op: "relu" operands: 2 }
  nodes { op: "sum" operands: 3 }
  nodes { op: "gradient" operands: [4, 0] }
  variables { name: "rows" min: 1 max: 10 }
  outputs: 4
  updates { input: 0 value: 5 }
)";

TEST(WireTest, ExpandsCompositesAndFixesVariables) {
  absl::StatusOr<Graph> graph = FromProto(Proto(kWireStep), {{"rows", 5}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->inputs.size(), 2u);
  EXPECT_EQ(graph->inputs[0].shape, (ir::Shape{3}));
  EXPECT_EQ(graph->inputs[1].shape, (ir::Shape{5, 3}));
  EXPECT_EQ(graph->inputs[1].dtype, ir::DType::kInt32);
  ASSERT_EQ(graph->outputs.size(), 1u);
  EXPECT_EQ(graph->outputs[0]->shape(), ir::Shape{});
  EXPECT_EQ(graph->outputs[0]->dtype(), ir::DType::kFloat32);
  ASSERT_EQ(graph->updates.size(), 1u);
  EXPECT_EQ(graph->updates[0].input, 0);
  EXPECT_EQ(graph->updates[0].value->op(), ir::Op::kGradient);
  std::vector<std::string> sources;
  for (const auto& [node, source] : graph->sources) {
    EXPECT_EQ(node->op(), ir::Op::kMul);
    sources.push_back(source);
  }
  EXPECT_EQ(sources, std::vector<std::string>{"train.py:4"});
}

TEST(WireTest, OneSizeOfAReshapeMayBeLeftOpen) {
  const auto reshaped = [](const std::string& dims) {
    return FromProto(Proto(R"(
      nodes { op: "input" dtype: DTYPE_FLOAT32
              attributes { key: "index" value { i: 0 } }
              attributes { key: "shape" value { shape { dims { variable: "n" } dims { size: 6 } } } } }
      nodes { op: "reshape" operands: 0
              attributes { key: "shape" value { shape { )" +
                           dims + R"( } } } }
      variables { name: "n" min: 1 max: 10 }
      outputs: 1)"),
                     {{"n", 5}});
  };
  const auto shape = [&](const std::string& dims) { return reshaped(dims)->outputs[0]->shape(); };
  EXPECT_EQ(shape("dims { size: -1 }"), ir::Shape{30});
  EXPECT_EQ(shape("dims { size: 3 } dims { size: -1 } dims { variable: \"n\" }"),
            ir::Shape({3, 2, 5}));
  for (const char* wrong :
       {"dims { size: 4 } dims { size: -1 }", "dims { size: -2 }",
        "dims { size: -1 } dims { size: -1 }", "dims { size: 0 } dims { size: -1 }"}) {
    EXPECT_THAT(std::string(reshaped(wrong).status().message()), HasSubstr("reshape")) << wrong;
  }
}

// Two inputs on a 2 x 2 mesh, one of them with a hint: the op "shard" of node 2 has `spec`.
v1::Graph OnMesh(const std::string& sharding, const std::string& spec = "1, 0, 0") {
  return Proto(R"(
    nodes { op: "input" dtype: DTYPE_FLOAT32
            attributes { key: "index" value { i: 0 } }
            attributes { key: "shape" value { shape { dims { size: 4 } dims { size: 6 } } } } }
    nodes { op: "input" dtype: DTYPE_FLOAT32
            attributes { key: "index" value { i: 1 } }
            attributes { key: "shape" value { shape { dims { size: 6 } } } } }
    nodes { op: "shard" operands: 0 source: "train.py:7"
            attributes { key: "spec" value { ints { values: [)" +
               spec + R"(] } } } }
    nodes { op: "add" operands: [2, 1] }
    outputs: 3
    op_set_version: 4
    sharding { )" +
               sharding + " }");
}

constexpr char kMesh[] = "mesh { axes { name: 'data' size: 2 } axes { name: 'model' size: 2 } } ";

TEST(WireTest, ReadsHowValuesLieOnAMesh) {
  const std::string mesh = kMesh;
  absl::StatusOr<Graph> graph = FromProto(
      OnMesh(mesh + "inputs { dims { axes: [1, 0] } } outputs { dims { } dims { axes: 0 } }"), {});
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_NE(graph->sharding, nullptr);
  EXPECT_EQ(graph->sharding->mesh, (Mesh{{{"data", 2}, {"model", 2}}}));
  // Dimensions missing at the end of a spec are not split.
  EXPECT_EQ(graph->sharding->inputs, (std::vector<Spec>{{{1, 0}, {}}, {{}}}));
  EXPECT_EQ(graph->sharding->outputs, (std::vector<Spec>{{{}, {0}}}));
}

TEST(WireTest, AMeshNeedNotDivideWhatLiesOnIt) {
  const std::string mesh = kMesh;
  const absl::StatusOr<Graph> graph =
      FromProto(OnMesh(mesh + "inputs { } inputs { dims { axes: [0, 1] } }", "0, 2, 1, 0"), {});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->sharding->inputs, (std::vector<Spec>{{{}, {}}, {{0, 1}}}));
}

TEST(WireTest, RefusesWhatDoesNotLieOnTheMesh) {
  const std::string mesh = kMesh;
  struct Bad {
    std::string sharding;
    std::string message;
    std::string spec = "1, 0, 0";
  };
  const std::vector<Bad> cases = {
      {"", "the mesh has 0 axes"},
      {"mesh { axes { name: 'a' size: 0 } }", "axis \"a\" has size 0"},
      {"mesh { axes { name: 'a' size: 65 } }", "at most 64 devices"},
      {"mesh { axes { size: 2 } }", "an axis named \"\""},
      {mesh + "inputs { } inputs { } inputs { }", "for 3 inputs, but the graph has 2"},
      {mesh + "outputs { } outputs { }", "for 2 outputs, but the graph has 1"},
      {mesh + "inputs { dims { } dims { } dims { } }", "input 0 has 2 dimensions, but its spec"},
      {mesh + "inputs { dims { axes: 2 } }", "input 0 is split by axis 2 of a mesh that has 2"},
      {mesh + "inputs { dims { axes: 0 } dims { axes: 0 } }", "split twice by the mesh's axis"},
      {mesh, "node 2 \"shard\" (train.py:7): its value is split by axis 5", "1, 5, 0"},
      {mesh, "\"spec\" (1,) for shape (4, 6)", "1"},
  };
  for (const Bad& bad : cases) {
    const absl::Status status = FromProto(OnMesh(bad.sharding, bad.spec), {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.message));
  }
  v1::Graph variable = OnMesh(mesh);
  variable.add_variables()->set_name("rows");
  variable.mutable_variables(0)->set_min(1);
  variable.mutable_variables(0)->set_max(2);
  EXPECT_EQ(ErrorDetail(FromProto(variable, {{"rows", 1}}).status(), "reason"), "MESH");
}

// On two devices: node 2 sends input 0 to the device of input 1.
v1::Graph InStages(const std::string& stages,
                   const std::string& mesh = "axes { name: 's' size: 2 }") {
  return Proto(R"(
    nodes { op: "input" dtype: DTYPE_FLOAT32
            attributes { key: "index" value { i: 0 } }
            attributes { key: "shape" value { shape { dims { size: 4 } } } } }
    nodes { op: "input" dtype: DTYPE_FLOAT32
            attributes { key: "index" value { i: 1 } }
            attributes { key: "shape" value { shape { dims { size: 4 } } } } }
    nodes { op: "send" operands: 0 source: "train.py:7"
            attributes { key: "source" value { i: 0 } } attributes { key: "target" value { i: 1 } } }
    nodes { op: "mse_loss" operands: [2, 1] source: "train.py:8" }
    outputs: 3
    op_set_version: 5
    sharding { mesh { )" +
               mesh + " } stages { " + stages + " } }");
}

TEST(WireTest, ReadsGraphsInStages) {
  absl::StatusOr<Graph> graph = FromProto(InStages("inputs: [0, 1] outputs: 1"), {});
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(graph->sharding->stages.has_value());
  EXPECT_EQ(graph->sharding->stages->inputs, (std::vector<int>{0, 1}));
  EXPECT_EQ(graph->sharding->stages->outputs, (std::vector<int>{1}));
  const absl::StatusOr<Graph> again = Parse(Print(*graph));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Print(*again), Print(*graph));
}

TEST(WireTest, RefusesStagesThatDoNotFit) {
  const std::vector<std::pair<v1::Graph, std::string>> cases = {
      {InStages(""), "must name a device for each input and output"},
      {InStages("inputs: [0, 1, 1] outputs: 1"), "must name a device for each input and output"},
      {InStages("inputs: [0, 2] outputs: 1"), "on 2 devices must not name device 2"},
      {InStages("inputs: [0, 4294967295] outputs: 1"),
       "on 2 devices must not name device 2147483647"},
      {InStages("inputs: [1, 1] outputs: 1"),
       "node 2 \"send\" (train.py:7): send float32[4] (float32[4]) source=0 target=1 sends from "
       "device 0 a value that is on device 1"},
      {InStages("inputs: [0, 0] outputs: 1"), "node 3 \"mse_loss\" (train.py:8): "},
      {InStages("inputs: [0, 0] outputs: 1"), "has operands on the devices"},
      {InStages("inputs: [0, 1] outputs: 0"), "output 0 is computed on device 1"},
      {InStages("inputs: [0, 1] outputs: 1",
                "axes { name: 'a' size: 2 } axes { name: 'b' size: 1 }"),
       "a mesh of one axis"},
  };
  for (const auto& [graph, message] : cases) {
    const absl::Status status = FromProto(graph, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(WireTest, SameMessageSameText) {
  absl::StatusOr<Graph> a = FromProto(Proto(kWireStep), {{"rows", 5}});
  absl::StatusOr<Graph> b = FromProto(Proto(kWireStep), {{"rows", 5}});
  absl::StatusOr<Graph> other = FromProto(Proto(kWireStep), {{"rows", 6}});
  ASSERT_TRUE(a.ok() && b.ok() && other.ok());
  EXPECT_EQ(Print(*a), Print(*b));
  EXPECT_NE(Print(*a), Print(*other));
}

TEST(WireTest, PrecisionIsTheHighestUnlessTheGraphSaysMore) {
  const auto precision_of = [](int code) -> absl::StatusOr<MatmulPrecision> {
    v1::Graph proto = Proto(kWireStep);
    proto.set_float32_matmul_precision(static_cast<v1::MatmulPrecision>(code));
    const absl::StatusOr<Graph> graph = FromProto(proto, {{"rows", 5}});
    if (!graph.ok()) return graph.status();
    return graph->float32_matmul_precision;
  };
  EXPECT_EQ(*precision_of(v1::MATMUL_PRECISION_UNSPECIFIED), MatmulPrecision::kHighest);
  EXPECT_EQ(*precision_of(v1::MATMUL_PRECISION_HIGHEST), MatmulPrecision::kHighest);
  EXPECT_EQ(*precision_of(v1::MATMUL_PRECISION_HIGH), MatmulPrecision::kHigh);
  const absl::Status unknown = precision_of(7).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorDetail(unknown, "reason"), "PRECISION");
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("float32_matmul_precision is 7; this daemon knows "
                        "MATMUL_PRECISION_HIGHEST (1) and MATMUL_PRECISION_HIGH (2)"));
}

// The text is the identity of a program, so it must contain the precision.
TEST(WireTest, AnotherPrecisionIsAnotherText) {
  v1::Graph proto = Proto(kWireStep);
  const auto highest = FromProto(proto, {{"rows", 5}});
  proto.set_float32_matmul_precision(v1::MATMUL_PRECISION_HIGH);
  const auto high = FromProto(proto, {{"rows", 5}});
  ASSERT_TRUE(highest.ok() && high.ok());
  EXPECT_EQ(Print(*high), "float32_matmul_precision high\n" + Print(*highest));
}

TEST(WireTest, BindingsMustFit) {
  v1::Graph proto = Proto(kWireStep);
  EXPECT_TRUE(FromProto(proto, {{"rows", 1}}).ok());
  EXPECT_TRUE(FromProto(proto, {{"rows", 10}}).ok());
  const std::vector<std::pair<Bindings, std::string>> cases = {
      {{}, "binds no value"},
      {{{"rows", 0}}, "outside of its bounds 1 to 10"},
      {{{"rows", 11}}, "outside of its bounds 1 to 10"},
      {{{"rows", 5}, {"columns", 1}}, "declares none"},
  };
  for (const auto& [bindings, message] : cases) {
    absl::Status status = FromProto(proto, bindings).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ErrorDetail(status, "reason"), "VARIABLE");
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(WireTest, VariablesAreListed) {
  absl::StatusOr<std::vector<Variable>> variables = Variables(Proto(kWireStep));
  ASSERT_TRUE(variables.ok());
  ASSERT_EQ(variables->size(), 1u);
  EXPECT_EQ((*variables)[0].name, "rows");
  EXPECT_EQ((*variables)[0].max, 10);
}

TEST(WireTest, LimitsHold) {
  v1::Graph proto = Proto(kWireStep);
  const std::vector<std::pair<Limits, std::string>> cases = {
      {{.nodes_max = 5}, "has 6 nodes"},
      {{.primitives_max = 3}, "more than 3 primitives"},
      {{.operands_max = 1}, "2 operands; the limit is 1"},
      {{.elements_max = 14}, "more than 14 elements"},
      {{.bytes_max = 59}, "more than 59 bytes"},
  };
  for (const auto& [limits, message] : cases) {
    absl::Status status = FromProto(proto, {{"rows", 5}}, limits).status();
    EXPECT_EQ(ErrorDetail(status, "reason"), "TOO_LARGE") << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  EXPECT_TRUE(
      FromProto(proto, {{"rows", 5}}, {.nodes_max = 6, .elements_max = 15, .bytes_max = 60}).ok());
}

// The client refuses a string that ends within a character.
TEST(WireTest, LongNamesAreCutBetweenCharacters) {
  v1::Graph proto = Proto("nodes { op: 'frobnicate' } outputs: 0");
  proto.mutable_nodes(0)->set_source(std::string(79, 'a') + "\u00e9.py:31");
  const absl::Status status = FromProto(proto, {}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("(" + std::string(79, 'a') + "...)"));
  EXPECT_EQ(ErrorDetail(status, "source"), std::string(79, 'a') + "...");
}

TEST(WireTest, LongChainsNeedNoDeepStack) {
  v1::Graph proto = Proto(R"(nodes { op: "input" dtype: DTYPE_FLOAT32
          attributes { key: "index" value { i: 0 } }
          attributes { key: "shape" value { shape { } } } })");
  for (int i = 0; i < 50000; ++i) {
    v1::Node* node = proto.add_nodes();
    node->set_op("sin");
    node->add_operands(i);
  }
  proto.add_outputs(50000);
  EXPECT_TRUE(FromProto(proto, {}).ok());
  // The cycle is as long as the graph; the message shortens it.
  proto.mutable_nodes(1)->set_operands(0, 50000);
  absl::Status status = FromProto(proto, {}).status();
  EXPECT_EQ(ErrorDetail(status, "reason"), "CYCLE");
  EXPECT_LT(status.message().size(), 300u);
}

TEST(WireTest, ErrorsCarryTheirDetails) {
  v1::Graph proto = Proto(kWireStep);
  proto.mutable_nodes(2)->set_op("mull");
  absl::Status status = FromProto(proto, {{"rows", 5}}).status();
  EXPECT_EQ(ErrorDetail(status, "node"), "2");
  EXPECT_EQ(ErrorDetail(status, "op"), "mull");
  EXPECT_EQ(ErrorDetail(status, "source"), "train.py:4");
  EXPECT_EQ(ErrorDetail(status, "limit"), "");
}

}  // namespace
}  // namespace kiln::graph
