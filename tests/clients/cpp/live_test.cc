// The C++ client against the kilnd at $KILN_ADDRESS; tests/clients/cpp/test_cpp_client.py starts
// one.
#include <functional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kiln/client.h"
#include "kiln/ops.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LiveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto client = Client::Connect({.description = "live test", .timeout = absl::Minutes(10)});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  std::unique_ptr<Client> client_;
};

TEST_F(LiveTest, SumOfSquares) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {2, 3});
  builder.Output(ops::Sum(x * x));
  auto program = client_->Define(builder.Build(), "sum_of_squares");
  ASSERT_TRUE(program.ok()) << program.status();
  auto digest = program->digest();
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_FALSE(digest->empty());
  auto tensor = client_->Upload<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  auto run = client_->Run(*program, {*tensor}, {.report_time = true});
  ASSERT_TRUE(run.ok()) << run.status();
  auto result = client_->Download<float>(run->outputs[0]);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(*result, ElementsAre(91));
  EXPECT_GT(run->done.Get()->device_seconds, 0);
}

TEST_F(LiveTest, OpsAndGradients) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {2, 2});
  Value loss = ops::Sum(ops::Relu(x) * x);
  builder.Output(ops::Softmax(ops::Matmul(x, x) / 2, {.axis = 0}));
  builder.Output(ops::Cast(loss, DType::kFloat64));
  builder.Output(ops::Gradient(loss, x));
  builder.Output(ops::Concat({x, 10 - x}, {.axis = 1}));
  builder.Output(ops::Iota(builder, DType::kInt64, {3}));
  auto program = client_->Define(builder.Build(), "ops");
  ASSERT_TRUE(program.ok()) << program.status();
  auto run = client_->Run(*program, {*client_->Upload<float>({2, 2}, {1, 2, 3, 4})});
  ASSERT_TRUE(run->done.Get().ok()) << run->done.Get().status();
  EXPECT_EQ(client_->Download<float>(run->outputs[0])->size(), 4u);
  EXPECT_THAT(*client_->Download<double>(run->outputs[1]), ElementsAre(30));
  EXPECT_THAT(*client_->Download<float>(run->outputs[2]), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(*client_->Download<float>(run->outputs[3]), ElementsAre(1, 2, 9, 8, 3, 4, 7, 6));
  EXPECT_THAT(*client_->Download<int64_t>(run->outputs[4]), ElementsAre(0, 1, 2));
}

TEST_F(LiveTest, FactorsMayBeRounded) {
  std::vector<std::string> digests;
  for (const MatmulPrecision precision : {MatmulPrecision::kHighest, MatmulPrecision::kHigh}) {
    GraphBuilder builder;
    builder.SetFloat32MatmulPrecision(precision);
    Value x = builder.Input(DType::kFloat32, {2, 2});
    Value identity = builder.Input(DType::kFloat32, {2, 2});
    builder.Output(ops::Matmul(x, identity));
    auto program = client_->Define(builder.Build(), "matmul");
    ASSERT_TRUE(program.ok()) << program.status();
    digests.push_back(*program->digest());
    auto run = client_->Run(*program, {*client_->Upload<float>({2, 2}, {1.0001f, 2, 3, 4}),
                                       *client_->Upload<float>({2, 2}, {1, 0, 0, 1})});
    const bool rounds = precision == MatmulPrecision::kHigh;
    EXPECT_THAT(*client_->Download<float>(run->outputs[0]),
                ElementsAre(rounds ? 1.0f : 1.0001f, 2, 3, 4));
  }
  EXPECT_NE(digests[0], digests[1]);
}

TEST_F(LiveTest, UpdatesReplaceTheirInput) {
  GraphBuilder builder;
  Value weight = builder.Input(DType::kFloat32, {2});
  builder.Output(ops::Sum(weight));
  builder.Update(weight, weight + 1);
  auto program = client_->Define(builder.Build(), "count_up");
  ASSERT_TRUE(program.ok());
  auto tensor = client_->Upload<float>({2}, {0, 10});
  RunResult last = *client_->Run(*program, {*tensor});
  for (int i = 0; i < 4; ++i) last = *client_->Run(*program, {*tensor});
  EXPECT_THAT(*client_->Download<float>(last.outputs[0]), ElementsAre(18));
  EXPECT_THAT(*client_->Download<float>(*tensor), ElementsAre(5, 15));
}

TEST_F(LiveTest, VariablesBindAtEachRun) {
  GraphBuilder builder;
  builder.Variable("length", 1, 8);
  Value x = builder.Input(DType::kFloat32, {"length"});
  builder.Output(ops::Sum(x));
  auto program = client_->Define(builder.Build(), "any_length");
  ASSERT_TRUE(program.ok());
  auto two =
      client_->Run(*program, {*client_->Upload<float>({2}, {1, 2})}, {.bindings = {{"length", 2}}});
  auto three = client_->Run(*program, {*client_->Upload<float>({3}, {1, 2, 3})},
                            {.bindings = {{"length", 3}}});
  EXPECT_THAT(*client_->Download<float>(two->outputs[0]), ElementsAre(3));
  EXPECT_THAT(*client_->Download<float>(three->outputs[0]), ElementsAre(6));
}

