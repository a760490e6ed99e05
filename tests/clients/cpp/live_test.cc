// The C++ client against the kilnd at $KILN_ADDRESS; tests/clients/cpp/test_cpp_client.py starts
// one.
#include <cmath>
#include <vector>

#include "clients/cpp/kiln/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

class LiveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto client = Client::Connect({.description = "live test"});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  std::unique_ptr<Client> client_;
};

TEST_F(LiveTest, SumOfSquares) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {2, 3});
  builder.Output(builder.Sum(builder.Mul(x, x), {}));
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

// Every helper of GraphBuilder names an op that the daemon knows, with the attributes it takes.
TEST_F(LiveTest, EveryHelper) {
  GraphBuilder b;
  Value x = b.Input(DType::kFloat32, {2, 2});
  Value one = b.Constant(DType::kFloat32, 1);
  Value y = b.Relu(b.Sub(b.Div(b.Add(b.Exp(x), one), b.Mul(x, x)), b.Log(x)));
  y = b.Add(b.Softmax(b.Matmul(y, x)), b.Permute(b.Reshape(x, {2, 2}), {1, 0}));
  b.Output(b.Add(b.Max(y, {0}, true), b.Mean(y, {-1}, true)));
  b.Output(b.Cast(b.Sum(y, {}), DType::kFloat64));
  b.Output(b.Gradient(b.Sum(b.Mul(x, x), {}), x));
  auto program = client_->Define(b.Build(), "every_helper");
  ASSERT_TRUE(program.ok()) << program.status();
  auto run = client_->Run(*program, {*client_->Upload<float>({2, 2}, {1, 2, 3, 4})});
  ASSERT_TRUE(run->done.Get().ok()) << run->done.Get().status();
  EXPECT_EQ(client_->Download<double>(run->outputs[1])->size(), 1u);
  EXPECT_THAT(*client_->Download<float>(run->outputs[2]), ElementsAre(2, 4, 6, 8));
}

TEST_F(LiveTest, UpdatesReplaceTheirInput) {
  GraphBuilder builder;
  Value weight = builder.Input(DType::kFloat32, {2});
  builder.Output(builder.Sum(weight, {}));
  builder.Update(weight, builder.Add(weight, builder.Constant(DType::kFloat32, 1)));
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
  builder.Output(builder.Sum(x, {}));
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
  builder.Output(builder.AddNode(
      "shrink", {x}, {{"bounds", std::vector<Dimension>{DimensionSum{-1, {{"pos", 1}}}, "pos"}}}));
  builder.Output(
      builder.AddNode("shrink", {x}, {{"bounds", std::vector<Dimension>{int64_t{0}, "pos"}}}));
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

TEST_F(LiveTest, AWrongGraphNamesItsNode) {
  GraphBuilder builder;
  Value x = builder.Input(DType::kFloat32, {2});
  Value y = builder.Input(DType::kFloat32, {3});
  builder.Output(builder.Add(x, y));
  auto program = client_->Define(builder.Build(), "wrong");
  auto digest = program->digest();
  EXPECT_EQ(digest.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(digest.status().message(), HasSubstr("add"));
  EXPECT_FALSE(ErrorReason(digest.status()).empty());
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
