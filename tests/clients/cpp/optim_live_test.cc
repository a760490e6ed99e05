// State and the steps of optimizers, against the same steps in plain C++.
#include <cmath>
#include <functional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kiln/client.h"
#include "kiln/ops.h"
#include "kiln/optim.h"
#include "kiln/state.h"

namespace kiln {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const std::vector<float> kStart = {1, -2, 0.5, 3};
const std::vector<float> kSteepness = {1, 0.1, 4, 0};
constexpr double kRate = 0.05;
constexpr int kSteps = 5;

// The loss is the sum of steepness * weight²; here is its gradient.
double GradientOf(double weight, size_t i) { return 2 * kSteepness[i] * weight; }

class OptimTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto client = Client::Connect({.description = "optim test", .timeout = absl::Minutes(10)});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  // The weights after kSteps runs of a graph to which `step` adds the updates. `kept` comes after
  // them.
  absl::StatusOr<std::vector<float>> Trained(
      State& weights, State& kept,
      const std::function<void(Value loss, const std::vector<Value>& weights,
                               const std::vector<Value>& kept, Value rate)>& step) {
    GraphBuilder builder;
    const std::vector<Value> w = weights.Inputs(builder);
    const std::vector<Value> k = kept.Inputs(builder);
    const Value steepness = builder.Input(DType::kFloat32, {4});
    step(ops::Sum(steepness * w[0] * w[0]), w, k, builder.Input(DType::kFloat32, {}));
    auto program = client_->Define(builder.Build(), "optim");
    if (!program.ok()) return program.status();
    std::vector<Tensor> inputs = weights.tensors();
    inputs.insert(inputs.end(), kept.tensors().begin(), kept.tensors().end());
    inputs.push_back(*client_->Upload<float>({4}, kSteepness));
    inputs.push_back(*client_->Upload<float>({}, {static_cast<float>(kRate)}));
    for (int i = 0; i < kSteps; ++i) {
      auto run = client_->Run(*program, inputs);
      if (!run.ok()) return run.status();
      if (auto done = run->done.Get(); !done.ok()) return done.status();
    }
    return client_->Download<float>(weights.tensors()[0]);
  }

  // Each weight after kSteps of `step`, which changes one.
  template <typename Step>
  static std::vector<float> Reference(Step step) {
    std::vector<float> weights;
    for (size_t i = 0; i < kStart.size(); ++i) {
      double weight = kStart[i];
      step(i, weight);
      weights.push_back(static_cast<float>(weight));
    }
    return weights;
  }

  std::unique_ptr<Client> client_;
};

TEST_F(OptimTest, Sgd) {
  State weights(*client_), none(*client_);
  ASSERT_TRUE(weights.Add<float>({4}, kStart).ok());
  const auto trained = Trained(weights, none, [](Value loss, const auto& w, const auto&, Value) {
    optim::Sgd(loss, w, kRate, {.weight_decay = 0.1});
  });
  ASSERT_TRUE(trained.ok()) << trained.status();
  const auto reference = Reference([](size_t i, double& w) {
    for (int step = 0; step < kSteps; ++step) w -= kRate * (GradientOf(w, i) + 0.1 * w);
  });
  EXPECT_THAT(*trained, Pointwise(FloatNear(1e-6), reference));
}

TEST_F(OptimTest, SgdWithNesterovsMomentum) {
  State weights(*client_), velocities(*client_);
  ASSERT_TRUE(weights.Add<float>({4}, kStart).ok());
  ASSERT_TRUE(velocities.AddZerosLike(weights).ok());
  const auto trained =
      Trained(weights, velocities, [](Value loss, const auto& w, const auto& kept, Value rate) {
        optim::Sgd(loss, w, rate, {.momentum = 0.9, .nesterov = true, .velocities = kept});
      });
  ASSERT_TRUE(trained.ok()) << trained.status();
  const auto reference = Reference([](size_t i, double& w) {
    double velocity = 0;
    for (int step = 0; step < kSteps; ++step) {
      velocity = 0.9 * velocity + GradientOf(w, i);
      w -= kRate * (GradientOf(w, i) + 0.9 * velocity);
    }
  });
  EXPECT_THAT(*trained, Pointwise(FloatNear(1e-6), reference));
}

TEST_F(OptimTest, AdamW) {
  State weights(*client_), kept(*client_);
  ASSERT_TRUE(weights.Add<float>({4}, kStart).ok());
  ASSERT_TRUE(kept.AddZerosLike(weights).ok());
  ASSERT_TRUE(kept.AddZerosLike(weights).ok());
  ASSERT_TRUE(kept.Add<int64_t>({}, std::vector<int64_t>{0}).ok());
  const auto trained =
      Trained(weights, kept, [](Value loss, const auto& w, const auto& k, Value rate) {
        optim::AdamW(loss, w, {.means = {k[0]}, .squares = {k[1]}, .steps = k[2]}, rate);
      });
  ASSERT_TRUE(trained.ok()) << trained.status();
  const auto reference = Reference([](size_t i, double& w) {
    double mean = 0, square = 0;
    for (int step = 1; step <= kSteps; ++step) {
      const double gradient = GradientOf(w, i);
      mean = 0.9 * mean + 0.1 * gradient;
      square = 0.999 * square + 0.001 * gradient * gradient;
      w -= kRate * 0.01 * w;
      w -= kRate * (mean / (1 - std::pow(0.9, step))) /
           (std::sqrt(square / (1 - std::pow(0.999, step))) + 1e-8);
    }
  });
  EXPECT_THAT(*trained, Pointwise(FloatNear(2e-6), reference));
  EXPECT_EQ(client_->Download<int64_t>(kept.tensors()[2])->at(0), kSteps);
}

TEST_F(OptimTest, WhatIsKeptMustBeThere) {
  State weights(*client_), none(*client_);
  ASSERT_TRUE(weights.Add<float>({4}, kStart).ok());
  const auto trained = Trained(weights, none, [](Value loss, const auto& w, const auto&, Value) {
    optim::Sgd(loss, w, kRate, {.momentum = 0.9});
  });
  EXPECT_EQ(trained.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(trained.status().message()),
              HasSubstr("SgdOptions::velocities (optim_live_test.cc:"));
}

TEST_F(OptimTest, AStateIsGivenAsManyValuesAsItsShapeSays) {
  State weights(*client_);
  EXPECT_EQ(weights.Add<float>({5}, kStart).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(weights.tensors().empty());
}

}  // namespace
}  // namespace kiln