TEST_F(LiveTest, ASliceMayEndAtAVariable) {
  GraphBuilder builder;
  builder.Variable("pos", 1, 4);
  Value x = builder.Input(DType::kFloat32, {int64_t{4}});
  builder.Output(ops::Shrink(x, {DimensionSum{-1, {{"pos", 1}}}, "pos"}));
  builder.Output(ops::Shrink(x, {0, "pos"}));
  auto program = client_->Define(builder.Build(), "slice");
  ASSERT_TRUE(program.ok()) << program.status();
  auto tensor = client_->Upload<float>({4}, {1, 2, 3, 4});
  for (int64_t pos = 1; pos <= 4; ++pos) {
    auto run = client_->Run(*program, {*tensor}, {.bindings = {{"pos", pos}}});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_THAT(*client_->Download<float>(run->outputs[0]), ElementsAre(static_cast<float>(pos)));
    EXPECT_EQ(client_->Download<float>(run->outputs[1])->size(), static_cast<size_t>(pos));
  }
}

TEST_F(LiveTest, LargeTensorsGoThereAndBack) {
  std::vector<float> data(3 << 20);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 1000);
  auto tensor = client_->Upload<float>({3, 1 << 20}, absl::MakeConstSpan(data));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  auto back = client_->Download<float>(*tensor);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, data);
}

