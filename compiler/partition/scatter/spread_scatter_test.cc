#include "compiler/partition/scatter/spread_scatter.h"

#include <random>
#include <string>

#include "compiler/ir/walk.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/ops/testing/evaluate.h"
#include "compiler/partition/reads.h"
#include "gtest/gtest.h"

namespace kiln::partition {
namespace {

using ir::DType;
using ir::Node;
using ir::ScatterMode;
using ops::HostTensor;

// A device with 64 threads: scatters of fewer than 64 columns are worth spreading.
drivers::Target SmallGpu() {
  drivers::Target target;
  target.limits.threads_per_block = 32;
  target.limits.threads_per_unit = 32;
  target.limits.compute_units = 2;
  return target;
}

struct ScatterCase {
  std::string name;
  ir::Shape x, index, values;
  int64_t axis = 0;
  int64_t lowest = -2, highest = 0;  // of the index
  bool large = false;
};

class SpreadScatterTest : public testing::TestWithParam<ScatterCase> {
 protected:
  HostTensor Random(DType dtype, const ir::Shape& shape, int64_t low, int64_t high) {
    std::vector<double> values(ir::NumElements(shape));
    std::uniform_int_distribution<int64_t> draw(low, high);
    for (double& value : values) value = static_cast<double>(draw(random_));
    return HostTensor::Of(dtype, shape, values);
  }

  void ExpectSame(DType dtype, ScatterMode mode) {
    const ScatterCase& c = GetParam();
    ir::Context context;
    ops::Builder b(context);
    const Node* scatter =
        b.ScatterElements(b.Input(0, dtype, c.x), b.Input(1, DType::kInt64, c.index),
                          b.Input(2, dtype, c.values), c.axis, mode);
    const Node* spread = SpreadScatter(context, scatter, SmallGpu());
    for (const Node* node : ir::TopologicalOrder({&spread, 1})) EXPECT_FALSE(IsScatter(node));
    const int64_t low = ir::IsFloat(dtype) || ir::IsSigned(dtype) ? -3 : 0;
    // Products of ones and zeros stay small.
    const int64_t high = mode == ScatterMode::kMul ? 1 : 3;
    const std::vector<HostTensor> inputs = {
        Random(dtype, c.x, low, 3), Random(DType::kInt64, c.index, c.lowest, c.highest),
        Random(dtype, c.values, mode == ScatterMode::kMul ? std::max<int64_t>(low, -1) : low,
               high)};
    const auto results = ops::Evaluate({scatter, spread}, inputs);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ((*results)[0].shape, (*results)[1].shape);
    EXPECT_EQ((*results)[0].bytes, (*results)[1].bytes)
        << ir::Name(mode) << " of " << ir::Name(dtype);
  }

  std::mt19937_64 random_{1};
};

TEST_P(SpreadScatterTest, EqualsTheScatter) {
  ExpectSame(DType::kFloat32, ScatterMode::kAdd);
  if (GetParam().large) return;
  for (const ScatterMode mode : {ScatterMode::kSet, ScatterMode::kAdd, ScatterMode::kMul,
                                 ScatterMode::kMax, ScatterMode::kMin}) {
    for (const DType dtype : {DType::kFloat32, DType::kInt8, DType::kUInt32}) {
      ExpectSame(dtype, mode);
    }
  }
  ExpectSame(DType::kBool, ScatterMode::kSet);
}

std::vector<ScatterCase> Cases() {
  return {
      {"few_destinations", {5, 3}, {100, 1}, {100, 3}, 0, -2, 6},
      {"histogram", {10}, {1500}, {1500}, 0, 0, 9},
      {"many_destinations", {300, 4}, {70, 1}, {70, 4}, 0, -10, 310},
      {"no_position_in_range", {1100}, {70}, {70}, 0, 1100, 1200},
      {"second_axis", {3, 400}, {1, 150}, {3, 150}, 1, 0, 40},
      {"lines_behind", {600, 2}, {70, 2}, {70, 2}, 0, -1, 600},
      {"few_in_lines", {4, 9, 2}, {4, 80, 2}, {4, 80, 2}, 1, -1, 9},
      {"one_destination", {1100}, {600}, {600}, 0, 7, 7, true},
      {"two_destinations", {1100}, {300}, {300}, 0, 1098, 1099, true},
      {"runs", {1100}, {1100}, {1100}, 0, 0, 30, true},
      {"pieces_of_pieces", {1100}, {8200}, {8200}, 0, 500, 503, true},
      {"lines", {3, 600, 2}, {3, 600, 1}, {3, 600, 2}, 1, 0, 9, true},
  };
}

INSTANTIATE_TEST_SUITE_P(All, SpreadScatterTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

TEST(SpreadScatterTest, WhatKeepsItsLoops) {
  ir::Context context;
  ops::Builder b(context);
  const auto scatter = [&](int64_t positions, int64_t columns) {
    return b.ScatterElements(
        b.Input(0, DType::kFloat32, {90, columns}), b.Input(1, DType::kInt64, {positions, 1}),
        b.Input(2, DType::kFloat32, {positions, columns}), 0, ScatterMode::kAdd);
  };
  const Node* few_positions = scatter(kScatterPiece, 3);
  EXPECT_EQ(SpreadScatter(context, few_positions, SmallGpu()), few_positions);
  const Node* all_threads_busy = scatter(1000, 64);
  EXPECT_EQ(SpreadScatter(context, all_threads_busy, SmallGpu()), all_threads_busy);
  const Node* idle = scatter(1000, 63);
  EXPECT_NE(SpreadScatter(context, idle, SmallGpu()), idle);
  EXPECT_EQ(SpreadScatter(context, idle, drivers::Target()), idle);
}

}  // namespace
}  // namespace kiln::partition
