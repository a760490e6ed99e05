#include "server/runtime/program/kernel_samples.h"

#include "gtest/gtest.h"

namespace kiln::runtime {
namespace {

// Two kernels; the second one is launched twice.
compiler::CompiledProgram TwoKernels() {
  compiler::CompiledProgram program;
  program.kernels.resize(2);
  program.kernels[0].image.name = "first";
  program.kernels[1].image.name = "second";
  program.calls = {{0, {}}, {1, {}}, {1, {}}};
  return program;
}

TEST(KernelSamples, NothingIsKnownBeforeTheFirstRun) {
  const compiler::CompiledProgram program = TwoKernels();
  const KernelSamples samples(program);
  EXPECT_EQ(samples.shares(), nullptr);
  const auto times = samples.Times();
  EXPECT_EQ(times[0].samples, 0);
  EXPECT_EQ(times[1].launches, 2);
}

TEST(KernelSamples, TheColdRunCountsOnlyUntilAWarmOne) {
  const compiler::CompiledProgram program = TwoKernels();
  KernelSamples samples(program);
  EXPECT_FALSE(samples.Add(10, {1, 2, 4}));
  auto times = samples.Times();
  EXPECT_TRUE(times[0].is_cold);
  EXPECT_DOUBLE_EQ(times[0].median_seconds, 1);
  EXPECT_DOUBLE_EQ(times[1].median_seconds, 3);
  EXPECT_EQ(times[1].samples, 2);
  EXPECT_TRUE(samples.Add(0.4, {0.1, 0.05, 0.15}));
  times = samples.Times();
  EXPECT_FALSE(times[0].is_cold);
  EXPECT_DOUBLE_EQ(times[0].median_seconds, 0.1);
  EXPECT_DOUBLE_EQ(times[1].median_seconds, 0.1);
  EXPECT_DOUBLE_EQ(times[1].lowest_seconds, 0.05);
  EXPECT_EQ(times[1].samples, 2);
  EXPECT_DOUBLE_EQ(samples.shares()->kernels[0].share, 0.25);
  EXPECT_EQ(samples.shares()->kernels[1].kernel, "second");
  EXPECT_DOUBLE_EQ(samples.shares()->kernels[1].share, 0.5);
  EXPECT_DOUBLE_EQ(samples.shares()->outside, 0.25);
}

TEST(KernelSamples, OneSlowRunMovesNoMedian) {
  const compiler::CompiledProgram program = TwoKernels();
  KernelSamples samples(program);
  samples.Add(1, {1, 1, 1});
  for (const double seconds : {3.0, 900.0, 2.0, 4.0}) samples.Add(1000, {seconds, 1, 1});
  EXPECT_DOUBLE_EQ(samples.Times()[0].median_seconds, 3.5);
  samples.Add(1000, {3, 1, 1});
  EXPECT_DOUBLE_EQ(samples.Times()[0].median_seconds, 3);
  EXPECT_DOUBLE_EQ(samples.Times()[0].lowest_seconds, 2);
}

TEST(KernelSamples, TheLatestRunsAreKept) {
  const compiler::CompiledProgram program = TwoKernels();
  KernelSamples samples(program);
  for (size_t i = 0; i < 1 + KernelSamples::kKeptMax; ++i) samples.Add(30, {10, 10, 10});
  for (size_t i = 0; i < KernelSamples::kKeptMax; ++i) samples.Add(4, {2, 1, 1});
  EXPECT_DOUBLE_EQ(samples.Times()[0].median_seconds, 2);
  EXPECT_DOUBLE_EQ(samples.shares()->kernels[0].share, 0.5);
  EXPECT_EQ(samples.Times()[0].samples, 2 * KernelSamples::kKeptMax);
}

// Also for kernels that run concurrently, or for clocks that differ.
TEST(KernelSamples, SharesAddUpToOneWhateverTheTimes) {
  const compiler::CompiledProgram program = TwoKernels();
  for (const double run_seconds : {0.0, 1.0, 3.0, 100.0}) {
    KernelSamples samples(program);
    samples.Add(run_seconds, {1, 1, 1});
    const metrics::KernelShares& shares = *samples.shares();
    EXPECT_GE(shares.outside, 0);
    EXPECT_NEAR(shares.kernels[0].share + shares.kernels[1].share + shares.outside, 1, 1e-12);
  }
  KernelSamples samples(program);
  samples.Add(0, {0, 0, 0});
  EXPECT_EQ(samples.shares()->outside, 1);
}

}  // namespace
}  // namespace kiln::runtime