// On as many of the daemon's devices as there are, up to four: one makes a mesh, too.
TEST_F(LiveTest, ProgramsRunOnMeshes) {
  auto devices = client_->Devices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_FALSE(devices->empty());
  EXPECT_TRUE((*devices)[0].healthy);
  Mesh mesh = {.axes = {{"data", devices->size() < 2 ? 1u : devices->size() < 4 ? 2u : 4u}}};
  for (uint32_t i = 0; i < mesh.axes[0].size; ++i) mesh.devices.push_back((*devices)[i].name);
  GraphBuilder builder;
  builder.SetMesh(mesh);
  Value weight = builder.Input(DType::kFloat32, {2});
  Value x = builder.Input(DType::kFloat32, {4, 2});
  builder.Lay(x, {{"data"}});
  builder.Output(ops::Sum(x * weight));
  builder.Output(builder.Shard(x + 1, {{"data"}, {}}), {{"data"}});
  builder.Update(weight, weight + ops::Sum(x, {.axes = {0}}));
  auto program = client_->Define(builder.Build(), "on_a_mesh");
  ASSERT_TRUE(program.ok()) << program.status();
  auto weights = client_->Upload<float>({2}, {1, 10}, {.mesh = mesh});
  auto one = client_->Upload<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  auto parts = client_->Move(*one, {.mesh = mesh, .spec = {{"data"}}});
  ASSERT_TRUE(parts.ok()) << parts.status();
  auto run = client_->Run(*program, {*weights, *parts});
  ASSERT_TRUE(run.ok() && run->done.Get().ok()) << run->done.Get().status();
  EXPECT_THAT(*client_->Download<float>(run->outputs[0]), ElementsAre(16 + 200));
  EXPECT_THAT(*client_->Download<float>(run->outputs[1]), ElementsAre(2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(*client_->Download<float>(*weights), ElementsAre(17, 30));
  EXPECT_THAT(*client_->Download<float>(*client_->Move(*parts, {})),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

// On two of the daemon's devices, or on the one that there is.
TEST_F(LiveTest, ProgramsRunInStages) {
  auto devices = client_->Devices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  const std::string first = devices->front().name;
  const std::string second = devices->back().name;
  GraphBuilder builder;
  builder.SetStages(first == second ? std::vector{first} : std::vector{first, second});
  Value x = builder.Input(DType::kFloat32, {3});
  Value weight = builder.Input(DType::kFloat32, {3});
  builder.PutOn(weight, second);
  Value loss = ops::Sum(builder.Send(x * 2, second) * weight);
  builder.Output(loss);
  builder.Output(builder.AddNode("gradient", {loss, x}));
  builder.Update(weight, weight + 1);
  auto program = client_->Define(builder.Build(), "in_stages");
  ASSERT_TRUE(program.ok()) << program.status();
  auto given = client_->Upload<float>({3}, {1, 2, 3}, {.device = first});
  auto weights = client_->Upload<float>({3}, {1, 10, 100}, {.device = second});
  auto run = client_->Run(*program, {*given, *weights});
  ASSERT_TRUE(run.ok() && run->done.Get().ok()) << run->done.Get().status();
  EXPECT_THAT(*client_->Download<float>(run->outputs[0]), ElementsAre(642));
  EXPECT_THAT(*client_->Download<float>(run->outputs[1]), ElementsAre(2, 20, 200));
  EXPECT_THAT(*client_->Download<float>(*weights), ElementsAre(2, 11, 101));
}

TEST_F(LiveTest, AMeshNeedNotDivideSizes) {
  auto devices = client_->Devices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  const auto places = static_cast<uint32_t>(std::min<size_t>(devices->size(), 3));
  Mesh mesh = {.axes = {{"data", places}}};
  for (uint32_t i = 0; i < places; ++i) mesh.devices.push_back((*devices)[i].name);
  GraphBuilder builder;
  builder.SetMesh(mesh);
  Value x = builder.Input(DType::kFloat32, {5, 2});
  builder.Lay(x, {{"data"}});
  builder.Output(ops::Mean(x));
  builder.Output(builder.Shard(x * 2, {{}, {"data"}}), {{}, {"data"}});
  auto program = client_->Define(builder.Build(), "uneven");
  ASSERT_TRUE(program.ok()) << program.status();
  auto parts = client_->Upload<float>({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                                      {.mesh = mesh, .spec = {{"data"}}});
  ASSERT_TRUE(parts.ok()) << parts.status();
  auto run = client_->Run(*program, {*parts});
  ASSERT_TRUE(run.ok() && run->done.Get().ok()) << run->done.Get().status();
  EXPECT_THAT(*client_->Download<float>(run->outputs[0]), ElementsAre(5.5));
  EXPECT_THAT(*client_->Download<float>(run->outputs[1]),
              ElementsAre(2, 4, 6, 8, 10, 12, 14, 16, 18, 20));
  EXPECT_THAT(*client_->Download<float>(*client_->Move(run->outputs[1], {})),
              ElementsAre(2, 4, 6, 8, 10, 12, 14, 16, 18, 20));
}

// Errors of the daemon for a graph that `build` makes of x (float32, 2 x 3) and i (int64, 2).
class MistakeTest : public LiveTest {
 protected:
  absl::Status StatusOf(const std::function<Value(Value, Value)>& build) {
    GraphBuilder builder;
    Value x = builder.Input(DType::kFloat32, {2, 3});
    builder.Output(build(x, builder.Input(DType::kInt64, {2})));
    auto program = client_->Define(builder.Build(), "mistake");
    return program.ok() ? program->digest().status() : program.status();
  }
  // It is the user's, and names op, node and line.
  void ExpectMistake(const std::function<Value(Value, Value)>& build, std::string_view op,
                     std::string_view reason, std::string_view what) {
    const absl::Status status = StatusOf(build);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("node 2 \"" + std::string(op) + "\" (live_test.cc:"),
                      HasSubstr(std::string(what))));
    EXPECT_EQ(ErrorReason(status), reason);
  }
};

TEST_F(MistakeTest, Shape) {
  ExpectMistake([](Value x, Value i) { return x + i; }, "add", "SHAPE_MISMATCH",
                "(2, 3) and (2,) do not broadcast");
}
TEST_F(MistakeTest, DType) {
  ExpectMistake([](Value x, Value) { return ops::And(x, x); }, "and", "DTYPE_MISMATCH",
                "operand 0 of \"and\" has dtype float32");
}
TEST_F(MistakeTest, Axis) {
  ExpectMistake([](Value x, Value) { return ops::Softmax(x, {.axis = 2}); }, "softmax", "ILLEGAL",
                "axis 2");
  ExpectMistake(
      [](Value x, Value) {
        return ops::Sum(x, {.axes = {1, -1}});
      },
      "sum", "SHAPE_MISMATCH", "axis 1 is named twice");
}
TEST_F(MistakeTest, Index) {
  ExpectMistake([](Value x, Value) { return ops::Gather(x, x); }, "gather", "DTYPE_MISMATCH",
                "operand 1 of \"gather\" has dtype float32; it must be integer");
}
TEST_F(MistakeTest, AttributeValue) {
  ExpectMistake([](Value x, Value i) { return ops::CrossEntropy(x, i, {.reduction = "men"}); },
                "cross_entropy", "ATTRIBUTE", "men");
}
TEST_F(MistakeTest, UndeclaredVariable) {
  ExpectMistake(
      [](Value x, Value) {
        return ops::Reshape(x, {"rows", 3});
      },
      "reshape", "VARIABLE", "rows");
}

TEST_F(LiveTest, AFailedRunFailsWhatUsesIt) {
  GraphBuilder builder;
  builder.Output(builder.AddNode("fly", {builder.Input(DType::kFloat32, {2})}));
  auto program = client_->Define(builder.Build(), "unknown_op");
  auto run = client_->Run(*program, {*client_->Upload<float>({2}, {1, 2})});
  EXPECT_EQ(run->done.Get().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(client_->Download<float>(run->outputs[0]).ok());
  // The session lives on.
  EXPECT_THAT(*client_->Download<float>(*client_->Upload<float>({1}, {7})), ElementsAre(7));
}

}  // namespace
}  // namespace kiln
