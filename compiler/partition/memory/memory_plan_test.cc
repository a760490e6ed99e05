#include "compiler/partition/memory/memory_plan.h"

#include <algorithm>

#include "compiler/partition/memory/order_groups.h"
#include "gtest/gtest.h"

namespace kiln::partition {
namespace {

// An input, a chain of intermediates of these sizes in floats, and an output.
Partition Chain(const std::vector<int64_t>& sizes) {
  Partition partition;
  auto add = [&](Tensor::Kind kind, int64_t size) {
    partition.tensors.push_back({kind, 0, ir::DType::kFloat32, {size}, nullptr});
    return static_cast<int>(partition.tensors.size()) - 1;
  };
  int last = add(Tensor::Kind::kInput, 8);
  for (const int64_t size : sizes) {
    const int next = add(Tensor::Kind::kIntermediate, size);
    Group group;
    group.reads = {last};
    group.writes = {next};
    partition.groups.push_back(group);
    last = next;
  }
  Group group;
  group.reads = {last};
  group.writes = {add(Tensor::Kind::kOutput, 8)};
  partition.groups.push_back(group);
  return partition;
}

TEST(MemoryPlan, ReusesWhatIsDead) {
  const Partition partition = Chain({100, 100, 100, 100});
  const MemoryPlan plan = *PlanMemory(partition, {});
  EXPECT_EQ(plan.arena_bytes_without_reuse, 4 * 448);
  EXPECT_EQ(plan.arena_bytes, 2 * 448);
  EXPECT_EQ(plan.offsets.front(), -1);
  EXPECT_EQ(plan.offsets.back(), -1);
  EXPECT_EQ(Verify(plan, partition), absl::OkStatus());
}

TEST(MemoryPlan, SmallTensorsFillGaps) {
  const Partition partition = Chain({1000, 10, 1000, 10, 1000});
  const MemoryPlan plan = *PlanMemory(partition, {});
  EXPECT_EQ(plan.arena_bytes, 4032 + 64);
  EXPECT_EQ(Verify(plan, partition), absl::OkStatus());
}

TEST(MemoryPlan, ManyTensorsNeedLittleMoreThanWhatLivesAtOnce) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < 5000; ++i) sizes.push_back(16 * (1 + i * 7919 % 64));
  const Partition partition = Chain(sizes);
  const MemoryPlan plan = *PlanMemory(partition, {});
  EXPECT_EQ(Verify(plan, partition), absl::OkStatus());
  EXPECT_LE(plan.arena_bytes, 4 * 64 * 64);  // two of the largest, twice
}

TEST(MemoryPlan, WhatIsWrittenOverLivesThroughIt) {
  Partition partition = Chain({100, 100, 100});
  // The last kernel overwrites the first intermediate, so the third one cannot take its bytes.
  partition.groups.back().updates = {1};
  const MemoryPlan plan = *PlanMemory(partition, {});
  EXPECT_EQ(plan.arena_bytes, 3 * 448);
  EXPECT_EQ(Verify(plan, partition), absl::OkStatus());
}

TEST(MemoryPlan, WhatACopyReadsLivesToTheEnd) {
  Partition partition = Chain({100, 100, 100});
  partition.copies.push_back({1, Tensor::Kind::kOutput, 1});
  const MemoryPlan plan = *PlanMemory(partition, {});
  EXPECT_EQ(plan.arena_bytes, 3 * 448);
  EXPECT_EQ(Verify(plan, partition), absl::OkStatus());
}

TEST(MemoryPlan, TensorsAreAlignedAsTheTargetWants) {
  const Partition partition = Chain({100, 100});
  for (const int64_t alignment : {64, 256, 16}) {
    drivers::Target target;
    target.limits.buffer_alignment = alignment;
    MemoryPlan plan = *PlanMemory(partition, target);
    EXPECT_EQ(plan.alignment, std::max<int64_t>(alignment, 64));
    EXPECT_EQ(plan.arena_bytes, alignment == 256 ? 2 * 512 : 2 * 448);
    EXPECT_EQ(Verify(plan, partition), absl::OkStatus());
    plan.arena_bytes += 32;
    plan.offsets[2] += 32;
    EXPECT_EQ(Verify(plan, partition).message(), "tensor t2 has no legal place in the arena");
  }
}

TEST(MemoryPlan, TensorsThatNoMemoryHoldsAreRefused) {
  // Alive at once, so that offsets would overflow, and more than are placed by size.
  Partition partition = Chain(std::vector<int64_t>(1100, int64_t{1} << 56));
  partition.groups.back().reads.assign(1100, 0);
  for (int i = 0; i < 1100; ++i) partition.groups.back().reads[i] = i + 1;
  EXPECT_TRUE(absl::IsResourceExhausted(PlanMemory(partition, {}).status()));
  EXPECT_TRUE(PlanMemory(Chain({int64_t{1} << 56}), {}).ok());
}

TEST(MemoryPlan, VerifyFindsOverlap) {
  const Partition partition = Chain({100, 100});
  MemoryPlan plan = *PlanMemory(partition, {});
  plan.offsets[2] = plan.offsets[1];
  EXPECT_EQ(Verify(plan, partition).message(), "tensors t1 and t2 overlap in the arena");
  plan.offsets[2] = 32;
  EXPECT_FALSE(Verify(plan, partition).ok());
}

TEST(OrderGroups, FinishesOneBranchBeforeTheNext) {
  // Two branches of a large tensor that is then reduced; interleaved they need both large tensors
  // at once.
  Partition partition;
  auto add = [&](Tensor::Kind kind, int index, int64_t size) {
    partition.tensors.push_back({kind, index, ir::DType::kFloat32, {size}, nullptr});
    return static_cast<int>(partition.tensors.size()) - 1;
  };
  const int input = add(Tensor::Kind::kInput, 0, 8);
  std::vector<Group> makers;
  std::vector<Group> reducers;
  for (int i = 0; i < 2; ++i) {
    Group make;
    make.reads = {input};
    make.writes = {add(Tensor::Kind::kIntermediate, 0, 1000)};
    Group reduce;
    reduce.reads = make.writes;
    reduce.writes = {add(Tensor::Kind::kOutput, i, 1)};
    makers.push_back(make);
    reducers.push_back(reduce);
  }
  partition.groups = {makers[0], makers[1], reducers[0], reducers[1]};
  EXPECT_EQ(PlanMemory(partition, {})->arena_bytes, 2 * 4032);
  OrderGroups(&partition);
  EXPECT_EQ(PlanMemory(partition, {})->arena_bytes, 4032);
}

}  // namespace
}  // namespace kiln::partition
